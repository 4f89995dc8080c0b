"""The wheel runs where its tag says it does."""

import importlib.metadata
import re
from pathlib import Path

import pytest
from nearfield import _nearfield


def test_the_package_asks_for_no_newer_symbols_than_its_tag_promises():
    tag = re.search(r"manylinux_2_(\d+)_", importlib.metadata.distribution("nearfield").read_text("WHEEL") or "")
    if tag is None:
        pytest.skip("not installed from a wheel for many Linuxes")
    text = Path(_nearfield.__file__).read_bytes()
    found = [int(minor) for minor in re.findall(rb"\0GLIBC_2\.(\d+)", text)]
    assert found and max(found) <= int(tag[1]) <= 28
