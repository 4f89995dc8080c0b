"""Many systems in one array: where each begins, and searches of one after the other."""

import numpy as np

from ._libraries import library_of, on_host

# Systems that batch_idx may number.
MAX_SYSTEMS = 2**31
# Keywords that leave out pairs within the radius.
FILTERS = ("radii", "rule", "types", "cutoffs", "exclusions", "molecules", "targets", "k")


def pointers(library, points, radius, given):
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


def _of_each(what, given, systems, axes):
    """One value for every system, of an argument that has one for all or one each."""
    if given is None:
        return [None] * systems
    given = on_host(given)
    array = np.asarray(given)
    if array.ndim != axes:
        return [given] * systems
    if len(array) != systems:
        raise ValueError(f"{what} has values of {len(array)} systems, and there are {systems}")
    return list(array)


def _exclusions_of(exclusions, offsets):
    """The pairs of an array that are within one system, by system and counted within it."""
    exclusions = np.asarray(on_host(exclusions))
    if exclusions.size == 0:
        return [None] * (len(offsets) - 1)
    if exclusions.ndim != 2 or exclusions.shape[1] != 2 or exclusions.dtype.kind not in "iu":
        raise ValueError(
            f"exclusions must be whole numbers of shape (pairs, 2), not {exclusions.dtype} of "
            f"shape {exclusions.shape}"
        )
    exclusions = exclusions.astype("int64")
    if exclusions.min() < 0 or exclusions.max() >= offsets[-1]:
        raise ValueError(
            f"exclusions name points from {exclusions.min()} to {exclusions.max()}, and there are "
            f"{offsets[-1]}"
        )
    systems = np.searchsorted(offsets, exclusions, "right") - 1
    within = systems[:, 0] == systems[:, 1]
    exclusions, systems = exclusions[within], systems[within, 0]
    order = np.argsort(systems, kind="stable")
    exclusions, systems = exclusions[order], systems[order]
    ends = np.searchsorted(systems, np.arange(len(offsets)))
    return [exclusions[a:b] - first for a, b, first in zip(ends, ends[1:], offsets)]


def _offsets(batch_ptr, points):
    """batch_ptr as an array of the host, once it is checked."""
    offsets = np.asarray(on_host(batch_ptr))
    if offsets.ndim != 1 or len(offsets) == 0 or offsets.dtype.kind not in "iu":
        raise ValueError(
            f"batch_ptr must be whole numbers of shape (systems + 1,), not {offsets.dtype} of "
            f"shape {offsets.shape}"
        )
    falls = np.flatnonzero(offsets[1:] < offsets[:-1])
    if len(falls):
        raise ValueError(f"batch_ptr must ascend: it falls behind entry {falls[0]}")
    if offsets[0] != 0 or offsets[-1] != points:
        raise ValueError(
            f"batch_ptr goes from {offsets[0]} to {offsets[-1]}: it must go from 0 to the number "
            f"of points, {points}"
        )
    return offsets.astype("int64")


def by_system(kinds, points, radius, needed, search, given):
    """Arrays for the letters of many systems with filters, which are searched one after the
    other."""
    for name in ("box", "other"):
        if given[name] is not None:
            raise ValueError(
                f"{name}= is for points of one system: many systems take cell=, pbc= and radius, "
                "one for all or one each, and filters"
            )
    count = len(points)
    offsets = _offsets(given["batch_ptr"], count)
    systems = len(offsets) - 1
    radii = _of_each("radius", radius, systems, 1)
    cells = _of_each("cell", given["cell"], systems, 3)
    flags = _of_each("pbc", given["pbc"], systems, 2)
    of_points = {}
    for name in ("radii", "types", "molecules"):
        if given[name] is not None:
            of_points[name] = np.asarray(on_host(given[name]))
            if of_points[name].shape != (count,):
                raise ValueError(
                    f"{name} must have the shape ({count},), one value a point, not "
                    f"{of_points[name].shape}"
                )
    if given["targets"] is not None:
        targets = np.asarray(on_host(given["targets"]))
        if targets.dtype == bool and targets.shape != (count,):
            raise ValueError(f"targets must be a mask of {count} points, not {targets.shape}")
        if len(targets) and targets.dtype != bool and not 0 <= targets.min() <= targets.max() < count:
            raise ValueError(
                f"targets name points from {targets.min()} to {targets.max()}, and there are {count}"
            )
        of_points["targets"] = np.zeros(count, bool)
        of_points["targets"][targets if len(targets) else slice(0)] = True
    exclusions = [None] * systems
    if given["exclusions"] is not None:
        exclusions = _exclusions_of(given["exclusions"], offsets)
    given = given | dict(batch_ptr=None)
    if given["cutoffs"] is not None:
        given["cutoffs"] = np.asarray(on_host(given["cutoffs"]), dtype=float)
    parts = []
    for system, (begin, end) in enumerate(zip(offsets, offsets[1:])):
        # The first part has the types of the results, also without points.
        if begin == end and (parts or end < count):
            continue
        part = given | {name: array[begin:end] for name, array in of_points.items()}
        part.update(cell=cells[system], pbc=flags[system], exclusions=exclusions[system])
        found = search(points[int(begin) : int(end)], float(radii[system]), **part)
        first = int(begin)
        parts.append([
            array + first if letter in "ij" else array for letter, array in zip(needed, found)
        ])
    if not parts:
        raise ValueError("batch_ptr has no system: leave it out, or give [0, number of points]")
    return [kinds.concatenate(arrays) for arrays in zip(*parts)]
