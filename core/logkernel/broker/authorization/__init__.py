"""What a request needs to be allowed: between the router and what answers, where the broker has an authorizer.

    asking      asks the authorizer for one request, and tells it of changed ACLs
    audit       the log of refusals
    table       request → its guard
    outcome     what a guard decides: nothing, an answer, a refusal, or a smaller request with an amended response
    names       topics, groups … of a request apart into allowed and refused

A guard is a function of `Asking` and the request. By family:

    produce_fetch   Produce, Fetch of followers, ListOffsets, OffsetForLeaderEpoch, DeleteRecords
    topics          CreateTopics, DeleteTopics, CreatePartitions, configs
    groups          classic groups, KIP-848, offsets, FindCoordinator
    shares          share groups (KIP-932) and their state
    transactions    transactional ids, producers, markers
    cluster         what needs one operation on the cluster

Metadata, DescribeCluster, DescribeTopicPartitions, a consumer's Fetch and requests for delegation tokens ask in their
handlers, by `HandlerContext.asking`: only they know which topics they would create, which are in a session, or whether
the listener admits requests for tokens.
"""
