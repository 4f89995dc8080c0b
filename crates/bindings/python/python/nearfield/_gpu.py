"""Pairs of arrays that are on a GPU: a DeviceSystemSearch or a DeviceEngine searches them, which are
kept between calls, and writes to arrays of the caller or to new ones.
"""

import numpy as np

from . import _nearfield
from ._libraries import library_of, name_of, on_host

# Points of a system that a DeviceSystemSearch takes…
MAX_SYSTEM = 32768
# …and up to which it takes less time than an engine: it tests all pairs.
FEW = 1024


def _shape(letter, rows):
    """The shape of the array for a letter."""
    return (rows, 3) if letter in "SD" else (rows,)


def writable(library, gpu, points, letters, index, out):
    """Arrays of the caller that a GPU writes to; None where results have to be copied there."""
    types = dict(i=index, j=index, S="int32")
    real = name_of(points.dtype)
    if not library.writable or index == "uint32" or len(out) != len(letters):
        return None
    arrays = []
    for letter, array in zip(letters, out):
        is_one = library_of(array) is library and library.gpu(array) == gpu
        if not is_one or name_of(array.dtype) != types.get(letter, real):
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
        real = name_of(self.points.dtype)
        return [
            self.library.empty(_shape(letter, rows), self.types.get(letter, real), self.points)
            for letter in self.letters
        ]

    def lent(self):
        """The arrays as a search takes them."""
        return [self.library.lent(array) for array in self.arrays]

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


class Kept:
    """Engines that calls take turns with; a call at the same time makes one of its own. Each keeps
    the memory of its largest lists on its GPU."""

    MAX = 4

    def __init__(self):
        self.idle = {}
        # What an engine would have for the last call that did without.
        self.wished = None

    def take(self, key, make):
        """An engine, and the number of pairs that it found last."""
        kept = self.idle.pop(key, None)
        return (make(), 0) if kept is None else kept[:2]

    def give(self, key, engine, pairs, stream):
        # The stream stays as long as an engine that works on it, and nobody gets its address.
        self.idle[key] = engine, pairs, stream
        while len(self.idle) > self.MAX:
            self.idle.pop(next(iter(self.idle)), None)


class OfSkin(Kept):
    """The search of an EdgeList with a skin, for the GPU and the stream of its last call."""

    MAX = 1

    def __init__(self, skin):
        super().__init__()
        self.skin = skin

    @property
    def builds(self):
        """How often its lists were built."""
        return sum(kept[0].builds for kept in self.idle.values())


_kept = Kept()


def free_memory():
    """Frees the memory that searches keep between calls. On GPUs it is that of the engines of the
    last four kinds of calls of edges() and padded(), with their lists; the next call starts an
    engine again. On the host it is that of results which the program has dropped, up to 1 GiB; the
    system takes it by itself, but for 64 MiB, when memory is short (Linux)."""
    _kept.idle.clear()
    _kept.wished = None
    _nearfield._forget_memory()


def on_gpu(
    library, gpu, points, radius, needed, index, into, kept=None, *,
    cell, pbc, box, batch_ptr, other, half, sorted, strict, device, threads, **filters,
):  # fmt: skip
    """Arrays for the letters, on the GPU where the points are; `kept` has searches of a caller."""
    if library.is_recording(gpu):
        raise RuntimeError(
            "a search waits for its GPU to learn how many pairs there are, which a CUDA graph "
            "cannot record: search before or behind the graph"
        )
    if device not in (None, "auto", f"gpu:{gpu}") and (device, gpu) != ("gpu", 0):
        raise ValueError(
            f"the points are on GPU {gpu}: leave device= out, or copy them to the host for "
            f"{device!r}"
        )
    kind = name_of(points.dtype)
    precision = {"float32": "f32", "float64": "f64"}.get(kind)
    if precision is None or len(points.shape) != 2 or points.shape[1] != 3:
        raise TypeError(
            f"points on a GPU must be float32 or float64 of shape (n, 3), not {kind} of shape "
            f"{tuple(points.shape)}"
        )
    filters = {name: on_host(value) for name, value in filters.items() if value is not None}
    stream, stays = library.stream(gpu)
    place = dict(gpu=gpu, stream=stream, precision=precision)
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
        refused = [name for name, given in asked.items() if given]
        if refused:
            raise ValueError(
                f"{refused[0]}= is for points of one system: many systems take cell=, pbc= and "
                "radius, one for all or one each, and filters"
            )
        systems = (radius, batch_ptr, cell, on_host(pbc))
        how = (half, strict, kept, stays)
        return _of_systems(library, place, points, systems, how, needed, index, into)
    radius = float(radius)
    cell, pbc = _nearfield._box(on_host(box), on_host(cell), on_host(pbc))
    if isinstance(kept, OfSkin) and len(points) > MAX_SYSTEM:
        raise ValueError(
            f"EdgeList: a skin on a GPU is for systems of at most {MAX_SYSTEM} points, and this one "
            f"has {len(points)}: leave the skin out, or give arrays of the host"
        )
    settings = dict(half=half, sorted=sorted, strict=strict, cell=cell, pbc=pbc, **place)
    if other is not None or filters or len(points) > MAX_SYSTEM:
        for name in ("cutoffs", "k", "rule"):
            if name in filters:
                settings[name] = filters.pop(name)
        if "radii" in filters and "rule" not in settings:
            settings["rule"] = "symmetric" if other is None else "gather"
        filters = other, filters, kept, stays
        return _of_engine(library, radius, settings, points, filters, needed, index, into)
    wish = None
    if len(points) > FEW and library.writable and not isinstance(kept, OfSkin):
        # The order of the other search, so that nobody sees which one it was.
        settings["sorted"] = True
        wish = _key(radius, settings)
    if wish is not None and (wish == _kept.wished or wish in _kept.idle):
        try:
            how = None, {}, kept, stays
            return _of_engine(library, radius, settings, points, how, needed, index, into)
        except ValueError:
            # The other search takes all that an engine does, or says what is wrong.
            pass
    systems = (radius, [0, len(points)], cell, pbc)
    how = (half, strict, kept, stays)
    arrays = _of_systems(library, place, points, systems, how, needed, index, into)
    if wish is not None:
        # An engine takes time to start: only for a box that is asked for again.
        _kept.wished = wish
    return arrays


def _key(radius, settings):
    """What tells engines apart."""
    hashable = lambda value: value.tobytes() if isinstance(value, np.ndarray) else value
    return ("engine", radius, *settings, *map(hashable, settings.values()))


def _of_systems(library, place, points, systems, how, needed, index, into):
    radius, batch_ptr, cell, pbc = systems
    half, strict, kept, stays = how
    key = ("systems", *place.values(), index, half, strict)
    settings = dict(index="int64" if index == "int64" else "int32", half=half, strict=strict)
    if isinstance(kept, OfSkin):
        settings.update(skin=kept.skin)
        if not library.writable:
            raise TypeError(
                "EdgeList: a skin on a GPU needs arrays that can be written, and those of JAX "
                "cannot: leave it out"
            )
    else:
        kept = _kept
    search, pairs = kept.take(
        key, lambda: _nearfield.DeviceSystemSearch(**settings, **place)
    )

    def numbers(given, kind="float64"):
        if not hasattr(given, "dtype") or isinstance(given, np.ndarray):
            return given
        if "int64" not in library.index_types:
            # Such a library has no 64-bit types at all.
            return library.to_host(given)
        return library.lent(library.plain(library.cast(given, kind)))

    there = library.lent(library.plain(points))
    given = (there, numbers(radius), numbers(batch_ptr, "int64"))
    how = dict(cell=None if cell is None else numbers(cell), pbc=pbc, quantities=needed)
    if library.writable:
        outlet = _Outlet(library, points, needed, index, into, _room(pairs))
        while not outlet.holds(pairs := search.neighbors_into(outlet.lent(), *given, **how)):
            pass
        arrays = outlet.results(pairs)
    else:
        found = search.neighbors(*given, **how)
        arrays = [library.of_device(array) for array in found]
        del found
    kept.give(key, search, pairs, stays)
    return arrays


def _of_engine(library, radius, settings, points, filters, needed, index, into):
    """By an engine, which also knows filters and large systems."""
    other, filters, kept, stays = filters
    # Of others nothing is kept but by a caller who gives the same kinds of filters every time.
    if kept is None and other is None and not filters and "cutoffs" not in settings:
        kept = _kept
    key = _key(radius, settings)
    make = lambda: _nearfield.DeviceEngine(radius, **settings)
    engine, pairs = (make(), 0) if kept is None else kept.take(key, make)
    there = library.lent(library.plain(points))
    if len(engine) == 0:
        engine.add_points(there)
        if other is not None:
            engine.add_points(library.lent(library.plain(other)))
    else:
        engine.update(0, there)
    for name, value in filters.items():
        getattr(engine, f"set_{name}")(0, value)
    sources = 0 if other is None else 1
    if library.writable:
        outlet = _Outlet(library, points, needed, index, into, _room(pairs))
        while True:
            engine.write_pairs(needed, outlet.lent(), 0, sources)
            # False: there was too little room, and there is enough now.
            if engine.finish() and outlet.holds(pairs := engine.pair_count(0, sources)):
                break
        arrays = outlet.results(pairs)
    else:
        arrays = _copied(library, engine, needed, len(points), sources)
    if kept is not None:
        kept.give(key, engine, pairs, stays)
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
