"""The function edges() and its forms, against ASE's definitions by brute force."""

import os

import nearfield
import numpy as np
import pytest
from nearfield import _batches, _edges, _gpu, _libraries, _nearfield

# Random crystals that are searched; NEARFIELD_CRYSTALS=10000 takes some minutes.
CRYSTALS = int(os.environ.get("NEARFIELD_CRYSTALS", "200"))


def crystal(random):
    """Positions, cell, pbc and a radius: any tilt and handedness, up to some five cells wide."""
    count = random.integers(1, 61)
    while True:
        cell = random.normal(size=(3, 3)) * random.uniform(1, 4)
        volume = abs(np.linalg.det(cell))
        heights = volume / np.linalg.norm(np.cross(cell[[1, 2, 0]], cell[[2, 0, 1]]), axis=1)
        if heights.min() > 0.2:
            break
    pbc = random.random(3) < 0.6
    points = random.uniform(-0.5, 1.5, (count, 3)) @ cell
    reach = random.uniform(0.1, 5) * volume ** (1 / 3)
    # As few pairs as a test can look at: fewer points reach farther.
    while count**2 * np.prod(np.where(pbc, 2 * reach / heights + 3, 1)) > 4e5:
        reach *= 0.8
    for axis in np.flatnonzero(~pbc & (random.random(3) < 0.3)):
        cell[axis] = 0
    return points, cell, pbc, reach


def brute_force(points, cell, pbc, radius):
    """All (i, j, S) with D = r[j] - r[i] + S @ cell no longer than the radius, but (i, i, 0)."""
    vectors = cell[pbc]
    limits = np.zeros(3, int)
    if len(vectors):
        # Distances between the faces in the space that the periodic vectors span.
        inverse = np.linalg.pinv(vectors)
        extent = np.abs((points[:, None] - points) @ inverse).max(axis=(0, 1))
        limits[pbc] = np.ceil(radius * np.linalg.norm(inverse, axis=0) + extent)
    images = np.stack(np.meshgrid(*(np.arange(-n, n + 1) for n in limits), indexing="ij"), -1)
    images = images.reshape(-1, 3)
    D = (points - points[:, None])[:, :, None] + images @ np.where(pbc[:, None], cell, 0)
    d = np.linalg.norm(D, axis=-1)
    # A radius that no pair has to the last bits.
    while (np.abs(d - radius) < 1e-9).any():
        radius += 1e-8
    near = d <= radius
    n = np.arange(len(points))
    near[n, n, np.flatnonzero((images == 0).all(axis=1))] = False
    i, j, s = np.nonzero(near)
    return radius, (i, j, images[s], d[near], D[near])


def assert_same(found, expected, tolerance=1e-12):
    """Sorted pairs against those of a brute force, which are sorted too."""
    for got, wanted in zip(found[:3], expected[:3]):
        np.testing.assert_array_equal(got, wanted)
    for got, wanted in zip(found[3:], expected[3:]):
        scale = max(1.0, np.abs(wanted).max(initial=0))
        np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * scale)


def test_pairs_are_those_of_ases_definitions():
    random = np.random.default_rng(CRYSTALS)
    for _ in range(CRYSTALS):
        points, cell, pbc, radius = crystal(random)
        radius, expected = brute_force(points, cell, pbc, radius)
        found = nearfield.edges(points, radius, cell=cell, pbc=pbc, sorted=True)
        assert_same(found, expected)


def cloud(count=200, seed=1, dtype=np.float64):
    """Points, a cell and a radius."""
    random = np.random.default_rng(seed)
    cell = np.eye(3) * 4.0 + random.uniform(-0.5, 0.5, (3, 3))
    return random.uniform(-1, 5, (count, 3)).astype(dtype), cell, 1.5


@pytest.mark.parametrize("count", [60, 1500])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_small_and_large_systems_are_found_as_by_an_engine(count, dtype):
    points, cell, radius = cloud(count, dtype=dtype)
    engine = nearfield.Engine(
        radius, cell=cell, pbc=True, precision="f32" if dtype == np.float32 else "f64", sorted=True
    )
    engine.add_points(points)
    for strict in [False, True]:
        found = nearfield.edges(points, radius, cell=cell, pbc=True, sorted=True, strict=strict)
        for got, wanted in zip(found, engine.pair_geometry()):
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(got, wanted)
    i, j, S, d, D = found
    assert (i.dtype, j.dtype, S.dtype, d.dtype, D.dtype) == (np.int64,) * 2 + (np.int32,) + (dtype,) * 2
    order = np.lexsort((S[:, 2], S[:, 1], S[:, 0], j, i))
    np.testing.assert_array_equal(order, np.arange(len(i)))


def test_strictly_within_leaves_out_pairs_at_the_radius():
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 0, 2]])
    for given in [dict(), dict(batch_ptr=[0, 3]), dict(targets=[0, 1, 2])]:
        assert len(nearfield.edges(points, 1.0, "ij", **given)[0]) == 2
        assert len(nearfield.edges(points, 1.0, "ij", strict=True, **given)[0]) == 0


@pytest.mark.parametrize("index", ["int64", "int32", "uint32"])
def test_indices_have_the_type_that_is_asked_for(index):
    points, cell, radius = cloud()
    for given in [dict(), dict(k=3), dict(batch_ptr=[0, 100, 200])]:
        i, j, P = nearfield.edges(points, radius, "ijP", cell=cell, pbc=True, index=index, **given)
        assert i.dtype == j.dtype == P.dtype == index
        np.testing.assert_array_equal(P, np.stack([i, j], 1))
    with pytest.raises(ValueError, match="index is"):
        nearfield.edges(points, radius, index="int16")


def test_filters_are_those_of_lists():
    points, cell, radius = cloud(300, dtype=np.float32)
    random = np.random.default_rng(2)
    box = dict(cell=cell, pbc=True)
    kinds = random.integers(0, 2, 300)
    for given in [
        dict(radii=random.uniform(0.5, 1.5, 300).astype(np.float32)),
        dict(radii=random.uniform(0.5, 1.5, 300).astype(np.float32), rule="gather"),
        dict(types=kinds, cutoffs=[[1.5, 1.0], [1.0, 0.5]]),
        dict(exclusions=[[0, 1], [5, 7]]),
        dict(molecules=np.arange(300) // 3),
        dict(targets=[3, 20, 7]),
        dict(targets=kinds == 1),
        dict(k=4),
    ]:
        i, j, d = nearfield.edges(points, radius, "ijd", **box, **given)
        offsets, indices = nearfield.neighbors(points, radius, **box, **given).csr()
        counts = np.bincount(i, minlength=300)
        np.testing.assert_array_equal(counts, np.diff(offsets))
        rows = np.repeat(np.arange(300), np.diff(offsets))
        np.testing.assert_array_equal(np.sort(rows * 300 + indices), np.sort(i * 300 + j))
        assert (d <= radius).all()


def test_points_of_another_set_are_found():
    points, cell, radius = cloud()
    others = np.random.default_rng(4).uniform(0, 4, (70, 3))
    both = np.concatenate([points, others])
    i, j, S, d, D = nearfield.edges(both, radius, cell=cell, pbc=True, sorted=True)
    mine = (i < 200) & (j >= 200)
    found = nearfield.edges(points, radius, other=others, cell=cell, pbc=True, sorted=True)
    assert_same(found, (i[mine], j[mine] - 200, S[mine], d[mine], D[mine]), 0)
    near = nearfield.edges(points, radius, "ijd", other=others, cell=cell, pbc=True, k=1)
    assert np.bincount(near[0]).max() == 1
    with pytest.raises(ValueError, match="half= concerns"):
        nearfield.edges(points, radius, other=others, half=True)
    with pytest.raises(ValueError, match="same type"):
        nearfield.edges(points, radius, other=others.astype(np.float32))
    with pytest.raises(ValueError, match="^other must have the shape"):
        nearfield.edges(points, radius, other=others.ravel())


def with_self(i, j, S, d, D, rows):
    """Pairs and those of points with themselves, sorted."""
    none = np.zeros((len(rows), 3))
    both = [(i, rows), (j, rows), (S, none.astype(S.dtype)), (d, none[:, 0]), (D, none)]
    i, j, S, d, D = (np.concatenate(parts) for parts in both)
    order = np.lexsort((S[:, 2], S[:, 1], S[:, 0], j, i))
    return tuple(array[order] for array in (i, j, S, d, D))


@pytest.mark.parametrize("targets", [None, [3, 50, 7], "mask"])
def test_points_are_pairs_with_themselves_on_request(targets):
    points, cell, radius = cloud(80)
    if targets == "mask":
        targets = points[:, 0] > 1
    rows = np.arange(80) if targets is None else np.arange(80)[np.sort(targets)]
    if targets is not None and np.asarray(targets).dtype == bool:
        rows = np.flatnonzero(targets)
    given = dict(cell=cell, pbc=True, targets=targets)
    alone = nearfield.edges(points, 4.5, sorted=True, **given)
    expected = with_self(*alone, rows)
    assert_same(nearfield.edges(points, 4.5, sorted=True, self_pairs=True, **given), expected, 0)
    i, j, d = nearfield.edges(points, 4.5, "ijd", self_pairs=True, **given)
    assert (np.diff(i) >= 0).all() and len(i) == len(expected[0])
    np.testing.assert_array_equal(i[(d == 0)], rows)
    i, P = nearfield.edges(points, 4.5, "iP", self_pairs=True, index="int32", **given)
    assert P.dtype == i.dtype == np.int32
    np.testing.assert_array_equal(P[:, 0], i)
    half = nearfield.edges(points, 4.5, "ij", self_pairs=True, half=True, cell=cell, pbc=True)
    assert np.count_nonzero(half[0] == half[1]) >= 80 and (half[0] <= half[1]).all()


def test_systems_are_given_by_the_system_of_every_point():
    points, cell, radius = cloud()
    sizes = np.array([0, 120, 0, 79, 1, 0])
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    idx = np.repeat(np.arange(6), sizes)
    cells = np.stack([cell] * 6)
    given = dict(cell=cells, pbc=True, sorted=True)
    expected = nearfield.edges(points, radius, batch_ptr=ptr, **given)
    assert_same(nearfield.edges(points, radius, batch_idx=idx, **given), expected, 0)
    assert_same(nearfield.edges(points, radius, batch_idx=list(idx), **given), expected, 0)
    # Systems behind the last point need not be known.
    one = nearfield.edges(points, radius, batch_idx=idx, cell=cell, pbc=True, sorted=True)
    assert_same(one, expected, 0)
    wrong = idx.copy()
    wrong[150] = 0
    for given, message in [
        (dict(batch_idx=wrong), "point 149 is in system 3, but point 150 in system 0"),
        (dict(batch_idx=idx[:-1]), r"shape \(200,\)"),
        (dict(batch_idx=idx - 2), "from -1"),
        (dict(batch_idx=idx, cell=cells[:3], pbc=True), "there are 3 systems"),
        (dict(batch_idx=idx, batch_ptr=ptr), "give one of them"),
        (dict(batch_ptr=ptr, other=points), "other= is for points of one system"),
        (dict(batch_ptr=ptr, k=3, other=points), "other= is for points of one system"),
    ]:
        with pytest.raises(ValueError, match=message):
            nearfield.edges(points, radius, **given)
    with pytest.raises(TypeError, match="whole numbers"):
        nearfield.edges(points, radius, batch_idx=idx * 0.5)
    for largest in (2**40, 2**64 - 1):
        with pytest.raises(ValueError, match=f"goes to {largest}"):
            far = np.array([0, 0, largest], np.uint64)
            nearfield.edges(points[:3], radius, batch_idx=far)
    assert len(nearfield.edges(points[:0], radius, "i", batch_idx=[])[0]) == 0


def test_pairs_are_written_into_arrays_of_the_caller():
    points, cell, radius = cloud()
    expected = nearfield.edges(points, radius, "jD", cell=cell, pbc=True)
    count = len(expected[0])
    out = np.full(count + 5, -1), np.full((count + 5, 3), np.nan)
    found = nearfield.edges(points, radius, "jD", cell=cell, pbc=True, out=out)
    for got, wanted, whole in zip(found, expected, out):
        assert got.base is whole
        np.testing.assert_array_equal(got, wanted)
    assert (out[0][count:] == -1).all()
    short = out[0][: count - 1], out[1]
    with pytest.raises(ValueError, match=f"j has room for {count - 1} pairs, but there are {count}"):
        nearfield.edges(points, radius, "jD", cell=cell, pbc=True, out=short)
    with pytest.raises(ValueError, match="1 arrays for 2"):
        nearfield.edges(points, radius, "jD", out=out[:1])
    with pytest.raises(ValueError, match="must be int64"):
        nearfield.edges(points, radius, "jD", out=(out[0].astype(np.int32), out[1]))
    with pytest.raises(ValueError, match="for j is that of another"):
        nearfield.edges(points, radius, "ij", out=(out[0], out[0]))
    with pytest.raises(TypeError, match="j needs an array"):
        nearfield.edges(points, radius, "jD", out=([], out[1]))
    before = out[0].copy()
    out[1].flags.writeable = False
    with pytest.raises(ValueError, match="array for D is read-only"):
        nearfield.edges(points, radius, "jD", out=out)
    np.testing.assert_array_equal(out[0], before)


def test_points_without_a_library_are_arrays():
    points = cloud(20)[0]
    expected = nearfield.edges(points, 1.0, "ij", self_pairs=True)
    for given in (tuple(map(tuple, points)), points.tolist(), OnlyAnArray(points)):
        for how in (dict(self_pairs=True), dict(self_pairs=True, batch_idx=[0] * 20)):
            found = nearfield.edges(given, 1.0, "ij", **how)
            np.testing.assert_array_equal(found, expected)
    for wrong in (None, 5, "abc"):
        with pytest.raises(TypeError, match="points must be"):
            nearfield.edges(wrong, 1.0, "ij", self_pairs=True)
    few = nearfield.edges(points, 1.0, "ij", self_pairs=True, targets=[0, 2])
    for targets in ((0, 2), np.array([2, 0])):
        found = nearfield.edges(points, 1.0, "ij", self_pairs=True, targets=targets)
        np.testing.assert_array_equal(found, few)
    assert len(nearfield.edges(points, 1.0, "i", self_pairs=True, targets=())[0]) == 0
    with pytest.raises(ValueError, match="asked for twice"):
        nearfield.edges(points, 1.0, "ii", self_pairs=True)


class OnlyAnArray:
    def __init__(self, points):
        self.points = points

    def __array__(self, *_, **__):
        return self.points


def test_rows_of_a_fixed_length_hold_the_first_neighbors():
    points, cell, radius = cloud()
    given = dict(cell=cell, pbc=True)
    i, j, S, d, D = nearfield.edges(points, radius, sorted=True, **given)
    counts = np.bincount(i, minlength=200)
    for columns in [0, 5, counts.max()]:
        rows = nearfield.padded(points, radius, int(columns), "DSd", **given)
        assert rows.indices.shape == (200, columns) and rows.indices.dtype == np.int64
        assert rows.largest == counts.max()
        np.testing.assert_array_equal(rows.counts, np.minimum(counts, columns))
        for row in range(200):
            kept = rows.counts[row]
            mine = np.flatnonzero(i == row)[:kept]
            np.testing.assert_array_equal(rows.indices[row, :kept], j[mine])
            np.testing.assert_array_equal(rows.images[row, :kept], S[mine])
            np.testing.assert_array_equal(rows.distances[row, :kept], d[mine])
            np.testing.assert_array_equal(rows.displacements[row, :kept], D[mine])
            assert (rows.indices[row, kept:] == 200).all() and not rows.distances[row, kept:].any()
    nearest = nearfield.padded(points, radius, 2, "d", fill=-1, k=2, index="int32", **given)
    assert nearest.largest == 2 and nearest.indices.dtype == np.int32 and nearest.images is None
    assert (nearest.distances[:, 0] <= nearest.distances[:, 1])[nearest.counts == 2].all()
    assert (nearfield.padded(points, 1e-3, 3, fill=-1).indices == -1).all()
    assert nearfield.padded(points[:0], 1.0, 3).indices.shape == (0, 3)
    same = nearfield.padded(points, radius, np.int64(2), fill=np.int8(-1))
    assert same.indices.shape == (200, 2)
    for wrong in (dict(max_neighbors=True), dict(fill=0.5), dict(fill=-1, index="uint32")):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            nearfield.padded(points, radius, **{"max_neighbors": 2, **wrong})
    with pytest.raises(ValueError, match="max_neighbors"):
        nearfield.padded(points, radius, -1)
    with pytest.raises(ValueError, match="quantities"):
        nearfield.padded(points, radius, 3, "P")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lists_with_a_skin_give_the_pairs_of_a_fresh_search(dtype):
    points, cell, radius = cloud(700, dtype=dtype)
    cell = cell.copy()
    random = np.random.default_rng(6)
    for given in [dict(pbc=True), dict(pbc=[True, False, True], half=True, strict=True), dict()]:
        box = dict(pbc=given.pop("pbc"), cell=cell) if "pbc" in given else {}
        near = nearfield.EdgeList(radius, skin=0.3, sorted=True, **given)
        moved, rebuilt = points.copy(), []
        for step in range(12):
            found = near.compute(moved, **box)
            fresh = nearfield.edges(moved, radius, sorted=True, **box, **given)
            for got, wanted in zip(found, fresh):
                assert got.dtype == wanted.dtype
                np.testing.assert_array_equal(got, wanted)
            rebuilt.append(near.rebuilds)
            moved += random.normal(size=moved.shape).astype(dtype) * 0.02
        assert rebuilt[0] == rebuilt[1] == 1 and 1 < rebuilt[-1] < 12
        # A point that leaves through a face, a cell that changes, and another number of points.
        moved[0] += cell[0].astype(dtype)
        for points_now, cell_now in [(moved, cell), (moved, cell * 1.001), (moved[:-1], cell * 1.001)]:
            if box:
                box["cell"] = cell_now
            found = near.compute(points_now, **box)
            fresh = nearfield.edges(points_now, radius, sorted=True, **box, **given)
            np.testing.assert_array_equal(found[1], fresh[1])
            np.testing.assert_array_equal(found[4], fresh[4])


def test_lists_with_a_skin_hold_many_systems():
    points, cell, radius = cloud(300)
    ptr = [0, 100, 100, 290, 300]
    cells = np.stack([cell, cell * 2, cell.T, -cell])
    near = nearfield.EdgeList([1.5, 1.0, 1.2, 2.0], skin=0.2, quantities="Pd", sorted=True)
    for step in range(3):
        points += 0.01
        found = near.compute(points, cells, True, batch_ptr=ptr)
        fresh = nearfield.edges(
            points, near.radius, "Pd", batch_ptr=ptr, cell=cells, pbc=True, sorted=True
        )
        for got, wanted in zip(found, fresh):
            np.testing.assert_array_equal(got, wanted)
    assert near.rebuilds == 1
    with pytest.raises(ValueError, match="system 1"):
        near.compute(points, np.zeros((4, 3, 3)) + cells * [[[1]], [[0]], [[1]], [[1]]], True, batch_ptr=ptr)
    with pytest.raises(ValueError, match="point 3"):
        points[3, 1] = np.nan
        near.compute(points, batch_ptr=ptr)


def test_lists_say_what_they_do_not_take():
    points, cell, radius = cloud()
    near = nearfield.EdgeList(radius, quantities="ij", k=3)
    fresh = nearfield.edges(points, radius, "ij", k=3, cell=cell, pbc=True)
    for got, wanted in zip(near.compute(points, cell, True), fresh):
        np.testing.assert_array_equal(got, wanted)
    assert near.rebuilds == 1
    with pytest.raises(TypeError, match="k= has no lists with a skin"):
        nearfield.EdgeList(radius, skin=0.1, k=3)
    with pytest.raises(TypeError, match="cell= is an argument of compute"):
        nearfield.EdgeList(radius, cell=cell)
    with pytest.raises(ValueError, match="skin"):
        nearfield.EdgeList(radius, skin=-0.1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lists_with_a_skin_take_arrays_of_a_gpu(fake_gpu, monkeypatch, dtype):
    points, cell, radius = cloud(90, dtype=dtype)
    random = np.random.default_rng(9)
    for given in [dict(), dict(half=True, strict=True, index="int32")]:
        near = nearfield.EdgeList(radius, skin=0.3, quantities="PdS", sorted=True, **given)
        moved, before = points.copy(), HostSystems.searches
        for step in range(8):
            for of_call in (dict(), dict(batch_ptr=[0, 40, 90])):
                keywords = ALL_KEYWORDS | given | of_call | dict(cell=cell, pbc=True, sorted=True)
                expected = _edges.edges(moved, radius, "PdS", **keywords)
                if not of_call:
                    found = near.compute(moved, cell, True)
                    for got, wanted in zip(found, expected):
                        assert got.dtype == wanted.dtype
                        np.testing.assert_array_equal(got, wanted)
            moved += random.normal(size=moved.shape).astype(dtype) * 0.02
        assert 1 < near.rebuilds < 8
    found = near.compute(moved, cell, True, batch_ptr=[0, 40, 90])
    for got, wanted in zip(found, expected):
        assert got.dtype == wanted.dtype
    # Every call with a skin is of its own search, not of those that other calls take turns with.
    assert all("skin" not in search.settings for search, *_ in _gpu._kept.idle.values())
    many, *_ = cloud(200, dtype=dtype)
    with pytest.raises(ValueError, match="a skin on a GPU is for systems of at most 100 points"):
        near.compute(many, cell, True)
    monkeypatch.setattr(FakeGpu, "writable", False)
    with pytest.raises(TypeError, match="those of JAX cannot"):
        near.compute(points, cell, True)


def test_a_search_that_a_graph_would_record_is_refused(fake_gpu, monkeypatch):
    points, _, radius = cloud(90)
    monkeypatch.setattr(FakeGpu, "is_recording", lambda self, gpu: True)
    with pytest.raises(RuntimeError, match="which a CUDA graph cannot record"):
        nearfield.EdgeList(radius, skin=0.1).compute(points)
    with pytest.raises(RuntimeError, match="which a CUDA graph cannot record"):
        _edges.edges(points, radius, **ALL_KEYWORDS)


def filters_of(count):
    """Filters by their keywords, and which pairs (i, j) of which lengths they keep."""
    random = np.random.default_rng(12)
    types, molecules = random.integers(0, 2, count), np.arange(count) // 3
    cutoffs = np.array([[1.0, 0.9], [0.9, 0.0]])
    radii = random.uniform(0.4, 0.99, count).astype(np.float32)
    left_out = random.integers(0, count, (60, 2))
    is_left_out = np.zeros((count, count), bool)
    is_left_out[left_out[:, 0], left_out[:, 1]] = is_left_out[left_out[:, 1], left_out[:, 0]] = True
    chosen = random.random(count) < 0.4
    return [
        (dict(types=types, cutoffs=cutoffs.tolist()), lambda i, j, d: d <= cutoffs[types[i], types[j]]),
        (dict(exclusions=left_out), lambda i, j, d: ~is_left_out[i, j]),
        (dict(exclusions=[]), lambda i, j, d: d < 9),
        (dict(molecules=molecules), lambda i, j, d: molecules[i] != molecules[j]),
        (dict(targets=chosen), lambda i, j, d: chosen[i]),
        (dict(targets=np.flatnonzero(chosen)[::-1]), lambda i, j, d: chosen[i]),
        (dict(radii=radii), lambda i, j, d: d <= np.maximum(radii[i], radii[j])),
        (dict(radii=radii, rule="gather"), lambda i, j, d: d <= radii[i]),
    ]


@pytest.mark.parametrize("on_gpu", [False, True])
def test_systems_have_filters_which_count_the_points_of_all(request, on_gpu):
    if on_gpu:
        request.getfixturevalue("fake_gpu")
    search = lambda *given, **how: (
        _edges.edges(*given, **ALL_KEYWORDS | how) if on_gpu else nearfield.edges(*given, **how)
    )
    points, cell, radius = cloud(200, dtype=np.float32)
    ptr = np.array([0, 120, 120, 199, 200])
    cells = np.stack([cell, cell * 2, cell * 1.2, cell])
    systems = dict(batch_ptr=ptr, cell=cells, pbc=[[True] * 3] * 3 + [[False] * 3], sorted=True)
    for radius in (1.4, [1.4, 1.0, 1.2, 1.0]):
        i, j, S, d, D = nearfield.edges(points, radius, **systems)
        for given, keeps in filters_of(200):
            kept = keeps(i, j, d)
            assert 0 < np.count_nonzero(kept)
            found = search(points, radius, **systems, **given)
            for got, wanted in zip(found, (i, j, S, d, D)):
                assert got.dtype == wanted.dtype
                np.testing.assert_array_equal(np.asarray(got), wanted[kept])
    nearest = search(points, 1.4, "ijd", **systems | dict(k=2, sorted=False))
    i, _, _, d, _ = nearfield.edges(points, 1.4, **systems)
    wanted = np.concatenate([np.sort(d[i == point])[:2] for point in range(200)])
    np.testing.assert_array_equal(np.asarray(nearest[2]), wanted)
    both = search(points, 1.4, "iP", self_pairs=True, **systems | dict(targets=[3, 150], index="int32"))
    alone = search(points, 1.4, "iP", **systems | dict(targets=[3, 150], index="int32"))
    assert len(both[0]) == len(alone[0]) + 2 and both[1].dtype == np.int32
    empty = search(points[:0], 1.4, "ijD", batch_ptr=[0, 0], k=3)
    assert [array.shape for array in empty] == [(0,), (0,), (0, 3)]
    for given, message in [
        (dict(types=np.zeros(199, int), cutoffs=[[1.0]]), r"types must have the shape \(200,\)"),
        (dict(exclusions=[[0, 200]]), "from 0 to 200, and there are 200"),
        (dict(exclusions=[0, 1]), r"exclusions must be whole numbers of shape \(pairs, 2\)"),
        (dict(targets=[200]), "targets name points from 200"),
        (dict(targets=[True]), "a mask of 200 points"),
        (dict(k=3, batch_ptr=[0, 50]), "batch_ptr goes from 0 to 50"),
        (dict(k=3, batch_ptr=[0, 90, 50, 200]), "it falls behind entry 1"),
        (dict(k=3, batch_ptr=[0.0, 200.0]), "batch_ptr must be whole numbers"),
        (dict(k=3, batch_ptr=[]), "batch_ptr must be whole numbers"),
        (dict(k=3, cell=cells[:2]), "cell has values of 2 systems, and there are 4"),
        (dict(k=3, box=[9, 9, 9]), "box= is for points of one system"),
        (dict(k=3, other=points), "other= is for points of one system"),
    ]:
        with pytest.raises(ValueError, match=message):
            search(points, 1.4, **systems | given)


@pytest.mark.parametrize("name", ["other", "box"])
def test_many_systems_on_a_gpu_name_what_they_do_not_have(fake_gpu, name):
    points, _, radius = cloud(90)
    given = ALL_KEYWORDS | {"batch_ptr": [0, 40, 90], name: points[:, 0]}
    with pytest.raises(ValueError, match=f"^{name}= is for points of one system"):
        _edges.edges(points, radius, "ij", **given)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_of_large_results_is_used_again(dtype):
    # Arrays of more than 16 MiB, whose memory the system may take between calls.
    random = np.random.default_rng(11)
    points = random.random((24_000, 3)).astype(dtype)
    kept = [np.array(array) for array in nearfield.edges(points, 0.1)]
    assert kept[4].nbytes > 2**24
    for free in (False, True, False):
        if free:
            nearfield.free_memory()
        for fewer in (1000, 24_000):
            nearfield.edges(points[:fewer], 0.1)
        found = nearfield.edges(points, 0.1)
        for array, wanted in zip(found, kept):
            assert array.dtype == wanted.dtype and np.array_equal(array, wanted)
    # A result that is still there is not written to.
    others = nearfield.edges(points[::-1], 0.1)
    assert all(np.array_equal(array, wanted) for array, wanted in zip(found, kept))
    assert len(others[0]) == len(found[0])


class HostEngine:
    """A DeviceEngine on the host, whose lists have gaps and stand in an order of their own."""

    made = []

    def __init__(self, radius, *, gpu, stream, **settings):
        self.engine = nearfield.Engine(radius, device="cpu", **settings)
        self.tries, self.calls = 0, []
        HostEngine.made.append(self)

    def __len__(self):
        return len(self.engine)

    def __getattr__(self, name):
        self.calls.append(name)
        return getattr(self.engine, name)

    def finish(self):
        self.tries += 1
        return self.tries > 1

    def write_pairs(self, quantities, out, targets, sources):
        found = self.engine.pair_geometry(list(quantities), targets, sources)
        self.pairs = len(found[0])
        for array, to in zip(found, out):
            to[: self.pairs] = array[: len(to)]

    def pair_count(self, targets, sources):
        return self.pairs

    def neighbors(self, targets, sources):
        return self.pair_geometry("j", targets, sources)

    def pair_geometry(self, quantities, targets, sources):
        names = {"S": "images", "d": "distances", "D": "displacements", "j": "indices"}
        i, *found = self.engine.pair_geometry(["i", "j", *set(quantities) - {"j"}], targets, sources)
        letters = ["j", *set(quantities) - {"j"}]
        points = self.engine.points(targets)
        count = np.bincount(i, minlength=points)
        last = len(i) + 3 * points
        # The last point comes first, and behind each there is room.
        start = last - np.cumsum(count + 3)
        lists = type("Lists", (), {})()
        lists.start, lists.count = start.astype(np.uint64), count.astype(np.uint32)
        places = np.arange(len(i)) - (np.cumsum(count) - count)[i] + start[i]
        for letter, array in zip(letters, found):
            whole = np.full((last, *array.shape[1:]), 77, array.dtype)
            whole[places] = array
            setattr(lists, names[letter], whole.astype(np.uint32) if letter == "j" else whole)
        return lists


class HostSystems:
    searches = 0

    def __init__(self, *, gpu, stream, precision, index, half, strict, **settings):
        self.search = nearfield.SystemSearch(device="cpu", half=half, sorted=True)
        self.how, self.settings = dict(index=index, strict=strict), settings
        if settings:
            self.of_skin = _nearfield._SkinSearch(settings["skin"], half, True, 1)

    @property
    def builds(self):
        return self.of_skin.builds

    def neighbors(self, points, radius, ptr, *, cell, pbc, quantities):
        HostSystems.searches += 1
        if self.settings:
            how = self.how["strict"], self.how["index"]
            return self.of_skin.neighbors(points, radius, quantities, cell, pbc, ptr, *how)
        how = dict(cell=cell, pbc=pbc, quantities=quantities)
        return self.search.neighbors(points, radius, ptr, **self.how, **how)

    def neighbors_into(self, out, *given, **options):
        found = self.neighbors(*given, **options)
        for array, to in zip(found, out):
            to[: len(array)] = array[: len(to)]
        return len(found[0])


class LikePyTorch(np.ndarray):
    """An array that gathers no unsigned numbers, as PyTorch does not on a GPU."""

    def __getitem__(self, places):
        if self.dtype.kind == "u":
            raise NotImplementedError(f"index_cuda not implemented for {self.dtype}")
        return super().__getitem__(places)


class FakeGpu(_libraries.NumPy):
    """NumPy, as if its arrays were on GPU 0."""

    def gpu(self, array):
        return 0

    def of_device(self, array):
        return array.copy().view(LikePyTorch)


@pytest.fixture
def fake_gpu(monkeypatch):
    for module in (_batches, _edges, _gpu):
        monkeypatch.setattr(module, "library_of", lambda array, made=FakeGpu(): made)
    monkeypatch.setattr(_nearfield, "DeviceEngine", HostEngine)
    monkeypatch.setattr(_nearfield, "DeviceSystemSearch", HostSystems)
    monkeypatch.setattr(_gpu, "MAX_SYSTEM", 100)
    monkeypatch.setattr(_gpu._kept, "idle", {})
    monkeypatch.setattr(_gpu._kept, "wished", None)
    HostEngine.made.clear()


ALL_KEYWORDS = dict.fromkeys(
    "cell pbc box batch_ptr batch_idx other radii rule types cutoffs exclusions molecules targets k "
    "out device".split()
) | dict.fromkeys("half sorted strict self_pairs".split(), False) | dict(index="int64", threads=0)


@pytest.mark.parametrize("count", [90, 200])
@pytest.mark.parametrize("writable", [True, False])
def test_arrays_of_a_gpu_take_the_same_keywords(fake_gpu, monkeypatch, count, writable):
    monkeypatch.setattr(FakeGpu, "writable", writable)
    points, cell, radius = cloud(count)
    box = dict(cell=cell, pbc=True)
    random = np.random.default_rng(8)
    for given in [
        dict(),
        dict(strict=True),
        dict(half=True, index="int32"),
        dict(self_pairs=True),
        dict(targets=[3, 20, 7], self_pairs=True, index="uint32"),
        dict(types=random.integers(0, 2, count), cutoffs=[[1.5, 1.0], [1.0, 0.5]]),
        dict(exclusions=[[0, 1], [5, 7]]),
        dict(molecules=np.arange(count) // 3),
        dict(other=points[:50].copy()),
        dict(batch_ptr=np.array([0, 40, 70, count])),
        dict(batch_ptr=[0, 40, count], strict=True),
        dict(batch_idx=np.arange(count) // 50),
    ]:
        for quantities in ["ijSdD", "Pd", "ij"]:
            expected = nearfield.edges(points, radius, quantities, sorted=True, **box, **given)
            keywords = ALL_KEYWORDS | box | given | dict(sorted=True)
            found = _edges.edges(points, radius, quantities, **keywords)
            for got, wanted in zip(found, expected):
                assert got.dtype == wanted.dtype
                np.testing.assert_array_equal(np.asarray(got), wanted)
    nearest = ALL_KEYWORDS | box | dict(k=3)
    found = _edges.edges(points, radius, "ijd", **nearest)
    for got, wanted in zip(found, nearfield.edges(points, radius, "ijd", k=3, **box)):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("count", [90, 200])
def test_a_gpu_writes_to_the_arrays_that_are_given_out(fake_gpu, count):
    points, cell, radius = cloud(count)
    box = dict(cell=cell, pbc=True)
    keywords = ALL_KEYWORDS | box | dict(sorted=True)
    expected = nearfield.edges(points, radius, "ijSdD", sorted=True, **box)
    pairs, before = len(expected[0]), HostSystems.searches
    for calls in (1, 2, 3):
        found = _edges.edges(points, radius, "ijSdD", **keywords)
        for got, wanted in zip(found, expected):
            np.testing.assert_array_equal(got, wanted)
            # Little more memory than the pairs take.
            assert got.base is None or len(got.base) <= pairs + pairs // 50
        if count <= 100:
            # The first call has to learn how many pairs there are.
            assert HostSystems.searches == before + calls + 1
    out = [np.zeros_like(np.concatenate([array, array[:9]])) for array in expected]
    found = _edges.edges(points, radius, "ijSdD", **keywords | dict(out=out))
    for got, to, wanted in zip(found, out, expected):
        assert got.base is to
        np.testing.assert_array_equal(got, wanted)
        assert not to[pairs:].any()
    with pytest.raises(ValueError, match=f"array for i has room for 3 pairs, but there are {pairs}"):
        _edges.edges(points, radius, "ijd", **keywords | dict(out=[out[0][:3], out[1], out[3]]))
    with pytest.raises(ValueError, match="array for j is that of another"):
        _edges.edges(points, radius, "ij", **keywords | dict(out=[out[0], out[0]]))
    # A much smaller result does not keep the memory of the larger one.
    (few,) = _edges.edges(points[: count // 2], radius, "d", **keywords)
    few_kept = _edges.edges(points[: count // 9], radius, "d", **keywords)[0]
    assert few.nbytes and (few_kept.base is None or len(few_kept.base) <= len(few_kept) + 1024 + pairs // 8)


def test_an_engine_of_a_gpu_finds_many_points_in_a_box_that_comes_again(fake_gpu, monkeypatch):
    monkeypatch.setattr(_gpu, "FEW", 50)
    points, cell, radius = cloud(90)
    keywords = ALL_KEYWORDS | dict(pbc=True)
    expected = nearfield.edges(points, radius, "ijSdD", cell=cell, pbc=True, sorted=True)
    searches = HostSystems.searches
    for calls in range(4):
        # Sorted as the other search sorts, whether that is asked for or not.
        found = _edges.edges(points, radius, "ijSdD", **keywords | dict(cell=cell))
        for got, wanted in zip(found, expected):
            np.testing.assert_array_equal(got, wanted)
        assert len(HostEngine.made) == min(calls, 1)
    assert HostSystems.searches == searches + 2
    # A box that changes would start an engine in every step, and few points need none.
    for step in range(3):
        _edges.edges(points, radius, "ij", **keywords | dict(cell=cell * (1.1 + step / 10)))
        _edges.edges(points[:50], radius, "ij", **keywords | dict(cell=cell))
    assert len(HostEngine.made) == 1

    def refuse(*_):
        raise ValueError("too far away for cells")

    monkeypatch.setattr(HostEngine, "write_pairs", refuse)
    found = _edges.edges(points, radius, "ijSdD", **keywords | dict(cell=cell))
    np.testing.assert_array_equal(found[4], expected[4])


def test_engines_of_a_gpu_are_used_again(fake_gpu):
    points, cell, radius = cloud()
    keywords = ALL_KEYWORDS | dict(cell=cell, pbc=True, sorted=True)
    for _ in range(3):
        _edges.edges(points, radius, "ij", **keywords)
    [engine] = HostEngine.made
    assert engine.calls.count("update") == 2
    _edges.edges(points, radius, "ij", **keywords | dict(targets=[1]))
    assert len(HostEngine.made) == 2
    with pytest.raises(ValueError, match="on GPU 0"):
        _edges.edges(points, radius, "ij", **keywords | dict(device="cpu"))
    with pytest.raises(TypeError, match="float32 or float64"):
        _edges.edges(points[:, :2], radius, "ij", **keywords)
    with pytest.raises(ValueError, match="index is .* not 'int16'"):
        _edges.edges(points, radius, "ij", **keywords | dict(index="int16"))


def test_arrays_come_back_in_the_library_they_came_in():
    points, cell, radius = cloud(dtype=np.float32)
    expected = nearfield.edges(points, radius, cell=cell, pbc=True, sorted=True, self_pairs=True)
    libraries = []
    try:
        import torch

        libraries.append((torch.from_numpy, torch.Tensor, "int64"))
    except ImportError:
        pass
    try:
        import jax

        index = "int64" if jax.config.jax_enable_x64 else "int32"
        libraries.append((jax.numpy.asarray, jax.Array, index))
    except ImportError:
        pass
    for of_numpy, kind, index in libraries:
        given = dict(cell=of_numpy(cell.astype(np.float32)), pbc=True)
        found = nearfield.edges(of_numpy(points), radius, sorted=True, self_pairs=True, **given)
        assert all(isinstance(array, kind) for array in found)
        assert str(found[0].dtype).endswith(index)
        for got, wanted in zip(found, expected):
            np.testing.assert_allclose(np.asarray(got), wanted, atol=1e-4)
        idx = of_numpy(np.arange(200) // 100)
        i, j = nearfield.edges(of_numpy(points), radius, "ij", batch_idx=idx)
        assert isinstance(i, kind) and not ((np.asarray(i) < 100) & (np.asarray(j) >= 100)).any()
        rows = nearfield.padded(of_numpy(points), radius, 4, "d", cell=cell, pbc=True)
        wanted = nearfield.padded(points, radius, 4, "d", cell=cell, pbc=True)
        for got, expect in zip(rows, wanted):
            assert expect is None or isinstance(got, (kind, int))
            assert expect is None or (np.asarray(got) == np.asarray(expect)).all()


def test_arrays_on_a_gpu_of_no_known_library_are_named():
    class Foreign:
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, **options):
            raise AssertionError("nothing is to be exported")

    with pytest.raises(TypeError, match="Foreign on a GPU: give arrays of CuPy"):
        nearfield.edges(Foreign(), 1.0)


def test_engines_of_a_gpu_can_be_freed(fake_gpu):
    points, cell, radius = cloud(90)
    for index in ("int32", "int64"):
        for half in (False, True):
            for dtype in (np.float32, np.float64):
                given = ALL_KEYWORDS | dict(half=half, index=index)
                _edges.edges(points.astype(dtype), radius, "ij", **given)
    assert len(_gpu._kept.idle) == _gpu._kept.MAX
    nearfield.free_memory()
    assert not _gpu._kept.idle


def test_a_stream_of_cupy_is_that_of_the_gpu():
    class Cuda:
        current = 0

        class Device:
            def __init__(self, gpu):
                self.gpu = gpu

            def __enter__(self):
                self.before, Cuda.current = Cuda.current, self.gpu

            def __exit__(self, *_):
                Cuda.current = self.before

        @staticmethod
        def get_current_stream():
            return type("Stream", (), {"ptr": 40 + Cuda.current})

    cupy = object.__new__(_libraries.CuPy)
    cupy.module = type("cupy", (), {"cuda": Cuda})
    address, stays = cupy.stream(3)
    assert (address, stays.ptr, Cuda.current) == (43, 43, 0)


def test_an_edge_list_keeps_its_quantities_and_refuses_what_it_does_not_know():
    points, _, radius = cloud()
    for skin in (0.0, 0.3):
        near = nearfield.EdgeList(radius, skin, quantities=iter("ij"))
        assert [len(near.compute(points)) for _ in range(2)] == [2, 2]
    with pytest.raises(TypeError, match="unexpected keyword 'stict'"):
        nearfield.EdgeList(radius, stict=True)
