"""The density of a fluid by smoothed particle hydrodynamics, in three lines.

Needs NumPy.

    python examples/python/sph_density.py
"""

import nearfield
import numpy as np

# Water of 1000 kg/m³ in a periodic box of 1 m, as particles on a lattice with noise.
spacing = 1 / 32
lattice = np.indices((32, 32, 32)).reshape(3, -1).T * spacing
positions = (lattice + np.random.default_rng(1).normal(0, 0.02 * spacing, lattice.shape)) % 1
mass = np.full(len(positions), 1000 * spacing**3)

# The kernel of Wendland reaches to 2.6 spacings. The engine sums over neighbours; every particle
# adds its own mass at distance 0.
support = 2.6 * spacing
engine = nearfield.Engine(support, box=(1, 1, 1), precision="f64")
engine.add_points(positions)
density = engine.sph_density(mass) + mass * 21 / (2 * np.pi * support**3)

print(f"{len(positions)} particles: density {density.mean():.1f} ± {density.std():.1f} kg/m³")
assert abs(density.mean() - 1000) < 20
