# SPDX-License-Identifier: BSD-3-Clause
"""Matrices on many processes: what exchange, memory and overhead are. All ranks are on one machine."""
