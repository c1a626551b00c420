# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The functions and classes of the `pure_` files but `pure_columns`, compiled: same arguments, same answers, same
errors. The layout is drawn in `layout`.

Nothing is read before it is bounded: a record's fields by the record's end, the record by the batch's.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_Resize
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

from logkernel.errors import CorruptMessage as _CorruptMessage
from logkernel.errors import InvalidRecord as _InvalidRecord
from logkernel.record import layout as _layout
from logkernel.vocabulary import Record as _Record

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(void *)
    bint PyType_IsSubtype(PyTypeObject *, PyTypeObject *)

cdef object Record = _Record
cdef object CorruptMessage = _CorruptMessage
cdef object InvalidRecord = _InvalidRecord
cdef object Columns = _layout.Columns
cdef object fault = _layout.fault
cdef object plain_headers = None
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
    BAD_NULL = 10
    MIN_RECORD_BYTES = 7
    LOG_OVERHEAD = 12
    LEGACY_MIN_LENGTH = 14

if (_layout.BAD_VARINT, _layout.BAD_NULL, _layout.MIN_RECORD_BYTES) != (BAD_VARINT, BAD_NULL, MIN_RECORD_BYTES):
    raise ImportError("the compiled codec was built from another version of the plain one")


# ---------------------------------------------------------------- decode

include "_decoding.pxi"


# ---------------------------------------------------------------- encode

include "_encoding.pxi"


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


# ---------------------------------------------------------------- sending

include "_sending.pxi"


# ---------------------------------------------------------------- handing

include "_handing.pxi"


# ---------------------------------------------------------------- compaction

include "_compaction.pxi"


# ---------------------------------------------------------------- rows

include "_rows.pxi"
