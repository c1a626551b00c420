# Compaction: which records of a batch stay, copies of those, the offset map, runs of small batches. The functions of
# `pure_compaction`, compiled. Included by `_loops.pyx`, whose helpers it uses.

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
        raise InvalidRecord(f"a mask of {mask.len} bytes does not cover {count} records")
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
