"""The neighbour queries of ``freud.locality``, by Nearfield.

>>> from nearfield.compat.freud import AABBQuery
>>> neighbors = AABBQuery(box, points).query(points, dict(r_max=2.0, exclude_ii=True)).toNeighborList()
>>> freud.density.RDF(100, 2.0).compute((box, points), neighbors=neighbors)

``AABBQuery`` and ``LinkCell`` are subclasses of those of freud 3, and differ in ``query()``: it
takes the same arguments, raises the same errors, and its results become lists of freud. Analyses of
freud that are given one of them with a dictionary of arguments search with freud's own code: give
them the list. What differs: Nearfield rounds a distance in float32 once less than freud, so pairs
exactly at ``r_max`` or ``r_min`` may be decided differently; points may lie outside the box.
``num_neighbors`` is exact: freud's ``AABBQuery`` stops at its last trial radius before ``r_max``,
and so misses some neighbours within it, and its ``LinkCell`` takes images by wrapping, which are
not always the nearest in tilted boxes.
"""

import numpy as np
from freud import locality as _freud
from freud import util as _util

from ._common import diameter, has_one_image, nearest, nearest_images, search

__all__ = ["AABBQuery", "LinkCell"]

# The number of neighbours of arguments that do not say it.
_UNSET = _freud._QueryArgs().num_neighbors


class _Query:
    def query(self, query_points, query_args):
        """The neighbours of positions: see ``freud.locality.NeighborQuery.query``."""
        points = _util._convert_array(np.atleast_2d(query_points), shape=(None, 3))
        return _Result(self, points, _freud._QueryArgs.from_dict(query_args))


class AABBQuery(_Query, _freud.AABBQuery):
    """See ``freud.locality.AABBQuery``."""


class LinkCell(_Query, _freud.LinkCell):
    """See ``freud.locality.LinkCell``."""


class _Result(_freud.NeighborQueryResult):
    """See ``freud.locality.NeighborQueryResult``."""

    def __iter__(self):
        i, j, d, _ = self._found()
        return iter(zip(i.tolist(), j.tolist(), d.tolist()))

    def toNeighborList(self, sort_by_distance=False):  # noqa: N802 - freud's name
        """The pairs as a ``freud.locality.NeighborList``, by (query point, point), or by (query
        point, distance)."""
        i, j, d, D = self._found()
        order = np.lexsort((j, d, i) if sort_by_distance else (d, j, i))
        return _freud.NeighborList.from_arrays(
            len(self._points), len(self._nq.points), i[order], j[order], D[order]
        )

    def _found(self):
        """Arrays (i, j, d, D) of all pairs."""
        # Of one point freud itself says what is wrong with the arguments.
        next(super().__iter__(), None)
        args, box = self._query_args, self._nq.box
        points = np.array(self._nq.points, np.float32)
        queries = np.array(self._points, np.float32)
        if box.is2D:
            points[:, 2] = queries[:, 2] = 0
        where = dict(cell=box.to_matrix().T, pbc=box.periodic)
        if box.is2D:
            where["pbc"] = np.array([*box.periodic[:2], False])
        by_number = args.mode == "nearest" or args.mode is None and args.num_neighbors != _UNSET

        own = int(args.exclude_ii)

        def within(some, radius):
            one_image = has_one_image(radius, **where)
            k = args.num_neighbors + own if by_number and one_image and args.r_min <= 0 else None
            i, j, d, D = search(
                queries[some], radius, "ijdD", other=points, strict=True, k=k, **where
            )
            if args.exclude_ii:
                i, j, d, D = (array[some[i] != j] for array in (i, j, d, D))
            if not one_image:
                first = nearest_images(i, j, d)
                i, j, d, D = (array[first] for array in (i, j, d, D))
            i, j, d, D = (array[d >= args.r_min] for array in (i, j, d, D))
            return i, j, d, D

        most = diameter(queries, points, **where)
        if not by_number:
            radius = args.r_max if has_one_image(args.r_max, **where) else min(args.r_max, most)
            return within(np.arange(len(queries)), radius)
        reach = min(most, args.r_max) if args.r_max > 0 else most
        return nearest(queries, points, args.num_neighbors, reach, within, own)
