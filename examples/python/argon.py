"""Molecular dynamics of an argon crystal with ASE and neighbour lists of Nearfield.

Needs ASE.

    python examples/python/argon.py
"""

import numpy as np
from ase import units
from ase.build import bulk
from ase.calculators.calculator import Calculator, all_changes
from ase.md.velocitydistribution import Stationary
from ase.md.verlet import VelocityVerlet

# In the place of ase.neighborlist.
from nearfield.compat.ase import neighbor_list


class LennardJones(Calculator):
    """Pairs within the cut-off, where their energy is 0."""

    implemented_properties = ["energy", "forces"]

    def __init__(self, sigma, epsilon, cutoff):
        super().__init__()
        self.sigma, self.epsilon, self.cutoff = sigma, epsilon, cutoff

    def calculate(self, atoms=None, properties=("energy",), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        i, d, D = neighbor_list("idD", atoms, self.cutoff)
        shape = lambda d: (self.sigma / d) ** 12 - (self.sigma / d) ** 6
        # Every pair comes twice, so half of its energy is for each of its atoms.
        energy = 2 * self.epsilon * (shape(d) - shape(self.cutoff)).sum()
        slope = 4 * self.epsilon * (6 * (self.sigma / d) ** 6 - 12 * (self.sigma / d) ** 12) / d
        forces = np.empty((len(atoms), 3))
        for axis in range(3):
            forces[:, axis] = np.bincount(i, slope * D[:, axis] / d, len(atoms))
        self.results = {"energy": energy, "forces": forces}


atoms = bulk("Ar", "fcc", a=5.5, cubic=True) * (4, 4, 4)
atoms.calc = LennardJones(sigma=3.4, epsilon=0.0103, cutoff=8.5)
spread = np.sqrt(atoms.get_masses() * 120 * units.kB)[:, None]
atoms.set_momenta(spread * np.random.default_rng(3).normal(size=(len(atoms), 3)))
Stationary(atoms)

before = atoms.get_total_energy()
steps = 200
dynamics = VelocityVerlet(atoms, timestep=4 * units.fs)
for _ in range(steps // 50):
    dynamics.run(50)
    time, kelvin = dynamics.get_time() / units.fs, atoms.get_temperature()
    print(f"{time:5.0f} fs  {kelvin:5.1f} K  total energy {atoms.get_total_energy():.4f} eV")
drift = abs(atoms.get_total_energy() - before) / len(atoms)
print(f"{len(atoms)} atoms: the energy has changed by {drift * 1e6:.1f} µeV an atom")
assert drift < 1e-4
