# SPDX-License-Identifier: BSD-3-Clause
"""The commands of ``python -m gossamer``, one module each."""

from gossamer._commands import bench, demo, export_golden, info, train

COMMANDS = [info, demo, train, bench, export_golden]
