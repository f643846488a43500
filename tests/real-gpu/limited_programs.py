"""Programs whose limit is known for a physical reason, which is given as a comment."""

from dataclasses import dataclass, field

BEGIN = """
import importlib.util, json, math, os, random, re, sys, time
import torch
def skip_without(*modules):
    for module in modules:
        if importlib.util.find_spec(module) is None:
            skip(f"needs {module}")
def skip(reason):
    print("skip", reason, flush=True)
    sys.exit()
def ready():
    # A program that does not use the GPU must not start to use it here.
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    print("ready", os.getpid(), flush=True)
def compute(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        random.gauss(0, 1)
def run(step):
    for _ in range(5):
        step()
    ready()
    while True:
        step()
"""

# Tensor cores.

# A layer has 200 million weights, and 16,384 tokens use each of them in three matrix products.
# Other operations read and write activations of 134 to 537 MB about a hundred times per layer, and
# the optimizer 3 GB: 5 ms of 35 ms.
TRANSFORMER = """
options = dict(dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
options |= dict(device="cuda", dtype=torch.bfloat16)
layers = [torch.nn.TransformerEncoderLayer(4096, 32, 16384, **options) for _ in range(2)]
model = torch.nn.Sequential(*layers)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
data = torch.randn(16, 1024, 4096, device="cuda", dtype=torch.bfloat16)
def step():
    loss = (model(data) - data).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
run(step)
"""

# A convolution computes 9 x 512 products for each number that it reads or writes.
CONVOLUTION = """
torch.backends.cudnn.benchmark = True
layers = [
    part
    for _ in range(4)
    for part in (torch.nn.Conv2d(512, 512, 3, padding=1, bias=False), torch.nn.ReLU(inplace=True))
]
model = torch.nn.Sequential(*layers).to("cuda", torch.float16, memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-8)
images = torch.randn(128, 512, 32, 32, device="cuda", dtype=torch.float16)
images = images.to(memory_format=torch.channels_last)
gradient = torch.randn_like(images)
def step():
    model(images).backward(gradient)
    optimizer.step()
    optimizer.zero_grad()
run(step)
"""

# Products of 4096 x 4096 matrices use each number 4096 times. With random data, they need more
# power than the power limit of an H100 or H200.
BATCHED_PRODUCTS = """
one, other = (
    torch.randn(16, 4096, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(2)
)
out = torch.empty_like(one)
run(lambda: torch.bmm(one, other, out=out))
"""

# Memory. An H100 or H200 can compute at least 14 operations with single precision, or 200 with
# tensor cores, in the time in which it reads a byte.

# A transform of 256 numbers fits into registers: 40 operations for each number, and 16 bytes are
# read or written for it. This is 2.5 operations per byte.
FOURIER_TRANSFORM = """
signals = torch.randn(1 << 20, 256, device="cuda", dtype=torch.complex64)
run(lambda: torch.fft.fft(signals))
"""

# Two operations per byte, on activations of 1 GiB. A row has 16 KiB, so it stays in the cache of a
# multiprocessor.
NORMALIZATION = """
data = torch.randn(1 << 16, 4096, device="cuda")
def step():
    normal = torch.nn.functional.layer_norm(data, (4096,))
    torch.softmax(normal, -1)
run(step)
"""

# One token of 128 sequences, with caches of 2.1 GB. Eight query heads use each cached number once:
# 8 operations per byte.
ATTENTION_DECODE = """
shape = (128 * 8, 4096, 128)
keys, values = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(2))
query = torch.randn(128 * 8, 8, 128, device="cuda", dtype=torch.bfloat16)
def step():
    scores = torch.bmm(query, keys.transpose(1, 2))
    torch.bmm(torch.softmax(scores * 128**-0.5, -1), values)
run(step)
"""

# 28 bytes for each of a billion weights, with about 20 operations.
OPTIMIZER = """
weights = torch.nn.Parameter(torch.randn(1 << 30, device="cuda"))
weights.grad = torch.randn_like(weights)
optimizer = torch.optim.AdamW([weights], lr=1e-5, fused=True)
run(optimizer.step)
"""

# Requests arrive at random times. Each step computes one token for each active request (2 on
# average), and reads all weights (3.2 GB): 4 operations per byte. There is no active
# request in 10 to 20 % of the time.
SERVING = """
layers = [
    torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) / 90 for _ in range(24)
]
tokens = torch.randn(64, 8192, device="cuda", dtype=torch.bfloat16)
def decode(requests):
    hidden = tokens[:requests]
    for weights in layers:
        hidden = hidden @ weights
    return hidden.argmax(1).tolist()
for requests in range(1, 17):
    decode(requests)
ready()
chance = random.Random(1)
arrival, active = time.time(), []
while True:
    while arrival < time.time():
        active.append(chance.randint(20, 80))
        arrival += chance.expovariate(40)
    if active:
        decode(min(len(active), len(tokens)))
        active = [left - 1 for left in active if left > 1]
    else:
        time.sleep(max(0.0, arrival - time.time()))
"""

# Arithmetic without tensor cores.

# Every pixel is computed in registers, with 5000 operations, and written once.
MANDELBROT = """
skip_without("triton")
import triton
import triton.language as tl
@triton.jit
def draw(out, width, rounds, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    real = (at % width).to(tl.float32) / width * 0.4 - 0.3
    imaginary = (at // width).to(tl.float32) / width * 0.4 - 0.2
    x, y = real, imaginary
    for _ in range(rounds):
        moved = x * x - y * y + real
        y = 2 * x * y + imaginary
        x = moved
    tl.store(out + at, x * x + y * y)
WIDTH, BLOCK = 8192, 1024
out = torch.empty(WIDTH * WIDTH, device="cuda")
run(lambda: draw[(out.numel() // BLOCK,)](out, WIDTH, 1000, BLOCK=BLOCK))
"""

# Every number is hashed in registers, with 6000 operations, and written once.
HASHES = """
skip_without("triton")
import triton
import triton.language as tl
@triton.jit
def compute_hashes(out, rounds, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = at
    for _ in range(rounds):
        value = value * 1664525 + 1013904223
        value = value ^ (value >> 15)
        value = value ^ (value << 7)
    tl.store(out + at, value)
COUNT, BLOCK = 1 << 26, 1024
out = torch.empty(COUNT, device="cuda", dtype=torch.int32)
run(lambda: compute_hashes[(COUNT // BLOCK,)](out, 1000, BLOCK=BLOCK))
"""

# 2304 products for each output. With a stride of 2, no algorithm with fewer products exists.
FP32_CONVOLUTION = """
torch.backends.cudnn.allow_tf32 = False
images = torch.randn(64, 256, 64, 64, device="cuda")
filters = torch.randn(512, 256, 3, 3, device="cuda")
run(lambda: torch.nn.functional.conv2d(images, filters, stride=2, padding=1))
"""

# Latency.

# Ten kernels of some microseconds for each step of one environment. Each step needs the result of
# the one before it, and the physics of a pendulum takes a microsecond.
SINGLE_ENVIRONMENT = """
policy = torch.nn.Sequential(
    torch.nn.Linear(2, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2), torch.nn.Softmax(-1)
).cuda()
state = [3.0, 0.0]
@torch.no_grad()
def step():
    angle, speed = state
    chances = policy(torch.tensor(state, device="cuda"))
    force = 2 * torch.multinomial(chances, 1).item() - 1
    speed = max(-8.0, min(8.0, speed + (15 * math.sin(angle) + 6 * force) * 0.05))
    state[:] = angle + speed * 0.05, speed
run(step)
"""

# For each token, about 20 kernels run for a few microseconds each. Their 8 MB of data fit into the
# cache. Each token depends on the one before it.
BEAM_SEARCH = """
BEAMS, WORDS, WIDTH = 4, 8000, 256
words = torch.randn(WORDS, WIDTH, device="cuda")
cell = torch.nn.GRUCell(WIDTH, WIDTH).cuda()
@torch.no_grad()
def search():
    hidden = torch.zeros(BEAMS, WIDTH, device="cuda")
    totals = torch.zeros(BEAMS, device="cuda")
    tokens = torch.zeros(BEAMS, 1, dtype=torch.long, device="cuda")
    for _ in range(64):
        hidden = cell(words[tokens[:, -1]], hidden)
        scores = totals[:, None] + torch.log_softmax(hidden @ words.T, -1)
        totals, best = scores.flatten().topk(BEAMS)
        beam = best // WORDS
        hidden = hidden[beam]
        tokens = torch.cat([tokens[beam], (best % WORDS)[:, None]], 1)
        if (tokens[:, -1] < 0).all().item():
            break
run(search)
"""

# A CUDA graph of small kernels without pauses, on 4 MB, which the cache contains. Each step depends
# on the one before it.
RECURRENCE = """
cell = torch.nn.LSTMCell(512, 512).cuda()
inputs = torch.randn(1, 512, device="cuda")
@torch.no_grad()
def compute_steps():
    state = (torch.zeros_like(inputs), torch.zeros_like(inputs))
    for _ in range(256):
        state = cell(inputs, state)
    return state
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    compute_steps()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    compute_steps()
run(graph.replay)
"""

# Host. The steps of the GPU are large, so they are no matter of latency, and take less than a third
# of the time. The GPU needs each result of the CPU before it can continue.

# The physics of 4096 pendulums in Python, between steps of a large network.
ENVIRONMENTS = """
options = dict(device="cuda", dtype=torch.bfloat16)
layers = [torch.nn.Linear(2, 4096, **options)]
layers += [torch.nn.Linear(4096, 4096, **options) for _ in range(5)]
policy = torch.nn.Sequential(*layers, torch.nn.Linear(4096, 2, **options))
states = [[3.0, 0.0] for _ in range(4096)]
@torch.no_grad()
def step():
    actions = policy(torch.tensor(states).cuda().bfloat16()).argmax(1).tolist()
    for state, action in zip(states, actions):
        angle, speed = state
        force = 2 * action - 1
        speed = max(-8.0, min(8.0, speed + (15 * math.sin(angle) + 6 * force) * 0.05))
        state[:] = angle + speed * 0.05, speed
run(step)
"""

# The main thread splits a text into tokens with a regular expression before each training step.
TOKENIZATION = """
words = [f"{chr(97 + number % 26) * (number % 7 + 1)}{number}" for number in range(3000)]
text = ", ".join(random.choices(words, k=40_000))
pattern = re.compile(r"[a-z]+|\\d+|[^\\w\\s]")
vocabulary = {}
options = dict(device="cuda", dtype=torch.bfloat16)
layers = [torch.nn.Linear(4096, 4096, **options) for _ in range(8)]
model = torch.nn.Sequential(torch.nn.Embedding(8192, 4096, **options), *layers)
def step():
    parts = pattern.findall(text.lower())
    tokens = [vocabulary.setdefault(part, len(vocabulary)) % 8192 for part in parts]
    model.zero_grad()
    loss = model(torch.tensor(tokens[:4096], device="cuda")).square().mean()
    loss.backward()
    loss.item()
run(step)
"""

# One loader process changes images for a hundred milliseconds per batch. A training step takes a
# few.
IMAGES = """
skip_without("numpy", "PIL")
import numpy
from PIL import Image, ImageFilter
class Photos(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 30
    def __getitem__(self, number):
        values = numpy.random.default_rng(number).integers(0, 256, (384, 384, 3))
        image = Image.fromarray(values.astype(numpy.uint8))
        image = image.rotate(number % 360, Image.Resampling.BICUBIC)
        image = image.filter(ImageFilter.GaussianBlur(2))
        image = image.resize((224, 224), Image.Resampling.LANCZOS)
        scaled = numpy.asarray(image, dtype=numpy.float32) / 255
        return torch.from_numpy(scaled - scaled.mean((0, 1))).permute(2, 0, 1).contiguous()
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 256, 7, stride=4),
    torch.nn.ReLU(),
    torch.nn.Conv2d(256, 512, 3),
    torch.nn.ReLU(),
    torch.nn.Conv2d(512, 512, 3),
).to("cuda", torch.bfloat16)
batches = iter(torch.utils.data.DataLoader(Photos(), batch_size=16, num_workers=1))
def step():
    model.zero_grad()
    model(next(batches).cuda().bfloat16()).square().mean().backward()
run(step)
"""

# Python computes for 0.1 s between batches of 126 MB. A batch is copied from pinned memory in at
# most 11 ms, at 12 GB/s or more, and used for 2 to 4 ms. Python does not wait for either.
PINNED_LOADER = """
batch = torch.zeros(7680, 8192, dtype=torch.bfloat16, pin_memory=True)
inputs = torch.empty_like(batch, device="cuda")
weights = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
def step():
    inputs.copy_(batch, non_blocking=True)
    inputs @ weights
    compute(0.1)
run(step)
"""

# Python computes for 0.45 s between products that take 50 ms, or 100 ms if another program also
# uses the GPU all the time.
PYTHON_STEPS = """
matrix = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
def step():
    compute(0.45)
    for _ in range(30):
        matrix @ matrix
    torch.cuda.synchronize()
run(step)
"""

# Input.

# Files of 128 KiB, which are removed from the page cache after each use, before small steps. That
# the process waits for most of the time is measured before the program counts.
SMALL_FILES = """
import resource
FILES, SIZE = 2048, 128 << 10
folder = os.path.dirname(os.path.abspath(__file__))
paths = [os.path.join(folder, f"{number}.bin") for number in range(FILES)]
for path in paths:
    with open(path, "wb") as file:
        file.write(os.urandom(SIZE))
os.sync()
def read_file(path):
    file = os.open(path, os.O_RDONLY)
    data = os.read(file, SIZE)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)
    return data
for path in paths:
    read_file(path)
weights = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
at = 0
def step():
    global at
    at = (at + 64) % FILES
    data = b"".join(read_file(path)[:8192] for path in paths[at : at + 64])
    batch = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(64, 8192)
    (batch.cuda().bfloat16() @ weights).mean().item()
for _ in range(5):
    step()
begun, worked, read = time.time(), time.process_time(), 0
blocks = resource.getrusage(resource.RUSAGE_SELF).ru_inblock
while time.time() < begun + 1:
    step()
    read += 64 * SIZE
waited = 1 - (time.process_time() - worked) / (time.time() - begun)
if (resource.getrusage(resource.RUSAGE_SELF).ru_inblock - blocks) * 512 < read / 2:
    skip("the files stay in memory: the folder for temporary files is not on a disk")
if waited < 0.6:
    skip(f"the disk is too fast: the program waits for {100 * waited:.0f} % of the time")
run(step)
"""

# Transfer.

# Weights of 134 MB are copied in 2.4 ms, and used for 256 tokens in less than 0.1 ms.
OFFLOADED_WEIGHTS = """
layers = [
    torch.zeros(8192, 8192, dtype=torch.bfloat16, pin_memory=True) for _ in range(8)
]
weights = torch.empty_like(layers[0], device="cuda")
tokens = torch.randn(256, 8192, device="cuda", dtype=torch.bfloat16)
def step():
    hidden = tokens
    for layer in layers:
        weights.copy_(layer, non_blocking=True)
        hidden = hidden @ weights
    torch.cuda.synchronize()
run(step)
"""

# Results of 537 MB are computed in 3 ms, and copied to memory that is not pinned in at least 20 ms.
LARGE_RESULTS = """
hidden = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
words = torch.randn(4096, 65536, device="cuda", dtype=torch.bfloat16)
results = torch.zeros(4096, 65536, dtype=torch.bfloat16)
run(lambda: results.copy_(hidden @ words))
"""

# Idle.

# A person runs a cell of 0.8 s every 4 s.
NOTEBOOK = """
one, other = (
    torch.randn(16, 4096, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(2)
)
def run_cell():
    end = time.time() + 0.8
    while time.time() < end:
        torch.bmm(one, other)
        torch.cuda.synchronize()
run_cell()
ready()
while True:
    time.sleep(3.2)
    run_cell()
"""

# A kernel changes 2.1 GB in a millisecond, every 0.2 s. The program sleeps in between.
MEMORY_HOLDER = """
held = torch.zeros(1 << 29, device="cuda")
def step():
    held.add_(1)
    torch.cuda.synchronize()
    time.sleep(0.2)
run(step)
"""

# The program reads from a disk all the time, without the page cache, and does not use the GPU. That
# the disks of the machine deliver the data is measured before the program counts.
FILE_READER = """
import glob, itertools, mmap
SIZE, BLOCK = 1 << 30, 16 << 20
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data.bin")
block = mmap.mmap(-1, BLOCK)
block[:] = os.urandom(BLOCK)
begun = time.time()
try:
    file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_DIRECT)
    for at in range(0, SIZE, BLOCK):
        os.pwrite(file, block, at)
        if time.time() > begun + 10:
            skip("the disk is too slow: writing a file of 1 GiB takes more than 10 s")
except OSError as error:
    skip(f"the folder for temporary files cannot be used without the page cache: {error}")
offsets = itertools.cycle(range(0, SIZE, BLOCK))
def step():
    os.preadv(file, [block], next(offsets))
def count_read_bytes():
    sectors = 0
    for device in glob.glob("/sys/block/*/device"):
        with open(os.path.join(os.path.dirname(device), "stat")) as stat:
            sectors += int(stat.read().split()[2])
    return sectors * 512
begun, before = time.time(), count_read_bytes()
while time.time() < begun + 1:
    step()
rate = (count_read_bytes() - before) / (time.time() - begun)
if rate < 60e6:
    skip(f"the disks deliver only {rate / 1e6:.0f} MB/s")
run(step)
"""

# Communication.

# Training of one model on all GPUs. The rank with the highest number takes longer for each step, by
# two thirds of the time of a step of the others, so the others wait for 40 % of the time. Their own
# part of the reduction also counts as communication. The first rank measures how long it waits: the
# time of its reductions, minus their time while all ranks are equally fast.
DATA_PARALLEL = """
import torch.distributed as dist
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
options = dict(bias=False, device="cuda", dtype=torch.bfloat16)
model = torch.nn.Sequential(*[torch.nn.Linear(8192, 8192, **options) for _ in range(4)])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
data = torch.randn(2048, 8192, device="cuda", dtype=torch.bfloat16)
extra = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
def step(delay_s=0.0, products=0):
    compute(delay_s)
    for _ in range(products):
        extra @ extra
    (model(data) - data).square().mean().backward()
    begun.record()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    ended.record()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()
    return begun.elapsed_time(ended)
def measure_seconds(work, count):
    torch.cuda.synchronize()
    start = time.perf_counter()
    results = [work() for _ in range(count)]
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / count, results
measure_seconds(step, 10)
seconds, reductions = measure_seconds(step, 40)
reduction_ms = sorted(reductions)[len(reductions) // 2]
delay = torch.tensor([seconds * 2 / 3], device="cuda", dtype=torch.float64)
dist.broadcast(delay, 0)
slowed = {}
if rank == ranks - 1 and SLOWED_BY == "cpu":
    slowed = dict(delay_s=delay.item())
elif rank == ranks - 1:
    measure_seconds(lambda: extra @ extra, 50)
    slowed = dict(products=round(delay.item() / measure_seconds(lambda: extra @ extra, 50)[0]))
for _ in range(5):
    step(**slowed)
ready()
start, waited_ms = time.perf_counter(), 0.0
while True:
    waited_ms += max(0.0, step(**slowed) - reduction_ms)
    passed_s = time.perf_counter() - start
    if passed_s >= 1:
        if rank == 0:
            print(json.dumps({"wait_ms": waited_ms / passed_s}), flush=True)
        start, waited_ms = time.perf_counter(), 0.0
"""


@dataclass
class Program:
    """A program whose limit is known."""

    cause: str
    #: The code of each script, by name. If there are several, each is the program of another owner.
    scripts: dict
    #: Other causes that single windows may have. Any further cause is a false alarm. With `None`,
    #: single windows may have any cause.
    other_causes: tuple | None = None
    #: Whether a process of the program runs on each GPU.
    is_per_gpu: bool = False
    #: Whether the other GPUs wait for the last one.
    has_slow_gpu: bool = False
    #: Whether the power limit reduces the clocks.
    is_power_capped: bool = False
    #: The possible first causes of each owner, by the name of its script.
    owner_causes: dict = field(default_factory=dict)


def define_programs():
    """Returns the programs by name."""
    programs = {
        name: Program(cause, {name: code})
        for cause, scripts in {
            "tensor": {"transformer": TRANSFORMER, "convolution": CONVOLUTION},
            "memory": {
                "fourier_transform": FOURIER_TRANSFORM,
                "normalization": NORMALIZATION,
                "attention_decode": ATTENTION_DECODE,
                "optimizer": OPTIMIZER,
                "serving": SERVING,
            },
            "compute": {
                "mandelbrot": MANDELBROT,
                "hashes": HASHES,
                "fp32_convolution": FP32_CONVOLUTION,
            },
            "latency": {
                "single_environment": SINGLE_ENVIRONMENT,
                "beam_search": BEAM_SEARCH,
                "recurrence": RECURRENCE,
            },
            "host": {
                "environments": ENVIRONMENTS,
                "tokenization": TOKENIZATION,
                "images": IMAGES,
                "pinned_loader": PINNED_LOADER,
            },
            "input": {"small_files": SMALL_FILES},
            "transfer": {
                "offloaded_weights": OFFLOADED_WEIGHTS,
                "large_results": LARGE_RESULTS,
            },
        }.items()
        for name, code in scripts.items()
    }
    programs["batched_products"] = Program(
        "tensor", {"batched_products": BATCHED_PRODUCTS}, is_power_capped=True
    )
    programs["notebook"] = Program("idle", {"notebook": NOTEBOOK}, other_causes=("tensor",))
    programs["other_reader"] = Program(
        "idle", {"holder": MEMORY_HOLDER, "reader": FILE_READER}, other_causes=()
    )
    # Each owner has the GPU for half of the time, and uses different units of it.
    programs["two_owners"] = Program(
        "shared",
        {"language_model": BATCHED_PRODUCTS, "table_scaling": NORMALIZATION},
        owner_causes={"language_model": ("shared",), "table_scaling": ("shared",)},
    )
    # One owner keeps the GPU busy. The other one uses it for a tenth of the time, and computes in
    # Python for four fifths of its own time.
    programs["owner_causes"] = Program(
        "tensor",
        {"products": BATCHED_PRODUCTS, "python_steps": PYTHON_STEPS},
        owner_causes={"products": ("tensor", "power"), "python_steps": ("host",)},
    )
    for unit in ("cpu", "gpu"):
        name = f"slow_{unit}"
        code = f'SLOWED_BY = "{unit}"\n{DATA_PARALLEL}'
        programs[name] = Program(
            "communication", {name: code}, other_causes=(), is_per_gpu=True, has_slow_gpu=True
        )
    # The same environment on each GPU, as in a sweep. The processes have the same launcher, but do
    # not communicate.
    code = f'torch.cuda.set_device(int(os.environ["RANK"]))\n{SINGLE_ENVIRONMENT}'
    programs["independent_programs"] = Program(
        "latency", {"environment": code}, other_causes=(), is_per_gpu=True
    )
    return programs


PROGRAMS = define_programs()
