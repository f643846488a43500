"""The Grafana dashboard of one node: all readings of its GPUs and of the host."""

from panels import BUSY, FULL, HOT, NONE_IS_GOOD, SOME_IS_NOTABLE, Panel, Query, Steps

NODE = 'job=~"$job", instance=~"$node"'
ON_HOST = f"{{{NODE}}}"
#: The label matchers of the selected GPUs.
GPUS = f'{NODE}, gpu=~"$gpu"'
OF = f"{{{GPUS}}}"
GPU = "GPU {{gpu}}"

STATES = {"0": ("No", "transparent"), "1": ("Yes", "orange")}


def chart(title: str, queries: list[tuple[str, str]], unit: str, description: str, **more) -> Panel:
    """Returns a chart of metrics of the selected GPUs."""
    made = [Query(f"{metric}{OF}", legend) for metric, legend in queries]
    return Panel(title, made, description, unit, **{"least": 0, "width": 8} | more)


def share(title: str, metric: str, description: str, steps: Steps | None = None) -> Panel:
    return chart(
        title, [(metric, GPU)], "percentunit", description, most=1, steps=steps or [(None, "green")]
    )


GPU_ROW = [
    share(
        "GPU utilization",
        "gpumon_gpu_utilization_ratio",
        "Time in which at least one kernel ran; not how much of the GPU it used.",
    ),
    chart(
        "Memory used",
        [("gpumon_gpu_memory_used_bytes", GPU), ("gpumon_gpu_memory_total_bytes", GPU + ", total")],
        "bytes",
        "Device memory that processes hold, and all of it.",
    ),
    chart(
        "Power",
        [("gpumon_gpu_power_watts", GPU), ("gpumon_gpu_power_limit_watts", GPU + ", limit")],
        "watt",
        "Power draw of the board, and the power limit in force: at the limit, clocks are reduced.",
    ),
    chart(
        "Temperature",
        [("gpumon_gpu_temperature_celsius", GPU)],
        "celsius",
        "Clocks are lowered from the slowdown temperature on.",
        steps=HOT,
        least=None,
    ),
    chart(
        "Thermal margin",
        [("gpumon_gpu_temperature_margin_celsius", GPU)],
        "celsius",
        "How much warmer the GPU may get before its clocks are lowered.",
        least=None,
    ),
    Panel(
        "Energy",
        [Query(f"increase(gpumon_gpu_energy_joules_total{OF}[$__range]) / 3.6e6", GPU)],
        "Energy that each GPU consumed in the selected time.",
        "kwatth",
        "bargauge",
        8,
        least=0,
    ),
]

WORK_ROW = [
    share(
        "SM active",
        "gpumon_gpu_sm_active_ratio",
        "Time in which a multiprocessor had work, averaged over all of them. Needs Hopper or "
        "newer.",
    ),
    share(
        "Tensor active",
        "gpumon_gpu_tensor_active_ratio",
        "Time in which the tensor cores were active. Needs Hopper or newer.",
    ),
    share(
        "DRAM bandwidth",
        "gpumon_gpu_dram_bandwidth_ratio",
        "Bandwidth of device memory in use, of its peak. Needs Hopper or newer.",
    ),
    share(
        "SM occupancy",
        "gpumon_gpu_sm_occupancy_ratio",
        "Warps that were resident, of those that could be. Needs Hopper or newer.",
    ),
    chart(
        "Arithmetic units",
        [
            ("gpumon_gpu_fp64_active_ratio", GPU + ", FP64"),
            ("gpumon_gpu_fp32_active_ratio", GPU + ", FP32"),
            ("gpumon_gpu_fp16_active_ratio", GPU + ", FP16"),
            ("gpumon_gpu_integer_active_ratio", GPU + ", integer"),
        ],
        "percentunit",
        "Time in which the units for each type were active. Needs Hopper or newer.",
    ),
    chart(
        "Video",
        [
            ("gpumon_gpu_encoder_utilization_ratio", GPU + ", encoder"),
            ("gpumon_gpu_decoder_utilization_ratio", GPU + ", decoder"),
        ],
        "percentunit",
        "Utilization of the video encoder and decoder.",
    ),
]

CLOCK_ROW = [
    chart(
        "SM clock", [("gpumon_gpu_sm_clock_hertz", GPU)], "hertz", "Clock of the multiprocessors."
    ),
    chart(
        "Memory clock", [("gpumon_gpu_memory_clock_hertz", GPU)], "hertz", "Clock of device memory."
    ),
    Panel(
        "Reduced clocks by reason",
        [Query(f'gpumon_gpu_throttled{{{GPUS}, reason!="gpu_idle"}}', GPU + ", {{reason}}")],
        "When the clocks were reduced, and why: sw_power_cap is the power limit, hw_* are cooling "
        "and power supply.",
        kind="state-timeline",
        width=8,
        words=STATES,
    ),
]

LINK_ROW = [
    chart(
        "PCIe traffic",
        [
            ("gpumon_gpu_pcie_receive_bytes_per_second", GPU + ", RX"),
            ("gpumon_gpu_pcie_transmit_bytes_per_second", GPU + ", TX"),
        ],
        "Bps",
        "From the GPU's side.",
    ),
    chart(
        "NVLink traffic",
        [
            ("gpumon_gpu_nvlink_receive_bytes_per_second", GPU + ", RX"),
            ("gpumon_gpu_nvlink_transmit_bytes_per_second", GPU + ", TX"),
        ],
        "Bps",
        "Over all links, from the GPU's side.",
    ),
    Panel(
        "Links and their errors",
        [
            Query(
                f"increase(gpumon_gpu_pcie_replays_total{OF}[$__rate_interval])",
                GPU + ", PCIe replays",
            ),
            Query(
                f"increase(gpumon_gpu_nvlink_errors_total{OF}[$__rate_interval])",
                GPU + ", NVLink, {{error}}",
            ),
            Query(f'gpumon_gpu_nvlinks{{{GPUS}, state!="up"}}', GPU + ", NVLinks {{state}}"),
        ],
        "Replays and errors slow transfers; a link that is down can end collectives.",
        width=8,
        least=0,
    ),
]

ERROR_ROW = [
    Panel(
        "Conditions",
        [Query(f"gpumon_condition{OF} == 1", GPU + ", {{condition}}")],
        "When each condition lasted. `gpumon` on the node prints the text of each, with its "
        "remedy.",
        kind="state-timeline",
        width=12,
        words=STATES,
    ),
    Panel(
        "Xids",
        [Query(f"gpumon_gpu_xid{OF}", GPU + ", Xid {{code}}")],
        "Errors that the driver reported: since when, and whether they last.",
        kind="state-timeline",
        width=12,
        words=STATES,
    ),
    Panel(
        "ECC errors",
        [
            Query(
                f'gpumon_gpu_ecc_errors_total{{{GPUS}, counter="aggregate", error="uncorrected"}}',
                GPU,
            )
        ],
        "Uncorrected errors over the lifetime of the GPU.",
        kind="stat",
        steps=NONE_IS_GOOD,
        height=5,
    ),
    Panel(
        "Remapped rows",
        [Query(f"sum by (gpu) (gpumon_gpu_remapped_rows_total{OF})", GPU)],
        "Memory rows that were replaced by spare ones.",
        kind="stat",
        steps=SOME_IS_NOTABLE,
        height=5,
    ),
    Panel(
        "Pending or failed remappings",
        [Query(f"gpumon_gpu_remapped_rows_pending{OF} + gpumon_gpu_remapped_rows_failed{OF}", GPU)],
        "A pending remapping takes effect at the next reset. If a remapping has failed, have the "
        "board replaced.",
        kind="stat",
        steps=NONE_IS_GOOD,
        height=5,
    ),
    Panel(
        "Requested recovery actions",
        [Query(f"sum by (gpu) (gpumon_gpu_recovery_needed{OF})", GPU)],
        "Drain the node, then reset the GPU or reboot: `gpumon` on the node says which.",
        kind="stat",
        steps=NONE_IS_GOOD,
        height=5,
    ),
]

JOB_ROW = [
    Panel(
        "Users and jobs by GPU",
        [
            Query(f"gpumon_gpu_job_info{OF}"),
            Query(
                f"gpumon_gpu_utilization_ratio{OF} * on (job, instance, gpu, uuid) group_right () "
                f"gpumon_gpu_job_info{OF}"
            ),
        ],
        "Utilization is that of the whole GPU, also where several jobs share it.",
        kind="table",
        width=12,
        sort="Utilization",
        columns={
            "gpu": ("GPU", None, None),
            "user": ("User", None, None),
            "slurm_job": ("Slurm job", None, None),
            "pbs_job": ("PBS job", None, None),
            "lsf_job": ("LSF job", None, None),
            "pod_uid": ("Pod", None, None),
            "container": ("Container", None, None),
            "notebook": ("Notebook", None, None),
            "unit": ("Service", None, None),
            "Value #B": ("Utilization", "percentunit", BUSY),
        },
    ),
    Panel(
        "MIG devices",
        [
            Query(f"gpumon_mig_memory_used_bytes{OF} / gpumon_mig_memory_total_bytes{OF}"),
            Query(f"gpumon_mig_sm_active_ratio{OF}"),
        ],
        "MIG devices have SM active, but no GPU utilization.",
        kind="table",
        width=12,
        sort="SM active",
        columns={
            "gpu": ("GPU", None, None),
            "profile": ("Profile", None, None),
            "mig_uuid": ("UUID", None, None),
            "Value #A": ("Memory used", "percentunit", FULL),
            "Value #B": ("SM active", "percentunit", BUSY),
        },
    ),
]

HOST_ROW = [
    Panel(
        "CPU",
        [Query(f"gpumon_host_cpu_utilization_ratio{ON_HOST}", "busy")],
        "Averaged over all logical processors.",
        "percentunit",
        least=0,
        most=1,
    ),
    Panel(
        "Host memory",
        [
            Query(f"gpumon_host_memory_used_bytes{ON_HOST}", "used"),
            Query(f"gpumon_host_memory_total_bytes{ON_HOST}", "total"),
        ],
        "Caches that can be given back are not counted.",
        "bytes",
        least=0,
    ),
    Panel(
        "Disks",
        [
            Query(f"rate(gpumon_host_disk_read_bytes_total{ON_HOST}[$__rate_interval])", "read"),
            Query(
                f"rate(gpumon_host_disk_written_bytes_total{ON_HOST}[$__rate_interval])", "written"
            ),
        ],
        "All disks of the host: data that is read too slowly keeps GPUs idle.",
        "Bps",
        least=0,
    ),
    Panel(
        "Network",
        [
            Query(
                f"rate(gpumon_host_network_receive_bytes_total{ON_HOST}[$__rate_interval])", "RX"
            ),
            Query(
                f"rate(gpumon_host_network_transmit_bytes_total{ON_HOST}[$__rate_interval])", "TX"
            ),
        ],
        "All interfaces but loopback.",
        "Bps",
        least=0,
    ),
]

ROWS = [
    ("GPUs", GPU_ROW),
    ("Work", WORK_ROW),
    ("Clocks", CLOCK_ROW),
    ("Links", LINK_ROW),
    ("Conditions and errors", ERROR_ROW),
    ("Jobs and MIG devices", JOB_ROW),
    ("Host", HOST_ROW),
]
