# SPDX-License-Identifier: BSD-3-Clause
"""The error of iterations that do not arrive."""

from __future__ import annotations


class ConvergenceError(RuntimeError):
    """An iteration that did not reach its tolerance: what it has is not returned."""
