"""The Grafana dashboard of one node: all readings of its GPUs and of the host."""

from panels import BUSY, FULL, HOT, NONE_IS_GOOD, SOME_IS_NOTABLE, Panel, Query, Steps

NODE = 'job=~"$job", instance=~"$node"'
ON_HOST = f"{{{NODE}}}"
#: PromQL label matchers for the GPUs that are selected in the dashboard.
GPUS = f'{NODE}, gpu=~"$gpu"'
OF = f"{{{GPUS}}}"
GPU = "GPU {{gpu}}"

STATES = {"0": ("No", "transparent"), "1": ("Yes", "orange")}


def chart_panel(
    title: str, queries: list[tuple[str, str]], unit: str, description: str, **more
) -> Panel:
    """Returns a chart of metrics of the selected GPUs."""
    made = [Query(f"{metric}{OF}", legend) for metric, legend in queries]
    return Panel(title, made, description, unit, **{"least": 0, "width": 8} | more)


def share_panel(title: str, metric: str, description: str, steps: Steps | None = None) -> Panel:
    return chart_panel(
        title, [(metric, GPU)], "percentunit", description, most=1, steps=steps or [(None, "green")]
    )


GPU_ROW = [
    share_panel(
        "GPU utilization",
        "gpumon_gpu_utilization_ratio",
        "Share of time in which a kernel ran, regardless of how much of the GPU it used.",
    ),
    chart_panel(
        "Memory used",
        [("gpumon_gpu_memory_used_bytes", GPU), ("gpumon_gpu_memory_total_bytes", GPU + ", total")],
        "bytes",
        "Device memory in use, and total device memory.",
    ),
    chart_panel(
        "Power",
        [("gpumon_gpu_power_watts", GPU), ("gpumon_gpu_power_limit_watts", GPU + ", limit")],
        "watt",
        "Power draw of the board, and its power limit, at which clocks are reduced.",
    ),
    chart_panel(
        "Temperature",
        [("gpumon_gpu_temperature_celsius", GPU)],
        "celsius",
        "At the slowdown temperature, clocks are reduced.",
        steps=HOT,
        least=None,
    ),
    chart_panel(
        "Thermal margin",
        [("gpumon_gpu_temperature_margin_celsius", GPU)],
        "celsius",
        "Temperature difference to the point at which clocks are reduced.",
        least=None,
    ),
    Panel(
        "Energy",
        [Query(f"increase(gpumon_gpu_energy_joules_total{OF}[$__range]) / 3.6e6", GPU)],
        "Energy that each GPU consumed in the selected time range.",
        "kwatth",
        "bargauge",
        8,
        least=0,
    ),
]

WORK_ROW = [
    share_panel(
        "SM active",
        "gpumon_gpu_sm_active_ratio",
        "Share of time in which a multiprocessor had work, averaged over all multiprocessors. "
        "Requires Hopper or newer.",
    ),
    share_panel(
        "Tensor active",
        "gpumon_gpu_tensor_active_ratio",
        "Share of time in which the tensor cores were active. Requires Hopper or newer.",
    ),
    share_panel(
        "DRAM bandwidth",
        "gpumon_gpu_dram_bandwidth_ratio",
        "Used share of the peak bandwidth of device memory. Requires Hopper or newer.",
    ),
    share_panel(
        "SM occupancy",
        "gpumon_gpu_sm_occupancy_ratio",
        "Resident warps as a share of the possible number. Requires Hopper or newer.",
    ),
    chart_panel(
        "Arithmetic units",
        [
            ("gpumon_gpu_fp64_active_ratio", GPU + ", FP64"),
            ("gpumon_gpu_fp32_active_ratio", GPU + ", FP32"),
            ("gpumon_gpu_fp16_active_ratio", GPU + ", FP16"),
            ("gpumon_gpu_integer_active_ratio", GPU + ", integer"),
        ],
        "percentunit",
        "Share of time in which the units of each type were active. Requires Hopper or newer.",
    ),
    chart_panel(
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
    chart_panel(
        "SM clock", [("gpumon_gpu_sm_clock_hertz", GPU)], "hertz", "Clock of the multiprocessors."
    ),
    chart_panel(
        "Memory clock", [("gpumon_gpu_memory_clock_hertz", GPU)], "hertz", "Clock of device memory."
    ),
    Panel(
        "Reduced clocks by reason",
        [Query(f'gpumon_gpu_throttled{{{GPUS}, reason!="gpu_idle"}}', GPU + ", {{reason}}")],
        "Times of reduced clocks, by reason: sw_power_cap is the power limit, hw_* are cooling and "
        "power supply.",
        kind="state-timeline",
        width=8,
        words=STATES,
    ),
]

LINK_ROW = [
    chart_panel(
        "PCIe traffic",
        [
            ("gpumon_gpu_pcie_receive_bytes_per_second", GPU + ", RX"),
            ("gpumon_gpu_pcie_transmit_bytes_per_second", GPU + ", TX"),
        ],
        "Bps",
        "Traffic as seen by the GPU: RX is received, and TX is sent.",
    ),
    chart_panel(
        "NVLink traffic",
        [
            ("gpumon_gpu_nvlink_receive_bytes_per_second", GPU + ", RX"),
            ("gpumon_gpu_nvlink_transmit_bytes_per_second", GPU + ", TX"),
        ],
        "Bps",
        "Sum over all links of the GPU. RX is received by the GPU, and TX is sent.",
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
        "Replays and errors slow transfers down. If a link is down, collectives can fail.",
        width=8,
        least=0,
    ),
]

ERROR_ROW = [
    Panel(
        "Conditions",
        [Query(f"gpumon_condition{OF} == 1", GPU + ", {{condition}}")],
        "Times of each condition. Run `gpumon` on the node for descriptions and remedies.",
        kind="state-timeline",
        width=12,
        words=STATES,
    ),
    Panel(
        "Xids",
        [Query(f"gpumon_gpu_xid{OF}", GPU + ", Xid {{code}}")],
        "Errors that the driver reported, with their start, and whether they are current.",
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
        "A pending remapping takes effect at the next reset. If a remapping has failed, replace "
        "the board.",
        kind="stat",
        steps=NONE_IS_GOOD,
        height=5,
    ),
    Panel(
        "Requested recovery actions",
        [Query(f"sum by (gpu) (gpumon_gpu_recovery_needed{OF})", GPU)],
        "Drain the node, then reset the GPU or reboot; `gpumon` on the node shows which.",
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
        "The utilization is that of the whole GPU, even if several jobs share it.",
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
        "Mean of all logical processors.",
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
        "Memory in use, without caches that the system can free.",
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
        "Sum of all disks of the host. If data is read too slowly, GPUs are idle.",
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
        "Sum of all interfaces except loopback.",
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
