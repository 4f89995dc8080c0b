"""Ctrl-C ends a long call, and the engine goes on."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import nearfield
import numpy as np
import pytest

from test_nearfield import cloud, sets

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals as Unix has them")

# All neighbours of each other: minutes of work.
DENSE = 400_000


@pytest.fixture(autouse=True)
def ctrl_c_is_heard():
    """A shell starts what runs in its background deaf to Ctrl-C, and Python leaves that so."""
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, old)


def interrupted(work, after):
    """Seconds from a signal to the KeyboardInterrupt that ends the work."""
    sent = []

    def send():
        time.sleep(after)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
        return time.monotonic() - sent[0]
    finally:
        thread.join()


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_long_calls_and_the_engine_goes_on(threads):
    few = cloud(500, dtype=np.float32)
    dense = cloud(DENSE, dtype=np.float32) * np.float32(0.1)
    mass = np.ones(DENSE, np.float32)
    engine = nearfield.Engine(0.2, threads=threads)
    a, b = engine.add_points(few), engine.add_points(dense)
    for pair in [(a, b), (b, a), (b, b)]:
        engine.set_active(*pair, False)
    before = engine.neighbors(a)
    expected = sets(before)
    for work, after in [
        (lambda: engine.count_neighbors(b), 0.3),
        (lambda: engine.sph_density(mass, b), 0.3),
        # 3.6 GB of lists; most are not written.
        (lambda: nearfield.neighbors(dense[:30_000], 0.2, threads=threads), 0.1),
    ]:
        assert interrupted(work, after) < 10, "seconds, on a busy machine"
        assert engine.points(b) == DENSE and engine.neighbors(a) is before
    engine.update(a, few)
    assert sets(engine.neighbors(a)) == expected


def test_handlers_run_during_a_call_and_may_use_other_engines():
    dense = cloud(30_000, dtype=np.float32) * np.float32(0.1)
    engine = nearfield.Engine(0.2)
    engine.add_points(dense)
    seen = []

    def handle(number, frame):
        assert nearfield.neighbors(cloud(50), 0.3).pairs > 0
        try:
            engine.update(0, dense)
        except RuntimeError as error:
            seen.append(str(error))

    old = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        counts = [engine.count_neighbors() for _ in range(3)]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert seen and "in use" in seen[0]
    assert all((count == len(dense) - 1).all() for count in counts)


def test_a_program_ends_by_ctrl_c():
    program = textwrap.dedent(
        f"""
        import nearfield, numpy as np, signal
        signal.signal(signal.SIGINT, signal.default_int_handler)
        points = np.random.default_rng(1).random(({DENSE}, 3)).astype(np.float32)
        print("ready", flush=True)
        engine = nearfield.Engine(2.0)
        engine.add_points(points)
        engine.count_neighbors()
        """
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    time.sleep(1.0)
    begin = time.monotonic()
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert b"KeyboardInterrupt" in errors and child.returncode != 0
    assert time.monotonic() - begin < 20
