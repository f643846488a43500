//! Printed results of a run: a table for people, or one JSON object per line for programs.

use std::collections::{BTreeMap, BTreeSet};

use gpumon_probe::{benchmarks::BELOW_BASELINE, model::Reading};
use gpumon_workload::protocol::{DeviceName, Line, Load, Outcome, Report};
use serde_json::json;

use super::{
    baseline::{Store, format_dated},
    compare::{Compared, Earlier},
    table::{Layout, Table, format_microseconds, name},
};
use crate::{
    describe,
    run::ForPeople,
    terminal::{
        style::{ALARM, DIM, NOTICE, paint},
        units::{ABSENT, three_digits},
    },
};

const CURE: &str = "Check power limit, clocks and cooling, and repeat it; if the change is intended, store a new baseline with \
                    --save-baseline.";

/// The results of a run, with the findings of comparisons.
#[derive(Default)]
pub(crate) struct Results {
    layout: Layout,
    /// The table of results; `None` until the run has started.
    table: Option<Table>,
    devices: Vec<DeviceName>,
    steps: usize,
    has_lines: bool,
    pairs: Pairs,
    earlier: Option<Earlier>,
    store: Option<Store>,
    fail_below: Option<f64>,
    /// The number of results that could be compared with the threshold.
    judged: usize,
    /// Descriptions of results below the threshold.
    below: Vec<String>,
    /// Descriptions of results that are slower than earlier ones.
    slower: Vec<String>,
    /// Descriptions of results that are below their baseline.
    below_baseline: Vec<String>,
}

impl Results {
    pub(crate) fn new(layout: Layout, earlier: Option<Earlier>, fail_below: Option<f64>) -> Self {
        Self {
            layout,
            earlier,
            fail_below,
            ..Self::default()
        }
    }

    /// Returns these results with a store that they are added to.
    pub(super) fn stored(self, store: Option<Store>) -> Self {
        Self { store, ..self }
    }

    pub(super) fn take_store(&mut self) -> Option<Store> {
        self.store.take()
    }

    /// Returns the devices of the run; empty until the run has started.
    pub(super) fn devices(&self) -> &[DeviceName] {
        &self.devices
    }

    /// Returns `true` if a threshold is set, but no result could be compared with it.
    pub(crate) fn compared_nothing(&self) -> bool {
        self.fail_below.is_some() && self.judged == 0
    }

    /// Returns `true` if a result is below the threshold, or no result could be compared with it.
    pub(crate) fn is_below(&self) -> bool {
        self.compared_nothing() || !self.below.is_empty()
    }

    /// Stores a result, compares it with an earlier one, and checks the threshold.
    fn ingest(&mut self, outcome: &Outcome, load: Option<&Load>) -> Option<Compared> {
        if let Some(store) = &mut self.store {
            store.take(outcome, load);
        }
        let compared = self
            .earlier
            .as_ref()
            .and_then(|earlier| earlier.beside(outcome));
        if !outcome.partial {
            self.judge(outcome, compared);
        }
        compared
    }

    fn judge(&mut self, outcome: &Outcome, compared: Option<Compared>) {
        if let Some(Compared {
            ratio,
            is_slower: true,
            before_us,
            before_ms,
            ..
        }) = compared
        {
            match before_ms.filter(|_| ratio < BELOW_BASELINE) {
                Some(before_ms) => self.below_baseline.push(format!(
                    "{}: {} ({}) takes {}, and took {} ({ratio:.2}x)",
                    describe::device(&outcome.device),
                    name(outcome),
                    outcome.dtype,
                    format_microseconds(before_us / ratio),
                    format_dated(before_us, before_ms),
                )),
                None => self.slower.push(format!("{} {ratio:.2}x", name(outcome))),
            }
        }
        let share = match (&self.earlier, &outcome.roofline.share) {
            (Some(_), _) => compared.map(|compared| compared.ratio),
            (None, Reading::Now(share)) => Some(*share),
            _ => None,
        };
        if let (Some(least), Some(share)) = (self.fail_below, share) {
            self.judged += 1;
            if share < least {
                self.below
                    .push(format!("{} {:.1} %", name(outcome), share * 100.0));
            }
        }
    }
}

impl ForPeople for Results {
    fn result(&mut self, report: &Report) -> Option<String> {
        match report {
            Report::Begun { devices, steps, .. } => {
                self.table = Some(Table::new(self.layout, devices));
                (self.devices, self.steps) = (devices.clone(), *steps);
                None
            }
            Report::Result {
                outcome,
                load,
                beside,
            } => {
                let compared = self.ingest(outcome, load.as_ref());
                self.pairs.take(outcome);
                self.has_lines = true;
                let table = self.table.as_mut()?;
                let lines = table.lines(outcome, load.as_ref(), compared);
                Some(beside.iter().fold(lines, |lines, run| {
                    lines + &table.format_framework(run, outcome)
                }))
            }
            // In a run of several workloads, a failure is a line of the table.
            Report::Failed { id, gpu, error, .. } if self.steps > 1 => {
                let place = self.devices.iter().find(|device| device.index == *gpu);
                Some(self.table.as_mut()?.failure(id, place, error))
            }
            _ => None,
        }
    }

    fn object(&mut self, raw: &str, line: &Line) -> Option<String> {
        match &line.report {
            Report::Result { outcome, load, .. } => {
                Some(self.ingest(outcome, load.as_ref()).map_or_else(
                    || raw.to_owned(),
                    |compared| {
                        format!(
                            "{},\"compared\":{}}}",
                            raw.strip_suffix('}').unwrap_or(raw),
                            json!(compared)
                        )
                    },
                ))
            }
            // A run that failed before its start has no results, so its error is no JSON object.
            Report::Failed {
                id,
                backend,
                gpu,
                error,
                code,
            } if self.table.is_some() => {
                let object = json!({
                    "at_ms": line.at_ms, "report": "failed", "id": id, "backend": backend, "gpu": gpu,
                    "error": error, "code": code, "verify": { "ok": false, "checked": 0 }
                });
                Some(object.to_string())
            }
            report => self.result(report),
        }
    }

    /// Returns the summary: the matrices of pairs, and the results that are slower or below a
    /// limit.
    fn end(&self) -> String {
        let before = if self.earlier.as_ref().is_some_and(Earlier::is_baselines) {
            "its baseline"
        } else {
            "before"
        };
        let slower = match &self.slower[..] {
            [] if !self.below_baseline.is_empty() => None,
            [] => Some(paint(
                DIM,
                &format!("No result is significantly slower than {before}."),
            )),
            slower => Some(paint(
                NOTICE,
                &format!("Significantly slower than {before}: {}", slower.join(", ")),
            )),
        };
        let slower = slower
            .filter(|_| self.earlier.is_some() && self.has_lines)
            .map(|slower| format!("\n{slower}\n"));
        let below_baseline = (!self.below_baseline.is_empty()).then(|| {
            let below = format!(
                "Below {BELOW_BASELINE} of the baseline:\n  {}",
                self.below_baseline.join("\n  ")
            );
            format!("\n{}\n{CURE}\n", paint(ALARM, &below))
        });
        let below = self
            .fail_below
            .filter(|_| !self.below.is_empty())
            .map(|share| {
                let below = format!("Below {:.1} %: {}", share * 100.0, self.below.join(", "));
                format!("\n{}\n", paint(ALARM, &below))
            });
        [Some(self.pairs.text()), slower, below_baseline, below]
            .into_iter()
            .flatten()
            .collect()
    }
}

const WIDTH: usize = 8;

/// The matrices of results between pairs of GPUs: a heading with the workload, and cells by the
/// sending and the receiving GPU.
#[derive(Default)]
struct Pairs(Vec<(String, Cells)>);

type Cells = BTreeMap<(u32, u32), String>;

impl Pairs {
    fn take(&mut self, outcome: &Outcome) {
        let to = outcome.to.as_ref().and_then(|to| to.index);
        let Some(ends) = outcome.device.index.zip(to) else {
            return;
        };
        let rate = outcome.rate.bytes_per_second;
        let time_us = outcome.device_time.as_ref().map(|times| times.median_us);
        // A workload that moves no bytes, such as a latency test, shows its time.
        let (unit, number) = match outcome.cost.moved_bytes {
            0 => ("us", time_us),
            _ => ("GB/s", rate.map(|rate| rate / 1e9)),
        };
        let cell = match number {
            _ if outcome.verify.wrong > 0 => paint(ALARM, &align("mismatch")),
            Some(number) if outcome.verify.ok => align(&three_digits(number)),
            _ => align(ABSENT),
        };
        let heading = format!("{}, {unit}", outcome.id);
        match self.0.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, cells)) => drop(cells.insert(ends, cell)),
            None => self.0.push((heading, Cells::from([(ends, cell)]))),
        }
    }

    /// Returns a matrix for each workload that ran on several pairs.
    fn text(&self) -> String {
        let several = self.0.iter().filter(|(_, cells)| cells.len() > 1);
        several
            .map(|(heading, cells)| format_matrix(heading, cells))
            .collect()
    }
}

fn format_matrix(heading: &str, cells: &Cells) -> String {
    let gpus: BTreeSet<u32> = cells.keys().flat_map(|(from, to)| [*from, *to]).collect();
    let line = |first: &str, cell: &dyn Fn(u32) -> String| {
        let cells: String = gpus.iter().map(|to| cell(*to)).collect();
        format!("{first:22}{cells}")
    };
    let mut text = paint(DIM, &line(heading, &|to| align(&format!("to {to}"))));
    for from in &gpus {
        let cell = |to| cells.get(&(*from, to)).cloned();
        let row = line(&format!("  from GPU {from}"), &|to| {
            cell(to).unwrap_or_else(|| align(ABSENT))
        });
        text = text + "\n" + &row;
    }
    format!("\n{text}\n")
}

fn align(cell: &str) -> String {
    format!("{cell:>WIDTH$}")
}

#[cfg(test)]
mod tests {
    use super::super::{fuzzing::make_outcome, table::Subject};
    use crate::terminal::style::plain;

    use super::*;

    #[test]
    fn a_threshold_is_held_against_what_there_is() {
        let below = |outcomes: &[Outcome], share| {
            let layout = Layout {
                subject: Subject::Workloads,
                is_beside: false,
                has_integers: false,
            };
            let mut results = Results::new(layout, None, Some(share));
            for outcome in outcomes {
                results.judge(outcome, None);
            }
            results.is_below()
        };
        let good = make_outcome("GPU-a", 100.0);
        assert!(!below(std::slice::from_ref(&good), 0.87));
        assert!(below(std::slice::from_ref(&good), 0.88));
        assert!(below(&[], 0.1), "what was not judged has not passed");
        let mut unknown = good.clone();
        unknown.roofline.share = Reading::Absent(gpumon_probe::model::Absence::Unknown);
        assert!(below(std::slice::from_ref(&unknown), 0.1));
        assert!(!below(&[unknown, good], 0.1));
    }

    fn make_transfer(from: u32, to: u32, us: f64) -> Outcome {
        let mut outcome = make_outcome("GPU-a", us);
        let name = outcome.device.clone();
        outcome.id = "peer".into();
        outcome.device.index = Some(from);
        outcome.to = Some(gpumon_workload::protocol::DeviceName {
            index: Some(to),
            ..name
        });
        outcome.rate.bytes_per_second = Some(us * 1e9);
        outcome
    }

    #[test]
    fn matrix_marks_missing_and_wrong_pairs() {
        let mut pairs = Pairs::default();
        pairs.take(&make_outcome("GPU-a", 5.0));
        pairs.take(&make_transfer(0, 1, 395.2));
        assert_eq!(
            pairs.text(),
            "",
            "one pair is no matrix, and one GPU no pair"
        );
        let mut wrong = make_transfer(2, 0, 7.0);
        wrong.verify.wrong = 1;
        pairs.take(&wrong);
        let mut latency = Outcome {
            id: "peer-latency".into(),
            ..make_transfer(0, 2, 1.66)
        };
        latency.cost.moved_bytes = 0;
        pairs.take(&latency);
        pairs.take(&Outcome {
            device: wrong.device.clone(),
            to: wrong.to.clone(),
            ..latency
        });
        let text = plain(&pairs.text());
        let expected = [
            "",
            "peer, GB/s                to 0    to 1    to 2",
            "  from GPU 0                 -     395       -",
            "  from GPU 1                 -       -       -",
            "  from GPU 2          mismatch       -       -",
            "",
            "peer-latency, us          to 0    to 2",
            "  from GPU 0                 -    1.66",
            "  from GPU 2              1.66       -",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }
}
