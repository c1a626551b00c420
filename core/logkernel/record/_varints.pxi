# Varints and what they measure, bounded by `end`. Included by `_loops.pyx` and `_columns.pyx`, which name the faults.

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
    if size[0] < 0:  # null
        return OK
    if size[0] > end - cursor[0]:
        return BAD_END
    cursor[0] += size[0]
    return OK
