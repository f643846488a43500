//! `gpumon wait`: until a GPU is free, which is then printed, or given to a command.

use std::{env, ffi::OsString, path::PathBuf, time::Duration};

use anyhow::anyhow;

use crate::{
    exit::Failure,
    local::ServerArgs,
    options::{SourceArgs, Time, parse_time},
    wait::{
        self, Amount, Choice, Conditions, Format, Locks, Progress, Reader, Search, parse_amount, parse_hold,
        parse_interval,
    },
};

/// Wait for a GPU that is free, then print its index or run a command on it
///
/// Without --free and --idle, it waits for a GPU on which nobody computes (--empty). Conditions add up: all of them have
/// to hold at the same time. Of several GPUs that do, it takes the one with the most free memory. A GPU that is lost,
/// hangs, sleeps, needs a reset or may not be computed on is never taken, and the others are not held up by it.
///
/// With a command after `--`, gpumon becomes that command as soon as it has a GPU, as env(1) does: signals, exit status
/// and job control are the command's own. `CUDA_VISIBLE_DEVICES` holds the UUIDs of what was taken, and
/// `CUDA_DEVICE_ORDER` is `PCI_BUS_ID`. Where `CUDA_VISIBLE_DEVICES` is set already, as by Slurm, the choice is among what
/// it allows.
///
/// A GPU that is taken is locked, so that no other `gpumon wait` of any user takes it, and its readings are looked at
/// once more after that. The lock lasts as long as the command, and as anything that the command leaves running;
/// without a command, for the time of --hold. It ends with the processes, however they end. MIG devices are locked and
/// taken one by one; their GPU itself is not offered.
///
/// Readings come from a running `gpumon serve` of this user where there is one, else from the driver. Idle time is
/// counted from when the waiting began.
#[derive(Debug, clap::Args)]
#[command(allow_negative_numbers = true)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct WaitArgs {
    /// So much memory is free, as 20GiB, 8000MB or 50%
    ///
    /// Units are TiB, GiB, MiB, KiB (of 1024), TB, GB, MB, KB (of 1000) and B. A share in percent is of what programs
    /// can get of the GPU's memory.
    #[arg(long, value_name = "MEMORY", value_parser = parse_amount)]
    free: Option<Amount>,

    /// Nothing has run on it for so long, as 30s, 5m or 2h
    ///
    /// In every reading of that time its utilisation was 1 % at most; of a MIG device, the share of time in which its
    /// multiprocessors had work. Processes may hold memory meanwhile, as notebooks do: --empty excludes them.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    idle: Option<Time>,

    /// Nobody computes on it
    ///
    /// No process computes on it, and no more memory is in use than an idle driver itself uses: 128 MiB, or 1 GiB where
    /// the driver counts its reserve as used (before 510). What only draws, as a display server, does not count.
    #[arg(long)]
    empty: bool,

    /// Take so many GPUs at once, or none
    ///
    /// More than one are always whole GPUs, since a program can use one MIG device only.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    gpus: u16,

    /// Choose among these: index (3, or 3:1 for a MIG device), UUID or its beginning, PCI bus id; a list by commas
    #[arg(short, long, value_name = "GPU")]
    id: Vec<String>,

    /// Give up after this time, with exit code 124
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    timeout: Option<Time>,

    /// Time between two looks, 100ms to 1m
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    interval: Duration,

    /// Say nothing while waiting, but errors
    #[arg(short, long)]
    quiet: bool,

    /// What to print of each GPU; several are separated by commas
    #[arg(long, value_enum, default_value_t = Format::Index, conflicts_with = "command")]
    format: Format,

    /// Without a command, how long other waiters leave the GPU alone after it was printed, up to 1h
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_hold, conflicts_with = "command")]
    hold: Time,

    /// Folder of the locks, the same for all who are to respect each other [default: /run/lock or /tmp]
    ///
    /// By default the first of these that is open to all users. In containers, mount one folder of the machine.
    #[arg(long, env = "GPUMON_LOCKS", value_name = "FOLDER", hide_env_values = true)]
    locks: Option<PathBuf>,

    #[command(flatten)]
    server: ServerArgs,

    /// Run this on what was taken
    #[arg(last = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  gpumon wait -- python train.py
      Train on the first GPU that nobody uses.
  gpumon wait --free 20GiB --idle 5m --timeout 2h -- python train.py
      With 20 GiB to spare, and nothing run for five minutes; give up after two hours.
  gpumon wait --gpus 4 -- torchrun --nproc-per-node 4 train.py
      Four at once.
  CUDA_VISIBLE_DEVICES=$(gpumon wait --free 50% --format uuid) ./simulate
      Print its name; --format uuid means the same GPU to CUDA, an index may not.
  gpumon wait -i 2,3 --quiet && echo ready
      One of these two, without a word.

Environment:
  CUDA_VISIBLE_DEVICES  limits the choice; set for the command
  CUDA_DEVICE_ORDER     set to PCI_BUS_ID for the command
  GPUMON_LOCKS          as --locks

Files:
  /run/lock/gpumon-UUID.lock, /tmp/gpumon-UUID.lock
      The lock of a GPU, held by flock(2). The files may stay when nobody waits.

Exit codes: the command's own, or 0 done, 2 bad argument or no GPU can ever meet it, 124 timed out, 126 the command \
cannot be started, 127 there is no such command, 6 no GPU, 9 driver not loaded, 12 no NVIDIA library, \
18 library and driver do not match";

pub(crate) fn run(source: &SourceArgs, args: &WaitArgs) -> Result<(), Failure> {
    source.source.check()?;
    if args.command.is_empty() && env::args_os().any(|word| word == "--") {
        return Err(Failure::usage(anyhow!("no command after --: name one, or leave out --")));
    }
    wait::check(&args.command)?;
    let search = Search {
        conditions: Conditions {
            free: args.free,
            idle: args.idle.map(|Time(idle)| idle),
            empty: args.empty || (args.free.is_none() && args.idle.is_none()),
        },
        choice: Choice::new(args.id.clone()),
        count: usize::from(args.gpus),
        locks: Locks::new(args.locks.as_deref().filter(|folder| !folder.as_os_str().is_empty()))?,
        timeout: args.timeout.map(|Time(timeout)| timeout),
    };
    let mut reader = Reader::new(source, &args.server, args.interval);
    let found = wait::find(&search, &mut reader, &mut Progress::new(args.quiet))?;
    if args.command.is_empty() {
        return wait::hand_over(found, args.format, args.hold.0);
    }
    Err(wait::run(&found, &args.command, &mut reader))
}
