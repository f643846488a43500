//! `gpumon alerts`: the rules of an alert file, checked, tried out and exported; and those of a running server.

mod check;
mod export;
mod list;
mod silence;
mod test;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use gpumon_alerts::rules::AlertRules;

use crate::{exit::Failure, local::ServerArgs};

/// Check, test and export alert rules, and silence those of a running server
///
/// Rules stand in a TOML file, which `gpumon serve --alerts FILE` evaluates at every sample.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES, disable_help_subcommand = true)]
pub(crate) struct AlertsArgs {
    #[command(subcommand)]
    action: Action,
}

const NOTES: &str = "\
Examples:
  gpumon alerts check alerts.toml
      Check a file and list what each rule watches for.
  gpumon alerts test alerts.toml --receiver slack
      Send a test alert to one receiver.
  gpumon alerts silence 'GPU is hot' 2h
      Notify nobody of this rule of the running server for two hours.
  gpumon alerts export --prometheus alerts.toml > gpumon.rules.yml
      Write the same rules for Prometheus.

Environment:
  GPUMON_CONTROL  default of --control

Exit codes: 0 success, 1 no server, refused by it or not delivered, 2 invalid argument or alert file";

#[derive(Debug, Subcommand)]
enum Action {
    /// Check an alert file and list what each rule watches for
    Check {
        /// Alert file
        file: PathBuf,
    },
    /// Send a test alert to the receivers of an alert file
    Test {
        /// Alert file
        file: PathBuf,

        /// Only to this receiver; repeatable
        #[arg(long, value_name = "NAME")]
        receiver: Vec<String>,
    },
    /// Print the rules of an alert file for another program
    ///
    /// Rules that it cannot express are left out, and named on standard error.
    Export {
        /// As a rule file of Prometheus, over the metrics of /metrics
        #[arg(long, required = true)]
        prometheus: bool,

        /// Alert file
        file: PathBuf,
    },
    /// List the rules of a running server, and what fires
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,

        #[command(flatten)]
        server: ServerArgs,
    },
    /// Notify nobody of a rule for a while
    ///
    /// Its alerts are listed all the same. The server remembers it until it ends.
    Silence {
        /// Name of the rule
        rule: String,

        /// For how long, for example 30m, 2h or 7d; off to end the silence
        #[arg(value_parser = silence::parse_time)]
        time: silence::Time,

        #[command(flatten)]
        server: ServerArgs,
    },
}

pub(crate) fn run(args: &AlertsArgs) -> Result<(), Failure> {
    match &args.action {
        Action::Check { file } => check::run(file),
        Action::Test { file, receiver } => test::run(file, receiver),
        Action::Export { file, .. } => export::run(file),
        Action::List { json, server } => list::run(server, *json),
        Action::Silence { rule, time, server } => silence::run(server, rule, *time),
    }
}

/// The rules of a file, or what is wrong with it.
pub(crate) fn read(file: &Path) -> Result<AlertRules, Failure> {
    AlertRules::read(file).map_err(Failure::usage)
}
