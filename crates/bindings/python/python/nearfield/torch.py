"""Neighbour pairs for PyTorch, differentiable, on the CPU and on NVIDIA GPUs.

>>> import torch, nearfield.torch
>>> positions = torch.tensor([[0.0, 0, 0], [0.4, 0, 0]], requires_grad=True)
>>> i, j, d = nearfield.torch.edges(positions, 0.5, "ijd")
>>> torch.autograd.grad(d.sum(), positions)[0]
tensor([[-2.,  0.,  0.],
        [ 2.,  0.,  0.]])

The search is one operator, ``nearfield::pairs``, which returns integers: points, neighbours and
images. Displacements and distances are gathered from them by PyTorch itself. They can therefore be
differentiated by positions and cells as often as needed, and ``torch.compile`` and
``torch.export`` see one opaque operator whose number of pairs depends on the data.
"""

from threading import Lock
from typing import Optional, Sequence, Tuple, Union

import torch

import nearfield

__all__ = ["edges"]

Radius = Union[float, torch.Tensor]
Cell = Union[torch.Tensor, Sequence[Sequence[float]]]
Pbc = Union[bool, Sequence[bool], torch.Tensor]

# Types of positions, and the precision in which they are searched.
_PRECISION = {torch.float32: "f32", torch.float64: "f64"}


def edges(
    positions: torch.Tensor,
    radius: Radius,
    quantities: str = "ijSdD",
    *,
    cell: Optional[Cell] = None,
    pbc: Optional[Pbc] = None,
    batch_ptr: Optional[torch.Tensor] = None,
    batch_idx: Optional[torch.Tensor] = None,
    half: bool = False,
    sorted: bool = False,
    strict: bool = False,
    threads: int = 0,
) -> Tuple[torch.Tensor, ...]:
    """All pairs within a radius: a tuple with a tensor for every letter of quantities, in the order
    of the letters, on the device of the positions.

    positions: of shape (n, 3), float32 (searched in single precision) or float64 (in double), on
    the CPU or on a CUDA device. radius: in the unit of the positions; a number, or with batches a
    tensor of shape (systems,). cell: lattice vectors as rows, of shape (3, 3), or with batches
    (systems, 3, 3). pbc: whether the three axes repeat: True, False, or of shape (3,) or
    (systems, 3); needed where there is a cell. batch_ptr: the first point of every system and the
    number of points behind the last, of shape (systems + 1,). batch_idx: the system of every point,
    ascending, of shape (n,); its last entry says how many systems there are, unless cell, pbc or
    radius has one for each. Only points of the same system are neighbours. half: every pair once;
    sorted: pairs by i, then j, then S; strict: only pairs closer than the radius; see
    ``nearfield.edges``. threads: those of the CPU's search, 0 for one per core.

    quantities: "i", the point of every pair, and "j", its neighbour, int64 of shape (pairs,); "P",
    both, of shape (pairs, 2); "S", by how many cell vectors the neighbour is moved, int32 of shape
    (pairs, 3); "D", the displacement ``positions[j] - positions[i] + S @ cell``, of shape
    (pairs, 3), and "d", its length, both of the type of the positions. ``torch.stack((i, j))`` is
    the edge_index of PyTorch Geometric.

    "d" and "D" have derivatives of every order by the positions, and by the cell where it is a
    tensor. The derivative of "d" is 0 where two points coincide. Which pairs there are is decided
    by the library, bit for bit as in ``nearfield.edges``; because PyTorch computes "d" itself, a
    pair at the very edge may have a "d" that is above the radius by rounding.

    Which pairs there are depends on the data: a compiled or exported program has a number of pairs
    that is a symbol of its own. Mark it with ``torch._check`` where a later operator asks about it.
    On a GPU the call waits for the number of pairs.

    Raises TypeError for positions of another type or on another kind of device, and ValueError for
    shapes that do not fit, and for what cannot be searched, with the point or the system.
    """
    _check(positions, quantities, batch_ptr, batch_idx)
    flags = None if pbc is None else torch.as_tensor(pbc, dtype=torch.bool)
    if cell is not None and not isinstance(cell, torch.Tensor):
        cell = torch.as_tensor(cell, dtype=torch.float64, device=positions.device)
    if cell is not None and cell.device != positions.device:
        raise ValueError(f"cell is on {cell.device}, but positions are on {positions.device}")
    radii = radius.detach() if isinstance(radius, torch.Tensor) else None
    i, j, S = torch.ops.nearfield.pairs(
        positions.detach(),
        0.0 if radii is not None else float(radius),
        radii,
        None if cell is None else cell.detach(),
        flags,
        batch_ptr,
        batch_idx,
        half,
        sorted,
        strict,
        threads,
    )
    found = {"i": i, "j": j, "S": S}
    if "P" in quantities:
        found["P"] = torch.stack((i, j), 1)
    if "D" in quantities or "d" in quantities:
        found["D"] = _displacements(positions, cell, _systems(i, cell, batch_ptr, batch_idx), i, j, S)
    if "d" in quantities:
        found["d"] = _lengths(found["D"])
    return tuple(found[letter] for letter in quantities)


def _check(positions, quantities, batch_ptr, batch_idx):
    if positions.dtype not in _PRECISION:
        raise TypeError(f"positions must be of type float32 or float64, not {positions.dtype}")
    if positions.device.type not in ("cpu", "cuda"):
        raise TypeError(f"positions must be on the CPU or a CUDA device, not on {positions.device}")
    if positions.dim() != 2 or positions.shape[1] != 3:
        raise ValueError(f"positions must be of shape (n, 3), not {tuple(positions.shape)}")
    if len(set(quantities)) != len(quantities) or not set(quantities) <= set("ijPSdD"):
        raise ValueError(
            "quantities are some of the letters i, j, P, S, d and D, each once, "
            f"not {quantities!r}"
        )
    if batch_ptr is not None and batch_idx is not None:
        raise ValueError("give batch_ptr or batch_idx, not both")
    for name, given in (("batch_ptr", batch_ptr), ("batch_idx", batch_idx)):
        if given is not None and (given.dtype != torch.int64 or given.dim() != 1):
            raise TypeError(
                f"{name} must be of type int64 with one axis, not {given.dtype} "
                f"of shape {tuple(given.shape)}"
            )


def _systems(i, cell, batch_ptr, batch_idx):
    """The system of every pair; None where all have the same cell."""
    if cell is None or cell.dim() == 2:
        return None
    if batch_idx is not None:
        return batch_idx.to(i.device).index_select(0, i)
    if batch_ptr is None:
        return torch.zeros_like(i)
    return torch.searchsorted(batch_ptr.to(i.device), i, right=True) - 1


def _displacements(positions, cell, systems, i, j, S):
    D = positions.index_select(0, j) - positions.index_select(0, i)
    if cell is None:
        return D
    cell = cell.to(positions.dtype)
    cells = cell if systems is None else cell.index_select(0, systems)
    # Not by a matrix product: it may round to TF32 on a GPU, which shifts images by a thousandth.
    return D + (S.to(positions.dtype).unsqueeze(2) * cells).sum(1)


def _lengths(D):
    """Lengths, with the derivatives 0 where they are 0: those of the root are infinite there, and
    make NaN of the zeros that they are multiplied by."""
    squares = (D * D).sum(1)
    apart = squares > 0
    return torch.where(apart, torch.where(apart, squares, 1).sqrt(), 0)


@torch.library.custom_op("nearfield::pairs", mutates_args=())
def _pairs(
    positions: torch.Tensor,
    radius: float,
    radii: Optional[torch.Tensor],
    cell: Optional[torch.Tensor],
    pbc: Optional[torch.Tensor],
    batch_ptr: Optional[torch.Tensor],
    batch_idx: Optional[torch.Tensor],
    half: bool,
    sorted: bool,
    strict: bool,
    threads: int,
) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """i, j and S of all pairs; radii, where given, are those of the systems."""
    if batch_idx is not None:
        batch_ptr = _first_points(batch_idx, len(positions), (radii, 1), (cell, 3), (pbc, 2))
    radius = radius if radii is None else radii
    flags = None if pbc is None else pbc.cpu().numpy()
    if positions.is_cuda:
        return _on_cuda(positions, radius, cell, flags, batch_ptr, half, strict)
    to_numpy = lambda given: given.numpy() if isinstance(given, torch.Tensor) else given
    found = nearfield.edges(
        positions.numpy(),
        to_numpy(radius),
        "ijS",
        batch_ptr=to_numpy(batch_ptr),
        cell=to_numpy(cell),
        pbc=flags,
        half=half,
        sorted=sorted,
        strict=strict,
        index="int64",
        threads=threads,
    )
    i, j, S = map(torch.from_numpy, found)
    return i, j, S


@_pairs.register_fake
def _(positions, *_):
    pairs = torch.library.get_ctx().new_dynamic_size()
    i, j = (positions.new_empty(pairs, dtype=torch.int64) for _ in "ij")
    return i, j, positions.new_empty((pairs, 3), dtype=torch.int32)


def _first_points(batch_idx, points, *of_systems):
    """batch_ptr of batch_idx; of_systems: what may have one entry per system, with its axes then."""
    if len(batch_idx) != points:
        raise ValueError(f"batch_idx has {len(batch_idx)} entries for {points} points")
    if points and (batch_idx[1:] < batch_idx[:-1]).any():
        fall = int((batch_idx[1:] < batch_idx[:-1]).nonzero()[0, 0])
        raise ValueError(
            "batch_idx must ascend, so that systems are contiguous: "
            f"entry {fall} is {batch_idx[fall]}, entry {fall + 1} is {batch_idx[fall + 1]}"
        )
    first, systems = (int(batch_idx[0]), int(batch_idx[-1]) + 1) if points else (0, 0)
    if first < 0:
        raise ValueError(f"batch_idx begins with {first}: systems are numbered from 0")
    told = [len(given) for given, axes in of_systems if given is not None and given.dim() == axes]
    if told and told[0] < systems:
        raise ValueError(f"batch_idx ends with {systems - 1}, but there are {told[0]} systems")
    numbers = torch.arange((told[0] if told else systems) + 1, device=batch_idx.device)
    return torch.searchsorted(batch_idx.contiguous(), numbers)


class _OnCuda:
    """A search on one GPU, with a stream of its own, so that one serves callers on every stream."""

    def __init__(self, device, precision, half):
        self.lock = Lock()
        self.stream = torch.cuda.Stream(device)
        self.search = nearfield.DeviceSystemSearch(
            gpu=device.index,
            stream=self.stream.cuda_stream,
            precision=precision,
            index="int64",
            half=half,
        )

    def pairs(self, points, radius, batch_ptr, cell, pbc):
        """Copies of i, j and S, in memory of PyTorch, in order with the current stream."""
        current = torch.cuda.current_stream(points.device)
        with self.lock, torch.cuda.stream(self.stream):
            self.stream.wait_stream(current)
            found = self.search.neighbors(
                points, radius, batch_ptr, cell=cell, pbc=pbc, quantities="ijS"
            )
            # The next search overwrites what it has found.
            i, j, S = (torch.from_dlpack(array).clone() for array in found)
        current.wait_stream(self.stream)
        for copy in (i, j, S):
            copy.record_stream(current)
        return i, j, S


# Searches by device, precision and half; made when they are first needed.
_searches, _searches_lock = {}, Lock()


def _on_cuda(positions, radius, cell, pbc, batch_ptr, half, strict):
    if strict:
        raise ValueError("strict=True is for tensors on the CPU: a GPU searches up to the radius")
    device = positions.device
    key = (device.index, positions.dtype, half)
    with _searches_lock:
        if key not in _searches:
            _searches[key] = _OnCuda(device, _PRECISION[positions.dtype], half)
        search = _searches[key]
    if batch_ptr is None:
        batch_ptr = torch.tensor([0, len(positions)])
    there = lambda given, dtype: given.to(device, dtype).contiguous()
    if isinstance(radius, torch.Tensor):
        radius = there(radius, torch.float64)
    return search.pairs(
        positions.contiguous(),
        radius,
        there(batch_ptr, torch.int64),
        None if cell is None else there(cell, torch.float64),
        pbc,
    )
