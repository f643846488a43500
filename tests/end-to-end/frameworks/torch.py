"""A stub of PyTorch for tests, based on the stub of NumPy."""

import numpy
from numpy import cos, exp, sin, where  # noqa: F401

__version__ = "0.stub+cu13"
float32, float64 = "float32", "float64"


class Tensor(numpy.ndarray):
    def clone(self):
        return self.copy()

    def to(self, device):
        return self.copy()

    def cpu(self):
        return self.copy()

    def contiguous(self):
        return self

    def data_ptr(self):
        return self.values.buffer_info()[0]

    def numel(self):
        return len(self.values)

    def element_size(self):
        return self.values.itemsize


def frombuffer(data, dtype):
    # Real PyTorch warns if the memory is not writable, so the stub requires a `bytearray`.
    assert isinstance(data, bytearray)
    array = numpy.frombuffer(data, dtype)
    return Tensor(array.values, dtype, array.shape)


def get_num_threads():
    return 2


def set_num_threads(count):
    assert count in (1, 2)


class cuda:
    def synchronize():
        pass

    def empty_cache():
        pass


class backends:
    class cuda:
        class matmul:
            allow_tf32 = False
