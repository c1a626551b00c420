"""The measurements of `logkernel perf`, with logkernel's client, of a cluster or an embedded log.

figures     counts, latencies and windows, computed and printed as Kafka's tools do. Pure
target      the log to measure: a cluster, a data directory, or memory; its topic
produce     produce at full speed, or at a rate
consume     consume to the end; measures the time of joining, too
latency     one record at a time: until it is acknowledged, and until it is read
sweep       experiments: throughput against producers, consumers, partitions, sizes, replicas
claims      common claims about these curves, and whether the points support them. Pure
worker      one producer or consumer in a process of its own
plots       curves as SVG, PNG and text
"""
