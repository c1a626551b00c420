# Columns to records: the functions of `pure_rows`, compiled. Included by `_loops.pyx`, whose helpers it uses.

cdef extern from *:
    """
    #define logkernel_bit(bits, index) (((bits)[(index) >> 3] >> ((index) & 7)) & 1)
    """
    int logkernel_bit(const uint8_t *bits, Py_ssize_t index) noexcept nogil


cdef object plain_rows():
    # Where the errors are made; imported when there is one.
    from logkernel.record import pure_rows

    return pure_rows


cdef const void *held(object buf, Py_buffer *view, Py_ssize_t least, str what) except? NULL:
    # The bytes of a buffer that must have `least` of them.
    PyObject_GetBuffer(buf, view, PyBUF_SIMPLE)
    if view.len < least:
        raise plain_rows().short(what, view.len, least)
    return view.buf


cdef int32_t check_offsets(const int32_t *offsets, Py_ssize_t count, Py_ssize_t size) noexcept nogil:
    # Whether all lie in `size` bytes, in order.
    cdef Py_ssize_t index
    cdef int32_t last = offsets[0], bad = last < 0
    for index in range(1, count + 1):
        bad |= offsets[index] < last
        last = offsets[index]
    return bad == 0 and last <= size


cdef class Strings:
    # See `pure_rows.Strings`.
    cdef Py_buffer valid_view, offsets_view, data_view
    cdef const uint8_t *valid
    cdef const int32_t *offsets
    cdef const uint8_t *data
    cdef Py_ssize_t first
    cdef readonly Py_ssize_t count

    def __init__(self, valid, offsets, data, Py_ssize_t first, Py_ssize_t count):
        cdef Py_ssize_t size = 0
        if self.offsets != NULL or first < 0 or count < 0:
            raise plain_rows().short("a column", first, 0)
        if valid is not None:
            self.valid = <const uint8_t *> held(valid, &self.valid_view, (first + count + 7) >> 3, "validity")
        if data is not None:
            self.data = <const uint8_t *> held(data, &self.data_view, 0, "data")
            size = self.data_view.len
        if count:
            self.offsets = <const int32_t *> held(offsets, &self.offsets_view, 4 * (first + count + 1), "offsets")
            self.offsets += first
            if not check_offsets(self.offsets, count, size):
                raise plain_rows().astray()
        self.first = first
        self.count = count

    def __dealloc__(self):
        PyBuffer_Release(&self.valid_view)
        PyBuffer_Release(&self.offsets_view)
        PyBuffer_Release(&self.data_view)

    cdef inline int32_t size(self, Py_ssize_t index) noexcept nogil:
        if self.valid != NULL and not logkernel_bit(self.valid, self.first + index):
            return -1
        return self.offsets[index + 1] - self.offsets[index]

    def __len__(self):
        return self.count

    def __getitem__(self, Py_ssize_t index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        return make_blob(self.data + self.offsets[index], self.size(index))


@cython.no_gc
cdef class HeaderLists:
    # See `pure_rows.HeaderLists`. The garbage collector is not to look into what holds views (see `RowDecoder`); like
    # `Strings`, it holds nothing that could refer back to it.
    cdef Py_buffer valid_view, offsets_view
    cdef const uint8_t *valid
    cdef const int32_t *offsets
    cdef Strings names, values
    cdef Py_ssize_t first
    cdef readonly Py_ssize_t count

    def __init__(self, valid, offsets, Strings names, Strings values, Py_ssize_t first, Py_ssize_t count):
        cdef Py_ssize_t index
        if self.offsets != NULL or first < 0 or count < 0 or names is None or values is None:
            raise plain_rows().short("headers", first, 0)
        self.names, self.values = names, values
        if valid is not None:
            self.valid = <const uint8_t *> held(valid, &self.valid_view, (first + count + 7) >> 3, "validity")
        if count:
            self.offsets = <const int32_t *> held(offsets, &self.offsets_view, 4 * (first + count + 1), "offsets")
            self.offsets += first
            if not check_offsets(self.offsets, count, min(names.count, values.count)):
                raise plain_rows().astray()
            for index in range(self.offsets[0], self.offsets[count]):
                if names.size(index) < 0:
                    raise plain_rows().nameless()
        self.first = first
        self.count = count

    def __dealloc__(self):
        PyBuffer_Release(&self.valid_view)
        PyBuffer_Release(&self.offsets_view)

    def pairs(self, Py_ssize_t index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        if self.empty(index):
            return ()
        among = range(self.offsets[index], self.offsets[index + 1])
        return tuple([(self.names[pair].decode("utf-8", "surrogateescape"), self.values[pair]) for pair in among])

    cdef inline bint empty(self, Py_ssize_t index) noexcept nogil:
        if self.valid != NULL and not logkernel_bit(self.valid, self.first + index):
            return True
        return self.offsets[index + 1] == self.offsets[index]

    cdef int64_t size(self, Py_ssize_t index) noexcept nogil:
        # Bytes of a record's headers, with their count.
        cdef int64_t size
        cdef Py_ssize_t pair
        if self.empty(index):
            return 1
        size = varint_size(zigzag(self.offsets[index + 1] - self.offsets[index]))
        for pair in range(self.offsets[index], self.offsets[index + 1]):
            size += sized(self.names.size(pair)) + sized(self.values.size(pair))
        return size

    cdef uint8_t *put(self, uint8_t *p, Py_ssize_t index) noexcept nogil:
        cdef Py_ssize_t pair
        if self.empty(index):
            p[0] = 0
            return p + 1
        p = put_varint(p, zigzag(self.offsets[index + 1] - self.offsets[index]))
        for pair in range(self.offsets[index], self.offsets[index + 1]):
            p = put_cell(p, self.names, pair)
            p = put_cell(p, self.values, pair)
        return p


cdef inline int64_t sized(int32_t size) noexcept nogil:
    return 1 if size < 0 else varint_size(zigzag(size)) + <int64_t> size


cdef inline uint8_t *put_cell(uint8_t *p, Strings column, Py_ssize_t index) noexcept nogil:
    cdef int32_t size = column.size(index)
    if size < 0:
        p[0] = 1
        return p + 1
    p = put_varint(p, zigzag(size))
    memcpy(p, column.data + column.offsets[index], size)
    return p + size


cdef inline int64_t body_size(
    Strings keys, Strings values, HeaderLists headers, Py_ssize_t row, Py_ssize_t place
) noexcept nogil:
    cdef int64_t body = 2 + varint_size(zigzag(place)) + sized(values.size(row))
    body += 1 if keys is None else sized(keys.size(row))
    body += 1 if headers is None else headers.size(row)
    return body


def encode_rows(
    Strings keys,
    Strings values not None,
    HeaderLists headers,
    rows,
    Py_ssize_t start,
    Py_ssize_t end,
    Py_ssize_t limit,
    Py_ssize_t head,
):
    cdef Py_buffer view
    cdef const int32_t *order = NULL
    cdef Py_ssize_t at, stop = start, row, most = values.count
    cdef int64_t used = head, body, whole
    cdef uint8_t *p
    cdef bytearray out
    if keys is not None:
        most = min(most, keys.count)
    if headers is not None:
        most = min(most, headers.count)
    if start < 0 or end < start or head < 0 or (rows is None and end > most):
        raise plain_rows().short("rows", most, end)
    if rows is not None:
        order = <const int32_t *> held(rows, &view, 4 * end, "rows")
    try:
        with nogil:
            for at in range(start, end):
                row = at if order == NULL else order[at]
                if row < 0 or row >= most:
                    stop = -1
                    break
                body = body_size(keys, values, headers, row, at - start)
                whole = body + varint_size(zigzag(body))
                if at > start and used + whole > limit:
                    break
                if used + whole > 0x7FFFFFFF - 128:
                    stop = -2 if at == start else stop
                    break
                used += whole
                stop = at + 1
        if stop == -1:
            raise plain_rows().astray()
        if stop == -2:
            raise fault(0, TOO_LARGE)
        out = PyByteArray_FromStringAndSize(NULL, used)
        p = <uint8_t *> PyByteArray_AS_STRING(out)
        memset(p, 0, head)
        p += head
        with nogil:
            for at in range(start, stop):
                row = at if order == NULL else order[at]
                p = put_varint(p, zigzag(body_size(keys, values, headers, row, at - start)))
                p[0] = p[1] = 0
                p = put_varint(p + 2, zigzag(at - start))
                if keys is None:
                    p[0] = 1
                    p += 1
                else:
                    p = put_cell(p, keys, row)
                p = put_cell(p, values, row)
                if headers is None:
                    p[0] = 0
                    p += 1
                else:
                    p = headers.put(p, row)
    finally:
        if order != NULL:
            PyBuffer_Release(&view)
    return out, stop


def place_rows(Strings keys not None, Py_ssize_t partitions):
    cdef bytearray out = PyByteArray_FromStringAndSize(NULL, 4 * keys.count)
    cdef int32_t *places = <int32_t *> PyByteArray_AS_STRING(out)
    cdef Py_ssize_t row
    cdef int32_t size
    if partitions < 1:
        raise plain_rows().short("partitions", partitions, 1)
    with nogil:
        for row in range(keys.count):
            size = keys.size(row)
            if size < 0:
                places[row] = -1
            else:
                places[row] = (mix(keys.data + keys.offsets[row], size) & 0x7FFFFFFF) % <uint32_t> partitions
    return out


def group_rows(places, Py_ssize_t count, Py_ssize_t partitions, int32_t sticky):
    cdef Py_buffer view
    cdef const int32_t *place
    cdef Py_ssize_t row, bad = -1
    cdef int32_t target
    cdef bytearray out = PyByteArray_FromStringAndSize(NULL, 4 * count)
    cdef int32_t *order = <int32_t *> PyByteArray_AS_STRING(out)
    cdef list bounds = [0] * (partitions + 1)
    cdef Py_ssize_t *next_of
    if partitions < 1 or not 0 <= sticky < partitions:
        raise plain_rows().short("partitions", partitions, sticky + 1)
    place = <const int32_t *> held(places, &view, 4 * count, "partitions")
    next_of = <Py_ssize_t *> calloc(partitions + 1, sizeof(Py_ssize_t))
    try:
        if next_of == NULL:
            raise MemoryError
        with nogil:
            for row in range(count):
                target = sticky if place[row] < 0 else place[row]
                if target >= partitions:
                    bad = target
                    break
                next_of[target + 1] += 1
        if bad >= 0:
            raise plain_rows().no_partition(bad, partitions)
        for row in range(partitions):
            next_of[row + 1] += next_of[row]
            bounds[row + 1] = next_of[row + 1]
        with nogil:
            for row in range(count):
                target = sticky if place[row] < 0 else place[row]
                order[next_of[target]] = <int32_t> row
                next_of[target] += 1
    finally:
        free(next_of)
        PyBuffer_Release(&view)
    return out, bounds
