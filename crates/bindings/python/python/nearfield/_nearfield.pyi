from typing import Any, Iterator, Literal, Optional, Protocol, Sequence, Tuple, Union, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import TypeVar

__version__: str

Box = Union[Sequence[float], ArrayLike]
# True, False, or one of them for every axis.
Pbc = Union[bool, Sequence[bool], NDArray[np.bool_]]
# Arrays of float32, float64 or whole numbers, nested lists, tensors on the host.
Points = ArrayLike
# Whose radius decides.
Rule = Literal["uniform", "gather", "scatter", "symmetric"]

# Letters of i, j, P, S, d and D, or letters or names in a sequence.
Quantities = Union[str, Sequence[str]]
Index = Literal["int64", "int32", "uint32"]
# One for every letter.
PairArrays = Tuple[NDArray[Any], ...]

class SpeaksDLPack(Protocol):
    """An array on a GPU that is handed over by DLPack."""

    def __dlpack_device__(self) -> Tuple[int, int]: ...
    def __dlpack__(self, *, stream: Any = ...) -> Any: ...

class SpeaksCuda(Protocol):
    """An array on a GPU that describes itself by the CUDA array interface."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

OnDevice = Union[SpeaksDLPack, SpeaksCuda]
# The array given for results; a new one where there is none.
Out = TypeVar("Out", bound=OnDevice, default="DeviceArray")

class Neighbors:
    """Neighbour lists: the neighbours of point i are the ``count[i]`` entries of ``indices`` from
    ``start[i]`` on, by their index in the set that was searched, once per periodic image.
    """

    def __new__(cls, offsets: ArrayLike, indices: ArrayLike) -> "Neighbors": ...
    @property
    def start(self) -> NDArray[np.uint64]: ...
    @property
    def count(self) -> NDArray[np.uint32]: ...
    @property
    def indices(self) -> NDArray[np.uint32]: ...
    @property
    def pairs(self) -> int: ...
    def csr(self) -> Tuple[NDArray[np.int64], NDArray[np.int64]]: ...
    def edge_index(self) -> NDArray[np.int64]: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, points: int) -> NDArray[np.uint32]: ...
    @overload
    def __getitem__(
        self, points: Union[slice, Sequence[int], Sequence[bool], NDArray[Any]]
    ) -> "Neighbors": ...
    def __iter__(self) -> Iterator[NDArray[np.uint32]]: ...
    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> NDArray[np.object_]: ...

class Engine:
    """Point sets that search each other within a radius."""

    def __new__(
        cls,
        radius: float,
        *,
        box: Optional[Box] = None,
        cell: Optional[Box] = None,
        pbc: Optional[Pbc] = None,
        device: str = "auto",
        precision: Literal["f32", "f64"] = "f32",
        half: bool = False,
        sorted: bool = False,
        strict: bool = False,
        rule: Rule = "uniform",
        cutoffs: Optional[ArrayLike] = None,
        k: Optional[int] = None,
        threads: int = 0,
        memory_limit: Optional[int] = None,
    ) -> "Engine": ...
    @property
    def radius(self) -> float: ...
    @radius.setter
    def radius(self, radius: float) -> None: ...
    def add_points(self, points: Points) -> int: ...
    def update(self, set: int, points: Points) -> None: ...
    def set_radii(self, set: int, radii: ArrayLike) -> None: ...
    def set_types(self, set: int, types: ArrayLike) -> None: ...
    def set_exclusions(self, set: int, pairs: ArrayLike) -> None: ...
    def set_molecules(self, set: int, molecules: ArrayLike) -> None: ...
    def clear_exclusions(self, set: int) -> None: ...
    def set_targets(self, set: int, targets: Optional[ArrayLike]) -> None: ...
    def remove_set(self, set: int) -> None: ...
    def retain_points(self, set: int, keep: NDArray[np.bool_]) -> int: ...
    def points(self, set: int) -> int: ...
    def __len__(self) -> int: ...
    def set_active(self, targets: int, sources: int, active: bool) -> None: ...
    def set_all_active(self, active: bool) -> None: ...
    def is_active(self, targets: int, sources: int) -> bool: ...
    def find_neighbors(self) -> None: ...
    def neighbors(self, targets: int = 0, sources: Optional[int] = None) -> Neighbors: ...
    def query(
        self, positions: Points, sources: int = 0, *, radii: Optional[ArrayLike] = None
    ) -> Neighbors: ...
    def pair_geometry(
        self,
        quantities: Optional[Quantities] = None,
        targets: int = 0,
        sources: Optional[int] = None,
        *,
        index: Index = "int64",
    ) -> PairArrays: ...
    def neighbors_of(
        self, points: ArrayLike, targets: int = 0, sources: Optional[int] = None
    ) -> Neighbors: ...
    def chunks(
        self, targets: int = 0, sources: Optional[int] = None, *, memory: Optional[int] = None
    ) -> ListChunks: ...
    def count_neighbors(
        self,
        targets: int = 0,
        sources: Optional[int] = None,
        *,
        out: Optional[NDArray[np.uint32]] = None,
    ) -> NDArray[np.uint32]: ...
    def sph_density(
        self,
        mass: ArrayLike,
        targets: int = 0,
        sources: Optional[int] = None,
        *,
        support: Optional[float] = None,
        dimensions: Optional[int] = None,
        out: Optional[NDArray[np.float32]] = None,
    ) -> NDArray[np.float32]: ...
    def z_sort(self, set: int = 0) -> NDArray[np.int64]: ...
    def warm_up(self) -> None: ...
    def report(self) -> dict[str, Any]: ...

class ListChunks:
    """Lists of a pair of sets in chunks: what Engine.chunks() returns, an iterator."""

    @property
    def pairs(self) -> int: ...
    def __iter__(self) -> "ListChunks": ...
    def __next__(self) -> Tuple[NDArray[np.uint32], Neighbors]: ...

class VerletLists:
    """Neighbour lists with a skin: found within radius + skin, kept while points move little, and
    found anew when a pair within the radius could be missing. For arrays of the host.
    """

    def __new__(
        cls,
        radius: float,
        skin: float,
        *,
        box: Optional[Box] = None,
        cell: Optional[Box] = None,
        pbc: Optional[Pbc] = None,
        precision: Literal["f32", "f64"] = "f32",
        half: bool = False,
        sorted: bool = False,
        strict: bool = False,
        threads: int = 0,
        memory_limit: Optional[int] = None,
        device: str = "cpu",
    ) -> "VerletLists": ...
    @property
    def radius(self) -> float: ...
    @property
    def list_radius(self) -> float: ...
    @property
    def builds(self) -> int: ...
    def add_points(self, points: Points) -> int: ...
    def update(self, set: int, points: Points) -> bool: ...
    def refresh(self) -> bool: ...
    def displacement(self, set: int = 0) -> float: ...
    def neighbors(self, targets: int = 0, sources: Optional[int] = None) -> Neighbors: ...
    def pair_geometry(
        self,
        quantities: Optional[Quantities] = None,
        targets: int = 0,
        sources: Optional[int] = None,
        *,
        index: Index = "int64",
    ) -> PairArrays: ...
    def candidates(self, targets: int = 0, sources: Optional[int] = None) -> Neighbors: ...
    def set_active(self, targets: int, sources: int, active: bool) -> None: ...
    def remove_set(self, set: int) -> None: ...
    def points(self, set: int) -> int: ...
    def __len__(self) -> int: ...
    def report(self) -> dict[str, Any]: ...

class SystemSearch:
    """Searches many systems at once, again and again: molecules or crystals, each with a cell of its
    own and without pairs between them.
    """

    def __new__(
        cls, *, device: str = "auto", half: bool = False, sorted: bool = False, threads: int = 0
    ) -> "SystemSearch": ...
    def neighbors(
        self,
        points: Points,
        radius: Union[float, ArrayLike],
        batch_ptr: ArrayLike,
        *,
        cell: Optional[ArrayLike] = None,
        pbc: Optional[Union[Pbc, ArrayLike]] = None,
        quantities: Optional[Quantities] = None,
        strict: bool = False,
        index: Index = "int64",
    ) -> PairArrays: ...
    def report(self) -> dict[str, Any]: ...

class DeviceArray:
    """An array on a GPU, for everything that speaks DLPack or ``__cuda_array_interface__``:
    ``cupy.from_dlpack(array)``, ``torch.from_dlpack(array)``, ``cupy.asarray(array)``.
    """

    @property
    def shape(self) -> Tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    def __len__(self) -> int: ...
    def copy_to_host(self) -> NDArray[Any]: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __dlpack_device__(self) -> Tuple[int, int]: ...
    def __dlpack__(
        self,
        *,
        stream: Optional[int] = None,
        max_version: Optional[Tuple[int, int]] = None,
        dl_device: Optional[Tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> Any: ...

class DeviceNeighbors:
    """Neighbour lists on a GPU: the neighbours of point i are the ``count[i]`` entries of
    ``indices`` from ``start[i]`` on, in no particular order unless the engine is ``sorted``, once
    per periodic image.
    """

    @property
    def start(self) -> DeviceArray: ...
    @property
    def count(self) -> DeviceArray: ...
    @property
    def indices(self) -> DeviceArray: ...
    def __len__(self) -> int: ...

class DevicePairs:
    """Neighbour lists on a GPU as DeviceNeighbors has them, and numbers of every pair: entry k of
    every array belongs to entry k of ``indices``. Arrays that were not asked for are None; in an
    engine of precision "f64" what follows from displacements is float64.
    """

    @property
    def start(self) -> DeviceArray: ...
    @property
    def count(self) -> DeviceArray: ...
    @property
    def indices(self) -> DeviceArray: ...
    @property
    def targets(self) -> Optional[DeviceArray]: ...
    @property
    def images(self) -> Optional[DeviceArray]: ...
    @property
    def shifts(self) -> Optional[DeviceArray]: ...
    @property
    def displacements(self) -> Optional[DeviceArray]: ...
    @property
    def squares(self) -> Optional[DeviceArray]: ...
    @property
    def distances(self) -> Optional[DeviceArray]: ...
    def __len__(self) -> int: ...

class DeviceEngine:
    """Point sets that live on a GPU and search each other there; arrays of the GPU in and out."""

    def __new__(
        cls,
        radius: float,
        *,
        box: Optional[Box] = None,
        cell: Optional[Box] = None,
        pbc: Optional[Pbc] = None,
        gpu: int = 0,
        stream: Optional[int] = None,
        half: bool = False,
        sorted: bool = False,
        strict: bool = False,
        rule: Rule = "uniform",
        cutoffs: Optional[ArrayLike] = None,
        k: Optional[int] = None,
        subdivision: int = 0,
        within: Optional[Tuple[Sequence[float], Sequence[float]]] = None,
        precision: Literal["f32", "f64"] = "f32",
        memory_limit: Optional[int] = None,
    ) -> "DeviceEngine": ...
    @property
    def radius(self) -> float: ...
    @property
    def gpu(self) -> int: ...
    @property
    def stream(self) -> int: ...
    def add_points(self, points: OnDevice) -> int: ...
    def update(self, set: int, points: OnDevice) -> None: ...
    def set_radii(self, set: int, radii: Union[ArrayLike, OnDevice]) -> None: ...
    def set_types(self, set: int, types: Union[ArrayLike, OnDevice]) -> None: ...
    def set_exclusions(self, set: int, pairs: ArrayLike) -> None: ...
    def set_molecules(self, set: int, molecules: Union[ArrayLike, OnDevice]) -> None: ...
    def clear_exclusions(self, set: int) -> None: ...
    def set_targets(self, set: int, targets: Union[None, ArrayLike, OnDevice]) -> None: ...
    def remove_set(self, set: int) -> None: ...
    def finish(self) -> bool: ...
    def points(self, set: int) -> int: ...
    def __len__(self) -> int: ...
    def neighbors(self, targets: int = 0, sources: Optional[int] = None) -> DeviceNeighbors: ...
    def query(
        self, positions: OnDevice, set: int = 0, *, radii: Optional[ArrayLike] = None
    ) -> DeviceNeighbors: ...
    def neighbors_of(
        self, points: OnDevice, targets: int = 0, sources: Optional[int] = None
    ) -> DeviceNeighbors: ...
    def chunks(
        self,
        targets: int = 0,
        sources: Optional[int] = None,
        *,
        quantities: Optional[Quantities] = None,
        memory: Optional[int] = None,
    ) -> DeviceListChunks: ...
    def pair_geometry(
        self, quantities: Quantities, targets: int = 0, sources: Optional[int] = None
    ) -> DevicePairs: ...
    def write_pairs(
        self,
        quantities: Quantities,
        out: Sequence[OnDevice],
        targets: int = 0,
        sources: Optional[int] = None,
    ) -> None: ...
    def pair_count(self, targets: int = 0, sources: Optional[int] = None) -> int: ...
    def count_neighbors(
        self, targets: int = 0, sources: Optional[int] = None, *, out: Optional[Out] = None
    ) -> Out: ...
    def z_sort(self, set: int = 0, *, out: Optional[Out] = None) -> Out: ...
    def sph_density(
        self,
        mass: OnDevice,
        targets: int = 0,
        sources: Optional[int] = None,
        *,
        support: Optional[float] = None,
        dimensions: int = 3,
        out: Optional[Out] = None,
        add: bool = False,
    ) -> Out: ...
    def traverse(
        self,
        text: str,
        targets: int = 0,
        sources: Optional[int] = None,
        *,
        target_field: Optional[OnDevice] = None,
        source_field: Optional[OnDevice] = None,
        uniforms: Sequence[float] = (),
        outputs: int = 1,
        reduce: Literal["sum", "min", "max"] = "sum",
        name: str = "kernel",
        out: Optional[Out] = None,
        add: bool = False,
        over_lists: bool = False,
    ) -> Out: ...
    def report(self) -> dict[str, Any]: ...

class DeviceListChunks:
    """Lists of a pair of sets on a GPU in chunks: what DeviceEngine.chunks() returns, an iterator
    over pairs of the numbers of some points and their lists.
    """

    @property
    def pairs(self) -> int: ...
    def __iter__(self) -> "DeviceListChunks": ...
    def __next__(self) -> Tuple[DeviceArray, Union[DeviceNeighbors, DevicePairs]]: ...

class DeviceVerletLists:
    """Neighbour lists with a skin that stay on a GPU: found within radius + skin, kept while points
    move little, and found anew when a pair within the radius could be missing. For simulations
    whose arrays are on a GPU.
    """

    def __new__(
        cls,
        radius: float,
        skin: float,
        *,
        box: Optional[Box] = None,
        cell: Optional[Box] = None,
        pbc: Optional[Pbc] = None,
        gpu: int = 0,
        stream: Optional[int] = None,
        strict: bool = False,
        cutoffs: Optional[ArrayLike] = None,
        subdivision: int = 0,
        within: Optional[Tuple[Sequence[float], Sequence[float]]] = None,
        precision: Literal["f32", "f64"] = "f32",
        memory_limit: Optional[int] = None,
    ) -> "DeviceVerletLists": ...
    @property
    def radius(self) -> float: ...
    @property
    def list_radius(self) -> float: ...
    @property
    def gpu(self) -> int: ...
    @property
    def stream(self) -> int: ...
    @property
    def builds(self) -> int: ...
    def add_points(self, points: OnDevice) -> int: ...
    def update(self, set: int, points: OnDevice) -> None: ...
    def replace(self, set: int, points: OnDevice) -> None: ...
    def set_active(self, targets: int, sources: int, active: bool) -> None: ...
    def set_types(self, set: int, types: Union[ArrayLike, OnDevice]) -> None: ...
    def set_exclusions(self, set: int, pairs: ArrayLike) -> None: ...
    def set_molecules(self, set: int, molecules: Union[ArrayLike, OnDevice]) -> None: ...
    def clear_exclusions(self, set: int) -> None: ...
    def refresh(self) -> bool: ...
    def finish(self) -> bool: ...
    def traverse(
        self,
        text: str,
        targets: int = 0,
        sources: Optional[int] = None,
        *,
        target_field: Optional[OnDevice] = None,
        source_field: Optional[OnDevice] = None,
        uniforms: Sequence[float] = (),
        outputs: int = 1,
        reduce: Literal["sum", "min", "max"] = "sum",
        name: str = "kernel",
        out: Optional[Out] = None,
        add: bool = False,
    ) -> Out: ...
    def displacement(self, set: int) -> float: ...
    def remove_set(self, set: int) -> None: ...
    def points(self, set: int) -> int: ...
    def __len__(self) -> int: ...

class DeviceSystemSearch:
    """Searches many systems whose arrays are on a GPU; results stay there."""

    def __new__(
        cls,
        *,
        gpu: int = 0,
        stream: Optional[int] = None,
        precision: Literal["f32", "f64"] = "f32",
        index: Index = "int64",
        half: bool = False,
        strict: bool = False,
        skin: Optional[float] = None,
    ) -> "DeviceSystemSearch": ...
    @property
    def builds(self) -> int: ...
    @property
    def gpu(self) -> int: ...
    @property
    def stream(self) -> int: ...
    def neighbors(
        self,
        points: OnDevice,
        radius: Union[float, ArrayLike, OnDevice],
        batch_ptr: Union[ArrayLike, OnDevice],
        *,
        cell: Optional[Union[ArrayLike, OnDevice]] = None,
        pbc: Optional[Union[Pbc, ArrayLike]] = None,
        quantities: Optional[Quantities] = None,
    ) -> Tuple[DeviceArray, ...]: ...
    def neighbors_into(
        self,
        out: Sequence[OnDevice],
        points: OnDevice,
        radius: Union[float, ArrayLike, OnDevice],
        batch_ptr: Union[ArrayLike, OnDevice],
        *,
        cell: Optional[Union[ArrayLike, OnDevice]] = None,
        pbc: Optional[Union[Pbc, ArrayLike]] = None,
        quantities: Optional[Quantities] = None,
    ) -> int: ...

def edges(
    points: Union[Points, OnDevice],
    radius: Union[float, ArrayLike],
    quantities: Optional[Quantities] = None,
    *,
    cell: Optional[ArrayLike] = None,
    pbc: Optional[Union[Pbc, ArrayLike]] = None,
    box: Optional[Box] = None,
    batch_ptr: Optional[Union[ArrayLike, OnDevice]] = None,
    batch_idx: Optional[Union[ArrayLike, OnDevice]] = None,
    other: Optional[Union[Points, OnDevice]] = None,
    radii: Optional[ArrayLike] = None,
    rule: Optional[Rule] = None,
    types: Optional[ArrayLike] = None,
    cutoffs: Optional[ArrayLike] = None,
    exclusions: Optional[ArrayLike] = None,
    molecules: Optional[ArrayLike] = None,
    targets: Optional[ArrayLike] = None,
    k: Optional[int] = None,
    half: bool = False,
    sorted: bool = False,
    strict: bool = False,
    self_pairs: bool = False,
    device: Optional[str] = None,
    index: Index = "int64",
    out: Optional[Sequence[Any]] = None,
    threads: int = 0,
) -> Tuple[Any, ...]: ...
def neighbors(
    points: Points,
    radius: float,
    box: Optional[Box] = None,
    device: str = "auto",
    *,
    cell: Optional[Box] = None,
    pbc: Optional[Pbc] = None,
    half: bool = False,
    sorted: bool = False,
    strict: bool = False,
    radii: Optional[ArrayLike] = None,
    rule: Optional[Rule] = None,
    types: Optional[ArrayLike] = None,
    cutoffs: Optional[ArrayLike] = None,
    exclusions: Optional[ArrayLike] = None,
    molecules: Optional[ArrayLike] = None,
    targets: Optional[ArrayLike] = None,
    k: Optional[int] = None,
    threads: int = 0,
) -> Neighbors: ...
