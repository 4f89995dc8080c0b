"""Arrays of NumPy, PyTorch, JAX and CuPy by one set of calls.

A library is found by the module of an array's type and imported only then. Each class has the few
operations that `_edges` needs, on arrays of its own, wherever they are.
"""

import functools

import numpy as np

from . import _nearfield

# The type of device that DLPack calls CUDA.
CUDA = 2


@functools.lru_cache(maxsize=64)
def name_of(dtype):
    """The name of a type of any library, as NumPy has it; NumPy takes microseconds to make it."""
    return str(dtype).rpartition(".")[2]


class NumPy:
    """Arrays on the host; the others have the same calls."""

    module = np
    # Whether new arrays may be written by others before anybody reads them.
    writable = True
    index_types = {"int64", "int32", "uint32"}

    def index_type(self, wanted):
        """The type of indices if this one is asked for: int32 if the library lacks it."""
        if wanted not in NumPy.index_types:
            raise ValueError(f'index is "int64", "int32" or "uint32", not {wanted!r}')
        return wanted if wanted in self.index_types else "int32"

    def gpu(self, array):
        """The number of the GPU that an array is on, None for the host."""
        if isinstance(array, np.ndarray):
            return None
        device = getattr(array, "__dlpack_device__", None)
        if hasattr(array, "__cuda_array_interface__") or (device and device()[0] == CUDA):
            kind = type(array)
            raise TypeError(
                f"{kind.__module__}.{kind.__qualname__} on a GPU: give arrays of CuPy, PyTorch or "
                "JAX, or use DeviceEngine"
            )
        return None

    def stream(self, gpu):
        """The stream that the library works on, by its address, as DeviceEngine takes it, and an
        object that keeps it; None for the default one."""
        return None, None

    def is_recording(self, gpu):
        """Whether the current stream records a CUDA graph."""
        return False

    def to_host(self, array):
        """A NumPy array of the values, without a copy of those on the host."""
        return np.asarray(array)

    def of_host(self, array, like):
        """Copies a NumPy array to where `like` is, as an array of the library."""
        return array

    def of_device(self, array):
        """A copy of a DeviceArray, whose memory the engine writes again; on the GPU."""
        raise NotImplementedError

    def plain(self, array):
        """The values as an array that can be handed to an engine of a GPU."""
        return array

    def lent(self, array):
        """What `plain` has made, or a new array, for an engine on the current stream."""
        return array

    def is_packed(self, array):
        """Whether others may write to an array as it lies in memory."""
        return array.flags.c_contiguous

    def arange(self, count, like):
        return np.arange(count)

    def cast(self, array, dtype):
        return array.astype(dtype, copy=False)

    def concatenate(self, arrays):
        return self.module.concatenate(arrays)

    def repeat(self, array, counts, total):
        """Every element as often as counts says, total elements."""
        return self.module.repeat(array, counts)

    def where(self, condition, yes, no):
        return self.module.where(condition, yes, no)

    def cumsum(self, array):
        return self.module.cumsum(array)

    def bincount(self, array, length):
        """How often each of the numbers below length occurs."""
        return self.module.bincount(array, minlength=length)

    def zeros(self, count, like):
        """Rows of zeros of the type of an array."""
        return self.module.zeros((count, *like.shape[1:]), dtype=like.dtype)

    def inverse(self, places):
        """The inverse of a permutation."""
        order = self.module.empty_like(places)
        order[places] = self.arange(len(places), places)
        return order

    def empty(self, shape, dtype, like):
        """An array of any values, where `like` is."""
        return self.module.empty(shape, dtype)

    def copy(self, array):
        return array.copy()

    def put(self, to, values):
        """Writes to the first rows of an array of the caller; returns these."""
        part = to[: len(values)]
        part[...] = values
        return part


class Torch(NumPy):
    def __init__(self):
        import torch

        self.module = torch
        names = dict(float32="<f4", float64="<f8", int32="<i4", int64="<i8")
        self.typestrs = {getattr(torch, name): typestr for name, typestr in names.items()}

    def gpu(self, array):
        if array.device.type == "cuda":
            return array.device.index or 0
        if array.device.type != "cpu":
            raise TypeError(f"a tensor on {array.device}: it must be on the CPU or a CUDA device")
        return None

    def stream(self, gpu):
        current = self.module.cuda.current_stream(gpu)
        return current.cuda_stream or None, current

    def is_recording(self, gpu):
        with self.module.cuda.device(gpu):
            return self.module.cuda.is_current_stream_capturing()

    def to_host(self, array):
        return array.detach().cpu().numpy()

    def plain(self, array):
        return array.detach().contiguous()

    def lent(self, array):
        # By DLPack each array would take ten times as long. Radii and cells may be on the host.
        typestr = self.typestrs.get(array.dtype)
        if typestr is None or not array.is_cuda:
            return array
        return _nearfield._ArrayAt(array, array.data_ptr(), array.shape, typestr)

    def is_packed(self, array):
        return array.is_contiguous() and not array.requires_grad

    def of_host(self, array, like):
        return self.module.from_numpy(array).to(like.device)

    def of_device(self, array):
        return self.module.from_dlpack(array).clone()

    def arange(self, count, like):
        return self.module.arange(count, device=like.device)

    def cast(self, array, dtype):
        return array.to(getattr(self.module, dtype))

    def concatenate(self, arrays):
        return self.module.cat(arrays)

    def repeat(self, array, counts, total):
        return self.module.repeat_interleave(array, counts, output_size=total)

    def where(self, condition, yes, no):
        # Numbers of Python become tensors of the other's type.
        no = no if self.module.is_tensor(no) else self.module.full_like(yes, no)
        return self.module.where(condition, yes, no)

    def cumsum(self, array):
        return self.module.cumsum(array, 0)

    def zeros(self, count, like):
        return like.new_zeros((count, *like.shape[1:]))

    def empty(self, shape, dtype, like):
        return self.module.empty(shape, dtype=getattr(self.module, dtype), device=like.device)

    def copy(self, array):
        return array.clone()


class Jax(NumPy):
    writable = False

    def __init__(self):
        import jax

        self.jax, self.module = jax, jax.numpy

    @property
    def index_types(self):
        # Without this setting JAX has no 64-bit types.
        return NumPy.index_types if self.jax.config.jax_enable_x64 else {"int32", "uint32"}

    def gpu(self, array):
        if isinstance(array, self.jax.core.Tracer):
            raise TypeError(
                "a traced array has no values: call nearfield outside of jit, or by "
                "jax.pure_callback"
            )
        (device,) = array.devices()
        if device.platform in ("gpu", "cuda"):
            return device.local_hardware_id or 0
        if device.platform != "cpu":
            raise TypeError(f"an array on {device}: it must be on the CPU or a CUDA device")
        return None

    def of_host(self, array, like):
        (device,) = like.devices()
        return self.jax.device_put(array, device)

    def of_device(self, array):
        # The engine's memory may be written when this returns, and JAX has streams of its own.
        return self.jax.block_until_ready(self.module.array(self.jax.dlpack.from_dlpack(array)))

    def arange(self, count, like):
        (device,) = like.devices()
        return self.jax.device_put(self.module.arange(count), device)

    def cast(self, array, dtype):
        return array.astype(dtype)

    def repeat(self, array, counts, total):
        return self.module.repeat(array, counts, total_repeat_length=total)

    def bincount(self, array, length):
        return self.module.bincount(array, length=length)

    def zeros(self, count, like):
        (device,) = like.devices()
        return self.module.zeros((count, *like.shape[1:]), dtype=like.dtype, device=device)

    def inverse(self, places):
        return self.module.zeros_like(places).at[places].set(self.arange(len(places), places))

    def put(self, to, values):
        raise TypeError("out= needs arrays that can be written, and those of JAX cannot")


class CuPy(NumPy):
    def __init__(self):
        import cupy

        self.module = cupy

    def gpu(self, array):
        return array.device.id

    def stream(self, gpu):
        # The current stream is that of the current device.
        with self.module.cuda.Device(gpu):
            current = self.module.cuda.get_current_stream()
        return current.ptr or None, current

    def is_recording(self, gpu):
        _, stream = self.stream(gpu)
        return bool(stream.ptr) and stream.is_capturing()

    def to_host(self, array):
        return array.get()

    def plain(self, array):
        return self.module.ascontiguousarray(array)

    def lent(self, array):
        return _nearfield._ArrayAt(array, array.data.ptr, array.shape, array.dtype.str)

    def of_host(self, array, like):
        with like.device:
            return self.module.asarray(array)

    def of_device(self, array):
        return self.module.from_dlpack(array).copy()

    def arange(self, count, like):
        with like.device:
            return self.module.arange(count)

    def empty(self, shape, dtype, like):
        with like.device:
            return self.module.empty(shape, dtype)

    def repeat(self, array, counts, total):
        # CuPy repeats by counts of the host only; each place finds its element by its end instead.
        ends = self.module.cumsum(counts)
        return array[self.module.searchsorted(ends, self.module.arange(total), side="right")]


_MAKERS = {"torch": Torch, "jax": Jax, "jaxlib": Jax, "cupy": CuPy}
_made = {"numpy": NumPy()}


def library_of(array):
    """The library of an array; NumPy for whatever else there is."""
    # Subclasses of arrays are defined in other modules.
    for base in type(array).__mro__:
        name = base.__module__.partition(".")[0]
        if name in _MAKERS and name not in _made:
            _made[name] = _MAKERS[name]()
        if name in _made:
            return _made[name]
    return _made["numpy"]


def on_host(given):
    """An argument that may be an array of any library, as one of NumPy; anything else as it is."""
    library = library_of(given)
    return given if library is _made["numpy"] else library.to_host(given)
