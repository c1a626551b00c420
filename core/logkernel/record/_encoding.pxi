# Records into a batch: the functions and classes of `pure_encode`, compiled. Included by `_loops.pyx`.

cdef class Out:
    # Bytes that grow; freed with the object, whatever is raised meanwhile.
    cdef uint8_t *data
    cdef Py_ssize_t used
    cdef Py_ssize_t room

    def __dealloc__(self):
        PyMem_Free(self.data)

    cdef int reserve(self, Py_ssize_t more) except -1:
        cdef Py_ssize_t room = self.used + more
        cdef uint8_t *data
        if room <= self.room:
            return 0
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


cdef bytes encode_headers(headers):
    # As plain Python does it, which is imported for the first record with headers: a broker's start needs none.
    global plain_headers
    if plain_headers is None:
        from logkernel.record import pure_encode

        plain_headers = pure_encode.encode_headers
    return plain_headers(headers)


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
    # See `pure_encode.Place`.
    cdef public object batch
    cdef public Py_ssize_t index
    cdef public int64_t timestamp_ms

    def __init__(self, batch, Py_ssize_t index, int64_t timestamp_ms):
        self.batch = batch
        self.index = index
        self.timestamp_ms = timestamp_ms


cdef int check_place(type kind) except -1:
    if kind is None or not PyType_IsSubtype(<PyTypeObject *> kind, <PyTypeObject *> Place):
        raise TypeError(f"{kind!r} is no place")
    return 0


cdef inline Place new_place(type kind, object batch, Py_ssize_t index, int64_t timestamp):
    # Of a kind that was checked.
    cdef Place place = <Place> (<PyTypeObject *> kind).tp_new(kind, <PyObject *> NOTHING, NULL)
    place.batch = batch
    place.index = index
    place.timestamp_ms = timestamp
    return place


@cython.final
cdef class BatchBuilder:
    # See `pure_encode.BatchBuilder`. The records are written where they stay: a full batch is handed out without a
    # copy.
    cdef bytearray wire
    cdef uint8_t *data
    cdef Py_ssize_t used, room, limit
    cdef readonly Py_ssize_t count
    cdef readonly int64_t base_timestamp_ms, max_timestamp_ms

    def __init__(self, Py_ssize_t limit, Py_ssize_t head):
        if self.wire is not None or head < 0:
            raise TypeError("a builder is of one batch")
        self.wire = PyByteArray_FromStringAndSize(NULL, 0)
        self.limit = limit
        self.count = 0
        self.base_timestamp_ms = self.max_timestamp_ms = -1
        self.reserve(head)
        memset(self.data, 0, head)
        self.used = head

    @property
    def size(self):
        return self.used

    cdef int reserve(self, Py_ssize_t more) except -1:
        cdef Py_ssize_t room = self.used + more
        if room > self.room:
            room = max(room, min(max(4 * self.room, <Py_ssize_t> 4096), self.limit))
            PyByteArray_Resize(self.wire, room)
            self.data = <uint8_t *> PyByteArray_AS_STRING(self.wire)
            self.room = room
        return 0

    cdef Py_ssize_t add(self, int64_t timestamp, object key, object value, object headers) except -2:
        # What may run other code comes first; from there on nothing does until the record is counted.
        cdef int64_t elapsed = 0
        cdef Py_ssize_t body, whole, index
        cdef bytes key_bytes = as_bytes(key), value_bytes = as_bytes(value), header_bytes = b"\0"
        cdef uint8_t *p
        if headers:
            header_bytes = encode_headers(headers)
        if self.wire is None:  # finished
            return -1
        index = self.count
        if index:
            elapsed = <int64_t> (<uint64_t> timestamp - <uint64_t> self.base_timestamp_ms)
            if ((timestamp ^ self.base_timestamp_ms) & (timestamp ^ elapsed)) < 0:
                raise fault(index, BAD_TIMESTAMP)
        body = 1 + varint_size(zigzag(elapsed)) + varint_size(zigzag(index))
        body += blob_size(key_bytes) + blob_size(value_bytes) + PyBytes_GET_SIZE(header_bytes)
        whole = body + varint_size(zigzag(body))
        if index and self.used + whole > self.limit:
            return -1
        if body > 0x7FFFFFFF - 128 - self.used:
            raise fault(index, TOO_LARGE)
        self.reserve(whole)
        p = put_varint(self.data + self.used, zigzag(body))
        p[0] = 0
        p = put_varint(p + 1, zigzag(elapsed))
        p = put_varint(p, zigzag(index))
        p = put_blob(p, key_bytes)
        p = put_blob(p, value_bytes)
        memcpy(p, PyBytes_AS_STRING(header_bytes), PyBytes_GET_SIZE(header_bytes))
        self.used += whole
        if index == 0:
            self.base_timestamp_ms = timestamp
        if timestamp > self.max_timestamp_ms:
            self.max_timestamp_ms = timestamp
        self.count = index + 1
        return index

    def append(self, int64_t timestamp, key, value, headers):
        return self.add(timestamp, key, value, headers)

    def put(self, type kind, owner, int64_t timestamp, key, value, headers):
        cdef Py_ssize_t index
        check_place(kind)
        index = self.add(timestamp, key, value, headers)
        return None if index < 0 else new_place(kind, owner, index, timestamp)

    def finish(self):
        cdef bytearray wire = self.wire
        self.wire = None
        if wire is None:
            return PyByteArray_FromStringAndSize(NULL, 0)
        if self.used < self.room - (self.room >> 3):
            # Not full: the rest of its memory is better free.
            return PyByteArray_FromStringAndSize(<const char *> self.data, self.used)
        PyByteArray_Resize(wire, self.used)
        return wire
