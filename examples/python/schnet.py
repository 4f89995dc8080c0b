"""A small SchNet that learns the energy and the forces of Lennard-Jones crystals with PyTorch.

Needs PyTorch 2.5 or later. Takes some seconds on a CPU, and runs on a GPU if there is one.

    python examples/python/schnet.py

The model follows K. T. Schütt et al., SchNet, J. Chem. Phys. 148, 241722 (2018),
doi:10.1063/1.5019779, with one kind of atom. Forces are derivatives of the energy by the positions,
and training differentiates them once more.
"""

import nearfield.torch
import torch
from torch import nn

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
CUTOFF = 2.0


class Interaction(nn.Module):
    """Sums neighbours' features, weighted by a function of the distance that is learned."""

    def __init__(self, features, gaussians):
        super().__init__()
        self.filter = nn.Sequential(
            nn.Linear(gaussians, features), nn.Softplus(), nn.Linear(features, features)
        )
        self.before = nn.Linear(features, features, bias=False)
        self.after = nn.Sequential(
            nn.Linear(features, features), nn.Softplus(), nn.Linear(features, features)
        )

    def forward(self, x, i, j, rows, window):
        messages = self.before(x)[j] * self.filter(rows) * window[:, None]
        return x + self.after(torch.zeros_like(x).index_add(0, i, messages))


class SchNet(nn.Module):
    def __init__(self, features=16, gaussians=16, interactions=2):
        super().__init__()
        self.register_buffer("centres", torch.linspace(0.7, CUTOFF, gaussians))
        self.atom = nn.Parameter(torch.randn(features))
        self.interactions = nn.ModuleList(
            Interaction(features, gaussians) for _ in range(interactions)
        )
        self.energy = nn.Sequential(
            nn.Linear(features, features), nn.Softplus(), nn.Linear(features, 1)
        )

    def forward(self, positions, cells, batch_idx):
        """The energy of every system."""
        i, j, d = nearfield.torch.edges(
            positions, CUTOFF, "ijd", cell=cells, pbc=True, batch_idx=batch_idx
        )
        width = self.centres[1] - self.centres[0]
        rows = torch.exp(-0.5 * ((d[:, None] - self.centres) / width) ** 2)
        window = 0.5 * (1 + torch.cos(torch.pi * d / CUTOFF))
        x = self.atom.expand(len(positions), -1)
        for interaction in self.interactions:
            x = interaction(x, i, j, rows, window)
        return d.new_zeros(len(cells)).index_add(0, batch_idx, self.energy(x)[:, 0])


def lennard_jones(positions, cells, batch_idx):
    """What is to be learned: 4 (d⁻¹² − d⁻⁶) over pairs, 0 at the cut-off."""
    i, d = nearfield.torch.edges(
        positions, CUTOFF, "id", cell=cells, pbc=True, batch_idx=batch_idx, half=True
    )
    potential = lambda d: 4 * (d**-12 - d**-6)
    pairs = potential(d) - potential(torch.tensor(CUTOFF))
    return d.new_zeros(len(cells)).index_add(0, batch_idx[i], pairs)


def with_forces(energy, positions, *systems):
    positions = positions.detach().requires_grad_()
    energies = energy(positions, *systems)
    (slope,) = torch.autograd.grad(energies.sum(), positions, create_graph=True)
    return energies, -slope


def crystals(systems, side=2):
    """Face-centred crystals of 4 side³ atoms, strained and shaken."""
    corners = torch.cartesian_prod(*[torch.arange(side)] * 3).float()
    basis = torch.tensor([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])
    fractions = (corners[:, None] + basis).reshape(-1, 3) / side
    cells = 1.65 * side * (torch.eye(3) + 0.03 * torch.randn(systems, 3, 3))
    positions = fractions @ cells + 0.03 * torch.randn(systems, len(fractions), 3)
    batch_idx = torch.arange(systems).repeat_interleave(len(fractions))
    return [of.to(device) for of in (positions.reshape(-1, 3), cells, batch_idx)]


def error(model, systems, forces):
    found = with_forces(model, *systems)[1]
    return ((found - forces) ** 2).mean().sqrt().item()


training, test = crystals(12), crystals(6)
energies, forces = (of.detach() for of in with_forces(lennard_jones, *training))
expected = with_forces(lennard_jones, *test)[1].detach()
atoms = len(training[0]) // len(energies)

model = SchNet().to(device)
typical = expected.square().mean().sqrt().item()
before = error(model, test, expected)
steps = 120
optimizer = torch.optim.Adam(model.parameters(), 3e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps)
for step in range(steps):
    found, slopes = with_forces(model, *training)
    of_energy = ((found - energies - (found - energies).mean()) / atoms).square().mean()
    loss = of_energy + (slopes - forces).square().mean() / typical**2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()

after = error(model, test, expected)
print(f"on {device}: forces are {typical:.2f} (root mean square) in {len(test[1])} other crystals")
print(f"error of the forces: {before:.2f} before training, {after:.2f} after {steps} steps")
assert after < 0.25 * before
