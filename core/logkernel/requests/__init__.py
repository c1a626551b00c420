"""Versionless requests and responses, by family: the language between transports, the broker, services and clients.

One class holds the fields of a Kafka message over all its versions, under `kio`'s names with units
(`_ms`); error codes are ints, an absent id is `NO_ID`. A field that a version lacks has its default on the
way in and is not written on the way out. Transports hide the forms of old versions: the broker sees
`coordinator_keys`, `groups`, `members`, `topics` as the newest version has them, and None for "all topics",
and answers likewise.

What a version changes beyond its fields crosses as a name in `RequestContext.capabilities`:

| capability | request | the client ... |
|---|---|---|
| `topic_ids` | Produce, Fetch, OffsetCommit, OffsetFetch, DeleteTopics, Metadata | may name topics by id (the first four: by id alone) and knows UNKNOWN_TOPIC_ID |
| `zstd` | Produce, Fetch | knows zstd; without it UNSUPPORTED_COMPRESSION_TYPE is the answer |
| `transactions_v2` | Produce, AddPartitionsToTxn, EndTxn, TxnOffsetCommit | adds partitions and groups to its transaction by writing to them, and goes on with a new epoch after each end |
| `max_timestamp`, `earliest_local`, `latest_tiered`, `earliest_pending_upload` | ListOffsets | knows the special timestamp -3, -4, -5, -6 |
| `member_id_required` | JoinGroup | can be told its member id first, with MEMBER_ID_REQUIRED |
| `static_members` | JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit | may have a `group_instance_id` and knows FENCED_INSTANCE_ID |
| `skip_assignment` | JoinGroup | as a static leader can be told to assign nothing |
| `group_not_found` | DescribeGroups, OffsetCommit | knows GROUP_ID_NOT_FOUND; without it a missing group is in state Dead, without an error |
| `throttling_quota` | CreateTopics, DeleteTopics, CreatePartitions | knows THROTTLING_QUOTA_EXCEEDED; without it the request is carried out, and the client held back |
| `transaction_abortable` | FindCoordinator | knows TRANSACTION_ABORTABLE |
| `member_epochs` | OffsetCommit | as a member of a KIP-848 group knows STALE_MEMBER_EPOCH |
| `client_member_id` | ConsumerGroupHeartbeat | makes its member id itself |
| `share_coordinator` | FindCoordinator | may ask for `key_type` 2 |
"""  # noqa: E501
