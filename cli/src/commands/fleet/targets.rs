//! `gpumon fleet targets`: what Prometheus is to scrape.

use std::path::PathBuf;

use anyhow::Context;
use gpumon_fleet::discovery::{Label, MOST_TARGETS, Target, TargetGroup, groups, slurm};
use gpumon_probe::safe_file;

use crate::{
    exit::{Failure, Result, usage},
    fleet::{
        hosts::{self, HostsArgs},
        options::WithoutPrefix,
        renamed::Renamed,
    },
};

/// Print targets for Prometheus: its `file_sd` and `http_sd` read the same JSON
///
/// Targets are the hosts that are named, or the nodes of a Slurm cluster that have GPUs.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct TargetsArgs {
    #[command(flatten)]
    hosts: Renamed<HostsArgs, WithoutPrefix>,

    /// File with what `sinfo -N -h -o '%N %G'` or `scontrol show nodes` prints, for the nodes with GPUs; `-` is standard
    /// input
    #[arg(long, value_name = "FILE")]
    slurm_nodes: Option<PathBuf>,

    /// File to write; it is replaced at once, so that Prometheus never reads a part of it. Without, they are printed
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Port at which they are scraped
    #[arg(long, value_name = "PORT", default_value_t = PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,

    /// Label of all of them, as cluster=alps; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<Label>,
}

/// Where `gpumon serve` is unless it is told otherwise.
pub(crate) const PORT: u16 = 9123;

const NOTES: &str = "\
Examples:
  gpumon fleet targets --hosts 'node[01-64]' --label cluster=alps --output /etc/prometheus/gpumon.json
      Write a file for file_sd_configs.
  sinfo -N -h -o '%N %G' | gpumon fleet targets --slurm-nodes - --port 9124
      Print the nodes of a Slurm cluster that have GPUs.

Exit codes: 0 success, 1 error, 2 invalid argument";

pub(super) fn run(args: &TargetsArgs) -> Result {
    let targets = args.targets()?;
    let json = written(&groups(&targets, args.port, &args.label))?;
    match &args.output {
        // Everybody may read it, as before.
        Some(file) => safe_file::replace(file, json.as_bytes(), 0o644)
            .with_context(|| format!("cannot write {}", file.display()))?,
        None => crate::terminal::output::print_raw(&json)?,
    }
    Ok(())
}

impl TargetsArgs {
    fn targets(&self) -> Result<Vec<Target>> {
        let mut targets = Vec::new();
        if let Some(hosts) = self.hosts.args.hosts(MOST_TARGETS)? {
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

fn written(groups: &[TargetGroup]) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(groups)? + "\n")
}
