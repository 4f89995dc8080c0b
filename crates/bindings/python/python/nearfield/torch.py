"""Neighbour pairs for PyTorch, differentiable, on the CPU and on NVIDIA GPUs.

>>> import torch, nearfield.torch
>>> positions = torch.tensor([[0.0, 0, 0], [0.4, 0, 0]], requires_grad=True)
>>> i, j, d = nearfield.torch.edges(positions, 0.5, "ijd")
>>> torch.autograd.grad(d.sum(), positions)[0]
tensor([[-2.,  0.,  0.],
        [ 2.,  0.,  0.]])

The search is one operator, ``nearfield::pairs`` or ``nearfield::padded``, which returns integers:
points, neighbours and images. Displacements and distances are gathered from them by PyTorch itself.
They can therefore be differentiated by positions and cells as often as needed, and
``torch.compile`` and ``torch.export`` see one opaque operator. The number of pairs depends on the
data; ``padded`` has fixed shapes.
"""

from typing import Any, Optional, Sequence, Tuple, Union

import torch

import nearfield
from nearfield._edges import Padded, whole

__all__ = ["Padded", "edges", "padded"]

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
    cell, given = _arguments(
        positions, radius, quantities, "ijPSdD",
        cell=cell, pbc=pbc, batch_ptr=batch_ptr, batch_idx=batch_idx, other=other, radii=radii,
        types=types, cutoffs=cutoffs, exclusions=exclusions, molecules=molecules, targets=targets,
        rule=rule, k=k, half=half, sorted=sorted, strict=strict, self_pairs=self_pairs,
        threads=threads,
    )  # fmt: skip
    i, j, S = torch.ops.nearfield.pairs(*given)
    found = {"i": i, "j": j, "S": S}
    if "P" in quantities:
        found["P"] = torch.stack((i, j), 1)
    if "D" in quantities or "d" in quantities:
        sources = positions if other is None else other
        found["D"] = _displacements(positions, sources, cell, batch_ptr, batch_idx, i, j, S)
    if "d" in quantities:
        found["d"] = _lengths(found["D"])
    return tuple(found[letter] for letter in quantities)


def padded(
    positions: torch.Tensor,
    radius: Union[float, torch.Tensor],
    max_neighbors: int,
    quantities: str = "",
    *,
    fill: Optional[int] = None,
    cell: Optional[Any] = None,
    batch_ptr: Optional[torch.Tensor] = None,
    batch_idx: Optional[torch.Tensor] = None,
    other: Optional[torch.Tensor] = None,
    **options: Any,
) -> Padded:
    """The neighbours of every point in a matrix of a fixed shape; returns a named tuple Padded.

    positions, radius, cell, batch_ptr, batch_idx, other, options: as for edges(). max_neighbors:
    the number of columns. quantities: which of "S", "d" and "D" are wanted too; derivatives are
    those of edges(), and 0 in the padding. fill: the index in places without a neighbour, the
    number of points that neighbours are among unless given. Neighbours of a row ascend by (j, S),
    and with k= come nearest first. A point that has more than max_neighbors keeps the first, and
    ``largest`` says how many there are: look at it, because what is computed from the rest lacks
    pairs.

    >>> positions = torch.tensor([[0.0, 0, 0], [0.4, 0, 0]])
    >>> near = padded(positions, 0.5, 4, "d")
    >>> near.indices[:, 0].tolist(), int(near.largest)
    ([1, 0], 1)

    Errors are those of edges().
    """
    options.setdefault("sorted", options.get("k") is None)
    cell, given = _arguments(
        positions, radius, quantities, "SdD",
        cell=cell, batch_ptr=batch_ptr, batch_idx=batch_idx, other=other, **options,
    )  # fmt: skip
    indices, counts, largest, S = torch.ops.nearfield.padded(max_neighbors, *given)
    there = torch.arange(max_neighbors, device=indices.device) < counts[:, None]
    D = d = None
    if "d" in quantities or "D" in quantities:
        # The padding reads a row of zeros behind the others.
        sources = positions if other is None else other
        sources = torch.cat((sources, sources.new_zeros(1, 3)))
        i = torch.arange(positions.shape[0], device=indices.device)[:, None].expand_as(indices)
        flat = i.reshape(-1), indices.reshape(-1), S.reshape(-1, 3)
        D = _displacements(positions, sources, cell, batch_ptr, batch_idx, *flat)
        D = torch.where(there[:, :, None], D.reshape(S.shape), 0)
    if "d" in quantities:
        d = _lengths(D)
    if fill is not None:
        indices = torch.where(there, indices, whole("fill", fill))
    wanted = lambda letter, of: of if letter in quantities else None
    return Padded(indices, counts, largest, wanted("S", S), d, wanted("D", D))


# What both operators take, with the letters of the schemas of PyTorch.
_TENSORS = (
    "radius_of_systems", "cell", "pbc", "batch_ptr", "batch_idx", "other", "radii", "types",
    "cutoffs", "exclusions", "molecules", "targets",
)  # fmt: skip
_OTHERS = {
    "rule": ("str?", None),
    "k": ("int?", None),
    "half": ("bool", False),
    "sorted": ("bool", False),
    "strict": ("bool", False),
    "self_pairs": ("bool", False),
    "threads": ("int", 0),
}
_SCHEMA = ", ".join(
    ["Tensor positions", "float radius"]
    + [f"Tensor? {name}" for name in _TENSORS]
    + [f"{kind} {name}" for name, (kind, _) in _OTHERS.items()]
)


def _arguments(positions, radius, quantities, letters, **options):
    """The cell as a tensor, and what an operator takes, in its order."""
    _check(positions, quantities, letters)
    unknown = options.keys() - {*_TENSORS, *_OTHERS}
    if unknown:
        raise TypeError(f"unexpected keyword {sorted(unknown)[0]!r}")
    # Numbers of Python in double precision, because the library decides with all digits.
    types = {"cell": torch.float64, "cutoffs": torch.float64, "radii": positions.dtype}
    if isinstance(radius, torch.Tensor):
        options["radius_of_systems"], radius = radius, 0.0
    tensors = {}
    for name in _TENSORS:
        of = options.get(name)
        if of is not None and not isinstance(of, torch.Tensor):
            of_systems = name in ("cell", "batch_ptr", "batch_idx")
            device = positions.device if of_systems else None
            of = torch.as_tensor(of, dtype=types.get(name), device=device)
        tensors[name] = of
    cell = tensors["cell"]
    if cell is not None and cell.dim() == 1 and cell.shape[0] == 3:
        # Three lengths.
        cell = tensors["cell"] = torch.diag(cell)
    if cell is not None and (cell.dim() not in (2, 3) or cell.shape[-2:] != (3, 3)):
        raise ValueError(
            f"cell must be of shape (3, 3) or (systems, 3, 3), or three lengths, not "
            f"{tuple(cell.shape)}"
        )
    if cell is not None and cell.device != positions.device:
        raise ValueError(f"cell is on {cell.device}, but positions are on {positions.device}")
    detached = [None if of is None else of.detach() for of in tensors.values()]
    others = [options.get(name, default) for name, (_, default) in _OTHERS.items()]
    return cell, (positions.detach(), float(radius), *detached, *others)


def _check(positions, quantities, letters):
    if positions.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"positions must be of type float32 or float64, not {positions.dtype}")
    if positions.device.type not in ("cpu", "cuda"):
        raise TypeError(f"positions must be on the CPU or a CUDA device, not on {positions.device}")
    if positions.dim() != 2 or positions.shape[1] != 3:
        raise ValueError(f"positions must be of shape (n, 3), not {tuple(positions.shape)}")
    if len(set(quantities)) != len(quantities) or not set(quantities) <= set(letters):
        raise ValueError(
            f"quantities are some of the letters {', '.join(letters)}, each once, "
            f"not {quantities!r}"
        )


def _displacements(positions, sources, cell, batch_ptr, batch_idx, i, j, S):
    D = sources.index_select(0, j) - positions.index_select(0, i)
    if cell is None:
        return D
    cells = cell.to(positions.dtype)
    # An open axis may have any vector, and 0 * NaN is NaN.
    cells = torch.where(torch.isfinite(cells), cells, 0)
    if cell.dim() == 3:
        if batch_idx is not None:
            systems = torch.as_tensor(batch_idx, device=i.device).index_select(0, i)
        else:
            ends = torch.as_tensor(batch_ptr, dtype=i.dtype, device=i.device)
            systems = torch.searchsorted(ends, i, right=True) - 1
        # One cell may be that of all systems. No branch: an exported program takes any number.
        cells = cells.index_select(0, systems.clamp(max=cells.shape[0] - 1))
    # Not by a matrix product: it may round to TF32 on a GPU, which shifts images by a thousandth.
    # Sums over an axis of three are slower than adding columns, here and in lengths.
    x, y, z = S.to(positions.dtype).unsqueeze(2).unbind(1)
    a, b, c = cells.unbind(-2)
    return D + (x * a + y * b + z * c)


def _lengths(D):
    """Lengths, with the derivatives 0 where they are 0: those of the root are infinite there, and
    make NaN of the zeros that they are multiplied by."""
    x, y, z = D.unbind(-1)
    squares = x * x + y * y + z * z
    apart = squares > 0
    return torch.where(apart, torch.where(apart, squares, 1).sqrt(), 0)


def _named(positions, radius, *given):
    """What nearfield.edges() takes, of the arguments of an operator."""
    options = dict(zip((*_TENSORS, *_OTHERS), given))
    of_systems = options.pop("radius_of_systems")
    return positions, radius if of_systems is None else of_systems, options


@torch.library.custom_op(
    "nearfield::pairs", mutates_args=(), schema=f"({_SCHEMA}) -> (Tensor, Tensor, Tensor)"
)
def _pairs(*given):
    """i, j and S of all pairs."""
    positions, radius, options = _named(*given)
    return nearfield.edges(positions, radius, "ijS", **options)


@_pairs.register_fake
def _(positions, *_):
    pairs = torch.library.get_ctx().new_dynamic_size()
    i, j = (positions.new_empty(pairs, dtype=torch.int64) for _ in "ij")
    return i, j, positions.new_empty((pairs, 3), dtype=torch.int32)


@torch.library.custom_op(
    "nearfield::padded",
    mutates_args=(),
    schema=f"(int max_neighbors, {_SCHEMA}) -> (Tensor, Tensor, Tensor, Tensor)",
)
def _padded(max_neighbors, *given):
    """indices, counts, largest and images."""
    positions, radius, options = _named(*given)
    found = nearfield.padded(positions, radius, max_neighbors, "S", **options)
    return found.indices, found.counts, torch.tensor(found.largest), found.images


@_padded.register_fake
def _(max_neighbors, positions, *_):
    n = positions.shape[0]
    indices = positions.new_empty((n, max_neighbors), dtype=torch.int64)
    counts = positions.new_empty(n, dtype=torch.int64)
    largest = torch.empty((), dtype=torch.int64, device="cpu")
    return indices, counts, largest, positions.new_empty((n, max_neighbors, 3), dtype=torch.int32)
