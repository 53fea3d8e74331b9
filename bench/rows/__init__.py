# SPDX-License-Identifier: BSD-3-Clause
"""All rows of the benchmark, by name: those with peers, and every other timed row of the case table on its own."""

from bench.row import Bench
from bench.rows import batches, layers, ops, products
from bench.rows.cases import alone
from cases import CASES

BENCHES: dict[str, Bench] = {**ops.BENCHES, **products.BENCHES, **layers.BENCHES, **batches.BENCHES}
ROWS = {**BENCHES, **{case.name: alone(case) for case in CASES if case.timed and case.name not in BENCHES}}
