"""All neighbours within a radius, and pair interactions over them.

>>> import numpy as np, nearfield
>>> points = np.array([[0, 0, 0], [0.4, 0, 0], [0, 0.9, 0]], dtype=np.float32)
>>> nearfield.neighbors(points, 0.5)[0]
array([1], dtype=uint32)

The library is unit-free: the radius and the box are in the unit of the coordinates. A point is a
neighbour of another when their distance is at most the radius (``strict=True``: less, as in ASE and
matscipy); only a point itself is left out. Half lists hold the pair of i < j in the list of i
alone. Coordinates of type float32 are searched in single, of type float64, whole numbers and lists
in double precision.

``edges`` returns pairs with displacements, distances and images as arrays of the library and the
device of the points (NumPy, CuPy, PyTorch, JAX), also those of many systems at once; ``padded``
returns them in arrays of a fixed shape, and ``EdgeList`` keeps lists with a skin over many steps.

``VerletLists`` keeps lists with a skin of any sets of points, with their pairs within the radius.

Point sets that live on a GPU are searched by ``DeviceEngine``.
"""

from ._nearfield import (
    DeviceArray,
    DeviceNeighbors,
    DevicePairs,
    Engine,
    ListChunks,
    Neighbors,
    DeviceEngine,
    DeviceListChunks,
    DeviceSystemSearch,
    DeviceVerletLists,
    SystemSearch,
    VerletLists,
    __version__,
    edges,
    neighbors,
)
from ._edges import EdgeList, Padded, padded
from ._gpu import free_memory

__all__ = [
    "DeviceArray",
    "DeviceNeighbors",
    "DevicePairs",
    "Padded",
    "EdgeList",
    "Engine",
    "ListChunks",
    "Neighbors",
    "DeviceEngine",
    "DeviceListChunks",
    "DeviceSystemSearch",
    "DeviceVerletLists",
    "SystemSearch",
    "VerletLists",
    "edges",
    "free_memory",
    "neighbors",
    "padded",
    "__version__",
]
