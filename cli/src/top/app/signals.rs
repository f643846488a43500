//! Sending signals to processes: the confirmation dialog, the delivery, and the result.

use std::time::{Duration, Instant};

use gpumon_probe::units::format_byte_size;

use super::{App, actions::SELECT_FIRST};
use crate::{
    describe::{Level, find_notebook_path},
    top::{
        dialog::{Dialog, SignalDialog, process_name},
        kill::{KillSignal, PinnedProcess},
        processes::Recipient,
        text::{describe_process, format_date_and_time, format_or_dash, make_printable},
    },
};

/// If a signaled process has not ended after this time, it is reported as still running.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A signal that was sent, and the process that received it.
pub(super) struct SentSignal {
    target: PinnedProcess,
    kill: KillSignal,
    at: Instant,
}

impl App {
    /// Opens the dialog that asks for confirmation of a signal. The recipients are the tagged
    /// processes, or the selected process if none is tagged.
    pub(super) fn open_signal_dialog(&mut self, kill: KillSignal) {
        if self.is_readonly {
            return self.state.show_notice(
                Level::Warn,
                "no signal can be sent: gpumon was started with --readonly",
            );
        }
        if let Some(why) = self.explain_inaccessible_processes() {
            return self
                .state
                .show_notice(Level::Warn, format!("no signal can be sent: {why}"));
        }
        let mut only = self.process_screen().map(|screen| screen.key);
        if only.is_none() && self.state.processes.tags.is_empty() {
            only = self.selected_process().map(|(key, _)| key);
            if only.is_none() {
                return self.state.show_notice(Level::Warn, SELECT_FIRST);
            }
        }
        let mut question = SignalDialog::new(kill);
        for recipient in self.state.processes.list_recipients(&self.model, only) {
            let Recipient { key, process, .. } = &recipient;
            let user = format_or_dash(&process.user, |user| make_printable(user));
            match PinnedProcess::open(
                key.pid,
                key.started_ms,
                process_name(process),
                user,
                self.explain_missing_process(*key),
            ) {
                Ok(target) => question
                    .targets
                    .push((target, describe_recipient(&recipient))),
                Err(why) => question.refused.push(why),
            }
        }
        if question.targets.is_empty() && question.refused.is_empty() {
            return self.state.show_notice(
                Level::Warn,
                "the process is no longer on a GPU: no signal is sent",
            );
        }
        if question.targets.is_empty() {
            return self
                .state
                .show_notice(Level::Act, question.refused.join("; "));
        }
        self.covered = self.dialog.replace(Dialog::Signal(question));
    }

    pub(super) fn send_confirmed_signal(&mut self, dialog: Dialog) {
        let Dialog::Signal(SignalDialog { targets, kill, .. }) = dialog else {
            return;
        };
        let signal = kill.name();
        let all = targets.len();
        let mut names = Vec::new();
        let mut errors = Vec::new();
        if self.sent.is_empty() {
            self.ended.clear();
        }
        for (target, _) in targets {
            let name = target.label();
            match target.send(kill) {
                Ok(()) => {
                    names.push(name);
                    self.sent.push(SentSignal {
                        target,
                        kill,
                        at: Instant::now(),
                    });
                }
                Err(error) => errors.push(format!("{name}: {error}")),
            }
        }
        if errors.is_empty() {
            self.state.show_notice(
                Level::Note,
                format!("SIG{signal} was sent to {}", format_name_or_count(&names)),
            );
        } else {
            let (failed, errors) = (errors.len(), errors.join("; "));
            self.state.show_notice(
                Level::Act,
                format!("SIG{signal} was not sent to {failed} of {all} processes: {errors}"),
            );
        }
    }

    /// Checks which signaled processes have ended. Returns `true` if the user was notified.
    pub(super) fn check_sent_signals(&mut self, now: Instant) -> bool {
        let mut late = Vec::new();
        let before = self.ended.len();
        let mut hint = "";
        self.sent.retain(|sent| {
            if sent.target.has_ended() {
                self.ended.push(sent.target.label());
                return false;
            }
            let is_late = now.saturating_duration_since(sent.at) > EXIT_TIMEOUT;
            if is_late {
                late.push(format!(
                    "{} after SIG{}",
                    sent.target.label(),
                    sent.kill.name()
                ));
                hint = if sent.kill == KillSignal::End {
                    "stuck in the driver"
                } else {
                    "K sends SIGKILL"
                };
            }
            !is_late
        });
        let mut news = Vec::new();
        if !late.is_empty() {
            news.push(format!("still running: {}: {hint}", late.join(", ")));
        }
        if self.ended.len() > before {
            let have = if self.ended.len() == 1 { "has" } else { "have" };
            news.push(format!(
                "{} {have} ended",
                format_name_or_count(&self.ended)
            ));
        }
        if !news.is_empty() {
            self.state.show_notice(
                if late.is_empty() {
                    Level::Note
                } else {
                    Level::Warn
                },
                news.join("; "),
            );
        }
        !news.is_empty()
    }
}

/// Returns the name of a single process, or the number of processes if there are several.
fn format_name_or_count(names: &[String]) -> String {
    match names {
        [name] => name.clone(),
        names => format!("{} processes", names.len()),
    }
}

/// Describes the recipient of a signal: its GPUs, memory and start time, and its command or the
/// path of its notebook.
fn describe_recipient(
    Recipient {
        process,
        gpus,
        memory_bytes,
        ..
    }: &Recipient<'_>,
) -> String {
    let gpus = gpus
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    let memory = memory_bytes.map_or_else(
        || "unknown memory".to_owned(),
        |bytes| format_byte_size(bytes as f64),
    );
    let since = format_or_dash(&process.started_ms, |started| {
        format_date_and_time(*started)
    });
    let what = describe_process(process, find_notebook_path(process))
        .map_or_else(String::new, |what| format!(", {}", make_printable(&what)));
    format!("GPU {gpus}, {memory}, since {since}{what}")
}
