//! How far a recording is, in one line.

use std::time::Instant;

use gpumon_probe::{local_time::time_zone, units::decimal_size};
use gpumon_recording::Kind;
use serde::Deserialize;

use crate::{moment::shown, terminal::status_line::StatusLine};

pub(super) struct Progress {
    line: Option<StatusLine>,
    begun: Instant,
    samples: u64,
    /// Of those that the server sent; this program was too slow for them.
    pub(super) missed: u64,
    gpus: usize,
    newest_ms: u64,
    /// As of the last block, which is in the file.
    written_ms: u64,
}

#[derive(Deserialize)]
struct Gpus {
    gpus: Vec<serde::de::IgnoredAny>,
}

impl Progress {
    pub(super) fn new() -> Self {
        let line = StatusLine::is_possible().then(StatusLine::default);
        Self {
            line,
            begun: Instant::now(),
            samples: 0,
            missed: 0,
            gpus: 0,
            newest_ms: 0,
            written_ms: 0,
        }
    }

    pub(super) fn count(&mut self, text: &str, kind: Kind, at_ms: u64) {
        match kind {
            Kind::Inventory => {
                self.gpus =
                    serde_json::from_str(text).map_or(self.gpus, |Gpus { gpus }| gpus.len());
            }
            Kind::Sample => (self.samples, self.newest_ms) = (self.samples + 1, at_ms),
            _ => {}
        }
    }

    pub(super) fn flushed(&mut self) {
        self.written_ms = self.newest_ms;
    }

    /// Until when samples are in the file, in words; `None` where there are none.
    pub(super) fn written(&self) -> Option<String> {
        (self.written_ms > 0).then(|| shown(self.written_ms, &time_zone()))
    }

    pub(super) fn show(&mut self, bytes: u64) {
        let text = self.text(bytes) + "  Ctrl-C ends";
        if let Some(line) = &mut self.line {
            line.show(&crate::terminal::text::cut(&text, StatusLine::columns()));
        }
    }

    pub(super) fn clear(&mut self) {
        if let Some(line) = &mut self.line {
            line.clear();
        }
    }

    fn text(&self, bytes: u64) -> String {
        let seconds = self.begun.elapsed().as_secs();
        let time = format!(
            "{}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        );
        let missed = if self.missed > 0 {
            format!(", {} missed", self.missed)
        } else {
            String::new()
        };
        let gpus = if self.gpus == 1 { "GPU" } else { "GPUs" };
        format!(
            "{time}  {} {gpus}  {} samples{missed}  {}",
            self.gpus,
            self.samples,
            decimal_size(bytes as f64)
        )
    }

    /// What was recorded, once it has ended.
    pub(super) fn summary(&self, bytes: u64) -> String {
        let each = bytes
            .checked_div(self.samples)
            .map(|each| format!(" ({} a sample)", decimal_size(each as f64)));
        let each = each.unwrap_or_default();
        format!("recorded {}{each}", self.text(bytes))
    }
}
