# SPDX-License-Identifier: BSD-3-Clause
"""The fixture that runs a test of the table on the host, on cuda or its stand-in, and through the C++ front end."""

import os
from pathlib import Path

import pytest
import torch
from front_end import cpp
from runners import PYTHON, Runner


@pytest.fixture(scope="session")
def cpp_front_end(build: Path) -> None:
    library = build / "libgossamer_cpp_front_end.so"
    if not library.exists():
        pytest.skip(f"no {library.name}, the C++ front end as ops: build the release preset with GOSSAMER_TESTS=torch")
    torch.ops.load_library(library)


# "cuda" is the stand-in or, without it, a GPU, where there is one: as in ../conftest.py.
NO_CUDA = os.environ.get("GOSSAMER_STANDIN") == "off" and not torch.cuda.is_available()


@pytest.fixture(params=["cpu", "cpp"] if NO_CUDA else ["cpu", "cuda", "cpp"])
def runner(request: pytest.FixtureRequest) -> Runner:
    if request.param == "cpu":
        return PYTHON
    if request.param == "cuda":
        if torch.cuda.device_count() == 0:
            pytest.skip("no stand-in for cuda: GOSSAMER_STANDIN is off, or it is not built")
        return Runner(torch.device("cuda", 0))
    request.getfixturevalue("cpp_front_end")
    return Runner(front_end=cpp)
