"""Other Python threads write to the arrays, use the engine, or hand over arrays of odd layouts."""

import threading
import time

import nearfield
import numpy as np
import pytest

from test_nearfield import cloud, sets

# Values that other threads write: coordinates that no check would let through, and some that it
# would.
POISON = [np.nan, np.inf, -np.inf, 1e38, 1e30, 3.5]


def hammer(arrays, work, calls, seconds=20.0):
    """Calls `work` `calls` times, for up to `seconds`, while another thread writes to the arrays."""
    done = threading.Event()
    errors = []

    def write():
        random = np.random.default_rng(7)
        good = [array.copy() for array in arrays]
        while not done.is_set():
            # There for a moment: most checks let the array through.
            for array, good_one in zip(arrays, good):
                at = random.integers(0, len(array), 2)
                for poison in POISON:
                    array[at] = poison
                    array[at] = good_one[at]

    thread = threading.Thread(target=write)
    thread.start()
    outcomes = {"done": 0, "refused": 0}
    end = time.monotonic() + seconds
    try:
        for _ in range(calls):
            try:
                work()
                outcomes["done"] += 1
            except ValueError:
                outcomes["refused"] += 1
            except BaseException as error:  # PanicException is not an Exception
                errors.append(error)
                break
            if time.monotonic() > end:
                break
    finally:
        done.set()
        thread.join()
    assert not errors, errors
    assert outcomes["done"] + outcomes["refused"] > 0
    return outcomes


@pytest.mark.parametrize("box", [None, (1, 1, 1), [[1, 0, 0], [0.3, 1, 0], [0.1, 0.2, 1]]])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_that_change_during_an_update_are_taken_or_refused(dtype, box):
    points = cloud(20_000, dtype=dtype)
    engine = nearfield.Engine(
        0.05, box=box, precision="f32" if dtype == np.float32 else "f64", threads=2
    )
    engine.add_points(points.copy())
    hammer([points], lambda: engine.update(0, points), 400, seconds=2)
    # The engine is as good as new.
    points = cloud(2000, seed=3, dtype=dtype)
    engine.update(0, points)
    assert sets(engine.neighbors()) == sets(nearfield.neighbors(points, 0.05, box=box))


@pytest.mark.parametrize("layout", ["strided", "planar", "fortran", "reversed"])
def test_points_of_any_layout_may_change_during_a_call(layout):
    everything = cloud(40_000, dtype=np.float32)
    points = {
        "strided": everything[::2],
        "planar": np.ascontiguousarray(everything[:20_000, :2]),
        "fortran": np.asfortranarray(everything[:20_000]),
        "reversed": everything[20_000:0:-1],
    }[layout]
    engine = nearfield.Engine(0.02, threads=2)
    engine.add_points(points.copy())
    hammer([points], lambda: engine.update(0, points), 60, seconds=2)
    hammer([points], lambda: engine.query(points[:500]), 60, seconds=2)
    hammer([points], lambda: nearfield.neighbors(points[:2000], 0.02, threads=1), 60, seconds=2)


def test_a_field_may_change_while_it_is_summed():
    mass = np.ones(20_000, dtype=np.float32)
    engine = nearfield.Engine(0.05, threads=2)
    engine.add_points(cloud(20_000, dtype=np.float32))
    hammer([mass], lambda: engine.sph_density(mass), 60, seconds=2)
    mass[:] = 1
    assert np.isfinite(engine.sph_density(mass)).all()


def unaligned(array):
    """The same numbers, one byte off their alignment."""
    room = np.empty(array.nbytes + 1, dtype=np.uint8)
    moved = room[1:].view(array.dtype.str).reshape(array.shape)
    moved[...] = array
    assert not moved.flags.aligned
    return moved


def packed(array):
    """The same numbers inside of records without padding."""
    rows = np.zeros(len(array), dtype=[("flag", "u1"), ("at", array.dtype, array.shape[1:])])
    rows["at"] = array
    assert not rows["at"].flags.aligned
    return rows["at"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_odd_layouts_are_read_as_what_they_are(dtype):
    points = cloud(1000, dtype=dtype)
    expected = sets(nearfield.neighbors(points, 0.15))
    wide = np.zeros((2000, 6), dtype=dtype)
    wide[::2, ::2] = points
    layouts = [
        unaligned(points),
        packed(points),
        points.astype(points.dtype.newbyteorder()),
        unaligned(points.astype(points.dtype.newbyteorder())),
        points[::-1].copy()[::-1],
        points[:, ::-1].copy()[:, ::-1],
        wide[::2, ::2],
        np.asfortranarray(points),
        np.ma.masked_array(points),
    ]
    for layout in layouts:
        assert sets(nearfield.neighbors(layout, 0.15)) == expected
    assert len(nearfield.neighbors(np.broadcast_to(points[:1], (7, 3)), 0.15)) == 7
    flat = np.ascontiguousarray(points[:, :2])
    expected = sets(nearfield.neighbors(flat, 0.15))
    for layout in (unaligned(flat), flat[::-1].copy()[::-1], points[:, :2], np.asfortranarray(flat)):
        assert sets(nearfield.neighbors(layout, 0.15)) == expected
    engine = nearfield.Engine(0.15, precision="f32" if dtype == np.float32 else "f64")
    engine.add_points(unaligned(points))
    mass = np.random.default_rng(2).random(1000).astype(np.float32)
    density = engine.sph_density(mass)
    for layout in (
        unaligned(mass),
        packed(mass),
        mass.astype(">f4"),
        mass[::-1].copy()[::-1],
        np.repeat(mass, 3)[::3],
    ):
        assert np.array_equal(engine.sph_density(layout), density)
    assert sets(engine.query(unaligned(points[:50]))) == sets(engine.query(points[:50]))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_large_arrays_are_copied_whole_by_any_number_of_threads(threads):
    random = np.random.default_rng(4)
    points = (random.random((700_001, 3)) * 100).astype(np.float32)
    mass = random.random(len(points)).astype(np.float32)
    wide = np.zeros((len(points), 4), dtype=np.float32)
    wide[:, 1:] = points
    engine = nearfield.Engine(0.5, threads=threads)
    counts = []
    for layout in (points, wide[:, 1:], np.asfortranarray(points)):
        if len(engine) == 0:
            engine.add_points(layout)
        else:
            engine.update(0, layout)
        counts.append(engine.count_neighbors())
    assert counts[0].sum() > 100_000
    assert np.array_equal(counts[0], counts[1]) and np.array_equal(counts[0], counts[2])
    # Every point is where it is: found at its own place, at the ends of all parts too.
    for k in random.integers(0, len(points), 20).tolist() + [0, len(points) - 1]:
        assert k in engine.query(points[k : k + 1])[0]
    density = engine.sph_density(mass)
    assert np.array_equal(density, engine.sph_density(np.repeat(mass, 2)[::2]))


def test_arrays_of_other_types_are_refused_by_name():
    points = cloud(10)
    for wrong in (
        points.astype(np.float16),
        points.astype(bool),
        points.astype(np.longdouble),
        points.astype(complex),
        points.astype(object),
        points.astype("U8"),
    ):
        with pytest.raises(TypeError, match="points must be of type float32 or float64"):
            nearfield.neighbors(wrong, 0.1)
    for wrong in (None, "points", iter(points), {"x": 1.0}):
        with pytest.raises(TypeError, match="points must be an array, a list of numbers"):
            nearfield.neighbors(wrong, 0.1)
    for wrong in (points[:, :1], points.ravel(), points[None], np.zeros((), np.float32)):
        with pytest.raises(ValueError, match="points must have the shape"):
            nearfield.neighbors(wrong, 0.1)
    engine = nearfield.Engine(0.1)
    engine.add_points(points.astype(np.float32))
    for wrong in (np.ones(10), ["1"] * 10, None):
        with pytest.raises(TypeError, match="mass must be an? "):
            engine.sph_density(wrong)
    with pytest.raises(ValueError, match=r"mass must have the shape \(n,\)"):
        engine.sph_density(np.ones((10, 1), np.float32))
    with pytest.raises(ValueError, match="9"):
        engine.sph_density(np.ones(9, np.float32))


def test_threads_ask_one_engine_at_the_same_time():
    points = cloud(20_000, dtype=np.float32)
    engine = nearfield.Engine(0.05, box=(1, 1, 1), threads=2)
    engine.add_points(points)
    lists, counts = engine.neighbors(), engine.count_neighbors()
    mass = np.ones(len(points), dtype=np.float32)
    density = engine.sph_density(mass)
    errors, asked = [], []

    def ask(thread):
        try:
            for k in range(thread, 400, 4):
                # Also from far away, which takes other cells.
                at = points[k : k + 1] + np.float32([0, 1000, -4000][k % 3])
                found = engine.query(at)
                assert k % 3 or set(found[0].tolist()) == set(lists[k].tolist()) | {k}
                assert engine.neighbors() is lists
                assert engine.radius == pytest.approx(0.05) and len(engine) == 1
                if k % 40 == thread:
                    assert np.array_equal(engine.count_neighbors(), counts)
                    assert np.array_equal(engine.sph_density(mass), density)
                asked.append(k)
        except BaseException as error:  # PanicException is not an Exception
            errors.append(error)

    threads = [threading.Thread(target=ask, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    assert len(asked) == 400


def test_a_change_beside_a_question_is_refused_and_changes_nothing():
    points = cloud(100_000, dtype=np.float32)
    engine = nearfield.Engine(0.05, threads=1)
    engine.add_points(points)
    counts = engine.count_neighbors()
    refused, changed, done = [], [], threading.Event()

    def change():
        while not done.is_set():
            try:
                engine.set_active(0, 0, True)
                changed.append(1)
            except RuntimeError as error:
                refused.append(str(error))

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(10):
            try:
                assert np.array_equal(engine.count_neighbors(), counts)
            except RuntimeError:
                continue  # the other thread was inside
    finally:
        done.set()
        thread.join()
    assert refused and "in use by another thread" in refused[0]
