"""The only room that touches the disk: Kafka's log directories, byte for byte.

directories         all `log.dirs` of a broker        disk          the interface to the system, and the real disk
directory           one: lock, owner, checkpoints     simdisk       a disk that crashes as its seed says
                                                      memory_disk   a disk that keeps nothing; its snapshots
log                 one partition's log: its bounds   reader        the read-only door for outsiders
                    and the door to its parts         recovery      checking a segment after a crash
  segments            what it consists of             segment       a stretch of a log, with its indexes
  log_folder          its names, and what is dropped  file_deleter  removing dropped files on a worker's thread
  flush               how far it is durable           ledger        what a log needs of producer state
  producer_snapshots  that state, on disk             log_loader    opening a log's folder
  truncation          what makes it shorter           moving        a log on its way to another directory
  compaction/         rewriting closed segments       segment_roll  when the active one is closed, and how
"""
