# SPDX-License-Identifier: BSD-3-Clause
"""Broken MatrixMarket files: each fault is named with its line; what is not refused is read as SciPy reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from comparison import BANNER, same, scipy_reads, text_file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gossamer as gs

FAULTS = [
    ("", 1, "the file is empty"),
    ("2 2 1\n1 1 1\n", 1, "a MatrixMarket file begins with '%%MatrixMarket matrix', format, field and symmetry"),
    ("%%MatrixMarket matrix coordinate real\n", 1, "a MatrixMarket file begins with"),
    ("%%MatrixMarket matrix coordinate real general more\n", 1, "a MatrixMarket file begins with"),
    ("%%MatrixMurket matrix coordinate real general\n", 1, "the first word is '%%MatrixMurket', not one of"),
    ("%%MatrixMarket vector coordinate real general\n", 1, "the object is 'vector', not one of matrix"),
    ("%%MatrixMarket matrix sparse real general\n", 1, "the format is 'sparse', not one of coordinate, array"),
    ("%%MatrixMarket matrix coordinate float general\n", 1, "the field is 'float', not one of real, integer,"),
    ("%%MatrixMarket matrix coordinate real odd\n", 1, "the symmetry is 'odd', not one of general, symmetric,"),
    ("%%MatrixMarket matrix array pattern general\n", 1, "an array file cannot have the field pattern"),
    ("%%MatrixMarket matrix coordinate real hermitian\n", 1, "a hermitian file must have the field complex"),
    ("%%MatrixMarket matrix coordinate pattern skew-symmetric\n", 1, "a pattern has no values to negate"),
    (BANNER, 2, "the file ends before its size line"),
    (BANNER + "% only\n\n", 4, "the file ends before its size line"),
    (BANNER + "2 2\n", 2, "the number of entries is missing"),
    (BANNER + "2 -2 1\n", 2, "the number of columns is '-2', not a size"),
    (BANNER + "2 2.0 1\n", 2, "the number of columns is '2.0', not a size"),
    (BANNER + "99999999999999999999 2 1\n", 2, "the number of rows is too large: '99999999999999999999'"),
    (BANNER + "2 2 1 1\n", 2, "the size line has '1' after its last number"),
    (BANNER + "2 2 2\n1 1 1\n", 3, "the file ends after 1 of 2 entries"),
    (BANNER + "2 2 9000000000000000000\n1 1 1\n", 3, "the file ends after 1 of 9000000000000000000 entries"),
    (BANNER + "2 2 1\n1 1 1\n% more\n2 2 2\n", 5, "there are more than the announced 1 entries"),
    (BANNER + "9000000000000000000 2 1\n1 1 1\n", 2, "9000000000000000000 rows for 1 entries are too many"),
    (BANNER + "1000000000 2 1\n1 1 1\n", 2, "1000000000 rows for 1 entries are too many for a CSR matrix"),
    (BANNER + "5 8 1\n\n1 9 1\n", 4, "column 9 is outside the 8 columns"),
    (BANNER + "5 8 1\n6 8 1\n", 3, "row 6 is outside the 5 rows"),
    (BANNER + "5 8 1\n0 8 1\n", 3, "row 0 is outside the 5 rows"),
    (BANNER + "5 8 1\n-1 8 1\n", 3, "row -1 is outside the 5 rows"),
    (BANNER + "5 8 1\n1 99999999999999999999999999 1\n", 3, "column '999999999999999999999999…' is outside"),
    (BANNER + "5 8 1\n1 18446744073709551617 1\n", 3, "column 18446744073709551617 is outside the 8 columns"),
    (BANNER + "5 8 1\n1\n", 3, "the column is missing"),
    (BANNER + "5 8 1\n1 1.0 1\n", 3, "the column is '1.0', not a whole number"),
    (BANNER + "5 8 1\n1 1\n", 3, "a value is missing"),
    (BANNER + "5 8 1\n1 1 x\n", 3, "'x' is not a number"),
    (BANNER + "5 8 1\n1 1 1.0D0\n", 3, "'1.0D0' is not a number"),
    (BANNER + "5 8 1\n1 1 +-1\n", 3, "'+-1' is not a number"),
    (BANNER + "5 8 1\n1 1 0x10\n", 3, "'0x10' is not a number"),
    (BANNER + "5 8 1\n1 1 1e400\n", 3, "'1e400' is too large for float64"),
    (BANNER + "5 8 1\n1 1 -1e400\n", 3, "'-1e400' is too large for float64"),
    (BANNER + "5 8 1\n1 1 1" + "0" * 400 + "e-10\n", 3, "is too large for float64"),
    (BANNER + "5 8 1\n1 1 1 1\n", 3, "'1' follows the last number of the entry"),
    (BANNER + "5 8 1\r1 1 1\r", 2, "the size line has '1' after its last number"),
    (BANNER.encode() + b"5 8 1\n1 1 \xff\xfe\x00\x1b\n", 3, "'????' is not a number"),
    (BANNER.replace("real", "integer") + "5 8 1\n1 1 1.5\n", 3, "'1.5' is not a whole number"),
    (BANNER.replace("real", "integer") + "5 8 1\n1 1 9223372036854775808\n", 3, "is too large for int64"),
    (BANNER.replace("real", "complex") + "5 8 1\n1 1 1.5\n", 3, "a value is missing"),
    (BANNER.replace("real", "pattern") + "5 8 1\n1 1 1.5\n", 3, "'1.5' follows the last number of the entry"),
    (BANNER.replace("general", "symmetric") + "5 8 1\n1 1 1\n", 2, "a symmetric matrix is square, not 5 x 8"),
    (BANNER.replace("general", "symmetric") + "5 5 1\n1 2 1\n", 3, "entry (1, 2) is above the diagonal, but a sym"),
    (BANNER.replace("general", "skew-symmetric") + "5 5 1\n2 2 1\n", 3, "entry (2, 2) is on the diagonal of a skew"),
    (BANNER.replace("real general", "complex hermitian") + "5 5 1\n2 2 1 1\n", 3, "entry (2, 2) is on the diagonal"),
    (BANNER.replace("coordinate", "array") + "2 2\n1\n2\n3\n", 5, "the file ends after 3 of 4 entries"),
    (BANNER.replace("coordinate", "array") + "2 1\n1 2\n\n3\n", 3, "'2' follows the last number of the entry"),
    (BANNER.replace("coordinate", "array") + "9000000000 9000000000\n1\n", 2, "the array is too large"),
    (BANNER.replace("coordinate", "array") + "1000000 1000000\n1\n", 3, "the file ends after 1 of 1000000000000"),
]


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize(("text", "line", "message"), FAULTS, ids=range(len(FAULTS)))
def test_faults_are_named_with_their_line(
    tmp_path: Path, text: str | bytes, line: int, message: str, inference: bool
) -> None:
    path = text_file(tmp_path, text)
    with torch.inference_mode(inference), pytest.raises(ValueError) as caught:  # noqa: PT011
        gs.read_mtx(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert message in str(caught.value)


VALID = [
    BANNER + "% c\n4 5 3\n1 2 3.5\n4 5 -1e3\n2 2 0\n",
    "%%MatrixMarket matrix coordinate integer symmetric\n3 3 3\n1 1 5\n3 1 -2\n3 2 7\n",
    "%%MatrixMarket matrix coordinate complex general\n3 2 2\n1 1 5 1\n3 2 -2 .5\n",
    "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n",
]


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_mutations_raise_or_read_as_scipy_reads(tmp_path: Path, data: st.DataObject) -> None:
    text = bytearray(data.draw(st.sampled_from(VALID)).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1)) if text else 0
        end = at + data.draw(st.integers(0, 4))
        text[at:end] = data.draw(
            st.sampled_from([b"", b" ", b"\n", b"\r\n", b"%", b"0", b"9", b"-", b".", b"e", b"\xff"])
        )
    path = text_file(tmp_path, bytes(text))
    try:
        A = gs.read_mtx(path)
    except ValueError as error:
        assert str(error).startswith(f"{path}:")  # noqa: PT017
        return
    same(A, scipy_reads(path))
