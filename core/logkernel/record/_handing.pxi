# Rows handed out one by one: the classes of `pure_handing`, compiled. Included by `_loops.pyx`.

from cpython.list cimport PyList_GET_SIZE


cdef class Unread:
    # See `pure_handing.Unread`.
    cdef list rows
    cdef Py_ssize_t at

    def __cinit__(self):
        self.rows = []

    def __len__(self):
        return PyList_GET_SIZE(self.rows) - self.at

    def fill(self, rows):
        self.rows = list(rows)
        self.at = 0

    def rest(self):
        return self.rows[self.at :]

    cdef inline object next(self):
        # None where there is no more; no row is None.
        cdef object row
        if self.at >= PyList_GET_SIZE(self.rows):
            return None
        row = self.rows[self.at]
        self.rows[self.at] = None
        self.at += 1
        return row

    def pop(self):
        row = self.next()
        if row is None:
            raise IndexError("all were handed out")
        return row


cdef class Handing:
    # See `pure_handing.Handing`.
    cdef Unread unread
    cdef object more

    def __init__(self, Unread unread not None, more):
        self.unread = unread
        self.more = more

    def __iter__(self):
        return self

    def __next__(self):
        row = self.unread.next()
        return self.more() if row is None else row
