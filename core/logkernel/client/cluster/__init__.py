"""A cluster as a client sees it: its brokers, its topics, and requests to the right one of them. Pure,
save `bootstrap` and `bootstrap_client`.

bootstrap         the addresses of `bootstrap.servers`
metadata          machine: brokers, topics, leaders, and when to ask again
calls             machine: network and metadata together, and calls that are retried until they succeed
leader_queries    machine: queries that only the partitions' leaders answer
bootstrap_client  blocking requests that any broker answers
"""
