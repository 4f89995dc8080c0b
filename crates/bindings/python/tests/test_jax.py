"""Pairs for JAX: the same as those of NumPy, padded, with derivatives, under jit and vmap."""

import doctest
import os

import nearfield
import numpy as np
import pytest

if os.environ.get("NEARFIELD_REQUIRE_JAX") != "1":
    pytest.importorskip("jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp
import nearfield.jax


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def crystal(points=20, seed=5, systems=None, dtype=np.float64):
    random = np.random.default_rng(seed)
    leading = () if systems is None else (systems,)
    cells = np.eye(3) + 0.3 * (random.random((*leading, 3, 3)) - 0.5)
    return (1.4 * random.random((points, 3)) - 0.2).astype(dtype), cells.astype(dtype)


def agree(found, pairs, expected, n, ulps=8):
    """The first rows are those expected, the others padding."""
    assert int(pairs) == len(expected[0])
    for letter, one, other in zip("ijSdD", map(np.asarray, found), expected):
        assert one.dtype == other.dtype and one.shape[1:] == other.shape[1:]
        known = min(len(one), len(other))
        atol = ulps * np.finfo(one.dtype).eps if one.dtype.kind == "f" else 0
        np.testing.assert_allclose(one[:known], other[:known], rtol=0, atol=atol)
        assert (one[known:] == (n if letter in "ij" else 0)).all()


def test_the_example_of_the_module():
    with jax.enable_x64(False):
        failed, run = doctest.testmod(nearfield.jax)
    assert run >= 4 and failed == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("capacity", [0, 100, 3000])
def test_pairs_are_those_of_numpy_as_far_as_there_is_room(dtype, capacity):
    positions, cell = crystal(60, dtype=dtype)
    search = lambda edges, of, *room: edges(
        of, 0.4, *room, "ijSdD", cell=cell, pbc=(True, False, True), sorted=True, half=True
    )
    i, j, *others = search(nearfield.edges, positions)
    expected = i.astype(np.int32), j.astype(np.int32), *others
    assert 100 < len(i) < 3000
    for run in lambda function: function, jax.jit:
        found, pairs = run(lambda of: search(nearfield.jax.edges, of, capacity))(jnp.array(positions))
        agree(found, pairs, expected, 60)


def test_pairs_of_systems_are_those_of_numpy():
    ptr, radii = np.array([0, 30, 30, 75, 120]), np.array([0.3, 0.2, 0.4, 0.25])
    positions, cells = crystal(120, systems=4)
    options = dict(batch_ptr=ptr, cell=cells, pbc=True, sorted=True)
    i, j, *others = nearfield.edges(positions, radii, "ijSdD", **options)
    expected = i.astype(np.int32), j.astype(np.int32), *others
    systems = np.repeat(np.arange(4), np.diff(ptr))
    for batch in dict(batch_ptr=ptr), dict(batch_idx=systems, batch_ptr=None):
        options.update(batch)
        search = lambda positions, radii: nearfield.jax.edges(positions, radii, 5000, **options)
        agree(*jax.jit(search)(positions, radii), expected, 120)


def test_filters_and_another_set_are_those_of_numpy():
    positions, cell = crystal(150)
    others, _ = crystal(150, seed=6)
    types = np.arange(150) % 2
    for options in (
        dict(types=types, cutoffs=[[0.4, 0.3], [0.3, 0.1]], exclusions=[[0, 5], [7, 9]]),
        dict(molecules=types, targets=[3, 8, 140], strict=True),
        dict(k=4),
        dict(self_pairs=True),
        dict(other=others),
    ):
        options.update(cell=cell, pbc=True, sorted="k" not in options)
        i, j, *rest = nearfield.edges(positions, 0.4, **options)
        found, pairs = nearfield.jax.edges(positions, 0.4, 30_000, **options)
        agree(found, pairs, (i.astype(np.int32), j.astype(np.int32), *rest), 150)


def energy(positions, cell, capacity=2000):
    (d,), pairs = nearfield.jax.edges(positions, 0.4, capacity, "d", cell=cell, pbc=True)
    return jnp.where(jnp.arange(capacity) < pairs, (0.4 - d) ** 3, 0).sum()


def test_derivatives_are_right_to_second_order():
    inputs = crystal(12)
    along = tuple(np.random.default_rng(1).normal(size=of.shape) for of in inputs)
    first = jax.grad(energy, (0, 1))
    total = lambda tree: sum((one * other).sum() for one, other in zip(tree, along))

    @jax.jit
    def derivatives(step):
        """By JAX, the second by forward over reverse mode, and energy and slope at a distance."""
        moved = lambda by: tuple(one + by * other for one, other in zip(inputs, along))
        slope, second = jax.jvp(lambda by: total(first(*moved(by))), (0.0,), (1.0,))
        return slope, second, *((energy(*moved(by)), total(first(*moved(by)))) for by in (step, -step))

    slope, second, ahead, behind = derivatives(1e-5)
    assert abs(slope) > 0.1 and abs(second) > 1
    np.testing.assert_allclose(slope, (ahead[0] - behind[0]) / 2e-5, rtol=1e-6)
    np.testing.assert_allclose(second, (ahead[1] - behind[1]) / 2e-5, rtol=1e-6)


def test_points_that_coincide_have_derivatives_of_zero():
    def lengths(positions):
        (d,), _ = nearfield.jax.edges(positions, 0.1, 4, "d")
        return (d + d**2).sum()

    positions = jnp.array([[1.0, 2, 3], [1, 2, 3], [1, 2, 3.5]])
    assert (jax.jit(jax.grad(lengths))(positions) == 0).all()
    assert jnp.isfinite(jax.jit(jax.hessian(lengths))(positions)).all()


def test_many_are_searched_one_after_the_other_by_vmap():
    positions, cell = crystal()
    moved = jnp.stack([positions, positions + 0.1, positions**2])
    found = jax.jit(jax.vmap(energy, (0, None)))(moved, cell)
    np.testing.assert_allclose(found, [energy(of, cell) for of in moved])


def test_the_radius_is_not_rounded():
    # 0.1 in single precision is above 0.1 in double.
    positions = np.array([[0, 0, 0], [0.1 + 1e-10, 0, 0]])
    for radius in 0.1, np.float64(0.1):
        assert int(nearfield.jax.edges(positions, radius, 2)[1]) == 0


def test_what_cannot_be_searched_is_named():
    positions, cell = crystal(6)
    with pytest.raises(TypeError, match="float32 or float64, not int64"):
        nearfield.jax.edges(jnp.zeros((2, 3), int), 0.4, 1)
    with pytest.raises(ValueError, match=r"\(n, 3\), not \(3, 6\)"):
        nearfield.jax.edges(positions.T, 0.4, 1)
    with pytest.raises(ValueError, match="letters"):
        nearfield.jax.edges(positions, 0.4, 1, "ijx")
    with pytest.raises(ValueError, match="capacity is -1"):
        nearfield.jax.edges(positions, 0.4, -1)
    positions[4, 1] = np.nan
    with pytest.raises(Exception, match="point 4 has y"):
        jax.block_until_ready(jax.jit(lambda of: nearfield.jax.edges(of, 0.4, 1))(positions))


def test_cells_are_those_that_the_search_takes():
    positions, cell = crystal(9)
    for given in [
        dict(cell=np.diag([1, 1, np.nan]), pbc=(True, True, False)),
        dict(cell=np.array([1.0, 1.1, 1.2]), pbc=True),
        dict(cell=cell[None], pbc=True, batch_ptr=np.array([0, 4, 9])),
    ]:
        expected = nearfield.edges(positions, 0.6, sorted=True, **given)
        found, pairs = nearfield.jax.edges(jnp.array(positions), 0.6, 900, sorted=True, **given)
        assert int(pairs) > 0
        expected = *(of.astype(np.int32) for of in expected[:2]), *expected[2:]
        agree(found, pairs, expected, 9)
    with pytest.raises(ValueError, match=r"cell must be of shape .* not \(2, 2\)"):
        nearfield.jax.edges(jnp.array(positions), 0.6, 9, cell=cell[:2, :2], pbc=True)
