# A record's way into its batch: the classes and functions of `pure_sending`, compiled. Included by `_loops.pyx`, whose
# helpers and builder it uses.

import time as _time
from types import MemberDescriptorType as _Member
from functools import update_wrapper

from cpython.dict cimport PyDict_GetItemWithError
from cpython.long cimport PyLong_CheckExact

cdef extern from *:
    """
    #include <time.h>
    static int64_t logkernel_wall_ms(void)
    {
        struct timespec now;
        timespec_get(&now, TIME_UTC);
        return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
    }
    """
    int64_t logkernel_wall_ms() noexcept nogil

cdef extern from "Python.h":
    ctypedef void *PyCFunction
    bint PyCFunction_CheckExact(object)
    PyCFunction PyCFunction_GET_FUNCTION(object)

cdef object MEMBER = _Member
cdef dict clocks = _time.__dict__
cdef object clock = _time.time_ns
cdef PyCFunction ticking = PyCFunction_GET_FUNCTION(clock) if PyCFunction_CheckExact(clock) else NULL


cdef int64_t wall_ms() except? -1:
    # What `time.time_ns` says, without a Python object, unless a test has put another clock in its place or into it.
    if (
        PyDict_GetItemWithError(clocks, "time_ns") == <PyObject *> clock
        and ticking != NULL
        and PyCFunction_GET_FUNCTION(clock) == ticking
    ):
        return logkernel_wall_ms()
    return _time.time_ns() // 1_000_000


@cython.final
cdef class Lane:
    # See `pure_sending.Lane`. `builder` is None where `batch` has one of another kind: its records go the usual way.
    cdef readonly object batch
    cdef public int64_t due_ms
    cdef BatchBuilder builder

    def __init__(self):
        self.due_ms = INT64_MAX

    def open(self, batch, builder):
        self.batch = batch
        self.builder = <BatchBuilder> builder if type(builder) is BatchBuilder else None
        self.due_ms = INT64_MAX

    def close(self):
        self.batch = None
        self.builder = None


@cython.final
cdef class Route:
    # See `pure_sending.Route`.
    cdef public list lanes
    cdef public Lane sticky
    cdef public bint keyed


@cython.final
cdef class SendPath:
    # See `pure_sending.SendPath`.
    cdef readonly dict routes
    cdef readonly type kind
    cdef object overdue

    def __init__(self, type kind not None, overdue):
        check_place(kind)
        self.routes = {}
        self.kind = kind
        self.overdue = overdue

    cdef Place put(self, topic, value, key, headers, partition, timestamp_ms):
        cdef PyObject *found = NULL
        cdef Lane lane
        cdef BatchBuilder builder
        cdef object batch
        cdef Place place
        cdef Py_ssize_t index
        cdef int64_t at_ms
        if self.routes is not None:
            found = PyDict_GetItemWithError(self.routes, topic)
        if found == NULL:
            return None
        lane = lane_of(<Route?> <object> found, key, partition)
        if lane is None:
            return None
        if headers is not NOTHING:
            if type(headers) is dict:
                headers = headers.items()
            elif type(headers) is not list and type(headers) is not tuple:
                return None
            headers = tuple(headers)
        at_ms = wall_ms() if timestamp_ms is None else timestamp_ms
        builder, batch = lane.builder, lane.batch  # of each other: nothing runs between the two
        if builder is None:
            return None
        # Without a lock: a builder takes nothing once it is finished.
        index = builder.add(at_ms, key, value, headers)
        if index < 0:
            return None
        place = new_place(self.kind, batch, index, at_ms)
        if at_ms >= lane.due_ms:
            self.overdue(lane)
        return place


cdef Lane lane_of(Route route, object key, object partition):
    # None: the usual way finds it, or says what is wrong.
    cdef Py_ssize_t index, count
    if partition is None and (key is None or not route.keyed):
        return route.sticky
    if route.lanes is None:
        return None
    count = len(route.lanes)
    if partition is not None and PyLong_CheckExact(partition) and 0 <= partition < count:
        index = partition
    elif partition is None and PyBytes_Check(key) and count:
        index = (mix(<const uint8_t *> PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key)) & 0x7FFFFFFF) % count
    else:
        return None
    return <Lane?> route.lanes[index]


cdef extern from *:
    """
    #include "structmember.h"
    typedef struct { PyDescr_COMMON; PyMemberDef *d_member; } logkernel_slot;
    #define logkernel_slot_offset(slot) (((logkernel_slot *) slot)->d_member->offset)
    #define logkernel_at(self, offset) (*(PyObject **) ((char *) self + offset))
    """
    Py_ssize_t logkernel_slot_offset(object)
    PyObject *logkernel_at(object, Py_ssize_t)


@cython.final
cdef class _Slot:
    # Where objects of a class keep their `_path`: to look for it by name took 10 of a record's 190 ns. The class is held,
    # so that no other one can take its address.
    cdef object kind
    cdef Py_ssize_t offset

    cdef int find(self, object kind) except -1:
        slot = kind._path
        if type(slot) is not MEMBER:
            raise TypeError(f"{kind!r} has no slot `_path`")
        self.offset = logkernel_slot_offset(slot)
        self.kind = kind
        return 0


def fast_send(send):
    # See `pure_sending.fast_send`.
    cdef _Slot slot = _Slot()

    def quickly(self, topic, value=None, key=None, headers=(), partition=None, timestamp_ms=None, on_delivery=None):
        cdef Place place
        cdef PyObject *path
        cdef SendPath sending
        if on_delivery is None:
            if type(self) is not slot.kind:
                slot.find(type(self))
            path = logkernel_at(self, slot.offset)
            if path == NULL:
                raise AttributeError("_path")
            sending = <SendPath?> <object> path
            try:
                place = sending.put(topic, value, key, headers, partition, timestamp_ms)
            except (AttributeError, TypeError, ValueError):
                place = None  # `send` says what is wrong
            if place is not None:
                return place
        return send(self, topic, value, key, headers, partition, timestamp_ms, on_delivery)

    return update_wrapper(quickly, send)
