"""What speaks DLPack and ``__cuda_array_interface__``, made by ctypes: for tests without other libraries."""

import ctypes
from ctypes import POINTER, py_object

CPU, CUDA = 1, 2
READ_ONLY = 1


class Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("id", ctypes.c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("backends", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("axes", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", POINTER(ctypes.c_int64)),
        ("strides", POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


def _python(name, result, *arguments):
    function = getattr(ctypes.pythonapi, name)
    function.restype, function.argtypes = result, arguments
    return function


new_capsule = _python(
    "PyCapsule_New", py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)
capsule_name = _python("PyCapsule_GetName", ctypes.c_char_p, py_object)
is_valid = _python("PyCapsule_IsValid", ctypes.c_int, py_object, ctypes.c_char_p)

# Capsules refer to their names.
NAMES = {False: b"dltensor", True: b"dltensor_versioned"}

# Arrays that were handed out live until they are given back, by address.
_handed_out = {}


@DELETER
def _delete(tensor):
    owners = _handed_out[tensor]
    owners.pop().deleted += 1
    if not owners:
        del _handed_out[tensor]


class ByDLPack:
    """An array that speaks DLPack alone and counts what it hands out and gets back."""

    def __init__(
        self,
        pointer,
        shape,
        dtype=(2, 32, 1),
        strides=None,
        device=(CUDA, 0),
        versioned=True,
        major=1,
        flags=0,
        owner=None,
    ):
        self.device, self.versioned, self.owner = device, versioned, owner
        self.given, self.deleted, self.streams, self.capsules = 0, 0, [], []
        axes = len(shape)
        self.shape = (ctypes.c_int64 * max(axes, 1))(*shape)
        self.strides = None if strides is None else (ctypes.c_int64 * max(axes, 1))(*strides)
        self.tensor = Tensor(
            pointer,
            Device(*device),
            axes,
            DataType(*dtype),
            ctypes.cast(self.shape, POINTER(ctypes.c_int64)),
            ctypes.cast(self.strides, POINTER(ctypes.c_int64)) if strides is not None else None,
            0,
        )
        self.managed = (
            ManagedVersioned(major, 0, None, _delete, flags, self.tensor)
            if versioned
            else Managed(self.tensor, None, _delete)
        )

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **keywords):
        if not self.versioned and "max_version" in keywords:
            raise TypeError("an owner from before version 1")
        self.streams.append(keywords["stream"])
        self.given += 1
        address = ctypes.addressof(self.managed)
        _handed_out.setdefault(address, []).append(self)
        # The consumer gives it back: a capsule that was not consumed has no destructor.
        capsule = new_capsule(address, NAMES[self.versioned], None)
        self.capsules.append(capsule)
        return capsule


class ByInterface:
    """An array that has ``__cuda_array_interface__`` alone."""

    def __init__(self, pointer, shape, typestr="<f4", owner=None, **entries):
        self.owner = owner
        self.__cuda_array_interface__ = {
            "shape": tuple(shape),
            "typestr": typestr,
            "data": (pointer, False),
            "version": 3,
            **entries,
        }
