"""The engine for arrays on a GPU against the engine on the CPU, with nothing but the driver and NumPy.

Skipped without a GPU or what kernels are compiled with; fails then if NEARFIELD_REQUIRE_GPU=1.
"""

import ctypes
import gc
import os
import threading

import nearfield
import numpy as np
import pytest
from nearfield import _batches, _edges, _gpu, _libraries
from device_arrays import NAMES, ByDLPack, ByInterface, capsule_name, is_valid

REQUIRED = os.environ.get("NEARFIELD_REQUIRE_GPU") == "1"


def skip(why):
    if REQUIRED:
        pytest.fail(f"NEARFIELD_REQUIRE_GPU=1, but {why}")
    pytest.skip(why)


class Driver:
    """The calls of the driver that tests need; the primary context of GPU 0 is current in between."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            skip(f"there is no driver: {error}")
        if (status := self.library.cuInit(0)) != 0:
            skip(f"the driver does not start: cuInit gave {status}")
        count = ctypes.c_int()
        self("cuDeviceGetCount", ctypes.byref(count))
        if count.value == 0:
            skip("the driver shows no GPU")
        self.gpus = count.value
        self.context = self.retain(0)
        self("cuCtxPushCurrent_v2", self.context)

    def __call__(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        assert status == 0, f"{name} gave {status}"

    def retain(self, gpu):
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self("cuDeviceGet", ctypes.byref(device), gpu)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        return context

    def close(self):
        gc.collect()
        self("cuCtxSynchronize")
        self("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        self("cuDevicePrimaryCtxRelease_v2", 0)

    def current(self):
        context = ctypes.c_void_p()
        self("cuCtxGetCurrent", ctypes.byref(context))
        return context.value

    def read(self, pointer, shape, dtype):
        values = np.empty(shape, dtype)
        if values.size:
            self("cuCtxSynchronize")
            host = ctypes.c_void_p(values.ctypes.data)
            size = ctypes.c_size_t(values.nbytes)
            self("cuMemcpyDtoH_v2", host, ctypes.c_uint64(pointer), size)
        return values


class Block:
    """Memory on the GPU, freed with the last object that owns it."""

    def __init__(self, cuda, values):
        self.cuda, self.shape, self.dtype = cuda, values.shape, values.dtype
        values = np.ascontiguousarray(values)
        pointer = ctypes.c_uint64()
        cuda("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(values.nbytes, 1)))
        self.pointer = pointer.value
        if values.nbytes:
            host = ctypes.c_void_p(values.ctypes.data)
            size = ctypes.c_size_t(values.nbytes)
            cuda("cuMemcpyHtoD_v2", ctypes.c_uint64(self.pointer), host, size)
            # The copy may still be under way when the call returns.
            cuda("cuCtxSynchronize")

    def __del__(self):
        if hasattr(self, "pointer"):
            self.cuda.library.cuMemFree_v2(ctypes.c_uint64(self.pointer))

    def values(self):
        return self.cuda.read(self.pointer, self.shape, self.dtype)


def by_dlpack(block):
    codes = {"float": 2, "uint": 1, "int": 0, "bool": 6}
    dtype = (codes[block.dtype.name.rstrip("0123456789")], 8 * block.dtype.itemsize, 1)
    return ByDLPack(block.pointer, block.shape, dtype, owner=block)


def by_old_dlpack(block):
    return ByDLPack(block.pointer, block.shape, versioned=False, owner=block)


def by_interface(block):
    return ByInterface(block.pointer, block.shape, block.dtype.str, owner=block)


def by_interface_on_a_stream(block):
    return ByInterface(block.pointer, block.shape, block.dtype.str, owner=block, stream=2)


PROTOCOLS = [by_dlpack, by_old_dlpack, by_interface, by_interface_on_a_stream]


@pytest.fixture(scope="module")
def cuda():
    driver = Driver()
    try:
        nearfield.DeviceEngine(0.1)
    except RuntimeError as error:
        driver.close()
        skip(f"there is no engine: {error}")
    yield driver
    driver.close()


@pytest.fixture
def stream(cuda):
    """A stream that is not ordered with the default one."""
    stream = ctypes.c_void_p()
    cuda("cuStreamCreate", ctypes.byref(stream), 1)
    yield stream.value
    gc.collect()
    cuda("cuStreamSynchronize", stream)
    cuda("cuStreamDestroy_v2", stream)


def cloud(points=3000, seed=1):
    return np.random.default_rng(seed).random((points, 3)).astype(np.float32)


def on_cpu(points, radius, **settings):
    engine = nearfield.Engine(radius, device="cpu", **settings)
    for set in points:
        engine.add_points(set)
    return engine


TILTED = ((1.0, 0.0, 0.0), (0.25, 1.0, 0.0), (0.0, -0.25, 1.0))


def sets(lists):
    """Lists from the device, with every neighbour as often as it is there."""
    start, count, indices = (
        part.copy_to_host() for part in (lists.start, lists.count, lists.indices)
    )
    assert (start.dtype, count.dtype, indices.dtype) == (np.uint64, np.uint32, np.uint32)
    assert len(lists) == len(start) == len(count)
    return [sorted(indices[int(s) : int(s) + int(c)].tolist()) for s, c in zip(start, count)]


def expected(lists):
    return [sorted(lists[i].tolist()) for i in range(len(lists))]


def repeated(engine, work):
    """What `work` gives once it is valid, and how often it had to be done."""
    for tries in range(1, 6):
        result = work()
        if engine.finish():
            return result, tries
    pytest.fail("finish() never found the results valid")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("box", [None, (1.0, 0.0, 1.0), TILTED])
def test_free_positions_have_the_neighbours_that_the_cpu_finds(cuda, protocol, box):
    points, radius = cloud(), 0.1
    engine = nearfield.DeviceEngine(radius, box=box, half=True)
    set = engine.add_points(protocol(Block(cuda, points)))
    reference = on_cpu([points], radius, box=box)
    before = None
    for seed in range(3):
        probes = cloud(500 + 100 * seed, 7 + seed)
        lists, _ = repeated(engine, lambda: engine.query(protocol(Block(cuda, probes)), set))
        assert sets(lists) == expected(reference.query(probes))
        assert len(lists) == len(probes)
        if before is not None:
            with pytest.raises(RuntimeError):
                before.count.copy_to_host()
        before = lists
    assert len(engine) == 2
    with pytest.raises(IndexError, match="no point set 5"):
        engine.query(protocol(Block(cuda, points)), 5)
    with pytest.raises(ValueError, match="positions"):
        engine.query(protocol(Block(cuda, points[:, 0].copy())))
    assert engine.finish()


@pytest.mark.parametrize("precision", ["f32", "f64"])
@pytest.mark.parametrize("half", [False, True])
def test_lists_with_a_skin_of_arrays_of_the_host_are_those_of_the_cpu(cuda, precision, half):
    points = cloud().astype(np.float32 if precision == "f32" else np.float64)
    settings = dict(box=(1.0, 0.0, 1.0), precision=precision, half=half, sorted=True)
    on_cpu, on_gpu = [
        nearfield.VerletLists(0.1, 0.02, device=device, **settings) for device in ("cpu", "gpu:0")
    ]
    assert on_cpu.add_points(points) == on_gpu.add_points(points)
    random = np.random.default_rng()
    for _ in range(6):
        points += random.normal(0, 0.002, points.shape).astype(points.dtype)
        assert on_cpu.update(0, points) == on_gpu.update(0, points)
        for one, other in zip(on_cpu.pair_geometry("ijSDd"), on_gpu.pair_geometry("ijSDd")):
            assert one.dtype == other.dtype and np.array_equal(one, other)
        # Candidates come in any order.
        for one, other in zip(on_cpu.neighbors(), on_gpu.neighbors(), strict=True):
            assert sorted(one) == sorted(other)
    assert on_gpu.report()["device"] == "gpu:0"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("own_stream", [False, True])
@pytest.mark.parametrize("box", [None, (1.0, 0.0, 1.0), TILTED])
def test_lists_counts_and_density_are_those_of_the_cpu(cuda, stream, protocol, own_stream, box):
    points, others, radius = cloud(), cloud(700, 2), 0.1
    mass = np.random.default_rng(3).random(len(others)).astype(np.float32)
    engine = nearfield.DeviceEngine(radius, box=box, stream=stream if own_stream else None)
    assert engine.stream == (stream if own_stream else 1)
    numbers = [engine.add_points(protocol(Block(cuda, set))) for set in (points, others)]
    assert numbers == [0, 1]
    assert len(engine) == 2
    assert [engine.points(set) for set in numbers] == [len(points), len(others)]
    mass_on_gpu = protocol(Block(cuda, mass))

    def work():
        lists = engine.neighbors(), engine.neighbors(0, 1)
        return lists, engine.count_neighbors(0, 1), engine.sph_density(mass_on_gpu, 0, 1)

    (lists, count, density), _ = repeated(engine, work)
    reference = on_cpu([points, others], radius, box=box)
    assert sets(lists[0]) == expected(reference.neighbors())
    assert sets(lists[1]) == expected(reference.neighbors(0, 1))
    assert np.array_equal(count.copy_to_host(), reference.count_neighbors(0, 1))
    on_host = density.copy_to_host()
    assert (density.shape, density.dtype, len(density)) == ((len(points),), np.float32, len(points))
    np.testing.assert_allclose(on_host, reference.sph_density(mass, 0, 1), rtol=1e-4, atol=1e-5)
    # Other libraries see the same memory.
    there = density.__cuda_array_interface__
    assert there["version"] == 3 and there["stream"] == engine.stream
    assert np.array_equal(cuda.read(there["data"][0], there["shape"], there["typestr"]), on_host)


def test_data_of_points_on_the_gpu_are_those_of_the_host(cuda):
    points, radius = cloud(2000), 0.15
    random = np.random.default_rng(11)
    types, molecules = random.integers(0, 2, 2000), (np.arange(2000) // 3).astype(np.uint32)
    mask = random.random(2000) < 0.3
    radii = random.uniform(0.05, radius, 2000).astype(np.float32)
    radii = radii.astype(np.float32)
    cutoffs = {"cutoffs": [[radius, 0.1], [0.1, 0.0]]}
    for way, settings, give in [
        (by_interface, cutoffs, [("set_types", types), ("set_molecules", molecules)]),
        (by_dlpack, cutoffs, [("set_types", types.astype(np.int32)), ("set_targets", mask)]),
        (by_dlpack, {"rule": "gather"}, [("set_radii", radii)]),
        (by_interface, {"rule": "symmetric"}, [("set_radii", radii), ("set_targets", mask)]),
    ]:
        found = []
        for place in (lambda data: way(Block(cuda, data)), lambda data: data):
            engine = nearfield.DeviceEngine(radius, box=(1.0, 0.0, 1.0), **settings)
            engine.add_points(by_interface(Block(cuda, points)))
            for name, data in give:
                getattr(engine, name)(0, place(data))
            lists, _ = repeated(engine, engine.neighbors)
            found.append(sets(lists))
        assert found[0] == found[1] and sum(map(len, found[0])) > 1000


def test_data_of_points_on_the_gpu_that_cannot_be_used_are_named(cuda):
    engine = nearfield.DeviceEngine(0.15, rule="gather")
    engine.add_points(by_interface(Block(cuda, cloud(100))))
    radii = np.full(100, 0.1, np.float32)
    radii[7] = -1
    engine.set_radii(0, by_interface(Block(cuda, radii)))
    engine.neighbors()
    with pytest.raises(ValueError, match="point 7 has the radius -1"):
        engine.finish()
    with pytest.raises(ValueError, match="no radii"):
        engine.neighbors()
    for data, error, text in [
        (radii[:9], ValueError, r"shape \(100,\)"),
        (radii.astype(np.float64), TypeError, "float32"),
    ]:
        with pytest.raises(error, match=text):
            engine.set_radii(0, by_interface(Block(cuda, data)))
    with pytest.raises(TypeError, match="mask of type bool"):
        engine.set_targets(0, by_interface(Block(cuda, np.arange(100))))
    with pytest.raises(TypeError, match="whole numbers"):
        engine.set_molecules(0, by_interface(Block(cuda, radii)))


def test_filters_and_radii_are_those_of_the_cpu(cuda):
    points, radius = cloud(2000), 0.15
    random = np.random.default_rng(7)
    types, molecules = random.integers(0, 2, 2000), np.arange(2000) // 3
    bonds = np.stack([np.arange(1999), np.arange(1, 2000)], axis=1)
    mask = random.random(2000) < 0.3
    radii = random.uniform(0.05, radius, 2000).astype(np.float32)
    cutoffs = [[radius, 0.1], [0.1, 0.0]]
    for settings, give in [
        ({"cutoffs": cutoffs}, [("set_types", types), ("set_molecules", molecules)]),
        ({"cutoffs": cutoffs, "k": 5}, [("set_types", types), ("set_exclusions", bonds)]),
        ({"rule": "gather"}, [("set_radii", radii), ("set_targets", mask)]),
        ({"rule": "symmetric", "k": 3}, [("set_radii", radii), ("set_targets", [5, 7])]),
    ]:
        on_gpu = nearfield.DeviceEngine(radius, box=(1.0, 0.0, 1.0), **settings)
        on_gpu.add_points(by_interface(Block(cuda, points)))
        reference = on_cpu([points], radius, box=(1.0, 0.0, 1.0), **settings)
        for name, data in give:
            getattr(on_gpu, name)(0, data)
            getattr(reference, name)(0, data)
        (lists, count), _ = repeated(
            on_gpu, lambda: (on_gpu.neighbors(), on_gpu.count_neighbors())
        )
        assert sets(lists) == expected(reference.neighbors())
        assert np.array_equal(count.copy_to_host(), reference.count_neighbors())
        on_gpu.set_targets(0, None)
        on_gpu.clear_exclusions(0)
        reference.set_targets(0, None)
        reference.clear_exclusions(0)
        lists, _ = repeated(on_gpu, on_gpu.neighbors)
        assert sets(lists) == expected(reference.neighbors())


@pytest.mark.parametrize("protocol", [by_dlpack, by_interface_on_a_stream])
@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_some_points_have_the_neighbours_that_the_cpu_finds(cuda, stream, protocol, precision):
    points = cloud(2000).astype("float32" if precision == "f32" else "float64")
    settings = {"box": (1.0, 0.0, 1.0), "precision": precision}
    engine = nearfield.DeviceEngine(0.1, sorted=True, stream=stream, **settings)
    engine.add_points(protocol(Block(cuda, points)))
    reference = on_cpu([points], 0.1, **settings)
    random = np.random.default_rng(3)
    for dtype, count in [("uint32", 70), ("int64", 2500), ("int32", 0)]:
        asked = random.integers(0, 2000, count).astype(dtype)
        given = protocol(Block(cuda, asked))
        lists, _ = repeated(engine, lambda: engine.neighbors_of(given))
        assert sets(lists) == expected(reference.neighbors_of(asked))
    whole, _ = repeated(engine, engine.neighbors)
    engine.neighbors_of(given)
    assert whole.count.copy_to_host().sum() == reference.count_neighbors().sum()
    with pytest.raises(RuntimeError, match="out of date"):
        lists.count.copy_to_host()
    engine.neighbors_of(protocol(Block(cuda, np.array([5, 2000], dtype=np.int32))))
    with pytest.raises(IndexError, match="no point 2000"):
        engine.finish()
    with pytest.raises(TypeError, match="whole numbers"):
        engine.neighbors_of(protocol(Block(cuda, points[:, 0])))


def test_lists_that_do_not_fit_come_in_chunks(cuda):
    points, limit = cloud(3000), 40_000
    engine = nearfield.DeviceEngine(0.1, box=(1.0, 1.0, 1.0), memory_limit=limit)
    engine.add_points(by_dlpack(Block(cuda, points)))
    reference = on_cpu([points], 0.1, box=(1.0, 1.0, 1.0))
    with pytest.raises(MemoryError, match="memory_limit is 40000"):
        engine.neighbors()
    chunks = engine.chunks()
    assert chunks.pairs == reference.count_neighbors().sum()
    found, before = {}, None
    for numbers, lists in chunks:
        assert 16 * len(numbers) + 4 * len(lists.indices) <= limit
        if before is not None:
            with pytest.raises(RuntimeError):
                before.copy_to_host()
        before = numbers
        found.update(zip(numbers.copy_to_host().tolist(), sets(lists)))
    assert [found[point] for point in range(3000)] == expected(reference.neighbors())
    pairs = 0
    for numbers, lists in engine.chunks(quantities="ijD", memory=200_000):
        i, j = lists.targets.copy_to_host(), lists.indices.copy_to_host()
        assert set(i) <= set(numbers.copy_to_host())
        moved = points[j].astype(np.float64) - points[i]
        moved -= np.rint(moved)
        np.testing.assert_allclose(lists.displacements.copy_to_host(), moved, atol=1e-6)
        pairs += len(i)
    assert pairs == chunks.pairs
    chunks = engine.chunks()
    engine.update(0, by_dlpack(Block(cuda, points)))
    with pytest.raises(RuntimeError, match="changed"):
        next(chunks)
    with pytest.raises(MemoryError, match="memory limit is 50"):
        engine.chunks(memory=50)


@pytest.mark.parametrize("protocol", [by_dlpack, by_interface_on_a_stream])
@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_lists_with_a_skin_follow_points_on_the_gpu(cuda, stream, protocol, precision):
    random = np.random.default_rng(5)
    points = random.random((1500, 3)).astype("float32" if precision == "f32" else "float64")
    types = random.integers(0, 2, 1500)
    settings = {
        "box": (1.0, 0.0, 1.0), "precision": precision, "cutoffs": [[0.12, 0.08], [0.08, 0.0]],
    }
    lists = nearfield.DeviceVerletLists(0.12, 0.03, stream=stream, **settings)
    assert lists.radius == pytest.approx(0.12) and lists.list_radius == pytest.approx(0.15)
    atoms = lists.add_points(protocol(Block(cuda, points)))
    lists.set_types(atoms, protocol(Block(cuda, types)))
    lists.set_molecules(atoms, np.arange(1500) // 3)
    text = """void pair(const float*, const Pair& pair, const float*, const float*, float* result) {
                  result[0] = 1.0f;
              }"""
    with pytest.raises(RuntimeError, match="refresh"):
        lists.traverse(text)
    assert lists.refresh() and not lists.refresh()
    reference = on_cpu([points], 0.12, **settings)
    reference.set_types(0, types)
    reference.set_molecules(0, np.arange(1500) // 3)
    for _ in range(8):
        points += random.normal(0, 0.002, points.shape).astype(points.dtype)
        lists.update(atoms, protocol(Block(cuda, points)))
        reference.update(0, points)
        found, tries = repeated(lists, lambda: lists.traverse(text))
        assert tries <= 2
        counted = reference.count_neighbors().astype(np.float32)
        assert np.array_equal(found.copy_to_host(), counted)
    assert 2 <= lists.builds < 8 and lists.displacement(atoms) >= 0
    assert (lists.points(atoms), len(lists)) == (1500, 1)
    lists.remove_set(atoms)
    with pytest.raises(IndexError):
        lists.points(atoms)
    with pytest.raises(ValueError, match="skin"):
        nearfield.DeviceVerletLists(0.1, -1.0)


QUANTITIES = ["targets", "images", "shifts", "displacements", "squares", "distances"]


@pytest.mark.parametrize("box", [None, (1.0, 0.0, 1.0), TILTED])
@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_the_geometry_of_pairs_is_that_of_their_points(cuda, box, in_order, precision):
    real = {"f32": np.float32, "f64": np.float64}[precision]
    # Numbers that float32 does not have, where there are such.
    points, others = (set.astype(real) * real(1 + 1e-12) for set in (cloud(), cloud(700, 2)))
    radius = 0.1
    # Some points have left the box.
    points[::7] += np.float32([1.0, 0.0, -1.0]) if box else np.float32(0.01)
    engine = nearfield.DeviceEngine(radius, box=box, sorted=in_order, precision=precision)
    for set in (points, others):
        engine.add_points(by_dlpack(Block(cuda, set)))
    reference = on_cpu([points, others], radius, box=box, precision=precision)
    for sources, from_ in ((0, points), (1, others)):
        pairs, _ = repeated(engine, lambda: engine.pair_geometry(QUANTITIES, 0, sources))
        assert sets(pairs) == expected(reference.neighbors(0, sources))
        start, count, j = (
            part.copy_to_host() for part in (pairs.start, pairs.count, pairs.indices)
        )
        i, n, s, d, d2, r = (getattr(pairs, name).copy_to_host() for name in QUANTITIES)
        assert (i.dtype, n.dtype, d.dtype, r.dtype) == (np.uint32, np.int32, real, real)
        assert n.shape == s.shape == d.shape == (len(j), 3)
        used = np.concatenate([np.arange(a, a + int(b)) for a, b in zip(start.astype(int), count)])
        assert np.array_equal(i[used], np.repeat(np.arange(len(points)), count))
        i, j, n, s, d, d2, r = (of[used] for of in (i, j, n, s, d, d2, r))
        assert len(j) > 1000, "most pairs were not found"
        vectors = np.zeros((3, 3)) if box is None else np.array(box, np.float64)
        vectors = np.diag(vectors) if vectors.ndim == 1 else vectors
        assert np.array_equal(s, (n @ vectors).astype(real))
        assert np.array_equal(d, (from_[j] - points[i]) + s)
        assert np.allclose(d2, (d.astype(np.float64) ** 2).sum(axis=1), rtol=1e-6)
        assert np.array_equal(r, np.sqrt(d2))
        if in_order:
            keys = np.column_stack([i, j, n])
            assert np.array_equal(keys, keys[np.lexsort(keys.T[::-1])])


def test_other_quantities_take_the_place_of_the_first(cuda):
    engine = nearfield.DeviceEngine(0.1)
    engine.add_points(by_dlpack(Block(cuda, cloud())))
    pairs, _ = repeated(engine, lambda: engine.pair_geometry(["squares"]))
    assert pairs.images is None and pairs.displacements is None
    again = engine.pair_geometry(["squares"])
    assert np.array_equal(again.squares.copy_to_host(), pairs.squares.copy_to_host())
    lists = engine.neighbors()
    assert sets(lists) == sets(pairs)
    engine.pair_geometry(["distances"])
    for old in (pairs.squares, lists.indices):
        with pytest.raises(RuntimeError, match="out of date"):
            old.copy_to_host()
    for wrong in ([], ["speed"]):
        with pytest.raises(ValueError):
            engine.pair_geometry(wrong)
    by_letters, _ = repeated(engine, lambda: engine.pair_geometry("jd"))
    assert by_letters.distances is not None and by_letters.squares is None
    none = nearfield.DeviceEngine(0.1)
    none.add_points(by_dlpack(Block(cuda, np.zeros((0, 3), np.float32))))
    empty, _ = repeated(none, lambda: none.pair_geometry(QUANTITIES))
    assert len(empty) == 0 and empty.images.shape[1] == 3


def test_half_lists_hold_every_pair_once(cuda):
    points = cloud()
    engine = nearfield.DeviceEngine(0.1, half=True, subdivision=2, within=((0, 0, 0), (1, 1, 1)))
    engine.add_points(by_dlpack(Block(cuda, points)))
    lists, _ = repeated(engine, engine.neighbors)
    found = sorted((min(i, j), max(i, j)) for i, near in enumerate(sets(lists)) for j in near)
    full = nearfield.neighbors(points, 0.1, device="cpu")
    assert found == sorted((i, int(j)) for i in range(len(full)) for j in full[i] if i < j)
    assert engine.report()["subdivision"] == 2
    assert engine.report()["bytes"] > points.nbytes


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_lists_follow_points_that_move_step_by_step_and_then_far(cuda, protocol):
    points, repeats = cloud(), 0
    engine = nearfield.DeviceEngine(0.1)
    set = engine.add_points(protocol(Block(cuda, points)))
    for step in range(5):
        points = points + np.float32(40.0 if step == 3 else 0.01)
        points += np.random.default_rng(step).normal(scale=0.01, size=points.shape).astype("f4")
        if step == 4:
            points = points[:2000]
        engine.update(set, protocol(Block(cuda, points)))
        lists, tries = repeated(engine, engine.neighbors)
        repeats += tries - 1
        assert sets(lists) == expected(nearfield.neighbors(points, 0.1, device="cpu")), step
    assert repeats > 0, "the jump went unnoticed"


def test_tensors_are_given_back_when_the_stream_has_used_them(cuda, stream):
    engine = nearfield.DeviceEngine(0.1, stream=stream)
    points = by_dlpack(Block(cuda, cloud()))
    engine.add_points(points)
    assert points.streams == [stream]
    engine.finish()
    assert (points.given, points.deleted) == (1, 1)
    # Nor are they kept for ever by who never asks.
    for _ in range(30):
        engine.update(0, points)
    assert points.given - points.deleted <= 8
    engine.finish()
    assert points.given == points.deleted == 31
    points.device = (2, 1)
    with pytest.raises(ValueError, match="on GPU 1, but the engine is on GPU 0"):
        engine.update(0, points)
    assert points.given == 31


def test_results_go_where_they_are_wanted(cuda):
    points, mass = cloud(), np.ones(3000, np.float32)
    engine = nearfield.DeviceEngine(0.1)
    engine.add_points(by_dlpack(Block(cuda, points)))
    mass_on_gpu = by_interface(Block(cuda, mass))
    reference = on_cpu([points], 0.1).sph_density(mass)
    for protocol in (by_dlpack, by_interface):
        block = Block(cuda, np.full(3000, 7.0, np.float32))
        out = protocol(block)
        assert engine.sph_density(mass_on_gpu, out=out) is out
        assert engine.finish()
        np.testing.assert_allclose(block.values(), reference, rtol=1e-4, atol=1e-5)
        engine.sph_density(mass_on_gpu, out=out, add=True)
        assert engine.finish()
        np.testing.assert_allclose(block.values(), 2 * reference, rtol=1e-4, atol=1e-5)
        counts = Block(cuda, np.zeros(3000, np.uint32))
        engine.count_neighbors(out=protocol(counts))
        assert engine.finish()
        assert np.array_equal(counts.values(), on_cpu([points], 0.1).count_neighbors())
    with pytest.raises(ValueError, match="add needs an array"):
        engine.sph_density(mass_on_gpu, add=True)
    with pytest.raises(ValueError, match=r"out must have the shape \(3000,\), not \(2999,\)"):
        engine.sph_density(mass_on_gpu, out=by_dlpack(Block(cuda, mass[1:])))
    with pytest.raises(TypeError, match="out must be of type uint32, not float32"):
        engine.count_neighbors(out=by_dlpack(Block(cuda, mass)))
    read_only = ByInterface(block.pointer, (3000,), data=(block.pointer, True))
    with pytest.raises(ValueError, match="out is read-only"):
        engine.sph_density(mass_on_gpu, out=read_only)


def test_kernels_of_ones_own_are_summed(cuda):
    points, weight = cloud(500), np.random.default_rng(4).random((500, 2)).astype(np.float32)
    text = """void pair(const float* u, const Pair& pair, const float* target, const float* source,
                       float* result) {
                  result[0] = u[0] * target[0] * source[1] * pair.d2;
                  result[1] = pair.d[0];
                  result[2] = 1.0f;
              }"""
    engine = nearfield.DeviceEngine(0.2)
    engine.add_points(by_dlpack(Block(cuda, points)))
    field = by_dlpack(Block(cuda, weight))

    def work(over_lists=False):
        return engine.traverse(
            text, target_field=field, source_field=field, uniforms=[3.0], outputs=3, name="own.cu",
            over_lists=over_lists,
        )

    with pytest.raises(RuntimeError, match="find_neighbors"):
        work(over_lists=True)

    found, _ = repeated(engine, work)
    assert found.shape == (500, 3)
    found = found.copy_to_host()
    d = points[None].astype(np.float64) - points[:, None]
    d2 = (d * d).sum(axis=2)
    near = (d2 <= 0.04) & ~np.eye(500, dtype=bool)
    assert np.array_equal(found[:, 2], on_cpu([points], 0.2).count_neighbors().astype(np.float32))
    sums = (3.0 * weight[:, :1] * weight[None, :, 1] * d2 * near).sum(axis=1)
    np.testing.assert_allclose(found[:, 0], sums, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found[:, 1], (d[:, :, 0] * near).sum(axis=1), rtol=1e-3, atol=1e-4)
    lists, _ = repeated(engine, engine.neighbors)
    over_lists, _ = repeated(engine, lambda: work(over_lists=True))
    over_lists = over_lists.copy_to_host()
    assert np.array_equal(over_lists[:, 2], found[:, 2])
    np.testing.assert_allclose(over_lists, found, rtol=1e-3, atol=1e-4)
    largest, _ = repeated(
        engine,
        lambda: engine.traverse(text.replace("pair.d[0]", "0.0f"), outputs=3, reduce="max",
                                target_field=field, source_field=field, uniforms=[1.0]),
    )
    assert (largest.copy_to_host()[found[:, 2] > 0, 2] == 1.0).all()
    with pytest.raises(RuntimeError):
        engine.traverse("void pair(", name="broken.cu")
    with pytest.raises(ValueError, match="1 to 16, not 17"):
        engine.traverse(text, outputs=17)
    with pytest.raises(ValueError, match='not "mean"'):
        engine.traverse(text, reduce="mean")
    with pytest.raises(ValueError, match="source_field must have the shape"):
        engine.traverse(text, source_field=by_dlpack(Block(cuda, weight[1:])))


def test_lists_know_when_they_are_out_of_date_and_results_when_they_are_provisional(cuda):
    points = Block(cuda, cloud())
    engine = nearfield.DeviceEngine(0.1)
    engine.add_points(by_dlpack(points))
    mass = by_dlpack(Block(cuda, np.ones(3000, np.float32)))
    lists, density = engine.neighbors(), engine.sph_density(mass)
    for array in (lists.count, density):
        with pytest.raises(RuntimeError, match="provisional: call finish"):
            array.copy_to_host()
        assert array.__cuda_array_interface__["version"] == 3  # for work on the device
    assert engine.finish()
    before = density.copy_to_host()
    assert len(lists.count.copy_to_host()) == 3000
    # Asked again, the lists are the same.
    again = engine.neighbors()
    addresses = [of.count.__cuda_array_interface__["data"] for of in (lists, again)]
    assert addresses[0] == addresses[1]
    engine.update(0, by_dlpack(points))
    for array in (lists.start, lists.count, lists.indices, again.count):
        for use in (
            array.copy_to_host,
            array.__dlpack__,
            lambda array=array: array.__cuda_array_interface__,
        ):
            with pytest.raises(RuntimeError, match="out of date"):
                use()
    assert np.array_equal(density.copy_to_host(), before)
    # Points that jump out of their cells: what was computed from those is refused.
    engine.update(0, by_dlpack(Block(cuda, cloud() + np.float32(1000))))
    density, lists = engine.sph_density(mass), engine.neighbors()
    assert not engine.finish()
    for array in (density, lists.count):
        with pytest.raises(RuntimeError, match="not valid, as finish"):
            array.copy_to_host()
    density, _ = repeated(engine, lambda: engine.sph_density(mass))
    assert len(density.copy_to_host()) == 3000


class Before:
    """A consumer's view of an array by one who knows DLPack from before version 1."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream):
        return self.array.__dlpack__(stream=stream)


class Mirror:
    """One who knows the CUDA array interface alone."""

    def __init__(self, array):
        self.array = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


@pytest.mark.parametrize("view", [lambda array: array, Before, Mirror])
def test_what_comes_out_goes_in(cuda, stream, view):
    points = cloud()
    engine = nearfield.DeviceEngine(0.1)
    engine.add_points(by_dlpack(Block(cuda, points)))
    mass = by_dlpack(Block(cuda, np.ones(3000, np.float32)))
    density, _ = repeated(engine, lambda: engine.sph_density(mass))
    other = nearfield.DeviceEngine(0.1, stream=stream)
    other.add_points(by_dlpack(Block(cuda, points)))
    twice, _ = repeated(other, lambda: other.sph_density(view(density)))
    reference = on_cpu([points], 0.1)
    exact = reference.sph_density(reference.sph_density(np.ones(3000, np.float32)))
    np.testing.assert_allclose(twice.copy_to_host(), exact, rtol=2e-4, atol=1e-2)
    # The memory outlives everything but who uses it.
    del density, engine
    gc.collect()
    again, _ = repeated(other, lambda: other.sph_density(twice))
    assert np.isfinite(again.copy_to_host()).all()


def test_capsules_keep_their_memory_and_go_with_nobody_taking_them(cuda, stream):
    engine = nearfield.DeviceEngine(0.1)
    engine.add_points(by_dlpack(Block(cuda, cloud())))
    counts, _ = repeated(engine, engine.count_neighbors)
    lists = engine.neighbors()
    assert engine.finish()
    assert counts.__dlpack_device__() == (2, 0)
    for array in (counts, lists.start, lists.indices):
        for version, name in ((None, NAMES[False]), ((0, 8), NAMES[False]), ((1, 1), NAMES[True])):
            for on in (None, 1, 2, -1, stream):
                capsule = array.__dlpack__(stream=on, max_version=version)
                assert capsule_name(capsule) == name and is_valid(capsule, name)
                del capsule
    for keywords in ({"copy": True}, {"dl_device": (1, 0)}, {"dl_device": (2, 99)}):
        with pytest.raises(BufferError):
            counts.__dlpack__(**keywords)
    counts.__dlpack__(copy=False, dl_device=(2, 0))
    with pytest.raises(ValueError, match="stream 0"):
        counts.__dlpack__(stream=0)
    held = lists.count
    exact = counts.copy_to_host()
    del engine, lists, counts
    gc.collect()
    assert np.array_equal(held.copy_to_host(), exact)


def test_what_is_not_there_is_refused(cuda):
    engine = nearfield.DeviceEngine(0.1)
    on_host = cloud()
    with pytest.raises(ValueError, match="not in the memory of a GPU; for arrays of the CPU"):
        engine.add_points(ByInterface(on_host.ctypes.data, on_host.shape))
    with pytest.raises(ValueError, match="not in the memory of a GPU"):
        engine.add_points(ByDLPack(on_host.ctypes.data, on_host.shape))
    with pytest.raises(TypeError, match="use nearfield.Engine"):
        engine.add_points(on_host)
    on_host[17] = np.nan
    with pytest.raises(ValueError, match="point 17"):
        engine.add_points(by_dlpack(Block(cuda, on_host)))
    assert len(engine) == 0
    assert engine.add_points(by_dlpack(Block(cuda, cloud()))) == 0
    mass = by_dlpack(Block(cuda, np.ones(2999, np.float32)))
    with pytest.raises(ValueError, match=r"mass must have the shape \(3000,\), not \(2999,\)"):
        engine.sph_density(mass)
    for call in (engine.points, engine.neighbors, engine.count_neighbors, engine.z_sort):
        with pytest.raises(IndexError, match="no point set 3"):
            call(3)
    with pytest.raises(ValueError, match="support"):
        engine.sph_density(mass, support=0.0)
    assert engine.finish()


def test_memory_of_another_gpu_is_refused(cuda):
    if cuda.gpus < 2:
        pytest.skip("there is one GPU")
    context = cuda.retain(1)
    cuda("cuCtxPushCurrent_v2", context)
    block = Block(cuda, cloud())
    engine = nearfield.DeviceEngine(0.1)
    assert cuda.current() == context.value
    with pytest.raises(ValueError, match="on GPU 1, but the engine is on GPU 0"):
        engine.add_points(by_interface(block))
    assert cuda.current() == context.value
    del block
    cuda("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
    cuda("cuDevicePrimaryCtxRelease_v2", 1)


def test_sets_without_points_and_points_without_neighbours(cuda):
    engine = nearfield.DeviceEngine(0.1)
    nobody = np.empty((0, 3), np.float32)
    assert engine.add_points(ByInterface(0, (0, 3))) == 0
    assert engine.add_points(by_dlpack(Block(cuda, nobody))) == 1
    far = np.arange(30, dtype=np.float32).reshape(10, 3)
    assert engine.add_points(by_dlpack(Block(cuda, far))) == 2
    for pair in [(0, 0), (0, 2), (2, 0), (2, 2), (1, 0)]:
        points = engine.points(pair[0])
        (lists, count), _ = repeated(
            engine, lambda: (engine.neighbors(*pair), engine.count_neighbors(*pair))
        )
        assert sets(lists) == [[]] * points
        assert count.copy_to_host().tolist() == [0] * points
    mass = by_interface(Block(cuda, np.ones(10, np.float32)))
    density, _ = repeated(engine, lambda: engine.sph_density(mass, 2, 2))
    assert density.copy_to_host().tolist() == [0.0] * 10
    assert not density.__cuda_array_interface__["data"][1]


@pytest.mark.parametrize("box", [None, (0, 1.1, 0), (1.1, 0, 0)])
def test_lists_of_a_set_survive_what_happens_to_another(cuda, box):
    rng = np.random.default_rng(5)
    engine = nearfield.DeviceEngine(0.1, **({} if box is None else {"box": box}))
    points = [rng.random((n, 3), dtype=np.float32) for n in (400, 600)]
    for one in points:
        engine.add_points(by_dlpack(Block(cuda, one)))
    find = lambda: engine.neighbors(1, 1)
    expected = sets(repeated(engine, find)[0])
    assert sum(map(len, expected)) > 0
    for step in range(12):
        # The cells that both sets share grow, shrink and move.
        moved = points[0] * np.float32(1 + step % 4) + np.float32((step * 7) % 5)
        engine.update(0, by_dlpack(Block(cuda, moved)))
        if step % 3 == 0:
            repeated(engine, lambda: engine.neighbors(0, 1))
        assert sets(repeated(engine, find)[0]) == expected, step


def test_a_removed_set_is_refused_and_the_lists_of_others_stay(cuda):
    engine = nearfield.DeviceEngine(0.1)
    points = [cloud(400, seed) for seed in (1, 2)]
    a, b = (engine.add_points(by_dlpack(Block(cuda, one))) for one in points)
    of_removed, _ = repeated(engine, lambda: engine.neighbors(a, b))
    engine.remove_set(b)
    assert len(engine) == 1
    with pytest.raises(RuntimeError, match="out of date"):
        of_removed.count.copy_to_host()
    for refused in [
        lambda: engine.remove_set(b),
        lambda: engine.points(b),
        lambda: engine.update(b, by_dlpack(Block(cuda, points[1]))),
        lambda: engine.neighbors(a, b),
        lambda: engine.count_neighbors(b, a),
    ]:
        with pytest.raises(IndexError, match="point set 1 has been removed"):
            refused()
    lists, _ = repeated(engine, lambda: engine.neighbors(a, a))
    assert sets(lists) == expected(nearfield.neighbors(points[0], 0.1, device="cpu"))
    assert engine.add_points(by_dlpack(Block(cuda, points[1]))) > b, "a number never given"


def test_the_order_sorts_points_and_the_same_lists_are_found(cuda):
    points = cloud()
    engine = nearfield.DeviceEngine(0.1)
    engine.add_points(by_dlpack(Block(cuda, points)))
    order, _ = repeated(engine, engine.z_sort)
    order = order.copy_to_host()
    assert np.array_equal(np.sort(order), np.arange(3000))
    engine.update(0, by_dlpack(Block(cuda, points[order])))
    lists, _ = repeated(engine, engine.neighbors)
    assert sets(lists) == expected(nearfield.neighbors(points[order], 0.1, device="cpu"))


def test_the_current_context_is_left_alone_by_every_thread(cuda):
    assert cuda.current() == cuda.context.value
    points, failures = Block(cuda, cloud()), []

    def on_a_thread():
        try:
            assert cuda.current() is None
            engine = nearfield.DeviceEngine(0.1)
            engine.add_points(by_dlpack(points))
            count, _ = repeated(engine, engine.count_neighbors)
            assert count.copy_to_host().sum() > 0
            count.__dlpack__(stream=1)
            assert cuda.current() is None
            del count, engine
            assert cuda.current() is None
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=on_a_thread)
    thread.start()
    thread.join()
    assert failures == []
    assert cuda.current() == cuda.context.value


def test_engines_and_arrays_come_and_go(cuda):
    points = by_dlpack(Block(cuda, cloud()))
    for _ in range(20):
        engine = nearfield.DeviceEngine(0.1)
        engine.add_points(points)
        arrays = [engine.count_neighbors(), engine.neighbors().indices]
        del engine
        gc.collect()
        del arrays
    gc.collect()
    assert points.given == points.deleted


def test_pytorch_takes_and_gives(cuda):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    points = cloud()
    engine = nearfield.DeviceEngine(0.1)
    engine.add_points(torch.from_numpy(points).cuda())
    mass = torch.ones(len(points), device="cuda")
    density, _ = repeated(engine, lambda: engine.sph_density(mass))
    exact = on_cpu([points], 0.1).sph_density(np.ones(len(points), np.float32))
    np.testing.assert_allclose(torch.from_dlpack(density).cpu().numpy(), exact, rtol=1e-4, atol=1e-5)
    out = torch.zeros_like(mass)
    engine.sph_density(mass, out=out)
    assert engine.finish()
    np.testing.assert_allclose(out.cpu().numpy(), exact, rtol=1e-4, atol=1e-5)


def test_cupy_takes_and_gives(cuda):
    cupy = pytest.importorskip("cupy")
    points = cloud()
    engine = nearfield.DeviceEngine(0.1)
    engine.add_points(cupy.asarray(points))
    lists, _ = repeated(engine, engine.neighbors)
    for take in (cupy.from_dlpack, cupy.asarray):
        count = take(lists.count)
        assert np.array_equal(cupy.asnumpy(count), on_cpu([points], 0.1).count_neighbors())


def test_systems_of_the_host_are_searched_as_on_the_cpu(cuda):
    random = np.random.default_rng(11)
    ptr = np.concatenate([[0], np.cumsum(random.integers(0, 90, 40))])
    cells = np.eye(3) * 3.5 + random.uniform(-0.7, 0.7, (40, 3, 3))
    pbc = random.random((40, 3)) < 0.6
    for dtype, index in ((np.float32, "int32"), (np.float64, "int64")):
        points = random.uniform(-1, 4, (ptr[-1], 3)).astype(dtype)
        expected, found = (
            nearfield.edges(
                points, 1.6, "ijPSdD", batch_ptr=ptr, cell=cells, pbc=pbc, sorted=True,
                device=device, index=index,
            )
            for device in ("cpu", "gpu")
        )
        assert len(found[0]) > 1000
        for one, other in zip(found, expected):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def test_geometry_of_the_host_is_that_of_the_cpu(cuda):
    points = cloud()
    expected, found = (
        nearfield.edges(points, 0.1, box=(1, 1, 0), sorted=True, device=device)
        for device in ("cpu", "gpu")
    )
    for one, other in zip(found, expected):
        np.testing.assert_array_equal(one, other)


def test_systems_on_the_gpu_stay_there_and_are_those_of_the_host(cuda):
    random = np.random.default_rng(12)
    for precision, dtype, index in (("f32", np.float32, "int32"), ("f64", np.float64, "int64")):
        search = nearfield.DeviceSystemSearch(precision=precision, index=index)
        old = None
        for systems in (5, 60):
            ptr = np.concatenate([[0], np.cumsum(random.integers(0, 70, systems))])
            cells = np.eye(3) * 3.5 + random.uniform(-0.7, 0.7, (systems, 3, 3))
            radii = random.uniform(1.0, 1.8, systems)
            points = random.uniform(-1, 4, (ptr[-1], 3)).astype(dtype)
            there, ptr_there = by_dlpack(Block(cuda, points)), by_interface(Block(cuda, ptr))
            expected = nearfield.edges(
                points, radii, batch_ptr=ptr, cell=cells, pbc=True, sorted=True, index=index
            )
            on_gpu = [by_dlpack(Block(cuda, of)) for of in (radii, cells)]
            for radius, cell in ((radii, cells), on_gpu):
                found = search.neighbors(there, radius, ptr_there, cell=cell, pbc=True)
                assert len(found[0]) > 100
                for one, other in zip(found, expected):
                    assert one.dtype == other.dtype and one.shape == other.shape
                    np.testing.assert_array_equal(one.copy_to_host(), other)
                if old is not None:
                    with pytest.raises(RuntimeError, match="out of date"):
                        old.copy_to_host()
                old = found[0]
        (only,) = search.neighbors(there, 1.2, ptr_there, quantities="d")
        assert (only.copy_to_host() <= 1.2).all()
        assert search.neighbors(there, 1.2, ptr_there, quantities="") == ()


def of_shape(cuda, shape, dtype):
    """An array of the GPU, and where its values are read."""
    block = Block(cuda, np.full(shape, 77, dtype))
    return by_dlpack(block), block


def outlets(cuda, letters, rows, index, real):
    kinds = dict(i=index, j=index, S="int32", d=real, D=real)
    made = [of_shape(cuda, (rows, 3) if one in "SD" else (rows,), kinds[one]) for one in letters]
    return [array for array, _ in made], [block for _, block in made]


@pytest.mark.parametrize("strict", [False, True])
def test_systems_on_the_gpu_are_written_to_arrays_of_the_caller(cuda, strict):
    ptr = np.array([0, 27, 27, 91])
    points = np.argwhere(np.ones((7, 13, 1))).astype(np.float32)
    there = by_dlpack(Block(cuda, points))
    given = dict(cell=np.eye(3) * 20, pbc=True)
    expected = nearfield.edges(points, 2.0, batch_ptr=ptr, sorted=True, strict=strict, **given)
    pairs = len(expected[0])
    assert pairs > 100
    search = nearfield.DeviceSystemSearch(strict=strict)
    short, _ = outlets(cuda, "ijSdD", pairs - 1, "int64", "float32")
    for _ in range(2):
        assert search.neighbors_into(short, there, 2.0, ptr, **given) == pairs
    arrays, blocks = outlets(cuda, "ijSdD", pairs + 3, "int64", "float32")
    assert search.neighbors_into(arrays, there, 2.0, by_dlpack(Block(cuda, ptr)), **given) == pairs
    for block, wanted in zip(blocks, expected):
        found = block.values()
        np.testing.assert_array_equal(found[:pairs], wanted)
        assert (found[pairs:] == 77).all()
    with pytest.raises(TypeError, match="int64, as the search"):
        search.neighbors_into(outlets(cuda, "ij", 9, "int32", "float32")[0], there, 2.0, ptr, quantities="ij")
    with pytest.raises(ValueError, match="shares memory"):
        search.neighbors_into([arrays[0], arrays[0]], there, 2.0, ptr, quantities="ij")
    with pytest.raises(ValueError, match="shares memory"):
        search.neighbors_into([there], there, 2.0, ptr, quantities="D")
    with pytest.raises(ValueError, match="out has 2 arrays for 3"):
        search.neighbors_into(arrays[:2], there, 2.0, ptr, quantities="ijS")
    with pytest.raises(TypeError, match="out: S must be of type int32"):
        search.neighbors_into(arrays[:1], there, 2.0, ptr, quantities="S")


@pytest.mark.parametrize("index", ["int32", "int64"])
def test_lists_with_a_skin_on_the_gpu_give_the_pairs_of_a_fresh_search(cuda, index):
    random = np.random.default_rng(13)
    for precision, dtype in (("f32", np.float32), ("f64", np.float64)):
        for systems, half in ((1, False), (60, True)):
            ptr = np.concatenate([[0], np.cumsum(random.integers(20, 70, systems))])
            cells = np.eye(3) * 3.5 + random.uniform(-0.7, 0.7, (systems, 3, 3))
            radii = random.uniform(1.0, 1.8, systems)
            points = random.uniform(-1, 4, (ptr[-1], 3)).astype(dtype)
            how = dict(precision=precision, index=index, half=half)
            search = nearfield.DeviceSystemSearch(skin=0.3, **how)
            fresh = nearfield.DeviceSystemSearch(**how)
            with pytest.raises(ValueError, match=r"use neighbors_into\(\)"):
                search.neighbors(by_dlpack(Block(cuda, points)), radii, ptr)
            rebuilt = []
            for step in range(12):
                there = by_dlpack(Block(cuda, points))
                given = (there, radii, ptr)
                expected = fresh.neighbors(*given, cell=cells, pbc=True)
                pairs = len(expected[0])
                assert pairs > 100
                for rows in (pairs // 2, pairs + 3):
                    arrays, blocks = outlets(cuda, "ijSdD", rows, index, dtype)
                    assert search.neighbors_into(arrays, *given, cell=cells, pbc=True) == pairs
                for block, wanted in zip(blocks, expected):
                    np.testing.assert_array_equal(block.values()[:pairs], wanted.copy_to_host())
                    assert (block.values()[pairs:] == 77).all()
                rebuilt.append(search.builds)
                points += (random.normal(size=points.shape) * 0.02).astype(dtype)
            assert rebuilt[0] == rebuilt[1] == 1 and 1 < rebuilt[-1] < 12
            # A point that is in another box, a cell and a radius that change, and fewer points.
            count = rebuilt[-1]
            points[0] += cells[0, 0].astype(dtype)
            for change in range(4):
                if change == 1:
                    cells[-1] *= 1.001
                if change == 2:
                    radii[-1] += 0.01
                if change == 3:
                    ptr[-1] -= 1
                    points = points[:-1]
                given = (by_dlpack(Block(cuda, points)), radii, ptr)
                expected = fresh.neighbors(*given, cell=cells, pbc=True)
                pairs = len(expected[0])
                arrays, blocks = outlets(cuda, "jD", pairs, index, dtype)
                there = search.neighbors_into(arrays, *given, cell=cells, pbc=True, quantities="jD")
                assert there == pairs
                for block, wanted in zip(blocks, (expected[1], expected[4])):
                    np.testing.assert_array_equal(block.values(), wanted.copy_to_host())
                count += 1
                assert search.builds == count
            points[3, 1] = np.nan
            with pytest.raises(ValueError, match="point 3 has y"):
                search.neighbors_into([], by_dlpack(Block(cuda, points)), radii, ptr, quantities="")
    with pytest.raises(ValueError, match="skin"):
        nearfield.DeviceSystemSearch(skin=-1.0)


def test_pairs_of_an_engine_are_written_to_arrays_of_the_caller(cuda):
    for precision, dtype, index in (("f32", "float32", "int32"), ("f64", "float64", "int64")):
        points = cloud().astype(dtype)
        expected = nearfield.edges(points, 0.1, box=(1, 1, 0), sorted=True, index=index)
        pairs = len(expected[0])
        engine = nearfield.DeviceEngine(0.1, box=(1, 1, 0), sorted=True, precision=precision)
        engine.add_points(by_dlpack(Block(cuda, points)))
        for letters in ("ijSdD", "j", "dS"):
            for rows in (0, pairs // 2, pairs + 5):
                arrays, blocks = outlets(cuda, letters, rows, index, dtype)
                while True:
                    engine.write_pairs(letters, arrays)
                    if engine.finish():
                        break
                assert engine.pair_count() == pairs
                some = min(rows, pairs)
                for letter, block in zip(letters, blocks if rows else []):
                    found = block.values()
                    np.testing.assert_array_equal(found[:some], expected["ijSdD".index(letter)][:some])
                    assert (found[some:] == 77).all()
        with pytest.raises(ValueError, match="shares memory"):
            engine.write_pairs("ij", outlets(cuda, "i", 9, index, dtype)[0] * 2)


def test_systems_on_the_gpu_that_cannot_be_searched_are_named(cuda):
    search = nearfield.DeviceSystemSearch()
    points = np.zeros((6, 3), np.float32)
    points[4, 1] = np.nan
    there = by_dlpack(Block(cuda, points))
    ptr = by_dlpack(Block(cuda, np.array([0, 3, 6])))
    with pytest.raises(ValueError, match="system 1: point 4 has y"):
        search.neighbors(there, 1.0, ptr)
    with pytest.raises(ValueError, match="pbc"):
        search.neighbors(there, 1.0, ptr, cell=np.eye(3))
    with pytest.raises(TypeError, match="batch_ptr must be of type int64"):
        search.neighbors(there, 1.0, by_dlpack(Block(cuda, np.array([0, 6], np.float32))))
    with pytest.raises(TypeError, match="points must be of type float32, not float64"):
        search.neighbors(by_dlpack(Block(cuda, points.astype(float))), 1.0, ptr)
    with pytest.raises(ValueError, match="instead of"):
        search.neighbors(there, 1.0, ptr, quantities="P")
    with pytest.raises(ValueError):
        nearfield.DeviceSystemSearch(precision="f16")
    # It is of use afterwards.
    whole = by_dlpack(Block(cuda, np.zeros((6, 3), np.float32)))
    assert len(search.neighbors(whole, 1.0, ptr)[0]) == 12


class OnGpu(_libraries.NumPy):
    """NumPy, whose arrays go to the GPU where engines take them."""

    writable = False

    def __init__(self, cuda):
        self.cuda = cuda

    def gpu(self, array):
        return 0

    def plain(self, array):
        return by_dlpack(Block(self.cuda, array))

    def of_device(self, array):
        return array.copy_to_host()


def test_edges_of_arrays_on_the_gpu_are_those_of_the_host(cuda, monkeypatch):
    library = OnGpu(cuda)
    for module in (_batches, _edges, _gpu):
        monkeypatch.setattr(module, "library_of", lambda array: library)
    names = "cell pbc box batch_ptr batch_idx other radii rule types cutoffs exclusions molecules"
    every = dict.fromkeys(f"{names} targets k out device".split())
    every |= dict.fromkeys("half strict self_pairs".split(), False)
    every |= dict(index="int64", threads=0, sorted=True)
    random = np.random.default_rng()
    counts = [(np.float32, 500), (np.float64, 700), (np.float32, 3000), (np.float64, 2000)]
    for dtype, count in [*counts, (np.float32, 40000), (np.float64, 40000)]:
        edge = (count / 0.05) ** (1 / 3)
        points = random.uniform(-1, edge + 1, (count, 3)).astype(dtype)
        box = dict(cell=np.eye(3) * edge + random.uniform(-0.5, 0.5, (3, 3)), pbc=[True, True, False])
        box["cell"][2] = [0, 0, edge]
        box["cell"][:2, 2] = 0
        single = [
            dict(radii=random.uniform(1, 3, count).astype(np.float32)),
            dict(types=random.integers(0, 2, count), cutoffs=[[3, 2], [2, 1.5]]),
            dict(molecules=np.arange(count) // 3),
            dict(targets=random.permutation(count)[: count // 3], self_pairs=True),
        ]
        for given in [
            dict(),
            dict(index="int32"),
            dict(half=True),
            dict(strict=True),
            dict(self_pairs=True),
            dict(other=points[: count // 4].copy()),
            dict(batch_idx=np.sort(random.integers(0, count // 30, count))),
            *(single if dtype == np.float32 else []),
            # Filters of three systems, which are searched one after the other.
            *(given | dict(batch_ptr=[0, 90, 90, count]) for given in single if count == 500),
        ]:
            expected = nearfield.edges(points, 3.0, "ijPSdD", sorted=True, **box, **given)
            # The second time an engine takes the place of a search of systems, where points are
            # many, and the third time its storage is there.
            for _ in range(3):
                found = _edges.edges(points, 3.0, "ijPSdD", **every | box | given)
                # Points of one system among many are far from each other.
                least = 50 if "batch_idx" in given else count / 10
                assert len(found[0]) > least
                for one, other in zip(found, expected):
                    assert one.dtype == other.dtype
                    np.testing.assert_array_equal(one, other)
    nearest = _edges.edges(points.astype(np.float32), 3.0, "ijd", **every | box | dict(k=5, sorted=False))
    expected = nearfield.edges(points.astype(np.float32), 3.0, "ijd", k=5, **box)
    for one, other in zip(nearest, expected):
        np.testing.assert_array_equal(one, other)


def test_edges_of_tensors_on_the_gpu_stay_there(cuda):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    points = cloud()
    there = torch.from_numpy(points).cuda()
    for given in [dict(), dict(self_pairs=True), dict(targets=[3, 5]), dict(k=4, sorted=False)]:
        given = dict(sorted=True) | given
        expected = nearfield.edges(points, 0.1, box=(1, 1, 0), **given)
        found = nearfield.edges(there, 0.1, box=(1, 1, 0), **given)
        for one, other in zip(found, expected):
            assert one.is_cuda
            np.testing.assert_array_equal(one.cpu().numpy(), other)
    # By an engine too, and into arrays of the caller.
    many = torch.rand(50_000, 3, generator=torch.Generator().manual_seed(3)).numpy()
    for strict in (False, True):
        given = dict(box=(1, 1, 0), sorted=True, strict=strict)
        wanted = nearfield.edges(many, 0.03, **given)
        for _ in range(2):
            found = nearfield.edges(torch.from_numpy(many).cuda(), 0.03, **given)
            for one, other in zip(found, wanted):
                np.testing.assert_array_equal(one.cpu().numpy(), other)
        out = [torch.zeros_like(torch.cat([one, one[:7]])) for one in found]
        into = nearfield.edges(torch.from_numpy(many).cuda(), 0.03, out=out, **given)
        for one, to, other in zip(into, out, wanted):
            assert one.data_ptr() == to.data_ptr()
            np.testing.assert_array_equal(one.cpu().numpy(), other)
        with pytest.raises(ValueError, match="has room for 3 pairs"):
            nearfield.edges(there, 0.1, "ij", out=[one[:3] for one in out[:2]])
    ptr = torch.tensor([0, 100, 2000, len(points)])
    wanted = nearfield.edges(points, 0.1, batch_ptr=ptr.numpy(), strict=True, sorted=True)
    for ptr in (ptr, ptr.cuda()):
        found = nearfield.edges(there, 0.1, batch_ptr=ptr, strict=True, sorted=True)
        for one, other in zip(found, wanted):
            np.testing.assert_array_equal(one.cpu().numpy(), other)
    near = nearfield.EdgeList(0.1, skin=0.02, quantities="ijD", sorted=True)
    some, box = there[:3000].clone(), torch.eye(3, dtype=torch.float64)
    for _ in range(4):
        wanted = nearfield.edges(some.cpu().numpy(), 0.1, "ijD", cell=np.eye(3), pbc=True, sorted=True)
        for one, other in zip(near.compute(some, box.cuda(), True), wanted):
            assert one.is_cuda
            np.testing.assert_array_equal(one.cpu().numpy(), other)
        some += 0.001 * torch.randn_like(some).clamp(-2, 2)
    assert near.rebuilds == 1
    with pytest.raises(ValueError, match="at most 32768 points"):
        near.compute(torch.from_numpy(many).cuda(), box, True)
    with pytest.raises(RuntimeError, match="which a CUDA graph cannot record"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            near.compute(some, box, True)
    rows = nearfield.padded(there, 0.1, 8, "d")
    wanted = nearfield.padded(points, 0.1, 8, "d")
    np.testing.assert_array_equal(rows.indices.cpu().numpy(), wanted.indices)
    np.testing.assert_array_equal(rows.distances.cpu().numpy(), wanted.distances)


def test_vesin_lists_of_tensors_on_the_gpu_stay_there(cuda):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    from nearfield.compat.vesin import NeighborList

    points, box = cloud().astype(float), np.eye(3)
    for full in (False, True):
        vesin = NeighborList(cutoff=0.1, full_list=full, sorted=True)
        expected = vesin.compute(points, box, True, "ijSdD")
        there = [torch.from_numpy(array).cuda() for array in (points, box)]
        found = vesin.compute(*there, True, "ijSdD")
        for one, other in zip(found, expected):
            assert one.is_cuda
            np.testing.assert_array_equal(one.cpu().numpy(), other)
    with pytest.raises(ValueError, match="same device"):
        vesin.compute(there[0], torch.from_numpy(box), True)


def test_edges_of_cupy_arrays_are_cupy_arrays(cuda):
    cupy = pytest.importorskip("cupy")
    points = cloud()
    for given in [dict(), dict(self_pairs=True), dict(targets=[3, 5]), dict(strict=True)]:
        expected = nearfield.edges(points, 0.1, box=(1, 1, 0), sorted=True, **given)
        found = nearfield.edges(cupy.asarray(points), 0.1, box=(1, 1, 0), sorted=True, **given)
        for one, other in zip(found, expected):
            assert isinstance(one, cupy.ndarray)
            np.testing.assert_array_equal(cupy.asnumpy(one), other)
