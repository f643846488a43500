//! Results as they come from the worker: for people in a table, for programs a line each.

use std::io::{self, Write};

use gpumon_probe::model::Reading;
use gpumon_workload::protocol::{DeviceName, FrameworkRun, Line, Load, Outcome, Report};
use serde_json::json;

use super::{
    compare::{Compared, Earlier},
    pairs::Pairs,
    table::{Layout, Table, name},
};
use crate::{
    exit::{Failure, say},
    run::{ProgressLine, View},
    table::style::{ALARM, DIM, NOTICE, paint},
};

/// What was printed, and how it was beside what was wanted.
pub(crate) struct Results {
    json: bool,
    layout: Layout,
    /// Since it has begun.
    table: Option<Table>,
    devices: Vec<DeviceName>,
    steps: usize,
    has_lines: bool,
    pairs: Pairs,
    progress: ProgressLine,
    earlier: Option<Earlier>,
    fail_below: Option<f64>,
    /// How many results could be held against the threshold.
    judged: usize,
    /// Those that are below it, in words.
    below: Vec<String>,
    /// Those that have become slower, in words.
    slower: Vec<String>,
}

impl Results {
    pub(crate) fn new(json: bool, layout: Layout, earlier: Option<Earlier>, fail_below: Option<f64>) -> Self {
        Self {
            json,
            layout,
            table: None,
            devices: Vec::new(),
            steps: 0,
            has_lines: false,
            pairs: Pairs::default(),
            progress: ProgressLine::new(),
            earlier,
            fail_below,
            judged: 0,
            below: Vec::new(),
            slower: Vec::new(),
        }
    }

    /// Says what all of them come to, and whether one is below the threshold, or none could be held against it.
    /// `is_whole` is whether everything was done.
    pub(crate) fn finish(&self, is_whole: bool) -> Result<bool, Failure> {
        let is_below = self.fail_below.is_some() && (self.judged == 0 || !self.below.is_empty());
        if is_whole && self.fail_below.is_some() && self.judged == 0 {
            say("--fail-below compared nothing: no result has an earlier one or a theoretical peak");
        }
        if self.json || !self.has_lines {
            return Ok(is_below);
        }
        let mut out = anstream::stdout();
        out.write_all(self.pairs.text().as_bytes())?;
        if self.earlier.is_some() {
            let text = match &self.slower[..] {
                [] => paint(DIM, "No result is significantly slower than before."),
                slower => paint(NOTICE, &format!("Significantly slower than before: {}", slower.join(", "))),
            };
            writeln!(out, "\n{text}")?;
        }
        if let (Some(share), false) = (self.fail_below, self.below.is_empty()) {
            let text = format!("Below {:.1} %: {}", share * 100.0, self.below.join(", "));
            writeln!(out, "\n{}", paint(ALARM, &text))?;
        }
        Ok(is_below)
    }

    fn result(
        &mut self,
        raw: &str,
        outcome: &Outcome,
        load: Option<&Load>,
        beside: &[FrameworkRun],
    ) -> Result<(), Failure> {
        let compared = self.earlier.as_ref().and_then(|earlier| earlier.beside(outcome));
        if !outcome.partial {
            self.judge(outcome, compared);
        }
        let mut out = anstream::stdout();
        if self.json {
            match compared.map(|compared| serde_json::to_string(&compared)).transpose().map_err(io::Error::from)? {
                Some(compared) => {
                    writeln!(out, "{},\"compared\":{compared}}}", raw.strip_suffix('}').unwrap_or(raw))?;
                }
                None => writeln!(out, "{raw}")?,
            }
        } else {
            self.pairs.take(outcome);
            if let Some(table) = &mut self.table {
                out.write_all(table.lines(outcome, load, compared).as_bytes())?;
                for run in beside {
                    out.write_all(table.beside(run, outcome).as_bytes())?;
                }
                self.has_lines = true;
            }
        }
        out.flush()?;
        Ok(())
    }

    fn judge(&mut self, outcome: &Outcome, compared: Option<Compared>) {
        if let Some(Compared { ratio, is_slower: true }) = compared {
            self.slower.push(format!("{} {ratio:.2}x", name(outcome)));
        }
        let share = match (&self.earlier, &outcome.roofline.share) {
            (Some(_), _) => compared.map(|compared| compared.ratio),
            (None, Reading::Now(share)) => Some(*share),
            _ => None,
        };
        if let (Some(least), Some(share)) = (self.fail_below, share) {
            self.judged += 1;
            if share < least {
                self.below.push(format!("{} {:.1} %", name(outcome), share * 100.0));
            }
        }
    }
}

impl View for Results {
    fn on_line(&mut self, raw: &str, line: Line) -> Result<(), Failure> {
        match &line.report {
            Report::Begun { devices, steps, .. } => {
                self.table = Some(Table::new(self.layout, devices));
                (self.devices, self.steps) = (devices.clone(), *steps);
            }
            Report::Result { outcome, load, beside } => {
                self.progress.clear();
                self.result(raw, outcome, load.as_ref(), beside)?;
            }
            Report::Said { text, .. } => {
                self.progress.clear();
                say(text);
            }
            Report::Failed { id, backend, gpu, error, code } => {
                self.progress.clear();
                match &mut self.table {
                    // One of several is a line among theirs.
                    Some(table) if !self.json && self.steps > 1 => {
                        let place = self.devices.iter().find(|device| device.index == *gpu);
                        anstream::stdout().write_all(table.failure(id, place, error).as_bytes())?;
                    }
                    _ => say(error),
                }
                // What never began has no results.
                if self.json && self.table.is_some() {
                    let object = json!({
                        "at_ms": line.at_ms, "report": "failed", "id": id, "backend": backend, "gpu": gpu,
                        "error": error, "code": code, "verify": { "ok": false, "checked": 0 }
                    });
                    writeln!(io::stdout(), "{object}")?;
                }
            }
            Report::Phase { .. }
            | Report::Progress { .. }
            | Report::Tutorial { .. }
            | Report::Check { .. }
            | Report::Ended { .. }
            | Report::Unknown => {}
        }
        self.progress.on_report(&line.report);
        Ok(())
    }

    fn on_tick(&mut self) {
        self.progress.show();
    }

    fn end(&mut self) {
        self.progress.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{fuzzing::outcome, table::Subject},
        *,
    };

    #[test]
    fn a_threshold_is_held_against_what_there_is() {
        let below = |outcomes: &[Outcome], share| {
            let layout = Layout { subject: Subject::Workloads, is_beside: false, has_integers: false };
            let mut results = Results::new(true, layout, None, Some(share));
            for outcome in outcomes {
                results.judge(outcome, None);
            }
            results.finish(true).unwrap()
        };
        let good = outcome("GPU-a", 100.0);
        assert!(!below(std::slice::from_ref(&good), 0.87));
        assert!(below(std::slice::from_ref(&good), 0.88));
        assert!(below(&[], 0.1), "what was not judged has not passed");
        let mut unknown = good.clone();
        unknown.roofline.share = Reading::Absent(gpumon_probe::model::Absence::Unknown);
        assert!(below(std::slice::from_ref(&unknown), 0.1));
        assert!(!below(&[unknown, good], 0.1));
    }
}
