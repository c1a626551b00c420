# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The functions of `pure` and `pure_compaction`, compiled: same arguments, same answers, same errors. The layout is
drawn there.

Nothing is read before it is bounded: a record's fields by the record's end, the record by the batch's.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_Check, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.type cimport PyType_GenericAlloc
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from logkernel.record import pure as _pure
from logkernel.vocabulary import Record as _Record

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(void *)

cdef object Record = _Record
cdef object Columns = _pure.Columns
cdef object fault = _pure.fault
cdef object encode_headers = _pure.encode_headers
cdef tuple NOTHING = ()

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
    TOO_LARGE = 9
    MIN_RECORD_BYTES = 7

if (_pure.BAD_VARINT, _pure.TOO_LARGE, _pure.MIN_RECORD_BYTES) != (BAD_VARINT, TOO_LARGE, MIN_RECORD_BYTES):
    raise ImportError("the compiled codec was built from another version of the plain one")


# ---------------------------------------------------------------- read

cdef struct Raw:
    # One record within its batch; a size of -1 is null.
    int64_t timestamp_delta
    int32_t offset_delta
    int32_t key_size
    int32_t value_size
    int32_t header_count
    const uint8_t *key
    const uint8_t *value
    const uint8_t *headers      # at their count
    const uint8_t *pairs        # behind their count
    const uint8_t *attributes
    const uint8_t *place        # the offset delta
    const uint8_t *end


cdef inline int read_varint(const uint8_t **cursor, const uint8_t *end, int32_t *value) noexcept nogil:
    cdef const uint8_t *p = cursor[0]
    cdef uint32_t raw, byte
    cdef int shift
    if p >= end:
        return BAD_VARINT
    raw = p[0]
    p += 1
    if raw & 0x80:
        raw &= 0x7F
        shift = 7
        while True:
            if p >= end:
                return BAD_VARINT
            byte = p[0]
            p += 1
            if shift == 28 and byte > 0x0F:
                return BAD_VARINT
            raw |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
    cursor[0] = p
    value[0] = <int32_t> ((raw >> 1) ^ (~(raw & 1) + 1))
    return OK


cdef inline int read_varlong(const uint8_t **cursor, const uint8_t *end, int64_t *value) noexcept nogil:
    cdef const uint8_t *p = cursor[0]
    cdef uint64_t raw = 0, byte
    cdef int shift = 0
    while True:
        if p >= end:
            return BAD_VARINT
        byte = p[0]
        p += 1
        if shift == 63 and byte > 1:
            return BAD_VARINT
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    cursor[0] = p
    value[0] = <int64_t> ((raw >> 1) ^ (~(raw & 1) + 1))
    return OK


cdef inline int read_blob(
    const uint8_t **cursor, const uint8_t *end, const uint8_t **blob, int32_t *size
) noexcept nogil:
    cdef int code = read_varint(cursor, end, size)
    if code:
        return code
    blob[0] = cursor[0]
    if size[0] < 0:
        size[0] = -1
    elif size[0] > end - cursor[0]:
        return BAD_END
    else:
        cursor[0] += size[0]
    return OK


cdef inline int check_headers(const uint8_t *p, const uint8_t *end, int32_t count) noexcept nogil:
    cdef const uint8_t *blob
    cdef int32_t size, i
    cdef int code
    if count < 0 or count > (end - p) >> 1:
        return BAD_HEADERS
    for i in range(count):
        code = read_blob(&p, end, &blob, &size)
        if code or size < 0:
            return BAD_HEADERS
        code = read_blob(&p, end, &blob, &size)
        if code:
            return code
    return OK if p == end else BAD_END


cdef inline int read_record(const uint8_t **cursor, const uint8_t *end, Raw *raw) noexcept nogil:
    # Reads one record with the structure of its headers, and moves the cursor behind it.
    cdef int32_t size
    cdef const uint8_t *p
    cdef int code = read_varint(cursor, end, &size)
    if code:
        return code
    p = cursor[0]
    if size < MIN_RECORD_BYTES - 1 or size > end - p:
        return BAD_LENGTH
    raw.end = end = p + size
    raw.attributes = p
    p += 1
    code = read_varlong(&p, end, &raw.timestamp_delta)
    if code:
        return code
    raw.place = p
    code = read_varint(&p, end, &raw.offset_delta)
    if code:
        return code
    code = read_blob(&p, end, &raw.key, &raw.key_size)
    if code:
        return code
    code = read_blob(&p, end, &raw.value, &raw.value_size)
    if code:
        return code
    if p >= end:
        return BAD_END
    raw.headers = p
    code = read_varint(&p, end, &raw.header_count)
    if code:
        return code
    raw.pairs = p
    cursor[0] = end
    if raw.header_count == 0:
        return OK if p == end else BAD_END
    return check_headers(p, end, raw.header_count)


cdef inline int absolute(int64_t base, int64_t delta, int64_t *value) noexcept nogil:
    value[0] = <int64_t> (<uint64_t> base + <uint64_t> delta)
    return BAD_TIMESTAMP if ((base ^ value[0]) & (delta ^ value[0])) < 0 else OK


cdef int bound(Py_buffer *view, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count) except -1:
    if start < 0 or end < start or end > view.len:
        raise _pure.InvalidRecord(f"records from {start} to {end} do not lie in {view.len} bytes")
    if count < 0 or count > (end - start) // MIN_RECORD_BYTES:
        raise fault(0, BAD_COUNT)
    return 0


def walk(buf, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count, int64_t base_timestamp_ms):
    cdef Py_buffer view
    cdef int64_t least = INT64_MAX, largest = -1, timestamp = -1
    cdef Py_ssize_t index = 0, null_key = -1
    cdef const uint8_t *p
    cdef const uint8_t *stop
    cdef Raw raw
    cdef int code = OK
    PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
    try:
        bound(&view, start, end, count)
        p = <const uint8_t *> view.buf + start
        stop = <const uint8_t *> view.buf + end
        for index in range(count):
            code = read_record(&p, stop, &raw)
            if code:
                break
            code = absolute(base_timestamp_ms, raw.timestamp_delta, &timestamp)
            if code:
                break
            if raw.offset_delta != index:
                code = BAD_DELTA
                break
            if timestamp != -1 and timestamp < least:
                least = timestamp
            if timestamp > largest:
                largest = timestamp
            if raw.key_size < 0 and null_key < 0:
                null_key = index
        if code == OK and p != stop:
            code = TRAILING
    finally:
        PyBuffer_Release(&view)
    if code:
        raise fault(index, code)
    return (-1 if least == INT64_MAX else least), largest, null_key


# ---------------------------------------------------------------- decode

cdef inline object make_blob(const uint8_t *data, int32_t size):
    if size < 0:
        return None
    return PyBytes_FromStringAndSize(<const char *> data, size)


cdef tuple make_headers(Raw *raw):
    # The structure was checked by read_record.
    cdef const uint8_t *p = raw.pairs
    cdef const uint8_t *blob = NULL
    cdef int32_t size = 0, i
    cdef tuple headers = PyTuple_New(raw.header_count)
    cdef object pair
    for i in range(raw.header_count):
        read_blob(&p, raw.end, &blob, &size)
        name = PyUnicode_DecodeUTF8(<char *> blob, size, "surrogateescape")
        read_blob(&p, raw.end, &blob, &size)
        pair = (name, make_blob(blob, size))
        Py_INCREF(pair)
        PyTuple_SET_ITEM(headers, i, pair)
    return headers


def decode_records(
    buf,
    Py_ssize_t start,
    Py_ssize_t end,
    Py_ssize_t count,
    int64_t base_offset,
    int64_t base_timestamp_ms,
    append_time_ms=None,
):
    cdef Py_buffer view
    cdef const uint8_t *p
    cdef const uint8_t *stop
    cdef Raw raw
    cdef Py_ssize_t index
    cdef int code
    cdef int64_t timestamp = -1
    cdef list records
    cdef object record
    cdef bint appended = append_time_ms is not None
    cdef int64_t append_time = append_time_ms if appended else -1
    PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
    try:
        bound(&view, start, end, count)
        p = <const uint8_t *> view.buf + start
        stop = <const uint8_t *> view.buf + end
        records = []
        for index in range(count):
            code = read_record(&p, stop, &raw)
            if not code:
                code = absolute(base_timestamp_ms, raw.timestamp_delta, &timestamp)
            if code:
                raise fault(index, code)
            record = (<PyTypeObject *> Record).tp_new(Record, <PyObject *> NOTHING, NULL)
            record.key = make_blob(raw.key, raw.key_size)
            record.value = make_blob(raw.value, raw.value_size)
            record.headers = make_headers(&raw) if raw.header_count else NOTHING
            record.timestamp_ms = append_time if appended else timestamp
            record.offset = base_offset + raw.offset_delta
            records.append(record)
        if p != stop:
            raise fault(max(count - 1, 0), TRAILING)
    finally:
        PyBuffer_Release(&view)
    return records


cdef inline void put_item(object row, Py_ssize_t index, object item):
    Py_INCREF(item)
    PyTuple_SET_ITEM(row, index, item)


def decode_rows(
    buf,
    Py_ssize_t start,
    Py_ssize_t end,
    Py_ssize_t count,
    int64_t base_offset,
    int64_t base_timestamp_ms,
    append_time_ms,
    type kind,
    topic,
    partition,
    leader_epoch,
    int64_t from_offset,
):
    # See `pure.decode_rows`. A row is filled as tuple's own constructor would; it holds nothing that could refer back
    # to it, so that the garbage collector need not look at it.
    cdef Py_buffer view
    cdef const uint8_t *p
    cdef const uint8_t *stop
    cdef Raw raw
    cdef Py_ssize_t index
    cdef int code
    cdef int64_t timestamp = -1, told = -1
    cdef list rows
    cdef object row, time = -1
    cdef bint appended = append_time_ms is not None
    if not issubclass(kind, tuple) or kind.__itemsize__ == 0:
        raise TypeError(f"{kind!r} is no tuple")
    if appended:
        time = append_time_ms
    PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
    try:
        bound(&view, start, end, count)
        p = <const uint8_t *> view.buf + start
        stop = <const uint8_t *> view.buf + end
        rows = []
        for index in range(count):
            code = read_record(&p, stop, &raw)
            if not code:
                code = absolute(base_timestamp_ms, raw.timestamp_delta, &timestamp)
            if code:
                raise fault(index, code)
            if base_offset + raw.offset_delta < from_offset:
                continue
            if not appended and timestamp != told:
                time = told = timestamp
            row = PyType_GenericAlloc(kind, 8)
            put_item(row, 0, topic)
            put_item(row, 1, partition)
            put_item(row, 2, base_offset + raw.offset_delta)
            put_item(row, 3, time)
            put_item(row, 4, make_blob(raw.key, raw.key_size))
            put_item(row, 5, make_blob(raw.value, raw.value_size))
            put_item(row, 6, make_headers(&raw) if raw.header_count else NOTHING)
            put_item(row, 7, leader_epoch)
            PyObject_GC_UnTrack(<void *> row)
            rows.append(row)
        if p != stop:
            raise fault(max(count - 1, 0), TRAILING)
    finally:
        PyBuffer_Release(&view)
    return rows


# ---------------------------------------------------------------- columns

cdef struct Sizes:
    Py_ssize_t keys
    Py_ssize_t values
    Py_ssize_t headers
    Py_ssize_t index


cdef int measure(const uint8_t *p, const uint8_t *stop, Py_ssize_t count, int64_t base, Sizes *sizes) noexcept nogil:
    # First pass: everything is checked, and the columns' sizes are known.
    cdef Raw raw
    cdef Py_ssize_t index
    cdef int64_t timestamp
    cdef int code
    for index in range(count):
        sizes.index = index
        code = read_record(&p, stop, &raw)
        if not code:
            code = absolute(base, raw.timestamp_delta, &timestamp)
        if code:
            return code
        if raw.key_size > 0:
            sizes.keys += raw.key_size
        if raw.value_size > 0:
            sizes.values += raw.value_size
        sizes.headers += raw.end - raw.headers
    return OK if p == stop else TRAILING


cdef struct Blobs:
    uint8_t *validity
    int32_t *ends
    uint8_t *data
    int32_t used


cdef inline void put_blob_column(Blobs *blobs, Py_ssize_t index, const uint8_t *data, int32_t size) noexcept nogil:
    if size >= 0:
        blobs.validity[index >> 3] |= 1 << (index & 7)
        memcpy(blobs.data + blobs.used, data, size)
        blobs.used += size
    blobs.ends[index + 1] = blobs.used


cdef bytes new_bytes(Py_ssize_t size):
    return PyBytes_FromStringAndSize(NULL, size)


cdef void fill(
    const uint8_t *p, const uint8_t *stop, Py_ssize_t count, int64_t base_offset, int64_t base_timestamp,
    bint appended, int64_t append_time, int64_t *offsets, int64_t *timestamps,
    Blobs *keys, Blobs *values, int32_t *header_ends, uint8_t *headers,
) noexcept nogil:
    # Second pass over what `measure` has checked.
    cdef Raw raw
    cdef Py_ssize_t index, size
    cdef int32_t used = 0
    for index in range(count):
        read_record(&p, stop, &raw)
        offsets[index] = base_offset + raw.offset_delta
        timestamps[index] = append_time if appended else base_timestamp + raw.timestamp_delta
        put_blob_column(keys, index, raw.key, raw.key_size)
        put_blob_column(values, index, raw.value, raw.value_size)
        size = raw.end - raw.headers
        memcpy(headers + used, raw.headers, size)
        used += <int32_t> size
        header_ends[index + 1] = used


def columns(
    buf,
    Py_ssize_t start,
    Py_ssize_t end,
    Py_ssize_t count,
    int64_t base_offset,
    int64_t base_timestamp_ms,
    append_time_ms=None,
):
    cdef Py_buffer view
    cdef Sizes sizes
    cdef Blobs keys, values
    cdef int code
    cdef const uint8_t *first
    cdef const uint8_t *stop
    cdef bytes offsets, timestamps, key_validity, key_ends, key_data, value_validity, value_ends, value_data
    cdef bytes header_ends, header_data
    cdef int64_t *offset_column
    cdef int64_t *timestamp_column
    cdef int32_t *header_column
    cdef uint8_t *header_bytes
    cdef bint appended = append_time_ms is not None
    cdef int64_t append_time = append_time_ms if appended else -1
    memset(&sizes, 0, sizeof(sizes))
    PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
    try:
        bound(&view, start, end, count)
        if end - start > 0x7FFFFFFF:
            raise fault(0, TOO_LARGE)
        first = <const uint8_t *> view.buf + start
        stop = <const uint8_t *> view.buf + end
        with nogil:
            code = measure(first, stop, count, base_timestamp_ms, &sizes)
        if code:
            raise fault(sizes.index, code)
        offsets, timestamps = new_bytes(8 * count), new_bytes(8 * count)
        key_validity, key_ends, key_data = new_bytes((count + 7) >> 3), new_bytes(4 * count + 4), new_bytes(sizes.keys)
        value_validity, value_ends = new_bytes((count + 7) >> 3), new_bytes(4 * count + 4)
        value_data, header_ends, header_data = (
            new_bytes(sizes.values), new_bytes(4 * count + 4), new_bytes(sizes.headers)
        )
        prepare(&keys, key_validity, key_ends, key_data)
        prepare(&values, value_validity, value_ends, value_data)
        offset_column = <int64_t *> PyBytes_AS_STRING(offsets)
        timestamp_column = <int64_t *> PyBytes_AS_STRING(timestamps)
        header_column = <int32_t *> PyBytes_AS_STRING(header_ends)
        header_column[0] = 0
        header_bytes = <uint8_t *> PyBytes_AS_STRING(header_data)
        with nogil:
            fill(
                first, stop, count, base_offset, base_timestamp_ms, appended, append_time,
                offset_column, timestamp_column, &keys, &values, header_column, header_bytes,
            )
    finally:
        PyBuffer_Release(&view)
    return Columns(
        count, offsets, timestamps, key_validity, key_ends, key_data,
        value_validity, value_ends, value_data, header_ends, header_data,
    )


cdef void prepare(Blobs *blobs, bytes validity, bytes ends, bytes data):
    blobs.validity = <uint8_t *> PyBytes_AS_STRING(validity)
    memset(blobs.validity, 0, PyBytes_GET_SIZE(validity))
    blobs.ends = <int32_t *> PyBytes_AS_STRING(ends)
    blobs.ends[0] = 0
    blobs.data = <uint8_t *> PyBytes_AS_STRING(data)
    blobs.used = 0


# ---------------------------------------------------------------- encode

cdef class Out:
    # Bytes that grow; freed with the object, whatever is raised meanwhile.
    cdef uint8_t *data
    cdef Py_ssize_t used
    cdef Py_ssize_t room
    cdef Py_ssize_t most    # where this is known, no more is taken in advance; 0 is not known

    def __dealloc__(self):
        PyMem_Free(self.data)

    cdef int reserve(self, Py_ssize_t more) except -1:
        cdef Py_ssize_t room = self.used + more
        cdef uint8_t *data
        if room <= self.room:
            return 0
        if self.most:
            room = max(room, min(max(2 * self.room, 4096), self.most))
        else:
            room = max(room, 2 * self.room, 4096)
        data = <uint8_t *> PyMem_Realloc(self.data, room)
        if data == NULL:
            raise MemoryError
        self.data = data
        self.room = room
        return 0


cdef inline uint64_t zigzag(int64_t value) noexcept nogil:
    return (<uint64_t> value << 1) ^ <uint64_t> (value >> 63)


cdef inline int varint_size(uint64_t raw) noexcept nogil:
    cdef int size = 1
    while raw > 0x7F:
        raw >>= 7
        size += 1
    return size


cdef inline uint8_t *put_varint(uint8_t *p, uint64_t raw) noexcept nogil:
    while raw > 0x7F:
        p[0] = <uint8_t> (raw & 0x7F | 0x80)
        p += 1
        raw >>= 7
    p[0] = <uint8_t> raw
    return p + 1


cdef inline uint8_t *put_blob(uint8_t *p, bytes blob) noexcept:
    cdef Py_ssize_t size
    if blob is None:
        p[0] = 1
        return p + 1
    size = PyBytes_GET_SIZE(blob)
    p = put_varint(p, zigzag(size))
    memcpy(p, PyBytes_AS_STRING(blob), size)
    return p + size


cdef inline bytes as_bytes(object blob):
    if blob is None or PyBytes_Check(blob):
        return blob
    return bytes(memoryview(blob))


cdef inline Py_ssize_t blob_size(bytes blob) noexcept:
    if blob is None:
        return 1
    return varint_size(zigzag(PyBytes_GET_SIZE(blob))) + PyBytes_GET_SIZE(blob)


def encode_records(records, int64_t base_offset, int64_t base_timestamp_ms, bint preserve_offsets):
    cdef Out out = Out()
    cdef Py_ssize_t index = 0, body
    cdef int64_t largest = -1, delta = -1, following, timestamp, offset, elapsed
    cdef bytes key, value, headers
    cdef uint8_t *p
    for record in records:
        following = index
        if preserve_offsets:
            offset = record.offset
            following = <int64_t> (<uint64_t> offset - <uint64_t> base_offset)
        if following <= delta or following > 0x7FFFFFFF:
            raise fault(index, BAD_DELTA)
        delta = following
        timestamp = record.timestamp_ms
        if timestamp > largest:
            largest = timestamp
        elapsed = <int64_t> (<uint64_t> timestamp - <uint64_t> base_timestamp_ms)
        if ((timestamp ^ base_timestamp_ms) & (timestamp ^ elapsed)) < 0:
            raise fault(index, BAD_TIMESTAMP)
        key, value, headers = as_bytes(record.key), as_bytes(record.value), b"\0"
        if record.headers:
            headers = encode_headers(record.headers)
        body = 1 + varint_size(zigzag(elapsed)) + varint_size(zigzag(delta))
        body += blob_size(key) + blob_size(value) + PyBytes_GET_SIZE(headers)
        if out.used + body > 0x7FFFFFFF - 128:
            raise fault(index, TOO_LARGE)
        out.reserve(body + 5)
        p = put_varint(out.data + out.used, zigzag(body))
        p[0] = 0
        p = put_varint(p + 1, zigzag(elapsed))
        p = put_varint(p, zigzag(delta))
        p = put_blob(p, key)
        p = put_blob(p, value)
        memcpy(p, PyBytes_AS_STRING(headers), PyBytes_GET_SIZE(headers))
        out.used = p + PyBytes_GET_SIZE(headers) - out.data
        index += 1
    return PyBytes_FromStringAndSize(<const char *> out.data, out.used), largest, delta


cdef class Place:
    # See `pure.Place`.
    cdef public object batch
    cdef public Py_ssize_t index
    cdef public int64_t timestamp_ms

    def __init__(self, batch, Py_ssize_t index, int64_t timestamp_ms):
        self.batch = batch
        self.index = index
        self.timestamp_ms = timestamp_ms


cdef class BatchBuilder:
    # See `pure.BatchBuilder`.
    cdef Out out
    cdef Py_ssize_t head, limit
    cdef bint finished
    cdef readonly Py_ssize_t count
    cdef readonly int64_t base_timestamp_ms, max_timestamp_ms

    def __init__(self, Py_ssize_t limit, Py_ssize_t head):
        self.out = Out()
        self.out.most = limit
        self.head = head
        self.limit = limit
        self.finished = False
        self.count = 0
        self.base_timestamp_ms = self.max_timestamp_ms = -1
        self.out.reserve(head)
        memset(self.out.data, 0, head)
        self.out.used = head

    @property
    def size(self):
        return self.out.used

    cdef Py_ssize_t add(self, int64_t timestamp, object key, object value, object headers) except -2:
        # What may run other code comes first; from there on nothing does until the record is counted.
        cdef int64_t elapsed = 0
        cdef Py_ssize_t body, whole, index
        cdef bytes key_bytes = as_bytes(key), value_bytes = as_bytes(value), header_bytes = b"\0"
        cdef uint8_t *p
        cdef Out out
        if headers:
            header_bytes = encode_headers(headers)
        if self.finished:
            return -1
        out = self.out
        index = self.count
        if index:
            elapsed = <int64_t> (<uint64_t> timestamp - <uint64_t> self.base_timestamp_ms)
            if ((timestamp ^ self.base_timestamp_ms) & (timestamp ^ elapsed)) < 0:
                raise fault(index, BAD_TIMESTAMP)
        body = 1 + varint_size(zigzag(elapsed)) + varint_size(zigzag(index))
        body += blob_size(key_bytes) + blob_size(value_bytes) + PyBytes_GET_SIZE(header_bytes)
        whole = body + varint_size(zigzag(body))
        if index and out.used + whole > self.limit:
            return -1
        if body > 0x7FFFFFFF - 128 - out.used:
            raise fault(index, TOO_LARGE)
        out.reserve(whole)
        p = put_varint(out.data + out.used, zigzag(body))
        p[0] = 0
        p = put_varint(p + 1, zigzag(elapsed))
        p = put_varint(p, zigzag(index))
        p = put_blob(p, key_bytes)
        p = put_blob(p, value_bytes)
        memcpy(p, PyBytes_AS_STRING(header_bytes), PyBytes_GET_SIZE(header_bytes))
        out.used += whole
        if index == 0:
            self.base_timestamp_ms = timestamp
        if timestamp > self.max_timestamp_ms:
            self.max_timestamp_ms = timestamp
        self.count = index + 1
        return index

    def append(self, int64_t timestamp, key, value, headers):
        return self.add(timestamp, key, value, headers)

    def put(self, type kind, owner, int64_t timestamp, key, value, headers):
        cdef Place place
        cdef Py_ssize_t index
        if not issubclass(kind, Place):
            raise TypeError(f"{kind!r} is no place")
        index = self.add(timestamp, key, value, headers)
        if index < 0:
            return None
        place = (<PyTypeObject *> kind).tp_new(kind, <PyObject *> NOTHING, NULL)
        place.batch = owner
        place.index = index
        place.timestamp_ms = timestamp
        return place

    def finish(self):
        cdef Out out = self.out
        self.finished = True
        self.out = Out()
        return PyByteArray_FromStringAndSize(<const char *> out.data, out.used)


# ---------------------------------------------------------------- hash

cdef inline uint32_t little_word(const uint8_t *p) noexcept nogil:
    return p[0] | <uint32_t> p[1] << 8 | <uint32_t> p[2] << 16 | <uint32_t> p[3] << 24


cdef uint32_t mix(const uint8_t *p, Py_ssize_t size) noexcept nogil:
    cdef uint32_t mixed = <uint32_t> 0x9747B28C ^ <uint32_t> size, word
    cdef Py_ssize_t left = size & 3
    cdef const uint8_t *whole = p + size - left
    while p < whole:
        word = little_word(p) * <uint32_t> 0x5BD1E995
        word = (word ^ word >> 24) * <uint32_t> 0x5BD1E995
        mixed = mixed * <uint32_t> 0x5BD1E995 ^ word
        p += 4
    if left:
        word = p[0]
        if left > 1:
            word |= <uint32_t> p[1] << 8
        if left > 2:
            word |= <uint32_t> p[2] << 16
        mixed = (mixed ^ word) * <uint32_t> 0x5BD1E995
    mixed = (mixed ^ mixed >> 13) * <uint32_t> 0x5BD1E995
    return mixed ^ mixed >> 15


def murmur2(data):
    cdef Py_buffer view
    cdef uint32_t mixed
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    mixed = mix(<const uint8_t *> view.buf, view.len)
    PyBuffer_Release(&view)
    return mixed


# ---------------------------------------------------------------- compaction

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define lk_prefetch(p) __builtin_prefetch(p)
    #else
    #define lk_prefetch(p) ((void) (p))
    #endif
    """
    void lk_prefetch(const void *p) noexcept nogil


cdef int bound_mask(Py_buffer *mask, Py_ssize_t count) except -1:
    if mask.len < count:
        raise _pure.InvalidRecord(f"a mask of {mask.len} bytes does not cover {count} records")
    return 0


cdef struct Survey:
    Py_ssize_t index
    Py_ssize_t kept
    Py_ssize_t nulls
    int64_t largest


cdef int survey(
    const uint8_t *p, const uint8_t *stop, Py_ssize_t count, int64_t base_offset, int64_t base_timestamp,
    uint8_t *mask, int64_t tombstones_before, Survey *found,
) noexcept nogil:
    cdef Raw raw
    cdef Py_ssize_t index
    cdef int64_t timestamp
    cdef int code
    for index in range(count):
        found.index = index
        code = read_record(&p, stop, &raw)
        if not code:
            code = absolute(base_timestamp, raw.timestamp_delta, &timestamp)
        if code:
            return code
        if not mask[index]:
            continue
        if raw.value_size < 0:
            if base_offset + raw.offset_delta < tombstones_before:
                mask[index] = 0
                continue
            found.nulls += 1
        found.kept += 1
        if timestamp > found.largest:
            found.largest = timestamp
    return OK if p == stop else TRAILING


def survey_records(
    buf,
    Py_ssize_t start,
    Py_ssize_t end,
    Py_ssize_t count,
    int64_t base_offset,
    int64_t base_timestamp_ms,
    bytearray mask,
    int64_t tombstones_before,
):
    cdef Py_buffer view, marks
    cdef Survey found
    cdef int code
    cdef const uint8_t *first
    found.index = found.kept = found.nulls = 0
    found.largest = -1
    PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
    try:
        bound(&view, start, end, count)
        PyObject_GetBuffer(mask, &marks, PyBUF_SIMPLE)
        try:
            bound_mask(&marks, count)
            first = <const uint8_t *> view.buf
            with nogil:
                code = survey(
                    first + start, first + end, count, base_offset, base_timestamp_ms,
                    <uint8_t *> marks.buf, tombstones_before, &found,
                )
        finally:
            PyBuffer_Release(&marks)
    finally:
        PyBuffer_Release(&view)
    if code:
        raise fault(found.index, code)
    return found.kept, found.nulls, found.largest


cdef int copy_kept(
    const uint8_t *p, const uint8_t *stop, Py_ssize_t count, int64_t base, int64_t new_base,
    const uint8_t *mask, uint8_t *out, Py_ssize_t *used, Py_ssize_t *at,
) noexcept nogil:
    # `out` has room for all records and, where they are told from another base, 14 bytes more each.
    cdef Raw raw
    cdef Py_ssize_t index, body, rest
    cdef int64_t timestamp, elapsed
    cdef uint64_t told
    cdef uint8_t *q = out
    cdef const uint8_t *began
    cdef int code
    for index in range(count):
        at[0] = index
        began = p
        code = read_record(&p, stop, &raw)
        if not code:
            code = absolute(base, raw.timestamp_delta, &timestamp)
        if code:
            return code
        if not mask[index]:
            continue
        if base == new_base:
            memcpy(q, began, raw.end - began)
            q += raw.end - began
            continue
        elapsed = <int64_t> (<uint64_t> timestamp - <uint64_t> new_base)
        if ((timestamp ^ new_base) & (timestamp ^ elapsed)) < 0:
            return BAD_TIMESTAMP
        told = zigzag(elapsed)
        rest = raw.end - raw.place
        body = 1 + varint_size(told) + rest
        q = put_varint(q, zigzag(body))
        q[0] = raw.attributes[0]
        q = put_varint(q + 1, told)
        memcpy(q, raw.place, rest)
        q += rest
    used[0] = q - out
    return OK if p == stop else TRAILING


def copy_records(
    buf,
    Py_ssize_t start,
    Py_ssize_t end,
    Py_ssize_t count,
    int64_t base_timestamp_ms,
    mask,
    int64_t new_base_timestamp_ms,
):
    cdef Py_buffer view, marks
    cdef Out out = Out()
    cdef Py_ssize_t used = 0, index = 0
    cdef int code
    cdef const uint8_t *first
    PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
    try:
        bound(&view, start, end, count)
        PyObject_GetBuffer(mask, &marks, PyBUF_SIMPLE)
        try:
            bound_mask(&marks, count)
            out.reserve(end - start + (0 if base_timestamp_ms == new_base_timestamp_ms else 14 * count))
            first = <const uint8_t *> view.buf
            with nogil:
                code = copy_kept(
                    first + start, first + end, count, base_timestamp_ms, new_base_timestamp_ms,
                    <const uint8_t *> marks.buf, out.data, &used, &index,
                )
        finally:
            PyBuffer_Release(&marks)
    finally:
        PyBuffer_Release(&view)
    if code:
        raise fault(index, code)
    return PyBytes_FromStringAndSize(<const char *> out.data, used)


# SipHash-2-4 with 128 bits: a keyed hash, so that nobody can make two keys that meet.

cdef inline uint64_t rotate(uint64_t x, int by) noexcept nogil:
    return x << by | x >> (64 - by)


cdef inline void sip_round(uint64_t *v) noexcept nogil:
    v[0] += v[1]
    v[1] = rotate(v[1], 13) ^ v[0]
    v[0] = rotate(v[0], 32)
    v[2] += v[3]
    v[3] = rotate(v[3], 16) ^ v[2]
    v[0] += v[3]
    v[3] = rotate(v[3], 21) ^ v[0]
    v[2] += v[1]
    v[1] = rotate(v[1], 17) ^ v[2]
    v[2] = rotate(v[2], 32)


cdef inline uint64_t little_long(const uint8_t *p) noexcept nogil:
    return little_word(p) | <uint64_t> little_word(p + 4) << 32


cdef inline void siphash(const uint8_t *p, Py_ssize_t size, const uint64_t *seed, uint64_t *digest) noexcept nogil:
    cdef uint64_t v[4]
    cdef uint64_t word
    cdef Py_ssize_t left = size & 7
    cdef const uint8_t *whole = p + size - left
    cdef int i
    v[0] = seed[0] ^ <uint64_t> 0x736F6D6570736575
    v[1] = seed[1] ^ <uint64_t> 0x646F72616E646F6D ^ 0xEE
    v[2] = seed[0] ^ <uint64_t> 0x6C7967656E657261
    v[3] = seed[1] ^ <uint64_t> 0x7465646279746573
    while p < whole:
        word = little_long(p)
        v[3] ^= word
        sip_round(v)
        sip_round(v)
        v[0] ^= word
        p += 8
    word = <uint64_t> size << 56
    for i in range(left):
        word |= <uint64_t> p[i] << 8 * i
    v[3] ^= word
    sip_round(v)
    sip_round(v)
    v[0] ^= word
    v[2] ^= 0xEE
    for i in range(4):
        sip_round(v)
    digest[0] = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    for i in range(4):
        sip_round(v)
    digest[1] = v[0] ^ v[1] ^ v[2] ^ v[3]


cdef struct Found:
    # A record of a stretch that is looked up together, so that the table's memory is fetched side by side.
    uint64_t digest[2]
    int64_t offset
    Py_ssize_t slot
    int32_t key_size


cdef enum:
    STRETCH = 16
    HEADER_BYTES = 61
    NOT_PLAIN = 0x77    # compressed, transactional, control, or with a delete horizon
    ROW = 7
    ROW_BYTES = 56
    MOST_ROWS = 2048    # of one call
    NONE_STAYS = 0
    ALL_STAY = 1
    LOOK_CLOSER = 2

cdef int64_t MAX_BASE = INT64_MAX - 0x7FFFFFFF


cdef class OffsetMap:
    # Entries of `stride` words: digest, digest, offset + 1 (0: free), version in a versioned map.
    cdef uint64_t *table
    cdef uint64_t seed[2]
    cdef Py_ssize_t stride
    cdef readonly Py_ssize_t slots
    cdef readonly Py_ssize_t capacity
    cdef readonly Py_ssize_t size

    def __cinit__(self, int64_t memory_bytes, double load_factor, bytes seed, bint versioned=False):
        self.stride = 4 if versioned else 3
        self.slots = max(0, memory_bytes) // (8 * self.stride)
        self.capacity = min(<Py_ssize_t> (self.slots * load_factor), self.slots - 1)
        if len(seed) != 16 or self.capacity < 1:
            raise ValueError(f"no map of {memory_bytes} bytes, load factor {load_factor}, seed of {len(seed)} bytes")
        self.seed[0] = little_long(<const uint8_t *> PyBytes_AS_STRING(seed))
        self.seed[1] = little_long(<const uint8_t *> PyBytes_AS_STRING(seed) + 8)
        self.table = <uint64_t *> calloc(self.slots, 8 * self.stride)
        if self.table == NULL:
            raise MemoryError

    def __dealloc__(self):
        with nogil:  # 128 MB take milliseconds to give back
            free(self.table)

    def digest(self, bytes key):
        """The 16 bytes that a key is known by."""
        cdef uint64_t digest[2]
        siphash(<const uint8_t *> PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), self.seed, digest)
        return digest[0].to_bytes(8, "little") + digest[1].to_bytes(8, "little")

    cdef int stretch(
        self, const uint8_t **p, const uint8_t *stop, Py_ssize_t count, int64_t base_offset, Found *found,
        Py_ssize_t *broken,
    ) noexcept nogil:
        # Reads and hashes up to STRETCH records, and asks for the memory that their keys lead to.
        cdef Raw raw
        cdef Py_ssize_t i
        cdef int code
        for i in range(count):
            code = read_record(p, stop, &raw)
            if code:
                broken[0] = i
                return code
            found[i].offset = base_offset + raw.offset_delta
            found[i].key_size = raw.key_size
            if raw.key_size >= 0:
                siphash(raw.key, raw.key_size, self.seed, found[i].digest)
                found[i].slot = found[i].digest[0] % <uint64_t> self.slots
                lk_prefetch(self.table + found[i].slot * self.stride)
        return OK

    cdef inline uint64_t *probe(self, Found *found) noexcept nogil:
        # The entry of a key, or the free one where it belongs; there is always a free one.
        cdef Py_ssize_t slot = found.slot
        cdef uint64_t *entry
        while True:
            entry = self.table + slot * self.stride
            if entry[2] == 0 or entry[0] == found.digest[0] and entry[1] == found.digest[1]:
                return entry
            slot += 1
            if slot == self.slots:
                slot = 0

    cdef inline bint is_beaten(self, const uint64_t *entry, int64_t offset, int64_t version) noexcept nogil:
        # Does the record in `entry` win over one at `offset`?
        if self.stride == 4 and <int64_t> entry[3] != version:
            return <int64_t> entry[3] > version
        return <int64_t> entry[2] - 1 > offset

    cdef int learn(
        self, const uint8_t *p, const uint8_t *stop, Py_ssize_t count, int64_t base_offset, int64_t from_offset,
        const int64_t *versions, Py_ssize_t *done,
    ) noexcept nogil:
        cdef Found found[STRETCH]
        cdef Py_ssize_t index = 0, i, some, broken = 0
        cdef int64_t version = 0
        cdef uint64_t *entry
        cdef int code
        while index < count:
            some = min(<Py_ssize_t> STRETCH, count - index)
            code = self.stretch(&p, stop, some, base_offset, found, &broken)
            if code:
                done[0] = index + broken
                return code
            for i in range(some):
                if found[i].key_size < 0 or found[i].offset < from_offset:
                    continue
                if versions != NULL:
                    version = versions[index + i]
                entry = self.probe(&found[i])
                if entry[2] == 0:
                    if self.size >= self.capacity:
                        done[0] = index + i
                        return OK
                    self.size += 1
                    entry[0] = found[i].digest[0]
                    entry[1] = found[i].digest[1]
                elif self.is_beaten(entry, found[i].offset, version):
                    continue
                entry[2] = <uint64_t> (found[i].offset + 1)
                if self.stride == 4:
                    entry[3] = <uint64_t> version
            index += some
        done[0] = count
        return OK if p == stop else TRAILING

    cdef int judge(
        self, const uint8_t *p, const uint8_t *stop, Py_ssize_t count, int64_t base_offset, int64_t before_offset,
        const int64_t *versions, uint8_t *mask, Py_ssize_t *done,
    ) noexcept nogil:
        cdef Found found[STRETCH]
        cdef Py_ssize_t index = 0, i, some, broken = 0
        cdef int64_t version = 0
        cdef uint64_t *entry
        cdef int code
        while index < count:
            some = min(<Py_ssize_t> STRETCH, count - index)
            code = self.stretch(&p, stop, some, base_offset, found, &broken)
            if code:
                done[0] = index + broken
                return code
            for i in range(some):
                if found[i].offset >= before_offset:
                    mask[index + i] = 1
                elif found[i].key_size < 0:
                    mask[index + i] = 0
                else:
                    if versions != NULL:
                        version = versions[index + i]
                    entry = self.probe(&found[i])
                    mask[index + i] = entry[2] == 0 or not self.is_beaten(entry, found[i].offset, version)
            index += some
        return OK if p == stop else TRAILING

    cdef int check_versions(self, object versions, Py_buffer *told, Py_ssize_t count) except -1:
        if (versions is not None) != (self.stride == 4):
            raise ValueError("versions go with a versioned map, and only with one")
        if versions is not None and told.len != 8 * count:
            raise ValueError(f"{told.len} bytes are no {count} versions")
        return 0

    def add(
        self, buf, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count, int64_t base_offset, int64_t from_offset,
        versions=None,
    ):
        cdef Py_buffer view, told
        cdef Py_ssize_t done = 0
        cdef int code
        cdef const uint8_t *first
        cdef const int64_t *column
        PyObject_GetBuffer(b"" if versions is None else versions, &told, PyBUF_SIMPLE)
        try:
            self.check_versions(versions, &told, count)
            column = NULL if versions is None else <const int64_t *> told.buf
            PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
            try:
                bound(&view, start, end, count)
                first = <const uint8_t *> view.buf
                with nogil:
                    code = self.learn(first + start, first + end, count, base_offset, from_offset, column, &done)
            finally:
                PyBuffer_Release(&view)
        finally:
            PyBuffer_Release(&told)
        if code:
            raise fault(min(done, max(count - 1, 0)), code)
        return done

    def keep(
        self, buf, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count, int64_t base_offset, int64_t before_offset,
        versions=None,
    ):
        cdef Py_buffer view, told
        cdef Py_ssize_t done = 0
        cdef int code
        cdef const uint8_t *first
        cdef const int64_t *column
        cdef bytearray mask
        cdef uint8_t *marks
        PyObject_GetBuffer(b"" if versions is None else versions, &told, PyBUF_SIMPLE)
        try:
            self.check_versions(versions, &told, count)
            column = NULL if versions is None else <const int64_t *> told.buf
            PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
            try:
                bound(&view, start, end, count)
                mask = bytearray(count)
                marks = <uint8_t *> PyByteArray_AS_STRING(mask)
                first = <const uint8_t *> view.buf
                with nogil:
                    code = self.judge(
                        first + start, first + end, count, base_offset, before_offset, column, marks, &done
                    )
            finally:
                PyBuffer_Release(&view)
        finally:
            PyBuffer_Release(&told)
        if code:
            raise fault(min(done, max(count - 1, 0)), code)
        return mask

    def add_batches(self, buf, bytes rows, int64_t from_offset):
        cdef Py_buffer view
        cdef const int64_t *row = <const int64_t *> PyBytes_AS_STRING(rows)
        cdef Py_ssize_t index = 0, done = 0, batches = PyBytes_GET_SIZE(rows) // ROW_BYTES
        cdef const uint8_t *first
        cdef int code
        if self.stride == 4:
            raise ValueError("a versioned map takes one batch at a time")
        PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
        try:
            bound_rows(&view, row, batches)
            with nogil:
                for index in range(batches):
                    first = <const uint8_t *> view.buf + row[0]
                    if row[4] >= from_offset:
                        code = self.learn(
                            first + HEADER_BYTES, first + row[1], row[2], row[3], from_offset, NULL, &done
                        )
                        if code or done < row[2]:
                            break
                    row += ROW
                else:
                    index = batches
        finally:
            PyBuffer_Release(&view)
        return index

    def keep_batches(self, buf, bytes rows, int64_t before_offset):
        cdef Py_buffer view
        cdef const int64_t *row = <const int64_t *> PyBytes_AS_STRING(rows)
        cdef Py_ssize_t index = 0, done = 0, most = 1, batches = PyBytes_GET_SIZE(rows) // ROW_BYTES
        cdef const uint8_t *first
        cdef Out mask = Out()
        cdef bytearray verdicts
        cdef uint8_t *verdict
        cdef Survey found
        cdef int code
        if self.stride == 4:
            raise ValueError("a versioned map takes one batch at a time")
        PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
        try:
            most = max(most, bound_rows(&view, row, batches))
            mask.reserve(most)
            verdicts = bytearray(batches)
            verdict = <uint8_t *> PyByteArray_AS_STRING(verdicts)
            with nogil:
                for index in range(batches):
                    first = <const uint8_t *> view.buf + row[0]
                    code = self.judge(
                        first + HEADER_BYTES, first + row[1], row[2], row[3], before_offset, NULL, mask.data, &done
                    )
                    if code:
                        break
                    found.index = found.kept = found.nulls = 0
                    found.largest = -1
                    code = survey(
                        first + HEADER_BYTES, first + row[1], row[2], row[3], row[5], mask.data, INT64_MIN, &found
                    )
                    if code:
                        break
                    if found.kept == 0:
                        verdict[index] = NONE_STAYS
                    elif found.kept == row[2] and found.nulls == 0:
                        verdict[index] = ALL_STAY
                    else:
                        verdict[index] = LOOK_CLOSER
                    row += ROW
                else:
                    index = batches
        finally:
            PyBuffer_Release(&view)
        del verdicts[index:]
        return verdicts


# ---------------------------------------------------------------- runs of small batches

cdef uint32_t CRC_TABLE[8][256]


cdef void make_crc_table() noexcept:
    cdef uint32_t crc
    cdef int i, k
    for i in range(256):
        crc = i
        for k in range(8):
            crc = crc >> 1 ^ (<uint32_t> 0x82F63B78 if crc & 1 else <uint32_t> 0)
        CRC_TABLE[0][i] = crc
    for i in range(256):
        for k in range(1, 8):
            CRC_TABLE[k][i] = CRC_TABLE[0][CRC_TABLE[k - 1][i] & 255] ^ CRC_TABLE[k - 1][i] >> 8


make_crc_table()


cdef inline uint32_t crc32c(const uint8_t *p, Py_ssize_t size) noexcept nogil:
    # Eight bytes a step; for a few hundred bytes that is as fast as calling the library.
    cdef uint32_t crc = 0xFFFFFFFF, high
    while size >= 8:
        crc ^= little_word(p)
        high = little_word(p + 4)
        crc = (
            CRC_TABLE[7][crc & 255] ^ CRC_TABLE[6][crc >> 8 & 255] ^ CRC_TABLE[5][crc >> 16 & 255]
            ^ CRC_TABLE[4][crc >> 24] ^ CRC_TABLE[3][high & 255] ^ CRC_TABLE[2][high >> 8 & 255]
            ^ CRC_TABLE[1][high >> 16 & 255] ^ CRC_TABLE[0][high >> 24]
        )
        p += 8
        size -= 8
    while size > 0:
        crc = CRC_TABLE[0][(crc ^ p[0]) & 255] ^ crc >> 8
        p += 1
        size -= 1
    return ~crc


cdef inline uint32_t big_word(const uint8_t *p) noexcept nogil:
    return <uint32_t> p[0] << 24 | <uint32_t> p[1] << 16 | <uint32_t> p[2] << 8 | p[3]


cdef inline int64_t big_long(const uint8_t *p) noexcept nogil:
    return <int64_t> (<uint64_t> big_word(p) << 32 | big_word(p + 4))


cdef Py_ssize_t bound_rows(Py_buffer *view, const int64_t *row, Py_ssize_t batches) except -1:
    # Returns the most records that a batch has.
    cdef Py_ssize_t i
    cdef int64_t most = 0
    for i in range(batches):
        if row[1] < HEADER_BYTES or row[0] < 0 or row[0] > view.len - row[1]:
            raise ValueError(f"row {i}: no batch of {row[1]} bytes lies at {row[0]} of {view.len}")
        if row[2] < 0 or row[2] > (row[1] - HEADER_BYTES) // MIN_RECORD_BYTES:
            raise ValueError(f"row {i}: {row[2]} records do not fit {row[1]} bytes")
        most = max(most, row[2])
        row += ROW
    return most


def small_batches(buf, Py_ssize_t start, Py_ssize_t end, Py_ssize_t most_bytes, barriers):
    cdef Py_buffer view, walls
    cdef Out out = Out()
    cdef const uint8_t *p
    cdef const uint8_t *stop
    cdef const int64_t *wall
    cdef const int64_t *last_wall
    cdef int64_t *row
    cdef int64_t size, base, last, count
    cdef Py_ssize_t at = start, middle, some
    PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
    try:
        if start < 0 or end < start or end > view.len:
            raise ValueError(f"batches from {start} to {end} do not lie in {view.len} bytes")
        PyObject_GetBuffer(barriers, &walls, PyBUF_SIMPLE)
        try:
            p = <const uint8_t *> view.buf + start
            stop = <const uint8_t *> view.buf + end
            if stop - p <= HEADER_BYTES or <int64_t> <int32_t> big_word(p + 8) + 12 > most_bytes:
                return b"", start    # most often, in a log of larger batches
            out.reserve(min((end - start) // (HEADER_BYTES + MIN_RECORD_BYTES) + 1, MOST_ROWS) * ROW_BYTES)
            with nogil:
                wall = <const int64_t *> walls.buf
                last_wall = wall + walls.len // 8
                row = <int64_t *> out.data
                while stop - p > HEADER_BYTES and <uint8_t *> row - out.data < MOST_ROWS * ROW_BYTES:
                    size = <int64_t> <int32_t> big_word(p + 8) + 12
                    if size < HEADER_BYTES or size > stop - p or size > most_bytes or p[16] != 2:
                        break
                    base = big_long(p)
                    last = <int32_t> big_word(p + 23)
                    count = <int32_t> big_word(p + 57)
                    if p[22] & NOT_PLAIN or last < 0 or base < 0 or base > MAX_BASE:
                        break
                    if count < 1 or count > (size - HEADER_BYTES) // MIN_RECORD_BYTES:
                        break
                    last += base
                    some = last_wall - wall if wall < last_wall and wall[0] < last else 0
                    while some > 0:
                        middle = some // 2
                        if wall[middle] < last:
                            wall += middle + 1
                            some -= middle + 1
                        else:
                            some = middle
                    if wall < last_wall and wall[0] == last:
                        break
                    if crc32c(p + 21, size - 21) != big_word(p + 17):
                        break
                    row[0] = p - <const uint8_t *> view.buf
                    row[1] = size
                    row[2] = count
                    row[3] = base
                    row[4] = last
                    row[5] = big_long(p + 27)
                    row[6] = big_long(p + 35)
                    row += ROW
                    p += size
                out.used = <uint8_t *> row - out.data
                at = p - <const uint8_t *> view.buf
        finally:
            PyBuffer_Release(&walls)
    finally:
        PyBuffer_Release(&view)
    return PyBytes_FromStringAndSize(<const char *> out.data, out.used), at

# ---------------------------------------------------------------- rows

include "_rows.pxi"
