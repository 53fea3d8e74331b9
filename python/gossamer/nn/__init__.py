# SPDX-License-Identifier: BSD-3-Clause
"""Layers with the arguments, the parameters and the state_dict of PyG's layers of the same names."""

from gossamer.nn._gat_conv import GATConv
from gossamer.nn._gatv2_conv import GATv2Conv
from gossamer.nn._gcn_conv import GCNConv

__all__ = ["GATConv", "GATv2Conv", "GCNConv"]
