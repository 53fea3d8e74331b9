# SPDX-License-Identifier: BSD-3-Clause
"""What we say of CHOLMOD's memory (src/torch/solve/engines/cholmod_declarations.h) is what its own header says, and the
engine works where only the library is installed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = [Path(prefix) / "include" / name for prefix in ("/usr", "/usr/local") for name in ("suitesparse", ".")]
HEADERS = next((folder for folder in FOLDERS if (folder / "cholmod.h").exists()), None)

# Our struct, theirs, and the names of each field in both.
FIELDS = {
    ("Sparse", "cholmod_sparse"): """rows nrow, columns ncol, capacity nzmax, ptr p, indices i, lengths nz, values x,
        imaginary z, triangle stype, index_type itype, value_type xtype, precision dtype, sorted sorted,
        packed packed""",
    ("Dense", "cholmod_dense"): """rows nrow, columns ncol, capacity nzmax, stride d, values x, imaginary z,
        value_type xtype, precision dtype""",
    ("Factor", "cholmod_factor"): """n n, first_bad_step minor, order Perm, counts ColCount, inverse_order IPerm,
        capacity nzmax, ptr p, indices i, values x, imaginary z, lengths nz, next next, previous prev, blocks nsuper,
        block_indices_size ssize, block_values_size xsize, largest_update maxcsize, largest_rest maxesize,
        block_columns super, block_indices_ptr pi, block_values_ptr px, block_indices s, ordering ordering, is_ll is_ll,
        is_blocked is_super, is_monotonic is_monotonic, index_type itype, value_type xtype, precision dtype,
        on_gpu useGPU""",
    ("Parameters", "cholmod_common"): """smallest_pivot dbound, growth grow0, slack grow2, update_rank maxrank,
        blocks_from supernodal_switch, kind supernodal, final_form final_asis, relaxed_zeros zrelax,
        relaxed_columns nrelax, preferences prefer_zomplex, print print""",
}
CONSTANTS = "int_indices INT, real_values REAL, double_precision DOUBLE, solve_all A"


def program() -> str:
    """Compiles if every field is where CHOLMOD has it."""
    lines = [
        '#include "solve/engines/cholmod_declarations.h"',
        "#include <cholmod.h>",
        "namespace abi = gossamer::cholmod_abi;",
    ]
    for (ours, theirs), fields in FIELDS.items():
        for pair in fields.split(","):
            our, their = pair.split()
            lines.append(f"static_assert(offsetof(abi::{ours}, {our}) == offsetof({theirs}, {their}));")
            lines.append(f"static_assert(sizeof(abi::{ours}::{our}) % sizeof({theirs}::{their}) == 0);")
        if ours != "Parameters":
            lines.append(f"static_assert(sizeof(abi::{ours}) == sizeof({theirs}));")
    for pair in CONSTANTS.split(","):
        our, their = pair.split()
        lines.append(f"static_assert(abi::{our} == CHOLMOD_{their});")
    lines.append("static_assert(sizeof(cholmod_common) <= sizeof(abi::Parameters) / 2);")
    lines.append("static_assert(abi::oldest <= CHOLMOD_MAIN_VERSION && CHOLMOD_MAIN_VERSION <= abi::newest);")
    return "\n".join([*lines, ""])


@pytest.mark.skipif(HEADERS is None, reason="cholmod.h is not there: apt-get install libsuitesparse-dev")
def test_declarations_are_those_of_the_header(tmp_path: Path) -> None:
    source = tmp_path / "layout.cpp"
    source.write_text(program())
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", "-Wno-invalid-offsetof"]
    folders = [f"-I{ROOT / 'src' / 'torch'}", "-isystem", str(HEADERS)]
    done = subprocess.run([*command, *folders, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_header_of_suitesparse_is_included() -> None:
    """A wheel is built where SuiteSparse is not, and finds it where it is."""
    for path in (ROOT / "src").rglob("*.[ch]*"):
        assert not any(
            line.startswith("#include") and ("cholmod.h" in line or "umfpack.h" in line)
            for line in path.read_text().splitlines()
        ), path
