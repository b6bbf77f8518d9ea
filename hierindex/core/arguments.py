"""Types of arrays, and validation of arguments."""

from math import isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierindex.errors import InputError

Floats1d = NDArray[np.float64]
Floats2d = NDArray[np.floating]
Ints1d = NDArray[np.int64]


def require(holds: bool, name: str, requirement: str, value: object) -> None:
    """Raise InputError unless a requirement holds.

    >>> require(3 > 4, "rows", "more than 4", 3)
    Traceback (most recent call last):
    hierindex.errors.InputError: rows must be more than 4, got 3.
    """
    if not holds:
        raise InputError(f"{name} must be {requirement}, got {value!r}.")


def is_whole(value: Any, least: int = 0) -> bool:
    """Return whether a value is an integer, Python's or numpy's, of at least `least`.

    >>> is_whole(2, 1), is_whole(2.0, 1), is_whole(True, 1), is_whole(0, 1)
    (True, False, False, False)
    """
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    return is_integer and int(value) >= least


def is_number(value: Any) -> bool:
    """Return whether a value is a finite real number.

    >>> is_number(2), is_number(float("nan")), is_number("2")
    (True, False, False)
    """
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    return is_real and isfinite(value)
