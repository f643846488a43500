//! One line on a terminal that says how far the work is: written anew in its place, and taken away before anything else
//! is printed.

use std::time::Instant;

use gpumon_probe::untrusted::escaped;
use gpumon_workload::protocol::{Phase, Report};

use crate::terminal::{
    glyphs::Glyphs, status_line::StatusLine, text::cut, units::compact_duration,
};

const BAR: usize = 16;

/// The line, where standard error is a terminal that can write one anew.
pub(crate) struct ProgressLine {
    is_shown: bool,
    begun: Instant,
    steps: usize,
    step: usize,
    what: String,
    share: Option<f64>,
    text: String,
    shown: StatusLine,
}

impl ProgressLine {
    pub(crate) fn new() -> Self {
        Self {
            is_shown: StatusLine::is_possible(),
            begun: Instant::now(),
            steps: 0,
            step: 0,
            what: String::new(),
            share: None,
            text: String::new(),
            shown: StatusLine::default(),
        }
    }

    pub(crate) fn on_report(&mut self, report: &Report) {
        match report {
            Report::Begun { steps, .. } => self.steps = *steps,
            Report::Phase {
                step, id, phase, ..
            } => {
                (self.step, self.what) = (*step, format!("{id}: {}", doing(*phase)));
                (self.share, self.text) = (None, String::new());
            }
            Report::Progress { share, text, .. } => {
                (self.share, self.text) = (Some(*share), text.clone());
            }
            _ => return,
        }
        self.show();
    }

    pub(crate) fn show(&mut self) {
        if self.is_shown && !self.what.is_empty() {
            let line = self.line(self.begun.elapsed().as_millis() as u64);
            self.shown.show(&cut(&line, StatusLine::columns()));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.shown.clear();
    }

    fn line(&self, elapsed_ms: u64) -> String {
        let mut parts = vec![format!("{:>5}", compact_duration(elapsed_ms))];
        if self.steps > 1 {
            parts.push(format!("{}/{}", self.step + 1, self.steps));
        }
        parts.extend(self.share.map(|share| {
            let (full, empty) = Glyphs::Ascii.draw_bar(share, BAR);
            format!("[{full}{empty}]")
        }));
        let text = if self.text.is_empty() {
            String::new()
        } else {
            format!(", {}", self.text)
        };
        parts.push(escaped(&format!("{}{text}", self.what)));
        parts.join("  ")
    }
}

fn doing(phase: Phase) -> &'static str {
    match phase {
        Phase::Preparing => "preparing",
        Phase::Checking => "verifying the first result",
        Phase::WarmingUp => "warming up",
        Phase::Measuring => "measuring",
        Phase::Verifying => "verifying the last result",
        Phase::Holding => "holding memory",
        Phase::GivingBack => "freeing memory",
        Phase::Other => "working",
    }
}

#[cfg(test)]
mod tests {
    use gpumon_workload::protocol::Backend;

    use super::*;

    #[test]
    fn the_line_says_what_how_far_and_since_when() {
        let mut status = ProgressLine::new();
        status.is_shown = false;
        let mut line_after = |report: Report| {
            status.on_report(&report);
            status.line(65_000)
        };
        line_after(Report::Begun {
            title: "copy, add".to_owned(),
            devices: Vec::new(),
            steps: 2,
        });
        let id = || "add".to_owned();
        let phase = |phase| Report::Phase {
            step: 1,
            id: id(),
            backend: Backend::Cuda,
            phase,
        };
        assert_eq!(
            line_after(phase(Phase::Preparing)),
            "   1m  2/2  add: preparing"
        );
        line_after(phase(Phase::Measuring));
        let line = line_after(Report::Progress {
            share: 0.5,
            text: "1\u{1b}[2J errors".to_owned(),
            memory: None,
        });
        assert_eq!(
            line,
            "   1m  2/2  [########........]  add: measuring, 1\\u{1b}[2J errors"
        );
        assert_eq!(
            line_after(phase(Phase::Verifying)),
            "   1m  2/2  add: verifying the last result"
        );
    }
}
