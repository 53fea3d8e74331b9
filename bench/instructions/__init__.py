# SPDX-License-Identifier: BSD-3-Clause
"""How many instructions the kernels take."""
