"""The only room that touches the disk: Kafka's log directories, byte for byte.

    directories   all `log.dirs` of a broker            disk      the interface to the system, and the real disk
    directory     one: lock, owner, checkpoints         simdisk   a disk that crashes as its seed says
    log, upkeep   one partition's log                   reader    the read-only door for outsiders
    segment       a stretch of it, with its indexes     recovery  checking a segment after a crash
    loading       opening a log folder                  ledger    what a log needs of producer state
"""
