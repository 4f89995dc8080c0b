"""Lists with a skin, lists of some points, and lists in chunks are those of an engine."""

import numpy as np
import pytest

import nearfield


def sorted_lists(lists):
    return [np.sort(list).tolist() for list in lists]


def by_key(i, j, *columns):
    order = np.lexsort((*columns[-1].T, j, i)) if columns else np.lexsort((j, i))
    return [array[order] for array in (i, j, *columns)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("half", [False, True])
def test_lists_with_a_skin_have_the_pairs_of_now(dtype, half):
    random = np.random.default_rng()
    box = np.array([[7, 0, 0], [1.5, 6, 0], [-1, 2, 8]], dtype=float)
    settings = dict(box=box, precision="f32" if dtype == np.float32 else "f64", half=half)
    points = (random.random((400, 3)) @ box).astype(dtype)
    lists = nearfield.VerletLists(1.5, 0.4, **settings)
    engine = nearfield.Engine(1.5, device="cpu", **settings)
    assert (lists.add_points(points), engine.add_points(points)) == (0, 0)
    assert lists.refresh() and not lists.refresh()
    rebuilt = 0
    for step in range(12):
        points += random.normal(0, 0.03, points.shape).astype(dtype)
        # A box vector away is the same place.
        points[random.integers(400)] += box[random.integers(3)].astype(dtype)
        rebuilt += lists.update(0, points)
        engine.update(0, points)
        found = by_key(*lists.pair_geometry("ijdDS"))
        expected = by_key(*engine.pair_geometry("ijdDS"))
        assert len(found[0]) > 1000
        for one, other in zip(found, expected):
            assert one.dtype == other.dtype and np.array_equal(one, other)
        assert sorted_lists(lists.neighbors()) == sorted_lists(engine.neighbors())
        assert lists.displacement() < 0.4
    assert 0 < rebuilt < 12 and lists.builds == 1 + rebuilt
    assert lists.candidates().pairs > lists.neighbors().pairs
    assert (lists.radius, len(lists), lists.points(0)) == (1.5, 1, 400)
    assert lists.update(0, points[:-1]), "another number of points"
    assert len(lists.neighbors()) == 399


def test_sets_of_lists_with_a_skin_search_each_other_as_told():
    lists = nearfield.VerletLists(1.0, 0.2)
    few = lists.add_points([[0.0, 0, 0], [0.5, 0, 0]])
    one = lists.add_points([[0.25, 0, 0]])
    assert sorted_lists(lists.neighbors(few, one)) == [[0], [0]]
    lists.set_active(few, one, False)
    with pytest.raises(RuntimeError, match="switched off|does not search|active"):
        lists.neighbors(few, one)
    lists.remove_set(one)
    with pytest.raises(IndexError):
        lists.points(one)
    with pytest.raises(ValueError, match="skin"):
        nearfield.VerletLists(1.0, -0.2)
    with pytest.raises(ValueError, match="finite"):
        lists.update(few, [[np.nan, 0, 0]])
    assert sorted_lists(lists.neighbors()) == [[1], [0]]


@pytest.mark.parametrize("settings", [{}, {"half": True}, {"k": 3}, {"sorted": True}])
def test_some_points_have_the_lists_that_they_have_among_all(settings):
    points = np.random.default_rng().random((500, 3), dtype=np.float32)
    engine = nearfield.Engine(0.2, box=[1, 1, 0], device="cpu", **settings)
    engine.add_points(points)
    if settings.get("half"):
        full = nearfield.Engine(0.2, box=[1, 1, 0])
        full.add_points(points)
        expected = full.neighbors()
    else:
        expected = engine.neighbors()
        # They do not count: the points are given.
        engine.set_targets(0, [4])
    some = np.array([7, 499, 0, 7])
    found = engine.neighbors_of(some)
    assert found.pairs > 0
    if settings.get("k") or settings.get("sorted"):
        assert [list.tolist() for list in found] == [expected[i].tolist() for i in some]
    else:
        assert sorted_lists(found) == sorted_lists(expected[some])
    assert len(engine.neighbors_of([])) == 0
    with pytest.raises(IndexError, match="500"):
        engine.neighbors_of([500])


def test_chunks_have_every_list_once_and_stay_within_their_memory():
    points = np.random.default_rng().random((3000, 3), dtype=np.float32)
    engine = nearfield.Engine(0.1, device="cpu")
    engine.add_points(points)
    expected = engine.neighbors()
    chunks = engine.chunks(memory=20_000)
    assert chunks.pairs == expected.pairs
    seen = []
    for some, lists in chunks:
        assert 8 * (len(some) + 1) + 4 * lists.pairs <= 20_000
        assert sorted_lists(lists) == sorted_lists(expected[some])
        seen.append(some)
    assert len(seen) > 3 and np.array_equal(np.sort(np.concatenate(seen)), np.arange(3000))
    assert list(chunks) == []
    assert len(list(engine.chunks())) == 1, "all at once"
    with pytest.raises(MemoryError):
        engine.chunks(memory=20)
    chunks = engine.chunks(memory=20_000)
    next(chunks)
    engine.update(0, points)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="changed"):
            next(chunks)
