//! The cost of a measurement: the GPU use of a command, a cell or a part of a program, including
//! the processes that it starts.
//!
//! A [`CostMeter`] receives records in chronological order, independently of their source and of
//! the current time. The caller decides which processes are measured.

mod gpu;
mod kernels;
mod readings;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, ops::Add};

use self::{
    gpu::GpuCostMeter,
    readings::{Memory, sum_process_memory},
};
use crate::{
    model::{
        Cost, CostMark, CostXid, Event, EventKind, Gpu, GpuCost, GpuSample, LimitSummary, Process,
        Record, Trace, XidReport,
    },
    units::format_three_digits,
    usage::steps::Span,
};
pub use kernels::KernelMeter;

/// The version of the cost format.
const VERSION: u32 = 1;

/// The longest gap in the readings that is not reported as missing data.
const MAX_UNREPORTED_GAP_MS: f64 = 500.0;

/// The maximum number of marks and errors to list. All others are only counted.
const MAX_LISTED: usize = 1000;

/// A meter for the cost of one measurement.
#[derive(Debug)]
pub struct CostMeter {
    name: Option<String>,
    span: Span,
    gpus: BTreeMap<u32, GpuCostMeter>,
    /// The memory on all GPUs together.
    memory: Memory,
    xids: Vec<CostXid>,
    marks: Vec<CostMark>,
    /// The number of marks and errors that are not listed.
    unlisted: usize,
    lost: Vec<String>,
    /// The time of the newest sample, in milliseconds since 1970.
    newest_ms: f64,
}

impl CostMeter {
    /// Starts a measurement at `from_ms`, in milliseconds since 1970.
    pub fn new(name: Option<String>, from_ms: f64) -> Self {
        Self {
            name,
            span: Span {
                from_ms,
                to_ms: f64::INFINITY,
            },
            gpus: BTreeMap::new(),
            memory: Memory::default(),
            xids: Vec::new(),
            marks: Vec::new(),
            unlisted: 0,
            lost: Vec::new(),
            newest_ms: f64::NEG_INFINITY,
        }
    }

    /// Ends the measurement. The values that the driver records for the last part arrive after this
    /// call.
    pub fn end(&mut self, to_ms: f64) {
        let to_ms = to_ms.max(self.span.from_ms);
        self.span.to_ms = to_ms;
        self.memory.end(to_ms);
        self.gpus.values_mut().for_each(|gpu| gpu.end(to_ms));
    }

    /// Adds the next record. `is_own` returns `true` for the processes to measure. The last sample
    /// from before the start sets the initial memory.
    pub fn push(&mut self, record: &Record, is_own: &mut dyn FnMut(&Process) -> bool) {
        match record {
            Record::Sample(sample) => self.push_gpus(
                sample.at_ms as f64,
                sample.interval_ms,
                &sample.gpus,
                is_own,
            ),
            Record::Trace(trace) => self.push_trace(trace),
            Record::Event(event) => self.push_event(event),
            Record::Inventory(_) | Record::Details(_) | Record::Answers(_) => {}
        }
    }

    fn push_gpus(
        &mut self,
        at_ms: f64,
        interval_ms: u32,
        gpus: &[GpuSample],
        is_own: &mut dyn FnMut(&Process) -> bool,
    ) {
        let mut all_own: Vec<&Process> = Vec::new();
        for gpu in gpus {
            let listed = gpu.processes.items().iter();
            let own: Vec<&Process> = listed.filter(|process| is_own(process)).collect();
            self.gpus
                .entry(gpu.index)
                .or_default()
                .push(gpu, interval_ms, &own, self.span);
            all_own.extend(own);
        }
        self.memory
            .add_reading(at_ms, sum_process_memory(all_own), self.span);
        self.newest_ms = self.newest_ms.max(at_ms);
    }

    /// Adds values that the driver recorded.
    pub fn push_trace(&mut self, trace: &Trace) {
        self.gpus.entry(trace.index).or_default().add_trace(trace);
    }

    fn push_event(&mut self, event: &Event) {
        let at_ms = event.at_ms as f64;
        if at_ms < self.span.from_ms || at_ms > self.span.to_ms {
            return;
        }
        match &event.what {
            EventKind::Mark(mark) => self.add_mark(CostMark::from_mark(event.at_ms, mark)),
            EventKind::Xid(report) => {
                let gpu = event.gpu.as_ref().map(|gpu| gpu.index);
                let XidReport {
                    code,
                    meaning,
                    advice,
                    ..
                } = report;
                let xid = CostXid {
                    at_ms: event.at_ms,
                    gpu,
                    xid: *code,
                    text: format!("{meaning} {advice}"),
                };
                if self.xids.len() < MAX_LISTED {
                    self.xids.push(xid);
                } else {
                    self.unlisted += 1;
                }
            }
            _ => {}
        }
    }

    /// Adds a mark, unless the server's event has already added the same mark.
    pub fn add_mark(&mut self, mark: CostMark) {
        let is_within =
            (self.span.from_ms.floor()..=self.span.to_ms).contains(&(mark.at_ms as f64));
        if !is_within || self.marks.contains(&mark) {
            return;
        }
        if self.marks.len() < MAX_LISTED {
            self.marks.push(mark);
        } else {
            self.unlisted += 1;
        }
    }

    /// Adds a sentence that describes missing data and the reason.
    pub fn add_missing_data_note(&mut self, why: &str) {
        if !self.lost.iter().any(|known| known == why) {
            self.lost.push(why.to_owned());
        }
    }

    /// Returns `true` if the measurement has ended, and all of its data has arrived.
    pub fn is_final(&self) -> bool {
        // If a process started to use a GPU shortly before the end, only a sample from after the
        // end shows this. The measurement is therefore not final until such a sample has arrived.
        self.newest_ms >= self.span.to_ms
            && self
                .gpus
                .values()
                .all(|gpu| gpu.is_final_until(self.span.to_ms))
    }

    /// Returns the cost of a measurement that has ended and for which no more data will arrive.
    /// Between the last sample and the end, the GPUs' state is assumed to be unchanged.
    pub fn into_cost(mut self, gpus: &[Gpu]) -> Cost {
        for gpu in self.gpus.values_mut() {
            gpu.extend_last_step(self.span.to_ms, self.span.from_ms);
        }
        self.current_cost(self.span.to_ms, gpus)
    }

    /// Returns the cost until `now_ms`, whether or not the measurement has ended. `gpus` contains
    /// the inventory's GPUs, which provide the names.
    pub fn current_cost(&mut self, now_ms: f64, gpus: &[Gpu]) -> Cost {
        let mut costs = Vec::new();
        for (index, meter) in &mut self.gpus {
            meter.settle_complete_steps(true);
            costs.extend(meter.to_cost(*index));
        }
        let held = |index: u32| costs.iter().any(|cost| cost.index == index);
        let xids = self
            .xids
            .iter()
            .filter(|xid| xid.gpu.is_some_and(held))
            .cloned()
            .collect();
        let lost = self.list_missing_data(&costs);
        let span = Span {
            to_ms: self.span.to_ms.min(now_ms),
            ..self.span
        };
        Cost {
            name: self.name.clone(),
            xids,
            marks: self.marks.clone(),
            lost,
            ..combine_gpu_costs(span, &self.memory, costs, gpus)
        }
    }

    fn list_missing_data(&self, costs: &[GpuCost]) -> Vec<String> {
        let mut lost = self.lost.clone();
        if self.newest_ms < self.span.from_ms && lost.is_empty() {
            lost.push("the measurement ended before the first reading of the GPUs".to_owned());
        }
        for (index, meter) in &self.gpus {
            if let Some(absence) = meter.unknown_processes_reason() {
                lost.push(format!(
                    "GPU {index}: the processes that use this GPU are not known: {absence}"
                ));
            }
            if meter.gap_ms > MAX_UNREPORTED_GAP_MS && costs.iter().any(|cost| cost.index == *index)
            {
                let seconds = format_three_digits(meter.gap_ms / 1000.0);
                lost.push(format!(
                    "GPU {index}: no readings for {seconds} s; the numbers cover only the rest of \
                     the time"
                ));
            }
        }
        if self.unlisted > 0 {
            lost.push(format!(
                "{} more marks and driver errors are not listed",
                self.unlisted
            ));
        }
        lost
    }
}

/// Combines the costs of all GPUs in a span. `gpus` contains the inventory's GPUs, which provide
/// the names.
fn combine_gpu_costs(span: Span, memory: &Memory, mut costs: Vec<GpuCost>, gpus: &[Gpu]) -> Cost {
    for cost in &mut costs {
        let known = gpus.iter().find(|gpu| gpu.index == cost.index);
        cost.name = known.and_then(|gpu| gpu.name.value().cloned());
        cost.uuid = known.and_then(|gpu| gpu.uuid.clone());
    }
    let duration_ms = (span.to_ms - span.from_ms).max(0.0);
    Cost {
        version: VERSION,
        started_ms: span.from_ms as u64,
        ended_ms: (span.from_ms + duration_ms) as u64,
        duration_s: duration_ms / 1000.0,
        gpu_s: costs.iter().filter_map(|cost| cost.gpu_s).reduce(Add::add),
        peak_memory_bytes: memory.peak_bytes(),
        memory_change_bytes: memory.change_bytes(),
        energy_joules: costs
            .iter()
            .filter_map(|cost| cost.energy_joules)
            .reduce(Add::add),
        shared: costs.iter().any(|cost| cost.shared),
        limits: LimitSummary::combine(costs.iter().filter_map(|cost| cost.limits.as_ref())),
        gpus: costs,
        ..Cost::default()
    }
}
