"""Neighbour pairs for JAX, differentiable, with shapes that are known before the search.

>>> import jax, jax.numpy as jnp, nearfield.jax
>>> positions = jnp.array([[0.0, 0, 0], [0.4, 0, 0]])
>>> (i, j, d), pairs = nearfield.jax.edges(positions, 0.5, 4, "ijd")
>>> i.tolist(), j.tolist(), int(pairs)
([0, 1, 2, 2], [1, 0, 2, 2], 2)

A compiled function of JAX has arrays of fixed shapes, so the caller says how many pairs there is
room for, and is told how many there are. The search runs on the CPU, in a callback: it works under
``jit``, ``grad`` and, one element after the other, ``vmap``. With arrays on a GPU the positions are
copied to the host and the pairs back, in every call.

It is a callback and not a handler of ``jax.ffi``. A handler is compiled for a version of XLA's C
interface, which is kept for at least 12 months, as its header says; a callback is called by every
version.
"""

from dataclasses import dataclass
from typing import Any, Optional, Sequence, Tuple, Union

import jax
import jax.numpy as jnp
import numpy as np

import nearfield

__all__ = ["edges"]

Pbc = Union[bool, Sequence[bool], jax.Array]


def edges(
    positions: jax.Array,
    radius: Union[float, jax.Array],
    capacity: int,
    quantities: str = "ijSdD",
    *,
    cell: Optional[Any] = None,
    pbc: Optional[Pbc] = None,
    batch_ptr: Optional[jax.Array] = None,
    batch_idx: Optional[jax.Array] = None,
    other: Optional[jax.Array] = None,
    radii: Optional[Any] = None,
    rule: Optional[str] = None,
    types: Optional[Any] = None,
    cutoffs: Optional[Any] = None,
    exclusions: Optional[Any] = None,
    molecules: Optional[Any] = None,
    targets: Optional[Any] = None,
    k: Optional[int] = None,
    half: bool = False,
    sorted: bool = False,
    strict: bool = False,
    self_pairs: bool = False,
    threads: int = 0,
) -> Tuple[Tuple[jax.Array, ...], jax.Array]:
    """All pairs within a radius: a tuple with an array for every letter of quantities, in the order
    of the letters, and the number of pairs, an int32. Every array has capacity rows.

    positions: of shape (n, 3), float32 (searched in single precision) or float64 (in double).
    radius: in the unit of the positions; a number, or with batches of shape (systems,). capacity:
    how many pairs there is room for, a number that Python knows, not an array. cell: lattice
    vectors as rows, of shape (3, 3), or with batches (systems, 3, 3). pbc: whether the three axes
    repeat: True, False, or of shape (3,) or (systems, 3); needed where there is a cell. batch_ptr:
    the first point of every system and the number of points behind the last, of shape
    (systems + 1,). batch_idx: the system of every point instead, of shape (n,), ascending. other:
    positions of another set, whose points j are then. All other keywords are those of
    ``nearfield.edges``; arrays may be results of traced functions, all else is known to Python.
    Without ``jax_enable_x64`` JAX makes single precision of the numbers in arrays.

    quantities: "i", the point of every pair, and "j", its neighbour, int32 of shape (capacity,);
    "P", both, of shape (capacity, 2); "S", by how many cell vectors the neighbour is moved, int32
    of shape (capacity, 3); "D", the displacement ``positions[j] - positions[i] + S @ cell``, of
    shape (capacity, 3), and "d", its length, both of the type of the positions. Rows behind the
    last pair have i = n, which ``jax.ops.segment_sum(values, i, n)`` leaves out, j = n or the
    number of other points, and 0 in "S", "d" and "D".

    If the number of pairs is larger than capacity, the arrays have the first pairs, and what is
    computed from them lacks the others: look at the number, and call again with more room.

    "d" and "D" have derivatives of every order by the positions, those of the other set, and the
    cell, by reverse and forward mode. The derivative of "d" is 0 where two points coincide, and in
    rows without a pair.

    Raises TypeError for positions of another type, and ValueError for shapes and quantities that do
    not fit. What cannot be searched, such as a coordinate that is not finite, is an error of JAX
    when the result is waited for; its text ends with that of the library.
    """
    positions = jnp.asarray(positions)
    _check(positions, quantities, capacity)
    cell = _vectors(cell, positions)
    arrays = dict(
        positions=positions, cell=cell, pbc=pbc, batch_ptr=batch_ptr, batch_idx=batch_idx,
        other=other, radii=radii, types=types, cutoffs=cutoffs, exclusions=exclusions,
        molecules=molecules, targets=targets,
    )  # fmt: skip
    if not isinstance(radius, (int, float)):
        # Numbers of Python stay as they are: JAX would round them to single precision.
        arrays["radius"], radius = radius, None
    known = dict(
        radius=radius, rule=rule, k=k, half=half, sorted=sorted, strict=strict,
        self_pairs=self_pairs, threads=threads,
    )  # fmt: skip
    i, j, S, pairs = jax.pure_callback(
        _Search(capacity, tuple(known.items())),
        (
            jax.ShapeDtypeStruct((capacity,), jnp.int32),
            jax.ShapeDtypeStruct((capacity,), jnp.int32),
            jax.ShapeDtypeStruct((capacity, 3), jnp.int32),
            jax.ShapeDtypeStruct((), jnp.int32),
        ),
        {name: jax.lax.stop_gradient(of) for name, of in arrays.items() if of is not None},
        vmap_method="sequential",
    )
    found = {"i": i, "j": j, "S": S}
    if "P" in quantities:
        found["P"] = jnp.stack((i, j), 1)
    if "D" in quantities or "d" in quantities:
        found["D"] = _displacements(positions, other, cell, batch_ptr, batch_idx, i, j, S)
    if "d" in quantities:
        found["d"] = _lengths(found["D"])
    return tuple(found[letter] for letter in quantities), pairs


def _check(positions, quantities, capacity):
    if positions.dtype not in (jnp.float32, jnp.float64):
        raise TypeError(f"positions must be of type float32 or float64, not {positions.dtype}")
    if positions.ndim != 2 or positions.shape[1] != 3:
        raise ValueError(f"positions must be of shape (n, 3), not {positions.shape}")
    if len(set(quantities)) != len(quantities) or not set(quantities) <= set("ijPSdD"):
        raise ValueError(
            "quantities are some of the letters i, j, P, S, d and D, each once, "
            f"not {quantities!r}"
        )
    if capacity < 0:
        raise ValueError(f"capacity is {capacity}: there cannot be fewer than no pairs")


def _vectors(cell, positions):
    """The cell by vectors, if it is given by three lengths."""
    if cell is None:
        return None
    # What Python knows stays in double precision.
    cell = cell if isinstance(cell, jax.Array) else np.asarray(cell, np.float64)
    if cell.shape == (3,):
        return jnp.diag(cell) if isinstance(cell, jax.Array) else np.diag(cell)
    if cell.ndim not in (2, 3) or cell.shape[-2:] != (3, 3):
        raise ValueError(
            f"cell must be of shape (3, 3) or (systems, 3, 3), or three lengths, not {cell.shape}"
        )
    return cell


@dataclass(frozen=True)
class _Search:
    """The callback, which runs on the host, with arrays of the host. Equal searches are equal
    objects, so that JAX compiles a call outside of ``jit`` once."""

    capacity: int
    known: Tuple[Tuple[str, Any], ...]

    def __call__(self, arrays):
        """i, j and S of the pairs that there is room for, and how many there are."""
        given = {name: np.asarray(of) for name, of in arrays.items()}
        positions = given.pop("positions")
        sources = len(given.get("other", positions))
        given = {**dict(self.known), **given}
        i, j, S = nearfield.edges(positions, given.pop("radius"), "ijS", index="int32", **given)
        rest = max(self.capacity - len(i), 0)
        padded = lambda of, *rest: np.concatenate((of[: self.capacity], np.full(*rest, np.int32)))
        return (
            padded(i, rest, len(positions)),
            padded(j, rest, sources),
            padded(S, (rest, 3), 0),
            np.int32(len(i)),
        )


def _displacements(positions, other, cell, batch_ptr, batch_idx, i, j, S):
    # Rows without a pair gather zeros.
    at = lambda of, index: of.at[index].get(mode="fill", fill_value=0)
    D = at(positions if other is None else jnp.asarray(other), j) - at(positions, i)
    if cell is None:
        return D
    # An open axis may have any vector, and 0 * NaN is NaN.
    cells = jnp.asarray(cell, positions.dtype)
    cells = jnp.where(jnp.isfinite(cells), cells, 0)
    if cells.ndim == 3 and len(cells) == 1:
        cells = cells[0]
    elif cells.ndim == 3 and batch_idx is not None:
        cells = at(cells, at(jnp.asarray(batch_idx), i))
    elif cells.ndim == 3:
        cells = at(cells, jnp.searchsorted(jnp.asarray(batch_ptr), i, side="right") - 1)
    # Not by a matrix product: it may round to TF32 or bfloat16, which shifts images.
    return D + (S.astype(positions.dtype)[:, :, None] * cells).sum(1)


def _lengths(D):
    """Lengths, with the derivatives 0 where they are 0: those of the root are infinite there, and
    make NaN of the zeros that they are multiplied by."""
    squares = (D * D).sum(1)
    apart = squares > 0
    return jnp.where(apart, jnp.sqrt(jnp.where(apart, squares, 1)), 0)
