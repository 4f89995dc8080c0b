"""Prints what the driver is asked for in warm calls with arrays on a GPU, as JSON."""

import json

import cupy
import nearfield
from nearfield._libraries import library_of


def asked(call, times=3):
    """Differences of the driver's counters over the last of some calls."""
    for _ in range(times):
        before = cupy.counts()
        call()
        after = cupy.counts()
    return {name: after[name] - before[name] for name in before}


found = {}
for points in (40_000, 80_000):
    there = cupy.empty((points, 3), "float32")
    for letters in ("ij", "ijSdD"):
        found[f"edges {points} {letters}"] = asked(lambda: nearfield.edges(there, 0.1, letters))
# The null GPU says nothing of numbers of pairs, which `edges` would make room for.
search, library = nearfield.DeviceSystemSearch(), library_of(there)
points, ptr = (library.lent(cupy.empty(*of)) for of in [((100, 3), "float32"), ((5,), "int64")])
out = [library.lent(cupy.empty((64,), dtype)) for dtype in ("int64", "int64", "float32")]
found["systems"] = asked(lambda: search.neighbors_into(out, points, 0.1, ptr, quantities="ijd"))
print(json.dumps(found))
