# SPDX-License-Identifier: BSD-3-Clause
"""The applications, one module each: sections of the report, and programs: ``python -m examples.heavyball``."""
