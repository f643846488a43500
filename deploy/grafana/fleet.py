"""The Grafana dashboard of a fleet: nodes, GPUs, problems, and the users of the GPUs."""

from panels import BUSY, FULL, HOT, NODE_COLUMN, NONE_IS_GOOD, SOME_IS_NOTABLE, Panel, Query

OF = '{job=~"$job", instance=~"$node"}'
ON_GPU = "on (job, instance, gpu, uuid)"
#: Labels that identify the owner of a GPU. Several time series of one GPU can have the same owner,
#: so queries group them by these labels.
OWNER = "user, slurm_job, pbs_job, lsf_job, pod_uid, notebook, unit"
#: Label matchers that select every reason for reduced clocks except `gpu_idle`. That reason is
#: normal for an idle GPU.
REDUCED = '{job=~"$job", instance=~"$node", reason!="gpu_idle"}'

SEVERITIES = {"1": ("Notice", "blue"), "2": ("Warning", "orange"), "3": ("Critical", "red")}
UP = {"0": ("Not responding", "red"), "1": ("Responding", "green")}


def stat_panel(title, expression, unit, description, steps, decimals=None, width=3):
    return Panel(
        title, [Query(expression)], description, unit, "stat", width, 4, steps, decimals=decimals
    )


OVERVIEW = [
    stat_panel(
        "GPUs",
        f"count(gpumon_gpu_up{OF})",
        "short",
        "All GPUs of the selected nodes, including those that do not respond.",
        [(None, "text")],
    ),
    stat_panel(
        "Not responding",
        f"sum(1 - gpumon_gpu_up{OF})",
        "short",
        "GPUs that are lost, hang or cannot be read. Run `gpumon doctor` on the node for advice.",
        NONE_IS_GOOD,
    ),
    stat_panel(
        "In use",
        f"sum(gpumon_gpu_processes{OF} > bool 0)",
        "short",
        "GPUs with at least one process.",
        [(None, "text")],
    ),
    stat_panel(
        "GPU utilization",
        f"avg(gpumon_gpu_utilization_ratio{OF})",
        "percentunit",
        "Share of time in which at least one kernel ran, averaged over all GPUs. It does not show "
        "how much of a GPU the kernels used.",
        BUSY,
        0,
    ),
    stat_panel(
        "Memory used",
        f"sum(gpumon_gpu_memory_used_bytes{OF}) / sum(gpumon_gpu_memory_total_bytes{OF})",
        "percentunit",
        "Share of the device memory of all GPUs that is in use.",
        FULL,
        0,
    ),
    stat_panel(
        "Power",
        f"sum(gpumon_gpu_power_watts{OF})",
        "watt",
        "Power draw of all boards.",
        [(None, "text")],
    ),
    stat_panel(
        "Energy",
        f"sum(increase(gpumon_gpu_energy_joules_total{OF}[$__range])) / 3.6e6",
        "kwatth",
        "Energy that the GPUs consumed in the selected time range.",
        [(None, "text")],
    ),
    stat_panel(
        "Warnings",
        f"count(gpumon_condition_severity{OF} >= 2) or vector(0)",
        "short",
        "Current conditions of severity warning or critical.",
        SOME_IS_NOTABLE,
    ),
]

NODES = [
    Panel(
        "Nodes",
        [
            Query(f"count by (instance) (gpumon_gpu_up{OF})"),
            Query(f"sum by (instance) (1 - gpumon_gpu_up{OF})"),
            Query(f"avg by (instance) (gpumon_gpu_utilization_ratio{OF})"),
            Query(
                f"sum by (instance) (gpumon_gpu_memory_used_bytes{OF}) / sum by (instance) "
                f"(gpumon_gpu_memory_total_bytes{OF})"
            ),
            Query(f"sum by (instance) (gpumon_gpu_power_watts{OF})"),
            Query(f"max by (instance) (gpumon_gpu_temperature_celsius{OF})"),
            Query(f"sum by (instance) (gpumon_condition{OF})"),
        ],
        "One row for each node. Click the name of a node to open its readings.",
        kind="table",
        width=12,
        height=10,
        sort="Utilization",
        columns={
            "instance": (NODE_COLUMN, None, None),
            "Value #A": ("GPUs", "short", None),
            "Value #B": ("Not responding", "short", NONE_IS_GOOD),
            "Value #C": ("Utilization", "percentunit", BUSY),
            "Value #D": ("Memory used", "percentunit", FULL),
            "Value #E": ("Power", "watt", None),
            "Value #F": ("Hottest", "celsius", HOT),
            "Value #G": ("Conditions", "short", SOME_IS_NOTABLE),
        },
    ),
    Panel(
        "GPUs",
        [
            Query(
                f"gpumon_gpu_utilization_ratio{OF} * {ON_GPU} group_left (name) gpumon_gpu_info{OF}"
            ),
            Query(f"gpumon_gpu_memory_used_bytes{OF} / gpumon_gpu_memory_total_bytes{OF}"),
            Query(f"gpumon_gpu_power_watts{OF}"),
            Query(f"gpumon_gpu_temperature_celsius{OF}"),
            Query(f"gpumon_gpu_processes{OF}"),
            Query(f"gpumon_gpu_up{OF}"),
        ],
        "One row for each GPU. Memory that an idle process holds is not available to others.",
        kind="table",
        width=12,
        height=10,
        sort="Utilization",
        words=UP,
        columns={
            "instance": (NODE_COLUMN, None, None),
            "gpu": ("GPU", None, None),
            "name": ("Model", None, None),
            "Value #F": ("State", None, [(None, "red"), (1, "green")]),
            "Value #A": ("Utilization", "percentunit", BUSY),
            "Value #B": ("Memory used", "percentunit", FULL),
            "Value #C": ("Power", "watt", None),
            "Value #D": ("Temperature", "celsius", HOT),
            "Value #E": ("Processes", "short", None),
        },
    ),
    Panel(
        "GPU utilization by node",
        [Query(f"avg by (instance) (gpumon_gpu_utilization_ratio{OF})", "{{instance}}")],
        "Mean of the GPUs of each node.",
        "percentunit",
        least=0,
        most=1,
    ),
    Panel(
        "Memory used by node",
        [
            Query(
                f"sum by (instance) (gpumon_gpu_memory_used_bytes{OF}) / sum by (instance) "
                f"(gpumon_gpu_memory_total_bytes{OF})",
                "{{instance}}",
            )
        ],
        "Share of the device memory of each node that is in use.",
        "percentunit",
        steps=FULL,
        least=0,
        most=1,
    ),
    Panel(
        "Power by node",
        [Query(f"sum by (instance) (gpumon_gpu_power_watts{OF})", "{{instance}}")],
        "Power draw of the boards, stacked by node.",
        "watt",
        least=0,
        is_stacked=True,
    ),
    Panel(
        "Hottest GPU by node",
        [Query(f"max by (instance) (gpumon_gpu_temperature_celsius{OF})", "{{instance}}")],
        "At its slowdown temperature, a board reduces its clocks.",
        "celsius",
        steps=HOT,
    ),
]

TROUBLE = [
    Panel(
        "GPUs with each condition",
        [Query(f"sum by (condition) (gpumon_condition{OF}) > 0", "{{condition}}")],
        "Conditions that gpumon finds, such as reduced clocks, memory held idle, or a suspected "
        "hang.",
        width=8,
        is_stacked=True,
        least=0,
        decimals=0,
    ),
    Panel(
        "Current conditions",
        [Query(f"gpumon_condition_severity{OF}")],
        "The most severe ones first. Run `gpumon` on the node for descriptions and remedies.",
        kind="table",
        width=8,
        sort="Severity",
        words=SEVERITIES,
        columns={
            "instance": (NODE_COLUMN, None, None),
            "gpu": ("GPU", None, None),
            "condition": ("Condition", None, None),
            "Value": ("Severity", None, [(None, "blue"), (2, "orange"), (3, "red")]),
        },
    ),
    Panel(
        "Xids since the server's start",
        [Query(f"gpumon_gpu_xid_errors_total{OF}"), Query(f"gpumon_gpu_xid{OF}")],
        "Errors that the driver reported. Run `gpumon` on the node for the meaning and the remedy "
        "of each code.",
        kind="table",
        width=8,
        sort="Reports",
        words={"0": ("Over", "text"), "1": ("Lasts", "red")},
        columns={
            "instance": (NODE_COLUMN, None, None),
            "gpu": ("GPU", None, None),
            "code": ("Xid", None, None),
            "Value #A": ("Reports", "short", SOME_IS_NOTABLE),
            "Value #B": ("Now", None, [(None, "text"), (1, "red")]),
        },
    ),
    Panel(
        "Reduced clocks by reason",
        [
            Query(
                f"sum by (reason) "
                f"(rate(gpumon_gpu_throttled_seconds_total{REDUCED}[$__rate_interval]))",
                "{{reason}}",
            )
        ],
        "Mean number of GPUs whose clocks were reduced. sw_power_cap is the power limit; hw_* are "
        "cooling and power supply.",
        width=12,
        is_stacked=True,
        least=0,
    ),
    Panel(
        "Memory errors",
        [
            Query(
                f'sum by (error) (increase(gpumon_gpu_ecc_errors_total{{job=~"$job", '
                f'instance=~"$node", counter="volatile"}}[$__rate_interval]))',
                "ECC, {{error}}",
            ),
            Query(
                f"sum by (cause) (increase(gpumon_gpu_remapped_rows_total{OF}[$__rate_interval]))",
                "Rows remapped, {{cause}}",
            ),
            Query(f"sum(gpumon_gpu_remapped_rows_pending{OF})", "Rows to remap at the next reset"),
        ],
        "Uncorrected errors can end jobs or make their results wrong.",
        width=12,
        least=0,
    ),
]

USAGE = [
    Panel(
        "GPUs held by user",
        [
            Query(
                f"count by (user) (group by (instance, gpu, user) (gpumon_gpu_job_info{OF}))",
                "{{user}}",
            )
        ],
        "GPUs on which the user has a process. A shared GPU counts for each of its users.",
        width=8,
        least=0,
        is_stacked=True,
        decimals=0,
    ),
    Panel(
        "Active GPUs by user",
        [
            Query(
                f"sum by (user) "
                f"(rate(gpumon_owner_active_gpu_seconds_total{OF}[$__rate_interval]))",
                "{{user}}",
            )
        ],
        "Mean number of GPUs on which kernels of the user ran. If it is far below the number of "
        "GPUs held, GPUs are held idle.",
        width=8,
        least=0,
        is_stacked=True,
    ),
    Panel(
        "Power by user",
        [
            Query(
                f"sum by (user) (rate(gpumon_owner_energy_joules_total{OF}[$__rate_interval]))",
                "{{user}}",
            ),
            Query(
                f"sum(rate(gpumon_unheld_energy_joules_total{OF}[$__rate_interval]))",
                "not held",
            ),
        ],
        "Exact if a user had a GPU alone, and estimated if several users shared it.",
        "watt",
        width=8,
        least=0,
        is_stacked=True,
    ),
    Panel(
        "Energy by user",
        [
            Query(
                f"sort_desc(sum by (user) "
                f"(increase(gpumon_owner_energy_joules_total{OF}[$__range]))) / 3.6e6",
                "{{user}}",
            )
        ],
        "Energy in the selected time range.",
        "kwatth",
        "bargauge",
        least=0,
        height=9,
    ),
    Panel(
        "Jobs by energy",
        [
            Query(
                f"sum by ({OWNER}) (increase(gpumon_owner_energy_joules_total{OF}[$__range])) / "
                f"3.6e6"
            ),
            Query(f"sum by ({OWNER}) (increase(gpumon_owner_gpu_seconds_total{OF}[$__range]))"),
            Query(
                f"sum by ({OWNER}) (increase(gpumon_owner_active_gpu_seconds_total{OF}[$__range]))"
                f" / sum by ({OWNER}) (increase(gpumon_owner_gpu_seconds_total{OF}[$__range]))"
            ),
        ],
        "Energy, GPU time (two GPUs count twice) and the share of it in which kernels of the job "
        "ran, in the selected time range.",
        kind="table",
        width=10,
        height=9,
        sort="Energy",
        columns={
            "user": ("User", None, None),
            "slurm_job": ("Slurm job", None, None),
            "pbs_job": ("PBS job", None, None),
            "lsf_job": ("LSF job", None, None),
            "pod_uid": ("Pod", None, None),
            "notebook": ("Notebook", None, None),
            "unit": ("Service", None, None),
            "Value #A": ("Energy", "kwatth", None),
            "Value #B": ("GPU time", "s", None),
            "Value #C": ("Active", "percentunit", BUSY),
        },
    ),
    Panel(
        "Users and jobs by GPU",
        [
            Query(f"gpumon_gpu_job_info{OF}"),
            Query(
                f"gpumon_gpu_utilization_ratio{OF} * {ON_GPU} group_right () "
                f"gpumon_gpu_job_info{OF}"
            ),
        ],
        "The utilization is that of the whole GPU, even if several jobs share it.",
        kind="table",
        width=8,
        height=9,
        sort="Utilization",
        columns={
            "instance": (NODE_COLUMN, None, None),
            "gpu": ("GPU", None, None),
            "user": ("User", None, None),
            "slurm_job": ("Slurm job", None, None),
            "pbs_job": ("PBS job", None, None),
            "lsf_job": ("LSF job", None, None),
            "pod_uid": ("Pod", None, None),
            "Value #B": ("Utilization", "percentunit", BUSY),
        },
    ),
]

ROWS = [
    ("Fleet", OVERVIEW),
    ("Nodes and GPUs", NODES),
    ("Conditions and errors", TROUBLE),
    ("Users and jobs", USAGE),
]
