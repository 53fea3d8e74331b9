# SPDX-License-Identifier: BSD-3-Clause
"""Graphs with features, classes and a split of their nodes: from files, or made by a seed."""

from gossamer.datasets._folder import load
from gossamer.datasets._graph import Graph, assemble
from gossamer.datasets._planetoid import planetoid
from gossamer.datasets._synthetic import power_law, stochastic_block_model

__all__ = ["Graph", "assemble", "load", "planetoid", "power_law", "stochastic_block_model"]
