//! Sending of signals: the confirmation dialog, the delivery, and the outcome.

use std::time::{Duration, Instant};

use gpumon_probe::units::byte_size;

use super::{App, act::SELECT_FIRST};
use crate::{
    describe::{Level, notebook_path},
    top::{
        dialog::{Dialog, Question, process_name},
        kill::{Kill, Target},
        processes::Recipient,
        text::{date_and_clock, printable, shown, what},
    },
};

/// How long a process may take to end before it is reported as still running.
const PATIENCE: Duration = Duration::from_secs(10);

/// A signal that was sent, and its recipient.
pub(super) struct Sent {
    target: Target,
    kill: Kill,
    at: Instant,
}

impl App {
    /// Opens the dialog that confirms a signal to the tagged processes, or else to the selected
    /// one.
    pub(super) fn ask_to_send(&mut self, kill: Kill) {
        if self.is_readonly {
            return self.state.tell(
                Level::Warn,
                "no signal can be sent: this was started with --readonly",
            );
        }
        if let Some(why) = self.not_of_this_machine() {
            return self
                .state
                .tell(Level::Warn, format!("no signal can be sent: {why}"));
        }
        let mut only = self.process_screen().map(|screen| screen.key);
        if only.is_none() && self.state.processes.tags.is_empty() {
            only = self.selected().map(|(key, _)| key);
            if only.is_none() {
                return self.state.tell(Level::Warn, SELECT_FIRST);
            }
        }
        let mut question = Question::new(kill);
        for recipient in self.state.processes.recipients(&self.model, only) {
            let Recipient { key, process, .. } = &recipient;
            let user = shown(&process.user, |user| printable(user));
            match Target::hold(
                key.pid,
                key.started_ms,
                process_name(process),
                user,
                self.missing(*key),
            ) {
                Ok(target) => question
                    .targets
                    .push((target, describe_recipient(&recipient))),
                Err(why) => question.refused.push(why),
            }
        }
        if question.targets.is_empty() && question.refused.is_empty() {
            return self.state.tell(
                Level::Warn,
                "the process is no longer on a GPU: no signal is sent",
            );
        }
        if question.targets.is_empty() {
            return self.state.tell(Level::Act, question.refused.join("; "));
        }
        self.covered = self.dialog.replace(Dialog::Kill(question));
    }

    pub(super) fn say_yes(&mut self, dialog: Dialog) {
        let Dialog::Kill(Question { targets, kill, .. }) = dialog else {
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
                    self.sent.push(Sent {
                        target,
                        kill,
                        at: Instant::now(),
                    });
                }
                Err(error) => errors.push(format!("{name}: {error}")),
            }
        }
        if errors.is_empty() {
            self.state.tell(
                Level::Note,
                format!("SIG{signal} was sent to {}", counted(&names)),
            );
        } else {
            let (failed, errors) = (errors.len(), errors.join("; "));
            self.state.tell(
                Level::Act,
                format!("SIG{signal} was not sent to {failed} of {all}: {errors}"),
            );
        }
    }

    /// Checks which signaled processes have ended. Returns `true` if there is news.
    pub(super) fn watch_sent(&mut self, now: Instant) -> bool {
        let mut late = Vec::new();
        let before = self.ended.len();
        let mut hint = "";
        self.sent.retain(|sent| {
            if sent.target.has_ended() {
                self.ended.push(sent.target.label());
                return false;
            }
            let is_late = now.saturating_duration_since(sent.at) > PATIENCE;
            if is_late {
                late.push(format!(
                    "{} after SIG{}",
                    sent.target.label(),
                    sent.kill.name()
                ));
                hint = if sent.kill == Kill::End {
                    "it is stuck in the driver"
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
            news.push(format!("{} {have} ended", counted(&self.ended)));
        }
        if !news.is_empty() {
            self.state.tell(
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

/// Returns the name of a single process, or the number of several.
fn counted(names: &[String]) -> String {
    match names {
        [name] => name.clone(),
        names => format!("{} processes", names.len()),
    }
}

/// Describes a process: its GPUs, memory and start, and its command or the path of its notebook.
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
        |bytes| byte_size(bytes as f64),
    );
    let since = shown(&process.started_ms, |started| date_and_clock(*started));
    let what = what(process, notebook_path(process))
        .map_or_else(String::new, |what| format!(", {}", printable(&what)));
    format!("GPU {gpus}, {memory}, since {since}{what}")
}
