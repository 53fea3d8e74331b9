# SPDX-License-Identifier: BSD-3-Clause
"""Planetoid's pickles, of which only arrays, sparse matrices and lists of neighbours are accepted; nothing is run, and
what a file may ask for is what it holds."""

from __future__ import annotations

import io
import pickle
import re
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

Array = np.ndarray[Any, Any]


class Refused(ValueError):
    """What is wrong with a part; the message begins with its name."""


class _Type:
    """Stands for numpy.dtype: plain numbers only."""

    def __init__(self, code: str = "", *_: Any) -> None:
        if not (isinstance(code, str) and re.fullmatch(r"[biuf][1248]", code)):
            raise Refused(f"arrays of {code!r:.40} are not numbers")
        self.code, self.order = code, "<"

    def __setstate__(self, state: Any) -> None:
        order = state[1] if isinstance(state, tuple) and len(state) > 1 else None
        if order not in ("<", ">", "|", "="):
            raise Refused("a dtype without a byte order")
        self.order = order


class PickledArray:
    """Stands for numpy.ndarray, and for what makes an empty one."""

    def __init__(self, *_: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def numbers(self) -> Array:
        """The array itself, or an error unless shape, dtype and data fit."""
        try:
            _, shape, dtype, fortran, data = self.state
            raw = data.encode("latin1") if isinstance(data, str) else data
            sizes = tuple(shape)
            if not (
                isinstance(dtype, _Type) and isinstance(raw, bytes) and all(type(n) is int and n >= 0 for n in sizes)
            ):
                raise Refused("an array that is not numbers of a shape")
            array = np.frombuffer(raw, np.dtype(dtype.order + dtype.code))
            shaped = array.reshape(sizes, order="F" if fortran else "C")
            return np.array(shaped, dtype=array.dtype.newbyteorder("="), order="C")
        except (AttributeError, TypeError, ValueError) as error:
            raise Refused(f"a damaged array: {error}") from None


class PickledMatrix:
    """Stands for scipy.sparse.csr_matrix."""

    state: dict[str, Any]

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, dict):
            raise Refused("a sparse matrix without its arrays")
        self.state = state


class _Bytes:
    """Stands for codecs.encode, by which Python 3 writes bytes for Python 2."""

    left = 0  # bytes: what one file may ask for is what it holds, however often it names one text

    def __new__(cls, text: Any = "", encoding: Any = "latin1") -> Any:
        if not isinstance(text, str) or encoding != "latin1":
            raise Refused("bytes that are not written as latin1")
        cls.left -= len(text)
        if cls.left < 0:
            raise Refused("it asks for more bytes than it holds")
        return text.encode("latin1")

    def __setstate__(self, state: Any) -> None:
        raise Refused("bytes that are more than bytes")


class _List:
    """Stands for list, which a defaultdict names and nobody calls: a few bytes could ask for many copies of one."""

    def __new__(cls, *_: Any) -> Any:
        raise Refused("it calls list")


class _Neighbours(dict[Any, Any]):
    """Stands for collections.defaultdict."""

    def __init__(self, *_: Any) -> None:
        super().__init__()

    def __setstate__(self, state: Any) -> None:
        raise Refused("neighbours that are more than a dict")


# Everything a file may name, and what it gets. All of it is classes, which a file cannot write attributes to.
_KNOWN: dict[tuple[str, str], type[Any]] = {
    ("__builtin__", "list"): _List,
    ("__builtin__", "bytes"): _Bytes,
    ("_codecs", "encode"): _Bytes,
    ("builtins", "list"): _List,
    ("collections", "defaultdict"): _Neighbours,
    ("numpy", "dtype"): _Type,
    ("numpy", "ndarray"): PickledArray,
    ("numpy.core.multiarray", "_reconstruct"): PickledArray,
    ("numpy._core.multiarray", "_reconstruct"): PickledArray,
    ("scipy.sparse.csr", "csr_matrix"): PickledMatrix,
    ("scipy.sparse._csr", "csr_matrix"): PickledMatrix,
}


class _Unpickler(pickle._Unpickler):  # the one in Python: that in C allocates what a file of a few bytes asks for
    def __init__(self, contents: bytes) -> None:
        super().__init__(io.BytesIO(contents), encoding="latin1")
        self.bytes = type("_Bytes", (_Bytes,), {"left": len(contents)})

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _KNOWN:
            raise Refused(f"it names {module}.{name}, which is no part of a graph")
        known = _KNOWN[module, name]
        return self.bytes if known is _Bytes else known

    def load_bytearray8(self) -> None:
        raise Refused("it holds a bytearray, which is no part of a graph")

    # The one code for which that in Python makes room before it looks whether the file holds as much.
    dispatch: ClassVar[dict[int, Any]] = {**pickle._Unpickler.dispatch, pickle.BYTEARRAY8[0]: load_bytearray8}

    def persistent_load(self, pid: Any) -> Any:
        raise Refused("it refers to something outside of the file")


def unpickle(stem: Path, part: str, kind: type[Any]) -> Any:
    """What the file ``stem.part`` holds, if it is of that kind."""
    contents = Path(f"{stem}.{part}").read_bytes()
    try:
        found = _Unpickler(contents).load()
    except MemoryError:
        raise Refused(f"{part}: it asks for more memory than there is") from None
    except Exception as error:  # an unpickler may raise anything at bytes that are no pickle
        raise Refused(f"{part}: {error if isinstance(error, Refused) else f'not a pickle ({error!r:.80})'}") from None
    if not isinstance(found, kind) or (kind is PickledMatrix and not hasattr(found, "state")):
        name = type(found).__name__.strip("_").removeprefix("Pickled").lower()
        raise Refused(f"{part}: it holds a {name}, not what belongs there")
    return found
