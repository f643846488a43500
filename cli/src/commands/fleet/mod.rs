//! `gpumon fleet`: monitors many machines on a page or in the terminal.

mod table;

use std::{iter, path::PathBuf};

use anyhow::Context;
use clap::Arg;
use gpumon_fleet::discovery::{Label, MOST_TARGETS, Target, TargetGroup, groups, slurm};
use gpumon_probe::{safe_file, units::Accepted};
use gpumon_server::{Live, Settings, fleet::FleetSettings};

use super::serve::{DoorArgs, asked_to_end};
use crate::{
    exit::{Failure, Result, usage},
    fleet::{
        hosts::{self, HostsArgs},
        nodes::Sort,
        options::{OwnFleetArgs, WithoutPrefix, no_fleet},
        renamed::{Rename, Renamed},
        served,
    },
};

/// Monitor many machines: a page of all their GPUs, or a table of them
///
/// Readings come from an existing Prometheus (or Thanos, Mimir or VictoriaMetrics) that scrapes
/// gpumon or dcgm-exporter, or over ssh with --hosts. The page is served on loopback unless there
/// are TLS and tokens, as with `gpumon serve`. Each node can be opened from it, with everything
/// that the node's own `gpumon serve` shows.
///
/// With --table, --gpus, --users, --json or --free, the fleet is printed once instead. The words
/// after these options select GPUs: busy, idle, free, held, lost, critical, hot; part of a name of
/// a node, GPU, user or job; node:NAME, gpu:NAME, user:NAME, job:ID, notebook:ID, namespace:NAME,
/// condition:NAME; memory>80GiB, left>20GiB, utilization<10%, power>500W, temperature>70, idle>1h.
/// A GPU must match all words; a word after ! excludes GPUs.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES, args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    action: Option<Action>,

    #[command(flatten)]
    fleet: OwnFleetArgs,

    #[command(flatten)]
    once: OnceArgs,

    #[command(flatten)]
    doors: Renamed<DoorArgs, OfFleet>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Targets(TargetsArgs),
}

/// The options that print the fleet once.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Print once")]
// Each field is an independent switch of the command line.
#[allow(clippy::struct_excessive_bools)]
pub(super) struct OnceArgs {
    /// Print a line per node and exit
    #[arg(long, group = "once")]
    table: bool,

    /// Print a line per GPU and exit
    #[arg(long, group = "once")]
    gpus: bool,

    /// Print each user's GPUs now and their use in the last 24 hours, and exit
    #[arg(long, group = "once")]
    users: bool,

    /// Print nodes with at least this many free GPUs of one kind, the tightest fit first, and exit;
    /// the exit code is 1 if there is none
    #[arg(long, group = "once", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    free: Option<u32>,

    /// With --free, minimum total memory of each GPU, for example 80GiB
    #[arg(long, value_name = "SIZE", requires = "free", value_parser = |text: &str| MEMORY.parse(text))]
    memory: Option<u64>,

    /// Print JSON and exit: the fleet, or the result of --users or --free
    #[arg(long)]
    json: bool,

    /// Order of the printed lines
    #[arg(long, value_name = "KEY", default_value = "worst", conflicts_with_all = ["users", "free"])]
    sort: Sort,

    /// Words that select GPUs to print
    #[arg(value_name = "WORD")]
    words: Vec<String>,
}

/// Renames options of `gpumon serve`, so that `gpumon fleet` has variables and keys of its own and
/// both can run on one machine.
#[derive(Debug)]
pub(crate) struct OfFleet;

impl Rename for OfFleet {
    fn rename(arg: Arg) -> Arg {
        let variable = arg
            .get_env()
            .and_then(|variable| variable.to_str()?.strip_prefix("GPUMON_"));
        let variable = variable.map(|variable| format!("GPUMON_FLEET_{variable}"));
        let arg = if arg.get_id() == "listen" {
            arg.default_value("127.0.0.1:9125")
        } else {
            arg
        };
        variable.into_iter().fold(arg, Arg::env)
    }
}

const NOTES: &str = "\
Examples:
  gpumon fleet --prometheus http://prometheus:9090
      Serve the page of all GPUs at http://127.0.0.1:9125/.
  gpumon fleet --prometheus https://mimir.example.org/prometheus --prometheus-token-file token --prometheus-header 'X-Scope-OrgID: research'
      Read a tenant of Mimir.
  gpumon fleet --hosts 'node[01-08],ana@box:2222'
      Read hosts over ssh, where there is no Prometheus.
  gpumon fleet --table lost
      Print the nodes with GPUs that do not respond.
  gpumon fleet --gpus idle user:ana
      Print the GPUs that ana holds and leaves idle.
  gpumon fleet --free 4 --memory 80GiB && sbatch train.sh
      Print where 4 GPUs of 80 GiB are free, and start a job where there are any.
  gpumon fleet --json | jq '.nodes.name | length'
      Count the nodes.

Every option has a variable, as GPUMON_FLEET_PROMETHEUS for --prometheus, and a key in [fleet] of the settings file; see
`gpumon config --help`. A node opens at its own server, at --node-url; https://{host}:9123/ by default.

Exit codes: 0 success, with --free if there are such GPUs; 1 error, or no such GPUs; 2 invalid argument or address in use";

pub(crate) fn run(args: &FleetArgs) -> Result {
    if let Some(Action::Targets(targets)) = &args.action {
        return print_targets(targets);
    }
    let settings = args.fleet.args.settings()?.ok_or_else(no_fleet)?;
    if args.once.is_wanted() {
        return table::run(&args.once, &settings.reader);
    }
    if !args.once.words.is_empty() {
        return Err(usage!(
            "words choose what is printed: add --table, --gpus, --users or --free N, or filter on the page"
        ));
    }
    super::serve::in_runtime(serve(&args.doors.args, settings))
}

impl OnceArgs {
    fn is_wanted(&self) -> bool {
        self.table || self.gpus || self.users || self.json || self.free.is_some()
    }
}

const MEMORY: Accepted<u64> = Accepted::accept_sizes(
    1,
    u64::MAX,
    "a size of a GPU's memory in all, such as 80GiB",
);

async fn serve(doors: &DoorArgs, fleet: FleetSettings) -> Result {
    let shutdown = asked_to_end(doors.exit_with_parent, None)?;
    let show_processes = doors.show_processes(false)?;
    let open = doors.open(false)?;
    let door = doors.open_listener(&open).await?;
    tracing::info!("serving the fleet at {}", door.address(&open));
    let live = Live {
        public_origins: doors.public_origin.clone().into(),
        ..Live::default()
    }
    .fixed();
    let settings = Settings {
        live,
        doors: open,
        show_processes,
        ..served::settings(fleet)
    };
    gpumon_server::run(iter::once(door).collect(), settings, shutdown).await?;
    Ok(())
}

/// Print targets for Prometheus: its `file_sd` and `http_sd` read the same JSON
///
/// Targets are the named hosts, or the nodes of a Slurm cluster that have GPUs.
#[derive(Debug, clap::Args)]
#[command(after_long_help = TARGETS_NOTES)]
pub(crate) struct TargetsArgs {
    #[command(flatten)]
    hosts: Renamed<HostsArgs, WithoutPrefix>,

    /// File with the output of `sinfo -N -h -o '%N %G'` or `scontrol show nodes`, from which the
    /// nodes with GPUs are taken; `-` is standard input
    #[arg(long, value_name = "FILE")]
    slurm_nodes: Option<PathBuf>,

    /// File to write; the file is replaced in one step, so that Prometheus never reads half of it.
    /// By default, targets are printed
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Port at which the targets are scraped
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = PORT,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    port: u16,

    /// Label of all targets, such as cluster=alps; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<Label>,
}

/// The default port of `gpumon serve`.
pub(crate) const PORT: u16 = 9123;

const TARGETS_NOTES: &str = "\
Examples:
  gpumon fleet targets --hosts 'node[01-64]' --label cluster=alps \
--output /etc/prometheus/gpumon.json
      Write a file for file_sd_configs.
  sinfo -N -h -o '%N %G' | gpumon fleet targets --slurm-nodes - --port 9124
      Print the nodes of a Slurm cluster that have GPUs.

Exit codes: 0 success, 1 error, 2 invalid argument";

fn print_targets(args: &TargetsArgs) -> Result {
    let targets = args.targets()?;
    let json = format_groups(&groups(&targets, args.port, &args.label))?;
    match &args.output {
        // The file is readable by all users, because Prometheus runs as another user.
        Some(file) => safe_file::replace(file, json.as_bytes(), 0o644)
            .with_context(|| format!("cannot write {}", file.display()))?,
        None => crate::terminal::output::print_raw(&json)?,
    }
    Ok(())
}

impl TargetsArgs {
    fn targets(&self) -> Result<Vec<Target>> {
        let mut targets = Vec::new();
        if let Some(hosts) = self.hosts.args.read_hosts(MOST_TARGETS)? {
            targets.extend(hosts.hosts().iter().map(|it| Target {
                host: it.address().to_owned(),
            }));
        }
        if let Some(file) = &self.slurm_nodes {
            let text = hosts::read(file).map_err(Failure::usage)?;
            let nodes = slurm::gpu_nodes(&text);
            targets.extend(nodes.map_err(|error| usage!("{}: {error}", file.display()))?);
        } else if targets.is_empty() {
            return Err(usage!(
                "which hosts? Name them with --hosts LIST, --hosts-file FILE or --slurm-nodes FILE"
            ));
        }
        let mut seen = std::collections::BTreeSet::new();
        targets.retain(|target| seen.insert(target.host.clone()));
        Ok(targets)
    }
}

fn format_groups(groups: &[TargetGroup]) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(groups)? + "\n")
}
