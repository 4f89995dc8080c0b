"""Pairs for arrays of any library and device, and the forms that programs keep them in.

Users call ``edges`` of the extension, which hands a call over to ``edges`` here if arrays are not
NumPy's, or if something is asked for that needs only operations on whole arrays. Arrays of the host
go back to the extension as NumPy arrays. Arrays of a GPU stay there: a DeviceSystemSearch or a
DeviceEngine searches them, which are kept between calls.
"""

import inspect
import operator
from collections import namedtuple
from itertools import islice

import numpy as np

from . import _nearfield
from ._batches import FILTERS, by_system, pointers
from ._gpu import Kept, OfSkin, on_gpu, writable
from ._libraries import NumPy, library_of, on_host

LETTERS = {
    "targets": "i",
    "sources": "j",
    "pairs": "P",
    "images": "S",
    "distances": "d",
    "displacements": "D",
}


def edges(
    points, radius, quantities=None, *, out=None, self_pairs=False, index="int64", skin=None, **given
):  # fmt: skip
    """Does what nearfield.edges does; the extension passes all of its keywords, and EdgeList what
    it keeps for arrays of a GPU."""
    library = library_of(points)
    gpu = library.gpu(points)
    if type(library) is NumPy:
        points = _array(points)
    # An endless sequence is refused later, for its letters.
    wanted = islice("ijSdD" if quantities is None else quantities, 16)
    wanted = [LETTERS.get(word, word) for word in wanted]
    for place, letter in enumerate(wanted):
        if letter in wanted[:place]:
            raise ValueError(f"quantity {letter!r} is asked for twice")
    needed = dict.fromkeys(letter for letter in wanted if letter != "P")
    if "P" in wanted or self_pairs:
        needed.update(i=None, j=None)
    if self_pairs and given["sorted"]:
        needed.update(S=None)
    if self_pairs and given["other"] is not None:
        raise ValueError("self_pairs= is for pairs within one set: leave it out with other=")
    index = library.index_type(index)
    if given["batch_idx"] is not None:
        if given["batch_ptr"] is not None:
            raise ValueError("batch_ptr and batch_idx say the same: give one of them")
        given["batch_ptr"] = pointers(library, points, radius, given)
    del given["batch_idx"]
    in_parts = given["batch_ptr"] is not None and any(
        given.get(name) is not None for name in FILTERS
    )
    if gpu is None:
        kinds, like = NumPy(), np.empty(0)
        given = {name: on_host(value) for name, value in given.items()}
        points_on_host, how = on_host(points), dict(index=index)
        search = lambda points, radius, **of: _nearfield.edges(
            points, radius, list(needed), **how, **of
        )
        if in_parts:
            found = by_system(kinds, points_on_host, radius, list(needed), search, given)
        else:
            found = search(points_on_host, on_host(radius), **given)
    else:
        kinds, like = library, points
        into = None
        if out is not None and list(needed) == wanted and not self_pairs and not in_parts:
            into = writable(library, gpu, points, wanted, index, out)
        kept = Kept() if in_parts else skin
        search = lambda points, radius, **of: on_gpu(
            library, gpu, points, radius, list(needed), index, into, kept, **of
        )
        if in_parts:
            found = by_system(library, points, radius, list(needed), search, given)
        else:
            found = search(points, radius, **given)
        if into is not None:
            return tuple(found)
    arrays = dict(zip(needed, found))
    if self_pairs:
        arrays = _with_self(kinds, arrays, len(points), given["targets"], given["sorted"], like)
    if "P" in wanted:
        arrays["P"] = kinds.module.stack([arrays["i"], arrays["j"]], 1)
    # Last, because PyTorch computes next to nothing with unsigned numbers on a GPU.
    result = [
        kinds.cast(arrays[letter], index) if letter in "ijP" else arrays[letter]
        for letter in wanted
    ]
    if gpu is None:
        result = [library.of_host(array, points) for array in result]
    return tuple(result) if out is None else _written(library, wanted, result, out)


def _array(points):
    """Points that are of no other library, as an array of NumPy."""
    if isinstance(points, np.ndarray):
        return points
    if not hasattr(points, "__array__") and hasattr(points, "__dlpack__"):
        return np.from_dlpack(points)
    array = np.asarray(points)
    if array.ndim == 0:
        raise TypeError(
            f"points must be an array or a list of shape (n, 3) or (n, 2), not {type(points)}"
        )
    return array


def _with_self(kinds, arrays, points, targets, ascending, like):
    """Every chosen point also with itself, in its place among its own pairs."""
    whole = kinds.index_type("int64")
    chosen = np.ones(points, whole)
    if targets is not None:
        chosen[:] = 0
        targets = np.asarray(on_host(targets))
        # An empty list has no type.
        chosen[targets if len(targets) else slice(0)] = 1
    rows = kinds.of_host(np.flatnonzero(chosen).astype(whole), like)
    chosen = kinds.of_host(chosen, like)
    i, j = (kinds.cast(arrays[letter], whole) for letter in "ij")
    count = kinds.cast(kinds.bincount(i, points), whole)
    before = kinds.zeros(len(i), i)
    if ascending:
        x, y, z = (arrays["S"][:, axis] for axis in range(3))
        negative = (x < 0) | ((x == 0) & ((y < 0) | ((y == 0) & (z < 0))))
        before = kinds.cast((j < i) | ((j == i) & negative), whole)
    # Pairs of a point that come before it alone: those up to its last, less those up to its first.
    up_to = kinds.concatenate([kinds.zeros(1, before), kinds.cumsum(before)])
    ends, others = kinds.cumsum(count), kinds.cumsum(chosen) - chosen
    first = ends - count
    of_pairs = kinds.arange(len(i), like) + others[i] + chosen[i] * (1 - before)
    of_points = first + others + up_to[ends] - up_to[first]
    places = kinds.cast(kinds.concatenate([of_pairs, of_points[rows]]), whole)
    order = kinds.inverse(places)
    arrays.update(i=i, j=j)

    def merged(letter, array):
        alone = rows if letter in "ij" else kinds.zeros(len(rows), array)
        return kinds.concatenate([array, alone])[order]

    return {letter: merged(letter, array) for letter, array in arrays.items()}


def _written(library, letters, arrays, out):
    """The arrays, written into those of the caller."""
    if len(out) != len(letters):
        raise ValueError(f"out has {len(out)} arrays for {len(letters)} quantities")
    for place, (letter, array, to) in enumerate(zip(letters, arrays, out)):
        if not hasattr(to, "dtype"):
            raise TypeError(f"out: {letter} needs an array to be written to, not {type(to)}")
        if isinstance(to, np.ndarray) and not to.flags.writeable:
            raise ValueError(f"out: the array for {letter} is read-only")
        if any(to is one for one in out[:place]):
            raise ValueError(f"out: the array for {letter} is that of another quantity too")
        if str(to.dtype) != str(array.dtype) or to.shape[1:] != array.shape[1:]:
            raise ValueError(
                f"out: the array for {letter} must be {array.dtype} of shape "
                f"(pairs, {', '.join(map(str, array.shape[1:]))}), not {to.dtype} of shape "
                f"{tuple(to.shape)}"
            )
        if len(to) < len(array):
            raise ValueError(
                f"out: the array for {letter} has room for {len(to)} pairs, but there are "
                f"{len(array)}"
            )
    return tuple(library.put(to, array) for array, to in zip(arrays, out))


Padded = namedtuple("Padded", "indices counts largest images distances displacements")
Padded.__doc__ = """Neighbours in arrays of fixed shapes, as padded() returns them.

indices: row i has the neighbours of point i, then the padding, shape (n, max_neighbors). counts:
how many of a row are neighbours, shape (n,). largest: the number of neighbours that a point has at
most; where it is more than max_neighbors, rows lack those beyond. images, distances, displacements:
S of shape (n, max_neighbors, 3), d of shape (n, max_neighbors) and D of shape (n, max_neighbors, 3)
of these neighbours, 0 in the padding; None unless asked for. Of nearfield.torch all are tensors,
largest one without axes.
"""


def whole(name, number, least=None):
    """A whole number of any type but bool, as one of Python."""
    try:
        found = None if isinstance(number, bool) else operator.index(number)
    except TypeError:
        found = None
    if found is None or least is not None and found < least:
        from_on = "" if least is None else f" from {least} on"
        raise ValueError(f"{name} is a whole number{from_on}, not {number!r}")
    return found


def padded(points, radius, max_neighbors, quantities="", *, fill=None, **options):
    """The neighbours of every point in a matrix of a fixed shape; returns a named tuple Padded.

    points, radius, options: as for edges(), without out=. max_neighbors: the number of columns.
    quantities: which of "S", "d" and "D" are wanted too. fill: the index in places without a
    neighbour, the number of points unless given. Neighbours of a row ascend by (j, S), and with k=
    come nearest first. A point that has more than max_neighbors keeps the first, and ``largest``
    says how many there are.

    >>> near = nearfield.padded(positions, 5.0, 64, "D", cell=cell, pbc=True)
    >>> assert near.largest <= 64
    """
    max_neighbors = whole("max_neighbors", max_neighbors, least=0)
    wanted = [LETTERS.get(word, word) for word in islice(quantities, 16)]
    if options.get("out") is not None or not {"S", "d", "D"}.issuperset(wanted):
        raise ValueError('padded() takes quantities of "S", "d" and "D", and no out=')
    options.setdefault("sorted", options.get("k") is None)
    found = _nearfield.edges(points, radius, ["i", "j", *wanted], **options)
    arrays = dict(zip("ij" + "".join(wanted), found))
    library = library_of(points)
    if type(library) is NumPy:
        points = _array(points)
    rows, i, j = len(points), arrays["i"], arrays["j"]
    if fill is None:
        other = options.get("other")
        fill = rows if other is None else len(other)
    index = str(j.dtype).rpartition(".")[2]
    fill, limits = whole("fill", fill), np.iinfo(index)
    if not limits.min <= fill <= limits.max:
        raise ValueError(f"fill is {fill}, which index={index!r} cannot hold")
    whole_type = library.index_type("int64")
    # The same bits, where uint32 is computed in int32.
    fill = int(np.array(fill).astype(whole_type))
    i, j = library.cast(i, whole_type), library.cast(j, whole_type)
    counts = library.cast(library.bincount(i, rows), whole_type)
    first = (library.cumsum(counts) - counts)[:, None]
    column = library.cast(library.arange(max_neighbors, i), whole_type)[None, :]
    there = column < counts[:, None]
    # One element more, so that an empty place has something to read.
    places = library.where(there, first + column, len(i))

    def rows_of(array, otherwise):
        longer = library.concatenate([array, library.zeros(1, array)])[places]
        mask = there if len(longer.shape) == 2 else there[:, :, None]
        return library.where(mask, longer, otherwise)

    geometry = [rows_of(arrays[of], 0) if of in wanted else None for of in "SdD"]
    largest = int(counts.max()) if rows else 0
    kept = library.where(counts < max_neighbors, counts, max_neighbors)
    return Padded(library.cast(rows_of(j, fill), index), kept, largest, *geometry)


class EdgeList:
    """Pairs of points that are searched again and again, as in a simulation.

    radius, quantities, options: as for edges(), without out= and what compute() takes. skin: in the
    unit of the coordinates. With a skin above 0 a list of radius + skin is kept, and a call tests
    only its pairs until a point has moved by half the skin, which is when the list is built anew.
    Results are the same, bit for bit. Of options it takes half, sorted, strict, index and threads.
    Arrays of a GPU stay there, in systems of at most 32,768 points each; a call waits for the GPU
    to learn how many pairs there are, so no CUDA graph can record it. Points should not be wrapped
    into the cell between calls, which counts as a movement. A wide skin means fewer rebuilds and longer lists; which width is fastest
    depends on how far points move in a step, and ``rebuilds`` tells how often lists were built.

    >>> near = nearfield.EdgeList(5.0, skin=0.5, quantities="ijD", half=True)
    >>> for step in range(1000):
    ...     i, j, D = near.compute(positions, cell=cell, pbc=True)
    """

    _OF_SKIN = dict(half=False, sorted=False, strict=False, index="int64", threads=0)
    _OF_CALLS = {"cell", "pbc", "batch_ptr", "out"}

    def __init__(self, radius, skin=0.0, quantities="ijSdD", **options):
        refused = self._OF_CALLS.intersection(options)
        if skin:
            refused |= options.keys() - self._OF_SKIN.keys()
        if refused:
            name = sorted(refused)[0]
            of_calls, of_skin = "is an argument of compute()", "has no lists with a skin"
            why = of_calls if name in self._OF_CALLS else of_skin
            raise TypeError(f"EdgeList: {name}= {why}")
        unknown = options.keys() - inspect.signature(_nearfield.edges).parameters.keys()
        if unknown:
            raise TypeError(f"EdgeList: unexpected keyword {sorted(unknown)[0]!r}")
        if quantities is not None and not isinstance(quantities, str):
            # An iterator has them once only.
            quantities = tuple(islice(quantities, 16))
        self.radius, self.skin, self.quantities = radius, skin, quantities
        self._options, self._calls, self._search, self._of_gpu = options, 0, None, None
        if skin:
            given = {name: options.get(name, value) for name, value in self._OF_SKIN.items()}
            self._strict, self._index = given.pop("strict"), given.pop("index")
            self._search = _nearfield._SkinSearch(skin, *given.values())

    def compute(self, points, cell=None, pbc=None, *, batch_ptr=None):
        """The pairs of these points: a tuple with an array for every letter of quantities."""
        if self._search is None:
            found = _nearfield.edges(
                points, self.radius, self.quantities,
                cell=cell, pbc=pbc, batch_ptr=batch_ptr, **self._options,
            )  # fmt: skip
            self._calls += 1
            return found
        library = library_of(points)
        if library.gpu(points) is not None:
            return self._on_gpu(points, cell=cell, pbc=pbc, batch_ptr=batch_ptr)
        index = library.index_type(self._index)
        given = map(on_host, (cell, pbc, batch_ptr))
        found = self._search.neighbors(
            on_host(points), on_host(self.radius), self.quantities, *given, self._strict, index
        )
        return tuple(library.of_host(array, points) for array in found)

    def _on_gpu(self, points, **of_call):
        """The pairs of points on a GPU."""
        given = dict.fromkeys(inspect.signature(_nearfield.edges).parameters)
        given.update(self._OF_SKIN, **self._options, **of_call)
        for name in ("points", "radius", "quantities", "out", "self_pairs"):
            given.pop(name)
        if self._of_gpu is None:
            self._of_gpu = OfSkin(self.skin)
        return edges(points, self.radius, self.quantities, skin=self._of_gpu, **given)

    @property
    def rebuilds(self):
        """How often pairs were searched for, not found in the list."""
        if self._search is None:
            return self._calls
        return self._search.builds + (0 if self._of_gpu is None else self._of_gpu.builds)
