"""Engines in the processes of multiprocessing: made there, and inherited by fork; and in processes
that are interrupted or have no standard streams."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import nearfield
import numpy as np
import pytest

# Far more than any of this takes: a child that is not done by then hangs.
DEADLINE = 120


def cloud(points=3000):
    return np.random.default_rng(7).random((points, 3)).astype(np.float32)


def search(engine, points):
    offsets, indices = engine.neighbors(points, points).csr()
    counts = engine.count_neighbors(points, points)
    assert int(counts.sum()) == len(indices)
    return len(indices)


def engine_of(threads, device="cpu"):
    engine = nearfield.Engine(0.1, threads=threads, device=device)
    points = engine.add_points(cloud())
    engine.find_neighbors()
    return engine, points


def fresh(threads, answer):
    """In a child: a new engine."""
    answer.put(search(*engine_of(threads)))


def inherited(engine, points, answer):
    """In a forked child: an engine of the parent, used, moved on and let go."""
    found = search(engine, points)
    engine.update(points, cloud())
    engine.find_neighbors()
    assert search(engine, points) == found
    engine.radius = 0.05
    engine.find_neighbors()
    del engine
    answer.put(found)


def run(method, target, *args):
    """What the child says; fails when it does not end in time."""
    context = multiprocessing.get_context(method)
    answer = context.Queue()
    child = context.Process(target=target, args=(*args, answer))
    with warnings.catch_warnings():
        # Newer versions of Python warn of forks of a process with threads, which is what this is.
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    child.join(DEADLINE)
    if child.is_alive():
        child.kill()
        child.join()
        pytest.fail(f"a child by {method} hangs")
    assert child.exitcode == 0
    return answer.get(timeout=DEADLINE)


def methods():
    return [m for m in ("fork", "spawn", "forkserver") if m in multiprocessing.get_all_start_methods()]


@pytest.mark.parametrize("method", methods())
@pytest.mark.parametrize("threads", [1, 2])
def test_a_child_makes_engines_of_its_own(method, threads):
    engine, points = engine_of(threads)
    expected = search(engine, points)
    assert run(method, fresh, threads) == expected
    assert search(engine, points) == expected


@pytest.mark.skipif("fork" not in methods(), reason="nothing is inherited without fork")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("device", ["cpu", "emulated"])
def test_an_inherited_engine_goes_on_in_the_child(threads, device):
    engine, points = engine_of(threads, device)
    expected = search(engine, points)
    assert run("fork", inherited, engine, points) == expected
    assert search(engine, points) == expected


@pytest.mark.skipif("fork" not in methods(), reason="needs fork")
def test_a_pool_of_forked_workers_searches():
    engine_of(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            results = [pool.apply_async(pairs_of, (k,)) for k in range(6)]
            found = [result.get(DEADLINE) for result in results]
    assert found == [pairs_of(k) for k in range(6)]


def pairs_of(seed):
    points = np.random.default_rng(seed).random((2000, 3)).astype(np.float32)
    return nearfield.neighbors(points, 0.1, threads=2).pairs


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted there")
def test_one_thread_is_the_calling_one():
    assert run("spawn", threads_started) == 0


def threads_started(answer):
    before = len(os.listdir("/proc/self/task"))
    search(*engine_of(1))
    started = len(os.listdir("/proc/self/task")) - before
    answer.put(started)


def test_the_main_thread_may_fork_while_another_searches():
    if "fork" not in methods():
        pytest.skip("needs fork")
    stop = threading.Event()

    def work():
        while not stop.is_set():
            nearfield.neighbors(cloud(), 0.1, threads=2)

    other = threading.Thread(target=work)
    other.start()
    try:
        expected = search(*engine_of(2))
        for _ in range(5):
            assert run("fork", fresh, 2) == expected
    finally:
        stop.set()
        other.join()


LONG_SEARCH = """
import signal, sys, time
import nearfield, numpy as np

# A shell turns the signal off in the background, and Python then leaves it so.
signal.signal(signal.SIGINT, signal.default_int_handler)

points = np.random.default_rng(5).random((60_000, 3)).astype(np.float32)
engine = nearfield.Engine(0.12, threads=2)
engine.add_points(points)
print("ready", flush=True)
interrupted = 0
try:
    # Long enough that the signal comes in the middle of a call.
    while True:
        engine.count_neighbors()
        engine.radius = 0.12
        engine.find_neighbors()
except KeyboardInterrupt:
    interrupted = time.monotonic()
assert interrupted
engine.radius = 0.05
expected = nearfield.neighbors(points, 0.05).pairs
assert engine.neighbors().pairs == expected and engine.count_neighbors().sum() == expected
print("whole", flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name != "posix", reason="POSIX signals")
def test_ctrl_c_in_the_middle_of_a_search_leaves_the_engine_whole():
    for pause in (0.05, 0.3, 0.7):
        child = subprocess.Popen(
            [sys.executable, "-c", LONG_SEARCH], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            assert child.stdout.readline() == b"ready\n"
            time.sleep(pause)
            child.send_signal(signal.SIGINT)
            out, errors = child.communicate(timeout=60)
        finally:
            child.kill()
        assert (child.returncode, out) == (0, b"whole\n"), errors.decode()


@pytest.mark.skipif(os.name != "posix", reason="descriptors of POSIX")
def test_an_engine_needs_no_standard_streams():
    script = (
        "import os; [os.close(n) for n in (0, 1, 2)]\n"
        "import nearfield, numpy as np\n"
        "points = np.zeros((2, 3), np.float32)\n"
        "assert nearfield.neighbors(points, 1.0).pairs == 2\n"
        "try:\n    nearfield.Engine(-1.0)\n"
        "except ValueError:\n    os._exit(7)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 7
