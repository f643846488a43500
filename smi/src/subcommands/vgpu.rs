//! `vgpu`: the virtual GPUs of a host.

use std::io::Write;

use gpumon_probe::vendor::nvml::query::{Query, QueryBackend, Subject};

use crate::{Refusal, form::Form, subcommand::Stop};

pub(super) static FORM: Form = Form::new("vgpu", HELP)
    .refused()
    .changing(&["-caa", "-shm", "-smts", "set-scheduler-state"])
    .takes(&[
        "-i",
        "-gi",
        "--gpm-metrics",
        "--query-vgpu-scheduler-logs",
        "--query-accounted-apps",
        "topo",
        "-p2p",
        "-shm",
        "-smts",
        "--query-gpu-instance-vgpu-scheduler-logs",
        "--format",
        "-f",
        "-lms",
    ])
    .may_take(&["-l"])
    .unlisted(&[
        &["set-scheduler-state"],
        &["--query-gpu-instance-vgpu-scheduler-logs"],
        &["--format"],
        &["-f", "--filename"],
        &["-lms", "--loop-ms"],
    ]);

/// What a host shows of its virtual GPUs is left to NVIDIA's own tool.
pub(crate) fn run(
    arguments: &[String],
    driver: &dyn QueryBackend,
    _: &mut dyn Write,
) -> Result<u8, Stop> {
    let switches = FORM.parse(arguments)?;
    let gpus = Form::gpus(&switches, driver)?;
    if gpus.iter().any(|gpu| {
        driver
            .about(Subject::gpu(*gpu), Query::HostVgpuMode)
            .is_ok()
    }) {
        let text =
            "gpumon: 'vgpu' of a host is not shown by gpumon; use NVIDIA's own nvidia-smi for it\n";
        return Err(Refusal::not_done(text).into());
    }
    Err(Refusal::new(0, "No supported devices in vGPU mode\n").into())
}

const HELP: &str = "
    vgpu -- The virtual GPUs of a host.

    nvidia-smi vgpu [OPTION1 [ARG1]] [OPTION2 [ARG2]] ...

    [-h | --help]: Show this help

    [-i | --id]: GPUs by index, PCI bus ID, UUID or serial number
    [-gi | --gpu-instance-id]: GPU instances by ID, of the GPU of -i
    [-q | --query]: The virtual GPUs that run
    [-u | --utilization]: How busy they keep the GPU
    [N/A | --gpm-metrics]: Metrics of GPM by number; 'nvidia-smi dmon -h' lists them
    [-p | --pmon]: How busy each process in a virtual machine keeps the GPU
    [-s | --supported]: The kinds of virtual GPUs that there can be
    [-c | --creatable]: The kinds that fit at present
    [-es | --encodersessions]: Who encodes video
    [-m | --migrationcap]: Whether virtual GPUs can move
    [-ss | --schedulerstate]: How the scheduler is set
    [-sc | --schedulercaps]: What the scheduler is capable of
    [-sl | --schedulerlogs]: What the scheduler has logged
    [N/A | --query-vgpu-scheduler-logs]: The same in CSV
    [-v | --verbose]: More about each kind of virtual GPU
    [-l | --loop]: Seconds between two rounds, until Ctrl-C [default=5 seconds]
    [N/A | --query-accounted-apps]: Accounting of processes
    [-caa | --clear-accounted-apps]: Clears the accounting; left to NVIDIA's tool
    [-fs | --fbcsessions]: Who captures the screen
    [-ghm | --get-heterogeneous-mode]: Whether virtual GPUs may differ in size
    [N/A | topo]: How the virtual GPUs of a virtual machine are connected, with -tm or -p2p
    [-tm | --matrix]: Matrix of what connects them
    [-p2p | --p2pstatus]: Whether they reach each other's memory: r, w, n, a or p

    [-shm | --set-heterogeneous-mode]: Sets whether virtual GPUs may differ in size; left to NVIDIA's tool
    [-smts | --set-mig-timeslice-mode]: Sets whether MIG devices are shared by time; left to NVIDIA's tool
     set-scheduler-state     Sets the scheduler; left to NVIDIA's tool

    gpumon tells whether there are hosts of virtual GPUs, and leaves the rest to NVIDIA's own nvidia-smi.



";
