"""Engines in the processes of multiprocessing: made there, and inherited by fork."""

import multiprocessing
import os
import threading
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
