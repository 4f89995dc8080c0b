#!/usr/bin/env python3
"""Times nearfield.edges beside other Python packages on the same arrays, and compares their pairs.

    python benches/beside_python.py [--device cpu|gpu] [--real float64|float32]
                                    [--index int64|int32] [--seconds S] [--threads N]
                                    [--only NAME,...] [CASE ...]

CASE is CLOUD/POINTS/QUANTITIES: periodic/1000/ijSdD, or batch128/7000/ij with so many points in 128
molecules; without one a list of 30 to 1,000,000 points runs. Clouds are uniform, with 52 neighbours
a point within 1 on average; molecules are balls of that density in open space. --index is the type
of Nearfield's indices; the others choose their own. Prints a line of JSON for the machine and for
every case and package: the median and the fastest of all calls (a single one if the first takes
longer than --seconds), pairs, versions, and a digest of the data. Packages that are not installed,
or have no such search, are named in the first line with the reason.

On a GPU (--device gpu) arrays are tensors there, and a call ends when the device has. A package that
finds another number of pairs than the first ends the program with an error; in single precision one
pair in 10,000 may be decided otherwise.
"""

import argparse
import hashlib
import importlib.metadata
import json
import os
import platform
import statistics
import sys
import time

import numpy as np

RADIUS = 1.0
DENSITY = 52 / (4 / 3 * np.pi * RADIUS**3)
CASES = [
    *(f"periodic/{n}/{q}" for n in (30, 100, 1000, 10_000, 131_072, 1_000_000)
      for q in ("ij", "ijS", "ijSdD")),
    *(f"batch{systems}/{points}/{q}" for systems, points in ((128, 7040), (4096, 226_000))
      for q in ("ij", "ijSdD")),
]  # fmt: skip


class Case:
    def __init__(self, name, real):
        cloud, points, self.quantities = name.split("/")
        self.name, count = name, int(points)
        random = np.random.default_rng(count)
        self.cell = self.ptr = None
        if cloud == "periodic":
            edge = (count / DENSITY) ** (1 / 3)
            self.points, self.cell = random.uniform(0, edge, (count, 3)), np.eye(3) * edge
        elif cloud.startswith("batch"):
            systems = int(cloud.removeprefix("batch"))
            self.ptr = np.linspace(0, count, systems + 1).astype(np.int64)
            sizes = np.repeat(np.diff(self.ptr), np.diff(self.ptr))
            ways = random.normal(size=(count, 3))
            ways /= np.linalg.norm(ways, axis=1)[:, None]
            radius = (sizes * 3 / (4 * np.pi * DENSITY)) ** (1 / 3)
            self.points = ways * (radius * random.random(count) ** (1 / 3))[:, None]
        else:
            sys.exit(f"{name}: a cloud is periodic, or batch and a number of systems")
        self.points = self.points.astype(real)
        self.digest = hashlib.sha256(self.points.tobytes()).hexdigest()[:16]


def nearfield(case, options):
    import nearfield

    given = dict(index=options.index)
    if case.ptr is not None:
        given["batch_ptr"] = on_device(case.ptr, options)
    if case.cell is not None:
        given.update(cell=case.cell, pbc=True)
    if options.device == "cpu":
        given["threads"] = options.threads
    points = on_device(case.points, options)
    return lambda: len(nearfield.edges(points, RADIUS, case.quantities, **given)[0])


def vesin(case, options):
    from vesin import NeighborList

    search = NeighborList(cutoff=RADIUS, full_list=True)
    points, cell = on_device(case.points, options), on_device(case.cell, options)
    return lambda: len(search.compute(points, cell, True, case.quantities)[0])


def matscipy(case, options):
    from matscipy.neighbours import neighbour_list

    given = dict(positions=case.points, cell=case.cell, pbc=[True] * 3, cutoff=RADIUS)
    return lambda: len(neighbour_list(case.quantities, **given)[0])


def ase(case, options):
    from ase.neighborlist import primitive_neighbor_list

    given = ([True] * 3, case.cell, case.points, RADIUS)
    return lambda: len(primitive_neighbor_list(case.quantities, *given)[0])


def scipy(case, options):
    from scipy.spatial import cKDTree

    def pairs():
        tree = cKDTree(case.points, boxsize=case.cell[0, 0])
        half = tree.query_pairs(RADIUS, output_type="ndarray")
        return len(np.concatenate([half, half[:, ::-1]]))

    return pairs


def neighborlist_rs(case, options):
    import neighborlist_rs as search

    search.set_num_threads(options.threads)
    parallel = options.threads > 1
    if case.ptr is None:
        cell = search.PyCell(case.cell.tolist(), [True] * 3)
        half = lambda: search.build_neighborlists(cell, case.points, RADIUS, parallel)
    else:
        batch = np.repeat(np.arange(len(case.ptr) - 1, dtype=np.int32), np.diff(case.ptr))
        half = lambda: search.build_neighborlists_batch(case.points, batch, None, RADIUS, parallel)

    def pairs():
        found = half()
        both = np.concatenate([found["edge_index"], found["edge_index"][::-1]], 1)
        if "S" in case.quantities:
            np.concatenate([found["shift"], -found["shift"]])
        return both.shape[1]

    return pairs


def torch_cluster(case, options):
    import torch
    from torch_cluster import radius_graph

    batch = np.repeat(np.arange(len(case.ptr) - 1), np.diff(case.ptr))
    points = torch.from_numpy(case.points).to(options.torch_device)
    batch = torch.from_numpy(batch).to(options.torch_device)
    return lambda: radius_graph(points, RADIUS, batch, max_num_neighbors=512).shape[1]


def one_system(case):
    return case.ptr is not None and "searches one system"


def double(case):
    return case.points.dtype != np.float64 and "searches in double precision"


# Package in the index, devices, and what the search cannot do.
PACKAGES = {
    nearfield: ("nearfield", "cpu gpu", lambda case: None),
    vesin: ("vesin", "cpu gpu", lambda case: one_system(case) or double(case)),
    matscipy: ("matscipy", "cpu", lambda case: one_system(case) or double(case)),
    ase: ("ase", "cpu", lambda case: one_system(case) or double(case)),
    neighborlist_rs: (
        "neighborlist-rs",
        "cpu",
        lambda case: double(case)
        or ({"d", "D"}.intersection(case.quantities) and "finds i, j and S only"),
    ),
    scipy: (
        "scipy",
        "cpu",
        lambda case: one_system(case)
        or double(case)
        or (case.quantities != "ij" and "finds i and j only")
        or (case.cell[0, 0] <= 2 * RADIUS and "finds one image of a pair"),
    ),
    torch_cluster: (
        "torch-cluster",
        "cpu gpu",
        lambda case: (case.ptr is None and "has no boxes")
        or (case.quantities != "ij" and "finds i and j only"),
    ),
}


def on_device(array, options):
    if options.device == "cpu" or array is None:
        return array
    import torch

    return torch.from_numpy(array).to(options.torch_device)


def timed(call, options):
    """Number of pairs, and milliseconds of every call."""
    wait = lambda: None
    if options.device == "gpu":
        import torch

        wait = torch.cuda.synchronize
    begin = time.perf_counter()
    pairs = call()
    wait()
    times = [1e3 * (time.perf_counter() - begin)]
    if times[0] > 1e3 * options.seconds:
        # The only call of a search that takes so long, warm or not.
        return pairs, times
    for _ in range(2):
        call()
    wait()
    times, end = [], time.perf_counter() + options.seconds
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 10_000):
        begin = time.perf_counter()
        call()
        wait()
        times.append(1e3 * (time.perf_counter() - begin))
    return pairs, times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--real", choices=["float64", "float32"], default="float64")
    parser.add_argument("--index", choices=["int64", "int32"], default="int64")
    parser.add_argument("--seconds", type=float, default=1.0, help="for a case and a package")
    parser.add_argument("--threads", type=int, default=1, help="of searches on the CPU")
    parser.add_argument("--only", help="packages, by commas")
    parser.add_argument("cases", nargs="*", default=CASES)
    options = parser.parse_args()
    options.torch_device = "cuda" if options.device == "gpu" else "cpu"
    # Before a package starts its threads.
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    chosen = {search.__name__: search for search in PACKAGES}
    if options.only:
        names = options.only.split(",")
        if unknown := set(names) - set(chosen):
            sys.exit(f"--only: {sorted(unknown)[0]} is not one of {', '.join(chosen)}")
        chosen = {name: chosen[name] for name in names}
    versions, left_out = {}, {}
    for name, search in list(chosen.items()):
        package, devices, _ = PACKAGES[search]
        if options.device not in devices.split():
            left_out[name] = f"has no search for --device {options.device}"
        else:
            try:
                versions[name] = importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                left_out[name] = f"is not installed: pip install {package}"
        if name in left_out:
            del chosen[name]
    about = dict(
        machine=platform.processor() or platform.machine(), cpus=os.cpu_count(),
        device=options.device, real=options.real, index=options.index, threads=options.threads,
        python=platform.python_version(), numpy=np.__version__, versions=versions,
        left_out=left_out,
    )  # fmt: skip
    if options.device == "gpu":
        import torch

        about.update(gpu=torch.cuda.get_device_name(), torch=torch.__version__)
    print(json.dumps(about), flush=True)
    for case in (Case(name, options.real) for name in options.cases):
        expected = None
        for name, search in chosen.items():
            line = dict(case=case.name, package=name, data=case.digest)
            if refused := PACKAGES[search][2](case):
                print(json.dumps(line | dict(left_out=refused)), flush=True)
                continue
            pairs, times = timed(search(case, options), options)
            median, best = statistics.median(times), min(times)
            line |= dict(pairs=pairs, calls=len(times))
            line |= dict(milliseconds=dict(median=round(median, 5), fastest=round(best, 5)))
            print(json.dumps(line), flush=True)
            may_differ = 0 if options.real == "float64" else (expected or 0) // 10_000
            if expected is not None and abs(pairs - expected) > may_differ:
                sys.exit(f"{case.name}: {name} found {pairs} pairs, and not {expected}")
            expected = pairs


if __name__ == "__main__":
    main()
