"""What an engine on a GPU refuses, and takes, of arrays that only claim to be there; without a GPU."""

import gc
import weakref

import nearfield
import numpy as np
import pytest
from device_arrays import CPU, NAMES, READ_ONLY, ByDLPack, ByInterface, capsule_name, new_capsule
from nearfield._nearfield import _ArrayAt as ArrayAt
from nearfield._nearfield import _check_apart as check_apart
from nearfield._nearfield import _check_points as check

# Nothing looks there.
POINTER = 0x7F00_0000_0000


def refused(error, text, *arguments, **keywords):
    with pytest.raises(error, match=text):
        check(*arguments, **keywords)


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("strides", [None, (3, 1)])
def test_a_tensor_is_taken_once_and_given_back(versioned, strides):
    array = ByDLPack(POINTER, (5, 3), strides=strides, versioned=versioned)
    assert check(array, stream=1) == (POINTER, [5, 3])
    assert (array.given, array.deleted, array.streams) == (1, 1, [1])
    assert capsule_name(array.capsules[0]) == b"used_" + NAMES[versioned]
    assert check(array, stream=POINTER) == (POINTER, [5, 3])
    assert (array.given, array.deleted, array.streams[1]) == (2, 2, POINTER)


@pytest.mark.parametrize("strides", [{}, {"strides": None}, {"strides": (12, 4)}])
def test_the_interface_is_read(strides):
    assert check(ByInterface(POINTER, (5, 3), **strides)) == (POINTER, [5, 3])
    assert check(ByInterface(0, (0, 3), **strides)) == (0, [0, 3])
    assert check(ByInterface(POINTER, (5, 3), stream=1, **strides)) == (POINTER, [5, 3])


def test_an_array_by_its_address_is_read_and_keeps_its_owner():
    owner = ByInterface(POINTER, (5, 3))
    array = ArrayAt(owner, POINTER, (5, 3), "<f4")
    held = weakref.ref(owner)
    del owner
    assert check(array) == (POINTER, [5, 3]) and held() is not None
    del array
    gc.collect()
    assert held() is None
    refused(TypeError, "float32, not int64", ArrayAt(None, POINTER, (5, 3), "<i8"))
    refused(ValueError, r"\(n, 3\), not \(15,\)", ArrayAt(None, POINTER, (15,), "<f4"))
    refused(ValueError, "cannot lie at address 0x0", ArrayAt(None, 0, (5, 3), "<f4"))
    for wrong in [(None, -1, (5, 3), "<f4"), (None, POINTER, 5, "<f4"), (None, POINTER, (5, 3), 4)]:
        with pytest.raises((TypeError, OverflowError)):
            ArrayAt(*wrong)


@pytest.mark.parametrize("array", [ByDLPack, ByInterface])
def test_wrong_shapes_are_named(array):
    for shape, text in [((5, 2), r"\(n, 3\), not \(5, 2\)"), ((15,), r"not \(15,\)"), ((), r"not \(\)")]:
        refused(ValueError, "points must have the shape .*" + text, array(POINTER, shape))
    refused(ValueError, "points: a shape of", array(POINTER, (-1, 3)))
    refused(ValueError, "cannot lie at address 0x0", array(0, (5, 3)))
    refused(ValueError, "cannot lie at address", array(POINTER + 1, (5, 3)))
    refused(ValueError, "cannot lie at address", array(POINTER, (2**62, 3)))


def test_wrong_types_are_named():
    refused(TypeError, "float32, not float64", ByInterface(POINTER, (5, 3), "<f8"))
    refused(TypeError, "float32, not int32", ByInterface(POINTER, (5, 3), "<i4"))
    refused(TypeError, 'float32, not ">f4"', ByInterface(POINTER, (5, 3), ">f4"))
    refused(TypeError, "float32, not", ByInterface(POINTER, (5, 3), "ü"))
    refused(TypeError, "float32, not float64", ByDLPack(POINTER, (5, 3), (2, 64, 1)))
    refused(TypeError, "float32, not uint32", ByDLPack(POINTER, (5, 3), (1, 32, 1)))
    refused(TypeError, "float32, not float32 by 4", ByDLPack(POINTER, (5, 3), (2, 32, 4)))
    refused(TypeError, "float32, not type 99", ByDLPack(POINTER, (5, 3), (99, 32, 1)))


def test_arrays_with_gaps_are_refused():
    for strides in [(4, 1), (1, 5), (-3, 1), (0, 1)]:
        refused(ValueError, "contiguous", ByDLPack(POINTER, (5, 3), strides=strides))
        in_bytes = tuple(4 * stride for stride in strides)
        refused(ValueError, "contiguous", ByInterface(POINTER, (5, 3), strides=in_bytes))
    refused(ValueError, "contiguous", ByInterface(POINTER, (5, 3), strides=(12,)))
    # A stride that nothing is stepped over by says nothing.
    assert check(ByDLPack(POINTER, (1, 3), strides=(99, 1))) == (POINTER, [1, 3])
    assert check(ByDLPack(POINTER, (0, 3), strides=(0, 0))) == (POINTER, [0, 3])


def test_arrays_elsewhere_are_refused_before_they_are_exported():
    array = ByDLPack(POINTER, (5, 3), device=(CPU, 0))
    refused(TypeError, "points: an array of the CPU: use nearfield.Engine", array)
    assert array.given == 0
    refused(ValueError, "on GPU 1, but the engine is on GPU 0", ByDLPack(POINTER, (5, 3), device=(2, 1)))
    assert check(ByDLPack(POINTER, (5, 3), device=(2, 1)), gpu=1) == (POINTER, [5, 3])
    refused(TypeError, "type 10 of DLPack", ByDLPack(POINTER, (5, 3), device=(10, 0)))
    refused(TypeError, "use nearfield.Engine", [[0.0, 0.0, 0.0]])
    refused(TypeError, "use nearfield.Engine", None)
    if hasattr(np.ndarray, "__dlpack__"):
        refused(TypeError, "an array of the CPU: use nearfield.Engine", np.zeros((5, 3), np.float32))


def test_an_array_that_contradicts_itself_is_given_back():
    array = ByDLPack(POINTER, (5, 3))
    array.managed.tensor.device.kind = CPU
    refused(TypeError, "an array of the CPU", array)
    assert (array.given, array.deleted) == (1, 1)
    array = ByDLPack(POINTER, (5, 3), major=2)
    refused(BufferError, "version 2 of DLPack", array)
    assert (array.given, array.deleted) == (1, 1)
    for axes in (-1, 1000):
        array = ByDLPack(POINTER, (5, 3))
        array.managed.tensor.axes = axes
        refused(TypeError, f"a tensor of {axes} axes", array)
        assert (array.given, array.deleted) == (1, 1)
    array = ByDLPack(POINTER, (5, 3))
    array.managed.tensor.shape = None
    refused(TypeError, "a tensor without a shape", array)
    array.managed.tensor.byte_offset = 2**64 - 1
    array.managed.tensor.shape = array.tensor.shape
    refused(TypeError, "beyond all memory", array)
    assert (array.given, array.deleted) == (2, 2)


def test_malformed_objects_are_type_errors():
    class Odd:
        def __init__(self, capsule, device=(2, 0)):
            self.capsule, self.device = capsule, device

        def __dlpack_device__(self):
            return self.device

        def __dlpack__(self, **_):
            return self.capsule

    array = ByDLPack(POINTER, (5, 3))
    used = array.__dlpack__(stream=1)
    check(Odd(used))
    refused(TypeError, "not a tensor, or was used before", Odd(used))
    assert array.deleted == 1
    refused(TypeError, "not a tensor", Odd(new_capsule(POINTER, b"other", None)))
    refused(TypeError, "an address that is none", Odd(new_capsule(POINTER + 1, NAMES[True], None)))
    refused(TypeError, "no PyCapsule", Odd(3))
    refused(TypeError, "__dlpack_device__", Odd(used, device="gpu"))

    class Interface:
        def __init__(self, interface):
            self.__cuda_array_interface__ = interface

    good = ByInterface(POINTER, (5, 3)).__cuda_array_interface__
    for key, value, text in [
        ("shape", 5, "no shape"),
        ("shape", (5, "x"), "no shape"),
        ("typestr", 4, "no typestr"),
        ("data", POINTER, "no data"),
        ("data", (-1, False), "no data"),
        ("strides", "ab", "strides"),
        ("stream", "x", "a stream that is not an integer"),
        ("mask", good, "a mask"),
    ]:
        refused(TypeError, text, Interface({**good, key: value}))
    refused(ValueError, "stream 0", Interface({**good, "stream": 0}))
    refused(TypeError, "no dictionary", Interface("x"))
    refused(TypeError, "no shape", Interface({}))


def test_errors_of_the_owner_are_passed_on():
    class Broken:
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, **_):
            raise BufferError("lent out")

        @property
        def __cuda_array_interface__(self):
            raise ZeroDivisionError

    refused(BufferError, "lent out", Broken())
    del Broken.__dlpack__
    refused(ZeroDivisionError, None, Broken())


def test_read_only_arrays_are_read_and_not_written():
    for array in [
        ByDLPack(POINTER, (5, 3), flags=READ_ONLY),
        ByInterface(POINTER, (5, 3), data=(POINTER, True)),
    ]:
        assert check(array) == (POINTER, [5, 3])
        refused(ValueError, "points is read-only", array, writable=True)
    assert check(ByDLPack(POINTER, (5, 3)), writable=True) == (POINTER, [5, 3])


def test_nothing_is_kept_after_a_call():
    array = ByInterface(POINTER, (5, 3))
    before = len(gc.get_referrers(array))
    for _ in range(10):
        check(array)
    assert len(gc.get_referrers(array)) == before


def test_settings_are_checked_before_a_gpu_is_looked_for():
    for stream, text in [(0, "stream 0"), (-1, "stream -1"), (2, "another in every thread")]:
        with pytest.raises(ValueError, match=text):
            nearfield.DeviceEngine(0.1, stream=stream)
    for radius in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="radius"):
            nearfield.DeviceEngine(radius)
    with pytest.raises(ValueError):
        nearfield.DeviceEngine(0.1, box=(1, -1, 1))
    with pytest.raises(ValueError, match="finite"):
        nearfield.DeviceEngine(0.1, within=((0, 0, 0), (1, 1, float("inf"))))
    for box in (np.ones((2, 2)), "wide"):
        with pytest.raises(ValueError, match="three lengths, or three vectors"):
            nearfield.DeviceEngine(0.1, box=box)
    with pytest.raises(ValueError):
        nearfield.DeviceEngine(0.1, box=np.ones((3, 3)))


def test_without_that_gpu_the_error_says_what_is_missing():
    with pytest.raises(RuntimeError, match="device gpu:99 is not available: "):
        nearfield.DeviceEngine(0.1, gpu=99)


@pytest.mark.parametrize("array", [ByDLPack, ByInterface])
def test_results_over_what_is_read_are_refused(array):
    mass = array(POINTER, (100,))
    for begin in (-99, -50, 0, 1, 99):
        with pytest.raises(ValueError, match="out shares memory with mass"):
            check_apart(mass, array(POINTER + 4 * begin, (100,)))
    for begin in (-200, -100, 100, 200):
        check_apart(mass, array(POINTER + 4 * begin, (100,)))
    check_apart(mass, array(POINTER + 40, (0,)))
