//! Printed results of a benchmark run: a table for people, or one JSON object per line for
//! programs.

use std::collections::{BTreeMap, BTreeSet};

use gpumon_probe::{benchmarks::BELOW_BASELINE_RATIO, model::Reading};
use gpumon_workload::protocol::{DeviceName, Load, Report, ReportLine, RunOutcome};
use serde_json::json;

use super::{
    baseline::{Comparison, EarlierResults, Store, format_time_with_date},
    table::{Layout, Table, format_microseconds, format_workload_name},
};
use crate::{
    describe,
    terminal::{
        columns::terminal_columns,
        line::{ALARM, DIM, NOTICE, paint},
        units::{ABSENT, format_three_digits},
    },
    workload_run::ReportFormatter,
};

const BELOW_BASELINE_ADVICE: &str = "Check the power limit, the clocks and the cooling, then run \
                                     the benchmark again; if the change is intended, store a new \
                                     baseline with --save-baseline.";

/// The results of a run and of their comparison with earlier results.
#[derive(Default)]
pub(crate) struct Results {
    layout: Layout,
    /// The table of results; `None` until the run has started.
    table: Option<Table>,
    /// The devices of the run; empty until the run has started.
    pub(super) devices: Vec<DeviceName>,
    steps: usize,
    has_lines: bool,
    pairs: PairMatrices,
    earlier: Option<EarlierResults>,
    /// The store that receives each result, if results are stored.
    pub(super) store: Option<Store>,
    fail_below: Option<f64>,
    /// The number of results that were compared with the threshold for failure.
    judged: usize,
    /// Descriptions of results below the threshold.
    below: Vec<String>,
    /// Descriptions of the results that are slower than earlier results.
    slower: Vec<String>,
    /// Descriptions of results that are below their baseline.
    below_baseline: Vec<String>,
}

impl Results {
    pub(crate) fn new(
        layout: Layout,
        earlier: Option<EarlierResults>,
        fail_below: Option<f64>,
    ) -> Self {
        Self {
            layout,
            earlier,
            fail_below,
            ..Self::default()
        }
    }

    /// Returns `true` if a threshold is set, but no result could be compared with the threshold.
    pub(crate) fn lacks_comparison(&self) -> bool {
        self.fail_below.is_some() && self.judged == 0
    }

    /// Returns `true` if a result is below the threshold, or if no result could be compared with
    /// the threshold.
    pub(crate) fn is_below_threshold(&self) -> bool {
        self.lacks_comparison() || !self.below.is_empty()
    }

    /// Adds a result to the store, compares it with an earlier result, and checks the threshold.
    fn ingest(&mut self, outcome: &RunOutcome, load: Option<&Load>) -> Option<Comparison> {
        if let Some(store) = &mut self.store {
            store.add_result(outcome, load);
        }
        let compared = self
            .earlier
            .as_ref()
            .and_then(|earlier| earlier.compare_with(outcome));
        if !outcome.partial {
            self.record_if_too_slow(outcome, compared);
        }
        compared
    }

    fn record_if_too_slow(&mut self, outcome: &RunOutcome, compared: Option<Comparison>) {
        if let Some(Comparison {
            ratio,
            is_slower: true,
            before_us,
            before_ms,
            ..
        }) = compared
        {
            match before_ms.filter(|_| ratio < BELOW_BASELINE_RATIO) {
                Some(before_ms) => self.below_baseline.push(format!(
                    "{}: {} ({}) takes {}, previously {} ({ratio:.2}x the speed)",
                    describe::label_device(&outcome.device),
                    format_workload_name(outcome),
                    outcome.dtype,
                    format_microseconds(before_us / ratio),
                    format_time_with_date(before_us, before_ms),
                )),
                None => self
                    .slower
                    .push(format!("{} {ratio:.2}x", format_workload_name(outcome))),
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
                self.below.push(format!(
                    "{} {:.1} %",
                    format_workload_name(outcome),
                    share * 100.0
                ));
            }
        }
    }
}

impl ReportFormatter for Results {
    fn format_result(&mut self, report: &Report) -> Option<String> {
        match report {
            Report::Begun { devices, steps, .. } => {
                self.table = Some(Table::new(self.layout, devices, terminal_columns()));
                (self.devices, self.steps) = (devices.clone(), *steps);
                None
            }
            Report::Result {
                outcome,
                load,
                beside,
            } => {
                let compared = self.ingest(outcome, load.as_ref());
                self.pairs.add_outcome(outcome);
                self.has_lines = true;
                let table = self.table.as_mut()?;
                let lines = table.format_outcome(outcome, load.as_ref(), compared);
                Some(beside.iter().fold(lines, |lines, run| {
                    lines + &table.format_framework_row(run, outcome)
                }))
            }
            // In a run of several workloads, each failed workload gets a row in the table.
            Report::Failed { id, gpu, error, .. } if self.steps > 1 => {
                let place = self.devices.iter().find(|device| device.index == *gpu);
                Some(self.table.as_mut()?.format_failure(id, place, error))
            }
            _ => None,
        }
    }

    fn format_json(&mut self, raw: &str, line: &ReportLine) -> Option<String> {
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
            // Only a failure after the start of the run is printed as a JSON object. An earlier
            // failure does not belong to a result.
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
            report => self.format_result(report),
        }
    }

    /// Returns the summary: the matrices of GPU pairs, and the results that are slower or below a
    /// limit.
    fn format_summary(&self) -> String {
        let before = match &self.earlier {
            Some(EarlierResults::Baselines(_)) => "its baseline",
            _ => "before",
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
                "Below {BELOW_BASELINE_RATIO} times the baseline speed:\n  {}",
                self.below_baseline.join("\n  ")
            );
            format!("\n{}\n{BELOW_BASELINE_ADVICE}\n", paint(ALARM, &below))
        });
        let below = self
            .fail_below
            .filter(|_| !self.below.is_empty())
            .map(|share| {
                let below = format!("Below {:.1} %: {}", share * 100.0, self.below.join(", "));
                format!("\n{}\n", paint(ALARM, &below))
            });
        [Some(self.pairs.to_text()), slower, below_baseline, below]
            .into_iter()
            .flatten()
            .collect()
    }
}

const CELL_WIDTH: usize = 8;

/// The result matrices for pairs of GPUs. Each matrix has a workload as its heading, and cells
/// indexed by the sending and the receiving GPU.
#[derive(Default)]
struct PairMatrices(Vec<(String, Cells)>);

type Cells = BTreeMap<(u32, u32), String>;

impl PairMatrices {
    fn add_outcome(&mut self, outcome: &RunOutcome) {
        let to = outcome.to.as_ref().and_then(|to| to.index);
        let Some(ends) = outcome.device.index.zip(to) else {
            return;
        };
        let rate = outcome.rate.bytes_per_second;
        let time_us = outcome.device_time.as_ref().map(|times| times.median_us);
        // Some workloads, such as a latency test, move no bytes. For these, the matrix shows times
        // instead of rates.
        let (unit, number) = match outcome.cost.moved_bytes {
            0 => ("us", time_us),
            _ => ("GB/s", rate.map(|rate| rate / 1e9)),
        };
        let cell = match number {
            _ if outcome.verify.wrong > 0 => paint(ALARM, &align_cell("mismatch")),
            Some(number) if outcome.verify.ok => align_cell(&format_three_digits(number)),
            _ => align_cell(ABSENT),
        };
        let heading = format!("{}, {unit}", outcome.id);
        match self.0.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, cells)) => drop(cells.insert(ends, cell)),
            None => self.0.push((heading, Cells::from([(ends, cell)]))),
        }
    }

    /// Returns one matrix for each workload that ran on several pairs of GPUs.
    fn to_text(&self) -> String {
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
    let mut text = paint(DIM, &line(heading, &|to| align_cell(&format!("to {to}"))));
    for from in &gpus {
        let cell = |to| cells.get(&(*from, to)).cloned();
        let row = line(&format!("  from GPU {from}"), &|to| {
            cell(to).unwrap_or_else(|| align_cell(ABSENT))
        });
        text = text + "\n" + &row;
    }
    format!("\n{text}\n")
}

fn align_cell(cell: &str) -> String {
    format!("{cell:>CELL_WIDTH$}")
}

#[cfg(test)]
mod tests {
    use super::{super::table::TableKind, *};
    use crate::{fuzzing::make_outcome, terminal::line::strip_styles};

    #[test]
    fn unknown_share_fails_threshold_only_without_known_shares() {
        let below = |outcomes: &[RunOutcome], share| {
            let layout = Layout {
                subject: TableKind::Workloads,
                is_beside: false,
                has_integers: false,
            };
            let mut results = Results::new(layout, None, Some(share));
            for outcome in outcomes {
                results.record_if_too_slow(outcome, None);
            }
            results.is_below_threshold()
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

    fn make_transfer(from: u32, to: u32, us: f64) -> RunOutcome {
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
    fn matrix_marks_missing_and_mismatched_gpu_pairs() {
        let mut pairs = PairMatrices::default();
        pairs.add_outcome(&make_outcome("GPU-a", 5.0));
        pairs.add_outcome(&make_transfer(0, 1, 395.2));
        assert_eq!(
            pairs.to_text(),
            "",
            "one pair is no matrix, and one GPU no pair"
        );
        let mut wrong = make_transfer(2, 0, 7.0);
        wrong.verify.wrong = 1;
        pairs.add_outcome(&wrong);
        let mut latency = RunOutcome {
            id: "peer-latency".into(),
            ..make_transfer(0, 2, 1.66)
        };
        latency.cost.moved_bytes = 0;
        pairs.add_outcome(&latency);
        pairs.add_outcome(&RunOutcome {
            device: wrong.device.clone(),
            to: wrong.to.clone(),
            ..latency
        });
        let text = strip_styles(&pairs.to_text());
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
