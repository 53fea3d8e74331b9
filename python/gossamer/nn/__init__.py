# SPDX-License-Identifier: BSD-3-Clause
"""Layers with the arguments, the parameters and the state_dict of PyG's of the same names; and a learned matrix."""

from gossamer.nn._gat_conv import GATConv
from gossamer.nn._gatv2_conv import GATv2Conv
from gossamer.nn._gcn_conv import GCNConv
from gossamer.nn._sparse_parameter import SparseParameter

__all__ = ["GATConv", "GATv2Conv", "GCNConv", "SparseParameter"]
