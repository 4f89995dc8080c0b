"""A pytest plugin that puts an adapter of nearfield.compat in the place of its library, and leaves
out the tests that do not apply to it. NEARFIELD_PEER names the library; scripts/peers sets it.
"""

import importlib
import os
import sys
import types
from pathlib import Path

import not_applicable

# Of each library the modules whose names are replaced, and by what of which adapter.
PLACES = {
    "ase": {
        "ase.neighborlist": [
            "neighbor_list",
            "primitive_neighbor_list",
            "NeighborList",
            "PrimitiveNeighborList",
            "NewPrimitiveNeighborList",
        ]
    },
    "matscipy": {"matscipy.neighbours": ["neighbour_list"]},
    "vesin": {"vesin": ["NeighborList", "ase_neighbor_list"]},
    "scipy": {"scipy.spatial": ["KDTree", "cKDTree"]},
    "freud": {"freud.locality": ["AABBQuery", "LinkCell"], "freud": ["AABBQuery", "LinkCell"]},
    "mdanalysis": {
        "MDAnalysis.lib.distances": ["capped_distance", "self_capped_distance"],
        "MDAnalysis.lib.nsgrid": ["FastNS"],
    },
    "torch_cluster": {"torch_cluster": ["radius", "radius_graph"]},
}

peer = os.environ["NEARFIELD_PEER"]
reasons = {}


def pytest_configure(config):
    adapter = importlib.import_module(f"nearfield.compat.{peer}")
    if peer == "torch_cluster":
        # The adapter needs nothing of it, so it need not be compiled.
        package = types.ModuleType(peer)
        package.__path__ = [str(Path(os.environ["NEARFIELD_PEER_SOURCE"]) / peer)]
        sys.modules[peer] = package
    for place, names in PLACES[peer].items():
        module = importlib.import_module(place)
        for name in names:
            setattr(module, name, getattr(adapter, name))


def pytest_collection_modifyitems(config, items):
    kept = []
    for item in items:
        path = item.nodeid.replace("\\", "/")
        found = [why for part, why in not_applicable.TESTS[peer].items() if part in path]
        if found:
            reasons[path] = found[0]
        else:
            kept.append(item)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in reasons])
    items[:] = kept


def pytest_terminal_summary(terminalreporter):
    count = lambda name: len(terminalreporter.stats.get(name, []))  # noqa: E731
    print(
        f"\nPEER {peer} passed={count('passed')} failed={count('failed') + count('error')} "
        f"skipped={count('skipped') + count('xfailed')} not_applicable={len(reasons)}"
    )
