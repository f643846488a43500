#!/usr/bin/env python3
"""Compares the kernels of matrix products with cuBLAS on a real Hopper GPU, for tuning.

    python3 tests/real-gpu/matmul.py bf16 fp64 --sizes 2048,4096,5000x3000x7000
    python3 tests/real-gpu/matmul.py --before ../old/workload/kernels    also compare these kernels
    python3 tests/real-gpu/matmul.py --run-ms 250 --rounds 5             measure longer runs
    python3 tests/real-gpu/matmul.py --parts 1,2,3,4                     split the last round's sums

Needs PyTorch, nvidia-ml-py and nvidia-cublas. All kernels run alternately on the same random
matrices. A round measures each for `--run-ms`, in random order. Because the clock decreases under
load, a ratio is the median of the ratios within rounds. It is relative to the faster of cuBLAS' two
interfaces. In short runs, all have the same clock; in long ones, the clock depends on the power of
each kernel, so check both. Every element of every result is checked by gpumon's own kernels. The
exit code is 1 if an element is wrong.
"""

import argparse
import ctypes
import glob
import math
import random
import re
import statistics
import sys
import threading
import time
from pathlib import Path

import pynvml
import torch

KERNELS = Path(__file__).resolve().parents[2] / "workload" / "kernels"
WHOLE_TILES = 256
#: The maximum shared memory of a block in bytes. Kernels that use the copy engine run one block per
#: multiprocessor.
ALL_SHARED = 227 << 10
MAX_DYNAMIC_SHARED_BYTES = 8
#: The value of CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION.
PROGRAMMATIC_LAUNCH = 6
#: Rows of the first factor that `matmul_hopper.cu` copies at a time.
COPIED_ROWS = 64
#: The size of the flags in bytes. There is one flag for each part of a sum, and `parts.cuh` places
#: the flags in front of the parts.
FLAGS_BYTES = 16 << 10
#: For each type: the bytes of an element and of a result, `CUtensorMapDataType`, `cudaDataType_t`
#: of an element and of a result, `cublasComputeType_t`, and the bits of precision of a result and
#: of a sum, as in `values.rs`.
TYPES = {
    "bf16": (2, 2, 9, 14, 14, 68, 8, 24),
    "fp16": (2, 2, 6, 2, 2, 68, 11, 24),
    "fp8": (1, 2, 0, 28, 14, 68, 8, 17),
    "tf32": (4, 4, 7, 0, 0, 77, 24, 24),
    "int8": (1, 4, 0, 3, 10, 72, None, None),
    "fp32": (4, 4, 7, 0, 0, 68, 24, 24),
    "fp64": (8, 8, 8, 1, 1, 70, 53, 53),
}
#: The value of `CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION`.
SUM_IN_SINGLE_PRECISION = 16

torch.zeros(1, device="cuda")
cuda = ctypes.CDLL("libcuda.so.1")


def check_result(code, doing):
    if code != 0:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(code, ctypes.byref(text))
        sys.exit(f"cannot {doing}: {text.value.decode() if text.value else code}")


def load_kernel(image, name, shared=0):
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    check_result(cuda.cuModuleLoadData(ctypes.byref(module), image), f"load the code of {name}")
    check_result(
        cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode()), f"find {name}"
    )
    if shared:
        check_result(
            cuda.cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED_BYTES, shared),
            f"set the shared memory of {name}",
        )
    return function


class Attribute(ctypes.Structure):
    """The structure CUlaunchAttribute of CUDA."""

    _fields_ = [
        ("id", ctypes.c_int),
        ("pad", ctypes.c_int),
        ("value", ctypes.c_int),
        ("rest", ctypes.c_char * 60),
    ]


class LaunchConfig(ctypes.Structure):
    """The structure CUlaunchConfig of CUDA."""

    _fields_ = [
        ("blocks", ctypes.c_uint * 3),
        ("threads", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("attribute_count", ctypes.c_uint),
    ]


def make_launcher(function, blocks, threads, shared, *arguments, is_programmatic=False):
    """Returns a function that launches a kernel. `is_programmatic` enables programmatic dependent
    launch, for kernels whose code waits for the previous kernel. An argument is an integer, a
    float, or a buffer that is passed by value.
    """
    kinds = {int: ctypes.c_uint64, float: ctypes.c_double}
    values = [kinds.get(type(argument), lambda buffer: buffer)(argument) for argument in arguments]
    places = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))

    attribute = Attribute(id=PROGRAMMATIC_LAUNCH, value=1)
    how = LaunchConfig(
        (blocks, 1, 1),
        (threads, 1, 1),
        shared,
        None,
        ctypes.pointer(attribute),
        int(is_programmatic),
    )

    def launch(keep=values):
        check_result(
            cuda.cuLaunchKernelEx(ctypes.byref(how), function, places, None), "start a kernel"
        )

    return launch


def tensor_map(memory, element, width, lines, depth, rows):
    """Returns a tensor map, which describes a matrix for the copy engine. The rows of its tiles
    have 128 bytes. The address of the tensor map is a multiple of 64.
    """
    raw = ctypes.create_string_buffer(256)
    bytes_of_map = (ctypes.c_char * 128).from_buffer(raw, -ctypes.addressof(raw) % 64)
    extents, strides = (ctypes.c_uint64 * 2)(depth, lines), (ctypes.c_uint64 * 1)(depth * width)
    tile, steps = (ctypes.c_uint32 * 2)(128 // width, rows), (ctypes.c_uint32 * 2)(1, 1)
    address = ctypes.c_void_p(memory.data_ptr())
    code = cuda.cuTensorMapEncodeTiled(
        bytes_of_map, element, 2, address, extents, strides, tile, steps, 0, 3, 2, 0
    )
    check_result(code, "describe a matrix to the copy engine")
    return bytes_of_map


class Cublas:
    """NVIDIA's products: by `cublasGemmEx`, and by the algorithm that cublasLt selects as the
    fastest.
    """

    #: The values of CUBLASLT_MATMUL_DESC_TRANSA, TRANSB and FAST_ACCUM,
    #: CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES and REDUCTION_SCHEME_MASK,
    #: CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE.
    TRANS_A, TRANS_B, FAST_ACCUM, WORKSPACE, SCHEMES, SUM_AS_COMPUTED = 3, 4, 25, 1, 3, 2
    WORKSPACE_BYTES = 32 << 20

    def __init__(self):
        folders = [
            path
            for entry in sys.path
            for path in glob.glob(f"{entry}/nvidia/*/lib/libcublas.so.1[0-9]")
        ]
        path = folders[0] if folders else "libcublas.so.13"
        self.library, self.lt = (
            ctypes.CDLL(path),
            ctypes.CDLL(path.replace("libcublas", "libcublasLt")),
        )
        self.handle, self.lt_handle = ctypes.c_void_p(), ctypes.c_void_p()
        assert self.library.cublasCreate_v2(ctypes.byref(self.handle)) == 0
        assert self.library.cublasSetMathMode(self.handle, SUM_IN_SINGLE_PRECISION) == 0
        assert self.lt.cublasLtCreate(ctypes.byref(self.lt_handle)) == 0
        self.workspace = torch.empty(self.WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")

    def supported_runners(self, product):
        """Returns the interfaces that support the product."""
        of = {"cuBLAS": self.make_gemm_runner(product), "cublasLt": self.make_lt_runner(product)}
        return {name: run for name, run in of.items() if run and run() == 0}

    @staticmethod
    def gemm_arguments(product):
        number = {"fp64": ctypes.c_double, "int8": ctypes.c_int32}.get(
            product.dtype, ctypes.c_float
        )
        places = [
            ctypes.c_void_p(memory.data_ptr()) for memory in (product.a, product.b, product.out)
        ]
        return number(1), number(0), *places

    def make_gemm_runner(self, product):
        _, _, _, element, result, computation, _, _ = TYPES[product.dtype]
        if product.dtype == "fp8":
            return None
        one, zero, a, b, out = self.gemm_arguments(product)
        of_b, of_a = (0, 1) if product.is_step_by_step else (1, 0)
        (rows, columns, depth), (pitch, lead) = product.shape, product.pitches
        return lambda: self.library.cublasGemmEx(
            self.handle,
            of_b,
            of_a,
            columns,
            rows,
            depth,
            ctypes.byref(one),
            b,
            element,
            lead,
            a,
            element,
            lead,
            ctypes.byref(zero),
            out,
            result,
            pitch,
            computation,
            -1,
        )

    def make_lt_runner(self, product):
        _, _, _, element, result, computation, _, _ = TYPES[product.dtype]
        one, zero, a, b, out = self.gemm_arguments(product)
        (rows, columns, depth), (pitch, lead) = product.shape, product.pitches

        def create_handle(kind, *given):
            handle = ctypes.c_void_p()
            assert getattr(self.lt, f"cublasLt{kind}Create")(ctypes.byref(handle), *given) == 0, (
                kind
            )
            return handle

        def set_attribute(kind, handle, attribute, value):
            setting = getattr(self.lt, f"cublasLt{kind}SetAttribute")
            assert setting(handle, attribute, ctypes.byref(value), ctypes.sizeof(value)) == 0, kind

        def create_layout(code, down, across, lead):
            return create_handle(
                "MatrixLayout",
                code,
                ctypes.c_uint64(down),
                ctypes.c_uint64(across),
                ctypes.c_int64(lead),
            )

        factor = result if product.dtype in ("fp64", "int8") else 0
        how, preference = (
            create_handle("MatmulDesc", computation, factor),
            create_handle("MatmulPreference"),
        )
        across = (
            (lambda lines: (lines, depth))
            if product.is_step_by_step
            else (lambda lines: (depth, lines))
        )
        of_b, of_a = (
            create_layout(element, *across(columns), lead),
            create_layout(element, *across(rows), lead),
        )
        of_out = create_layout(result, columns, rows, pitch)
        set_attribute("MatmulDesc", how, self.TRANS_A, ctypes.c_int32(not product.is_step_by_step))
        set_attribute("MatmulDesc", how, self.TRANS_B, ctypes.c_int32(product.is_step_by_step))
        if product.dtype == "fp8":
            set_attribute("MatmulDesc", how, self.FAST_ACCUM, ctypes.c_int8(1))
        set_attribute(
            "MatmulPreference", preference, self.WORKSPACE, ctypes.c_uint64(self.WORKSPACE_BYTES)
        )
        set_attribute(
            "MatmulPreference", preference, self.SCHEMES, ctypes.c_uint32(self.SUM_AS_COMPUTED)
        )
        #: A buffer for cublasLtMatmulHeuristicResult_t, which begins with the algorithm.
        found, count = ctypes.create_string_buffer(96), ctypes.c_int()
        described = (self.lt_handle, how, of_b, of_a, of_out, of_out, preference)
        code = self.lt.cublasLtMatmulAlgoGetHeuristic(*described, 1, found, ctypes.byref(count))
        if code != 0 or count.value == 0:
            return None
        room = ctypes.c_void_p(self.workspace.data_ptr())
        return lambda: self.lt.cublasLtMatmul(
            self.lt_handle,
            how,
            ctypes.byref(one),
            b,
            of_b,
            a,
            of_a,
            ctypes.byref(zero),
            out,
            of_out,
            out,
            of_out,
            found,
            room,
            ctypes.c_size_t(self.WORKSPACE_BYTES),
            None,
        )


class Product:
    """Two random matrices, generated like those of gpumon, and the check of their product."""

    def __init__(self, dtype, shape):
        self.dtype, self.shape, self.is_step_by_step = dtype, shape, dtype == "fp32"
        self.padded = rows, columns, depth = [
            -(-side // WHOLE_TILES) * WHOLE_TILES for side in shape
        ]
        self.pitches = (columns, max(rows, columns) if self.is_step_by_step else depth)
        held = lambda lines: self.pitches[1] if self.is_step_by_step else lines
        self.width, self.result_width, self.element = TYPES[dtype][:3]
        matrix = lambda elements, width: torch.empty(
            elements * width, dtype=torch.uint8, device="cuda"
        )
        self.a, self.b = (matrix(held(lines) * depth, self.width) for lines in (rows, columns))
        self.out = matrix(rows * columns, self.result_width)
        self.parts = []
        self.image = (KERNELS / "matmul_check.ptx").read_bytes() + b"\0"
        fill = load_kernel(self.image, f"matmul_fill_{dtype}")
        for memory, side, seed in ((self.a, 0, 1), (self.b, 1, 2)):
            numbers = [
                shape[side],
                shape[2],
                held(self.padded[side]),
                depth,
                *self.line_and_step_strides,
                seed,
            ]
            make_launcher(fill, 65536, 256, 0, memory.data_ptr(), *numbers)()

    @property
    def line_and_step_strides(self):
        """Returns two strides: from one line to the next, and from one step to the next."""
        return (1, self.pitches[1]) if self.is_step_by_step else (self.pitches[1], 1)

    def count_wrong(self):
        """Returns the number of wrong elements."""
        *_, result_bits, sum_bits = TYPES[self.dtype]
        rows, columns, depth = self.shape
        steps = depth**0.5 + 4
        of_result, of_terms = (
            (0.5**result_bits, 0.5**sum_bits * steps) if result_bits else (0.0, 0.0)
        )
        least = 0.5**25 if self.dtype == "fp16" else 0.0
        blocks = -(-rows // 32) * -(-columns // 32)
        found = torch.zeros(blocks * 3, dtype=torch.int64, device="cuda")
        matrices = [memory.data_ptr() for memory in (found, self.out, self.a, self.b)]
        check = load_kernel(self.image, f"matmul_check_{self.dtype}")
        numbers = [
            *self.shape,
            self.pitches[0],
            *self.line_and_step_strides,
            of_result,
            of_terms,
            least,
        ]
        make_launcher(check, blocks, 256, 0, *matrices, *numbers)()
        torch.cuda.synchronize()
        return int(found.view(-1, 3)[:, 0].sum())

    def make_kernel_runners(self, folder, parts=(1,)):
        """Returns a dictionary with a function for each kernel of this type in a folder. The
        function runs the kernel. Its key consists of the tile size in the kernel's name, and the
        number of parts into which sums are split.
        """
        source = "matmul_fp32" if self.dtype == "fp32" else "matmul_hopper"
        lines = rf"^matmul_{self.dtype}_(\d+)x(\d+) .*?((?: u64| b8\S*)*)$"
        names = re.findall(lines, (folder / "listing.txt").read_text(), re.MULTILINE)
        image = (folder / f"{source}.sm_90a.cubin").read_bytes()
        is_programmatic = "griddepcontrol.wait" in (folder / f"{source}.cu").read_text()
        runners = {}
        for down, across, takes in names:
            for count in parts:
                run = self.make_kernel_runner(
                    image, int(down), int(across), count, len(takes.split()), is_programmatic
                )
                runners |= {f"{down}x{across}" + f" in {count}" * (count > 1): run} if run else {}
        return runners

    def make_kernel_runner(self, image, down, across, parts, parameters, is_programmatic):
        """Returns a function that runs a kernel. Returns None if its sums cannot be split into
        `parts`: the kernel does not support this, the last round of tiles is full, or a sum has too
        few slabs.
        """
        name, tiles = (
            f"matmul_{self.dtype}_{down}x{across}",
            -(-self.shape[0] // down) * -(-self.shape[1] // across),
        )
        processors = torch.cuda.get_device_properties(0).multi_processor_count
        rest = tiles % processors if parts > 1 else 0
        takes_parts = parameters > (8 if self.is_step_by_step else 7)
        slabs = -(-self.shape[2] // (16 if self.is_step_by_step else 128 // self.width))
        if parts > 1 and not (rest and takes_parts and parts <= slabs):
            return None
        pieces = tiles - rest + rest * parts
        if takes_parts:
            size = FLAGS_BYTES + rest * parts * down * across * (8 if self.dtype == "fp64" else 4)
            self.parts.append(torch.zeros(size, dtype=torch.uint8, device="cuda"))
        cut = [self.parts[-1].data_ptr(), tiles - rest, parts] if takes_parts else []
        memory = [self.out.data_ptr()]
        if self.is_step_by_step:
            shared, threads, blocks = (down + across) * 48 * 4, 256, pieces
            memory += [self.a.data_ptr(), self.b.data_ptr()]
            numbers = [*self.shape, *self.pitches]
        else:
            shared, threads = ALL_SHARED, 384
            blocks = min(pieces, processors)
            view = lambda matrix, lines, tile: tensor_map(
                matrix, self.element, self.width, lines, self.padded[2], tile
            )
            memory += [
                view(self.a, self.padded[0], COPIED_ROWS),
                view(self.b, self.padded[1], across),
            ]
            numbers = [*self.shape, self.pitches[0]]
        function = load_kernel(image, name, shared)
        return make_launcher(
            function,
            blocks,
            threads,
            shared,
            *memory,
            *numbers,
            *cut,
            is_programmatic=is_programmatic,
        )


def sample_clock_and_power(samples):
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    while True:
        clock = pynvml.nvmlDeviceGetClockInfo(device, pynvml.NVML_CLOCK_SM)
        field = pynvml.nvmlDeviceGetFieldValues(device, [pynvml.NVML_FI_DEV_POWER_INSTANT])[0]
        samples.append((time.perf_counter(), clock, field.value.uiVal / 1000))
        time.sleep(0.004)


def time_runs(run, repetitions):
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    before.record()
    for _ in range(repetitions):
        run()
    after.record()
    torch.cuda.synchronize()
    return before.elapsed_time(after) / repetitions / 1000


def measure_kernels(product, runners, options, samples):
    """Measures all kernels. Returns the number of wrong elements."""
    wrong, seconds, about = {}, {name: [] for name in runners}, {name: [] for name in runners}
    for name, run in runners.items():
        wrong[name] = 0
        # Both a single launch and consecutive launches that overlap are checked.
        for times in (1, 3):
            product.out.fill_(0xFF)
            for _ in range(times):
                run()
            wrong[name] += product.count_wrong()
    repetitions = {
        name: max(1, int(options.run_ms / 1000 / time_runs(run, 2)))
        for name, run in runners.items()
    }
    # The order is random, because the previous kernel affects the temperature and the clock.
    names, order = list(runners), random.Random(0)
    for _ in range(options.rounds):
        for name in order.sample(names, len(names)):
            begin = time.perf_counter()
            seconds[name].append(time_runs(runners[name], repetitions[name]))
            about[name] += [sample[1:] for sample in samples[-200:] if sample[0] > begin]
    yardsticks = [name for name in names if name in ("cuBLAS", "cublasLt")] or names[:1]
    best = min((seconds[name] for name in yardsticks), key=statistics.median)
    for name in names:
        rate = 2 * math.prod(product.shape) / statistics.median(seconds[name]) / 1e12
        ratio = statistics.median(yard / own for yard, own in zip(best, seconds[name]))
        clock, watts = (
            (statistics.mean(part) for part in zip(*about[name])) if about[name] else (0, 0)
        )
        mistakes = f"  {wrong[name]} WRONG" if wrong[name] else ""
        measured = f"{rate:8.1f} TFLOP/s {ratio:6.3f} {clock:5.0f} MHz {watts:4.0f} W"
        shape = "x".join(map(str, product.shape))
        print(f"{product.dtype} {shape:15} {name:16} {measured}{mistakes}", flush=True)
    return sum(wrong.values())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "types", nargs="*", choices=[*TYPES, []], help="element types; by default all"
    )
    parser.add_argument(
        "--sizes", default="2048,4096,8192", help="sizes, comma-separated: N or ROWSxCOLUMNSxDEPTH"
    )
    parser.add_argument(
        "--before", type=Path, help="a folder with another version of the kernels, for comparison"
    )
    parser.add_argument(
        "--parts",
        default="1",
        help="numbers of parts into which the sums of the last round are cut, comma-separated",
    )
    parser.add_argument(
        "--run-ms", type=float, default=2, help="run time of each kernel per round, in milliseconds"
    )
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    pynvml.nvmlInit()
    cublas, samples, wrong = Cublas(), [], 0
    threading.Thread(target=sample_clock_and_power, args=(samples,), daemon=True).start()
    print(torch.cuda.get_device_name(0), "driver", pynvml.nvmlSystemGetDriverVersion())
    for dtype in options.types or TYPES:
        for size in options.sizes.split(","):
            sides = tuple(map(int, size.split("x")))
            product = Product(dtype, sides if len(sides) == 3 else sides * 3)
            runners = cublas.supported_runners(product)
            if options.before:
                runners |= {
                    f"before {tile}": run
                    for tile, run in product.make_kernel_runners(options.before).items()
                }
            runners |= product.make_kernel_runners(
                KERNELS, list(map(int, options.parts.split(",")))
            )
            wrong += measure_kernels(product, runners, options, samples)
            del product, runners
            torch.cuda.empty_cache()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
