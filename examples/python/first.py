"""The first list in Python: points in a periodic box, and the neighbours of every point."""

import numpy as np
import nearfield

points = np.random.default_rng(1).random((10_000, 3))
lists = nearfield.neighbors(points, 0.05, box=(1, 1, 1))
print(f"point 0 is near {lists[0]}")
print(f"{lists.count.mean():.1f} neighbours on average")

# The radial distribution function: pairs by distance, relative to those of an ideal gas.
i, j, d = nearfield.edges(points, 0.05, "ijd", cell=np.eye(3), pbc=True)
pairs, edges = np.histogram(d, bins=10, range=(0, 0.05))
shells = 4 / 3 * np.pi * (edges[1:] ** 3 - edges[:-1] ** 3)
g = pairs / (len(points) ** 2 * shells)
print("g(r):", np.round(g, 2))
assert len(i) == lists.count.sum() and abs(g[-1] - 1) < 0.1
