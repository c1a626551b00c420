"""The service `share-groups`: who belongs to a share group, what each member reads, and the group's offsets.

records      the bytes, of key types 10 to 15 in __consumer_offsets
group        one group: what its records fold to
assignor     which member reads which partitions
coordinator  all share groups of one partition of __consumer_offsets, and updates of one group
heartbeat    ShareGroupHeartbeat, and members that are gone
offsets      DescribeShareGroupOffsets, AlterShareGroupOffsets, DeleteShareGroupOffsets
listing      ShareGroupDescribe, and our part of ListGroups and DeleteGroups
machine      `contracts.ServiceMachine`
service      `contracts.Service`, `contracts.Extension`
"""
