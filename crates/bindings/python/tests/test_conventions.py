"""Boxes, types and defaults as programs for atoms, graphs and particles expect them."""

import copy
import pickle

import nearfield
import numpy as np
import pytest
from matscipy.neighbours import neighbour_list

from test_nearfield import cloud, sets


class AseCell:
    """A cell as ASE has it: an object that becomes an array."""

    ase_objtype = "cell"

    def __init__(self, array):
        self.array = np.asarray(array, float)

    def __array__(self, dtype=None, copy=None):
        return self.array.astype(dtype or float)


class Tensor:
    """A tensor on the host, as other libraries have it: no array, but it becomes one."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array if dtype is None else self.array.astype(dtype)


class OnGpu:
    """An array that refuses to become one of the host."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("use .get()")


def pairs(lists):
    j, i = lists.edge_index()
    return sorted(zip(i.tolist(), j.tolist()))


@pytest.mark.parametrize("pbc", [False, True, (True, False, True), np.array([False, False, True])])
@pytest.mark.parametrize(
    "cell", [np.diag([1.0, 1.1, 1.2]), [[1.0, 0, 0], [0.3, 1.0, 0], [0.1, -0.2, 1.0]]]
)
def test_a_cell_with_its_pbc_is_that_of_matscipy(cell, pbc):
    points, cell = cloud(300), np.array(cell)
    every = np.broadcast_to(pbc, 3)
    i, j = neighbour_list("ij", cutoff=0.3, positions=points, cell=cell, pbc=every)
    expected = sorted(zip(i.tolist(), j.tolist()))
    engine = nearfield.Engine(0.3, cell=AseCell(cell), pbc=pbc, precision="f64")
    engine.add_points(points)
    for lists in (
        nearfield.neighbors(points, 0.3, cell=cell, pbc=pbc),
        nearfield.neighbors(points, 0.3, cell=AseCell(cell), pbc=pbc),
        nearfield.neighbors(points, 0.3, box=cell.tolist(), pbc=pbc),
        engine.neighbors(),
    ):
        assert pairs(lists) == expected


def test_a_cell_says_nothing_about_where_it_repeats():
    points, cell = cloud(20), AseCell(np.eye(3))
    expected = sets(nearfield.neighbors(points, 0.3))
    zero = np.zeros((3, 3))
    for cell_of, pbc in [(zero, False), (np.zeros(3), (0, 0, 0)), (None, False)]:
        assert sets(nearfield.neighbors(points, 0.3, cell=cell_of, pbc=pbc)) == expected
    for keywords, text in [
        ({"box": cell}, "pbc=atoms.pbc"),
        ({"cell": np.eye(3)}, "pbc=atoms.pbc"),
        ({"box": zero}, "leave it out"),
        ({"pbc": True}, "give its cell="),
        ({"cell": zero, "pbc": True}, "repeats along x"),
        ({"cell": np.diag([1, 1, 0]), "pbc": (True, True, True)}, "repeats along z"),
        ({"cell": [1, 0, 1], "pbc": True}, "repeats along y"),
        ({"cell": [[1, 0, 0], [2, 0, 0], [0, 0, 1]], "pbc": True}, "box"),
        ({"cell": [[1, 0, 0], [0, 1, 0], [1, 1, 0]], "pbc": True}, "box"),
        ({"cell": np.eye(3), "pbc": (True, True)}, "two values"),
        ({"cell": np.eye(3), "pbc": "T T T"}, "pbc must be"),
        ({"cell": np.eye(3), "pbc": (True, 2, True)}, "pbc must be"),
        ({"cell": np.eye(3), "pbc": (1.0, 1.0, 1.0)}, "pbc must be"),
        ({"cell": np.eye(3), "pbc": (True,) * 4}, "pbc must be"),
        ({"cell": np.eye(3), "pbc": ()}, "pbc must be"),
        ({"cell": np.ones((3, 3), bool), "pbc": True}, "not booleans"),
        ({"cell": np.eye(3), "box": (1, 1, 1), "pbc": True}, "not both"),
        ({"cell": np.full((3, 3), np.nan), "pbc": True}, "box|NaN"),
    ]:
        for call in (
            lambda: nearfield.neighbors(points, 0.3, **keywords),
            lambda: nearfield.Engine(0.3, **keywords),
            lambda: nearfield.DeviceEngine(0.3, **keywords),
        ):
            with pytest.raises((ValueError, RuntimeError), match=text) as refused:
                call()
            if call.__code__.co_names[0:2] != ("nearfield", "DeviceEngine"):
                assert refused.type is ValueError, keywords


def test_points_in_a_plane_have_no_images_along_z():
    flat = cloud(500)[:, :2].copy()
    solid = np.pad(flat, ((0, 0), (0, 1)))
    expected = pairs(nearfield.neighbors(solid, 0.2, box=(1, 1, 0)))
    for keywords in [
        {"box": (1, 1)},
        {"box": (1, 1, 0)},
        {"box": ((1, 0), (0, 1))},
        {"cell": (1, 1), "pbc": True},
        {"cell": (1, 1), "pbc": (True, True)},
        {"cell": np.eye(3), "pbc": (True, True, False)},
    ]:
        assert pairs(nearfield.neighbors(flat, 0.2, **keywords)) == expected
        engine = nearfield.Engine(0.2, precision="f64", **keywords)
        engine.add_points(flat)
        assert pairs(engine.neighbors()) == expected
    tilted = nearfield.neighbors(flat, 0.2, box=((1, 0), (0.25, 1)))
    assert pairs(tilted) == pairs(nearfield.neighbors(solid, 0.2, box=np.array([[1, 0, 0], [0.25, 1, 0], [0, 0, 0]])))
    engine = nearfield.Engine(0.2, box=(1, 1), precision="f64")
    engine.add_points(flat)
    for call, text in [
        (lambda: nearfield.neighbors(flat, 0.2, box=(1, 1, 1)), "repeats along z"),
        (lambda: nearfield.neighbors(flat, 0.2, cell=np.eye(3), pbc=True), "repeats along z"),
        (lambda: nearfield.neighbors(solid, 0.2, box=(1, 1)), "three lengths"),
        (lambda: engine.add_points(solid), "three lengths"),
        (lambda: engine.update(0, solid), "three lengths"),
        (lambda: engine.query(solid), "three lengths"),
        (lambda: nearfield.Engine(0.2, box=(1, 1, 1)).add_points(flat.astype("f4")), "along z"),
    ]:
        with pytest.raises(ValueError, match=text):
            call()
    assert pairs(engine.neighbors()) == expected


def test_a_set_searches_itself_unless_another_is_named():
    few, many = cloud(50, 1, np.float32), cloud(400, 2, np.float32)
    engine = nearfield.Engine(0.2)
    a, b = engine.add_points(few), engine.add_points(many)
    mass = np.ones(400, np.float32)
    assert sets(engine.neighbors(b)) == sets(nearfield.neighbors(many, 0.2))
    assert np.array_equal(engine.count_neighbors(b), engine.neighbors(b, b).count)
    assert np.array_equal(engine.count_neighbors(targets=b), engine.count_neighbors(b, b))
    assert np.array_equal(engine.sph_density(mass, b), engine.sph_density(mass, b, b))
    assert sets(engine.neighbors()) == sets(engine.neighbors(a, a))
    assert sets(engine.neighbors(b, a)) != sets(engine.neighbors(b))


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_whole_numbers_lists_and_tensors_are_points(precision):
    whole = np.random.default_rng(3).integers(-9, 9, (200, 3))
    expected = sets(nearfield.neighbors(whole.astype(np.float64), 2.5))
    dtype = precision.replace("f", "float")
    for points in (
        whole,
        whole.astype(np.int8),
        whole.astype(">i4"),
        whole[::-1][::-1],
        whole.tolist(),
        whole.astype(float).tolist(),
        [tuple(point) for point in whole],
        [point for point in whole.astype(np.float32)],
        Tensor(whole),
        Tensor(whole.astype(dtype)),
    ):
        assert sets(nearfield.neighbors(points, 2.5)) == expected
        engine = nearfield.Engine(2.5, precision=precision)
        engine.add_points(points)
        engine.update(0, points)
        assert sets(engine.neighbors()) == expected
        assert (engine.query(points).count == engine.neighbors().count + 1).all()
    assert len(nearfield.neighbors(np.empty((0, 3), int), 1.0)) == 0
    assert len(nearfield.neighbors([[0, 0]], 1.0)) == 1
    large = [[0, 0, 0], [2**24 + 1, 0, 0]]
    exact = nearfield.Engine(1.0, precision=precision)
    if precision == "f64":
        assert exact.add_points(large) == 0
        large[0][1] = -(2**53) - 1
    with pytest.raises(ValueError, match="beyond the whole numbers"):
        exact.add_points(large)
    with pytest.raises(ValueError, match="beyond the whole numbers"):
        nearfield.neighbors(np.array([[2**64 - 1, 0, 0]], np.uint64), 1.0)
    with pytest.raises(TypeError, match="DeviceEngine.*get"):
        nearfield.neighbors(OnGpu(), 1.0)
    if precision == "f32":
        with pytest.raises(ValueError, match='precision="f64"'):
            exact.add_points(Tensor(whole.astype(float)))


def test_tensors_of_torch_and_dlpack_are_points():
    torch = pytest.importorskip("torch")
    points = cloud(200)
    assert sets(nearfield.neighbors(torch.from_numpy(points), 0.2)) == sets(
        nearfield.neighbors(points, 0.2)
    )
    torch.from_numpy(nearfield.neighbors(points, 0.2).edge_index())


def test_an_engine_in_double_takes_masses_in_double():
    points, mass = cloud(500), np.random.default_rng(3).random(500)
    engine = nearfield.Engine(0.3, precision="f64")
    engine.add_points(points)
    expected = engine.sph_density(mass.astype(np.float32))
    assert expected.dtype == np.float32 and "single precision" in engine.sph_density.__doc__
    for given in (mass, mass.tolist(), np.repeat(mass, 2)[::2], Tensor(mass)):
        assert np.array_equal(engine.sph_density(given), expected)
    with pytest.raises(ValueError, match="mass: value 7 is 1"):
        engine.sph_density(np.where(np.arange(500) == 7, 1e300, mass))
    single = nearfield.Engine(0.3)
    single.add_points(points.astype(np.float32))
    assert np.array_equal(single.sph_density([1] * 500), single.sph_density(np.ones(500, "f4")))
    with pytest.raises(TypeError, match="mass must be a NumPy array of float32"):
        single.sph_density(mass)


def test_copies_are_int64_and_make_edges():
    points = cloud(300)
    lists = nearfield.neighbors(points, 0.2, half=True)
    offsets, indices = lists.csr()
    edges = lists.edge_index()
    assert edges.dtype == offsets.dtype == indices.dtype == np.int64
    assert edges.shape == (2, lists.pairs) and edges.flags.c_contiguous
    assert np.array_equal(edges[0], indices)
    assert np.array_equal(edges[1], np.repeat(np.arange(300), np.diff(offsets)))
    assert (edges[1] < edges[0]).all(), "half lists hold the pair in the list of the smaller index"
    assert (lists.start.dtype, lists.count.dtype) == (np.uint64, np.uint32)
    assert lists.indices.dtype == lists[0].dtype == np.uint32
    none = nearfield.neighbors(np.empty((0, 3)), 0.2)
    assert none.edge_index().shape == (2, 0) and none.csr()[0].tolist() == [0]
    engine = nearfield.Engine(0.2, precision="f64")
    engine.add_points(points)
    assert engine.z_sort().dtype == np.int64


def test_lists_are_sequences():
    points = cloud(60)
    lists = nearfield.neighbors(points, 0.3, sorted=True)
    every = [lists[i].tolist() for i in range(60)]
    assert [near.tolist() for near in lists] == every
    mask = np.arange(60) % 7 == 0
    for chosen in (
        slice(2, 9),
        slice(None),
        slice(None, None, -3),
        slice(50, 200),
        slice(9, 2),
        [5, -1, 5, 0],
        np.array([3, 4], np.uint8),
        [],
        mask,
        mask.tolist(),
        range(3),
    ):
        some = lists[chosen]
        expected = [every[i] for i in np.arange(60)[list(chosen) if isinstance(chosen, range) else chosen]]             if not isinstance(chosen, list) or chosen else []
        assert isinstance(some, nearfield.Neighbors)
        assert [near.tolist() for near in some] == expected
        assert some.pairs == sum(map(len, expected)) and len(some) == len(expected)
    array = np.asarray(lists)
    assert array.dtype == object and array.shape == (60,)
    assert [near.tolist() for near in array] == every
    assert np.asarray(lists, object).shape == (60,)
    with pytest.raises(TypeError, match="edge_index"):
        np.asarray(lists, float)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_lists_are_pickled_and_copied(protocol):
    lists = nearfield.neighbors(cloud(60), 0.3)
    for same in (
        pickle.loads(pickle.dumps(lists, protocol)),
        copy.copy(lists),
        copy.deepcopy(lists),
        nearfield.Neighbors(*lists.csr()),
        nearfield.Neighbors(*map(list, lists.csr())),
    ):
        assert [near.tolist() for near in same] == [near.tolist() for near in lists]
        assert same.pairs == lists.pairs
    for offsets, indices, error in [
        ([0, 2, 1, 3], [1, 2, 3], ValueError),
        ([1, 3], [1, 2, 3], ValueError),
        ([0, 2], [1, 2, 3], ValueError),
        ([], [], ValueError),
        ([0, -1, 1], [1], ValueError),
        ([0, 1], [-1], ValueError),
        ([0, 1], [2**32 - 1], ValueError),
        ([0, 1.0], [1], TypeError),
        ([[0, 1]], [1], TypeError),
    ]:
        with pytest.raises(error):
            nearfield.Neighbors(offsets, indices)
