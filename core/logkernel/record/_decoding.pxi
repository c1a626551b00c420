# Records out of a batch: the functions and classes of `pure_decode`, compiled. Included by `_loops.pyx`.

# ---------------------------------------------------------------- read

cdef struct Raw:
    # One record within its batch; a negative size is null.
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


include "_varints.pxi"


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
        raise InvalidRecord(f"records from {start} to {end} do not lie in {view.len} bytes")
    if count < 0 or count > (end - start) // MIN_RECORD_BYTES:
        raise fault(0, BAD_COUNT)
    return 0


def last_batch(buf):
    cdef Py_buffer view
    cdef Py_ssize_t start = 0, found = -1
    cdef int32_t length
    cdef const uint8_t *p
    PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
    try:
        while view.len - start > LOG_OVERHEAD:
            p = <const uint8_t *> view.buf + start + 8
            length = <int32_t> (<uint32_t> p[0] << 24 | <uint32_t> p[1] << 16 | <uint32_t> p[2] << 8 | p[3])
            if length < LEGACY_MIN_LENGTH:
                raise CorruptMessage(f"batch at {start}: length {length} is less than a header")
            if length > view.len - start - LOG_OVERHEAD:
                break
            found = start
            start += LOG_OVERHEAD + length
    finally:
        PyBuffer_Release(&view)
    return None if found < 0 else found


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
            if raw.key_size < -1 or raw.value_size < -1:
                code = BAD_NULL
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
    return (-1 if least > largest else least), largest, null_key


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


cdef class RowDecoder:
    # See `pure_decode.RowDecoder`. It holds the bytes' owner, and a view of them only while rows are made: what holds a
    # view of a memoryview in a cycle has the garbage collector crash before Python 3.12.7 (python/cpython#77894).
    cdef object buf
    cdef Py_ssize_t at, end, count
    cdef readonly Py_ssize_t left
    cdef int64_t base_offset, base_timestamp, from_offset, told
    cdef bint appended
    cdef type kind
    cdef object topic, partition, leader_epoch, time

    def __init__(
        self,
        buf,
        Py_ssize_t start,
        Py_ssize_t end,
        Py_ssize_t count,
        int64_t base_offset,
        int64_t base_timestamp_ms,
        append_time_ms,
        type kind not None,
        topic,
        partition,
        leader_epoch,
        int64_t from_offset,
    ):
        cdef Py_buffer view
        if self.kind is not None:
            raise TypeError("a decoder is of one batch")
        if not issubclass(kind, tuple) or kind.__itemsize__ == 0:
            raise TypeError(f"{kind!r} is no tuple")
        PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
        try:
            bound(&view, start, end, count)
        finally:
            PyBuffer_Release(&view)
        self.appended = append_time_ms is not None
        self.time = append_time_ms if self.appended else -1
        self.told = -1
        self.buf, self.at, self.end = buf, start, end
        self.count = self.left = count
        self.base_offset, self.base_timestamp, self.from_offset = base_offset, base_timestamp_ms, from_offset
        self.kind, self.topic, self.partition, self.leader_epoch = kind, topic, partition, leader_epoch

    def next(self, Py_ssize_t most):
        # A row is filled as tuple's own constructor would; it holds nothing that could refer back to it, so that the
        # garbage collector need not look at it.
        cdef Py_buffer view
        cdef const uint8_t *p
        cdef const uint8_t *stop
        cdef Raw raw
        cdef Py_ssize_t index, left = self.left
        cdef int64_t timestamp = -1, told = self.told
        cdef int code
        cdef list rows = []
        cdef object row, time = self.time
        if most < 0:
            raise ValueError(f"{most} records")
        PyObject_GetBuffer(self.buf, &view, PyBUF_SIMPLE)
        try:
            bound(&view, self.at, self.end, 0)  # its owner may have cut it since
            p = <const uint8_t *> view.buf + self.at
            stop = <const uint8_t *> view.buf + self.end
            for index in range(self.count - left, self.count - left + min(most, left)):
                code = read_record(&p, stop, &raw)
                if not code:
                    code = absolute(self.base_timestamp, raw.timestamp_delta, &timestamp)
                if code:
                    raise fault(index, code)
                left -= 1
                if self.base_offset + raw.offset_delta < self.from_offset:
                    continue
                if not self.appended and timestamp != told:
                    time = told = timestamp
                row = PyType_GenericAlloc(self.kind, 8)
                put_item(row, 0, self.topic)
                put_item(row, 1, self.partition)
                put_item(row, 2, self.base_offset + raw.offset_delta)
                put_item(row, 3, time)
                put_item(row, 4, make_blob(raw.key, raw.key_size))
                put_item(row, 5, make_blob(raw.value, raw.value_size))
                put_item(row, 6, make_headers(&raw) if raw.header_count else NOTHING)
                put_item(row, 7, self.leader_epoch)
                PyObject_GC_UnTrack(<void *> row)
                rows.append(row)
            if left == 0 and p != stop:
                raise fault(max(self.count - 1, 0), TRAILING)
            self.at = p - <const uint8_t *> view.buf
        finally:
            PyBuffer_Release(&view)
        self.left, self.told, self.time = left, told, time
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
