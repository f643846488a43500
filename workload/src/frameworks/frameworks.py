"""Runs operations in another framework in the same way as gpumon's runner: with the same data,
warm-up, synchronization and stopping rule.

If the argument is `find`, this script prints all frameworks and whether each can be imported. If it
is the name of a framework, the script reads requests and writes a response to each. Requests and
responses are one JSON object per line.
"""

import sys

# Modules must not be imported from the working directory.
sys.path[:] = [path for path in sys.path if path]

import array  # noqa: E402
import ctypes  # noqa: E402
import importlib.util  # noqa: E402
import json  # noqa: E402
import math  # noqa: E402
import os  # noqa: E402
import time  # noqa: E402

SCALAR, ALPHA, SCALE = 0.42, 1.6732632, 1.050701
NAMES = {"fp32": "float32", "tf32": "float32", "fp64": "float64"}


def build_operation(xp, name):
    """Returns the operation with this name, built from functions that all frameworks provide."""
    return {
        "add": lambda a, b: a + b,
        "scale": lambda a: SCALAR * a,
        "triad": lambda a, b: a + SCALAR * b,
        "square": lambda a: a * a,
        "trig": lambda a: xp.cos(a) ** 2 + xp.sin(a) ** 2,
        "selu": lambda a: SCALE * xp.where(a > 0, a, ALPHA * xp.exp(a) - ALPHA),
        "matmul": lambda a, b: a @ b,
    }[name]


class Framework:
    """A framework that works like NumPy, on the CPU. Subclasses override what differs."""

    def __init__(self, module, device, host=None):
        self.module, self.device, self.host = module, device, host or module
        # If the device cannot be used, this fails before the first request.
        self.wait(self.to_device(self.array(bytes(4), {"dtype": "fp32", "shape": [1]})))

    def array(self, data, request):
        """Returns an array on the host. The framework owns its memory."""
        array = self.host.frombuffer(data, dtype=NAMES[request["dtype"]])
        return array.reshape(request["shape"]).copy()

    def to_device(self, array):
        return array

    def to_host(self, array):
        return array

    def build_function(self, request):
        """Returns a function that runs the operation, or None if the framework does not have the
        operation or cannot run it as requested.
        """
        return build_operation(self.module, request["operation"])

    def wait(self, result):
        pass

    def data(self, result):
        return result.tobytes()

    def release(self):
        """Releases memory that is no longer used."""


class NumPyBasedFramework(Framework):
    """A framework whose host arrays are NumPy arrays."""

    def __init__(self, module, device):
        super().__init__(module, device, importlib.import_module("numpy"))


class CuPy(NumPyBasedFramework):
    def to_device(self, array):
        return self.module.asarray(array)

    def to_host(self, array):
        return self.module.asnumpy(array)

    def build_function(self, request):
        # CuPy only uses tf32 if an environment variable requests it before the import.
        return None if request["dtype"] == "tf32" else super().build_function(request)

    def wait(self, result):
        self.module.cuda.Device().synchronize()

    def release(self):
        self.module.get_default_memory_pool().free_all_blocks()


class Jax(NumPyBasedFramework):
    def __init__(self, module, device):
        module.config.update("jax_enable_x64", True)
        super().__init__(module, device)

    def to_device(self, array):
        return self.module.device_put(array).block_until_ready()

    def to_host(self, array):
        return self.host.asarray(array)

    def build_function(self, request):
        if request["one_thread"]:
            return None
        precision = "default" if request["dtype"] == "tf32" else "highest"
        self.module.config.update("jax_default_matmul_precision", precision)
        function = build_operation(self.module.numpy, request["operation"])
        return self.module.jit(function) if request["fused"] else function

    def wait(self, result):
        result.block_until_ready()


class Torch(Framework):
    def __init__(self, module, device):
        super().__init__(module, device)
        self.threads = module.get_num_threads()

    def array(self, data, request):
        array = self.module.frombuffer(
            bytearray(data), dtype=getattr(self.module, NAMES[request["dtype"]])
        )
        return array.reshape(request["shape"]).clone()

    def to_device(self, array):
        return array.to(self.device)

    def to_host(self, array):
        return array.cpu()

    def build_function(self, request):
        self.module.set_num_threads(1 if request["one_thread"] else self.threads)
        if self.device == "cuda":
            self.module.backends.cuda.matmul.allow_tf32 = request["dtype"] == "tf32"
        return super().build_function(request)

    def wait(self, result):
        if self.device == "cuda":
            self.module.cuda.synchronize()

    def data(self, result):
        result = result.contiguous()
        return ctypes.string_at(result.data_ptr(), result.numel() * result.element_size())

    def release(self):
        if self.device == "cuda":
            self.module.cuda.empty_cache()


class Numba(NumPyBasedFramework):
    """Loops over elements that Numba compiles."""

    ELEMENTS = {
        "add": "a[i] + b[i]",
        "scale": f"t({SCALAR}) * a[i]",
        "triad": f"a[i] + t({SCALAR}) * b[i]",
        "square": "a[i] * a[i]",
        "trig": "math.cos(a[i]) ** 2 + math.sin(a[i]) ** 2",
    }

    def to_device(self, array):
        return self.module.cuda.to_device(array) if self.device == "cuda" else array

    def to_host(self, array):
        return array.copy_to_host() if self.device == "cuda" else array

    def build_function(self, request):
        if request["operation"] not in self.ELEMENTS:
            return None
        names = ", ".join("ab"[: len(request["inputs"])])
        element = self.ELEMENTS[request["operation"]]
        dtype = getattr(self.host, NAMES[request["dtype"]])
        scope = {"math": math, "t": dtype, "prange": self.module.prange, "grid": None}
        if self.device == "cuda":
            cuda = scope["cuda"] = self.module.cuda
            code = (
                f"def loop(out, {names}):\n"
                f" i = cuda.grid(1)\n if i < out.size:\n  out[i] = {element}"
            )
            exec(code, scope)
            kernel = cuda.jit(scope["loop"])
            out = cuda.device_array(request["shape"], dtype)
            threads = 256
            blocks = -(-out.size // threads)
        else:
            loop = "range" if request["one_thread"] else "prange"
            exec(
                f"def loop(out, {names}):\n for i in {loop}(out.size):\n  out[i] = {element}", scope
            )
            compiled = self.module.njit(parallel=not request["one_thread"])(scope["loop"])
            out = self.host.empty(request["shape"], dtype)

        def function(*inputs):
            if self.device == "cuda":
                kernel[blocks, threads](out, *inputs)
            else:
                compiled(out, *inputs)
            return out

        return function

    def wait(self, result):
        if self.device == "cuda":
            self.module.cuda.synchronize()


#: By framework: the class, the module, the name of the pip package, and the backends.
FRAMEWORKS = {
    "NumPy": (Framework, "numpy", "numpy", ["cpu"]),
    "Numba": (Numba, "numba", "numba", ["cuda", "cpu"]),
    "CuPy": (CuPy, "cupy", "cupy-cuda13x", ["cuda"]),
    "PyTorch": (Torch, "torch", "torch", ["cuda", "cpu"]),
    "JAX": (Jax, "jax", "jax", ["cuda", "cpu"]),
}


def find_frameworks():
    for name, (_, module, package, backends) in FRAMEWORKS.items():
        is_installed = importlib.util.find_spec(module) is not None
        yield {"name": name, "backends": backends, "package": package, "is_installed": is_installed}


def measure_runs(run, limits):
    """Returns the time of each run and the result of the last run.

    Times are in us, measured from the call until the result is available. The warm-up and the
    stopping rule are the same as in gpumon's runner.
    """
    # The first run compiles the operation.
    run()
    begun = time.perf_counter()
    while True:
        run()
        if time.perf_counter() - begun >= limits["warm_up_s"]:
            break
    times, begun = array.array("d"), time.perf_counter()
    # Sums of the differences from the first time, and of their squares. The deviation can be
    # computed quickly from both sums.
    total = squares = 0.0
    while True:
        start = time.perf_counter()
        result = run()
        now = time.perf_counter()
        times.append((now - start) * 1e6)
        longer = times[-1] - times[0]
        total, squares = total + longer, squares + longer**2
        count = len(times)
        if count < limits["fewest"]:
            continue
        if count % limits["fewest"] == 0 and now - begun >= limits["least_s"]:
            mean, variance = times[0] + total / count, (squares - total**2 / count) / (count - 1)
            if variance <= (limits["steady"] * mean) ** 2:
                return times, result
        if now - begun >= limits["time_s"] or count >= limits["most"]:
            return times, result


def run_request(framework, request):
    """Runs a request, and writes the result and the times to the files that the request names.

    Returns False if the framework cannot run the operation.
    """
    function = framework.build_function(request)
    if function is None:
        return False
    arrays = []
    for path in request["inputs"]:
        with open(path, "rb") as file:
            arrays.append(framework.array(file.read(), request))
    if request["copies"]:

        def run():
            return framework.to_host(function(*[framework.to_device(array) for array in arrays]))
    else:
        inputs = [framework.to_device(array) for array in arrays]

        def run():
            result = function(*inputs)
            framework.wait(result)
            return result

    times, result = measure_runs(run, request)
    if not request["copies"]:
        result = framework.to_host(result)
    with open(request["out"], "wb") as file:
        file.write(framework.data(result))
    with open(request["times"], "wb") as file:
        times.tofile(file)
    return True


def main():
    # The kernel sends SIGKILL to this process when gpumon ends (PR_SET_PDEATHSIG).
    ctypes.CDLL(None).prctl(1, 9)
    # Output of the framework must not be mistaken for a response, so it is redirected to standard
    # error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def print_response(value):
        print(json.dumps(value), file=answers, flush=True)

    if sys.argv[1] == "find":
        return print_response(list(find_frameworks()))
    name, device = sys.argv[1:]
    kind, module, *_ = FRAMEWORKS[name]
    module = importlib.import_module(module)
    if name == "Numba" and device == "cuda":
        importlib.import_module("numba.cuda")
    framework = kind(module, device)
    print_response({"version": str(getattr(module, "__version__", ""))})
    for line in sys.stdin:
        try:
            print_response({"ran": run_request(framework, json.loads(line))})
        except Exception as error:
            print_response({"error": f"{type(error).__name__}: {error}"})
        framework.release()


main()
