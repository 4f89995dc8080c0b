"""The k-d trees of ``scipy.spatial``, by Nearfield.

>>> from nearfield.compat.scipy import KDTree
>>> KDTree(points).query_ball_point(positions, 0.5)

``KDTree`` and ``cKDTree`` have the methods of SciPy 1.17 with their signatures, results,
types and errors. It needs NumPy only, and SciPy for sparse matrices. Points with more than three
coordinates are searched by the first three, and all coordinates decide: exact, but slow where there
are many points within the radius by three coordinates. What differs: there is no tree (``tree``,
``indices`` and ``size`` do not exist; ``leafsize``, ``compact_nodes`` and ``balanced_tree`` do
nothing); results are exact whatever ``eps``; neighbours at equal distances come in the order of
their index; the order of ``query_pairs`` and of lists is ascending. Every call searches anew, so
thousands of calls with one point each are slow: give all points to one call. ``count_neighbors``
and ``sparse_distance_matrix`` hold all pairs within the largest radius in memory.
"""

import numpy as np

from ._common import Pairs, diameter, has_one_image, nearest, nearest_images

__all__ = ["KDTree", "cKDTree"]


# Boxes from the origin up to which a search counts images. Queries beyond are wrapped.
_MAX_BOXES = 2.0**30


class KDTree:
    """See ``scipy.spatial.KDTree``."""

    # Of an index that is returned alone.
    _index = np.intp

    def __init__(
        self,
        data,
        leafsize=10,
        compact_nodes=True,
        copy_data=False,
        balanced_tree=True,
        boxsize=None,
    ):
        data = _real(data)
        if data.ndim != 2:
            raise ValueError(
                "data must be of shape (n, m), where there are n points of dimension m"
            )
        if not np.isfinite(data).all():
            raise ValueError("data must be finite, check for nan or inf values")
        if leafsize < 1:
            raise ValueError("leafsize must be at least 1")
        self.n, self.m = data.shape
        self.data = np.array(data) if copy_data else data
        self.leafsize, self.boxsize = leafsize, None
        self.mins = data.min(axis=0) if self.n else np.zeros(self.m)
        self.maxes = data.max(axis=0) if self.n else np.zeros(self.m)
        self._lengths = np.zeros(self.m)
        if boxsize is not None:
            self.boxsize = np.broadcast_to(np.asarray(boxsize, float), (self.m,)).copy()
            self._lengths = self.boxsize
            repeats = self.boxsize > 0
            if (data >= self.boxsize)[:, repeats].any():
                raise ValueError(
                    "Some input data are greater than the size of the periodic box."
                )
            if (data < 0)[:, repeats].any():
                raise ValueError("Negative input data are outside of the periodic box.")

    def query(self, x, k=1, eps=0.0, p=2.0, distance_upper_bound=np.inf, workers=1):
        """The k nearest points to each of x, nearer than the bound."""
        if k is None:
            raise ValueError("k must be an integer or a sequence of integers")
        x, flat = self._queries(x)
        ranks = np.arange(1, int(k) + 1) if np.ndim(k) == 0 else np.asarray(k, int)
        if len(ranks) and ranks.min() < 1 or np.ndim(k) == 0 and k < 1:
            raise ValueError("k must be positive" if np.ndim(k) else "k must be at least 1")
        count = int(ranks.max(initial=0))
        d = np.full((len(flat), count), np.inf)
        places = np.full((len(flat), count), self.n, np.intp)
        # Nothing is nearer than NaN.
        if len(flat) and self.n and count and not np.isnan(distance_upper_bound):
            # What lies at the bound exactly does not belong to it.
            i, j, found = self._nearest(flat, count, p, distance_upper_bound, workers)
            rank = np.arange(len(i)) - np.searchsorted(i, i)
            d[i, rank], places[i, rank] = found, j
        shape = x.shape[:-1] + (() if np.ndim(k) == 0 and k == 1 else (len(ranks),))
        d, places = (array[:, ranks - 1].reshape(shape) for array in (d, places))
        return (d, places) if shape else (float(d), self._index(places))

    def query_ball_point(
        self, x, r, p=2.0, eps=0.0, workers=1, return_sorted=None, return_length=False
    ):
        """The points at most r from each of x: lists of indices, or their lengths."""
        x, flat = self._queries(x)
        radii = np.broadcast_to(np.asarray(r, float), x.shape[:-1]).reshape(-1)
        i, j, _ = self._pairs(flat, radii, p, workers)
        ends = np.searchsorted(i, np.arange(len(flat) + 1))
        if return_length:
            lengths = np.diff(ends).astype(np.intp).reshape(x.shape[:-1])
            return lengths if lengths.ndim else lengths[()]
        return _lists(j, ends, x.shape[:-1])

    def query_ball_tree(self, other, r, p=2.0, eps=0.0):
        """For each point of this tree a list of the points of the other one at most r away."""
        self._fits(other)
        i, j, _ = other._pairs(self.data, np.full(self.n, float(r)), p)
        ends = np.searchsorted(i, np.arange(self.n + 1))
        return list(_lists(j, ends, (self.n,)))

    def query_pairs(self, r, p=2.0, eps=0.0, output_type="set"):
        """The pairs i < j of points at most r apart, as a set of tuples or an array."""
        if output_type not in ("set", "ndarray"):
            raise ValueError("Invalid output type")
        i, j, _ = self._pairs(self.data, np.full(self.n, float(r)), p)
        pairs = np.stack([i, j], axis=1)[i < j].astype(np.intp, copy=False)
        return pairs if output_type == "ndarray" else set(map(tuple, pairs.tolist()))

    def count_neighbors(self, other, r, p=2.0, weights=None, cumulative=True):
        """The number, or the sum of weights, of pairs of both trees at most r apart."""
        self._fits(other)
        bounds = np.asarray(r, float)
        if bounds.ndim > 1:
            raise ValueError(
                "r must be either a single value or a one-dimensional array of values"
            )
        edges = np.atleast_1d(bounds)
        if not cumulative and (np.diff(edges) < 0).any():
            raise ValueError("r must be non-decreasing in non-cumulative mode.")
        # SciPy sorts NaN behind all distances.
        edges = np.where(np.isnan(edges), np.inf, _bounds(edges, p))
        first, second = self._weights(other, weights)
        most = float(edges.max(initial=-1.0))
        i, j, d = other._pairs(self.data, np.full(self.n, most), p)
        # Of every pair the first bound that holds it, among the bounds in order.
        order = np.argsort(edges, kind="stable")
        place = np.searchsorted(edges[order], d)
        # A pair at its bound exactly was found by squares, whose roots may be a step above it.
        place = np.minimum(place, len(edges) - 1) if len(edges) else place
        amount = None if weights is None else first[i] * second[j]
        counts = np.bincount(place, amount, minlength=len(edges))
        result = np.empty(len(edges), counts.dtype if weights is not None else np.intp)
        result[order] = np.cumsum(counts) if cumulative else counts
        return result if bounds.ndim else result[0]

    def sparse_distance_matrix(self, other, max_distance, p=2.0, output_type="dok_matrix"):
        """The distances of the pairs of both trees at most max_distance apart."""
        self._fits(other)
        i, j, d = other._pairs(self.data, np.full(self.n, float(max_distance)), p)
        if output_type == "ndarray":
            table = np.empty(len(i), [("i", np.intp), ("j", np.intp), ("v", np.float64)])
            table["i"], table["j"], table["v"] = i, j, d
            return table
        if output_type == "dict":
            return dict(zip(zip(i.tolist(), j.tolist()), d.tolist()))
        if output_type not in ("dok_matrix", "coo_matrix"):
            raise ValueError("Invalid output type")
        from scipy.sparse import coo_matrix

        matrix = coo_matrix((d, (i, j)), shape=(self.n, other.n))
        return matrix if output_type == "coo_matrix" else matrix.todok()

    def _queries(self, x):
        """Positions as they were given, and as rows."""
        x = _real(x)
        if x.ndim == 0 or x.shape[-1] != self.m:
            raise ValueError(
                f"x must consist of vectors of length {self.m} but has shape {x.shape}"
            )
        if not np.isfinite(x).all():
            raise ValueError("'x' must be finite, check for nan or inf values")
        flat = x.reshape(-1, self.m)
        far = np.abs(flat) > _MAX_BOXES * np.where(self._lengths > 0, self._lengths, np.inf)
        if far.any():
            flat = np.where(far, np.mod(flat, np.where(far, self._lengths, 1.0)), flat)
        return x, flat

    def _fits(self, other):
        if not isinstance(other, KDTree):
            raise TypeError(f"other must be a KDTree of nearfield.compat, not {type(other)}")
        if other.m != self.m:
            raise ValueError("Trees passed have different dimensionality")
        if not np.array_equal(self._lengths, other._lengths):
            raise ValueError("Trees passed have different boxsize")

    def _weights(self, other, weights):
        if weights is None:
            return None, None
        if not isinstance(weights, tuple):
            if other is not self:
                raise ValueError(
                    "Two different trees are used. Specify weights for both in a tuple."
                )
            weights = (weights, weights)
        if len(weights) != 2:
            raise ValueError("Weights must be a tuple of two")
        found = []
        for of, tree in zip(weights, (self, other)):
            of = np.ones(tree.n) if of is None else np.asarray(of, float)
            if of.shape != (tree.n,):
                raise ValueError("Number of weights differ from the number of data points")
            found.append(of)
        return found

    def _pairs(self, x, radii, p, workers=-1, closed=True, k=None):
        """Pairs (i, j, d) of rows of x and points, in the order of (i, j), each at most its radius
        apart by the p-norm. k: those beyond the k nearest may be left out, and the order be that of
        i alone."""
        if workers is not None and workers != -1 and workers <= 0:
            raise ValueError(f"Invalid number of workers {workers}, must be -1 or > 0")
        if not p >= 1:
            raise ValueError("Only p-norms with 1<=p<=infinity permitted")
        points, others = _three(x), _three(self.data)
        lengths = _three(self._lengths[None])[0]
        where = dict(cell=np.diag(lengths), pbc=lengths > 0)
        radii = _bounds(radii, p)
        # NaN as the radius of one query leaves those of others as they are.
        most = float(np.nanmax(radii, initial=-1.0))
        if not (most >= 0 and len(x) and self.n):
            return np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0)
        # Within a distance by the norm, the Euclidean distance is at most this many times longer.
        stretch = max(1.0, min(self.m, 3) ** (0.5 - 1.0 / p))
        reach = min(stretch * most, diameter(points, others, **where))
        by_distance = p == 2 and self.m <= 3
        own = by_distance and not (radii >= reach).all()
        one_image = has_one_image(reach, **where)
        nearest_only = k if k is not None and by_distance and one_image and not own else None
        found = Pairs(
            points,
            reach,
            "ijd",
            other=others,
            of_pair=(lambda i, j: np.minimum(radii, reach)[i]) if own else None,
            closed=closed or reach < most or not by_distance,
            sorted=nearest_only is None,
            k=nearest_only,
            threads=max(workers or 1, 0),
            **where,
        )
        i, j, d = found["i"], found["j"], found["d"]
        if not by_distance:
            d = self._distances(self.data[j] - x[i], p)
            within = d <= radii[i] if closed else d < radii[i]
            i, j, d = i[within], j[within], d[within]
        if not one_image:
            first = nearest_images(i, j, d)
            i, j, d = i[first], j[first], d[first]
        return i, j, d

    def _distances(self, D, p):
        """By the p-norm, of the nearest images along every axis."""
        repeats = self._lengths > 0
        lengths = self._lengths[repeats]
        D[:, repeats] -= np.round(D[:, repeats] / lengths) * lengths
        return np.linalg.norm(D, p, axis=1)

    def _nearest(self, x, k, p, bound, workers):
        # No distance by any norm is longer than the sum over all axes.
        both = np.concatenate([x, self.data])
        reach = min(float(bound), 1.001 * float(np.ptp(both, axis=0).sum()) + 1e-6)

        def within(queries, radius):
            radii = np.full(len(queries), radius)
            return self._pairs(x[queries], radii, p, workers, closed=radius < bound, k=k)

        return nearest(x, self.data, k, reach, within)


class cKDTree(KDTree):  # noqa: N801 - SciPy's name
    """See ``scipy.spatial.cKDTree``, which is KDTree but for the default of
    ``leafsize`` and the type of a single index."""

    _index = int

    def __init__(
        self,
        data,
        leafsize=16,
        compact_nodes=True,
        copy_data=False,
        balanced_tree=True,
        boxsize=None,
    ):
        super().__init__(data, leafsize, compact_nodes, copy_data, balanced_tree, boxsize)


def _real(given):
    array = np.asarray(given)
    if array.dtype.kind == "c":
        raise TypeError("KDTree does not work with complex data")
    return np.ascontiguousarray(array, dtype=float)


def _three(points):
    """The first three coordinates, zeros where there are fewer."""
    return np.pad(points[:, :3], ((0, 0), (0, max(0, 3 - points.shape[1]))))


def _bounds(radii, p):
    """Radii as SciPy compares them: raised to the power p, they lose their sign if p is even."""
    return np.abs(radii) if p % 2 == 0 else radii


def _lists(j, ends, shape):
    """Lists of indices by query: of one query a list, else an array of lists."""
    j = j.tolist()
    lists = np.empty(len(ends) - 1, object)
    for k, (begin, end) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist())):
        lists[k] = j[begin:end]
    return lists.reshape(shape) if shape else lists[0]
