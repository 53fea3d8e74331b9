# SPDX-License-Identifier: BSD-3-Clause
"""Layers with the arguments, the parameters and the state_dict of PyG's layers of the same names."""

from gossamer.nn.gat_conv import GATConv
from gossamer.nn.gatv2_conv import GATv2Conv
from gossamer.nn.gcn_conv import GCNConv

__all__ = ["GATConv", "GATv2Conv", "GCNConv"]
