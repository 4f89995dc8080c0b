"""A picture of how many neighbours the points of a cloud have, and of how often.

    python examples/embedding/picture.py neighbours.png
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import nearfield
import numpy as np

# %% Two clusters in a periodic box.
random = np.random.default_rng(7)
points = np.concatenate(
    [
        random.normal((0.3, 0.4, 0.5), 0.08, (15_000, 3)),
        random.normal((0.75, 0.6, 0.5), 0.12, (15_000, 3)),
        random.random((10_000, 3)),
    ]
).astype(np.float32)
points %= 1.0

# %% Lists, and the sparse matrix that they are.
lists = nearfield.neighbors(points, 0.03, box=(1, 1, 1))
offsets, indices = lists.csr()
print(f"{len(lists)} points, {lists.pairs} pairs, {lists.count.mean():.1f} neighbours on average")
assert offsets[-1] == lists.pairs and len(indices) == lists.pairs

# %% The mean position of a point's neighbours, by NumPy alone, for a point of the first cluster.
print("around", points[0], "the neighbours are at", points[lists[0]].mean(axis=0))

# %% The picture.
figure, (where, often) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
slab = np.abs(points[:, 2] - 0.5) < 0.05
dots = where.scatter(
    points[slab, 0], points[slab, 1], c=lists.count[slab], s=2, cmap="viridis", norm="asinh"
)
where.set(xlabel="x", ylabel="y", title="a slab around z = 0.5", aspect="equal")
figure.colorbar(dots, ax=where, label="neighbours within 0.03")
often.hist(lists.count, bins=60, color="tab:purple")
often.set(xlabel="neighbours", ylabel="points", yscale="log", title="how often")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "neighbours.png", dpi=150)
