# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""`pure_columns.ColumnScan`, compiled: same arguments, same answers, same errors. What it does is told there.

`feed` goes in two steps: headers and checksums of a stretch of batches, then, without the GIL, the records of all of
them. Nothing is read before it is bounded: a record's fields by the record's end, the record by the batch's.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT64_MAX, INT64_MIN, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from logkernel.errors import CorruptMessage as _CorruptMessage
from logkernel.errors import InvalidRecord as _InvalidRecord
from logkernel.record import layout as _layout
from logkernel.record import pure_columns as _plain
from logkernel.record.batch import parse_header as _parse_header
from logkernel.record.control import ABORT as _ABORT
from logkernel.record.control import control_type as _control_type
from logkernel.record.crc import crc32c as _crc32c
from logkernel.record.pure_decode import each_record as _each_record
from logkernel.record.pure_decode import record_bytes as _record_bytes

cdef object fault = _layout.fault
cdef object Rows = _plain.Rows
cdef object Blobs = _plain.Blobs
cdef object HeaderRows = _plain.HeaderRows
cdef object crc32c = _crc32c
cdef int ABORT = _ABORT

cdef enum:
    OK = 0
    BAD_VARINT = 1
    BAD_LENGTH = 2
    BAD_END = 3
    BAD_HEADERS = 4
    BAD_TIMESTAMP = 5
    BAD_DELTA = 6
    TRAILING = 7
    BAD_COUNT = 8
    NO_MEMORY = 100
    MIN_RECORD_BYTES = 7

cdef enum:
    KEY = 1
    VALUE = 2
    OFFSET = 4
    TIMESTAMP = 8
    TIMESTAMP_TYPE = 16
    HEADERS = 32
    BLOBS = 35

cdef enum:
    TAIL = 0
    FULL = 1
    ENDED = 2
    PLAIN = 3
    LEGACY = 4

cdef enum:
    LOG_OVERHEAD = 12
    HEADER_BYTES = 61
    LEGACY_MIN_LENGTH = 14
    # So much is checked, then decoded while it is still in the processor's cache: so many batches, or bytes.
    STRETCH = 128
    STRETCH_BYTES = 1 << 16
    # Memory for values is taken at once for what is left of the buffer, up to this.
    AHEAD_BYTES = 1 << 22

cdef int64_t MAX_BASE_OFFSET = (<int64_t> 1 << 62) - (<int64_t> 1 << 31) + (<int64_t> 1 << 62)
cdef int64_t MAX_INT = 0x7FFFFFFF
cdef int64_t MAX_MICROS_MS = INT64_MAX // 1000

if (
    (_layout.BAD_VARINT, _layout.BAD_DELTA, _layout.BAD_COUNT, _layout.MIN_RECORD_BYTES)
    != (BAD_VARINT, BAD_DELTA, BAD_COUNT, MIN_RECORD_BYTES)
    or (_plain.KEY, _plain.HEADERS, _plain.LEGACY) != (KEY, HEADERS, LEGACY)
):
    raise ImportError("the compiled column decoder was built from another version of the plain one")


include "_memory.pxi"


@cython.final
cdef class Column:
    """Nullable byte strings under construction. The bitmap is filled from `nulls`' first row on."""

    cdef Memory bits
    cdef Memory ends
    cdef Memory data
    cdef Py_ssize_t rows
    cdef Py_ssize_t nulls

    def __cinit__(self, Py_ssize_t rows, Py_ssize_t size):
        self.bits = memory((rows >> 3) + 1)
        self.ends = memory(4 * rows + 4)
        self.data = memory(size)
        (<int32_t *> self.ends.data)[0] = 0

    cdef int room(self, Py_ssize_t rows, Py_ssize_t size) noexcept nogil:
        cdef Py_ssize_t bits
        self.ends.size = 4 * self.rows + 4
        if self.ends.room(4 * rows) or self.data.room(size):
            return NO_MEMORY
        bits = (self.rows + rows + 7) >> 3
        if bits > self.bits.size:
            if self.bits.room(bits - self.bits.size):
                return NO_MEMORY
            memset(self.bits.data + self.bits.size, 0, bits - self.bits.size)
            self.bits.size = bits
        return OK

    cdef inline void put(self, const uint8_t *blob, int32_t size) noexcept nogil:
        # There is room.
        cdef Py_ssize_t row = self.rows, used = self.data.size
        cdef uint8_t *bits = self.bits.data
        if size >= 0:
            bits[row >> 3] = bits[row >> 3] | <uint8_t> (1 << (row & 7))
            memcpy(self.data.data + used, blob, size)
            used += size
            self.data.size = used
        else:
            self.nulls += 1
        self.rows = row + 1
        (<int32_t *> self.ends.data)[row + 1] = <int32_t> used

    cdef object blobs(self):
        self.ends.size = 4 * self.rows + 4
        self.bits.size = (self.rows + 7) >> 3
        return Blobs(self.nulls, self.bits if self.nulls else None, self.ends, self.data)


# ---------------------------------------------------------------- numbers

cdef inline int16_t big_short(const uint8_t *p) noexcept nogil:
    return <int16_t> (p[0] << 8 | p[1])


cdef inline int32_t big_int(const uint8_t *p) noexcept nogil:
    return <int32_t> (<uint32_t> p[0] << 24 | <uint32_t> p[1] << 16 | <uint32_t> p[2] << 8 | p[3])


cdef inline int64_t big_long(const uint8_t *p) noexcept nogil:
    return <int64_t> (<uint64_t> <uint32_t> big_int(p) << 32 | <uint32_t> big_int(p + 4))


include "_varints.pxi"


cdef inline int64_t micros(int64_t timestamp_ms) noexcept nogil:
    if timestamp_ms > MAX_MICROS_MS:
        return INT64_MAX
    return INT64_MIN if timestamp_ms < -MAX_MICROS_MS else timestamp_ms * 1000


# ---------------------------------------------------------------- the scan

cdef struct Job:
    # The records of one batch.
    const uint8_t *start
    const uint8_t *stop
    int64_t base_offset
    int64_t base_timestamp
    int64_t append_time
    Py_ssize_t at
    int32_t most
    int32_t count
    int32_t timestamp_type
    bint appended


@cython.final
cdef class ColumnScan:
    cdef readonly int wanted
    cdef public int64_t start
    cdef readonly int64_t end
    cdef readonly int why
    cdef readonly Py_ssize_t needed
    cdef readonly Py_ssize_t at
    cdef public int64_t next_offset
    cdef readonly Py_ssize_t rows
    cdef bint timed
    cdef bint bounded
    cdef int64_t first_ms
    cdef int64_t last_ms
    cdef int64_t max_rows
    cdef int64_t max_bytes
    cdef bint verify
    cdef list coming
    cdef list open
    cdef Column keys
    cdef Column values
    cdef Column lists
    cdef Column names
    cdef Column header_values
    cdef Memory offsets
    cdef Memory timestamps
    cdef Memory types
    cdef Py_ssize_t likely_rows
    cdef Py_ssize_t likely_keys
    cdef Py_ssize_t likely_values
    cdef Py_ssize_t bad_index
    cdef bint handed_out

    def __init__(
        self, int wanted, int64_t start, int64_t end, first_ms, last_ms, int64_t max_rows, int64_t max_bytes,
        bint verify_crc,
    ):
        self.wanted = wanted
        self.start = start
        self.end = end
        self.why = TAIL
        self.next_offset = start
        self.timed = first_ms is not None or last_ms is not None
        self.first_ms = INT64_MIN if first_ms is None else first_ms
        self.bounded = last_ms is not None
        self.last_ms = INT64_MAX if last_ms is None else last_ms
        self.max_rows = max_rows
        self.max_bytes = max_bytes
        self.verify = verify_crc
        self.coming = []
        self.open = []
        self.likely_rows = 1024
        self.likely_keys = self.likely_values = 1 << 14
        self.handed_out = True

    cdef int begin(self) except -1:
        # New columns, once there is something for them.
        cdef Py_ssize_t rows = self.likely_rows
        self.keys = Column(rows, self.likely_keys) if self.wanted & KEY else None
        self.values = Column(rows, self.likely_values) if self.wanted & VALUE else None
        if self.wanted & HEADERS:
            self.lists, self.names, self.header_values = Column(rows, 0), Column(rows, 0), Column(rows, 0)
        if self.wanted & OFFSET:
            self.offsets = memory(8 * rows)
        if self.wanted & TIMESTAMP:
            self.timestamps = memory(8 * rows)
        if self.wanted & TIMESTAMP_TYPE:
            self.types = memory(4 * rows)
        self.handed_out = False
        return 0

    cdef inline int64_t used(self) noexcept:
        cdef int64_t used = 0
        if self.handed_out:
            return 0
        if self.wanted & KEY:
            used += self.keys.data.size
        if self.wanted & VALUE:
            used += self.values.data.size
        if self.wanted & HEADERS:
            used += self.names.data.size + self.header_values.data.size
        return used

    @property
    def size(self):
        return self.used()

    def abort(self, int64_t producer_id, int64_t first, int64_t last=INT64_MAX):
        self.coming.append((first, producer_id, last))
        self.coming.sort(reverse=True)

    def forget_aborted(self):
        self.coming = []
        self.open = []

    # ------------------------------------------------------------ batches

    def feed(self, buf, Py_ssize_t start, Py_ssize_t stop):
        cdef Py_buffer view
        cdef Job jobs[STRETCH]
        cdef Py_ssize_t at = start
        cdef int count
        PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
        try:
            if start < 0 or stop < start or stop > view.len:
                raise ValueError(f"{start} to {stop} do not lie in {view.len} bytes")
            window = memoryview(buf)
            while True:
                count = 0
                self.why = -1
                try:
                    at = self.gather(window, <const uint8_t *> view.buf, at, stop, jobs, &count)
                finally:
                    if count:
                        self.decode_all(jobs, count, stop - jobs[0].at)
                if self.why >= 0:
                    self.at = at
                    return at
        finally:
            PyBuffer_Release(&view)

    cdef Py_ssize_t gather(
        self, object window, const uint8_t *data, Py_ssize_t at, Py_ssize_t stop, Job *jobs, int *count
    ) except -1:
        # Headers and checksums: what is to be decoded goes into `jobs`. `why` is set where the walk ends.
        cdef const uint8_t *p
        cdef int64_t length, base_offset, last_offset, largest, pending_rows = 0, pending = 0, gathered = 0
        cdef int32_t last_delta, records
        cdef int16_t attributes
        cdef int64_t used = self.used()
        cdef Job *job
        while True:
            self.at = at
            self.needed = 0
            if stop - at < LOG_OVERHEAD:
                self.why = TAIL
                return at
            p = data + at
            base_offset = big_long(p)
            length = big_int(p + 8)
            if length == 0 and base_offset == 0:
                self.why = TAIL
                return at
            if length < LEGACY_MIN_LENGTH:
                raise _CorruptMessage(f"length {length} is less than a header")
            if length > stop - at - LOG_OVERHEAD:
                self.needed = length + LOG_OVERHEAD
                self.why = TAIL
                return at
            length += LOG_OVERHEAD
            if p[16] != 2:
                facts = _parse_header(window, at)
                if facts.last_offset < self.start:
                    self.next_offset = facts.last_offset + 1
                    at += length
                    continue
                if count[0] == 0:
                    self.why = FULL if self.is_full(used, 0, 0) else LEGACY
                return at
            if length < HEADER_BYTES:
                raise _CorruptMessage(f"batch at {at}: length {length - LOG_OVERHEAD} is less than a header")
            attributes = big_short(p + 21)
            last_delta = big_int(p + 23)
            records = big_int(p + 57)
            if last_delta < 0 or records < 0 or base_offset < 0 or base_offset > MAX_BASE_OFFSET:
                raise _CorruptMessage(
                    f"batch at {at}: base offset {base_offset}, last offset delta {last_delta}, count {records}"
                )
            if base_offset >= self.end:
                self.why = ENDED
                return at
            if self.is_full(used, pending, pending_rows):
                if count[0] == 0:
                    self.why = FULL
                return at
            last_offset = base_offset + last_delta
            if self.is_for_us(window, p, at, length, attributes, base_offset, last_offset, records):
                if not self.wanted and not self.timed and base_offset >= self.start and last_offset < self.end:
                    if records > last_offset - base_offset + 1:
                        raise _InvalidRecord(f"{records} records from {base_offset} to {last_offset}")
                    self.check(window, p, at, length)
                    self.rows += records
                elif attributes & 7:
                    if count[0] == 0:
                        self.check(window, p, at, length)
                        self.why = PLAIN
                    return at
                else:
                    if self.rows + pending_rows and (
                        used + pending + length > MAX_INT or self.rows + pending_rows + records > MAX_INT
                    ):
                        if count[0] == 0:
                            self.why = FULL
                        return at
                    self.check(window, p, at, length)
                    if records * <int64_t> MIN_RECORD_BYTES > length - HEADER_BYTES:
                        raise fault(0, BAD_COUNT)
                    largest = big_long(p + 35)
                    job = &jobs[count[0]]
                    job.at = at
                    job.start = p + HEADER_BYTES
                    job.stop = p + length
                    job.base_offset = base_offset
                    job.most = last_delta
                    job.count = records
                    job.base_timestamp = big_long(p + 27)
                    job.appended = (attributes & 8) != 0
                    job.append_time = largest
                    job.timestamp_type = 1 if job.appended else 0
                    count[0] += 1
                    pending_rows += records
                    gathered += length
                    if self.wanted & BLOBS:
                        pending += length
            self.next_offset = last_offset + 1
            at += length
            if count[0] == STRETCH or gathered >= STRETCH_BYTES:
                return at

    cdef inline bint is_full(self, int64_t used, int64_t pending, int64_t pending_rows) noexcept:
        return self.rows + pending_rows > 0 and (
            self.rows + pending_rows >= self.max_rows or used + pending >= self.max_bytes
        )

    cdef int check(self, object window, const uint8_t *p, Py_ssize_t at, Py_ssize_t length) except -1:
        cdef uint32_t stored, computed
        if self.verify:
            stored = <uint32_t> big_int(p + 17)
            computed = crc32c(window[at + 21 : at + length], 0)
            if stored != computed:
                raise _CorruptMessage(f"stored CRC {stored:#010x}, computed {computed:#010x}")
        return 0

    cdef int is_for_us(
        self, object window, const uint8_t *p, Py_ssize_t at, Py_ssize_t length, int16_t attributes,
        int64_t base_offset, int64_t last_offset, int32_t records,
    ) except -1:
        cdef int64_t largest
        while self.coming and self.coming[len(self.coming) - 1][0] <= last_offset:
            _, producer_id, last = self.coming.pop()
            self.open.append((producer_id, last))
        if attributes & 0x20:
            self.mark(window, p, at, length, attributes, records)
            return 0
        if attributes & 0x10 and self.open:
            self.open = [row for row in self.open if row[1] >= base_offset]
            mine = big_long(p + 43)
            for row in self.open:
                if row[0] == mine:
                    return 0
        if last_offset < self.start or records == 0:
            return 0
        if not self.timed:
            return 1
        largest = big_long(p + 35)
        return largest >= self.first_ms and not (attributes & 8 and self.bounded and largest >= self.last_ms)

    cdef int mark(
        self, object window, const uint8_t *p, Py_ssize_t at, Py_ssize_t length, int16_t attributes, int32_t records
    ) except -1:
        # An abort marker ends what its producer has open; nobody compresses a marker.
        if records == 0 or attributes & 7 or not self.open:
            return 0
        mine = big_long(p + 43)
        if not any([row[0] == mine for row in self.open]):
            return 0
        self.check(window, p, at, length)
        section = _record_bytes(window, at + HEADER_BYTES, at + length, records)
        for row in _each_record(section, records, big_long(p + 27)):
            if _control_type(row[2]) == ABORT:
                self.open = [row for row in self.open if row[0] != mine]
        return 0

    # ------------------------------------------------------------ records

    def section(
        self, plain, Py_ssize_t start, Py_ssize_t end, int32_t count, int64_t base_offset, int64_t last_offset,
        int64_t base_timestamp_ms, append_time_ms, int timestamp_type,
    ):
        cdef Py_buffer view
        cdef Job job
        PyObject_GetBuffer(plain, &view, PyBUF_SIMPLE)
        try:
            if start < 0 or end < start or end > view.len:
                raise _InvalidRecord(f"records from {start} to {end} do not lie in {view.len} bytes")
            if self.rows and (self.used() + (end - start) > MAX_INT or self.rows + (end - start) > MAX_INT):
                return False
            if count < 0 or count * <int64_t> MIN_RECORD_BYTES > end - start:
                raise fault(0, BAD_COUNT)
            job.at = self.at
            job.start = <const uint8_t *> view.buf + start
            job.stop = <const uint8_t *> view.buf + end
            job.base_offset = base_offset
            job.most = <int32_t> min(max(last_offset - base_offset, 0), MAX_INT)
            job.count = count
            job.base_timestamp = base_timestamp_ms
            job.appended = append_time_ms is not None
            job.append_time = append_time_ms if append_time_ms is not None else 0
            job.timestamp_type = timestamp_type
            self.decode_all(&job, 1, 0)
        finally:
            PyBuffer_Release(&view)
        return True

    cdef int decode_all(self, Job *jobs, int count, Py_ssize_t rest) except -1:
        cdef int index, code = OK
        cdef Py_ssize_t size = 0, rows = 0
        if self.handed_out:
            self.begin()
        for index in range(count):
            size += jobs[index].stop - jobs[index].start
            rows += jobs[index].count
        if self.wanted & VALUE:
            self.values.data.reserve(max(size, min(rest, <Py_ssize_t> AHEAD_BYTES)))
        if self.wanted & OFFSET:
            self.offsets.size = 8 * self.rows
            self.offsets.reserve(8 * rows)
        if self.wanted & TIMESTAMP:
            self.timestamps.size = 8 * self.rows
            self.timestamps.reserve(8 * rows)
        with nogil:
            for index in range(count):
                code = self.decode(&jobs[index])
                if code:
                    break
        if code == NO_MEMORY:
            raise MemoryError
        if code:
            self.at = jobs[index].at
            raise fault(self.bad_index, code)
        return 0

    cdef int reserve(self, Job *job) noexcept nogil:
        cdef Py_ssize_t size = job.stop - job.start, count = job.count, rows = self.rows
        if self.wanted & KEY and self.keys.room(count, size):
            return NO_MEMORY
        if self.wanted & VALUE and self.values.room(count, size):
            return NO_MEMORY
        if self.wanted & HEADERS and (
            self.lists.room(count, 0) or self.names.room(0, size) or self.header_values.room(0, size)
        ):
            return NO_MEMORY
        if self.wanted & OFFSET:
            self.offsets.size = 8 * rows
            if self.offsets.room(8 * count):
                return NO_MEMORY
        if self.wanted & TIMESTAMP:
            self.timestamps.size = 8 * rows
            if self.timestamps.room(8 * count):
                return NO_MEMORY
        if self.wanted & TIMESTAMP_TYPE:
            self.types.size = 4 * rows
            if self.types.room(4 * count):
                return NO_MEMORY
        return OK

    cdef int decode(self, Job *job) noexcept nogil:
        cdef const uint8_t *p = job.start
        cdef const uint8_t *stop = job.stop
        cdef const uint8_t *end
        cdef const uint8_t *blob = NULL
        cdef int wanted = self.wanted, code = OK
        cdef int32_t size = 0, place = 0, index, most = job.most
        cdef int64_t delta = 0, offset, timestamp
        cdef int64_t base_offset = job.base_offset, base = job.base_timestamp
        cdef int64_t start = self.start, last = self.end
        cdef Py_ssize_t rows = self.rows
        cdef bint timed = self.timed, bounded = self.bounded, appended = job.appended
        cdef bint filtered = timed or base_offset < start or base_offset + most >= last
        cdef int64_t *offsets = NULL
        cdef int64_t *timestamps = NULL
        cdef int32_t *types = NULL
        if self.reserve(job):
            return NO_MEMORY
        if wanted & OFFSET:
            offsets = <int64_t *> self.offsets.data
        if wanted & TIMESTAMP:
            timestamps = <int64_t *> self.timestamps.data
        if wanted & TIMESTAMP_TYPE:
            types = <int32_t *> self.types.data
        index = 0
        while index < job.count:
            code = read_varint(&p, stop, &size)
            if code:
                break
            if size < MIN_RECORD_BYTES - 1 or size > stop - p:
                code = BAD_LENGTH
                break
            end = p + size
            p += 1
            code = read_varlong(&p, end, &delta)
            if code:
                break
            code = read_varint(&p, end, &place)
            if code:
                break
            timestamp = <int64_t> (<uint64_t> base + <uint64_t> delta)
            if ((base ^ timestamp) & (delta ^ timestamp)) < 0:
                code = BAD_TIMESTAMP
                break
            if place < 0 or place > most:
                code = BAD_DELTA
                break
            if appended:
                timestamp = job.append_time
            offset = base_offset + place
            if filtered and (
                offset < start or offset >= last
                or timed and (timestamp < self.first_ms or bounded and timestamp >= self.last_ms)
            ):
                p = end
                index += 1
                continue
            if wanted & BLOBS:
                code = read_blob(&p, end, &blob, &size)
                if code:
                    break
                if wanted & KEY:
                    self.keys.put(blob, size)
                if wanted & (VALUE | HEADERS):
                    code = read_blob(&p, end, &blob, &size)
                    if code:
                        break
                    if wanted & VALUE:
                        self.values.put(blob, size)
                    if wanted & HEADERS:
                        code = self.read_headers(p, end)
                        if code:
                            break
            if wanted & OFFSET:
                offsets[rows] = offset
            if wanted & TIMESTAMP:
                timestamps[rows] = micros(timestamp)
            if wanted & TIMESTAMP_TYPE:
                types[rows] = job.timestamp_type
            rows += 1
            p = end
            index += 1
        if code == OK and p != stop:
            code = TRAILING
        self.bad_index = index if index < job.count or index == 0 else index - 1
        self.rows = rows
        return code

    cdef int read_headers(self, const uint8_t *p, const uint8_t *end) noexcept nogil:
        cdef int32_t count = 0, size = 0, index
        cdef const uint8_t *blob = NULL
        cdef int code = read_varint(&p, end, &count)
        if code:
            return code
        if count == 0:
            self.lists.put(NULL, -1)
            (<int32_t *> self.lists.ends.data)[self.lists.rows] = <int32_t> self.names.rows
            return OK if p == end else BAD_END
        if count < 0 or count > (end - p) >> 1:
            return BAD_HEADERS
        if self.names.room(count, 0) or self.header_values.room(count, 0):
            return NO_MEMORY
        for index in range(count):
            code = read_blob(&p, end, &blob, &size)
            if code or size < 0:
                return BAD_HEADERS
            self.names.put(blob, size)
            code = read_blob(&p, end, &blob, &size)
            if code:
                return code
            self.header_values.put(blob, size)
        if p != end:
            return BAD_END
        self.lists.put(end, 0)
        (<int32_t *> self.lists.ends.data)[self.lists.rows] = <int32_t> self.names.rows
        return OK

    def take(self):
        cdef Py_ssize_t rows = self.rows
        if not rows:
            return None
        keys = values = offsets = timestamps = types = headers = None
        if self.wanted & KEY:
            keys = self.keys.blobs()
            self.likely_keys = self.keys.data.size + (self.keys.data.size >> 3)
        if self.wanted & VALUE:
            values = self.values.blobs()
            self.likely_values = self.values.data.size + (self.values.data.size >> 3)
        if self.wanted & HEADERS:
            lists = self.lists.blobs()
            headers = HeaderRows(
                lists.nulls, lists.validity, lists.ends, self.names.rows,
                self.names.blobs(), self.header_values.blobs(),
            )
        if self.wanted & OFFSET:
            self.offsets.size = 8 * rows
            offsets = self.offsets
        if self.wanted & TIMESTAMP:
            self.timestamps.size = 8 * rows
            timestamps = self.timestamps
        if self.wanted & TIMESTAMP_TYPE:
            self.types.size = 4 * rows
            types = self.types
        self.likely_rows = rows + (rows >> 3)
        self.rows = 0
        self.handed_out = True
        self.keys = self.values = self.lists = self.names = self.header_values = None
        self.offsets = self.timestamps = self.types = None
        return Rows(rows, keys, values, offsets, timestamps, types, headers)
