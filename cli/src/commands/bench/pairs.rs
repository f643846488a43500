//! What was measured between GPUs, as a matrix: a row for each GPU that sends, a column for each that receives.

use std::collections::{BTreeMap, BTreeSet};

use gpumon_workload::protocol::Outcome;

use crate::terminal::{
    style::{ALARM, DIM, paint},
    units::{ABSENT, three_digits},
};

const WIDTH: usize = 8;

/// Outcomes between GPUs, by workload.
#[derive(Default)]
pub(super) struct Pairs(Vec<Matrix>);

struct Matrix {
    id: String,
    unit: &'static str,
    /// By the GPUs from and to which it is.
    cells: BTreeMap<(u32, u32), Cell>,
}

enum Cell {
    Number(f64),
    Wrong,
    Unknown,
}

impl Pairs {
    pub(super) fn take(&mut self, outcome: &Outcome) {
        let to = outcome.to.as_ref().and_then(|to| to.index);
        let Some(ends) = outcome.device.index.zip(to) else {
            return;
        };
        let rate = outcome.rate.bytes_per_second;
        let time_us = outcome.device_time.as_ref().map(|times| times.median_us);
        // What moves nothing is about the time that it takes.
        let (unit, number) = match outcome.cost.moved_bytes {
            0 => ("us", time_us),
            _ => ("GB/s", rate.map(|rate| rate / 1e9)),
        };
        let cell = match number {
            _ if outcome.verify.wrong > 0 => Cell::Wrong,
            Some(number) if outcome.verify.ok => Cell::Number(number),
            _ => Cell::Unknown,
        };
        let at = self
            .0
            .iter()
            .position(|matrix| matrix.id == outcome.id)
            .unwrap_or_else(|| {
                self.0.push(Matrix {
                    id: outcome.id.to_string(),
                    unit,
                    cells: BTreeMap::new(),
                });
                self.0.len() - 1
            });
        self.0[at].cells.insert(ends, cell);
    }

    /// A matrix for each workload that ran between several pairs.
    pub(super) fn text(&self) -> String {
        self.0
            .iter()
            .filter(|matrix| matrix.cells.len() > 1)
            .map(Matrix::text)
            .collect()
    }
}

impl Matrix {
    fn text(&self) -> String {
        let gpus: BTreeSet<u32> = self
            .cells
            .keys()
            .flat_map(|(from, to)| [*from, *to])
            .collect();
        let line = |first: String, cells: Vec<String>| format!("{first:22}{}", cells.concat());
        let columns = gpus.iter().map(|to| aligned(&format!("to {to}"))).collect();
        let heading = paint(DIM, &line(format!("{}, {}", self.id, self.unit), columns));
        let row = |from: &u32| {
            line(
                format!("  from GPU {from}"),
                gpus.iter().map(|to| self.cell(*from, *to)).collect(),
            )
        };
        let lines: Vec<_> = std::iter::once(heading)
            .chain(gpus.iter().map(row))
            .collect();
        format!("\n{}\n", lines.join("\n"))
    }

    fn cell(&self, from: u32, to: u32) -> String {
        match self.cells.get(&(from, to)) {
            Some(Cell::Number(number)) => aligned(&three_digits(*number)),
            Some(Cell::Wrong) => paint(ALARM, &aligned("mismatch")),
            Some(Cell::Unknown) | None => aligned(ABSENT),
        }
    }
}

fn aligned(cell: &str) -> String {
    format!("{cell:>WIDTH$}")
}

#[cfg(test)]
mod tests {
    use super::{super::fuzzing::outcome, *};
    use crate::terminal::style::plain;

    fn between(from: u32, to: u32, us: f64) -> Outcome {
        let mut outcome = outcome("GPU-a", us);
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
    fn each_pair_has_its_place_and_what_is_missing_or_wrong_says_so() {
        let mut pairs = Pairs::default();
        pairs.take(&outcome("GPU-a", 5.0));
        pairs.take(&between(0, 1, 395.2));
        assert_eq!(
            pairs.text(),
            "",
            "one pair is no matrix, and one GPU no pair"
        );
        let mut wrong = between(2, 0, 7.0);
        wrong.verify.wrong = 1;
        pairs.take(&wrong);
        let mut latency = Outcome {
            id: "peer-latency".into(),
            ..between(0, 2, 1.66)
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
