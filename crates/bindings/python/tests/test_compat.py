"""The adapters of nearfield.compat beside the libraries whose names they have.

Each library is compared on random input where it is installed. scripts/peers runs the libraries'
own tests with the adapters in place.
"""

import os
import pickle
from collections import defaultdict

import numpy as np
import pytest

TILT = np.array([[7, 0.3, -0.2], [1.5, 6, 0.4], [-1, 0.7, 8.0]])


def rows(i, j, S):
    return sorted(zip(i.tolist(), j.tolist(), map(tuple, np.asarray(S).tolist())))


def crystals(count, seed):
    """Atoms in cells of every shape, some of them smaller than the cut-offs, atoms outside too."""
    ase = pytest.importorskip("ase")
    random = np.random.default_rng(seed)
    for _ in range(count):
        cell = random.normal(size=(3, 3)) + np.eye(3) * random.choice([3.5, -4.0])
        if abs(np.linalg.det(cell)) < 20:
            continue
        n = random.integers(1, 12)
        yield random, ase.Atoms(
            numbers=random.choice([1, 6, 8], n),
            positions=random.uniform(-0.5, 1.5, (n, 3)) @ cell,
            cell=cell,
            pbc=random.random(3) < 0.5,
        )


def cutoffs(random, n):
    """Of every kind that ASE and matscipy take."""
    of_elements = {("H", "C"): 2.0, (8, 8): 1.5, ("C", "C"): 3.0, (6, 1): 2.5, ("Fe", "C"): 1.0}
    return random.uniform(0.5, 3.5), 2, random.uniform(0.2, 1.5, n), of_elements


def test_ase_lists_are_those_of_ase():
    theirs = pytest.importorskip("ase.neighborlist")
    from nearfield.compat import ase as ours

    for random, atoms in crystals(40, 1):
        for cutoff in cutoffs(random, len(atoms)):
            for selves in (False, True):
                expected, found = (
                    of.neighbor_list("ijSdD", atoms, cutoff, self_interaction=selves)
                    for of in (theirs, ours)
                )
                assert rows(*found[:3]) == rows(*expected[:3])
                assert [of.dtype for of in found] == [of.dtype for of in expected]
                assert (np.diff(found[0]) >= 0).all()
                i, j, S, d, D = found
                np.testing.assert_allclose(
                    D, atoms.positions[j] - atoms.positions[i] + S @ atoms.cell, atol=1e-12
                )
                np.testing.assert_allclose(d, np.linalg.norm(D, axis=1), atol=1e-12)
    assert isinstance(ours.neighbor_list("d", atoms, 2.0), np.ndarray)
    with pytest.raises(ValueError, match="Unsupported quantity"):
        ours.neighbor_list("ix", atoms, 2.0)
    for letters in ("ijSdD", "S"):
        empty = [of.neighbor_list(letters, atoms[:0], 2.0) for of in (theirs, ours)]
        assert repr(empty[0]) == repr(empty[1])


@pytest.mark.parametrize("primitive", ["PrimitiveNeighborList", "NewPrimitiveNeighborList"])
def test_ase_lists_with_a_skin_are_those_of_ase(primitive):
    theirs = pytest.importorskip("ase.neighborlist")
    from nearfield.compat import ase as ours

    for random, atoms in crystals(20, 2):
        radii = random.uniform(0.5, 1.5, len(atoms))
        for selves, bothways in np.ndindex(2, 2):
            lists = []
            for of in (theirs, ours):
                made = of.NeighborList(
                    radii, 0.1, True, selves, bothways, primitive=getattr(of, primitive)
                )
                assert made.update(atoms) and not made.update(atoms) and made.nupdates == 1
                lists.append(
                    [sorted(zip(*map(np.ndarray.tolist, made.get_neighbors(k)))) for k in range(len(atoms))]
                )
            # ASE mixes the neighbours of atoms where there are fewer pairs than atoms.
            if sum(map(len, lists[1])) >= len(atoms):
                assert lists[0] == lists[1]
    with pytest.raises(RuntimeError, match="update"):
        ours.NeighborList(radii).get_neighbors(0)
    with pytest.raises(ValueError, match="Wrong number of cutoff radii"):
        ours.NeighborList(radii[:-1]).update(atoms)


def test_ties_on_a_lattice_are_decided_as_ase_decides_them():
    theirs = pytest.importorskip("ase.neighborlist")
    from ase.build import bulk

    from nearfield.compat import ase as ours

    for a in (3.61, 4.05, 5.0):
        atoms = bulk("Cu", cubic=True, a=a) * 2
        for shell in np.sqrt([0.5, 1, 1.5, 2, 2.5, 3, 4]):
            found = [len(of.neighbor_list("i", atoms, a * shell)) for of in (theirs, ours)]
            assert found[0] == found[1]


def test_lists_of_large_coordinates_have_all_pairs():
    from nearfield.compat.matscipy import neighbour_list
    from nearfield.compat.vesin import NeighborList

    x = np.random.default_rng(9).random((20, 3)) * 1e20
    apart = np.linalg.norm(x[:, None] - x, axis=2) + np.diag([np.inf] * 20)
    pairs = (apart < 4e19).sum()
    vesin = NeighborList(cutoff=4e19, full_list=True)
    assert len(vesin.compute(x, np.eye(3), False, "i")[0]) == pairs > 0
    assert len(neighbour_list("i", positions=x, cutoff=4e19)) == pairs
    x[3, 1] = np.nan
    with pytest.raises(ValueError, match="point 3 is not finite"):
        vesin.compute(x, np.eye(3), False)


def test_matscipy_lists_are_those_of_matscipy():
    theirs = pytest.importorskip("matscipy.neighbours")
    from nearfield.compat.matscipy import neighbour_list

    for random, atoms in crystals(60, 3):
        atoms.wrap()
        atoms.positions = np.clip(atoms.get_scaled_positions(False), 0.01, 0.99) @ atoms.cell
        matrix = random.uniform(0.1, 2, (7, 7))
        for cutoff in (*cutoffs(random, len(atoms)), matrix + matrix.T, defaultdict(lambda: 2.0)):
            expected, found = (
                of("ijSdD", atoms, cutoff) for of in (theirs.neighbour_list, neighbour_list)
            )
            assert rows(*found[:3]) == rows(*expected[:3])
            assert [of.dtype for of in found] == [of.dtype for of in expected]
    of_arrays = dict(positions=atoms.positions, cutoff=2.0)
    assert rows(*neighbour_list("ijS", **of_arrays)) == rows(
        *theirs.neighbour_list("ijS", **of_arrays)
    )


@pytest.mark.parametrize(
    "wrong",
    [
        dict(quantities="i"),
        dict(quantities="i", cutoff=1.0),
        dict(quantities="x", cutoff=1.0, positions=np.eye(3)),
        dict(quantities="i", cutoff=1.0, positions=np.eye(3), cell=np.zeros((3, 3))),
        dict(quantities="i", cutoff=1.0, positions=np.eye(3), cell=np.eye(3) * 1e-5),
        dict(quantities="i", cutoff=[1.0], positions=np.eye(3), cell=np.eye(3)),
        dict(quantities="i", cutoff=np.ones((2, 3)), positions=np.eye(3), cell=np.eye(3)),
    ],
)
def test_matscipy_errors_are_those_of_matscipy(wrong):
    theirs = pytest.importorskip("matscipy.neighbours")
    from nearfield.compat.matscipy import neighbour_list

    raised = []
    for of in (theirs.neighbour_list, neighbour_list):
        with pytest.raises(Exception) as error:
            of(**wrong)
        raised.append((error.type, str(error.value)))
    assert raised[0] == raised[1]


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_vesin_lists_are_those_of_vesin(full, dtype):
    theirs = pytest.importorskip("vesin")
    from nearfield.compat import vesin as ours

    for _, atoms in crystals(30, 4):
        given = (atoms.positions * 3).astype(dtype), (atoms.cell[:] * 3).astype(dtype), atoms.pbc
        expected, found = (
            of.NeighborList(cutoff=6.5, full_list=full).compute(*given, "PijSdD")
            for of in (theirs, ours)
        )
        assert rows(*found[1:4]) == rows(*expected[1:4])
        assert [of.dtype for of in found] == [of.dtype for of in expected]


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vesin_lists_of_a_gpu_are_made_by_operations_on_whole_arrays(full, dtype):
    from nearfield.compat.vesin import NeighborList

    random = np.random.default_rng(5)
    points = random.uniform(0, 4, (120, 3)).astype(dtype)
    box = (np.eye(3) * 3 + random.uniform(-0.5, 0.5, (3, 3))).astype(dtype)
    vesin = NeighborList(cutoff=3.3, full_list=full, sorted=True)
    expected = vesin.compute(points, box, [True, False, True], "ijPSdD")
    found = vesin._on_gpu(points, box, [True, False, True], "ijPSdD")
    assert (found[0] == found[1]).any() and len(found[0]) > 1000
    for one, other in zip(found, expected):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    with pytest.raises(RuntimeError, match="same dtype"):
        vesin._on_gpu(points, box.astype(np.float16), True, "ij")
    with pytest.raises(RuntimeError, match="not invertible"):
        vesin._on_gpu(points, 0 * box, True, "ij")


@pytest.mark.parametrize("full", [False, True])
def test_vesin_lists_are_sorted_if_that_is_asked_for(full):
    from nearfield.compat.vesin import NeighborList

    points, box = np.random.default_rng(2).uniform(0, 1, (3000, 3)), np.eye(3)
    vesin = NeighborList(cutoff=0.1, full_list=full, sorted=True)
    i, j, S = vesin.compute(points, box, True, "ijS")
    order = np.lexsort([*S.T[::-1], j, i])
    assert len(i) > 10_000 and (order == np.arange(len(i))).all()


def test_vesin_needs_no_vesin():
    from nearfield.compat.vesin import NeighborList

    points, box = np.zeros((2, 3)), np.eye(3) * 4
    points[1, 0] = 1
    i, j, d = NeighborList(cutoff=2.0, full_list=False).compute(points, box, True, "ijd")
    assert (i.tolist(), j.tolist(), d.tolist()) == ([0], [1], [1.0]) and i.dtype == np.uint64
    for error, match, how, given in [
        (RuntimeError, "too small", dict(cutoff=1e-9), (points, box, True)),
        (RuntimeError, "finite", dict(cutoff=np.nan), (points, box, True)),
        (RuntimeError, "CellList", dict(cutoff=1, algorithm="brute_force"), (points, box, True)),
        (RuntimeError, "invertible", dict(cutoff=1), (points, box * 0, True)),
        (RuntimeError, "same dtype", dict(cutoff=1), (points, box.astype("f4"), True)),
        (ValueError, "3x3", dict(cutoff=1), (points, box[0], True)),
        (ValueError, "nx3", dict(cutoff=1), (points[0], box, True)),
        (ValueError, "periodic", dict(cutoff=1), (points, box, [True])),
        (ValueError, "unexpected", dict(cutoff=1), (points, box, True, "ix")),
    ]:
        with pytest.raises(error, match=match):
            NeighborList(full_list=True, **how).compute(*given)
    with pytest.raises(ValueError, match="Unknown algorithm"):
        NeighborList(cutoff=1, full_list=True, algorithm="tree")


@pytest.mark.parametrize("p", [1, 2, 3, np.inf])
@pytest.mark.parametrize("boxsize", [None, 1.0])
@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_trees_find_what_those_of_scipy_find(m, boxsize, p):
    theirs = pytest.importorskip("scipy.spatial")
    from nearfield.compat.scipy import KDTree

    random = np.random.default_rng(5)
    x, q = random.random((120, m)), random.random((30, m))
    A, B, C, D = (of(y, boxsize=boxsize) for of in (theirs.cKDTree, KDTree) for y in (x, q))
    for r in (0, 0.1, 0.4, 2, np.inf):
        expected = A.query_ball_point(q, r, p=p, return_sorted=True)
        assert expected.tolist() == C.query_ball_point(q, r, p=p).tolist()
        assert A.query_ball_point(q[0], r, p, return_length=True) == C.query_ball_point(
            q[0], r, p, return_length=True
        )
        if np.isfinite(r):
            assert A.query_pairs(r, p) == C.query_pairs(r, p)
            assert list(map(sorted, B.query_ball_tree(A, r, p))) == D.query_ball_tree(C, r, p)
            np.testing.assert_allclose(
                A.sparse_distance_matrix(B, r, p).toarray(),
                C.sparse_distance_matrix(D, r, p).toarray(),
            )
    radii = random.uniform(0, 0.5, 30)
    expected = A.query_ball_point(q, radii, p=p, return_sorted=True)
    assert expected.tolist() == C.query_ball_point(q, radii, p=p).tolist()
    weights = random.random(120), None
    for cumulative in (True, False):
        for r in ([0.1, 0.2, 0.35], 0.3, [0.2, 9.0]):
            counts = [of.count_neighbors(to, r, p, None, cumulative) for of, to in ((A, B), (C, D))]
            np.testing.assert_array_equal(*counts)
            counts = [of.count_neighbors(to, r, p, weights, cumulative) for of, to in ((A, B), (C, D))]
            np.testing.assert_allclose(*counts)
    for k in (1, 3, [2, 4], 200):
        for bound in (np.inf, 0.1):
            expected, found = (of.query(q, k, 0, p, bound) for of in (A, C))
            np.testing.assert_allclose(found[0], expected[0])
            np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e20, 1e100])
def test_trees_take_coordinates_of_any_size(scale):
    from nearfield.compat.scipy import KDTree

    points = np.random.default_rng(10).random((60, 3))
    near, (d, j) = KDTree(points).query_ball_point(points, 0.4), KDTree(points).query(points, 4)
    scaled = KDTree(points * scale)
    assert scaled.query_ball_point(points * scale, 0.4 * scale).tolist() == near.tolist()
    found = scaled.query(points * scale, 4)
    np.testing.assert_allclose(found[0], d * scale)
    np.testing.assert_array_equal(found[1], j)
    assert scaled.query([1e5 * scale, 0, 0])[1] == points[:, 0].argmax()


def test_trees_take_radii_and_bounds_as_scipy_does():
    theirs = pytest.importorskip("scipy.spatial")
    from nearfield.compat.scipy import KDTree

    points = np.random.default_rng(11).random((50, 3))
    A, B = theirs.KDTree(points), KDTree(points)
    for p in (1, 2, 3, 4, np.inf):
        for r in ([np.nan, 0.3, 0.3], [-0.3, 0.3, 0.2], [-0.3, np.nan, 0.1], [np.nan] * 3):
            expected, found = (
                of.query_ball_point(points[:3], r, p, return_length=True) for of in (A, B)
            )
            assert expected.tolist() == found.tolist()
        for r in ([0.1, np.nan], np.nan, -0.3):
            counts = [of.count_neighbors(of, r, p) for of in (A, B)]
            np.testing.assert_array_equal(*counts)
        for bound in (-0.3, np.nan, 0):
            expected, found = (of.query(points[:5], 3, 0, p, bound) for of in (A, B))
            np.testing.assert_allclose(found[0], expected[0])
            np.testing.assert_array_equal(found[1], expected[1])
        assert A.query_pairs(-0.3, p) == B.query_pairs(-0.3, p)


def test_the_nearest_are_found_without_all_pairs_of_a_cluster(monkeypatch):
    from nearfield.compat import _common
    from nearfield.compat.scipy import KDTree

    search, pairs = _common.search, []

    def counted(*given, **how):
        found = search(*given, **how)
        pairs.append(len(found[0]))
        return found

    monkeypatch.setattr(_common, "search", counted)
    random = np.random.default_rng(12)
    points = random.random((2000, 3))
    points[-1] = 1e6
    d, j = KDTree(points).query(points, 4)
    apart = np.linalg.norm(points[:, None] - points[:40], axis=2)
    np.testing.assert_allclose(d[:40], np.sort(apart, axis=0)[:4].T)
    assert sum(pairs) < 100 * len(points)
    # Distances whose squares are 0, and points that coincide.
    tree = KDTree([[0, 0, 0], [1e-110] * 3])
    assert tree.query([1, 0, 0], 2)[1].tolist() == [0, 1]
    tree = KDTree(np.repeat(points[:50], 10, axis=0))
    assert not tree.query(points[:50], 4)[0].any() and len(pairs) < 60


def test_trees_need_no_scipy_and_refuse_what_scipy_refuses():
    from nearfield.compat.scipy import KDTree

    tree = KDTree([[0, 0], [1, 0], [3, 0]])
    assert (tree.n, tree.m, tree.maxes.tolist()) == (3, 2, [3, 0])
    assert tree.query_ball_point([0, 0], 1) == [0, 1]
    assert tree.query_pairs(1.0) == {(0, 1)}
    assert tree.query([0.2, 0]) == (0.2, 0)
    assert tree.query([0.2, 0], k=2.0)[1].tolist() == [0, 1]
    boxed = KDTree([[0, 0], [1, 0], [3, 0]], boxsize=5)
    assert boxed.query([5e12 + 1, 0]) == (0, 1)
    assert KDTree(np.empty((0, 2))).query([0, 0]) == (np.inf, 0)
    assert pickle.loads(pickle.dumps(tree)).query_pairs(2.0) == {(0, 1), (1, 2)}
    for error, match, call in [
        (ValueError, "finite", lambda: KDTree([[np.nan, 0]])),
        (ValueError, r"shape \(n, m\)", lambda: KDTree([0, 1])),
        (ValueError, "number of workers 0", lambda: tree.query([0, 0], workers=0)),
        (TypeError, "complex", lambda: KDTree([[1j, 0]])),
        (ValueError, "greater than the size", lambda: KDTree([[2, 0]], boxsize=1)),
        (ValueError, "Negative", lambda: KDTree([[-1, 0]], boxsize=1)),
        (ValueError, "vectors of length 2", lambda: tree.query([1, 2, 3])),
        (ValueError, "p-norms", lambda: tree.query_pairs(1, p=0.5)),
        (ValueError, "boxsize", lambda: tree.query_ball_tree(KDTree([[0, 0]], boxsize=1), 1)),
    ]:
        with pytest.raises(error, match=match):
            call()


@pytest.mark.parametrize("kind", ["AABBQuery", "LinkCell"])
def test_freud_queries_are_those_of_freud(kind):
    freud = pytest.importorskip("freud")
    from nearfield.compat import freud as ours

    random = np.random.default_rng(6)
    boxes = freud.box.Box.cube(10), freud.box.Box(10, 11, 12, 0.3, 0.2, -0.1), freud.box.Box.square(9)
    for box in boxes:
        points, others = (
            box.wrap(random.uniform(-6, 6, (n, 3)) * (1, 1, not box.is2D)) for n in (150, 30)
        )
        for given in (
            dict(r_max=2.5),
            dict(r_max=2.5, exclude_ii=True, r_min=1.0),
            dict(num_neighbors=4, exclude_ii=True),
            dict(r_max=-1.0),
            dict(mode="ball"),
            dict(r_max=1.0, wrong=1),
        ):
            for who in (points, others):
                results = []
                for of in (freud.locality, ours):
                    try:
                        query = getattr(of, kind)(box, points).query(who, given)
                        found = query.toNeighborList()
                        order = np.lexsort(found[:].T[::-1])
                        results.append((found[:][order], found.distances[order], found.vectors[order]))
                        assert len(list(query)) == len(found)
                    except (RuntimeError, ValueError) as error:
                        results.append(str(error))
                if isinstance(results[0], str):
                    assert results[0] == results[1]
                    continue
                np.testing.assert_array_equal(results[0][0], results[1][0])
                for expected, found in zip(results[0][1:], results[1][1:]):
                    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_freud_finds_the_nearest_in_a_cluster():
    freud = pytest.importorskip("freud")
    from nearfield.compat import freud as ours

    points = np.random.default_rng(13).normal(size=(500, 3)).astype("f4")
    points[0] = 2000
    box = freud.box.Box.cube(5000)
    apart = np.linalg.norm(points[:, None].astype(float) - points, axis=2)
    for own in (False, True):
        given = dict(num_neighbors=4, exclude_ii=own)
        found = ours.AABBQuery(box, points).query(points, given).toNeighborList(True)
        expected = np.sort(apart, axis=1)[1:, own : 4 + own]
        distances = found.distances.reshape(500, 4)[1:]
        np.testing.assert_allclose(np.sort(distances), expected, rtol=1e-4, atol=1e-6)


def test_mdanalysis_pairs_are_those_of_mdanalysis():
    theirs = pytest.importorskip("MDAnalysis.lib.distances")
    from MDAnalysis.lib import nsgrid

    from nearfield.compat import mdanalysis as ours

    random = np.random.default_rng(7)
    x, y = random.uniform(-3, 15, (200, 3)).astype("f4"), random.uniform(0, 10, (40, 3)).astype("f4")
    boxes = None, [10, 11, 12, 90, 90, 90], [10, 11, 12, 80, 75, 100], [10, 11, 0, 90, 90, 90]
    for box in boxes:
        box = None if box is None else np.array(box, "f4")
        for cutoff, least in ((1.0, None), (4.5, 0.5), (9.0, None)):
            for name, given in (("capped_distance", (y, x)), ("self_capped_distance", (x,))):
                expected = getattr(theirs, name)(*given, cutoff, least, box, "bruteforce")
                found = getattr(ours, name)(*given, cutoff, least, box)
                order = np.lexsort(expected[0].T[::-1])
                np.testing.assert_array_equal(found[0], expected[0][order])
                np.testing.assert_allclose(found[1], expected[1][order], atol=1e-5)
                assert [of.dtype for of in found] == [of.dtype for of in expected]
    box = np.array(boxes[2], "f4")
    for name, given in (("search", (y,)), ("self_search", ())):
        expected, found = (getattr(of.FastNS(3.0, x, box), name)(*given) for of in (nsgrid, ours))
        # Pairs of one set come in either direction there.
        pairs = expected.get_pairs() if given else np.sort(expected.get_pairs(), axis=1)
        order = np.lexsort(pairs.T[::-1])
        np.testing.assert_array_equal(found.get_pairs(), pairs[order])
        np.testing.assert_allclose(
            found.get_pair_distances(), expected.get_pair_distances()[order], atol=1e-5
        )
    for wrong in (dict(cutoff=7.0), dict(cutoff=-1.0)):
        for of in (nsgrid, ours):
            with pytest.raises(ValueError, match="utoff"):
                of.FastNS(wrong["cutoff"], x, box)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_torch_cluster_graphs(device):
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        assert os.environ.get("NEARFIELD_REQUIRE_GPU") != "1", "PyTorch sees no GPU"
        pytest.skip("PyTorch sees no GPU")
    from nearfield.compat.torch_cluster import radius, radius_graph

    generator = torch.Generator().manual_seed(8)
    x = torch.rand(90, 3, generator=generator, dtype=torch.float64).to(device)
    y = torch.rand(40, 3, generator=generator, dtype=torch.float64).to(device)
    batch_x = torch.arange(90, device=device) // 31
    batch_y = torch.arange(40, device=device) // 17
    distance = torch.cdist(y, x)
    for batches in ((None, None), (batch_x, batch_y)):
        near = distance < 0.4
        if batches[0] is not None:
            near &= batch_y[:, None] == batch_x[None, :]
        found = radius(x, y, 0.4, *batches, max_num_neighbors=90)
        assert found.device == x.device and torch.equal(found, near.nonzero().T)
        few = radius(x, y, 0.4, *batches, max_num_neighbors=2)
        assert few[0].bincount(minlength=40).tolist() == near.sum(1).clamp(max=2).tolist()
    near = (torch.cdist(x, x) < 0.4) & (batch_x[:, None] == batch_x[None, :])
    edges = radius_graph(x, 0.4, batch_x, loop=True, max_num_neighbors=90)
    assert torch.equal(edges.flip(0), near.nonzero().T)
    edges = radius_graph(x, 0.4, batch_x, max_num_neighbors=90, flow="target_to_source")
    assert torch.equal(edges, near.fill_diagonal_(False).nonzero().T)
    whole = radius_graph(
        x, 0.4, max_num_neighbors=90, cell=torch.eye(3), pbc=torch.tensor([True] * 3)
    )
    wrapped = x[:, None] - x[None, :]
    near = (wrapped - wrapped.round()).norm(dim=2) < 0.4
    assert torch.equal(whole.flip(0), near.fill_diagonal_(False).nonzero().T)
    assert radius(x[:0], y, 0.4).shape == (2, 0)
    tiny = (x * 1e-17).float()
    near = torch.cdist(tiny.double(), tiny.double()) < 2e-18
    found = radius_graph(tiny, 2e-18, max_num_neighbors=90)
    assert torch.equal(found.flip(0), near.fill_diagonal_(False).nonzero().T)
    assert radius_graph(x, float("inf"), max_num_neighbors=90).shape == (2, 90 * 89)
    with pytest.raises((ValueError, RuntimeError), match="times as large as the radius"):
        radius_graph(x.float(), 1e-43)
    with pytest.raises(AssertionError):
        radius_graph(x, 0.4, flow="sideways")
    with pytest.raises((ValueError, RuntimeError), match="coordinates"):
        radius(torch.zeros(3, 4), torch.zeros(3, 4), 1.0)
    with pytest.raises((ValueError, RuntimeError), match="on meta"):
        radius(torch.zeros(3, 3, device="meta"), y, 1.0)
