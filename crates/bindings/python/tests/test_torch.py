"""Pairs for PyTorch: the same as those of NumPy, with derivatives, compiled and exported, on every
device that PyTorch sees."""

import doctest
import os
import shutil

import nearfield
import numpy as np
import pytest

if os.environ.get("NEARFIELD_REQUIRE_TORCH") != "1":
    pytest.importorskip("torch")
import nearfield.torch
import torch

DEVICES = ["cpu"]
needs_a_compiler = pytest.mark.skipif(
    shutil.which(os.environ.get("CXX", "g++")) is None
    and os.environ.get("NEARFIELD_REQUIRE_TORCH") != "1",
    reason="torch.compile finds no C++ compiler",
)
if torch.cuda.is_available():
    DEVICES.append("cuda")
REAL = torch.float64


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def crystal(points=24, seed=3, systems=None, dtype=REAL, device="cpu"):
    """Points about a tilted cell, or cells, that is not much larger than the radius of 0.4."""
    random = torch.Generator().manual_seed(seed)
    leading = () if systems is None else (systems,)
    numbers = lambda *shape: torch.rand(*shape, generator=random, dtype=REAL)
    cells = torch.eye(3, dtype=REAL) + 0.3 * (numbers(*leading, 3, 3) - 0.5)
    return (1.4 * numbers(points, 3) - 0.2).to(device, dtype), cells.to(device, dtype)


def numpy_edges(positions, *arguments, **keywords):
    """The pairs of NumPy, by the same arguments."""
    host = lambda given: given.cpu().numpy() if isinstance(given, torch.Tensor) else given
    keywords = {name: host(given) for name, given in keywords.items()}
    return nearfield.edges(host(positions), *map(host, arguments), index="int64", **keywords)


def agree(found, expected, ulps=8):
    """Integers are equal, and lengths as nearly as rounding in another order leaves them."""
    for one, other in zip(found, expected):
        other = torch.from_numpy(other)
        assert one.dtype == other.dtype and one.shape == other.shape
        if one.is_floating_point():
            torch.testing.assert_close(one.cpu(), other, rtol=0, atol=ulps * torch.finfo(one.dtype).eps)
        else:
            assert torch.equal(one.cpu(), other)


def test_the_example_of_the_module():
    failed, run = doctest.testmod(nearfield.torch)
    assert run >= 7 and failed == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("pbc", [None, True, (True, False, True)])
def test_pairs_are_those_of_numpy(device, dtype, half, pbc):
    positions, cell = crystal(200, dtype=dtype, device=device)
    options = dict(cell=None if pbc is None else cell, pbc=pbc, half=half, sorted=True)
    found = nearfield.torch.edges(positions, 0.4, "ijPSdD", **options)
    assert len(found[0]) > 300 and all(of.device == positions.device for of in found)
    agree(found, numpy_edges(positions, 0.4, "ijPSdD", **options))
    assert nearfield.torch.edges(positions, 0.4, "", **options) == ()


def test_pairs_of_systems_are_those_of_numpy(device):
    ptr = torch.tensor([0, 30, 30, 75, 120])
    systems = torch.repeat_interleave(torch.arange(4), ptr.diff()).to(device)
    positions, cells = crystal(120, systems=4, device=device)
    radii = torch.tensor([0.3, 0.2, 0.4, 0.25], dtype=REAL)
    pbc = torch.tensor([[True, True, True], [False] * 3, [True, False, False], [False, True, True]])
    for radius, cell, flags in (0.4, cells[0], True), (0.3, cells, pbc), (radii, cells, True):
        options = dict(cell=cell, pbc=flags, sorted=True)
        expected = numpy_edges(positions, radius, "ijSdD", batch_ptr=ptr, **options)
        assert len(expected[0]) > 300
        for batch in dict(batch_ptr=ptr.to(device)), dict(batch_idx=systems):
            agree(nearfield.torch.edges(positions, radius, **batch, **options), expected)


def test_filters_are_those_of_numpy(device):
    positions, cell = crystal(150, device=device)
    types, molecules = torch.arange(150) % 2, torch.arange(150) // 3
    cutoffs = [[0.4, 0.3], [0.3, 0.1]]
    for options in (
        dict(types=types, cutoffs=cutoffs, exclusions=[[0, 5], [7, 9]]),
        dict(molecules=molecules, targets=[3, 8, 140]),
        dict(k=4),
        dict(self_pairs=True),
        dict(strict=True),
        dict(radii=torch.linspace(0.1, 0.4, 150), rule="gather"),
    ):
        options.update(cell=cell, pbc=True, sorted="k" not in options)
        # Radii of points are of single precision; on a GPU so is what filters take.
        single = "radii" in options or device == "cuda"
        points = positions.float() if single else positions
        found = nearfield.torch.edges(points, 0.4, **options)
        assert len(found[0]) > 10
        agree(found, numpy_edges(points, 0.4, "ijSdD", **options))


def test_neighbours_in_another_set_have_derivatives_too(device):
    positions, cell = crystal(12, device=device)
    (others, _) = crystal(9, seed=8, device=device)
    options = dict(cell=cell, pbc=True, sorted=True)
    agree(
        nearfield.torch.edges(positions, 0.4, other=others, **options),
        numpy_edges(positions, 0.4, "ijSdD", other=others, **options),
    )
    lengths = lambda one, other: nearfield.torch.edges(one, 0.4, "d", other=other, **options)[0]
    inputs = positions.requires_grad_(), others.requires_grad_()
    assert torch.autograd.gradcheck(lengths, inputs, fast_mode=True, nondet_tol=1e-9)


def test_numbers_of_python_are_not_rounded():
    # In single precision the cell would be longer, and the images of the point too far apart.
    for real, pairs in (REAL, 6), (torch.float32, 6):
        point = torch.zeros(1, 3, dtype=real)
        cell = [[0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]]
        (d,) = nearfield.torch.edges(point, 0.1, "d", cell=cell, pbc=True)
        assert len(d) == pairs


def test_derivatives_are_right_to_second_order(device):
    positions, cell = crystal(10, device=device)
    systems = torch.tensor([0] * 4 + [1] * 6, device=device)
    _, cells = crystal(systems=2, device=device)
    for batch_idx, cell in (None, cell), (systems, cells):
        inputs = positions.clone().requires_grad_(), cell.clone().requires_grad_()
        lengths = lambda positions, cell: nearfield.torch.edges(
            positions, 0.4, "dD", cell=cell, pbc=True, batch_idx=batch_idx, sorted=True
        )
        assert len(lengths(*inputs)[0]) > 10
        assert torch.autograd.gradcheck(lengths, inputs, fast_mode=True, nondet_tol=1e-9)
        assert torch.autograd.gradgradcheck(lengths, inputs, fast_mode=True, nondet_tol=1e-9)


@pytest.mark.parametrize("max_neighbors", [0, 3, 40])
def test_padded_rows_are_those_of_numpy(device, max_neighbors):
    positions, cell = crystal(60, device=device)
    others, cells = crystal(50, seed=8, systems=2, device=device)
    ptr = torch.tensor([0, 25, 60], device=device)
    host = lambda of: of.cpu().numpy() if isinstance(of, torch.Tensor) else of
    for options in (
        dict(cell=cell),
        dict(cell=cell, other=others, fill=-1),
        dict(cell=cell, other=others[:0]),
        dict(cell=cells, batch_ptr=ptr),
        dict(cell=cells, batch_idx=(torch.arange(60, device=device) >= 25).long()),
    ):
        found = nearfield.torch.padded(positions, 0.35, max_neighbors, "SdD", pbc=True, **options)
        options = {name: host(of) for name, of in options.items()}
        expected = nearfield.padded(host(positions), 0.35, max_neighbors, "SdD", pbc=True, **options)
        assert int(found.largest) == expected.largest
        agree((*found[:2], *found[3:]), (*expected[:2], *expected[3:]))
    assert nearfield.torch.padded(positions, 0.35, 2)[3:] == (None, None, None)


@needs_a_compiler
def test_padded_rows_have_derivatives_and_are_compiled(device):
    def weighted(positions, cell):
        d = nearfield.torch.padded(positions, 0.4, 30, "d", cell=cell, pbc=True).distances
        return torch.where(d > 0, (0.4 - d) ** 3, 0).sum()

    positions, cell = crystal(20, device=device)
    inputs = positions.requires_grad_(), cell.requires_grad_()
    values = [
        torch.autograd.grad(function(*inputs), inputs)
        for function in (energy, weighted, torch.compile(weighted, fullgraph=True))
    ]
    for value in values[1:]:
        torch.testing.assert_close(value, values[0])


def energy(positions, cell):
    """Smooth at the radius, so that pairs may come and go."""
    (d,) = nearfield.torch.edges(positions, 0.4, "d", cell=cell, pbc=True)
    return ((0.4 - d) ** 3).sum()


def test_functional_derivatives_are_those_of_the_tape(device):
    positions, cell = crystal(12, device=device)
    tape = torch.autograd.functional.hessian(lambda of: energy(of, cell), positions)
    assert tape.abs().max() > 0.1
    torch.testing.assert_close(torch.func.hessian(energy)(positions, cell), tape)


def test_points_that_coincide_have_derivatives_of_zero(device):
    positions = torch.tensor([[1.0, 2, 3], [1, 2, 3], [1, 2, 3.5]], device=device, requires_grad=True)
    (d,) = nearfield.torch.edges(positions, 0.1, "d")
    assert d.tolist() == [0, 0]
    (first,) = torch.autograd.grad((d + d**2).sum(), positions, create_graph=True)
    assert first.tolist() == [[0] * 3] * 3
    (second,) = torch.autograd.grad(first.sum(), positions)
    assert second.isfinite().all()


def test_the_operator_keeps_the_rules_of_pytorch(device):
    positions, cell = crystal(8, device=device)
    for ptr in None, torch.tensor([0, 3, 8], device=device):
        of_systems = (cell, torch.tensor(True), ptr)
        options = (*[None] * 8, None, None, False, False, False, False, 0)
        arguments = (positions, 0.4, None, *of_systems, *options)
        torch.library.opcheck(torch.ops.nearfield.pairs, arguments)


@needs_a_compiler
def test_a_compiled_function_is_whole_and_has_the_same_derivatives(device):
    compiled = torch.compile(energy, fullgraph=True)
    for points in 20, 37:
        positions, cell = crystal(points, device=device)
        values = []
        for function in energy, compiled:
            inputs = positions.clone().requires_grad_(), cell.clone().requires_grad_()
            value = function(*inputs)
            values.append((value.detach(), *torch.autograd.grad(value, inputs)))
        torch.testing.assert_close(*values)
        assert values[0][1].abs().max() > 0.01


def test_an_exported_module_finds_the_pairs_of_other_points(device):
    class Coordination(torch.nn.Module):
        def forward(self, positions, cell, batch_idx):
            i, d = nearfield.torch.edges(
                positions, 0.4, "id", cell=cell, pbc=(True, True, False), batch_idx=batch_idx
            )
            return positions.new_zeros(positions.shape[0]).index_add(0, i, torch.exp(-d))

    def inputs(points):
        systems = torch.arange(points, device=device) // 10
        return *crystal(points, systems=int(systems[-1]) + 1, device=device), systems

    n, systems = torch.export.Dim("n"), torch.export.Dim("systems")
    shapes = {"positions": {0: n}, "cell": {0: systems}, "batch_idx": {0: n}}
    exported = torch.export.export(Coordination(), inputs(40), dynamic_shapes=shapes)
    others = inputs(70)
    torch.testing.assert_close(exported.module()(*others), Coordination()(*others))


def test_cells_are_those_that_the_search_takes(device):
    positions, cell = crystal(9, device=device)
    open_axis = torch.diag(torch.tensor([1, 1, torch.nan], dtype=REAL, device=device))
    batch = dict(batch_ptr=torch.tensor([0, 4, 9], device=device))
    for given in [
        dict(cell=open_axis, pbc=(True, True, False)),
        dict(cell=[1.0, 1.1, 1.2], pbc=True),
        dict(cell=cell[None], pbc=True, **batch),
    ]:
        found = nearfield.torch.edges(positions, 0.6, sorted=True, **given)
        agree(found, numpy_edges(positions, 0.6, sorted=True, **given))
        assert len(found[0]) > 0 and found[4].isfinite().all()
    listed = nearfield.torch.edges(positions, 0.6, cell=cell[None], pbc=True, batch_ptr=[0, 4, 9])
    assert len(listed[0]) == len(found[0])
    assert nearfield.torch.Padded is nearfield.Padded
    with pytest.raises(ValueError, match="fill is a whole number"):
        nearfield.torch.padded(positions, 0.6, 4, fill=0.5)
    with pytest.raises(ValueError, match=r"cell must be of shape .* not \(2, 2\)"):
        nearfield.torch.edges(positions, 0.6, cell=cell[:2, :2], pbc=True)


def test_no_points_and_no_pairs(device):
    for points in 0, 1:
        positions = torch.zeros(points, 3, device=device, requires_grad=True)
        found = nearfield.torch.edges(positions, 1.0)
        assert [tuple(of.shape) for of in found] == [(0,), (0,), (0, 3), (0,), (0, 3)]
        found[3].sum().backward()
        assert positions.grad.tolist() == [[0] * 3] * points


def test_what_cannot_be_searched_is_named(device):
    positions, cell = crystal(6, device=device)
    edges = nearfield.torch.edges
    with pytest.raises(TypeError, match="float32 or float64, not torch.int64"):
        edges(positions.long(), 0.4)
    with pytest.raises(ValueError, match=r"\(n, 3\), not \(3, 6\)"):
        edges(positions.T, 0.4)
    with pytest.raises(TypeError, match="not on meta"):
        edges(positions.to("meta"), 0.4)
    for quantities in "ijx", "iji":
        with pytest.raises(ValueError, match="letters"):
            edges(positions, 0.4, quantities)
    with pytest.raises(ValueError, match="pbc"):
        edges(positions, 0.4, cell=cell)
    ptr, idx = torch.tensor([0, 6]), torch.tensor([0, 0, 1, 0, 1, 1])
    with pytest.raises(ValueError, match="one of them"):
        edges(positions, 0.4, batch_ptr=ptr, batch_idx=idx)
    with pytest.raises(ValueError, match="batch_idx must ascend"):
        edges(positions, 0.4, batch_idx=idx)
    with pytest.raises(ValueError, match="batch_idx"):
        edges(positions, 0.4, batch_idx=ptr)
    with pytest.raises(ValueError, match="batch_idx"):
        edges(positions, 0.4, batch_idx=idx.sort().values, cell=cell[None], pbc=True)
    positions[4, 1] = torch.nan
    with pytest.raises(ValueError, match="point 4 has y"):
        edges(positions, 0.4)
    # Others are searched afterwards.
    assert len(edges(positions[:4], 2.0, "i")[0]) == 12


@pytest.mark.skipif("cuda" not in DEVICES, reason="PyTorch sees no GPU")
def test_streams_wait_for_each_other():
    positions, cell = crystal(3000, device="cuda")
    expected = numpy_edges(positions, 0.1, "ijSdD", cell=cell, pbc=True, sorted=True)
    kept = []
    for repetition in range(20):
        with torch.cuda.stream(torch.cuda.Stream()):
            # Written late, on this stream.
            late = torch.full_like(positions, torch.nan)
            torch.cuda._sleep(1_000_000)
            late.copy_(positions)
            kept.append(nearfield.torch.edges(late, 0.1, cell=cell, pbc=True, sorted=True))
            nearfield.torch.edges(late / 2, 0.1, "i")
    torch.cuda.synchronize()
    for found in kept:
        agree(found, expected)


@pytest.mark.skipif("cuda" not in DEVICES, reason="PyTorch sees no GPU")
def test_on_a_gpu_arrays_of_another_device_are_refused():
    positions, cell = crystal(device="cuda")
    with pytest.raises(ValueError, match="cell is on cpu"):
        nearfield.torch.edges(positions, 0.4, cell=cell.cpu(), pbc=True)
