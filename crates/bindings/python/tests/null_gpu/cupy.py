"""The part of CuPy that ``nearfield.edges`` calls, over memory of the null GPU."""

import ctypes
import math

import numpy as np

driver = ctypes.CDLL("libcuda.so.1")
float32, int64 = np.float32, np.int64


class Counts(ctypes.Structure):
    """Calls of the driver so far, as the null GPU counts them."""

    names = "to_host to_device kernels shared waits contexts page_locked modules".split()
    _fields_ = [(name, ctypes.c_uint64) for name in names]


def counts():
    found = Counts()
    driver.nullGpuCounts(ctypes.byref(found))
    return {name: getattr(found, name) for name in Counts.names}


class Memory:
    def __init__(self, count):
        address = ctypes.c_uint64()
        assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(max(count, 1))) == 0
        self.ptr = address.value

    def __del__(self):
        driver.cuMemFree_v2(ctypes.c_uint64(self.ptr))


class Device:
    id = 0

    def __init__(self, number=0):
        assert number == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class Stream:
    ptr = 0


class cuda:
    Device = Device

    @staticmethod
    def get_current_stream():
        return Stream


class Flags:
    c_contiguous = True


class ndarray:
    device, flags = Device(), Flags
    # That there is one says that this is an array. Arrays of CuPy are taken by their addresses.
    __cuda_array_interface__ = None

    def __init__(self, shape, dtype, data=None):
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.data = Memory(math.prod(shape) * self.dtype.itemsize) if data is None else data

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, rows):
        return ndarray((min(rows.stop, len(self)), *self.shape[1:]), self.dtype, self.data)

    def astype(self, dtype, copy):
        assert np.dtype(dtype) == self.dtype and not copy
        return self


def empty(shape, dtype):
    return ndarray(shape, dtype)


def ascontiguousarray(array):
    return array
