# SPDX-License-Identifier: BSD-3-Clause
"""The ways to run a row of the table: the Python front end on the host or on the device, or the C++ one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from front_end import cpp, to_cpp, to_python

import gossamer as gs
from cases import Case

# A call of a front end, the error it raises, and the first line of its message.
Mistake = tuple[Callable[[Any], Any], type[Exception], str]


@dataclass(frozen=True)
class Runner:
    """A device, and the front end that is called: the package, or its twin in C++."""

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    front_end: Any = gs

    @property
    def exhaustive(self) -> bool:
        """Derivatives are checked in every direction here, and in a random one on the runners that take longer."""
        return self.front_end is gs and self.device.type == "cpu"

    def run(self, case: Case, inputs: Any) -> Any:
        """The row's result, whichever front end made it, as tensors and matrices of Python's."""
        if case.an_object and self.device.type != "cpu":
            pytest.skip(f"of the host: {case.an_object}")
        if self.front_end is gs:
            return case.op(gs, *inputs)
        if case.python_only:
            pytest.skip(f"not in C++: {case.python_only}")
        return to_python(case.op(cpp, *(to_cpp(x) for x in inputs)))

    def assert_mistake(self, mistake: Mistake, python_only: set[str], inference: bool) -> None:
        """The call raises this error with these words, below autograd as well; `python_only` are not C++'s to make."""
        call, error, message = mistake
        if self.front_end is not gs and message in python_only:
            pytest.skip("a C++ compiler refuses it")
        with torch.inference_mode(inference), pytest.raises(error) as caught:
            call(self.front_end)
        assert type(caught.value) is error
        assert str(caught.value).split("\n")[0] == message


PYTHON = Runner()
