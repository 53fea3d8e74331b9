# SPDX-License-Identifier: BSD-3-Clause
"""Teaches torch.compile the operator @ of matrices.

Dynamo traces an operator between an object and a tensor as a method of the tensor, and knows for most of them which
method stands for the operands in the other order: s * A is ``Tensor.__rmul__``. For ``@`` its table has no such entry,
so that A @ X and X @ A come as the same call; and two objects cannot be multiplied at all. Both tables get the missing
line here, when Dynamo is imported: it takes longer to import than the rest of the package, which may not need it.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import operator
import sys
from collections.abc import Sequence
from types import ModuleType

import torch

_TABLES = "torch._dynamo.variables.builtin"


def _teach(tables: ModuleType) -> None:
    tables.BUILTIN_TO_TENSOR_RFN_MAP.setdefault(operator.matmul, torch.Tensor.__rmatmul__)
    names = ["__matmul__", "__rmatmul__", "__imatmul__"]
    tables.BuiltinVariable._binops().setdefault(operator.matmul, (names, operator.imatmul))
    tables.BuiltinVariable._binop_handlers.cache_clear()


class _WhenImported(importlib.abc.MetaPathFinder):
    """Finds Dynamo's module as it would be found without us, and teaches it when it has been executed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != _TABLES:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_teach(module: ModuleType) -> None:
                execute(module)
                _teach(module)

            spec.loader.exec_module = execute_and_teach  # type: ignore[method-assign]
        return spec


if _TABLES in sys.modules:
    _teach(sys.modules[_TABLES])
else:
    sys.meta_path.insert(0, _WhenImported())
