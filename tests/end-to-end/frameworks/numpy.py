"""A stub of NumPy for tests in plain Python: slow but correct."""

import array
import math
import operator
import os

__version__ = "0.stub"
TYPES = {"float32": "f", "float64": "d"}


class ndarray:
    def __init__(self, values, dtype, shape):
        self.values, self.dtype, self.shape = array.array(TYPES[dtype], values), dtype, shape

    def reshape(self, shape):
        return type(self)(self.values, self.dtype, shape)

    def copy(self):
        return self.reshape(self.shape)

    def tobytes(self):
        return self.values.tobytes()

    def map(self, function, other=None):
        others = other.values if isinstance(other, ndarray) else [other] * len(self.values)
        return type(self)(map(function, self.values, others), self.dtype, self.shape)

    def __add__(self, other):
        return self.map(operator.add, other)

    def __sub__(self, other):
        return self.map(operator.sub, other)

    def __mul__(self, other):
        return self.map(operator.mul, other)

    def __rmul__(self, other):
        return self.map(operator.mul, other)

    def __pow__(self, other):
        return self.map(operator.pow, other)

    def __gt__(self, other):
        return self.map(operator.gt, other)

    def __matmul__(self, other):
        rows, columns = range(self.shape[0]), range(other.shape[1])
        inner = range(self.shape[1])
        a, b = self.values, other.values
        sums = (
            math.fsum(a[i * len(inner) + k] * b[k * len(columns) + j] for k in inner)
            for i in rows
            for j in columns
        )
        return type(self)(sums, self.dtype, [len(rows), len(columns)])


def frombuffer(data, dtype):
    values = array.array(TYPES[dtype], bytes(data))
    return ndarray(values, dtype, [len(values)])


def asnumpy(array):
    return array.copy()


def cos(array):
    return array.map(lambda x, _: math.cos(x))


def sin(array):
    return array.map(lambda x, _: math.sin(x))


def exp(array):
    return array.map(lambda x, _: math.exp(x))


def where(condition, a, b):
    return type(a)(
        (x if c else y for c, x, y in zip(condition.values, a.values, b.values)), a.dtype, a.shape
    )


# Tests set the variable to simulate an error.
fault = os.environ.get("STUB_FAULT", "")
if fault == "import":
    raise ImportError("libstub.so.1: cannot open shared object file")
if fault == "wrong":

    def cos(array):
        return array.map(lambda x, _: math.sin(x))


if fault == "raise":

    def cos(array):
        raise MemoryError("12 GiB")


if fault == "crash":

    def cos(array):
        os.kill(os.getpid(), 11)
