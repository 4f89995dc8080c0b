"""The radius graphs of ``torch_cluster``, by Nearfield.

>>> from nearfield.compat.torch_cluster import radius_graph
>>> edge_index = radius_graph(x, r=1.5, batch=batch, max_num_neighbors=100)

``radius`` and ``radius_graph`` have the signatures, results, types and errors of torch_cluster 1.6,
also under ``torch.jit.script``; they need PyTorch only. Points have one, two or three coordinates.
``cell`` and ``pbc`` are an extension: the lattice vectors as rows, of shape (3, 3) or (batch_size,
3, 3), and where they repeat, of shape (3,) or (batch_size, 3); a pair then comes once for each
image within the radius. What differs: of more than ``max_num_neighbors`` neighbours those with the
smallest index are kept, where torch_cluster picks any; ``num_workers`` does nothing; integers are
searched in double, float16 and bfloat16 in single precision; pairs exactly at the radius (which do
not belong to it) may be decided differently. Tensors are on the CPU or on a CUDA device, where they
are searched and where the graph stays. There an example of a batch has at most 32,768 points.
"""

from typing import Optional

import torch

from ._common import search

__all__ = ["radius", "radius_graph"]

_MAX_COORDINATES = 3

# TorchScript knows operators, not NumPy.
_LIBRARY = torch.library.Library("nearfield_compat", "DEF")
_LIBRARY.define(
    "radius(Tensor x, Tensor y, Tensor? ptr_x, Tensor? ptr_y, float r, int max_num_neighbors, "
    "bool ignore_same_index, bool same, Tensor? cell, Tensor? pbc) -> Tensor"
)


def radius(
    x: torch.Tensor,
    y: torch.Tensor,
    r: float,
    batch_x: Optional[torch.Tensor] = None,
    batch_y: Optional[torch.Tensor] = None,
    max_num_neighbors: int = 32,
    num_workers: int = 1,
    batch_size: Optional[int] = None,
    ignore_same_index: bool = False,
    cell: Optional[torch.Tensor] = None,
    pbc: Optional[torch.Tensor] = None,
) -> torch.Tensor:
    """For each row of y the rows of x nearer than r, as columns (row of y, row of x): see
    ``torch_cluster.radius``."""
    if x.numel() == 0 or y.numel() == 0:
        return torch.empty(2, 0, dtype=torch.long, device=x.device)
    same = x is y
    x = x.view(-1, 1) if x.dim() == 1 else x
    y = y.view(-1, 1) if y.dim() == 1 else y
    if batch_size is None:
        batch_size = 1
        if batch_x is not None:
            assert x.size(0) == batch_x.numel()
            batch_size = int(batch_x.max()) + 1
        if batch_y is not None:
            assert y.size(0) == batch_y.numel()
            batch_size = max(batch_size, int(batch_y.max()) + 1)
    assert batch_size > 0
    ptr_x: Optional[torch.Tensor] = None
    ptr_y: Optional[torch.Tensor] = None
    if batch_size > 1:
        assert batch_x is not None
        assert batch_y is not None
        same = same and batch_x is batch_y
        arange = torch.arange(batch_size + 1, device=x.device)
        ptr_x = torch.bucketize(arange, batch_x)
        ptr_y = torch.bucketize(arange, batch_y)
    return torch.ops.nearfield_compat.radius(
        x, y, ptr_x, ptr_y, r, max_num_neighbors, ignore_same_index, same, cell, pbc
    )


def radius_graph(
    x: torch.Tensor,
    r: float,
    batch: Optional[torch.Tensor] = None,
    loop: bool = False,
    max_num_neighbors: int = 32,
    flow: str = "source_to_target",
    num_workers: int = 1,
    batch_size: Optional[int] = None,
    cell: Optional[torch.Tensor] = None,
    pbc: Optional[torch.Tensor] = None,
) -> torch.Tensor:
    """The edges between points nearer than r: see ``torch_cluster.radius_graph``."""
    assert flow in ["source_to_target", "target_to_source"]
    edge_index = radius(
        x, x, r, batch, batch, max_num_neighbors, num_workers, batch_size, not loop, cell, pbc
    )
    if flow == "source_to_target":
        row, col = edge_index[1], edge_index[0]
    else:
        row, col = edge_index[0], edge_index[1]
    return torch.stack([row, col], dim=0)


def _radius(x, y, ptr_x, ptr_y, r, most, ignore_same_index, same, cell, pbc):
    if x.device != y.device:
        raise ValueError(f"x is on {x.device} and y on {y.device}: move one of them")
    x, y = _points(x, "x"), _points(y, "y")
    where = {}
    if cell is not None:
        if pbc is None:
            raise ValueError("a cell does not say where it repeats: give pbc= too")
        where = dict(cell=cell.double().cpu().numpy(), pbc=pbc.bool().cpu().numpy())
    elif pbc is not None and pbc.any():
        raise ValueError("pbc says that the domain repeats: give its cell= too")
    if not r > 0:
        i = j = torch.empty(0, dtype=torch.long, device=x.device)
    elif same:
        i, j = _within(x, ptr_x, r, ignore_same_index, where)
    else:
        i, j = _between(x, y, ptr_x, ptr_y, r, where)
        if ignore_same_index:
            i, j = i[i != j], j[i != j]
    number = torch.arange(len(i), device=i.device) - torch.searchsorted(i, i)
    return torch.stack([i, j])[:, number < most]


_LIBRARY.impl("radius", _radius, "CompositeExplicitAutograd")


def _within(x, ptr, r, ignore_same_index, where):
    """Pairs of points with each other."""
    how = dict(batch_ptr=ptr, strict=True, sorted=True, self_pairs=not ignore_same_index)
    i, j = search(x, r, "ij", **how, **where)
    # Images of a point have its index too.
    return (i[i != j], j[i != j]) if ignore_same_index else (i, j)


def _between(x, y, ptr_x, ptr_y, r, where):
    """Pairs of y and x."""
    if ptr_x is None:
        return search(y, r, "ij", other=x, strict=True, sorted=True, **where)
    # The points of both in one system for each example; pairs of y with x are kept.
    numbers = torch.arange(len(ptr_x) - 1, device=x.device)
    of_x = torch.repeat_interleave(numbers, ptr_x.diff())
    of_y = torch.repeat_interleave(numbers, ptr_y.diff())
    x, y = x[ptr_x[0] : ptr_x[-1]], y[ptr_y[0] : ptr_y[-1]]
    order = torch.argsort(torch.cat([of_y, of_x]), stable=True)
    ptr = ptr_x - ptr_x[0] + ptr_y - ptr_y[0]
    i, j = search(torch.cat([y, x])[order], r, "ij", batch_ptr=ptr, strict=True, **where)
    i, j = order[i], order[j]
    mixed = (i < len(y)) & (j >= len(y))
    i, j = i[mixed], j[mixed] - len(y)
    ascending = torch.argsort(i * len(x) + j)
    return i[ascending] + ptr_y[0], j[ascending] + ptr_x[0]


def _points(tensor, what):
    """Points of float32 or float64 with three coordinates."""
    if tensor.device.type not in ("cpu", "cuda"):
        raise ValueError(f"{what} must be on the CPU or a CUDA device, not on {tensor.device}")
    if tensor.dim() != 2 or tensor.size(1) > _MAX_COORDINATES:
        raise ValueError(
            f"{what} must have 1 to {_MAX_COORDINATES} coordinates for each point, not the shape "
            f"{tuple(tensor.shape)}"
        )
    tensor = tensor.detach()
    if not tensor.is_floating_point():
        tensor = tensor.double()
    elif tensor.dtype not in (torch.float32, torch.float64):
        tensor = tensor.float()
    return torch.nn.functional.pad(tensor, (0, 3 - tensor.size(1)))
