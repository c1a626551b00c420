# Memory for columns, used again once nobody has a view of it. Included by `_columns.pyx`.

cdef enum:
    # Of what is kept for the next columns: blocks of these sizes, so many, and so many bytes in all.
    LEAST_KEPT = 1 << 15
    MOST_KEPT = 1 << 22
    KEPT_BLOCKS = 16
    KEPT_BYTES = 1 << 24

# The first touch of new memory can cost more than filling it, so that what was given back is used again. A block is
# given back when the last view of it is gone: nobody sees what is written to it then. All of this with the GIL held.

cdef struct Block:
    uint8_t *data
    Py_ssize_t capacity

cdef Block kept[KEPT_BLOCKS]
cdef int kept_blocks = 0
cdef Py_ssize_t kept_bytes = 0


cdef void give_back(uint8_t *data, Py_ssize_t capacity) noexcept:
    global kept_blocks, kept_bytes
    if (
        LEAST_KEPT <= capacity <= MOST_KEPT and kept_blocks < KEPT_BLOCKS and kept_bytes + capacity <= KEPT_BYTES
    ):
        kept[kept_blocks].data = data
        kept[kept_blocks].capacity = capacity
        kept_blocks += 1
        kept_bytes += capacity
    else:
        free(data)


cdef bint take_kept(Py_ssize_t wanted, Block *block) noexcept:
    # The block that was given back last and fits: its bytes are still near.
    global kept_blocks, kept_bytes
    cdef int index
    if wanted < LEAST_KEPT:
        return False
    for index in range(kept_blocks - 1, -1, -1):
        if wanted <= kept[index].capacity <= 2 * wanted:
            block[0] = kept[index]
            kept_blocks -= 1
            kept_bytes -= block.capacity
            while index < kept_blocks:
                kept[index] = kept[index + 1]
                index += 1
            return True
    return False


def kept_memory():
    """(blocks, bytes) that wait to be used again."""
    return kept_blocks, kept_bytes


@cython.final
cdef class Memory:
    """Bytes that grow until they are handed out; then they are read as any buffer."""

    cdef uint8_t *data
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity

    def __dealloc__(self):
        give_back(self.data, self.capacity)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.size, 1, flags)

    def __len__(self):
        return self.size

    cdef int room(self, Py_ssize_t more) noexcept nogil:
        cdef Py_ssize_t wanted = self.size + more
        cdef uint8_t *data
        if wanted <= self.capacity:
            return OK
        wanted = max(wanted, 2 * self.capacity)
        data = <uint8_t *> realloc(self.data, wanted)
        if data == NULL:
            return NO_MEMORY
        self.data = data
        self.capacity = wanted
        return OK

    cdef int reserve(self, Py_ssize_t more) except -1:
        # As `room`, at once for all that is to come, in a block that was given back where one fits.
        cdef Block block
        cdef Py_ssize_t wanted = self.size + more
        if wanted <= self.capacity:
            return 0
        if take_kept(wanted, &block):
            memcpy(block.data, self.data, self.size)
            give_back(self.data, self.capacity)
            self.data = block.data
            self.capacity = block.capacity
        elif self.size == 0:
            # Nothing to carry over.
            block.data = <uint8_t *> malloc(wanted)
            if block.data == NULL:
                raise MemoryError
            give_back(self.data, self.capacity)
            self.data = block.data
            self.capacity = wanted
        elif self.room(more):
            raise MemoryError
        return 0


cdef Memory memory(Py_ssize_t capacity):
    cdef Memory made = Memory.__new__(Memory)
    made.reserve(max(capacity, <Py_ssize_t> 64))
    return made
