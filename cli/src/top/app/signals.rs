//! Signals: the question, the sending, and what comes of it.

use std::time::{Duration, Instant};

use super::App;
use crate::{
    describe::Level,
    top::{
        dialog::{Dialog, Question, process_name},
        kill::{Kill, Target},
        text::{date_and_clock, printable, shown, what},
    },
};

/// A process that has not ended by then may not mean to.
const PATIENCE: Duration = Duration::from_secs(10);

/// A signal that was sent, and the process that got it.
pub(super) struct Sent {
    target: Target,
    kill: Kill,
    at: Instant,
}

impl App {
    /// Asks whether the selected process is to get a signal.
    pub(super) fn ask_to_send(&mut self, kill: Kill) {
        if self.is_readonly {
            return self.state.tell(Level::Warn, "no signal can be sent: this was started with --readonly");
        }
        if let Some(why) = self.not_of_this_machine() {
            return self.state.tell(Level::Warn, format!("no signal can be sent: {why}"));
        }
        let Some((key, process)) = self.selected() else {
            return self.state.tell(Level::Warn, "select a process first, with the arrow keys or the mouse");
        };
        let user = shown(&process.user, |user| printable(user));
        let mut about = vec![format!(
            "on GPU {}, since {}",
            key.gpu,
            shown(&process.started_ms, |started| date_and_clock(*started))
        )];
        about.extend(what(process).map(|what| printable(&what)));
        match Target::hold(key.pid, key.started_ms, process_name(process), user, self.missing(key)) {
            Ok(target) => self.dialog = Some(Dialog::Kill(Question { target, kill, about })),
            Err(why) => self.state.tell(Level::Act, why),
        }
    }

    pub(super) fn say_yes(&mut self, dialog: Dialog) {
        let Dialog::Kill(Question { target, kill, .. }) = dialog else { return };
        let (signal, name, pid) = (kill.name(), target.name.clone(), target.pid);
        match target.send(kill) {
            Ok(()) => {
                self.state.tell(Level::Note, format!("SIG{signal} was sent to {name} ({pid})"));
                self.sent.push(Sent { target, kill, at: Instant::now() });
            }
            Err(error) => {
                self.state.tell(Level::Act, format!("SIG{signal} was not sent to {name} ({pid}): {error}"));
            }
        }
    }

    /// Sees what came of what was sent; true where there is something to tell.
    pub(super) fn watch_sent(&mut self, now: Instant) -> bool {
        let mut news = None;
        self.sent.retain(|sent| {
            let Target { pid, name, .. } = &sent.target;
            if sent.target.has_ended() {
                news = Some((Level::Note, format!("{name} ({pid}) has ended")));
                return false;
            }
            let is_late = now.saturating_duration_since(sent.at) > PATIENCE;
            if is_late {
                let signal = sent.kill.name();
                let hint = if sent.kill == Kill::End { "it waits for the driver" } else { "K sends SIGKILL" };
                news = Some((Level::Warn, format!("{name} ({pid}) still runs after SIG{signal}: {hint}")));
            }
            !is_late
        });
        let any = news.is_some();
        if let Some((level, text)) = news {
            self.state.tell(level, text);
        }
        any
    }
}
