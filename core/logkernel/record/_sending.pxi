# A record's way into its batch: the classes and functions of `pure_sending`, compiled. Included by `_loops.pyx`, whose
# helpers and builder it uses.

import time as _time
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


cdef class Holder:
    # See `pure_sending.Holder`.
    cdef public object builder
    cdef public int64_t due_ms


cdef class Lane:
    # See `pure_sending.Lane`.
    cdef public Holder open


cdef class Route:
    # See `pure_sending.Route`.
    cdef public list queues
    cdef public Lane sticky
    cdef public bint keyed
    cdef type _kind

    @property
    def kind(self):
        return self._kind

    @kind.setter
    def kind(self, type kind):
        check_place(kind)
        self._kind = kind


cdef class Sending:
    # See `pure_sending.Sending`.
    cdef public dict _fast


cdef Lane lane_of(Route route, object key, object partition):
    # None: the usual way finds it, or says what is wrong.
    cdef Py_ssize_t index, count
    if partition is None and (key is None or not route.keyed):
        return route.sticky
    count = len(route.queues)
    if partition is not None and PyLong_CheckExact(partition) and 0 <= partition < count:
        index = partition
    elif partition is None and PyBytes_Check(key) and count:
        index = (mix(<const uint8_t *> PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key)) & 0x7FFFFFFF) % count
    else:
        return None
    return <Lane?> route.queues[index]


cdef Place put_quickly(Sending self, topic, value, key, headers, partition, timestamp_ms):
    cdef PyObject *found = NULL
    cdef Route route
    cdef Lane lane
    cdef Holder batch
    cdef Place place
    cdef Py_ssize_t index
    cdef int64_t at_ms
    if self._fast is not None:
        found = PyDict_GetItemWithError(self._fast, topic)
    if found == NULL:
        return None
    route = <Route?> <object> found
    lane = lane_of(route, key, partition)
    if lane is None:
        return None
    if headers is not NOTHING:
        if type(headers) is dict:
            headers = headers.items()
        elif type(headers) is not list and type(headers) is not tuple:
            return None
        headers = tuple(headers)
    at_ms = wall_ms() if timestamp_ms is None else timestamp_ms
    batch = lane.open
    if batch is None or route._kind is None or type(batch.builder) is not BatchBuilder:
        return None
    # Without a lock: a builder takes nothing once it is finished.
    index = (<BatchBuilder> batch.builder).add(at_ms, key, value, headers)
    if index < 0:
        return None
    place = new_place(route._kind, batch, index, at_ms)
    if at_ms >= batch.due_ms:
        self._overdue(batch)
    return place


def quick(send):
    # See `pure_sending.quick`.
    def quickly(
        Sending self, topic, value=None, key=None, headers=(), partition=None, timestamp_ms=None, on_delivery=None
    ):
        cdef Place place
        if on_delivery is None:
            place = put_quickly(self, topic, value, key, headers, partition, timestamp_ms)
            if place is not None:
                return place
        return send(self, topic, value, key, headers, partition, timestamp_ms, on_delivery)

    return update_wrapper(quickly, send)
