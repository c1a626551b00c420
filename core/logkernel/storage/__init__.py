"""The only room that touches the disk: Kafka's log directories, byte for byte.

directories       all `log.dirs` of a broker          disk          the interface to the system, and the real disk
directory         one: lock, owner, checkpoints       simdisk       a disk that crashes as its seed says
log               one partition's log                 reader        the read-only door for outsiders
log_lifecycle     its opening, flushing, closing      recovery      checking a segment after a crash
log_loader        what its folder holds               ledger        what a log needs of producer state
segment           a stretch of it, with its indexes   file_deleter  removing dropped files on a worker's thread
truncation        what makes it shorter               compaction/   rewriting its closed segments
"""
