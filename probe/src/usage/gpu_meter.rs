//! The energy and GPU time of each owner on one GPU, calculated from consecutive samples, and the
//! total energy of a GPU in a time window.
//!
//! The board's energy counter is read every few seconds. Its growth is divided among the samples in
//! proportion to their power. Without a counter, energy is the integral of the power.

use std::collections::BTreeMap;

use super::{
    Accounts, OwnerKey,
    steps::{LastSample, Span, Step, divide_step},
};
use crate::model::{Absence, GpuSample, Job, Owner, Process};

/// The delay after which usage is reported if the board has no energy counter.
const SETTLE_AFTER_S: f64 = 5.0;

/// The maximum age of the latest counter reading. If it is older, the meter does not wait for a new
/// reading.
const MAX_COUNTER_AGE_MS: u64 = 65_000;

/// The maximum time to wait for the owners of processes.
const MAX_OWNER_WAIT_S: f64 = 30.0;

/// The maximum mean power according to the energy counter, relative to the board's power limit. A
/// higher mean power indicates that the counter was reset.
const MAX_LIMIT_RATIO: f64 = 2.0;

/// The maximum mean power according to the energy counter, in watts, for boards that report no
/// power limit.
const MAX_WATTS: f64 = 3_000.0;

#[derive(Debug, Default)]
pub(super) struct GpuMeter {
    last: Option<LastSample>,
    /// Steps whose energy and time have not been assigned to owners yet.
    steps: Vec<Step>,
    /// The latest reading of the energy counter in joules, and its time.
    counter: Option<(f64, u64)>,
    /// The time of the first sample, or of the first sample after the last gap. Energy counter
    /// readings from before this time are ignored: their energy was already assigned to owners, or
    /// belongs to no owner.
    counts_since_ms: u64,
    /// The latest power draw that was measured while a program was on the GPU but no kernel ran.
    idle_watts: Option<f64>,
    /// The known owners of the processes in `steps`, by PID.
    owners: BTreeMap<u32, ProcessOwner>,
}

#[derive(Debug)]
struct ProcessOwner {
    key: OwnerKey,
    /// The job of the process, with its latest name.
    job: Option<Job>,
    /// Whether details of the owner may still be missing.
    is_partial: bool,
}

impl GpuMeter {
    pub(super) fn push(&mut self, gpu: &GpuSample, interval_ms: u32, accounts: &mut Accounts) {
        let Some(now) = LastSample::from_sample(gpu, interval_ms) else {
            // The GPU does not respond, or its processes are unknown. The use so far is assigned to
            // its owners. The use from now until the next sample with a list of processes is
            // assigned to nobody.
            self.assign_steps_to_owners(1.0, accounts);
            (self.last, self.counter) = (None, None);
            return;
        };
        let Some(last) = self.last.take() else {
            self.begin(gpu, now);
            return;
        };
        let elapsed_ms = now.at_ms.saturating_sub(last.at_ms);
        if now.at_ms == last.at_ms {
            self.last = Some(last);
            return;
        }
        if elapsed_ms == 0 || elapsed_ms > now.max_gap_ms(&last) {
            self.assign_steps_to_owners(1.0, accounts);
            self.begin(gpu, now);
            return;
        }
        self.learn_owners(gpu);
        let step = Step::new(&last, &now, Span::new(last.at_ms, now.at_ms));
        self.idle_watts = step.idle_watts.or(self.idle_watts);
        self.steps.push(step);
        self.last = Some(now);
        self.assign_steps_if_complete(gpu, accounts);
    }

    /// Starts measuring at the first sample, or at the first sample after a gap.
    fn begin(&mut self, gpu: &GpuSample, now: LastSample) {
        self.counts_since_ms = gpu.at_ms;
        self.counter = self.recent_counter(gpu);
        self.learn_owners(gpu);
        self.last = Some(now);
    }

    /// Returns the latest reading of the energy counter and its time. Returns `None` if the reading
    /// is too old, or was taken before the last gap.
    fn recent_counter(&self, gpu: &GpuSample) -> Option<(f64, u64)> {
        let reading = &gpu.power.energy_joules_total;
        let at_ms = reading.read_at_ms(gpu.at_ms);
        let is_recent =
            at_ms >= self.counts_since_ms && gpu.at_ms.saturating_sub(at_ms) <= MAX_COUNTER_AGE_MS;
        reading
            .value()
            .filter(|_| is_recent)
            .map(|joules| (*joules, at_ms))
    }

    /// Assigns the use in all steps to owners, once the owners are known and the energy counter has
    /// been read again. On boards without a counter, a short delay replaces the wait for the new
    /// reading.
    fn assign_steps_if_complete(&mut self, gpu: &GpuSample, accounts: &mut Accounts) {
        let seconds: f64 = self.steps.iter().map(|step| step.span.seconds()).sum();
        let is_known =
            !self.owners.values().any(|owned| owned.is_partial) || seconds >= MAX_OWNER_WAIT_S;
        if !is_known {
            return;
        }
        match (self.counter, self.recent_counter(gpu)) {
            (Some((before, at_ms)), Some((after, now_ms))) if now_ms != at_ms => {
                let integral: f64 = self.steps.iter().filter_map(|step| step.joules).sum();
                let limit = gpu
                    .power
                    .limit_watts
                    .value()
                    .map_or(MAX_WATTS, |limit| limit * MAX_LIMIT_RATIO);
                let grown = after - before;
                let is_possible =
                    (0.0..=limit * (seconds + 1.0)).contains(&grown) && integral > 0.0;
                self.counter = Some((after, now_ms));
                self.assign_steps_to_owners(
                    if is_possible { grown / integral } else { 1.0 },
                    accounts,
                );
            }
            (Some(_), Some(_)) => {}
            (_, after) => {
                if after.is_some() || seconds >= SETTLE_AFTER_S {
                    self.assign_steps_to_owners(1.0, accounts);
                }
                self.counter = after;
            }
        }
    }

    /// Assigns all steps to owners. The energy of a step is the integral of the step's power,
    /// multiplied by `factor`.
    pub(super) fn assign_steps_to_owners(&mut self, factor: f64, accounts: &mut Accounts) {
        for step in self.steps.drain(..) {
            let joules = step.joules.map(|joules| joules * factor);
            let owners = &self.owners;
            let mut used = divide_step(&step, joules, self.idle_watts, |pid| {
                owners
                    .get(&pid)
                    .map_or_else(OwnerKey::default, |owned| owned.key.clone())
            });
            for owned in step.holders.keys().filter_map(|pid| owners.get(pid)) {
                if owned.job.as_ref().is_some_and(Job::has_details) {
                    used.get_or_insert(&owned.key).job.clone_from(&owned.job);
                }
            }
            accounts.add(step.span.from_ms as u64, &used);
        }
        let last = self.last.as_ref();
        self.owners
            .retain(|pid, _| last.is_some_and(|last| last.holders.contains_key(pid)));
    }

    fn learn_owners(&mut self, gpu: &GpuSample) {
        for process in gpu.processes.items() {
            // An owner is kept once all its details are known. Only an owner with a notebook or pod
            // is still read again, because the name of the notebook or pod can change.
            let has_name = process
                .owner
                .value()
                .is_some_and(|owner| owner.notebook.is_some() || owner.pod.is_some());
            if has_name
                || self
                    .owners
                    .get(&process.pid)
                    .is_none_or(|owned| owned.is_partial)
            {
                self.owners.insert(process.pid, ProcessOwner::new(process));
            }
        }
    }
}

impl ProcessOwner {
    fn new(process: &Process) -> Self {
        let owner = process.owner.value();
        let job = owner.and_then(Owner::job);
        let is_due = |absence: Option<&Absence>| absence == Some(&Absence::NotReadYet);
        let is_partial = is_due(process.owner.absence()) || is_due(process.user.absence());
        let key = OwnerKey::new(process.user.value().cloned(), job.as_ref());
        Self {
            key,
            job,
            is_partial: is_partial || owner.is_some_and(|owner| owner.partial),
        }
    }
}

/// A meter for the energy of a GPU in a time window, which sums the growth of the energy counter.
#[derive(Debug, Clone, Copy, Default)]
pub struct EnergyMeter {
    /// The newest reading in joules, and its time.
    newest: Option<(f64, u64)>,
    joules: f64,
    time_ms: u64,
}

impl EnergyMeter {
    /// Adds a reading of the counter. If the counter was reset since the previous reading, for
    /// example because the driver was loaded again, the time between the two readings is not
    /// counted.
    pub fn add(&mut self, joules: f64, at_ms: u64) {
        if let Some((before, before_ms)) = self.newest.replace((joules, at_ms))
            && joules >= before
            && at_ms >= before_ms
        {
            self.joules += joules - before;
            self.time_ms += at_ms - before_ms;
        }
    }

    /// Excludes the time until the next reading, and the energy used in that time, from the totals.
    pub fn exclude_until_next_reading(&mut self) {
        self.newest = None;
    }

    /// Returns the energy in joules, and the time that it covers in milliseconds.
    pub fn total_energy_and_time(&self) -> (f64, u64) {
        (self.joules, self.time_ms)
    }

    /// Returns the energy in a period of length `time_ms`, in joules. If the readings cover only a
    /// part of the period, the mean power is used to estimate the energy in the rest. Returns
    /// `None` if there is neither a reading nor a mean power.
    pub fn extrapolate_energy(&self, time_ms: u64, mean_watts: Option<f64>) -> Option<f64> {
        let uncounted_s = time_ms.saturating_sub(self.time_ms) as f64 / 1000.0;
        let estimated = mean_watts.map(|watts| watts * uncounted_s);
        if self.time_ms == 0 {
            return estimated;
        }
        Some(self.joules + estimated.unwrap_or(0.0))
    }
}

impl FromIterator<(f64, u64)> for EnergyMeter {
    fn from_iter<I: IntoIterator<Item = (f64, u64)>>(readings: I) -> Self {
        let mut meter = Self::default();
        for (joules, at_ms) in readings {
            meter.add(joules, at_ms);
        }
        meter
    }
}
