"""Pairs with their geometry, of one system and of many, against matscipy and each other."""

import itertools

import nearfield
import numpy as np
import pytest
from matscipy.neighbours import neighbour_list


def crystals(count=7, seed=3, dtype=np.float64):
    """Systems of different sizes, one of them empty, in cells of all shapes."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 40, count)
    sizes[2] = 0
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    cells = np.eye(3) * 3.0 + random.uniform(-0.6, 0.6, (count, 3, 3))
    pbc = random.random((count, 3)) < 0.6
    points = random.uniform(-1, 4, (ptr[-1], 3)).astype(dtype)
    return points, ptr, cells, pbc


def as_set(i, j, S):
    return sorted(zip(i.tolist(), j.tolist(), map(tuple, S.tolist())))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("radius", [1.3, "each"])
def test_systems_are_searched_as_each_alone(dtype, radius):
    points, ptr, cells, pbc = crystals(dtype=dtype)
    radii = np.linspace(1.0, 2.0, len(cells)) if radius == "each" else np.full(len(cells), radius)
    given = radii if radius == "each" else radius
    search = nearfield.SystemSearch(device="cpu", sorted=True)
    i, j, S, d, D = search.neighbors(points, given, ptr, cell=cells, pbc=pbc)
    assert (i.dtype, j.dtype, S.dtype) == (np.int64, np.int64, np.int32)
    assert d.dtype == D.dtype == dtype
    system = np.searchsorted(ptr, i, side="right") - 1
    np.testing.assert_allclose(
        D, points[j] - points[i] + np.einsum("ps,psk->pk", S, cells[system]), atol=1e-5
    )
    np.testing.assert_allclose(d, np.linalg.norm(D, axis=1), rtol=1e-5)
    for k in range(len(cells)):
        own = slice(ptr[k], ptr[k + 1])
        mine = system == k
        found = as_set(i[mine] - ptr[k], j[mine] - ptr[k], S[mine])
        if dtype == np.float64 and ptr[k] < ptr[k + 1]:
            expected = neighbour_list(
                "ijS", positions=points[own], cell=cells[k], pbc=pbc[k], cutoff=float(radii[k])
            )
            assert found == as_set(*expected)
        alone = nearfield.edges(
            points[own], radii[k], cell=np.where(pbc[k][:, None], cells[k], 0), pbc=pbc[k], sorted=True
        )
        assert found == as_set(*alone[:3])
        np.testing.assert_array_equal(D[mine], alone[4])
        np.testing.assert_array_equal(d[mine], alone[3])


def test_letters_say_what_is_returned_and_in_which_order():
    points, ptr, cells, pbc = crystals()
    all_of = dict(batch_ptr=ptr, cell=cells, pbc=pbc, sorted=True)
    i, j, P, S, d, D = nearfield.edges(points, 1.3, "ijPSdD", index="int32", **all_of)
    assert i.dtype == j.dtype == P.dtype == np.int32
    np.testing.assert_array_equal(P, np.stack([i, j], axis=1))
    named = nearfield.edges(points, 1.3, ["distances", "sources"], **all_of)
    np.testing.assert_array_equal(named[0], d)
    np.testing.assert_array_equal(named[1], j)
    (only,) = nearfield.edges(points, 1.3, "D", **all_of)
    np.testing.assert_array_equal(only, D)
    assert nearfield.edges(points, 1.3, "", **all_of) == ()
    half = nearfield.edges(points, 1.3, "ij", half=True, **all_of)
    assert 2 * len(half[0]) == len(i)
    one = nearfield.SystemSearch(device="cpu").neighbors(
        points, 1.3, [0, len(points)], cell=np.eye(3) * 9, pbc=True, quantities="ij"
    )
    alone = nearfield.edges(points, 1.3, "ij", box=(9, 9, 9))
    assert len(one[0]) == len(alone[0])


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_an_engine_gives_the_geometry_of_two_sets(precision):
    dtype = np.float32 if precision == "f32" else np.float64
    random = np.random.default_rng(5)
    first, second = (random.random((n, 3)).astype(dtype) for n in (300, 200))
    engine = nearfield.Engine(0.2, box=(1, 0, 1), precision=precision, sorted=True, device="cpu")
    a, b = engine.add_points(first), engine.add_points(second)
    lists = engine.neighbors(a, b)
    i, j, S, d, D = engine.pair_geometry(targets=a, sources=b)
    offsets, indices = lists.csr()
    np.testing.assert_array_equal(np.repeat(np.arange(300), np.diff(offsets)), i)
    np.testing.assert_array_equal(indices, j)
    assert D.dtype == d.dtype == dtype
    np.testing.assert_allclose(D, second[j] - first[i] + S * np.array([1, 0, 1]), atol=1e-6)
    np.testing.assert_allclose(d, np.linalg.norm(D, axis=1), rtol=1e-5)
    assert (d <= 0.2).all()


def test_what_cannot_be_searched_is_named():
    points, ptr, cells, pbc = crystals()
    search = nearfield.SystemSearch(device="cpu")
    with pytest.raises(ValueError, match="quantities are i"):
        search.neighbors(points, 1.0, ptr, quantities="ix")
    with pytest.raises(ValueError, match="twice"):
        search.neighbors(points, 1.0, ptr, quantities=["i", "targets"])
    with pytest.raises(ValueError, match="twice"):
        # It has no end.
        search.neighbors(points, 1.0, ptr, quantities=itertools.repeat("d"))
    with pytest.raises(TypeError, match="quantities"):
        search.neighbors(points, 1.0, ptr, quantities=3)
    with pytest.raises(ValueError, match="index"):
        search.neighbors(points, 1.0, ptr, index="uint8")
    with pytest.raises(ValueError, match="pbc"):
        search.neighbors(points, 1.0, ptr, cell=cells)
    with pytest.raises(ValueError, match="cells"):
        search.neighbors(points, 1.0, ptr, pbc=True)
    with pytest.raises(ValueError, match="cell must have the shape"):
        search.neighbors(points, 1.0, ptr, cell=[3, 3, 3], pbc=True)
    with pytest.raises(ValueError, match="system 3"):
        wrong = ptr.copy()
        wrong[4] = wrong[3] - 1
        search.neighbors(points, 1.0, wrong)
    flat = cells.copy()
    flat[5, 1] = flat[5, 0]
    with pytest.raises(ValueError, match="system 5"):
        search.neighbors(points, 1.0, ptr, cell=flat, pbc=True)
    with pytest.raises(ValueError, match="batch_ptr"):
        search.neighbors(points, 1.0, [0, -1])
    with pytest.raises(ValueError, match="box"):
        nearfield.edges(points, 1.0, batch_ptr=ptr, box=(1, 1, 1))
    with pytest.raises(ValueError, match=r"\(n, 3\)"):
        search.neighbors(points[:, :2], 1.0, ptr)
    # The search is of use afterwards, and says where it runs.
    assert len(search.neighbors(points, 1.0, ptr)) == 5
    assert search.report()["device"] == "cpu"
