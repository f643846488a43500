//! Reload of settings files and alert rules on a hang-up signal.

use std::{ffi::OsString, path::PathBuf};

use clap::{ArgMatches, FromArgMatches as _};
use gpumon_server::LiveSettings;
use tokio::sync::watch;

use super::ServeArgs;
use crate::{
    command_definition,
    config::{self, Key, Keys, Refusal, ResolvedArguments},
};

/// Keys that a reload applies immediately. Changes to all other keys take effect at the next start.
const LIVE_KEYS: [&str; 6] = [
    "interval-ms",
    "data-size",
    "metrics-processes",
    "allow-runs",
    "public-origin",
    "alerts",
];

pub(crate) struct Reloader {
    /// The arguments with which the server was started. The field below contains the arguments
    /// after the last reload.
    start: ArgMatches,
    now: ArgMatches,
    live: watch::Sender<LiveSettings>,
    alerts: watch::Sender<Option<PathBuf>>,
    config: Option<PathBuf>,
}

impl Reloader {
    /// Returns the reloader and the receivers of the settings that a reload can change. `resolved`
    /// is the server's command line at the start.
    pub(super) fn new(
        args: &ServeArgs,
        resolved: &ResolvedArguments,
    ) -> (
        Self,
        watch::Receiver<LiveSettings>,
        watch::Receiver<Option<PathBuf>>,
    ) {
        let (live, live_changes) = watch::channel(args.live_settings());
        let (alerts, alert_changes) = watch::channel(args.alert_file());
        let start = resolved.matches.clone();
        let config = resolved.config_path().map(PathBuf::from);
        (
            Self {
                now: start.clone(),
                start,
                live,
                alerts,
                config,
            },
            live_changes,
            alert_changes,
        )
    }

    /// Returns `true` if there is an alert file or a settings file to reload.
    pub(super) fn has_reloadable_files(&self) -> bool {
        self.alerts.borrow().is_some() || !config::has_no_files(self.config.as_deref())
    }

    /// Reads the settings files and the alert rules again, and applies changes. If a file is
    /// invalid, nothing changes.
    pub(super) fn reload(&mut self) {
        let words: Vec<OsString> = std::env::args_os().collect();
        let read = config::resolve_command_line(&command_definition::build_command(), &words)
            .and_then(|read| {
                let own = read.matches.subcommand_matches("serve");
                let args = own
                    .map(ServeArgs::from_arg_matches)
                    .transpose()
                    .map_err(Refusal::Arguments)?;
                Ok((args, read.matches))
            });
        match read {
            Ok((Some(args), matches)) => self.apply_changes(&args, matches),
            Ok((None, _)) => {}
            Err(Refusal::Settings(mistakes)) => {
                for mistake in mistakes {
                    tracing::error!(
                        "settings not reloaded, the previous ones stay in effect: {mistake}"
                    );
                }
            }
            Err(Refusal::Arguments(error)) => {
                let text = error.to_string();
                let why = text.lines().next().unwrap_or_default();
                tracing::error!("settings not reloaded, the previous ones stay in effect: {why}");
            }
        }
    }

    fn apply_changes(&mut self, args: &ServeArgs, matches: ArgMatches) {
        let keys = Keys::new();
        let (at_once, later): (Vec<&Key>, Vec<&Key>) = keys
            .iter()
            .filter(|key| key.table.is_none_or(|table| table == "serve"))
            .partition(|key| LIVE_KEYS.contains(&key.name()));
        let changed = format_changed_options(&at_once, &self.now, &matches);
        let waiting = format_changed_options(&later, &self.start, &matches);
        self.live.send_if_modified(|live| {
            std::mem::replace(live, args.live_settings()) != args.live_settings()
        });
        let file = args.alert_file();
        if file.is_some() || *self.alerts.borrow() != file {
            self.alerts.send_replace(file);
        }
        self.now = matches;
        let changed = if changed.is_empty() {
            "nothing changed".to_owned()
        } else {
            format!("{changed} changed")
        };
        tracing::info!("settings reloaded: {changed}");
        if !waiting.is_empty() {
            tracing::warn!(
                "settings that take effect only after a restart of the server: \
             {waiting}"
            );
        }
    }
}

fn format_changed_options(keys: &[&Key], before: &ArgMatches, after: &ArgMatches) -> String {
    let changed = keys.iter().filter(|key| has_changed(key, before, after));
    let options: Vec<_> = changed.map(|key| format!("--{}", key.name())).collect();
    options.join(", ")
}

fn has_changed(key: &Key, before: &ArgMatches, after: &ArgMatches) -> bool {
    let raw = |matches: &ArgMatches| -> Vec<OsString> {
        let of_command = matches.subcommand().map_or(matches, |(_, inner)| inner);
        let values = of_command
            .try_get_raw(key.arg.get_id().as_str())
            .ok()
            .flatten();
        values
            .into_iter()
            .flatten()
            .map(ToOwned::to_owned)
            .collect()
    };
    raw(before) != raw(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reloadable_key_belongs_to_serve_settings() {
        let keys = Keys::new();
        for name in LIVE_KEYS {
            assert!(keys.get(Some("serve"), name).is_some(), "{name}");
        }
    }
}
