"""The record room: pure bytes, no socket, file or clock.

`batch` draws and reads the v2 header, `encode` and `decode` turn records into batches and back,
`validate` is what a broker does to what producers send, `control` knows transaction markers,
`legacy` reads magic 0 and 1. `loops` picks the compiled (`_loops`) or the plain Python (`pure_…`)
implementation of the inner loops; `crc` holds the checksums.
"""
