"""The neighbour searches of ``MDAnalysis.lib``, by Nearfield.

>>> from nearfield.compat.mdanalysis import capped_distance, self_capped_distance
>>> pairs, distances = capped_distance(atoms.positions, solvent.positions, 5.0, box=u.dimensions)

``capped_distance`` and ``self_capped_distance`` replace those of ``MDAnalysis.lib.distances``,
``FastNS`` that of ``MDAnalysis.lib.nsgrid``: signatures, results, types and errors are those of
MDAnalysis 2.11. Like there, coordinates are rounded to float32, distances are computed in double
precision, and of the images of a pair only the nearest counts. What differs: pairs come in the
order of (i, j), which MDAnalysis does not promise; ``method`` and ``backend`` do nothing;
MDAnalysis moves coordinates into the box in float32 before it computes distances, which Nearfield
does not, so distances across the box differ by that rounding, and so may pairs exactly at a
cut-off; ``FastNS`` without periodicity takes any coordinates, not just those in its box.
"""

import numpy as np
from MDAnalysis.lib.mdamath import triclinic_vectors
from MDAnalysis.lib.nsgrid import FastNS as _FastNS
from MDAnalysis.lib.util import check_coords

from ._common import Pairs, has_one_image, nearest_images

__all__ = ["FastNS", "capped_distance", "self_capped_distance"]

_METHODS = ("bruteforce", "nsgrid", "pkdtree")
_AS_GIVEN = dict(enforce_copy=False, reduce_result_if_single=False, allow_atomgroup=True)


def capped_distance(
    reference,
    configuration,
    max_cutoff,
    min_cutoff=None,
    box=None,
    method=None,
    return_distances=True,
    backend="serial",
):
    """See ``MDAnalysis.lib.distances.capped_distance``."""
    cell, pbc = _domain(box, method)
    pairs, distances = _between(
        reference, configuration, max_cutoff, min_cutoff=min_cutoff, cell=cell, pbc=pbc
    )
    return (pairs, distances) if return_distances else pairs


def self_capped_distance(
    reference,
    max_cutoff,
    min_cutoff=None,
    box=None,
    method=None,
    return_distances=True,
    backend="serial",
):
    """See ``MDAnalysis.lib.distances.self_capped_distance``."""
    cell, pbc = _domain(box, method)
    pairs, distances = _within(reference, max_cutoff, min_cutoff=min_cutoff, cell=cell, pbc=pbc)
    return (pairs, distances) if return_distances else pairs


class FastNS:
    """See ``MDAnalysis.lib.nsgrid.FastNS``."""

    def __init__(self, cutoff, coords, box, pbc=True):
        # MDAnalysis itself says what is wrong with the arguments.
        _FastNS(cutoff, coords[:1] if coords.ndim == 2 else coords, box, pbc)
        self.cutoff, self._coords = float(cutoff), np.array(coords, np.float32)
        self._cell, self._pbc = _domain(box if pbc else None, None)

    def search(self, search_coords):
        """The neighbours of ``search_coords``."""
        given = np.asarray(search_coords, np.float32)
        if given.ndim != 2 or given.shape[1] != 3:
            raise ValueError(f"search_coords must have a shape of (n, 3), got {given.shape}.")
        return _Results(_between, given, self._coords, self.cutoff, cell=self._cell, pbc=self._pbc)

    def self_search(self):
        """The pairs of the coordinates among each other."""
        return _Results(_within, self._coords, self.cutoff, cell=self._cell, pbc=self._pbc)


class _Results:
    """See ``MDAnalysis.lib.nsgrid.NSResults``."""

    def __init__(self, search, *given, **where):
        self._pairs, self._distances = search(*given, **where)

    def get_pairs(self):
        """Indices of pairs, shape (n, 2)."""
        return self._pairs

    def get_pair_distances(self):
        """Distances of the pairs."""
        return self._distances


def _domain(box, method):
    """Cell and periodicity of a box as MDAnalysis has it: three lengths and three angles."""
    if method is not None and method.lower() not in _METHODS:
        raise KeyError(method.lower())
    if box is None:
        return np.zeros((3, 3)), np.zeros(3, bool)
    box = np.asarray(box, np.float32)
    if box.shape[0] != 6:
        raise ValueError(
            "Box Argument is of incompatible type. The dimension should be either None or of the "
            "form [lx, ly, lz, alpha, beta, gamma]"
        )
    # A length of 0 is an open axis; triclinic vectors do not know any.
    cell = np.diag(box[:3]) if np.all(box[3:] == 90) else triclinic_vectors(box)
    return cell.astype(float), np.diag(cell) > 0


@check_coords("reference", "configuration", check_lengths_match=False, **_AS_GIVEN)
def _between(reference, configuration, max_cutoff, min_cutoff=None, cell=None, pbc=None):
    found = _closed(reference, max_cutoff, cell, pbc, other=configuration.astype(float))
    return _as_arrays(found, np.full(len(found[0]), True), min_cutoff)


@check_coords("reference", **_AS_GIVEN)
def _within(reference, max_cutoff, min_cutoff=None, cell=None, pbc=None):
    found = _closed(reference, max_cutoff, cell, pbc)
    return _as_arrays(found, found[0] < found[1], min_cutoff)


def _closed(points, max_cutoff, cell, pbc, other=None):
    pairs = Pairs(
        points.astype(float), float(max_cutoff), "ijd", other=other, cell=cell, pbc=pbc,
        closed=True, squares=False, sorted=True,
    )  # fmt: skip
    found = [pairs[letter] for letter in "ijd"]
    if not has_one_image(max_cutoff, cell, pbc):
        first = nearest_images(*found)
        found = [array[first] for array in found]
    return found


def _as_arrays(found, mask, min_cutoff):
    i, j, d = found
    if min_cutoff is not None:
        mask = mask & (d > min_cutoff)
    return np.stack([i[mask], j[mask]], axis=1).astype(np.intp, copy=False), d[mask]
