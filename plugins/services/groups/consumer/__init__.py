"""Consumer groups by the protocol of KIP-848: the coordinator assigns, members follow.

From the bytes up:

    records     key types 3 to 8 and 16 of __consumer_offsets
    state       one group: its epochs, its members, who holds what
    reconcile   one member's way from what it holds to what it shall hold
    target      subscriptions, and what the assignor makes of them
    regex       subscriptions by regular expression
    replay      the fold of the records
    cleanup      timers and records of a member, and how they go
    progress    what a sign of life sets in motion
    leaving     members that leave, are fenced or run out of time
    heartbeat   ConsumerGroupHeartbeat
    wire        the subscriptions and assignments that classic consumers carry
    migrate     a live group moves from one protocol to the other
    classic     JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic members in such a group
    describe    ConsumerGroupDescribe
"""
