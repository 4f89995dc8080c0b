#!/usr/bin/env python3
"""Times the same steps from Python, through the C interface and by the command, on each device.

    python benches/beside_command.py [--command nearfield] [--c PROGRAM] [--points N] [--radius R]
                                     [--device D ...] [--threads T] [--warmup W] [--steps S]

The cloud is the command's lattice: jittered by a tenth, shuffled, and every step moves each
coordinate by up to 0.015 r. A step is an update and lists. PROGRAM is what benches/steps.c compiles
to; without it the row of C is left out. Prints a Markdown table of medians, and the ratio to the
command.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np

import nearfield

# Frames that steps take in turn, forwards and backwards: an engine may not see the same twice.
FRAMES = 8


def frames(points, radius):
    """A lattice as the command's, and what it becomes."""
    random = np.random.default_rng(1)
    edge = round(points ** (1 / 3))
    grid = np.stack(np.meshgrid(*3 * [np.arange(edge)], indexing="ij"), -1).reshape(-1, 3)
    now = (grid + random.uniform(-0.1, 0.1, grid.shape)).astype(np.float32)
    random.shuffle(now)
    found = [now]
    for _ in range(FRAMES - 1):
        found.append(found[-1] + random.uniform(-1, 1, now.shape).astype(np.float32) * 0.015 * radius)
    return np.ascontiguousarray(np.stack(found + found[-2:0:-1]), dtype=np.float32)


def by_python(clouds, device, options):
    engine = nearfield.Engine(options.radius, device=device, threads=options.threads)
    points = engine.add_points(clouds[0])
    times = []
    for step in range(options.warmup + options.steps):
        cloud = clouds[step % len(clouds)]
        begin = time.perf_counter()
        engine.update(points, cloud)
        engine.find_neighbors()
        lists = engine.neighbors(points)
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times[options.warmup :]), lists.pairs


def by_c(clouds, device, options):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "positions")
        clouds.tofile(path)
        count = options.warmup + options.steps
        words = [path, clouds.shape[1], len(clouds), options.radius, device, options.threads, count]
        done = subprocess.run([options.c, *map(str, words)], check=True, capture_output=True, text=True)
    *times, pairs = done.stdout.splitlines()
    return statistics.median(map(float, times[options.warmup :])), int(pairs.split()[1])


def by_command(device, options):
    words = ["bench", "--cloud", "lattice", "--points", options.points, "--radius", options.radius]
    words += ["--device", device, "--warmup", options.warmup, "--repetitions", options.steps, "--json"]
    words += ["--threads", options.threads] if options.threads else []
    command = [options.command, *map(str, words)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    return found["milliseconds"]["total"], found["pairs"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--command", default="nearfield")
    parser.add_argument("--c")
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--radius", type=float, default=2.0)
    parser.add_argument("--device", nargs="+", default=["cpu", "gpu", "hybrid", "auto"])
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--warmup", type=int, default=60)
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    clouds = frames(options.points, options.radius)
    print("| device | command | C | Python | C by the command | Python by the command |")
    print("| --- | --- | --- | --- | --- | --- |")
    for device in options.device:
        command, _ = by_command(device, options)
        python, pairs = by_python(clouds, device, options)
        cells = ["", f"{python:.2f}", "", f"{python / command:.2f}"]
        if options.c:
            c, same = by_c(clouds, device, options)
            if same != pairs:
                raise SystemExit(f"{device}: C finds {same} pairs, Python {pairs}")
            cells[0], cells[2] = f"{c:.2f}", f"{c / command:.2f}"
        print(f"| {device} | {command:.2f} | {' | '.join(cells)} |", flush=True)


main()
