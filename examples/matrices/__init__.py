# SPDX-License-Identifier: BSD-3-Clause
"""Matrices that an application would rather not spell out itself."""
