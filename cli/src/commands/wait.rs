//! `gpumon wait`: waits for a free GPU, and prints it or runs a command on it.

use std::{env, ffi::OsString, path::PathBuf, time::Duration};

use gpumon_probe::units::AcceptedAmounts;

use crate::{
    exit::{Result, usage},
    local_server::ServerArgs,
    options::{SourceArgs, parse_time},
    wait::{
        self, ACCEPTED_HOLD_TIMES, Conditions, DeviceFormat, DeviceSelection, Locks, Patience,
        Progress, Reader, Search, WantedMemory,
    },
};

/// Wait for a free GPU, then print its index or run a command on it
///
/// Without --free and --idle, gpumon waits for a GPU without compute processes (--empty). If
/// several conditions are given, all of them must be met at the same time. Among several matching
/// GPUs, the one with the most free memory is selected. A GPU that is lost, not responding, asleep,
/// in need of a reset or in prohibited compute mode is never selected.
///
/// With a command after `--`, gpumon replaces itself by that command (exec), so that signals, exit
/// status and job control are those of the command. Environment variables restrict the command to
/// the selected GPUs: `CUDA_VISIBLE_DEVICES` for NVIDIA, `ROCR_VISIBLE_DEVICES` for AMD,
/// `ZE_AFFINITY_MASK` for Intel. If one of them is already set, for example by Slurm, only those
/// GPUs of its vendor are candidates.
///
/// A selected GPU is locked, so that no other `gpumon wait` of any user selects it, and checked
/// once more under the lock. The lock is held as long as the command and its child processes run;
/// without a command, for the time of --hold. It is released when the processes end. MIG devices
/// are locked and selected individually; their GPU itself is not a candidate.
///
/// Readings come from a running `gpumon serve` of this user, or else from the driver. Idle time is
/// counted from the start of the wait.
#[derive(Debug, clap::Args)]
#[command(allow_negative_numbers = true)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct WaitArgs {
    /// Require this much free memory, for example 20GiB, 8000MB or 50%
    ///
    /// Units are TiB, GiB, MiB, KiB (powers of 1024), TB, GB, MB, KB (powers of 1000) and B. A
    /// percentage refers to the GPU memory available to applications.
    #[arg(long, value_name = "MEMORY", value_parser = WantedMemory::parse)]
    free: Option<WantedMemory>,

    /// Require this much time without GPU activity, for example 30s, 5m or 2h
    ///
    /// GPU utilization (for a MIG device, SM active) was at most 1 % in every sample of that time.
    /// Processes may hold memory, as notebooks do; add --empty to exclude them.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    idle: Option<Duration>,

    /// Require a GPU without compute processes (default)
    ///
    /// In addition, used memory must not exceed what an idle driver uses: 128 MiB, or 1 GiB for
    /// drivers before 510, which count reserved memory as used. Graphics processes, such as a
    /// display server, are ignored.
    #[arg(long)]
    empty: bool,

    /// Number of GPUs to select at once
    ///
    /// A process can use only one MIG device, so MIG devices are not selected if more than one is
    /// needed.
    #[arg(
        long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=64)
    )]
    gpus: u16,

    /// Candidates: index (3, or 3:1 for a MIG device or a partition), index among the GPUs of a
    /// vendor (amd:0, amd:0:1), UUID or its prefix, or PCI bus ID; comma-separated
    ///
    /// By default, all GPUs of NVIDIA, or else of AMD, or else of Intel.
    #[arg(short, long, value_name = "GPU")]
    id: Vec<String>,

    /// Do not wait: exit with code 1 if no GPU is free now
    #[arg(long, conflicts_with_all = ["idle", "timeout"])]
    now: bool,

    /// Stop waiting after this time, with exit code 124
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    timeout: Option<Duration>,

    /// Sampling interval, from 100ms to 1m
    #[arg(
        long, value_name = "TIME", default_value = "1s",
        value_parser = |text: &str| ACCEPTED_INTERVALS.parse(text)
    )]
    interval: Duration,

    /// Print only errors, no progress
    #[arg(short, long)]
    quiet: bool,

    /// Format in which the selected GPUs are printed; several GPUs are comma-separated
    #[arg(long, value_enum, default_value_t = DeviceFormat::Index, conflicts_with = "command")]
    format: DeviceFormat,

    /// Without a command, how long the GPU stays reserved after it is printed, up to 1h
    #[arg(
        long, value_name = "TIME", default_value = "30s",
        value_parser = |text: &str| ACCEPTED_HOLD_TIMES.parse(text), conflicts_with = "command"
    )]
    hold: Duration,

    /// Folder of the lock files [default: /run/lock or /tmp]
    ///
    /// The default is the first of the two folders that is writable by all users. Containers must
    /// share one folder of the host.
    #[arg(
        long,
        env = "GPUMON_LOCKS",
        value_name = "FOLDER",
        hide_env_values = true
    )]
    locks: Option<PathBuf>,

    #[command(flatten)]
    server: ServerArgs,

    /// Command to run on the selected GPUs
    #[arg(last = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

const ACCEPTED_INTERVALS: AcceptedAmounts<Duration> = AcceptedAmounts::accept_durations(
    Duration::from_millis(100),
    Duration::from_mins(1),
    "an interval from 100ms to 1m, such as 500ms, 2s or 1m",
);

const EXAMPLES: &str = "\
Examples:
  gpumon wait -- python train.py
      Run on the first GPU without compute processes.
  gpumon wait --free 20GiB --idle 5m --timeout 2h -- python train.py
      Require 20 GiB of free memory and five idle minutes; stop waiting after two hours.
  gpumon wait --gpus 4 -- torchrun --nproc-per-node 4 train.py
      Run on four GPUs.
  CUDA_VISIBLE_DEVICES=$(gpumon wait --free 50% --format uuid) ./simulate
      Pass the UUID to CUDA, whose indexes may differ from those of NVML.
  gpumon wait -i amd:0,amd:1 -- python train.py
      Run on one of two AMD GPUs; ROCm then sees only that one.
  gpumon wait -i 2,3 --quiet && echo ready
      Wait for GPU 2 or 3 without output.
  gpumon wait --now --free 20GiB -- python train.py
      Run at once or not at all.

Environment:
  CUDA_VISIBLE_DEVICES  limits the NVIDIA candidates; gpumon sets it for the command
  CUDA_DEVICE_ORDER     set to PCI_BUS_ID for the command
  ROCR_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES, GPU_DEVICE_ORDINAL
                        the first two limit the AMD candidates; gpumon sets all three
                        for the command
  ZE_AFFINITY_MASK      limits the Intel candidates; gpumon sets it for the command
  ZE_ENABLE_PCI_ID_DEVICE_ORDER
                        set to 1 for the command
  GPUMON_LOCKS          default of --locks

Files:
  /run/lock/gpumon-UUID.lock, /tmp/gpumon-UUID.lock
      Lock file of a GPU, held by flock(2). The files are not removed.

Exit codes: those of the command, or 0 success, 1 no GPU free with --now, 2 invalid argument or conditions that no GPU can meet, 124 timeout, \
126 command cannot be started, 127 command not found, 6 no GPU, 9 driver not loaded, 12 NVML library not found, \
18 NVML library and driver versions differ";

pub(crate) fn run(source: &SourceArgs, args: &WaitArgs) -> Result {
    source.source.check_scenario_file()?;
    if args.command.is_empty() && env::args_os().any(|word| word == "--") {
        return Err(usage!("no command after --: add a command, or omit --"));
    }
    wait::check_command_exists(&args.command)?;
    let search = Search {
        conditions: Conditions {
            free: args.free,
            idle: args.idle,
            empty: args.empty || (args.free.is_none() && args.idle.is_none()),
        },
        choice: DeviceSelection::new(args.id.clone()),
        count: usize::from(args.gpus),
        locks: Locks::new(
            args.locks
                .as_deref()
                .filter(|folder| !folder.as_os_str().is_empty()),
        )?,
        patience: if args.now {
            Patience::Now
        } else {
            args.timeout.map_or(Patience::Endless, Patience::Until)
        },
    };
    let mut reader = Reader::new(source, &args.server, args.interval);
    let found = wait::wait_and_lock_devices(&search, &mut reader, &mut Progress::new(args.quiet))?;
    if args.command.is_empty() {
        return wait::print_devices(found, args.format, args.hold);
    }
    Err(wait::run_command(&found, &args.command, &mut reader))
}
