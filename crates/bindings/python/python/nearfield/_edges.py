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
from ._libraries import NumPy, library_of, on_host

LETTERS = {
    "targets": "i",
    "sources": "j",
    "pairs": "P",
    "images": "S",
    "distances": "d",
    "displacements": "D",
}
# Systems that batch_idx may number.
MAX_SYSTEMS = 2**31
# Points of a system that a DeviceSystemSearch takes.
MAX_SYSTEM = 32768


def edges(points, radius, quantities=None, *, out=None, self_pairs=False, index="int64", **given):
    """Does what nearfield.edges does; the extension passes all of its keywords."""
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
        given["batch_ptr"] = _pointers(library, points, radius, given)
    del given["batch_idx"]
    if gpu is None:
        kinds, like = NumPy(), np.empty(0)
        given = {name: on_host(value) for name, value in given.items()}
        found = _nearfield.edges(
            on_host(points), on_host(radius), list(needed), index=index, **given
        )
    else:
        kinds, like = library, points
        into = None
        if out is not None and list(needed) == wanted and not self_pairs:
            into = _writable(library, gpu, points, wanted, index, out)
        found = _on_gpu(library, gpu, points, radius, list(needed), index, into, **given)
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


def _pointers(library, points, radius, given):
    """batch_ptr of batch_idx: on the device where the points are."""
    systems, count = given["batch_idx"], len(points)
    if not hasattr(systems, "dtype"):
        # A list of no numbers has no type.
        systems = np.asarray(systems) if count else np.zeros(np.shape(systems), int)
    library = library_of(systems)
    if tuple(systems.shape) != (count,):
        raise ValueError(
            f"batch_idx must have the shape ({count},), one system a point, not "
            f"{tuple(systems.shape)}"
        )
    if "int" not in str(systems.dtype):
        raise TypeError(f"batch_idx must be whole numbers, not {systems.dtype}")
    each = [
        len(of) for of, axes in ((radius, 1), (given["cell"], 3), (given["pbc"], 2))
        if of is not None and len(np.shape(of)) == axes
    ]
    largest = int(systems[-1]) if count else -1
    number = max(each, default=largest + 1)
    if largest >= MAX_SYSTEMS:
        raise ValueError(
            f"batch_idx goes to {largest}: systems are numbered from 0 on, below 2^31"
        )
    systems = library.cast(systems, library.index_type("int64"))
    falls = systems[1:] < systems[:-1]
    if count and bool(falls.any()):
        place = int(library.cast(falls, "int32").argmax())
        raise ValueError(
            f"batch_idx must ascend: point {place} is in system {int(systems[place])}, but point "
            f"{place + 1} in system {int(systems[place + 1])}; sort the points by their systems"
        )
    if count and (int(systems[0]) < 0 or largest >= number):
        raise ValueError(
            f"batch_idx goes from {int(systems[0])} to {largest}, but there are {number} systems"
        )
    ends = library.cumsum(library.bincount(systems, number)) if number else systems[:0]
    return library.concatenate([library.zeros(1, ends), ends])


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


def _shape(letter, rows):
    """The shape of the array for a letter."""
    return (rows, 3) if letter in "SD" else (rows,)


def _writable(library, gpu, points, letters, index, out):
    """Arrays of the caller that a GPU writes to; None where results have to be copied there."""
    types = dict(i=index, j=index, S="int32")
    real = str(points.dtype)
    if not library.writable or index == "uint32" or len(out) != len(letters):
        return None
    arrays = []
    for letter, array in zip(letters, out):
        is_one = library_of(array) is library and library.gpu(array) == gpu
        kind = types.get(letter, real).rpartition(".")[2]
        if not is_one or str(array.dtype).rpartition(".")[2] != kind:
            return None
        fits = tuple(array.shape[1:]) == _shape(letter, 0)[1:]
        if not fits or not library.is_packed(array) or any(array is one for one in arrays):
            return None
        arrays.append(array)
    return arrays


class _Outlet:
    """Arrays for the pairs of a search: those of the caller, or new ones that are a little longer
    than the last search of the kind needed."""

    # An array that is longer by this share than its pairs is kept as it is; a longer one is copied.
    SPARE = 8

    def __init__(self, library, points, letters, index, into, rows):
        self.library, self.points, self.letters, self.into = library, points, letters, into
        # The same bits: libraries compute next to nothing with unsigned numbers on a GPU.
        signed = "int64" if index == "int64" else "int32"
        self.types = dict(i=signed, j=signed, S="int32")
        self.rows = min(map(len, into), default=0) if into is not None else rows
        self.arrays = into if into is not None else self._new(rows)

    def _new(self, rows):
        real = str(self.points.dtype).rpartition(".")[2]
        return [
            self.library.empty(_shape(letter, rows), self.types.get(letter, real), self.points)
            for letter in self.letters
        ]

    def holds(self, pairs):
        """Whether all pairs had room; makes longer arrays where they had not."""
        if pairs <= self.rows:
            return True
        if self.into is not None:
            letter = self.letters[[len(array) for array in self.into].index(self.rows)]
            raise ValueError(
                f"out: the array for {letter} has room for {self.rows} pairs, but there are {pairs}"
            )
        self.rows, self.arrays = pairs, self._new(pairs)
        return False

    def results(self, pairs):
        """The arrays of so many pairs."""
        arrays = [array[:pairs] for array in self.arrays]
        if self.into is None and self.rows > pairs + pairs // self.SPARE + 1024:
            arrays = [self.library.copy(array) for array in arrays]
        return arrays


def _room(pairs):
    """Pairs to make room for where the last search found so many."""
    return pairs + pairs // 64


class _Kept:
    """Engines that calls take turns with; a call at the same time makes one of its own. Each keeps
    the memory of its largest lists on its GPU."""

    MAX = 4

    def __init__(self):
        self.idle = {}

    def take(self, key, make):
        """An engine, and the number of pairs that it found last."""
        kept = self.idle.pop(key, None)
        return (make(), 0) if kept is None else kept[:2]

    def give(self, key, engine, pairs, stream):
        # The stream stays as long as an engine that works on it, and nobody gets its address.
        self.idle[key] = engine, pairs, stream
        while len(self.idle) > self.MAX:
            self.idle.pop(next(iter(self.idle)), None)


_kept = _Kept()


def free_memory():
    """Frees the memory that searches keep between calls. On GPUs it is that of the engines of the
    last four kinds of calls of edges() and padded(), with their lists; the next call starts an
    engine again. On the host it is that of results which the program has dropped, up to 1 GiB; the
    system takes it by itself, but for 64 MiB, when memory is short (Linux)."""
    _kept.idle.clear()
    _nearfield._forget_memory()


def _on_gpu(
    library, gpu, points, radius, needed, index, into, *,
    cell, pbc, box, batch_ptr, other, half, sorted, strict, device, threads, **filters,
):  # fmt: skip
    """Arrays for the letters, on the GPU where the points are."""
    if device not in (None, "auto", f"gpu:{gpu}") and (device, gpu) != ("gpu", 0):
        raise ValueError(
            f"the points are on GPU {gpu}: leave device= out, or copy them to the host for "
            f"{device!r}"
        )
    kind = str(points.dtype).rpartition(".")[2]
    precision = {"float32": "f32", "float64": "f64"}.get(kind)
    if precision is None or len(points.shape) != 2 or points.shape[1] != 3:
        raise TypeError(
            f"points on a GPU must be float32 or float64 of shape (n, 3), not {kind} of shape "
            f"{tuple(points.shape)}"
        )
    filters = {name: on_host(value) for name, value in filters.items() if value is not None}
    place = dict(gpu=gpu, stream=library.stream(gpu), precision=precision)
    if batch_ptr is not None:
        of_pointers = library_of(batch_ptr)
        there = of_pointers.gpu(batch_ptr) if hasattr(batch_ptr, "dtype") else None
        if there is None or of_pointers is not library:
            batch_ptr = on_host(batch_ptr)
        elif there != gpu:
            raise ValueError(
                f"batch_ptr is on GPU {there}, but the points are on GPU {gpu}: move it there"
            )
        asked = dict(box=box is not None, other=other is not None)
        refused = [*filters, *(name for name, given in asked.items() if given)]
        if refused:
            raise ValueError(
                f"{refused[0]}= is for points of one system on a GPU: many systems take cell=, "
                "pbc= and radius, one for all or one each"
            )
        systems = (radius, batch_ptr, cell, on_host(pbc))
        return _of_systems(library, place, points, systems, (half, strict), needed, index, into)
    radius = float(radius)
    cell, pbc = _nearfield._box(on_host(box), on_host(cell), on_host(pbc))
    if other is None and not filters and len(points) <= MAX_SYSTEM:
        systems = (radius, [0, len(points)], cell, pbc)
        return _of_systems(library, place, points, systems, (half, strict), needed, index, into)
    settings = dict(half=half, sorted=sorted, strict=strict, cell=cell, pbc=pbc, **place)
    for name in ("cutoffs", "k", "rule"):
        if name in filters:
            settings[name] = filters.pop(name)
    if "radii" in filters and "rule" not in settings:
        settings["rule"] = "symmetric" if other is None else "gather"
    filters = other, filters
    return _of_engine(library, radius, settings, points, filters, needed, index, into)


def _of_systems(library, place, points, systems, kind, needed, index, into):
    radius, batch_ptr, cell, pbc = systems
    half, strict = kind
    key = ("systems", *place.values(), index, half, strict)
    width = "int64" if index == "int64" else "int32"
    search, pairs = _kept.take(
        key,
        lambda: _nearfield.DeviceSystemSearch(index=width, half=half, strict=strict, **place),
    )

    def numbers(given, kind="float64"):
        if not hasattr(given, "dtype") or isinstance(given, np.ndarray):
            return given
        if "int64" not in library.index_types:
            # Such a library has no 64-bit types at all.
            return library.to_host(given)
        return library.plain(library.cast(given, kind))

    given = (library.plain(points), numbers(radius), numbers(batch_ptr, "int64"))
    how = dict(cell=None if cell is None else numbers(cell), pbc=pbc, quantities=needed)
    if library.writable:
        outlet = _Outlet(library, points, needed, index, into, _room(pairs))
        while not outlet.holds(pairs := search.neighbors_into(outlet.arrays, *given, **how)):
            pass
        arrays = outlet.results(pairs)
    else:
        found = search.neighbors(*given, **how)
        arrays = [library.of_device(array) for array in found]
        del found
    _kept.give(key, search, pairs, library.stream_of(place["gpu"]))
    return arrays


def _of_engine(library, radius, settings, points, filters, needed, index, into):
    """By an engine, which also knows filters and large systems."""
    other, filters = filters
    alone = other is None and not filters and "cutoffs" not in settings
    hashable = lambda value: value.tobytes() if isinstance(value, np.ndarray) else value
    key = ("engine", radius, *settings, *map(hashable, settings.values()))
    make = lambda: _nearfield.DeviceEngine(radius, **settings)
    engine, pairs = _kept.take(key, make) if alone else (make(), 0)
    there = library.plain(points)
    if len(engine) == 0:
        engine.add_points(there)
        if other is not None:
            engine.add_points(library.plain(other))
        for name, value in filters.items():
            getattr(engine, f"set_{name}")(0, value)
    else:
        engine.update(0, there)
    sources = 0 if other is None else 1
    if library.writable:
        outlet = _Outlet(library, points, needed, index, into, _room(pairs))
        while True:
            engine.write_pairs(needed, outlet.arrays, 0, sources)
            # False: there was too little room, and there is enough now.
            if engine.finish() and outlet.holds(pairs := engine.pair_count(0, sources)):
                break
        arrays = outlet.results(pairs)
    else:
        arrays = _copied(library, engine, needed, len(points), sources)
    if alone:
        _kept.give(key, engine, pairs, library.stream_of(settings["gpu"]))
    return arrays


def _copied(library, engine, needed, points, sources):
    """Pairs as arrays of a library whose arrays cannot be written."""
    geometry = [letter for letter in needed if letter in "SdD"]
    while True:
        if geometry:
            found = engine.pair_geometry(geometry, 0, sources)
        else:
            found = engine.neighbors(0, sources)
        # False: there was too little room, and there is enough now.
        if engine.finish():
            return _compact(library, found, needed, points)


def _compact(library, found, needed, points):
    """Lists with gaps, in the order of an engine, as arrays of pairs in the order of i."""
    whole = library.index_type("int64")
    signed = lambda array: library.cast(library.of_device(array), whole)
    start, count = signed(found.start), signed(found.count)
    total = int(count.sum()) if points else 0
    first = library.cumsum(count) - count
    i = library.repeat(library.arange(points, count), count, total)
    places = library.arange(total, count) + (start - first)[i]
    stored = {"S": "images", "d": "distances", "D": "displacements"}

    def array(letter):
        if letter == "i":
            return i
        if letter == "j":
            return signed(found.indices)[places]
        return library.of_device(getattr(found, stored[letter]))[places]

    return [array(letter) for letter in needed]


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
    Results are the same, bit for bit. It takes arrays of the host, and of options half, sorted,
    strict, index and threads; points should not be wrapped into the cell between calls, which
    counts as a movement. A wide skin means fewer rebuilds and longer lists; which width is fastest
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
        self._options, self._calls, self._search = options, 0, None
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
            raise TypeError(
                "EdgeList: a skin is for arrays of the host: leave it out on a GPU, where "
                "DeviceVerletLists has lists with a skin, for functions of pairs"
            )
        index = library.index_type(self._index)
        given = map(on_host, (cell, pbc, batch_ptr))
        found = self._search.neighbors(
            on_host(points), on_host(self.radius), self.quantities, *given, self._strict, index
        )
        return tuple(library.of_host(array, points) for array in found)

    @property
    def rebuilds(self):
        """How often pairs were searched for, not found in the list."""
        return self._calls if self._search is None else self._search.builds
