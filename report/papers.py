# SPDX-License-Identifier: BSD-3-Clause
"""The papers whose equations, figures and tables are computed here."""

NYTKO = (
    "N. Nytko, A. Taghibakhshi, T. U. Zaman, S. MacLachlan, L. N. Olson, M. West, “Optimized Sparse Matrix Operations "
    "for Reverse Mode Automatic Differentiation”"
)
GOULD = "J. Gould, K. K. Parhi, “Backpropagation Computation for Training Graph Attention Networks”"
