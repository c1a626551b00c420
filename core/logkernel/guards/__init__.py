"""Guards: an object of a plugin that decides is asked through one, which times it, judges its answers and names it.

A file for each kind, named as that of its contract. A guard raises `PluginError` for what the plugin raises or decides
wrongly, and notes both in `PluginFaults`. What a plugin may decide:

    object            refused where
    CleanupPolicy     the plan is no sequence of `DropBefore` and `Rewrite`
      DropBefore      `offset` is no int, is negative, or lies above the high watermark
      Rewrite         `start` or `end` is no int; not `0 <= start <= end`; `end` lies above the active segment's base
                      offset; the rule lacks `learn` or `keep`
    ElectionStrategy  the leader is not a live replica of the assignment; the ISR is not part of the assignment, or
                      lacks the leader; a clean election of a leader that was not in sync
    IsrPolicy         the answer is neither True nor False
    PlacementStrategy there are not as many rows as partitions; a row has not `factor` replicas, or one twice, or one of
                      a broker that is not alive
    ProduceInterceptor
                      an answer is neither a `Record`, of bytes, headers and an int64 timestamp, nor a `Refusal`
    CompactionStrategy
                      there is not one int64 for each record of the batch
    FetchFilter       the answer is neither True nor False
    Quota             the answer is no int, or is negative
    Authorizer        there is not one bool for each resource
    ClientQuotaCallback
                      the quota is no finite number over 0; `whose` is no tuple of texts and None; a type of
                      `limited_types` is unknown; `update_cluster_metadata` answers neither True nor False
    PasswordChecker   the answer is neither a bool nor a name
    Assignor          judged by the groups service, which knows the members
    TaskAssignor      a task that does not exist, is active with two members or with none, or is twice in a process; a
                      standby of a task without state
    Partitioner       judged by who asks, which knows the partitions

A policy that wants the active segment gone says so by its next offset, which the high watermark must have reached. An
offset inside a segment drops the segments before it. Nothing of a refused plan is carried out.
"""
