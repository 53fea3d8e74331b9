# SPDX-License-Identifier: BSD-3-Clause
"""The applications, one module each: the equations, a loop, a figure. Each is a program of its own, too."""
