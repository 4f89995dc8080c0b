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

from typing import Any, Optional, Sequence, Tuple, Union

import torch

import nearfield

__all__ = ["edges"]

Pbc = Union[bool, Sequence[bool], torch.Tensor]


def edges(
    positions: torch.Tensor,
    radius: Union[float, torch.Tensor],
    quantities: str = "ijSdD",
    *,
    cell: Optional[Any] = None,
    pbc: Optional[Pbc] = None,
    batch_ptr: Optional[torch.Tensor] = None,
    batch_idx: Optional[torch.Tensor] = None,
    other: Optional[torch.Tensor] = None,
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
) -> Tuple[torch.Tensor, ...]:
    """All pairs within a radius: a tuple with a tensor for every letter of quantities, in the order
    of the letters, on the device of the positions.

    positions: of shape (n, 3), float32 (searched in single precision) or float64 (in double), on
    the CPU or on a CUDA device. radius: in the unit of the positions; a number, or with batches a
    tensor of shape (systems,). cell: lattice vectors as rows, of shape (3, 3), or with batches
    (systems, 3, 3); a tensor must be on the device of the positions. pbc: whether the three axes
    repeat: True, False, or of shape (3,) or (systems, 3); needed where there is a cell. batch_ptr:
    the first point of every system and the number of points behind the last, of shape
    (systems + 1,). batch_idx: the system of every point instead, of shape (n,), ascending. other:
    positions of another set, whose points j are then. All other keywords are those of
    ``nearfield.edges``.

    quantities: "i", the point of every pair, and "j", its neighbour, int64 of shape (pairs,); "P",
    both, of shape (pairs, 2); "S", by how many cell vectors the neighbour is moved, int32 of shape
    (pairs, 3); "D", the displacement ``positions[j] - positions[i] + S @ cell``, of shape
    (pairs, 3), and "d", its length, both of the type of the positions. ``torch.stack((i, j))`` is
    the edge_index of PyTorch Geometric.

    "d" and "D" have derivatives of every order by the positions, those of the other set, and the
    cell. The derivative of "d" is 0 where two points coincide. Which pairs there are is decided by
    the library, bit for bit as in ``nearfield.edges``; because PyTorch computes "d" itself, a pair
    at the very edge may have a "d" that is above the radius by rounding.

    Which pairs there are depends on the data: a compiled or exported program has a number of pairs
    that is a symbol of its own. On a GPU the call waits for that number.

    Raises TypeError for positions of another type or on another kind of device, and ValueError for
    shapes that do not fit, and for what cannot be searched, with the point or the system.
    """
    _check(positions, quantities)
    # Numbers of Python in double precision, because the library decides with all digits.
    cell = _tensor(cell, torch.float64, positions.device)
    if cell is not None and cell.device != positions.device:
        raise ValueError(f"cell is on {cell.device}, but positions are on {positions.device}")
    of_systems = radius if isinstance(radius, torch.Tensor) else None
    numbers = (of_systems, cell, _tensor(pbc), batch_ptr, batch_idx, other)
    filters = (_tensor(radii, positions.dtype), _tensor(types), _tensor(cutoffs, torch.float64))
    i, j, S = torch.ops.nearfield.pairs(
        positions.detach(),
        0.0 if of_systems is not None else float(radius),
        *(None if of is None else of.detach() for of in (*numbers, *filters)),
        _tensor(exclusions),
        _tensor(molecules),
        _tensor(targets),
        rule,
        k,
        half,
        sorted,
        strict,
        self_pairs,
        threads,
    )
    found = {"i": i, "j": j, "S": S}
    if "P" in quantities:
        found["P"] = torch.stack((i, j), 1)
    if "D" in quantities or "d" in quantities:
        found["D"] = _displacements(positions, other, cell, batch_ptr, batch_idx, i, j, S)
    if "d" in quantities:
        found["d"] = _lengths(found["D"])
    return tuple(found[letter] for letter in quantities)


def _check(positions, quantities):
    if positions.dtype not in (torch.float32, torch.float64):
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


def _tensor(given, dtype=None, device=None):
    """Tensors as they are; None for None."""
    if given is None or isinstance(given, torch.Tensor):
        return given
    return torch.as_tensor(given, dtype=dtype, device=device)


def _displacements(positions, other, cell, batch_ptr, batch_idx, i, j, S):
    sources = positions if other is None else other
    D = sources.index_select(0, j) - positions.index_select(0, i)
    if cell is None:
        return D
    cells = cell.to(positions.dtype)
    if cell.dim() == 3 and batch_idx is not None:
        cells = cells.index_select(0, batch_idx.to(i.device).index_select(0, i))
    elif cell.dim() == 3:
        cells = cells.index_select(0, torch.searchsorted(batch_ptr.to(i), i, right=True) - 1)
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
    radius_of_systems: Optional[torch.Tensor],
    cell: Optional[torch.Tensor],
    pbc: Optional[torch.Tensor],
    batch_ptr: Optional[torch.Tensor],
    batch_idx: Optional[torch.Tensor],
    other: Optional[torch.Tensor],
    radii: Optional[torch.Tensor],
    types: Optional[torch.Tensor],
    cutoffs: Optional[torch.Tensor],
    exclusions: Optional[torch.Tensor],
    molecules: Optional[torch.Tensor],
    targets: Optional[torch.Tensor],
    rule: Optional[str],
    k: Optional[int],
    half: bool,
    sorted: bool,
    strict: bool,
    self_pairs: bool,
    threads: int,
) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """i, j and S of all pairs."""
    if radius_of_systems is not None:
        radius = radius_of_systems
    i, j, S = nearfield.edges(
        positions, radius, "ijS",
        cell=cell, pbc=pbc, batch_ptr=batch_ptr, batch_idx=batch_idx, other=other, radii=radii,
        rule=rule, types=types, cutoffs=cutoffs, exclusions=exclusions, molecules=molecules,
        targets=targets, k=k, half=half, sorted=sorted, strict=strict, self_pairs=self_pairs,
        threads=threads,
    )  # fmt: skip
    return i, j, S


@_pairs.register_fake
def _(positions, *_):
    pairs = torch.library.get_ctx().new_dynamic_size()
    i, j = (positions.new_empty(pairs, dtype=torch.int64) for _ in "ij")
    return i, j, positions.new_empty((pairs, 3), dtype=torch.int32)
