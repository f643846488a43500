//! `gpumon config`: settings files, checked, shown and explained.

mod check;
mod example;
mod show;

use std::{ffi::OsString, path::PathBuf};

use clap::Subcommand;

#[cfg(test)]
pub(crate) use self::example::text as example;
use crate::{exit::Failure, options::SourceArgs};

/// Check and show settings, and print an example of a settings file
///
/// A settings file in TOML sets what a variable or an option sets, by the same names. The last of these holds:
/// /etc/gpumon/config.toml, `$XDG_CONFIG_HOME/gpumon/config.toml`, environment variables, options.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES, disable_help_subcommand = true)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

const NOTES: &str = "\
Examples:
  gpumon config check
      Check the files of system and user, and the alert file that they name.
  gpumon config show
      Print every setting, its value and where that comes from.
  gpumon config show serve --interval-ms 500
      Print the settings of this command.
  gpumon config example > ~/.config/gpumon/config.toml
      Begin a file with every key, commented out.

Environment:
  GPUMON_CONFIG  default of --config
  XDG_CONFIG_HOME  folder of the user's files, by default ~/.config

Files:
  /etc/gpumon/config.toml
      Settings for every user of this machine.
  $XDG_CONFIG_HOME/gpumon/config.toml
      Settings of the user, which go before them.

Exit codes: 0 success, 1 error, 2 invalid argument or settings file";

#[derive(Debug, Subcommand)]
enum Action {
    /// Check settings files, and the alert file that they name
    Check {
        /// File to check instead of those that are in use
        file: Option<PathBuf>,

        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print every setting with its value and where that comes from
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,

        /// Only the settings of this command, with its options
        #[arg(trailing_var_arg = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Print a settings file with every key, its meaning and its default, commented out
    Example,
}

pub(crate) fn run(source: &SourceArgs, args: &ConfigArgs) -> Result<(), Failure> {
    match &args.action {
        Action::Check { file, json } => {
            check::run(file.as_deref().or(source.config.as_deref()), *json)
        }
        Action::Show { json, command } => show::run(command, *json),
        Action::Example => example::run(),
    }
}
