"""The radial distribution function and the hydrogen-bonded clusters of a box of water.

Needs NumPy; SciPy for the clusters.

    python examples/python/water.py
"""

import nearfield
import numpy as np

random = np.random.default_rng(2)

# %% 1,000 molecules at the density of water, placed at random, no two oxygens closer than 2.55 Å.
molecules, closest = 1000, 2.55
length = (molecules / 0.0334) ** (1 / 3)
cell = np.eye(3) * length
oxygens = np.empty((0, 3))
while len(oxygens) < molecules:
    tried = np.concatenate([oxygens, random.uniform(0, length, (molecules, 3))])
    # Each pair once, i < j: of two that are too close the later one is left out.
    i, j = nearfield.edges(tried, closest, "ij", cell=cell, pbc=True, half=True)
    left_out = np.zeros(len(tried), bool)
    left_out[j[j >= len(oxygens)]] = True
    oxygens = tried[~left_out][:molecules]

# Hydrogens 0.96 Å from their oxygen, at an angle of 104.5°, in random directions.
axes = np.linalg.qr(random.normal(size=(molecules, 3, 3)))[0]
half_angle = np.radians(104.5) / 2
arms = [(np.cos(half_angle), sign * np.sin(half_angle), 0) for sign in (1, -1)]
hydrogens = (oxygens[:, None] + 0.96 * np.einsum("hk,mkd->mhd", arms, axes)).reshape(-1, 3)

# %% The radial distribution function of oxygen: pairs per shell over those of an ideal gas.
(d,) = nearfield.edges(oxygens, 8.0, "d", cell=cell, pbc=True)
counts, bounds = np.histogram(d, bins=40, range=(0, 8))
shells = 4 / 3 * np.pi * np.diff(bounds**3)
g = counts / (molecules * shells * molecules / length**3)
for lower, upper, value in zip(bounds[8:], bounds[9:], g[8:28]):
    print(f"{lower:.1f} to {upper:.1f} Å  {value:5.2f}  {'#' * round(20 * value)}")
assert g[bounds[1:] <= closest].sum() == 0 and abs(g[-10:].mean() - 1) < 0.05

# %% Hydrogen bonds: a hydrogen within 2.2 Å of the oxygen of another molecule.
atoms = np.concatenate([oxygens, hydrogens])
molecule = np.concatenate([np.arange(molecules), np.arange(2 * molecules) // 2])
i, j = nearfield.edges(atoms, 2.2, "ij", cell=cell, pbc=True)
bonds = (i < molecules) & (j >= molecules) & (molecule[i] != molecule[j])
acceptors, donors = molecule[i[bonds]], molecule[j[bonds]]
print(f"{len(donors) / molecules:.2f} hydrogen bonds for each molecule")

# %% Clusters: molecules that are connected by bonds.
try:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
except ImportError:
    print("clusters need SciPy")
else:
    graph = coo_array((np.ones(len(donors)), (acceptors, donors)), shape=(molecules, molecules))
    clusters, of_molecule = connected_components(graph, directed=False)
    print(f"{clusters} clusters, the largest of {np.bincount(of_molecule).max()} molecules")
    assert 1 < clusters < molecules
