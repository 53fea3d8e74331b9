# SPDX-License-Identifier: BSD-3-Clause
"""The commands of ``python -m gossamer``, one module each."""

from gossamer.commands import export_golden, train

COMMANDS = [export_golden, train]
