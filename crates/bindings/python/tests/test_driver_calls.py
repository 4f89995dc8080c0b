"""What calls with arrays on a GPU ask of the driver, counted by the null GPU in its place.

NEARFIELD_NULL_GPU names its library, which `cargo build -p nearfield-null-gpu` makes; without it, or
without NVRTC, the tests are skipped, or fail if NEARFIELD_REQUIRE_NULL_GPU=1.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import nearfield
import pytest

HERE = Path(__file__).parent / "null_gpu"


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    library = os.environ.get("NEARFIELD_NULL_GPU", "")
    if not Path(library).is_file():
        assert os.environ.get("NEARFIELD_REQUIRE_NULL_GPU") != "1", f"no null GPU at {library!r}"
        pytest.skip("NEARFIELD_NULL_GPU names no null GPU")
    folder = tmp_path_factory.mktemp("driver")
    # As most systems have the driver: the name without a number is for those who link to it.
    (folder / "libcuda.so.1").symlink_to(library)
    paths = [str(HERE), str(Path(nearfield.__file__).parent.parent)]
    env = os.environ | {"LD_LIBRARY_PATH": str(folder), "PYTHONPATH": os.pathsep.join(paths)}
    ran = subprocess.run([sys.executable, HERE / "calls.py"], env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_warm_edges_copy_a_few_words_to_the_host_and_make_nothing(calls):
    edges = {name: counts for name, counts in calls.items() if name.startswith("edges")}
    assert len(edges) == 4
    for name, counts in edges.items():
        assert counts["to_device"] == counts["page_locked"] == counts["modules"] == 0, name
        assert 0 < counts["to_host"] <= 256, name
        # Sorting, counting, scanning, writing lists and then pairs; the wait for their number is the
        # first of these, and the others find everything done.
        assert 0 < counts["kernels"] <= 10 and 0 < counts["waits"] <= 5, name
    # The same for any number of points and of quantities.
    first, *others = edges.values()
    assert all(other == first for other in others)


def test_a_warm_search_of_systems_starts_two_kernels_and_waits_once(calls):
    counts = calls["systems"]
    assert (counts["kernels"], counts["waits"]) == (2, 1)
    assert counts["to_device"] == counts["page_locked"] == counts["modules"] == 0
    assert 0 < counts["to_host"] <= 32
