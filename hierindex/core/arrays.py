"""Types of arrays."""

import numpy as np
from numpy.typing import NDArray

Floats1d = NDArray[np.float64]
Floats2d = NDArray[np.floating]
Ints1d = NDArray[np.int64]
