"""The neighbour lists of ``ase.neighborlist``, by Nearfield.

>>> from nearfield.compat.ase import neighbor_list
>>> i, j, S, d = neighbor_list("ijSd", atoms, 5.0)

The functions and classes have the signatures, results, types and errors of ASE 3.29. What differs:
the order of the neighbours of one atom, which ASE does not promise either; ``max_nbins`` does
nothing; an axis that repeats needs a cell vector, where ASE finds atoms on top of each other;
``d`` and ``D`` can differ in the last bit. Pairs exactly at the cut-off are decided by the formula
of ASE.

ASE has no entry point for neighbour lists: its plugins are calculators, file formats and viewers.
"""

import numpy as np
from ase.cell import Cell
from ase.data import atomic_numbers
from ase.geometry import minkowski_reduce, wrap_positions
from ase.neighborlist import NeighborList as _NeighborList
from ase.neighborlist import NewPrimitiveNeighborList as _NewPrimitive
from ase.neighborlist import PrimitiveNeighborList as _Primitive
from ase.neighborlist import first_neighbors

from ._common import Pairs, as_points, assembled, no_pairs, with_selves

__all__ = [
    "NeighborList",
    "NewPrimitiveNeighborList",
    "PrimitiveNeighborList",
    "first_neighbors",
    "neighbor_list",
    "primitive_neighbor_list",
]


def neighbor_list(quantities, a, cutoff, self_interaction=False, max_nbins=1e6):
    """The pairs of an ``ase.Atoms`` object: see ``ase.neighborlist.neighbor_list``."""
    return primitive_neighbor_list(
        quantities,
        a.pbc,
        a.get_cell(complete=True),
        a.positions,
        cutoff,
        numbers=a.numbers,
        self_interaction=self_interaction,
        max_nbins=max_nbins,
    )


def primitive_neighbor_list(
    quantities,
    pbc,
    cell,
    positions,
    cutoff,
    numbers=None,
    self_interaction=False,
    use_scaled_positions=False,
    max_nbins=1e6,
):
    """The pairs of arrays: see ``ase.neighborlist.primitive_neighbor_list``."""
    if len(positions) == 0:
        return assembled(no_pairs("ijSdD"), quantities)
    unknown = set(quantities) - set("ijSdD")
    if unknown:
        raise ValueError("Unsupported quantity specified.")
    cell = np.asarray(cell, float)
    positions = as_points(positions)
    if use_scaled_positions:
        positions = np.dot(positions, cell)
    limit, of_pair = _cutoffs(cutoff, numbers)
    letters = "".join(dict.fromkeys("i" * bool(self_interaction) + quantities))
    found = Pairs(
        positions, limit, letters, cell=cell, pbc=pbc, of_pair=of_pair, squares=False
    )
    if self_interaction:
        if of_pair is not None:
            own = np.arange(len(positions))
            # A point is its own neighbour where its cut-off with itself is above 0.
            selves = own[np.broadcast_to(of_pair(own, own), own.shape) > 0]
        else:
            selves = np.arange(len(positions)) if limit > 0 else ()
        found = with_selves(found, letters, selves)
    arrays = {letter: found[letter] for letter in letters}
    if "S" in arrays:
        arrays["S"] = arrays["S"].astype(np.int64, copy=False)
    return assembled(arrays, quantities)


def _cutoffs(cutoff, numbers):
    """The largest cut-off, and a function of pairs if they have their own."""
    if isinstance(cutoff, dict):
        limit = max(cutoff.values())
        if numbers is None:
            return limit, None
        kinds, places = np.unique(numbers, return_inverse=True)
        of_kinds = np.zeros((len(kinds), len(kinds)))
        for pair, value in cutoff.items():
            first, second = (atomic_numbers.get(one, one) for one in pair)
            a, b = kinds == first, kinds == second
            of_kinds[np.outer(a, b) | np.outer(b, a)] = value
        return limit, lambda i, j: of_kinds[places[i], places[j]]
    if np.isscalar(cutoff):
        return cutoff, None
    radii = np.asarray(cutoff)
    return 2 * np.max(radii), lambda i, j: radii[i] + radii[j]


class NewPrimitiveNeighborList(_NewPrimitive):
    """See ``ase.neighborlist.NewPrimitiveNeighborList``."""

    def build(self, pbc, cell, positions, numbers=None):
        """Build the list."""
        self.pbc = np.array(pbc, copy=True)
        self.cell = np.array(cell, copy=True)
        self.positions = np.array(positions, copy=True)
        i, j, S = primitive_neighbor_list(
            "ijS",
            pbc,
            cell,
            positions,
            self.cutoffs,
            numbers=numbers,
            self_interaction=self.self_interaction,
            use_scaled_positions=self.use_scaled_positions,
        )
        if not self.bothways:
            i, j, S = (array[_in_half(S, i <= j)] for array in (i, j, S))
        if self.sorted:
            order = np.lexsort((j, i))
            i, j, S = i[order], j[order], S[order]
        self.pair_first, self.pair_second, self.offset_vec = i, j, S
        self.first_neigh = first_neighbors(len(positions), i)
        self.nupdates += 1


class PrimitiveNeighborList(_Primitive):
    """See ``ase.neighborlist.PrimitiveNeighborList``. The neighbours of an atom are in the order of
    (index, offset), also without ``sorted``."""

    def build(self, pbc, cell, coordinates):
        """Build the list."""
        self.pbc = pbc = np.array(pbc, copy=True)
        self.cell = cell = Cell(cell)
        self.coordinates = coordinates = np.array(coordinates, copy=True)
        count = len(coordinates)
        if len(self.cutoffs) != count:
            raise ValueError(f"Wrong number of cutoff radii: {len(self.cutoffs)} != {count}")
        self.nupdates += 1
        if count == 0:
            self.neighbors, self.displacements = [], []
            return
        if self.use_scaled_positions:
            coordinates = cell.cartesian_positions(coordinates)
        i, j, S = primitive_neighbor_list(
            "ijS", pbc, cell, coordinates, self.cutoffs, self_interaction=self.self_interaction
        )
        if not self.bothways:
            # Which of a pair's two directions is in the list depends on the reduced cell.
            reduced, operation = minkowski_reduce(cell, pbc)
            wrapped = wrap_positions(coordinates, reduced, pbc=pbc, eps=0)
            offsets = cell.scaled_positions(wrapped - coordinates).round().astype(int)
            n = (S - offsets[j] + offsets[i]) @ np.linalg.inv(operation)
            mask = _in_half(n.round().astype(int), i <= j)
            i, j, S = i[mask], j[mask], S[mask]
        order = np.lexsort((S[:, 2], S[:, 1], S[:, 0], j, i))
        ends = np.searchsorted(i[order], np.arange(1, count))
        self.neighbors = np.split(j[order], ends)
        self.displacements = np.split(S[order], ends)


def _in_half(S, ascending):
    """Whether images are lexicographically positive, or 0 of a pair that ascends."""
    x, y, z = S.T
    positive = (x > 0) | (x == 0) & ((y > 0) | (y == 0) & (z > 0))
    return positive | ascending & ~S.any(axis=1)


class NeighborList(_NeighborList):
    """See ``ase.neighborlist.NeighborList``; ``primitive`` is a class of this module."""

    def __init__(
        self,
        cutoffs,
        skin=0.3,
        sorted=False,
        self_interaction=True,
        bothways=False,
        primitive=PrimitiveNeighborList,
    ):
        super().__init__(
            cutoffs,
            skin,
            sorted,
            self_interaction=self_interaction,
            bothways=bothways,
            primitive=primitive,
        )
