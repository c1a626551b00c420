# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Makes objects of the classes of `attrs_lite` without a Python frame: a call of such a class puts its arguments into slots.

Python calls a class by its `tp_vectorcall` where there is one; no subclass inherits it. What `__init__` would refuse
(too many arguments, one too few, a name that is not known) is left to `__init__`, so that the error is its own.
"""

from sys import intern
from types import MemberDescriptorType

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject

cdef extern from "Python.h":
    """
    #include <structmember.h>
    """
    ctypedef struct PyMemberDef:
        Py_ssize_t offset
    ctypedef struct PyMemberDescrObject:
        PyMemberDef *d_member
    ctypedef PyObject *(*vectorcallfunc)(PyObject *, PyObject *const *, size_t, PyObject *) except NULL
    ctypedef struct PyTypeObject:
        PyObject *(*tp_alloc)(PyTypeObject *, Py_ssize_t) except NULL
        PyObject *(*tp_call)(PyObject *, PyObject *, PyObject *) except NULL
        vectorcallfunc tp_vectorcall
    PyTypeObject PyType_Type
    PyObject *Py_NewRef(PyObject *)
    void Py_DECREF(PyObject *)
    Py_ssize_t PyVectorcall_NARGS(size_t)
    PyObject *PyDict_GetItem(PyObject *, PyObject *)
    PyObject *PyList_New(Py_ssize_t)
    PyObject *PyObject_CallNoArgs(PyObject *)
    PyObject *PyTuple_GET_ITEM(PyObject *, Py_ssize_t)
    Py_ssize_t PyTuple_GET_SIZE(PyObject *)

cdef enum Kind:
    REQUIRED
    DEFAULT
    FACTORY
    LIST        # the factory that nearly all have

cdef struct Slot:
    Py_ssize_t offset       # within the object
    Kind kind
    PyObject *given         # the default, or the factory
    PyObject *name          # of the parameter, interned

cdef class Layout:
    # The slots of one class: first those of its parameters, in order, then those that only defaults and factories fill.
    cdef Slot *slots
    cdef Py_ssize_t parameters, count
    cdef list kept          # what the slots point at

    def __dealloc__(self):
        PyMem_Free(self.slots)

cdef dict LAYOUTS = {}


def install(cls, fields, nothing):
    """Have `cls(...)` fill the slots of `fields` (`attrs_lite.classes.Field`s), of which those with neither default (`nothing`) nor
    factory must be given."""
    cdef Layout layout = Layout()
    cdef Slot *slot
    parameters = [known for known in fields if known.init]
    others = [known for known in fields if not known.init and not (known.factory is None and known.default is nothing)]
    layout.slots = <Slot *> PyMem_Malloc(max(1, len(fields)) * sizeof(Slot))
    if layout.slots == NULL:
        raise MemoryError
    layout.parameters, layout.count = len(parameters), len(parameters) + len(others)
    layout.kept = []
    for at, known in enumerate(parameters + others):
        slot = &layout.slots[at]
        member = next(base.__dict__[known.name] for base in cls.__mro__ if known.name in base.__dict__)
        if type(member) is not MemberDescriptorType:
            raise TypeError(f"{cls.__qualname__}.{known.name} is no slot")
        given, name = known.default if known.factory is None else known.factory, intern(known.alias)
        layout.kept += (given, name)
        slot.offset = (<PyMemberDescrObject *> member).d_member.offset
        slot.given, slot.name = <PyObject *> given, <PyObject *> name
        if known.factory is not None:
            slot.kind = LIST if known.factory is list else FACTORY
        else:
            slot.kind = REQUIRED if known.default is nothing else DEFAULT
    LAYOUTS[cls] = layout
    (<PyTypeObject *> cls).tp_vectorcall = make


cdef inline PyObject **at_slot(PyObject *made, Slot *slot) noexcept:
    return <PyObject **> (<char *> made + slot.offset)


cdef PyObject *make(PyObject *cls, PyObject *const *given, size_t flagged, PyObject *names) except NULL:
    cdef Layout layout = <Layout> PyDict_GetItem(<PyObject *> LAYOUTS, cls)
    cdef Py_ssize_t count = PyVectorcall_NARGS(flagged)
    cdef Py_ssize_t named = 0 if names == NULL else PyTuple_GET_SIZE(names)
    cdef Py_ssize_t i, j
    cdef PyObject *made
    if count > layout.parameters:
        return by_init(cls, given, count, names)
    made = (<PyTypeObject *> cls).tp_alloc(<PyTypeObject *> cls, 0)
    for i in range(count):
        at_slot(made, &layout.slots[i])[0] = Py_NewRef(given[i])
    for j in range(named):
        i = count
        while i < layout.parameters and layout.slots[i].name != PyTuple_GET_ITEM(names, j):
            i += 1
        if i == layout.parameters:
            Py_DECREF(made)
            return by_init(cls, given, count, names)
        at_slot(made, &layout.slots[i])[0] = Py_NewRef(given[count + j])
    for i in range(count, layout.count):
        if at_slot(made, &layout.slots[i])[0] == NULL:
            if layout.slots[i].kind == REQUIRED:
                Py_DECREF(made)
                return by_init(cls, given, count, names)
            at_slot(made, &layout.slots[i])[0] = filled(&layout.slots[i])
            if at_slot(made, &layout.slots[i])[0] == NULL:
                Py_DECREF(made)
                return NULL
    return made


cdef inline PyObject *filled(Slot *slot) noexcept:
    # A new reference, or NULL with an error set.
    if slot.kind == DEFAULT:
        return Py_NewRef(slot.given)
    return PyList_New(0) if slot.kind == LIST else PyObject_CallNoArgs(slot.given)


cdef PyObject *by_init(PyObject *cls, PyObject *const *given, Py_ssize_t count, PyObject *names) except NULL:
    # The way of all other classes.
    cdef Py_ssize_t i
    arguments, named = tuple([<object> given[i] for i in range(count)]), {}
    if names != NULL:
        for i in range(PyTuple_GET_SIZE(names)):
            named[<object> PyTuple_GET_ITEM(names, i)] = <object> given[count + i]
    return PyType_Type.tp_call(cls, <PyObject *> arguments, <PyObject *> named)
