"""Lists, queries and sums against SciPy's k-d tree and matscipy's periodic neighbours."""

import gc
import threading

import nearfield
import numpy as np
import pytest
from matscipy.neighbours import neighbour_list
from scipy.sparse import csr_array
from scipy.spatial import cKDTree


def cloud(points=3000, seed=1, dtype=np.float64):
    return np.random.default_rng(seed).random((points, 3)).astype(dtype)


def sets(lists):
    return [set(lists[i].tolist()) for i in range(len(lists))]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lists_are_those_of_a_k_d_tree(dtype):
    points = cloud(dtype=dtype)
    # The tree computes in double precision: no pair may be within rounding of the radius.
    radius = 0.1
    tree = cKDTree(points.astype(np.float64))
    lists = nearfield.neighbors(points, radius)
    found = tree.query_ball_point(points.astype(np.float64), radius)
    expected = [set(near) - {i} for i, near in enumerate(found)]
    assert sets(lists) == expected
    assert lists.pairs == sum(map(len, expected)) == int(lists.count.sum())
    assert nearfield.neighbors(points, radius, half=True).pairs == len(tree.query_pairs(radius))


def test_every_layout_of_an_array_is_read_as_it_is():
    points = cloud(dtype=np.float32)
    expected = sets(nearfield.neighbors(points, 0.1))
    wide = np.full((len(points), 5), np.nan, dtype=np.float32)
    wide[:, 1:4] = points
    everything = np.repeat(points, 2, axis=0)
    for layout in (wide[:, 1:4], np.asfortranarray(points), everything[::2], points[::-1][::-1]):
        assert sets(nearfield.neighbors(layout, 0.1)) == expected
    flat = np.ascontiguousarray(points[:, :2])
    solid = np.hstack([flat, np.zeros((len(points), 1), dtype=np.float32)])
    assert sets(nearfield.neighbors(flat, 0.1)) == sets(nearfield.neighbors(solid, 0.1))
    assert len(nearfield.neighbors(np.empty((0, 3), dtype=np.float32), 0.1)) == 0


@pytest.mark.parametrize(
    "box",
    [
        (1.0, 1.0, 1.0),
        (1.0, 0.0, 1.0),
        [[1.0, 0, 0], [0.3, 1.0, 0], [0.1, -0.2, 1.0]],
        # Leaning along open axes.
        [[0.9, 0.2, 0.3], [0, 0, 0], [-0.1, 0.3, 0.8]],
        [[0, 0, 0], [0.3, 0.6, 0.5], [0, 0, 0]],
    ],
)
def test_periodic_neighbours_are_those_of_matscipy(box):
    points = cloud(1000)
    cell = np.diag(box) if np.ndim(box) == 1 else np.array(box)
    periodic = (cell != 0).any(axis=1)
    full = np.where(periodic[:, None], cell, np.eye(3))
    i, j = neighbour_list("ij", cutoff=0.2, positions=points, cell=full, pbc=periodic)
    expected = sorted(zip(i.tolist(), j.tolist()))
    offsets, indices = nearfield.neighbors(points, 0.2, box=box).csr()
    first = np.repeat(np.arange(len(points)), np.diff(offsets))
    assert sorted(zip(first.tolist(), indices.tolist())) == expected


def test_csr_is_what_scipy_takes():
    points = cloud()
    lists = nearfield.neighbors(points, 0.1, sorted=True)
    offsets, indices = lists.csr()
    assert offsets.dtype == indices.dtype == np.int64
    matrix = csr_array((np.ones(lists.pairs), indices, offsets), shape=(len(points),) * 2)
    assert (matrix != matrix.T).nnz == 0
    assert matrix.has_sorted_indices
    assert np.array_equal(matrix.sum(axis=1), lists.count)


def test_views_keep_what_they_view_and_cannot_be_written():
    points = cloud(dtype=np.float32)
    engine = nearfield.Engine(0.1)
    engine.add_points(points)
    lists = engine.neighbors()
    start, count, indices = lists.start, lists.count, lists.indices
    before = [indices[s : s + c].copy() for s, c in zip(start, count)]
    with pytest.raises(ValueError):
        indices[0] = 0
    # The engine moves on and is dropped: the old lists stay as they were.
    for seed in range(2, 6):
        engine.update(0, cloud(seed=seed, dtype=np.float32))
        engine.neighbors()
    del lists, engine
    gc.collect()
    after = [indices[s : s + c] for s, c in zip(start, count)]
    assert all(np.array_equal(a, b) for a, b in zip(before, after))


def test_an_engine_over_many_steps_finds_what_one_call_finds():
    engine = nearfield.Engine(0.1)
    engine.add_points(cloud(dtype=np.float32))
    for seed in range(12):
        points = cloud(2000 + 100 * seed, seed=seed, dtype=np.float32)
        engine.update(0, points)
        lists = engine.neighbors()
        assert sets(lists) == sets(nearfield.neighbors(points, 0.1))
        assert engine.neighbors() is lists, "found once"
    engine.radius = 0.05
    assert engine.radius == pytest.approx(0.05)
    assert sets(engine.neighbors()) == sets(nearfield.neighbors(points, 0.05))


def test_sets_search_each_other_as_told():
    fluid, wall = cloud(2000, 1), cloud(500, 2)
    engine = nearfield.Engine(0.1, precision="f64")
    f, w = engine.add_points(fluid), engine.add_points(wall)
    engine.set_active(w, w, False)
    assert engine.is_active(f, w) and not engine.is_active(w, w)
    near = cKDTree(wall).query_ball_point(fluid, 0.1)
    assert sets(engine.neighbors(f, w)) == [set(of) for of in near]
    assert np.array_equal(engine.count_neighbors(f, w), [len(of) for of in near])
    with pytest.raises(RuntimeError, match="the pair is not active"):
        engine.neighbors(w, w)


def test_bodies_search_those_that_they_meet():
    engine = nearfield.Engine(0.5)
    engine.set_all_active(False)
    bodies = [engine.add_points([[0.4 * k, 0.0, 0.0]]) for k in range(200)]
    for pair in zip(bodies, bodies[1:]):
        engine.set_active(*pair, True)
    engine.find_neighbors()
    assert engine.report()["pairs"] == 199
    assert engine.neighbors(3, 4).pairs == 1
    engine.set_all_active(False)
    with pytest.raises(RuntimeError, match="the pair is not active"):
        engine.neighbors(3, 4)
    engine.set_all_active(True)
    assert engine.neighbors(4, 3).pairs == 1


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_points_and_sets_that_are_removed_leave_the_lists_of_the_rest(precision):
    points, others = (cloud(1000, seed, precision.replace("f", "float")) for seed in (1, 2))
    engine = nearfield.Engine(0.1, precision=precision)
    a, b = engine.add_points(points), engine.add_points(others)
    before = engine.neighbors(a, a)
    for keep, error, text in [
        (np.ones(999, bool), ValueError, "keep has 999 entries, but set 0 has 1000 points"),
        (np.ones((1000, 1), bool), ValueError, r"keep must have the shape \(n,\)"),
        (np.ones(1000, np.uint8), TypeError, "keep must be a NumPy array of bool"),
        ([True] * 1000, TypeError, "keep must be a NumPy array of bool"),
    ]:
        with pytest.raises(error, match=text):
            engine.retain_points(a, keep)
    assert engine.neighbors(a, a) is before and engine.retain_points(a, np.ones(1000, bool)) == 0

    # A view with gaps is read as it is.
    keep = (np.arange(3000) % 7 != 0)[::3]
    assert engine.retain_points(a, keep) == 1000 - keep.sum()
    assert engine.points(a) == keep.sum()
    kept = sets(nearfield.neighbors(points[keep], 0.1))
    assert sets(engine.neighbors(a, a)) == kept and len(before) == 1000

    engine.remove_set(b)
    assert len(engine) == 1 and sets(engine.neighbors(a, a)) == kept
    for refused in [
        lambda: engine.remove_set(b),
        lambda: engine.points(b),
        lambda: engine.update(b, others),
        lambda: engine.neighbors(a, b),
        lambda: engine.retain_points(b, np.ones(1000, bool)),
    ]:
        with pytest.raises(IndexError, match="point set 1 has been removed"):
            refused()
    assert engine.add_points(others) > b, "a number that was never given"


def test_a_query_needs_no_point_there():
    points, probes = cloud(), cloud(50, 9)
    engine = nearfield.Engine(0.2, precision="f64")
    engine.add_points(points)
    expected = cKDTree(points).query_ball_point(probes, 0.2)
    assert sets(engine.query(probes)) == [set(near) for near in expected]


def test_a_density_is_the_sum_of_its_kernel():
    points, mass = cloud(500), np.random.default_rng(3).random(500).astype(np.float32)
    engine = nearfield.Engine(0.3, precision="f64")
    engine.add_points(points)
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    q = 2 * apart / 0.3
    kernel = 21 / (16 * np.pi) * (2 / 0.3) ** 3 * np.clip(1 - q / 2, 0, None) ** 4 * (2 * q + 1)
    np.fill_diagonal(kernel, 0)
    assert np.allclose(engine.sph_density(mass), kernel @ mass, rtol=1e-4)
    particle = np.dtype([("kind", "i2"), ("mass", "f4"), ("speed", "f4", 3)], align=True)
    particles = np.zeros(500, particle)
    particles["mass"] = mass
    for layout in (particles["mass"], np.repeat(mass, 3)[::3], mass[::-1].copy()[::-1]):
        assert not layout.flags["C_CONTIGUOUS"]
        assert np.array_equal(engine.sph_density(layout), engine.sph_density(mass))
    with pytest.raises(ValueError, match="support is -1"):
        engine.sph_density(mass, support=-1.0)


def test_a_density_in_a_plane_is_mass_per_area():
    side, radius = 60, 2.5
    x, y = np.meshgrid(np.arange(side), np.arange(side))
    points = np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float32)
    mass = np.ones(len(points), np.float32)
    engine = nearfield.Engine(radius, precision="f32")
    engine.add_points(points)
    flat = engine.sph_density(mass) + 7 / (4 * np.pi) * (2 / radius) ** 2
    middle = len(points) // 2 + side // 2
    assert abs(flat[middle] - 1.0) < 0.05, "one point per unit of area"
    ratio = 7 / 4 * (2 / radius) ** 2 / (21 / 16 * (2 / radius) ** 3)
    in_space = engine.sph_density(mass, dimensions=3)
    assert np.allclose(engine.sph_density(mass, dimensions=2), in_space * ratio, rtol=1e-5)
    assert np.array_equal(engine.sph_density(mass, dimensions=2), engine.sph_density(mass))
    with pytest.raises(ValueError, match="dimensions is 2 or 3, not 4"):
        engine.sph_density(mass, dimensions=4)
    engine.add_points(np.zeros((5, 3), np.float32))
    with pytest.raises(ValueError, match="say dimensions=2"):
        engine.sph_density(mass, 1, 0)
    engine.update(0, np.pad(points, ((0, 0), (0, 1))))
    assert np.allclose(engine.sph_density(mass), in_space, rtol=1e-6)


def test_a_support_beyond_the_radius_is_refused():
    points, mass = cloud(500).astype(np.float32), np.ones(500, np.float32)
    for precision in ["f32", "f64"]:
        engine = nearfield.Engine(0.1, precision=precision)
        engine.add_points(points)
        engine.sph_density(mass, support=0.1)
        engine.sph_density(mass, support=np.nextafter(np.float32(0.1), np.float32(1)))
        with pytest.raises(Exception, match=r"support 0\.2.*radius 0\.1 "):
            engine.sph_density(mass, support=0.2)


def test_sorting_leaves_the_neighbours_as_they_are():
    points = cloud()
    engine = nearfield.Engine(0.1, precision="f64")
    engine.add_points(points)
    order = engine.z_sort()
    engine.update(0, points[order])
    expected = sets(nearfield.neighbors(points, 0.1))
    for new, near in enumerate(sets(engine.neighbors())):
        assert {int(order[j]) for j in near} == expected[order[new]]


def test_warming_up_changes_no_result():
    engine = nearfield.Engine(0.1)
    engine.warm_up()
    engine.add_points(cloud(dtype=np.float32))
    engine.warm_up()
    lists = engine.neighbors()
    counts = np.asarray(engine.count_neighbors())
    engine.warm_up()
    assert engine.neighbors() is lists
    assert np.array_equal(engine.count_neighbors(), counts)


def test_counts_and_densities_are_written_to_arrays_of_the_caller():
    points = np.random.default_rng(4).random((500, 3)).astype(np.float32)
    engine = nearfield.Engine(0.2)
    engine.add_points(points)
    mass = np.full(500, 2, np.float32)
    for call, dtype in [
        (engine.count_neighbors, np.uint32),
        (lambda **out: engine.sph_density(mass, **out), np.float32),
    ]:
        expected = call()
        assert expected.any()
        apart = np.full((500, 2), 77, dtype)
        for out in (np.zeros(500, dtype), apart[:, 0]):
            assert call(out=out) is out
            assert np.array_equal(out, expected)
        assert (apart[:, 1] == 77).all()
        frozen = np.zeros(500, dtype)
        frozen.flags.writeable = False
        for wrong, message in [
            (np.zeros(499, dtype), "of shape .500,., not of"),
            (np.zeros((500, 1), dtype), "of shape .500,., not of"),
            (np.zeros(500), "not of float64"),
            (frozen, "out is read-only"),
        ]:
            with pytest.raises(ValueError, match=message):
                call(out=wrong)
        with pytest.raises(TypeError, match="out must be a NumPy array"):
            call(out=[0] * 500)


def test_errors_name_the_culprit():
    points = cloud(dtype=np.float32)
    bad = points.copy()
    bad[17, 1] = np.nan
    with pytest.raises(ValueError, match="17"):
        nearfield.neighbors(bad, 0.1)
    with pytest.raises(ValueError, match="radius -1"):
        nearfield.neighbors(points, -1.0)
    with pytest.raises(ValueError, match=r"\(n, 3\)"):
        nearfield.neighbors(np.zeros((4, 5), dtype=np.float32), 0.1)
    for wrong in (np.zeros((4, 3), dtype=bool), np.zeros((4, 3), np.float16)):
        with pytest.raises(TypeError, match="float32 or float64"):
            nearfield.neighbors(wrong, 0.1)
    for wrong in ([[0, 0, 0], [1, 2]], [["a", "b", "c"]], None, object()):
        with pytest.raises((TypeError, ValueError), match="points"):
            nearfield.neighbors(wrong, 0.1)
    with pytest.raises(ValueError, match="three lengths"):
        nearfield.neighbors(points, 0.1, box=(1, 2))
    with pytest.raises(ValueError, match="unknown device"):
        nearfield.neighbors(points, 0.1, device="tpu")
    with pytest.raises(RuntimeError, match="gpu:99"):
        nearfield.neighbors(points, 0.1, device="gpu:99")
    engine = nearfield.Engine(0.1, memory_limit=1000)
    with pytest.raises(ValueError, match='precision="f64"'):
        engine.add_points(points.astype(np.float64))
    engine.add_points(points)
    with pytest.raises(IndexError, match="point set 3"):
        engine.update(3, points)
    with pytest.raises(MemoryError, match="1000"):
        engine.find_neighbors()
    with pytest.raises(IndexError, match="no point 9999"):
        nearfield.neighbors(points, 0.1)[9999]


MAX = 2**64


@pytest.mark.parametrize(
    "radius, error",
    [
        (0.0, ValueError),
        (-0.0, ValueError),
        (-1.0, ValueError),
        (float("nan"), ValueError),
        (float("inf"), ValueError),
        (-float("inf"), ValueError),
        (1e-300, ValueError),
        (5e-324, ValueError),
        (1e300, ValueError),
        (np.float32(np.inf), ValueError),
        (10**400, OverflowError),
        ("1", TypeError),
        (None, TypeError),
        (1j, TypeError),
        (np.zeros(3), TypeError),
    ],
)
def test_a_radius_that_cannot_be_is_refused(radius, error):
    points = cloud(10)
    engine = nearfield.Engine(0.25)
    with pytest.raises(error) as refused:
        nearfield.neighbors(points, radius)
    if error is ValueError and radius not in (0.0, -0.0):
        assert "radius 0 " not in str(refused.value), "the value that was given"
    for precision in ("f32", "f64"):
        with pytest.raises(error):
            nearfield.Engine(radius, precision=precision)
    with pytest.raises(error):
        engine.radius = radius
    assert engine.radius == 0.25, "the last good one stays"
    with pytest.raises(error):
        nearfield.DeviceEngine(radius)


@pytest.mark.parametrize(
    "count, error",
    [
        (-1, OverflowError),
        (-MAX, OverflowError),
        (MAX, OverflowError),
        (10**400, OverflowError),
        (1.0, TypeError),
        (float("nan"), TypeError),
        ("1", TypeError),
        (np.float64(1), TypeError),
        (np.arange(2), TypeError),
    ],
)
def test_counts_that_cannot_be_are_refused_and_change_nothing(count, error):
    points = cloud(100, dtype=np.float32)
    engine = nearfield.Engine(0.25)
    engine.add_points(points)
    pairs = engine.neighbors().pairs
    mass = np.ones(100, np.float32)
    calls = [
        lambda: nearfield.Engine(0.25, threads=count),
        lambda: nearfield.Engine(0.25, memory_limit=count),
        lambda: nearfield.neighbors(points, 0.25, threads=count),
        lambda: nearfield.DeviceEngine(0.25, gpu=count),
        lambda: nearfield.DeviceEngine(0.25, subdivision=count),
        lambda: engine.update(count, points),
        lambda: engine.remove_set(count),
        lambda: engine.retain_points(count, np.ones(100, bool)),
        lambda: engine.points(count),
        lambda: engine.set_active(count, 0, False),
        lambda: engine.is_active(0, count),
        lambda: engine.neighbors(count, 0),
        lambda: engine.query(points, count),
        lambda: engine.count_neighbors(0, count),
        lambda: engine.sph_density(mass, count),
        lambda: engine.sph_density(mass, dimensions=count),
        lambda: engine.z_sort(count),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(error):
            call()
            pytest.fail(f"call {number} took {count!r}")
    assert engine.neighbors().pairs == pairs and engine.points(0) == 100


def test_sets_and_lists_beyond_their_number_are_index_errors():
    engine = nearfield.Engine(0.25)
    engine.add_points(cloud(10, dtype=np.float32))
    for number in (1, 2**32 - 1, 2**32, 2**63, MAX - 1):
        for call in (engine.points, engine.z_sort, engine.remove_set, engine.neighbors):
            with pytest.raises(IndexError, match=f"no point set {number}"):
                call(number)
    lists = engine.neighbors()
    for place in (10, -11, 2**63 - 1, -(2**63)):
        with pytest.raises(IndexError, match=f"no point {place}"):
            lists[place]
    for place in (2**63, -MAX, 10**400):
        with pytest.raises((IndexError, OverflowError)):
            lists[place]
    for place in (1.0, "0", None, [0.5], [[0, 1]]):
        with pytest.raises(TypeError):
            lists[place]
    for place in ([0, 10], np.array([-11]), np.ones(9, bool), [2**63]):
        with pytest.raises(IndexError):
            lists[place]


def test_settings_that_cannot_be_are_refused_by_name():
    points, mass = cloud(10, dtype=np.float32), np.ones(10, np.float32)
    for threads in (2**20, 2**40, MAX - 1):
        with pytest.raises((ValueError, MemoryError, RuntimeError), match=str(threads)):
            nearfield.Engine(0.25, threads=threads)
    for box, text in [
        ((-1, 1, 1), "-1"),
        ((np.nan, 1, 1), "NaN"),
        ((np.inf, 1, 1), "inf"),
        ((1e-300, 1, 1), "1e-300"),
        (((1, 0, 0), (1, 0, 0), (0, 0, 1)), "box"),
        (((np.nan, 0, 0), (0, 1, 0), (0, 0, 1)), "box"),
        ((1,), "three lengths"),
        ((1, 1, 1, 1), "three lengths"),
        (np.ones((2, 3)), "three lengths"),
        (((1, 0), (0, 1), (1, 1)), "three lengths"),
        (np.zeros((3, 3)), "leave it out"),
        ((False, True, True), "not booleans"),
        (np.array([True, True, False]), "not booleans"),
        ((np.True_, 1.0, 1.0), "not booleans"),
        (((1, 0, 0), (0, True, 0), (0, 0, 1)), "not booleans"),
        ("111", "three lengths"),
        (3.0, "three lengths"),
        ((10**400, 1, 1), "three lengths"),
        ((1j, 1, 1), "three lengths"),
    ]:
        with pytest.raises(ValueError, match=text):
            nearfield.neighbors(points, 0.25, box=box)
        with pytest.raises(ValueError, match=text):
            nearfield.Engine(0.25, box=box)
    engine = nearfield.Engine(0.25)
    engine.add_points(points)
    for support in (0.0, -1.0, np.nan, np.inf, 1e300, -1e300, 1e-300):
        with pytest.raises(ValueError, match="the support is"):
            engine.sph_density(mass, support=support)
    with pytest.raises(ValueError, match="precision"):
        nearfield.Engine(0.25, precision="f16")
    with pytest.raises(MemoryError, match="chunks.*query"):
        limited = nearfield.Engine(0.5, memory_limit=0)
        limited.add_points(cloud(1000, dtype=np.float32))
        limited.find_neighbors()
    assert limited.count_neighbors().sum() > 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_masked_entries_are_no_data(dtype):
    points = cloud(50, dtype=dtype)
    expected = nearfield.neighbors(points, 0.25).pairs
    whole = np.ma.array(points)
    assert nearfield.neighbors(whole, 0.25).pairs == expected
    unmasked = np.ma.array(points, mask=np.zeros_like(points, bool))
    assert nearfield.neighbors(unmasked, 0.25).pairs == expected
    masked = np.ma.array(points, mask=np.zeros_like(points, bool))
    masked[7, 1] = np.ma.masked
    engine = nearfield.Engine(0.25, precision="f32" if dtype == np.float32 else "f64")
    engine.add_points(points)
    for call, what in (
        (lambda: nearfield.neighbors(masked, 0.25), "points"),
        (lambda: engine.add_points(masked), "points"),
        (lambda: engine.update(0, masked), "points"),
        (lambda: engine.query(masked), "positions"),
    ):
        with pytest.raises(ValueError, match=f"^{what}: 1 of 150 entries are masked"):
            call()
    with pytest.raises(ValueError, match="^positions must have the shape"):
        engine.query(points[0])
    mass = np.ma.array(np.ones(50, np.float32), mask=[True] + [False] * 49)
    with pytest.raises(ValueError, match="mass: 1 of 50 entries are masked"):
        engine.sph_density(mass)
    keep = np.ma.array(np.ones(50, bool), mask=[True] + [False] * 49)
    with pytest.raises(ValueError, match="keep: 1 of 50 entries are masked"):
        engine.retain_points(0, keep)
    assert engine.neighbors().pairs == expected
    assert nearfield.neighbors(np.ma.compress_rows(masked), 0.25).pairs < expected


def test_other_threads_run_while_an_engine_works_and_may_not_change_it():
    points = cloud(200_000, dtype=np.float32)
    engine = nearfield.Engine(0.05, threads=1)
    engine.add_points(points)
    met, beats = [], []
    done = threading.Event()

    def other():
        while not done.is_set():
            beats.append(1)
            try:
                engine.set_active(0, 0, True)
            except RuntimeError as error:
                met.append(str(error))

    thread = threading.Thread(target=other)
    thread.start()
    try:
        for _ in range(5):
            try:
                engine.update(0, points)
                engine.find_neighbors()
            except RuntimeError:
                continue  # the other thread was inside
    finally:
        done.set()
        thread.join()
    assert met and "in use by another thread" in met[0]
    assert len(beats) > 10


def test_the_report_says_what_ran():
    engine = nearfield.Engine(0.1, device="cpu")
    engine.add_points(cloud(dtype=np.float32))
    lists = engine.neighbors()
    report = engine.report()
    assert report["device"] == "cpu" and report["sets"][0]["points"] == len(lists)
    assert repr(engine).startswith("<nearfield.Engine of 1 set, radius 0.1")
    engine.add_points(cloud(10, dtype=np.float32))
    assert repr(engine).startswith("<nearfield.Engine of 2 sets")


@pytest.mark.parametrize("rule", ["gather", "scatter", "symmetric"])
def test_points_search_within_radii_of_their_own(rule):
    points = cloud(500, dtype=np.float32)
    radii = np.random.default_rng(4).uniform(0.02, 0.2, 500).astype(np.float32)
    apart = np.linalg.norm(points[:, None].astype(float) - points[None], axis=2)
    reach = {
        "gather": radii[:, None] + 0 * radii[None],
        "scatter": radii[None] + 0 * radii[:, None],
        "symmetric": np.maximum(radii[:, None], radii[None]),
    }[rule]
    expected = [set(np.flatnonzero(row)) - {i} for i, row in enumerate(apart <= reach)]
    assert sets(nearfield.neighbors(points, 0.2, radii=radii, rule=rule)) == expected
    engine = nearfield.Engine(0.2, rule=rule)
    engine.add_points(points)
    with pytest.raises(ValueError, match="has no radii for its 500 points"):
        engine.find_neighbors()
    engine.set_radii(0, radii)
    assert sets(engine.neighbors()) == expected
    for wrong, error, text in [
        (radii[:-1], ValueError, "499 radii for 500 points"),
        (radii * 2, ValueError, "which is not between"),
        (radii.astype(np.float64), TypeError, "radii must be a NumPy array of float32"),
        (radii[:, None], ValueError, "shape"),
        ([0.1] * 499 + [float("nan")], ValueError, "point 499 has the radius NaN"),
    ]:
        with pytest.raises(error, match=text):
            engine.set_radii(0, wrong)
    assert sets(engine.neighbors()) == expected
    with pytest.raises(IndexError):
        engine.set_radii(3, radii)
    engine.set_radii(0, radii.tolist())
    assert sets(engine.neighbors()) == expected
    own = None if rule == "scatter" else radii[:20]
    found = sets(engine.query(points[:20], radii=own))
    assert found == [near | {i} for i, near in enumerate(expected[:20])]
    with pytest.raises(ValueError, match="radi"):
        engine.query(points[:20], radii=radii[:20] if own is None else None)


def test_rules_of_radii_that_cannot_be_are_refused_by_name():
    points, radii = cloud(10, dtype=np.float32), np.full(10, 0.1, dtype=np.float32)
    with pytest.raises(ValueError, match='rule is "uniform", "gather"'):
        nearfield.Engine(1.0, rule="larger")
    with pytest.raises(ValueError, match="half lists"):
        nearfield.Engine(1.0, rule="gather", half=True)
    with pytest.raises(ValueError, match="strict"):
        nearfield.neighbors(points, 1.0, radii=radii, strict=True)
    with pytest.raises(ValueError, match="uniform"):
        nearfield.neighbors(points, 1.0, radii=radii, rule="uniform")
    symmetric = sets(nearfield.neighbors(points, 1.0, radii=radii, rule="symmetric"))
    assert sets(nearfield.neighbors(points, 1.0, radii=radii)) == symmetric


def filtered(points, keep, k=None):
    """Neighbours j of i by distance among the pairs that keep[i, j] is true of."""
    apart = np.linalg.norm(points[:, None].astype(float) - points[None], axis=2)
    lists = []
    for i, row in enumerate(keep):
        near = [j for j in np.flatnonzero(row) if j != i]
        near.sort(key=lambda j: (apart[i, j], j))
        lists.append(near[:k])
    return lists


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_filters_leave_out_pairs_within_the_radius(dtype):
    points = cloud(400, dtype=dtype)
    random = np.random.default_rng(8)
    apart = np.linalg.norm(points[:, None].astype(float) - points[None], axis=2)
    types = random.integers(0, 2, 400)
    cutoffs = np.array([[0.2, 0.1], [0.1, 0.0]])
    pairs = random.integers(0, 400, (2000, 2))
    bonded = np.zeros((400, 400), dtype=bool)
    bonded[pairs[:, 0], pairs[:, 1]] = bonded[pairs[:, 1], pairs[:, 0]] = True
    molecules = np.arange(400) // 3
    chosen = random.random(400) < 0.5
    within = apart <= 0.2
    typed = apart <= cutoffs[types[:, None], types[None]]
    typed &= cutoffs[types[:, None], types[None]] > 0
    apart_molecules = molecules[:, None] != molecules[None]
    for keep, arguments in [
        (typed, dict(types=types, cutoffs=cutoffs)),
        (within & ~bonded, dict(exclusions=pairs)),
        (within & apart_molecules, dict(molecules=molecules)),
        (within & chosen[:, None], dict(targets=chosen)),
        (within & chosen[:, None], dict(targets=np.flatnonzero(chosen))),
        (within, dict(k=5)),
        (typed & ~bonded & chosen[:, None],
         dict(types=types, cutoffs=cutoffs.tolist(), exclusions=pairs, targets=chosen, k=3)),
    ]:
        found = nearfield.neighbors(points, 0.2, **arguments)
        expected = filtered(points, keep, arguments.get("k"))
        if "k" in arguments:
            assert [found[i].tolist() for i in range(400)] == expected
        else:
            assert sets(found) == [set(near) for near in expected]

    precision = "f32" if dtype == np.float32 else "f64"
    engine = nearfield.Engine(0.2, cutoffs=cutoffs, k=4, precision=precision)
    engine.add_points(points)
    with pytest.raises(ValueError, match="no types for its 400 points"):
        engine.neighbors()
    engine.set_types(0, types)
    engine.set_exclusions(0, pairs)
    engine.set_targets(0, np.flatnonzero(chosen))
    keep = typed & ~bonded & chosen[:, None]
    found = engine.neighbors()
    assert [found[i].tolist() for i in range(400)] == filtered(points, keep, 4)
    engine.set_molecules(0, molecules)
    engine.set_targets(0, None)
    lengths = [len(near) for near in filtered(points, typed & apart_molecules, 4)]
    assert engine.count_neighbors().tolist() == lengths
    engine.clear_exclusions(0)
    assert engine.neighbors().pairs == sum(len(near) for near in filtered(points, typed, 4))
    nearest = engine.query(points[:3])
    expected = [np.lexsort((np.arange(400), apart[i]))[:4].tolist() for i in range(3)]
    assert [nearest[i].tolist() for i in range(3)] == expected


def test_filters_that_cannot_be_are_refused_by_name_and_change_nothing():
    points = cloud(10, dtype=np.float32)
    engine = nearfield.Engine(1.0, cutoffs=[[1.0, 0.5], [0.5, 0.0]])
    engine.add_points(points)
    engine.set_types(0, np.zeros(10, dtype=np.uint8))
    before = engine.neighbors()
    for call, argument, error, text in [
        (engine.set_types, np.full(10, 2), ValueError, "point 0 has the type 2"),
        (engine.set_types, np.zeros(9, dtype=int), ValueError, "types for 9 points"),
        (engine.set_types, np.zeros(10), TypeError, "types must be whole numbers"),
        (engine.set_types, np.zeros((10, 1), dtype=int), ValueError, "shape"),
        (engine.set_types, [-1] * 10, ValueError, "types: number 0 is -1"),
        (engine.set_exclusions, [[0, 10]], ValueError, "point 0 excludes point 10"),
        (engine.set_exclusions, [0, 1], ValueError, r"exclusions must have the shape \(n, 2\)"),
        (engine.set_exclusions, [[0.5, 1.0]], TypeError, "whole numbers"),
        (engine.set_molecules, [0] * 11, ValueError, "for 11 points"),
        (engine.set_targets, [10], ValueError, "index 10"),
        (engine.set_targets, np.ones(9, dtype=bool), ValueError, "for 9 points"),
        (engine.set_targets, [2**40], ValueError, "targets: number 0 is 1099511627776"),
        (engine.set_targets, np.array([0, 2**63], dtype=np.uint64), ValueError, f"number 1 is {2**63}"),
        (engine.set_targets, [True] * 9, ValueError, "for 9 points"),
    ]:
        with pytest.raises(error, match=text):
            call(0, argument)
    lists = sets(before)
    assert sets(engine.neighbors()) == lists
    for arguments, text in [
        (dict(k=0), "at least 1"),
        (dict(k=-1), "at least 1"),
        (dict(k=2**32), "at most 4294967295"),
        (dict(k=3, half=True), "half lists"),
        (dict(k=3, sorted=True), "ascending"),
        (dict(cutoffs=[[1.0, 0.5]]), "row 0"),
        (dict(cutoffs=[[2.0]]), "cut-off of types 0 and 0 is 2"),
        (dict(cutoffs=[[1.0]], rule="gather"), "radii of single points"),
    ]:
        with pytest.raises(ValueError, match=text):
            nearfield.Engine(1.0, **arguments)
    # A sequence that claims to be long is not believed.
    for no_matrix in [[1.0, 2.0], range(10**13), range(2**60)]:
        with pytest.raises(TypeError, match="square matrix"):
            nearfield.Engine(1.0, cutoffs=no_matrix)
    with pytest.raises(ValueError, match="replace each other"):
        nearfield.neighbors(points, 1.0, exclusions=[[0, 1]], molecules=[0] * 10)
    with pytest.raises(ValueError, match="without cut-offs"):
        nearfield.neighbors(points, 1.0, types=[0] * 10)
    assert nearfield.neighbors(points, 2.0, exclusions=[], targets=[]).pairs == 0
