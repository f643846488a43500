//! The use of one GPU by its owners, calculated from consecutive samples.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Mul,
};

use super::readings::{Memory, ObservedReadings, Timeline, sum_process_memory};
use crate::{
    model::{Absence, GpuCost, GpuSample, Process, Trace, TraceMetric},
    usage::{
        Joules, OwnerKey, add_if_measured,
        steps::{LastSample, Span, Step, divide_step},
    },
};

/// The maximum delay of the driver's recorded values. They normally arrive after a second or two.
/// If they are later, samples are used instead.
const MAX_RECORD_DELAY_MS: f64 = 4_000.0;

/// The use of one GPU over time, for all owners.
#[derive(Debug, Default)]
pub(super) struct GpuSteps {
    /// The previous sample.
    last: Option<LastSample>,
    /// The time of the first sample, in milliseconds since 1970.
    first_ms: f64,
    /// Steps that wait for the driver's recorded values.
    pending: VecDeque<PendingStep>,
    watts: Timeline,
    busy_percent: Timeline,
    /// The latest power draw that was measured while a program was on the GPU but no kernel ran.
    idle_watts: Option<f64>,
    /// The owners of the measured processes in the last sample, by PID.
    owners: BTreeMap<u32, OwnerKey>,
}

/// A step whose final energy and GPU time are not known yet.
#[derive(Debug)]
struct PendingStep {
    step: Step,
    /// The owners of the measured processes, by PID.
    owners: BTreeMap<u32, OwnerKey>,
}

/// One owner's use of a GPU during a period.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct GpuUse {
    pub(super) held_s: f64,
    pub(super) gpu_s: Option<f64>,
    pub(super) joules: Option<Joules>,
    pub(super) shared: bool,
    /// The memory at the end of the period, if memory is measured.
    pub(super) bytes: Option<u64>,
    pub(super) peak_bytes: Option<u64>,
}

impl GpuUse {
    /// Adds the use during a later period.
    pub(super) fn add(&mut self, more: &Self) {
        self.held_s += more.held_s;
        add_if_measured(&mut self.gpu_s, more.gpu_s);
        add_if_measured(&mut self.joules, more.joules);
        self.shared |= more.shared;
        self.bytes = more.bytes;
        self.peak_bytes = self.peak_bytes.max(more.peak_bytes);
    }
}

impl Mul<f64> for Joules {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self {
            least: self.least * factor,
            most: self.most * factor,
            estimate: self.estimate * factor,
        }
    }
}

/// The time that a sample adds to the measurement.
#[derive(Debug, Default)]
pub(super) struct AddedTime {
    /// The part of the time in which a measured owner used the GPU.
    pub(super) held: Option<Span>,
    /// The part of the time without readings, in milliseconds.
    pub(super) gap_ms: f64,
}

impl GpuSteps {
    /// Adds the next sample. `owners` contains the owners of the measured processes, by PID.
    /// Returns `None` if the sample does not list the GPU's processes.
    pub(super) fn add_sample(
        &mut self,
        gpu: &GpuSample,
        interval_ms: u32,
        owners: BTreeMap<u32, OwnerKey>,
        span: Span,
    ) -> Option<AddedTime> {
        let mut now = LastSample::from_sample(gpu, interval_ms)
            .filter(|now| self.last.as_ref().is_none_or(|last| last.at_ms < now.at_ms))?;
        if self.first_ms == 0.0 {
            self.first_ms = gpu.at_ms as f64;
        }
        // The instantaneous power is preferred. The other reading is an average over the second
        // before the sample.
        now.watts = gpu.power.instant_watts.value().copied().or(now.watts);
        let last = self.last.take();
        let added = last.map_or_else(AddedTime::default, |last| {
            self.add_step(&last, &now, &owners, span)
        });
        self.owners = owners;
        self.last = Some(now);
        Some(added)
    }

    /// Returns the owners of the measured processes in the last sample.
    pub(super) fn owners(&self) -> impl Iterator<Item = &OwnerKey> {
        self.owners.values()
    }

    pub(super) fn add_trace(&mut self, trace: &Trace) {
        match trace.metric {
            TraceMetric::PowerWatts => self.watts.add(trace),
            TraceMetric::GpuPercent => self.busy_percent.add(trace),
            TraceMetric::MemoryPercent => {}
        }
    }

    fn add_step(
        &mut self,
        last: &LastSample,
        now: &LastSample,
        owners: &BTreeMap<u32, OwnerKey>,
        span: Span,
    ) -> AddedTime {
        let Some(span) = Span::new(last.at_ms, now.at_ms).intersect(span) else {
            return AddedTime::default();
        };
        if now.at_ms - last.at_ms > now.max_gap_ms(last) {
            return AddedTime {
                held: None,
                gap_ms: span.to_ms - span.from_ms,
            };
        }
        let step = Step::new(last, now, span);
        self.idle_watts = step.idle_watts.or(self.idle_watts);
        let mut all = self.owners.clone();
        all.extend(owners.iter().map(|(pid, owner)| (*pid, owner.clone())));
        if all.is_empty() {
            return AddedTime::default();
        }
        self.pending.push_back(PendingStep { step, owners: all });
        AddedTime {
            held: Some(span),
            gap_ms: 0.0,
        }
    }

    /// Fills the time between the last sample and the end of a measurement, if the measurement
    /// ended before the next sample. The GPU's state is assumed to be unchanged. Returns the part
    /// without readings, in milliseconds.
    fn extend_last_step(&mut self, to_ms: f64, from_ms: f64) -> f64 {
        let Some(last) = self.last.as_ref().filter(|_| !self.owners.is_empty()) else {
            return 0.0;
        };
        let from_ms = from_ms.max(last.at_ms as f64);
        if to_ms <= from_ms {
            return 0.0;
        }
        if to_ms - last.at_ms as f64 > last.max_gap_ms(last) as f64 {
            return to_ms - from_ms;
        }
        self.pending.push_back(PendingStep {
            step: Step::new(last, last, Span { from_ms, to_ms }),
            owners: self.owners.clone(),
        });
        0.0
    }

    /// Removes the use after `to_ms`. This is needed because a sample after `to_ms` may already
    /// have been added.
    fn truncate_at(&mut self, to_ms: f64) {
        self.pending
            .retain(|pending| pending.step.span.from_ms < to_ms);
        if let Some(PendingStep { step, .. }) = self.pending.back_mut()
            && step.span.to_ms > to_ms
        {
            step.truncate(to_ms);
        }
    }

    /// Passes the use in all finished steps to `take`. A step is finished if it is complete, or if
    /// it will receive no more recorded values.
    pub(super) fn settle_complete_steps(
        &mut self,
        all: bool,
        mut take: impl FnMut(&OwnerKey, Span, GpuUse),
    ) {
        let newest_ms = self.last.as_ref().map_or(0.0, |last| last.at_ms as f64);
        while let Some(pending) = self.pending.front() {
            let to_ms = pending.step.span.to_ms;
            let is_due = all || newest_ms - to_ms > MAX_RECORD_DELAY_MS;
            // If the driver has not recorded any values after the maximum delay, it does not
            // support recording.
            let is_young = newest_ms - self.first_ms < MAX_RECORD_DELAY_MS;
            let is_coming = |records: &Timeline| match records.newest_ms() {
                Some(recorded_ms) => recorded_ms < to_ms,
                None => is_young,
            };
            if !is_due && (is_coming(&self.watts) || is_coming(&self.busy_percent)) {
                return;
            }
            self.divide_pending_step(pending, &mut take);
            self.pending.pop_front();
        }
    }

    /// Passes to `take` the use in all pending steps, as far as it is known.
    pub(super) fn for_each_pending(&self, mut take: impl FnMut(&OwnerKey, Span, GpuUse)) {
        for pending in &self.pending {
            self.divide_pending_step(pending, &mut take);
        }
    }

    /// Divides the use in a step among its owners, and passes the result to `take`.
    fn divide_pending_step(
        &self,
        pending: &PendingStep,
        take: &mut impl FnMut(&OwnerKey, Span, GpuUse),
    ) {
        let PendingStep { step, owners } = pending;
        let (span, seconds) = (step.span, step.span.seconds());
        let joules = self.watts.integrate_linear(span).or(step.joules);
        // The time in which kernels of any owner ran, in seconds.
        let busy_s = self
            .busy_percent
            .integrate_steps(span)
            .map(|percent_seconds| percent_seconds / 100.0)
            .or(step.gpu_share.map(|share| share * seconds));
        let mut used = divide_step(step, joules, self.idle_watts, |pid| {
            owners.get(&pid).cloned().unwrap_or_default()
        });
        for owner in owners.values().collect::<BTreeSet<_>>() {
            let usage = used.get_or_insert(owner);
            let is_shared = usage.exclusive_seconds < usage.gpu_seconds;
            let of_processes = step
                .holders
                .iter()
                .filter(|(pid, _)| owners.get(pid) == Some(owner))
                .filter_map(|(_, hold)| hold.share);
            let by_shares = of_processes
                .reduce(|one, other| (one + other).min(1.0))
                .map(|share| share * seconds);
            let used = GpuUse {
                held_s: usage.gpu_seconds,
                gpu_s: busy_s.filter(|_| !is_shared).or(by_shares),
                joules: usage.joules,
                shared: is_shared,
                ..GpuUse::default()
            };
            take(owner, span, used);
        }
    }

    /// Returns the part of `used` that falls within `span`. `part` is the period in which `used`
    /// was measured. If the driver's recorded values are available, they determine how much energy
    /// and GPU time fall within `span`. Otherwise, the use is assumed to be even over its period.
    pub(super) fn clip_use_to_span(&self, used: &GpuUse, part: Span, span: Span) -> Option<GpuUse> {
        let clipped = part.intersect(span)?;
        let evenly = clipped.seconds() / part.seconds();
        if evenly >= 1.0 {
            return Some(*used);
        }
        let share = |integral: fn(&Timeline, Span) -> Option<f64>, records: &Timeline| {
            let whole = integral(records, part).filter(|whole| *whole > 0.0);
            integral(records, clipped)
                .zip(whole)
                .map_or(evenly, |(clipped, whole)| clipped / whole)
        };
        let energy = share(Timeline::integrate_linear, &self.watts);
        let busy = share(Timeline::integrate_steps, &self.busy_percent);
        Some(GpuUse {
            held_s: used.held_s * evenly,
            gpu_s: used.gpu_s.map(|gpu_s| gpu_s * busy),
            joules: used.joules.map(|joules| joules * energy),
            ..*used
        })
    }

    /// Returns `true` if the use up to `to_ms` can no longer be changed by values that arrive
    /// later.
    pub(super) fn is_final_until(&self, to_ms: f64) -> bool {
        let is_past = self
            .last
            .as_ref()
            .is_some_and(|last| last.at_ms as f64 >= to_ms);
        (is_past || self.owners.is_empty())
            && self
                .pending
                .front()
                .is_none_or(|pending| pending.step.span.from_ms >= to_ms)
    }
}

/// A meter for a measurement's cost on one GPU.
#[derive(Debug, Default)]
pub(super) struct GpuCostMeter {
    steps: GpuSteps,
    /// The reason why the GPU's processes are unknown, if they have never been listed.
    untold: Option<Absence>,
    used: GpuUse,
    memory: Memory,
    seen: ObservedReadings,
    /// The time without readings, in milliseconds.
    pub(super) gap_ms: f64,
}

impl GpuCostMeter {
    /// Adds the next sample of the GPU. `own` contains the measured processes.
    pub(super) fn push(&mut self, gpu: &GpuSample, interval_ms: u32, own: &[&Process], span: Span) {
        let at_ms = gpu.at_ms as f64;
        self.untold = gpu
            .processes
            .absence()
            .filter(|_| self.steps.last.is_none() && at_ms >= span.from_ms)
            .cloned();
        let owner = OwnerKey {
            user: Some(String::new()),
            job: None,
        };
        let owners = own.iter().map(|process| (process.pid, owner.clone()));
        let Some(added) = self
            .steps
            .add_sample(gpu, interval_ms, owners.collect(), span)
        else {
            return;
        };
        let bytes = sum_process_memory(own.iter().copied());
        self.memory.add_reading(at_ms, bytes, span);
        self.gap_ms += added.gap_ms;
        if let Some(span) = added.held {
            self.seen.push(gpu, own, span);
        }
        self.settle_complete_steps(false);
    }

    pub(super) fn add_trace(&mut self, trace: &Trace) {
        self.steps.add_trace(trace);
        self.settle_complete_steps(false);
    }

    /// Fills the time between the last sample and the end of a measurement, if the measurement
    /// ended before the next sample.
    pub(super) fn extend_last_step(&mut self, to_ms: f64, from_ms: f64) {
        self.gap_ms += self.steps.extend_last_step(to_ms, from_ms);
    }

    /// Ends the measurement at `to_ms`, which may be before the newest sample.
    pub(super) fn end(&mut self, to_ms: f64) {
        self.steps.truncate_at(to_ms);
        self.memory.end(to_ms);
    }

    /// Adds the use in all steps that are complete, or that will receive no more recorded values.
    pub(super) fn settle_complete_steps(&mut self, all: bool) {
        self.steps
            .settle_complete_steps(all, |_, _, used| self.used.add(&used));
    }

    /// Returns the reason why the GPU's processes are unknown. Returns `None` if the readings may
    /// still arrive. Also returns `None` if the GPU sleeps or is lost, because it then has no
    /// processes.
    pub(super) fn unknown_processes_reason(&self) -> Option<&Absence> {
        use Absence::{Asleep, GpuLost, NoAnswer, NotReadYet, WarmingUp};
        self.untold.as_ref().filter(|absence| {
            !matches!(
                absence,
                Asleep | GpuLost | NoAnswer | NotReadYet | WarmingUp
            )
        })
    }

    /// Returns `true` if the use until `to_ms` is final.
    pub(super) fn is_final_until(&self, to_ms: f64) -> bool {
        self.steps.is_final_until(to_ms)
    }

    /// Returns the cost, or `None` if the measurement did not use the GPU. Energy and GPU time
    /// include only the use known so far.
    pub(super) fn to_cost(&self, index: u32) -> Option<GpuCost> {
        let cost = make_gpu_cost(index, &self.used, &self.memory, self.seen.to_cost());
        let is_held =
            cost.held_s > 0.0 || cost.peak_memory_bytes.is_some() || !self.steps.pending.is_empty();
        is_held.then_some(cost)
    }
}

/// Combines use, memory and observed readings into one GPU's cost.
pub(super) fn make_gpu_cost(index: u32, used: &GpuUse, memory: &Memory, seen: GpuCost) -> GpuCost {
    GpuCost {
        index,
        held_s: used.held_s,
        gpu_s: used.gpu_s,
        energy_joules: used.joules,
        shared: used.shared,
        peak_memory_bytes: memory.peak_bytes(),
        memory_change_bytes: memory.change_bytes(),
        ..seen
    }
}
