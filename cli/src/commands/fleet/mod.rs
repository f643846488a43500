//! `gpumon fleet`: monitors many machines on a page or in the terminal.

mod table;

use std::path::PathBuf;

use anyhow::Context;
use clap::Arg;
use gpumon_fleet::discovery::{self, Label, MAX_TARGETS, Target, TargetGroup, group_targets};
use gpumon_probe::{safe_file, units::AcceptedAmounts};
use gpumon_server::{LiveSettings, ServerSettings, fleet::FleetSettings};

use super::serve::{AccessArgs, wait_for_shutdown};
use crate::{
    exit::{Failure, Result, usage},
    fleet::{
        nodes::Sort,
        options::{
            self, HostsArgs, RenameOption, RenamedArgs, UnprefixedFleetArgs, WithoutPrefix,
            make_missing_fleet_error,
        },
    },
};

/// Monitor many machines: a page of all their GPUs, or a table of them
///
/// Readings come from an existing Prometheus (or Thanos, Mimir or VictoriaMetrics) that scrapes
/// gpumon or dcgm-exporter, or over ssh with --hosts. The page is served on loopback unless there
/// are TLS and tokens, as with `gpumon serve`. From the page, each node can be opened with
/// everything that the node's own `gpumon serve` shows.
///
/// With --table, --gpus, --users, --json or --free, the fleet is printed once instead. The words
/// after these options select GPUs: busy, idle, free, held, lost, critical, hot; part of a name of
/// a node, GPU, user or job; node:NAME, gpu:NAME, user:NAME, job:ID, notebook:ID, namespace:NAME,
/// condition:NAME; memory>80GiB, left>20GiB, utilization<10%, power>500W, temperature>70, idle>1h.
/// A GPU must match all words; a word after ! excludes GPUs.
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = NOTES, args_conflicts_with_subcommands = true, disable_help_subcommand = true
)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    action: Option<Action>,

    #[command(flatten)]
    fleet: UnprefixedFleetArgs,

    #[command(flatten)]
    once: OnceArgs,

    #[command(flatten)]
    policy: RenamedArgs<AccessArgs, FleetPrefix>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Targets(TargetsArgs),
}

/// Options that print the fleet once and exit.
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

    /// Print the GPUs that each user holds and their use in the last 24 hours, and exit
    #[arg(long, group = "once")]
    users: bool,

    /// Print nodes with at least this many free GPUs of one kind, the tightest fit first, and exit;
    /// the exit code is 1 if there is none
    #[arg(
        long, group = "once", value_name = "N", value_parser = clap::value_parser!(u32).range(1..)
    )]
    free: Option<u32>,

    /// With --free, minimum total memory of each GPU, for example 80GiB
    #[arg(
        long, value_name = "SIZE", requires = "free",
        value_parser = |text: &str| ACCEPTED_MEMORY.parse(text)
    )]
    memory: Option<u64>,

    /// Print JSON and exit: the fleet, or the result of --users or --free
    #[arg(long)]
    json: bool,

    /// Order of the printed lines
    #[arg(
        long, value_name = "KEY", default_value = "worst", conflicts_with_all = ["users", "free"]
    )]
    sort: Sort,

    /// Words that select GPUs to print
    #[arg(value_name = "WORD")]
    words: Vec<String>,
}

/// Renames the options of `gpumon serve` for `gpumon fleet`, so that each command has its own
/// variables and settings. Both servers can then run on one machine.
#[derive(Debug)]
pub(crate) struct FleetPrefix;

impl RenameOption for FleetPrefix {
    fn rename_option(arg: Arg) -> Arg {
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
      Read hosts over ssh, without Prometheus.
  gpumon fleet --table lost
      Print the nodes with GPUs that do not respond.
  gpumon fleet --gpus idle user:ana
      Print the GPUs that ana holds and leaves idle.
  gpumon fleet --free 4 --memory 80GiB && sbatch train.sh
      Print the nodes with 4 free GPUs of 80 GiB, and submit a job if there are any.
  gpumon fleet --json | jq '.nodes.name | length'
      Count the nodes.

Every option has an environment variable, such as GPUMON_FLEET_PROMETHEUS for --prometheus, and a key in [fleet] of the
settings file; see `gpumon config --help`. A node's link opens the server of that node, at --node-url
(by default https://{host}:9123/).

Exit codes: 0 success, 1 error or, with --free, no matching node, 2 invalid argument or address in use";

pub(crate) fn run(args: &FleetArgs) -> Result {
    if let Some(Action::Targets(targets)) = &args.action {
        return print_targets(targets);
    }
    let settings = args
        .fleet
        .args
        .settings()?
        .ok_or_else(make_missing_fleet_error)?;
    if args.once.is_requested() {
        return table::run(&args.once, &settings.reader);
    }
    if !args.once.words.is_empty() {
        return Err(usage!(
            "filter words apply only to printed output: add --table, --gpus, --users or --free N, \
             or filter on the page"
        ));
    }
    super::serve::run_in_runtime(serve(&args.policy.args, settings))
}

impl OnceArgs {
    fn is_requested(&self) -> bool {
        self.table || self.gpus || self.users || self.json || self.free.is_some()
    }
}

const ACCEPTED_MEMORY: AcceptedAmounts<u64> =
    AcceptedAmounts::accept_sizes(1, u64::MAX, "a size of GPU memory, such as 80GiB");

async fn serve(policy: &AccessArgs, fleet: FleetSettings) -> Result {
    let shutdown = wait_for_shutdown(policy.exit_with_parent, None)?;
    let show_processes = policy.process_visibility(false)?;
    let open = policy.build_access_policy(false)?;
    let door = policy.open_listener(&open).await?;
    tracing::info!("serving the fleet at {}", door.display_address(&open));
    let live = LiveSettings {
        public_origins: policy.public_origin.clone().into(),
        ..LiveSettings::default()
    }
    .into_constant_receiver();
    let settings = ServerSettings {
        live,
        policy: open,
        show_processes,
        ..options::build_fleet_server_settings(fleet)
    };
    Ok(gpumon_server::run(vec![door], settings, shutdown).await?)
}

/// Print targets for Prometheus: its `file_sd` and `http_sd` read the same JSON
///
/// Targets are the named hosts, or the nodes of a Slurm cluster that have GPUs.
#[derive(Debug, clap::Args)]
#[command(after_long_help = TARGETS_NOTES)]
pub(crate) struct TargetsArgs {
    #[command(flatten)]
    hosts: RenamedArgs<HostsArgs, WithoutPrefix>,

    /// File with the output of `sinfo -N -h -o '%N %G'` or `scontrol show nodes`, from which the
    /// nodes with GPUs are taken; `-` is standard input
    #[arg(long, value_name = "FILE")]
    slurm_nodes: Option<PathBuf>,

    /// File to write, replaced in one step so that Prometheus never reads an incomplete file; by
    /// default, targets are printed
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Port at which the targets are scraped
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = DEFAULT_PORT,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    port: u16,

    /// Label of all targets, such as cluster=alps; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<Label>,
}

/// The default port of `gpumon serve`. Targets without another port are scraped at this port.
pub(crate) const DEFAULT_PORT: u16 = 9123;

const TARGETS_NOTES: &str = "\
Examples:
  gpumon fleet targets --hosts 'node[01-64]' --label cluster=alps \
--output /etc/prometheus/gpumon.json
      Write a file for file_sd_configs.
  sinfo -N -h -o '%N %G' | gpumon fleet targets --slurm-nodes - --port 9124
      Print the nodes of a Slurm cluster that have GPUs.

Exit codes: 0 success, 1 error, 2 invalid argument";

fn print_targets(args: &TargetsArgs) -> Result {
    let targets = args.read_targets()?;
    let json = format_groups(&group_targets(&targets, args.port, &args.label))?;
    match &args.output {
        // Prometheus runs as another user, so the file is readable by everyone.
        Some(file) => safe_file::replace(file, json.as_bytes(), 0o644)
            .with_context(|| format!("cannot write {}", file.display()))?,
        None => crate::terminal::output::print_raw(&json)?,
    }
    Ok(())
}

impl TargetsArgs {
    fn read_targets(&self) -> Result<Vec<Target>> {
        let mut targets = Vec::new();
        if let Some(hosts) = self.hosts.args.read_hosts(MAX_TARGETS)? {
            targets.extend(hosts.hosts().iter().map(|it| Target {
                host: it.address().to_owned(),
            }));
        }
        if let Some(file) = &self.slurm_nodes {
            let text = options::read_host_file(file).map_err(Failure::from_usage_error)?;
            let nodes = discovery::parse_gpu_nodes(&text);
            targets.extend(nodes.map_err(|error| usage!("{}: {error}", file.display()))?);
        } else if targets.is_empty() {
            return Err(usage!(
                "no hosts were given: use --hosts LIST, --hosts-file FILE or --slurm-nodes FILE"
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
