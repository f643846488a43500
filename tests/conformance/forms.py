"""All command lines that are compared, by name. Each is a list of arguments for both nvidia-smi and
gpumon smi.
"""

import re
import subprocess

SECTIONS = (
    "MEMORY UTILIZATION ECC TEMPERATURE POWER CLOCK COMPUTE PIDS PERFORMANCE SUPPORTED_CLOCKS "
    "PAGE_RETIREMENT ACCOUNTING"
    " ENCODER_STATS SUPPORTED_GPU_TARGET_TEMP VOLTAGE FBC_STATS ROW_REMAPPER GSP_FIRMWARE_VERSION "
    "POWER_SMOOTHING"
    " POWER_PROFILES"
).split()

QUERIES = "gpu compute-apps accounted-apps retired-pages remapped-rows supported-clocks".split()

GPM = "1,2,3,4,5,6,7,9,10,11,12,13,20,21,30,40,50,60,61,62,63,100,160,166,170,171"


def list_fields(smi, query):
    """Returns the fields of a query, including aliases, as the tool itself lists them."""
    text = subprocess.run([*smi, f"--help-query-{query}"], capture_output=True, text=True).stdout
    lines = [
        line for line in text.splitlines() if re.match(r'^"[\w.]+"( or "[\w.]+")*$', line.strip())
    ]
    return [name for line in lines for name in re.findall(r'"([^"]+)"', line)]


def list_field_queries(smi):
    """Returns a query for each field of `--query-gpu`, as a list of (name, arguments)."""
    return [
        (f"--query-gpu={name}", [f"--query-gpu={name}", "--format=csv"])
        for name in list_fields(smi, "gpu")
    ]


def list_commands(smi, gpus):
    """Returns a list of (name, arguments). `gpus` has the (uuid, bus id, serial) of each GPU."""
    uuid, bus_id, serial = gpus[0]
    every = {query: ",".join(list_fields(smi, query)) for query in QUERIES}
    last = str(len(gpus) - 1)
    forms = [
        ("summary", []),
        ("summary -i", ["-i", last]),
        ("summary -i UUID", ["-i", uuid]),
        ("summary -i bus id", ["-i", bus_id]),
        ("summary -i short bus id", ["-i", bus_id[4:]]),
        ("summary -i serial", ["-i", serial]),
        ("summary -i list", ["-i", f"{last},0,9,0"]),
        ("-L", ["-L"]),
        ("--version", ["--version"]),
        ("-q", ["-q"]),
        ("-q -i", ["-q", "-i", last]),
        ("-q -x", ["-q", "-x"]),
        ("-q -x -i", ["-q", "-x", "-i", "0"]),
        ("-q -d several", ["-q", "-d", "MEMORY,POWER,PIDS"]),
        *[(f"-q -d {section}", ["-q", "-d", section]) for section in SECTIONS],
        *[
            (f"--query-{query}, every field", [f"--query-{query}={every[query]}", "--format=csv"])
            for query in QUERIES
        ],
        (
            "--query-gpu noheader,nounits",
            [f"--query-gpu={every['gpu']}", "--format=csv,noheader,nounits"],
        ),
        ("--query-gpu -i", ["--query-gpu=index,name,uuid", "--format=csv", "-i", last]),
        (
            "--query-compute-apps nounits",
            ["--query-compute-apps=pid,name,used_memory", "--format=csv,noheader,nounits"],
        ),
        ("dmon", ["dmon", "-c", "1"]),
        *[(f"dmon -s {group}", ["dmon", "-c", "1", "-s", group]) for group in "pucvmet"],
        ("dmon -s all -o DT", ["dmon", "-c", "1", "-s", "pucvmet", "-o", "DT"]),
        ("dmon --format csv", ["dmon", "-c", "1", "--format", "csv"]),
        (
            "dmon --format csv,nounit,noheader",
            ["dmon", "-c", "1", "--format", "csv,nounit,noheader"],
        ),
        ("dmon --gpm-metrics", ["dmon", "-c", "4", "--gpm-metrics", GPM]),
        ("dmon --gpm-options dm", ["dmon", "-c", "1", "--gpm-metrics", "2", "--gpm-options", "dm"]),
        ("pmon", ["pmon", "-c", "1"]),
        ("pmon -s m", ["pmon", "-c", "1", "-s", "m"]),
        ("pmon -s um -o DT", ["pmon", "-c", "1", "-s", "um", "-o", "DT"]),
        ("topo -m", ["topo", "-m"]),
        ("topo -mp", ["topo", "-mp"]),
        ("topo -c", ["topo", "-c", "0"]),
        ("topo -C", ["topo", "-C", "-i", "0"]),
        ("topo -M", ["topo", "-M", "-i", "0"]),
        ("topo -gnid", ["topo", "-gnid", "-i", "0"]),
        ("topo -nvme", ["topo", "-nvme"]),
        *[(f"topo -p2p {capability}", ["topo", "-p2p", capability]) for capability in "rwnap"],
        *[(f"topo -n {level}", ["topo", "-n", str(level), "-i", "0"]) for level in range(6)],
        *([("topo -p", ["topo", "-p", "-i", "0,1"])] if len(gpus) > 1 else []),
        *[
            (f"nvlink {option}", ["nvlink", *option.split()])
            for option in (
                "-s",
                "-s -i 0",
                "-s -l 1",
                "-s -l 99",
                "-c",
                "-p",
                "-R",
                "-e",
                "-gt d",
                "-gt r",
                "-info",
                "-gLowPwrInfo",
                "-gBwMode",
                "-cBridge",
                "-gLWidth",
                "-i 0",
            )
        ],
    ]
    return forms


# Command lines that gpumon passes to NVIDIA's tool, so that both run the same program.
HANDED_OVER = [
    ["-B"],
    ["-u"],
    ["-q", "-u"],
    ["-q", "-u", "-x"],
    ["-B", "-i", "0"],
    ["--get-hostname"],
    ["-col"],
    ["-col", "0"],
    ["-col", "x"],
    ["-col", "-1"],
    ["-i", "0", "-col", "2"],
    ["--columns=1"],
    ["c2c", "-s"],
    ["base-clocks"],
    ["compute-policy", "-l"],
    ["boost-slider", "-l"],
    ["conf-compute", "-f"],
    ["mig", "-lgi"],
    ["mig", "-lgip"],
    ["mig", "-lci"],
    ["power-profiles", "-l"],
    ["vgpu"],
    ["nvlink", "-ec"],
]

# Command lines that both programs refuse. Their messages must be the same word by word, and so must
# their exit codes.
REFUSALS = [
    ["-i", "9"],
    ["-i", "abc"],
    ["-i", ""],
    ["-i"],
    ["-i", "0", "-i", "1"],
    ["-q", "-d", "BOGUS"],
    ["-q", "-d"],
    ["-q", "-d", "MEMORY, POWER"],
    ["-d", "MEMORY"],
    ["-q", "-x", "-d", "MEMORY"],
    ["-x"],
    ["-qx"],
    ["-L", "-q"],
    ["-L", "-x"],
    ["-L", "-f", "/tmp/x"],
    ["-L", "-L"],
    ["-L", "-i", "7"],
    ["--bogus"],
    ["bogus"],
    ["-Z"],
    ["--query-gpu=bogus", "--format=csv"],
    ["--query-gpu=name,bogus", "--format=csv"],
    ["--query-gpu=NAME", "--format=csv"],
    ["--query-gpu= name", "--format=csv"],
    ["--query-gpu"],
    ["--query-gpu", "--format=csv"],
    ["--format=csv"],
    ["--query-gpu=name", "--format=bogus"],
    ["--query-gpu=name", "--format=CSV"],
    ["--query-gpu=name", "--query-compute-apps=pid", "--format=csv"],
    ["--query-gpu=name", "--format=csv", "-q"],
    ["--query-gpu=name", "--format=csv", "-i", "9"],
    ["--query-compute-apps=bogus", "--format=csv"],
    ["--help-query-foo"],
    ["-l", "0"],
    ["-lms", "0"],
    ["-f"],
    ["-f", "/nonexistent/x"],
    ["dmon", "-s", "z"],
    ["dmon", "-i", "9", "-c", "1"],
    ["dmon", "-o", "Z", "-c", "1"],
    ["dmon", "--format", "bogus", "-c", "1"],
    ["dmon", "--gpm-metrics", "999", "-c", "1"],
    ["pmon", "-s", "z"],
    ["pmon", "-i", "9", "-c", "1"],
    ["pmon", "-o", "Z", "-c", "1"],
    ["topo", "--bogus"],
    ["topo", "-p2p"],
    ["topo", "-p2p", "z"],
    ["topo", "-n", "2"],
    ["topo", "-n"],
    ["topo", "-p"],
    ["topo", "-c", "x"],
    ["topo", "-C"],
    ["topo", "-m", "-i", "0"],
    ["topo", "-C", "-i", "9"],
    ["nvlink", "--bogus"],
    ["nvlink", "-s", "-i", "9"],
    ["nvlink", "-s", "-l", "x"],
    ["nvlink", "-gt"],
    ["nvlink", "-sc"],
    ["nvlink", "-g"],
]

# Command lines that are accepted although they look wrong.
ODDITIES = [
    ["--query-gpu=name"],
    ["--query-gpu", "name", "--format", "csv"],
    ["--query-gpu=", "--format=csv"],
    ["--query-gpu=name,", "--format=csv"],
    ["--query-gpu=,name", "--format=csv"],
    ["--query-gpu=name,name", "--format=csv"],
    ["--query-gpu=clocks.gr", "--format=noheader"],
    ["--query-gpu=clocks.max.gr", "--format=nounits"],
    ["--query-gpu=name", "--format=csv,"],
    ["--query-gpu=name", "--format="],
    ["--format=csv", "--query-gpu=name"],
    ["--query-gpu=index", "--format=csv", "-i", "0,9"],
    ["-q", "-d", "memory"],
    ["-q", "-d", ""],
    ["-q", "--display=COMPUTE"],
    ["--list-gpus"],
    ["-i", " 0", "-L"],
    ["dmon", "-c", "1", "-s", "pp"],
    ["dmon", "--count", "1", "--select", "p"],
    ["topo", "-c", "99999"],
    ["nvlink", "-l", "1"],
]
