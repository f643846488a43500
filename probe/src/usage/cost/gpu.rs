//! What something takes of one GPU, from sample to sample.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{memory::Memory, seen::Seen, timeline::Timeline};
use crate::{
    model::{Absence, GpuCost, GpuSample, Health, Process, Trace, TraceMetric},
    usage::{
        Joules,
        accounts::OwnerKey,
        gpu_meter::{Last, Owned},
        share_out::{Step, share_out},
    },
};

/// The driver's records come a second or two later; what they do not tell by then, samples tell.
const RECORDS_COME_WITHIN_MS: f64 = 4_000.0;

/// What is measured of one GPU.
#[derive(Debug, Default)]
pub(super) struct GpuCostMeter {
    /// The sample before.
    last: Option<Last>,
    /// When the first one was.
    first_ms: f64,
    /// What waits for the driver's records.
    steps: VecDeque<Pending>,
    watts: Timeline,
    busy_percent: Timeline,
    /// The draw while a program held the GPU and nothing ran, as it was last.
    idle_watts: Option<f64>,
    /// The processes of the last sample that are measured.
    own: BTreeSet<u32>,
    /// Why it is not known who holds the GPU, where that was never known.
    untold: Option<Absence>,
    held_s: f64,
    gpu_s: Option<f64>,
    joules: Option<Joules>,
    shared: bool,
    pub(super) memory: Memory,
    seen: Seen,
    /// Time of which nothing is known, in milliseconds.
    pub(super) gap_ms: f64,
}

/// A step whose energy and GPU time are not known yet.
#[derive(Debug)]
struct Pending {
    step: Step,
    from_ms: f64,
    to_ms: f64,
    own: BTreeSet<u32>,
}

impl Pending {
    /// Of a step, only the part until a time is measured.
    fn shorten(&mut self, to_ms: f64) {
        self.to_ms = to_ms;
        let seconds = (to_ms - self.from_ms) / 1000.0;
        self.step.joules = self
            .step
            .joules
            .map(|joules| joules * seconds / self.step.seconds);
        self.step.seconds = seconds;
    }
}

/// From when to when something is measured, in milliseconds since 1970; the end is infinite while it goes on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) from_ms: f64,
    pub(super) to_ms: f64,
}

impl GpuCostMeter {
    /// Takes in the next sample of the GPU, of which `own` are measured.
    pub(super) fn push(&mut self, gpu: &GpuSample, interval_ms: u32, own: &[&Process], span: Span) {
        let at_ms = gpu.at_ms as f64;
        self.untold = gpu
            .processes
            .absence()
            .filter(|_| self.last.is_none() && at_ms >= span.from_ms)
            .cloned();
        let now = matches!(gpu.health, Health::Ok)
            .then(|| Last::new(gpu, interval_ms))
            .flatten();
        // Of a GPU that does not answer nothing is known, until it does again.
        let Some(mut now) =
            now.filter(|now| self.last.as_ref().is_none_or(|last| last.at_ms < now.at_ms))
        else {
            return;
        };
        let last = self.last.take();
        if self.first_ms == 0.0 {
            self.first_ms = at_ms;
        }
        // The newest measurement: an average over a second is still that of the time before.
        now.watts = gpu.power.instant_watts.value().copied().or(now.watts);
        let own_now: BTreeSet<u32> = own.iter().map(|process| process.pid).collect();
        self.memory.push(at_ms, own, span);
        if let Some(last) = last {
            self.add_step(&last, &now, &own_now, gpu, span);
        }
        self.own = own_now;
        self.last = Some(now);
        self.settle(false);
    }

    pub(super) fn add_trace(&mut self, trace: &Trace) {
        match trace.metric {
            TraceMetric::PowerWatts => self.watts.add(trace),
            TraceMetric::GpuPercent => self.busy_percent.add(trace),
            TraceMetric::MemoryPercent => {}
        }
        self.settle(false);
    }

    fn add_step(
        &mut self,
        last: &Last,
        now: &Last,
        own_now: &BTreeSet<u32>,
        gpu: &GpuSample,
        span: Span,
    ) {
        let (from_ms, to_ms) = (
            span.from_ms.max(last.at_ms as f64),
            span.to_ms.min(now.at_ms as f64),
        );
        let own: BTreeSet<u32> = self.own.union(own_now).copied().collect();
        if to_ms <= from_ms {
            return;
        }
        let elapsed_ms = now.at_ms - last.at_ms;
        if elapsed_ms > now.longest_gap_ms(last) {
            self.gap_ms += to_ms - from_ms;
            return;
        }
        let step = Step::between(last, now, elapsed_ms as f64 / 1000.0);
        if step.is_idle() && now.watts.is_some() && !now.holders.is_empty() {
            self.idle_watts = now.watts;
        }
        if own.is_empty() {
            return;
        }
        self.seen.push(gpu, from_ms, to_ms);
        let mut pending = Pending {
            step,
            from_ms,
            to_ms,
            own,
        };
        pending.shorten(to_ms);
        self.steps.push_back(pending);
    }

    /// The time since the last sample, of what has ended before the next: nothing has changed in it, as far as is known.
    pub(super) fn extend(&mut self, to_ms: f64, from_ms: f64) {
        let Some(last) = self.last.as_ref().filter(|_| !self.own.is_empty()) else {
            return;
        };
        let from_ms = from_ms.max(last.at_ms as f64);
        if to_ms <= from_ms {
            return;
        }
        if to_ms - last.at_ms as f64 > last.longest_gap_ms(last) as f64 {
            self.gap_ms += to_ms - from_ms;
            return;
        }
        let step = Step::between(last, last, (to_ms - from_ms) / 1000.0);
        self.steps.push_back(Pending {
            step,
            from_ms,
            to_ms,
            own: self.own.clone(),
        });
    }

    /// It was over at a time, behind which there may have been a sample already.
    pub(super) fn end(&mut self, to_ms: f64) {
        self.steps.retain(|pending| pending.from_ms < to_ms);
        if let Some(last) = self.steps.back_mut().filter(|last| last.to_ms > to_ms) {
            last.shorten(to_ms);
        }
        self.memory.end(to_ms);
    }

    /// Gives away the steps of which everything is known, or is not going to be.
    pub(super) fn settle(&mut self, all: bool) {
        let newest_ms = self.last.as_ref().map_or(0.0, |last| last.at_ms as f64);
        while let Some(Pending { from_ms, to_ms, .. }) = self.steps.front() {
            let joules = self.watts.along_lines(*from_ms, *to_ms);
            let busy = self.busy_percent.in_steps(*from_ms, *to_ms);
            let is_due = all || newest_ms - to_ms > RECORDS_COME_WITHIN_MS;
            // A driver that has recorded nothing of a GPU so far does not do so.
            let is_young = newest_ms - self.first_ms < RECORDS_COME_WITHIN_MS;
            let is_coming = |records: &Timeline| is_young || !records.is_empty();
            let is_missing = (joules.is_none() && is_coming(&self.watts))
                || (busy.is_none() && is_coming(&self.busy_percent));
            if is_missing && !is_due {
                return;
            }
            if let Some(mut pending) = self.steps.pop_front() {
                pending.step.joules = joules.or(pending.step.joules);
                self.add(
                    &pending,
                    busy.map(|percent_seconds| percent_seconds / 100.0),
                );
            }
        }
    }

    /// Adds what was used in a step. `busy_s` is how long kernels ran in it, of whomever.
    fn add(&mut self, Pending { step, own, .. }: &Pending, busy_s: Option<f64>) {
        let key = OwnerKey {
            user: Some(String::new()),
            job: None,
        };
        let owners: BTreeMap<u32, Owned> = own
            .iter()
            .map(|pid| (*pid, Owned::known(key.clone())))
            .collect();
        let mut used = share_out(step, 1.0, self.idle_watts, &owners);
        let account = used.of(&key);
        self.held_s += account.gpu_seconds;
        let is_shared = account.exclusive_seconds < account.gpu_seconds;
        self.shared |= is_shared;
        let shares = step
            .holders
            .iter()
            .filter(|holder| own.contains(&holder.pid))
            .filter_map(|holder| holder.share);
        let by_shares = shares
            .reduce(|one, other| (one + other).min(1.0))
            .map(|share| share * step.seconds);
        let alone = busy_s
            .or(step.gpu_share.map(|share| share * step.seconds))
            .filter(|_| !is_shared);
        if let Some(gpu_s) = alone.or(by_shares) {
            *self.gpu_s.get_or_insert_default() += gpu_s;
        }
        if let Some(more) = account.joules {
            self.joules = Some(self.joules.unwrap_or_default() + more);
        }
    }

    /// Why nobody can tell who held the GPU. One that sleeps or is lost is held by nobody, and what has not been read yet may
    /// come.
    pub(super) fn untold(&self) -> Option<&Absence> {
        use Absence::{Asleep, GpuLost, NoAnswer, NotReadYet, WarmingUp};
        self.untold.as_ref().filter(|absence| {
            !matches!(
                absence,
                Asleep | GpuLost | NoAnswer | NotReadYet | WarmingUp
            )
        })
    }

    /// Whether everything is known of what ends at a time.
    pub(super) fn is_final(&self, to_ms: f64) -> bool {
        let is_past = self
            .last
            .as_ref()
            .is_some_and(|last| last.at_ms as f64 >= to_ms);
        (is_past || self.own.is_empty()) && self.steps.is_empty()
    }

    /// `None` where nothing of it held the GPU. Energy and GPU time are of what is known by now.
    pub(super) fn cost(&self, index: u32) -> Option<GpuCost> {
        let is_held =
            self.held_s > 0.0 || self.memory.peak_bytes().is_some() || !self.steps.is_empty();
        is_held.then(|| GpuCost {
            index,
            held_s: self.held_s,
            gpu_s: self.gpu_s,
            energy_joules: self.joules,
            shared: self.shared,
            peak_memory_bytes: self.memory.peak_bytes(),
            memory_change_bytes: self.memory.change_bytes(),
            ..self.seen.cost()
        })
    }
}
