"""The neighbour lists of ``vesin``, by Nearfield.

>>> from nearfield.compat.vesin import NeighborList
>>> i, j, S, d = NeighborList(cutoff=5.0, full_list=True).compute(points, box, True, "ijSd")

The class and the function have the signatures, results, types and errors of vesin 0.6; they need
NumPy only. Like vesin they compute in double precision also for float32. What differs: pairs are
always in the order of ``i``, and with ``sorted=True`` in that of (i, j, S); ``skin`` changes
neither pairs nor speed, because every call searches anew; ``copy`` does nothing. Arrays are of NumPy
or PyTorch on the CPU, or of PyTorch or CuPy on a GPU, where they stay; there pairs exactly at the
cut-off may be decided differently.
"""

import numpy as np

from .. import edges
from ._common import Pairs

__all__ = ["NeighborList", "ase_neighbor_list"]

_ALGORITHMS = ("auto", "brute_force", "cell_list")


class NeighborList:
    """See ``vesin.NeighborList``."""

    def __init__(
        self, *, cutoff, full_list, sorted=False, algorithm="auto", skin=0.0, n_threads=0
    ):
        self.cutoff = float(cutoff)
        self.full_list = bool(full_list)
        self.sorted = bool(sorted)
        self.skin = float(skin)
        self.algorithm = algorithm
        self.n_threads = int(n_threads)
        if self.n_threads < 0:
            raise ValueError("n_threads must be zero or a positive integer")

    @property
    def algorithm(self):
        """One of "auto", "cell_list" and "brute_force", which ``compute`` refuses as vesin does."""
        return self._algorithm

    @algorithm.setter
    def algorithm(self, value):
        if value.lower() not in _ALGORITHMS:
            raise ValueError(
                f"Unknown algorithm '{value}'. "
                "Must be one of 'auto', 'brute_force', or 'cell_list'."
            )
        self._algorithm = value.lower()

    def compute(self, points, box, periodic, quantities="ij", copy=True):
        """A tuple with an array for each letter of quantities (i, j, P, S, d, D)."""
        library = type(points).__module__.split(".")[0]
        if library == "torch":
            return self._of_tensors(points, box, periodic, quantities)
        if library == "cupy":
            return self._on_gpu(points, box, periodic, quantities)
        points, box, periodic = np.asarray(points), np.asarray(box), np.asarray(periodic)
        periodic = self._checked(points, box, periodic, quantities)
        real = points.dtype if np.issubdtype(points.dtype, np.floating) else float
        kinds = {"S": np.int32, "d": real, "D": real}
        found = self._pairs(points.astype(float), box.astype(float), periodic, quantities)
        return tuple(
            found[letter].astype(kinds.get(letter, np.uint64), copy=False) for letter in quantities
        )

    def _checked(self, points, box, periodic, quantities):
        """Where the box repeats, as three booleans; what vesin refuses raises its errors."""
        if periodic.ndim == 0 and periodic.dtype == bool:
            periodic = np.full(3, periodic)
        if tuple(box.shape) != (3, 3):
            raise ValueError("`box` must be a 3x3 matrix")
        if len(points.shape) != 2 or points.shape[1] != 3:
            raise ValueError("`points` must be a nx3 array")
        if periodic.shape != (3,):
            raise ValueError(
                "`periodic` must be a single boolean or a sequence of three "
                f"booleans, got {periodic} of type {type(periodic)}"
            )
        if box.dtype != points.dtype:
            raise RuntimeError(
                "`points` and `box` must have the same dtype, "
                f"got {points.dtype} and {box.dtype}"
            )
        for letter in quantities:
            if letter not in "ijPSdD":
                raise ValueError(f"unexpected character in `quantities`: {letter}")
        return periodic.astype(bool)

    def _check_settings(self, box, periodic):
        if not np.isfinite(self.cutoff) or self.cutoff <= 0:
            raise RuntimeError("cutoff must be a finite, positive number")
        if self.cutoff <= 1e-6:
            raise RuntimeError("cutoff is too small")
        if not np.isfinite(self.skin) or self.skin < 0:
            raise RuntimeError("skin must be a finite, non-negative number")
        if np.linalg.matrix_rank(box[periodic]) < periodic.sum():
            raise RuntimeError("the box matrix is not invertible")

    def _pairs(self, points, box, periodic, quantities):
        if self.algorithm == "brute_force":
            raise RuntimeError("only VesinAutoAlgorithm and VesinCellList are supported on CPU")
        self._check_settings(box, periodic)
        letters = "".join(dict.fromkeys(quantities if self.full_list else "ijS" + quantities))
        found = Pairs(
            points, self.cutoff, letters, cell=box, pbc=periodic, threads=self.n_threads,
            sorted=self.sorted,
        )  # fmt: skip
        if not self.full_list:
            found.keep(_once(found["i"], found["j"], found["S"]))
        return found

    def _on_gpu(self, points, box, periodic, quantities):
        """Arrays on the GPU where the points are, by operations that PyTorch and CuPy share."""
        from .._libraries import library_of, on_host

        library = library_of(points)
        periodic = np.asarray(on_host(periodic))
        periodic = self._checked(points, box, periodic, quantities)
        cell = np.asarray(on_host(box), float)
        self._check_settings(cell, periodic)
        letters = "".join(dict.fromkeys(quantities if self.full_list else "ijS" + quantities))
        doubles = library.cast(points, "float64")
        how = dict(cell=cell, pbc=periodic, sorted=self.sorted)
        found = dict(zip(letters, edges(doubles, self.cutoff, letters, **how)))
        if not self.full_list:
            kept = _once(found["i"], found["j"], found["S"])
            found = {letter: array[kept] for letter, array in found.items()}
        kind = str(points.dtype).rpartition(".")[2]
        kind = kind if kind.startswith("float") else "float64"
        kinds = dict(S="int32", d=kind, D=kind)
        return tuple(
            library.cast(found[letter], kinds.get(letter, "uint64")) for letter in quantities
        )

    def _of_tensors(self, points, box, periodic, quantities):
        import torch

        tensors = [torch.as_tensor(one) for one in (points, box)]
        if any(one.requires_grad for one in tensors):
            raise RuntimeError(
                "NeighborList.compute does not support autograd for torch tensors"
            )
        if points.device != tensors[1].device:
            raise ValueError(
                f"`points` and `box` must be on the same device, got {points.device} and "
                f"{tensors[1].device}"
            )
        if points.device.type != "cpu":
            return self._on_gpu(*tensors, periodic, quantities)
        arrays = self.compute(*(one.numpy() for one in tensors), periodic, quantities)
        return tuple(map(torch.from_numpy, arrays))


def _once(i, j, S):
    """Which pairs stand once in a half list."""
    x, y, z = S[:, 0], S[:, 1], S[:, 2]
    # Of an image of a point itself, vesin keeps the direction whose sum is positive.
    total = x + y + z
    own = (total > 0) | (total == 0) & ((z > 0) | (z == 0) & (y >= 0))
    return (i < j) | (i == j) & own


def ase_neighbor_list(quantities, a, cutoff, self_interaction=False, max_nbins=0):
    """See ``vesin.ase_neighbor_list``."""
    import ase

    if self_interaction:
        raise ValueError("self_interaction=True is not implemented")
    if not isinstance(cutoff, (float, int)):
        raise ValueError("only a single float cutoff is supported")
    if not isinstance(a, ase.Atoms):
        raise TypeError(f"`a` should be ase.Atoms, got {type(a)} instead")
    calculator = NeighborList(cutoff=float(cutoff), full_list=True, sorted=True)
    return calculator.compute(a.positions, a.cell[:], a.pbc, quantities)
