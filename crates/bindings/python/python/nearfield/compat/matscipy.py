"""The neighbour list of ``matscipy.neighbours``, by Nearfield.

>>> from nearfield.compat.matscipy import neighbour_list
>>> i, j, S, d = neighbour_list("ijSd", atoms, 5.0)

The function has the signature, results, types and errors of matscipy 1.3; it needs neither matscipy
nor ASE, except for symbols of elements in dictionaries of cut-offs. What differs: the order of the
neighbours of one atom, which matscipy does not promise either; ``d`` and ``D`` can differ in the
last bits, because matscipy computes them relative to its bins, and so can the decision of a pair
exactly at the cut-off; ``S`` is 0 along open axes, also for atoms outside the cell. ``cell_origin``
does nothing: Nearfield's pairs do not depend on where a cell begins.
"""

from collections import defaultdict

import numpy as np

from ._common import Pairs, as_points, assembled, no_pairs

__all__ = ["neighbour_list"]

# Below this volume matscipy refuses a cell.
_MIN_VOLUME = 1e-12


def neighbour_list(
    quantities,
    atoms=None,
    cutoff=None,
    positions=None,
    cell=None,
    pbc=None,
    numbers=None,
    cell_origin=None,
):
    """The pairs of atoms or arrays: see ``matscipy.neighbours.neighbour_list``."""
    if cutoff is None:
        raise ValueError("Please provide a value for the cutoff radius.")
    if atoms is None:
        if positions is None:
            raise ValueError("You provided neither an ASE Atoms object nor a positions array.")
        positions = as_points(positions)
        if cell is None:
            cell = np.diag(np.ptp(positions, axis=0))
        pbc = np.zeros(3, bool) if pbc is None else pbc
        numbers = np.ones(len(positions), int) if numbers is None else numbers
    else:
        of_arrays = {
            "individual positions": positions,
            "a cell origin": cell_origin,
            "cell vectors": cell,
            "separate periodicity information": pbc,
            "separate atomic numbers": numbers,
        }
        for what, given in of_arrays.items():
            if given is not None:
                raise ValueError(
                    f"You cannot provide an ASE Atoms object and {what} at the same time."
                )
        positions, cell, pbc, numbers = atoms.positions, atoms.cell, atoms.pbc, atoms.numbers
    cell = np.asarray(cell, float)
    np.linalg.inv(cell)
    if abs(np.linalg.det(cell)) < _MIN_VOLUME:
        raise RuntimeError("Zero cell volume.")
    if set(quantities) - set("ijSdD"):
        raise ValueError("Unsupported quantity specified.")
    if len(positions) == 0:
        return assembled(no_pairs("ijSdD", np.int32), quantities)
    limit, of_pair = _cutoffs(cutoff, np.asarray(numbers), len(positions))
    found = Pairs(
        as_points(positions),
        limit,
        "".join(dict.fromkeys(quantities)),
        cell=cell,
        pbc=np.broadcast_to(pbc, 3),
        of_pair=of_pair,
    )
    arrays = {letter: found[letter] for letter in quantities}
    for letter in set("ijS").intersection(arrays):
        arrays[letter] = arrays[letter].astype(np.int32, copy=False)
    return assembled(arrays, quantities)


def _cutoffs(cutoff, numbers, count):
    """The largest cut-off, and a function of pairs if they have their own."""
    if len(numbers) != count:
        raise TypeError("Position and type arrays must have identical first dimension.")
    if isinstance(cutoff, defaultdict):
        cutoff = cutoff.default_factory()
    elif isinstance(cutoff, dict):
        cutoff = _of_elements(cutoff, int(np.max(numbers)))
    if np.ndim(cutoff) == 0:
        return float(cutoff), None
    cutoff = np.asarray(cutoff, float)
    if cutoff.ndim == 1:
        if len(cutoff) != count:
            raise TypeError(
                "One-dimensional cutoff array must have length that corresponds to position array."
            )
        return 2.0 * cutoff.max(), lambda i, j: cutoff[i] + cutoff[j]
    if cutoff.ndim > 2 or cutoff.shape[0] != cutoff.shape[1]:
        raise TypeError("Two-dimensional cutoff array must be square.")
    # Numbers beyond the matrix have the largest cut-off.
    limit = cutoff.max()
    of_types = np.pad(cutoff, (0, 1), constant_values=limit)
    types = np.minimum(numbers, len(cutoff))
    return limit, lambda i, j: of_types[types[i], types[j]]


def _of_elements(cutoff, largest):
    """A matrix by atomic number of the cut-offs of a dictionary."""
    matrix = np.zeros((largest + 1, largest + 1))
    for pair, value in cutoff.items():
        first, second = (_number(one) for one in pair)
        if max(first, second) <= largest:
            matrix[first, second] = matrix[second, first] = value
    return matrix


def _number(element):
    if not isinstance(element, str):
        return element
    from ase.data import atomic_numbers

    return atomic_numbers[element]
