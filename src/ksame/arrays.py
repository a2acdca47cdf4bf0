"""Types of arrays."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
ByteArray = NDArray[np.uint8]
IntArray = NDArray[np.intp]
