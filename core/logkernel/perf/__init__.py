"""The measuring behind `logkernel perf`: with our own client, against a cluster or an embedded log.

figures     counts, latencies and windows, as Kafka's tools reckon them; their lines and rows. Pure
target      where it is measured: a cluster, a data folder, or in memory; its topic
produce     as fast as it goes, or at a rate
consume     to the end, with the time that joining took
latency     one record at a time: until it is acknowledged, and until it is read
sweep       the experiments: throughput against producers, consumers, partitions, sizes, replicas
claims      what is said of these curves, and whether points bear it out. Pure
worker      one producer or consumer in a process of its own
plots       curves as SVG, PNG and text
"""
