"""Lennard-Jones forces and steps of OpenMM, on the system of the bench `md`.

    python benches/beside_openmm.py [--atoms 1e6] [--platform CUDA|CPU|Reference]

Needs OpenMM (`pip install openmm[cuda13]`, or `openmm[cuda12]`). To be run on the machine and right
after `cargo bench -p nearfield-md --bench md -- --device gpu`, whose fluid this is: density 0.8442,
cut-off 2.5, melted from a simple cubic crystal at temperature 1.44 by 500 steps of 0.002, in single
precision. Its units of length, energy and mass are taken as 1 nm, 1 kJ/mol and 1 u, so that of time is
1 ps and none has to be converted. OpenMM chooses the skin of its lists itself.
"""

import argparse
import statistics
import time

import numpy
import openmm
from openmm import unit

DENSITY, CUTOFF, STEP, HEAT = 0.8442, 2.5, 0.002, 1.44


def fluid(atoms):
    side = round(atoms ** (1 / 3))
    length = (side**3 / DENSITY) ** (1 / 3)
    axis = (numpy.arange(side) + 0.5) * (length / side)
    z, y, x = numpy.meshgrid(axis, axis, axis, indexing="ij")
    positions = numpy.stack([x.ravel(), y.ravel(), z.ravel()], axis=1)
    system = openmm.System()
    system.setDefaultPeriodicBoxVectors((length, 0, 0), (0, length, 0), (0, 0, length))
    force = openmm.NonbondedForce()
    force.setNonbondedMethod(openmm.NonbondedForce.CutoffPeriodic)
    force.setCutoffDistance(CUTOFF)
    force.setUseDispersionCorrection(False)
    for _ in range(len(positions)):
        system.addParticle(1.0)
        force.addParticle(0.0, 1.0, 1.0)
    system.addForce(force)
    return system, positions


def milliseconds(context, integrator, dt, steps, repetitions):
    """Median time of a step."""
    integrator.setStepSize(dt)
    spent = []
    for _ in range(repetitions + 1):
        context.getState(energy=True)  # waits
        begin = time.perf_counter()
        integrator.step(steps)
        context.getState(positions=True)  # waits
        spent.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(spent[1:])


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--atoms", type=float, default=1e6)
    options.add_argument("--platform", default="CUDA")
    options = options.parse_args()
    system, positions = fluid(options.atoms)
    atoms = len(positions)
    integrator = openmm.VerletIntegrator(STEP)
    platform = openmm.Platform.getPlatformByName(options.platform)
    settings = {"Precision": "single"} if options.platform in ("CUDA", "OpenCL", "HIP") else {}
    context = openmm.Context(system, integrator, platform, settings)
    context.setPositions(positions)
    random = numpy.random.default_rng(1)
    velocities = random.normal(0, HEAT**0.5, positions.shape)
    context.setVelocities(velocities - velocities.mean(axis=0))
    integrator.step(500)

    state = context.getState(energy=True)
    kinetic = state.getKineticEnergy().value_in_unit(unit.kilojoule_per_mole)
    potential = state.getPotentialEnergy().value_in_unit(unit.kilojoule_per_mole)
    print(f"OpenMM {openmm.version.version}, {options.platform}, {atoms} atoms")
    print(
        f"temperature {2 * kinetic / (3 * atoms - 3):.3f}, potential energy of an atom {potential / atoms:.4f}"
    )
    # Both times include reading the positions, so their difference does not.
    for name, dt in (("at rest, forces and no new lists", 1e-9), ("in motion", STEP)):
        short, long = (
            milliseconds(context, integrator, dt, steps, 5) for steps in (20, 420)
        )
        print(f"lj/{atoms}/step, {name:<34} {(long - short) / 400:9.4f} ms")


if __name__ == "__main__":
    main()
