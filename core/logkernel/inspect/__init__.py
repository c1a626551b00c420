"""What lies in a data folder, without a broker: reading, checking, repairing.

    rows       each kind of file as rows of data: `logkernel dump --json`
    row_bytes  bytes in such a row: as text, or in base64
    columns    the same rows as lines, in the columns of Kafka's dump tool
    findings   what a check may find: file, place, what, remedy
    segments   checks one log: batches, records, indexes, epochs, snapshots
    folder     checks a whole data directory
    repair     what recovery would do to a directory, first said, then done by storage's own recovery

Nothing here writes, but `repair` once it is told to.
"""
