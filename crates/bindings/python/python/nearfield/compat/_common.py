"""What the adapters share: the search, ties, and the nearest image of each pair.

Libraries that compute in double precision decide pairs by a distance that they round in their own
way. Nearfield rounds d² once less, so on a lattice a pair exactly at the cut-off can be in one
list and not in the other. ``Pairs`` therefore searches a little farther, and decides the few pairs
between by the formula that all of them use, term by term as NumPy rounds it.
"""

import numpy as np

import nearfield

# Radii that an engine takes. For others the coordinates are scaled.
_MIN_RADIUS, _MAX_RADIUS = 2.0**-50, 2.0**62

# The rounding of a distance is below this share of the coordinates and the radius.
_SLACK = 16 * np.finfo(float).eps

_SHAPES = {"i": (0,), "j": (0,), "P": (0, 2), "S": (0, 3), "d": (0,), "D": (0, 3)}


def search(points, radius, letters, *, cell=None, pbc=False, **how):
    """Arrays for the letters, as ``nearfield.edges`` returns them: the pairs at most ``radius``
    apart, in the order of i. ``how`` are its other arguments. Points may be arrays of any library
    for "ij", with a cell of NumPy.
    """
    if np.any(pbc):
        how.update(cell=np.asarray(cell, float), pbc=pbc)
    elif radius == np.inf:
        # Farther than any two points.
        radius = 4 * max(_extent(of) for of in (points, how.get("other")) if of is not None)
    # Within a radius of 0 there are only points that coincide.
    radius = radius or _MIN_RADIUS
    if _MIN_RADIUS <= radius <= _MAX_RADIUS or not np.isfinite(radius):
        return nearfield.edges(points, radius, letters, **how)
    # By a power of two, which changes no digit.
    power = int(np.frexp(radius)[1])
    for name in {"other", "cell"}.intersection(how):
        how[name] = _scaled(how[name], radius, -power)
    points = _scaled(points, radius, -power)
    found = nearfield.edges(points, float(np.ldexp(radius, -power)), letters, **how)
    return tuple(
        np.ldexp(array, power) if letter in "dD" else array
        for letter, array in zip(letters, found)
    )


def _scaled(given, radius, power):
    if given is None:
        return None
    # In two steps, each a number of any type of coordinates.
    half = power // 2
    with np.errstate(over="ignore"):
        scaled = given * 2.0**half * 2.0 ** (power - half)
    if len(given) and float(abs(scaled).max()) == np.inf > float(abs(given).max()):
        real = str(given.dtype).rpartition(".")[2]
        raise ValueError(
            f"radius {radius} cannot be searched among coordinates up to "
            f"{float(abs(given).max())} of type {real}: below 2^-50 (about 8.9e-16) no coordinate "
            f"may be more than {np.finfo(real).max:.2g} times as large as the radius"
        )
    return scaled


def no_pairs(letters, index=np.int64):
    """Empty arrays for letters, in double precision."""
    kinds = {"d": float, "D": float}
    return {one: np.empty(_SHAPES[one], kinds.get(one, index)) for one in letters}


class Pairs:
    """The pairs nearer than a limit, in double precision; ``pairs["i"]`` is the array of i.

    limit: the largest cut-off. of_pair: a function that returns the cut-offs of pairs (i, j), or
    None where the limit is that of all. closed: pairs exactly at the limit belong to it. squares:
    squares of distances are compared, not distances. The rest is that of ``search``.
    """

    def __init__(self, points, limit, letters, *, other=None, cell=None, pbc=False, of_pair=None,
                 closed=False, squares=True, **how):  # fmt: skip
        self._points, self._other = points, points if other is None else other
        self._cell, self._closed, self._squares = cell, closed, squares
        if not (limit > 0 or closed and limit == 0):
            self._arrays = no_pairs(letters)
            return
        for what, of in (("point", points), ("other point", other)):
            if of is not None and not np.isfinite(of).all():
                place = np.isfinite(of).all(axis=1).argmin()
                raise ValueError(f"{what} {place} is not finite: its coordinates are {of[place]}")
        reach = max(map(_extent, (points, self._other)))
        slack = _SLACK * (limit + reach)
        where = dict(other=other, cell=cell, pbc=pbc, **how)
        needed = "".join(dict.fromkeys("ij" * (of_pair is not None) + letters + "d"))
        self._arrays = dict(zip(needed, search(points, limit + slack, needed, **where)))
        if not self._settled(limit, slack, of_pair):
            # Some pairs need their images to be decided, which few calls ask for.
            needed = "".join(dict.fromkeys("ijS" + needed))
            self._arrays = dict(zip(needed, search(points, limit + slack, needed, **where)))
            self._settled(limit, slack, of_pair)

    def __getitem__(self, letter):
        return self._arrays[letter]

    def keep(self, mask):
        """Drops the pairs that are not in a mask, or brings all into an order."""
        self._arrays = {letter: array[mask] for letter, array in self._arrays.items()}

    def _settled(self, limit, slack, of_pair):
        """Drops the pairs beyond the cut-offs; returns False if that needs their images."""
        d = self._arrays["d"]
        if not len(d) or of_pair is None and d.max() < limit - slack:
            return True
        if of_pair is not None:
            limit = of_pair(self._arrays["i"], self._arrays["j"])
        within = d < limit - slack
        doubtful = np.flatnonzero(~within & (d <= limit + slack))
        if len(doubtful):
            if "S" not in self._arrays:
                return False
            limit = np.broadcast_to(limit, d.shape)[doubtful]
            within[doubtful] = self._by_formula(doubtful, limit)
        self.keep(within)
        return True

    def _by_formula(self, some, limit):
        i, j, S = (self._arrays[letter][some] for letter in "ijS")
        D = self._other[j] - self._points[i]
        if self._cell is not None:
            D = D + S.dot(np.asarray(self._cell, float))
        d = np.sum(D * D, axis=1)
        if self._squares:
            limit = np.where(limit >= 0, limit * limit, -1.0)
        else:
            d = np.sqrt(d)
        return d <= limit if self._closed else d < limit


def _extent(points):
    return 2.0 * float(abs(points).max()) if len(points) else 0.0


def with_selves(pairs, letters, own):
    """Arrays for the letters with these points as their own neighbours, in the order of i."""
    own = np.asarray(own, np.int64)
    order = np.argsort(np.concatenate([pairs["i"], own]), kind="stable")
    of_self = dict(no_pairs("SdD"), i=own, j=own)
    found = {}
    for letter in letters:
        some = of_self[letter]
        if letter not in "ij":
            some = np.zeros((len(own), *some.shape[1:]), pairs[letter].dtype)
        found[letter] = np.concatenate([pairs[letter], some])[order]
    return found


def nearest_images(i, j, d):
    """The places of the pairs (i, j) that have the smallest distance of all images, in the order of
    (i, j)."""
    order = np.lexsort((d, j, i))
    i, j = i[order], j[order]
    first = np.ones(len(i), bool)
    first[1:] = (i[1:] != i[:-1]) | (j[1:] != j[:-1])
    return order[first]


def has_one_image(radius, cell, pbc):
    """Whether no two images of a point can be within the radius of another: it is below half the
    distance between any two opposite faces of the cell."""
    pbc = np.broadcast_to(pbc, 3)
    if not pbc.any():
        return True
    # Along open axes the cell may have no vector.
    inverse = np.linalg.pinv(np.asarray(cell, float)[pbc])
    return 2.001 * radius < 1.0 / np.linalg.norm(inverse, axis=0).max()


def diameter(points, other, cell, pbc):
    """A distance beyond which no point has a nearest image of another one."""
    both = np.concatenate([points, other]) if len(points) and len(other) else np.zeros((1, 3))
    pbc = np.broadcast_to(pbc, 3)
    # The nearest image is within half the vectors that repeat, if points differ along these alone.
    along = np.linalg.norm(np.asarray(cell, float)[pbc], axis=1).sum() if pbc.any() else 0.0
    open_axes = np.ptp(both, axis=0).astype(float)
    if pbc.any() and not _is_diagonal(cell):
        return along + float(np.linalg.norm(open_axes))
    return 1.001 * (along / 2 + float(np.linalg.norm(open_axes[~pbc]))) + _MIN_RADIUS


def _is_diagonal(cell):
    cell = np.asarray(cell)
    return not np.any(cell - np.diag(np.diag(cell)))


def nearest(queries, points, k, reach, within, own=0):
    """The k nearest points of each of the queries, as arrays (i, j, d, ...) in the order of
    (i, d, j).

    queries, points: positions. reach: the largest radius. within: a function of the numbers of
    queries and a radius that returns (i, j, d, ...) of all pairs at most the radius apart, or of
    the k nearest, where i counts the given queries and no pair comes twice. own: how many points
    near each query within() leaves out.
    """
    open_queries, radius = np.arange(len(queries)), 0.0
    parts = []
    while len(open_queries) or not parts:
        # Small at first and doubled for queries that have too few: where points are in clusters, a
        # radius by the mean density would find most of them for each other.
        some = _distance_of_kth(queries[open_queries], points, k + own)
        radius = min(max(2 * radius, some, reach * 2.0**-60), reach)
        i, *rest = within(open_queries, radius)
        enough = np.bincount(i, minlength=len(open_queries)) >= k
        if not radius < reach:
            enough[:] = True
        done = enough[i]
        parts.append([open_queries[i[done]], *(array[done] for array in rest)])
        open_queries = open_queries[~enough]
    i, j, d, *rest = (np.concatenate(arrays) for arrays in zip(*parts))
    order = np.lexsort((j, d, i))
    ranks = np.arange(len(i)) - np.searchsorted(i[order], i[order])
    order = order[ranks < k]
    return [array[order] for array in (i, j, d, *rest)]


# Queries whose neighbours are looked for by brute force, to choose a radius.
_SAMPLE = 16


def _distance_of_kth(queries, points, k):
    """A radius within which some of the queries have k points: a few, or all if they are few."""
    if not 0 < k <= len(points) or not len(queries):
        return 0.0
    some = queries[np.linspace(0, len(queries) - 1, min(len(queries), _SAMPLE)).astype(int)]
    # By the largest coordinate, whose square cannot overflow. That of a distance is at most
    # the root of three times as large.
    kth = [np.partition(np.abs(points - one).max(axis=1), k - 1)[k - 1] for one in some]
    return 1.7321 * float(max(kth) if len(queries) <= _SAMPLE else min(kth))


def as_points(given, what="positions"):
    """An array of doubles of shape (n, 3)."""
    points = np.asarray(given, dtype=float)
    if points.ndim != 2 or points.shape[1] != 3:
        if points.size:
            raise ValueError(f"{what} must have the shape (n, 3), not {points.shape}")
        points = points.reshape(0, 3)
    return points


def assembled(arrays, quantities):
    """The arrays of the letters as ASE and matscipy return them: a tuple, or one array for one
    letter."""
    found = tuple(arrays[letter] for letter in quantities)
    return found[0] if len(found) == 1 else found
