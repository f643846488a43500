//! Usage by owner: energy and GPU time, calculated from samples.
//!
//! An owner is a user, or one of a user's jobs: a notebook, batch job, pod, container or service.
//! [`UsageMeter`] receives samples in chronological order, independently of their source and of the
//! current time.
//!
//! If only one owner uses a GPU, all energy of the board, including the idle power, is assigned to
//! that owner, and the amount is exact. If several owners use a GPU, each owner's energy is known
//! only within bounds. The lower bound is the energy above the idle power in the time during which
//! no other owner's kernels ran. The upper bound is all energy in the time during which the owner
//! was on the GPU. [`Joules::estimate`] is between these bounds.

pub mod cost;
mod gpu_meter;
mod steps;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, ops::Add};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use self::gpu_meter::GpuMeter;
use crate::model::{GpuSample, Job, JobKind, Sample};

pub use gpu_meter::EnergyMeter;

/// The length of a period of stored usage: 15 minutes, because in all time zones, days start at a
/// multiple of 15 minutes.
pub const PERIOD_MS: u64 = 15 * 60 * 1000;

/// The usage in a time span, by owner.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// The time of the first sample; 0 if there is none. For a query with a span, the start of the
    /// returned usage, which is the start of a 15-minute period, or of the recorded data.
    pub since_ms: u64,
    /// The time of the last sample. The use in the last seconds before this time may be missing.
    /// For a query with a span, the end of the returned usage.
    pub at_ms: u64,
    /// The usage of each owner, the highest energy first.
    pub owners: Vec<OwnerUsage>,
    /// The usage that cannot be attributed to any listed process.
    pub unheld: UnheldUsage,
    /// For a query with a span, the time of the oldest recorded usage, or 0 if no usage is
    /// recorded. Omitted otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_ms: Option<u64>,
}

/// The usage in a period of 15 minutes, or in a part of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Period {
    /// The start of the period, a multiple of [`PERIOD_MS`].
    pub at_ms: u64,
    /// The usage of each owner.
    pub owners: Vec<OwnerUsage>,
    /// The usage that cannot be attributed to any listed process.
    pub unheld: UnheldUsage,
}

/// The usage of one owner, summed over all GPUs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnerUsage {
    /// The login name of the user, or `null` if the owner of the processes is unknown.
    pub user: Option<String>,
    /// The job of the processes, or `null` if the processes belong to no job.
    pub job: Option<Job>,
    /// The time in which a process of the owner was on a GPU, in seconds. Two GPUs for a minute are
    /// 120 s.
    pub gpu_seconds: f64,
    /// The part of `gpu_seconds` in which no other owner used the same GPU.
    pub exclusive_seconds: f64,
    /// The time in which the owner's kernels ran, according to the driver's SM share of each
    /// process (`smUtil`), in seconds.
    pub active_seconds: f64,
    /// The energy of the owner, or `null` if none of the GPUs reports its power.
    pub joules: Option<Joules>,
}

/// Energy that is known within bounds. All values are equal if the owner had the GPU alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Joules {
    /// The lower bound of the energy.
    pub least: f64,
    /// The upper bound of the energy.
    pub most: f64,
    /// The estimate: energy above the idle power is divided by SM share, and the remaining energy
    /// evenly. If the driver reports no shares, all energy is divided evenly.
    pub estimate: f64,
}

impl Add for Joules {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            least: self.least + more.least,
            most: self.most + more.most,
            estimate: self.estimate + more.estimate,
        }
    }
}

/// The usage of GPUs while no process was listed on them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnheldUsage {
    /// The time without processes, summed over all GPUs, in seconds.
    pub gpu_seconds: f64,
    /// The energy used during `gpu_seconds`, in joules.
    pub joules: f64,
}

impl OwnerUsage {
    /// Adds the usage of another owner, or later usage of the same owner.
    pub fn add(&mut self, more: &Self) {
        self.gpu_seconds += more.gpu_seconds;
        self.exclusive_seconds += more.exclusive_seconds;
        self.active_seconds += more.active_seconds;
        add_if_measured(&mut self.joules, more.joules);
    }
}

impl UnheldUsage {
    /// Adds the usage of another GPU, or later usage.
    pub fn add(&mut self, more: Self) {
        self.gpu_seconds += more.gpu_seconds;
        self.joules += more.joules;
    }
}

/// Adds an amount to a sum. Both can be unknown (`None`).
fn add_if_measured<T: Add<Output = T> + Copy>(sum: &mut Option<T>, more: Option<T>) {
    if let Some(more) = more {
        *sum = Some(sum.map_or(more, |sum| sum + more));
    }
}

/// A meter that computes the usage of all owners.
#[derive(Debug, Default)]
pub struct UsageMeter {
    since_ms: Option<u64>,
    at_ms: u64,
    gpus: BTreeMap<u32, GpuMeter>,
    accounts: Accounts,
}

impl UsageMeter {
    /// Adds the next sample. If there is a gap between two samples, for example after a pause of
    /// the collector, its time is not assigned to any owner.
    pub fn push(&mut self, sample: &Sample) {
        self.push_gpus(sample.at_ms, sample.interval_ms, &sample.gpus);
    }

    fn push_gpus(&mut self, at_ms: u64, interval_ms: u32, gpus: &[GpuSample]) {
        self.since_ms.get_or_insert(at_ms);
        self.at_ms = at_ms;
        for gpu in gpus {
            let meter = self.gpus.entry(gpu.index).or_default();
            meter.push(gpu, interval_ms, &mut self.accounts);
        }
    }

    /// Returns the usage so far.
    pub fn usage(&self) -> Usage {
        let Ledger { unheld, .. } = self.accounts.total;
        let (since_ms, at_ms) = (self.since_ms.unwrap_or(0), self.at_ms);
        Usage {
            since_ms,
            at_ms,
            owners: self.accounts.total.owners(),
            unheld,
            oldest_ms: None,
        }
    }

    /// Ends the measurement. Some steps may still wait for the next reading of the energy counter.
    /// They are assigned to the owners with the energy calculated from the power readings.
    pub fn end(&mut self) {
        self.gpus
            .values_mut()
            .for_each(|meter| meter.assign_steps_to_owners(1.0, &mut self.accounts));
    }

    /// Returns the usage since the previous call, so that the caller can store it. Each amount is
    /// returned only once.
    pub fn take_new_usage(&mut self) -> Vec<Period> {
        self.accounts.take_new_usage()
    }

    /// Returns the 15-minute periods that are kept in memory. A period can occur more than once,
    /// with different parts of its usage.
    pub fn periods(&self) -> impl Iterator<Item = Period> {
        self.accounts.periods()
    }

    /// Returns the times of the first and the last sample, or 0 if there are no samples.
    pub fn time_range_ms(&self) -> (u64, u64) {
        (self.since_ms.unwrap_or(0), self.at_ms)
    }
}

impl Usage {
    /// Returns the sum of several periods. The times of the result are not set.
    pub fn sum(periods: impl IntoIterator<Item = Period>) -> Self {
        let mut all = Ledger::default();
        periods
            .into_iter()
            .for_each(|period| all.add_period(&period));
        Self {
            owners: all.owners(),
            unheld: all.unheld,
            ..Self::default()
        }
    }
}

impl Period {
    /// Joins parts that belong to the same period.
    pub fn join_all(periods: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut ledgers: BTreeMap<u64, Ledger> = BTreeMap::new();
        for period in periods {
            let ledger = ledgers.entry(period.at_ms).or_default();
            ledger.add_period(&period);
            ledger.limit_owners();
        }
        ledgers
            .into_iter()
            .map(|(at_ms, ledger)| ledger.to_period(at_ms))
            .collect()
    }
}

/// The maximum number of owners kept in memory, both in the totals and in all periods together.
/// Even in several months, a machine has fewer jobs. Beyond the limit, the usage of the smallest
/// jobs is added to that of their users. If this is not enough, the usage of the smallest users is
/// added to that of an unknown owner. If all periods together exceed the limit, the oldest periods
/// are dropped instead.
const MAX_OWNERS: usize = 4096;

/// If there are too many owners, this number of additional owners is merged. Each merge must read
/// all owners to find the smallest, so merging many at once is cheaper than merging often.
const SPARE_OWNERS: usize = 256;

/// The identity of an owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct OwnerKey {
    user: Option<String>,
    job: Option<(JobKind, String)>,
}

/// The usage by owner.
#[derive(Debug, Default)]
struct Ledger {
    owners: BTreeMap<OwnerKey, OwnerUsage>,
    unheld: UnheldUsage,
}

/// The usage so far, in total and in periods of 15 minutes.
#[derive(Debug, Default)]
struct Accounts {
    total: Ledger,
    /// The usage that `take_new_usage` has already returned, by start of the period.
    periods: BTreeMap<u64, Ledger>,
    /// The usage that `take_new_usage` has not returned yet, by start of the period.
    fresh: BTreeMap<u64, Ledger>,
}

impl Accounts {
    /// Adds the usage in `used`, which occurred at `at_ms`.
    fn add(&mut self, at_ms: u64, used: &Ledger) {
        self.total.add(used);
        self.total.limit_owners();
        let fresh = self.fresh.entry(at_ms / PERIOD_MS * PERIOD_MS).or_default();
        fresh.add(used);
        fresh.limit_owners();
    }

    /// Returns the usage since the previous call.
    fn take_new_usage(&mut self) -> Vec<Period> {
        let fresh = std::mem::take(&mut self.fresh);
        let taken = fresh
            .iter()
            .map(|(at_ms, ledger)| ledger.to_period(*at_ms))
            .collect();
        for (at_ms, ledger) in fresh {
            let period = self.periods.entry(at_ms).or_default();
            period.add(&ledger);
            period.limit_owners();
        }
        // Periods without owners also use memory, so each period counts as at least one owner.
        let size = |ledger: &Ledger| ledger.owners.len().max(1);
        let mut count: usize = self.periods.values().map(size).sum();
        while count > MAX_OWNERS
            && let Some((_, oldest)) = self.periods.pop_first()
        {
            count -= size(&oldest);
        }
        taken
    }

    /// Returns the periods that are kept in memory: first the usage that `take_new_usage` has
    /// already returned, then the new usage, each from oldest to newest. A period can occur in
    /// both.
    fn periods(&self) -> impl Iterator<Item = Period> {
        self.periods
            .iter()
            .chain(&self.fresh)
            .map(|(at_ms, ledger)| ledger.to_period(*at_ms))
    }
}

impl OwnerKey {
    fn new(user: Option<String>, job: Option<&Job>) -> Self {
        Self {
            user,
            job: job.map(|job| (job.kind, job.id.clone())),
        }
    }

    /// Returns usage of this owner with all amounts set to zero.
    fn empty_usage(&self) -> OwnerUsage {
        let job = self.job.as_ref();
        OwnerUsage {
            user: self.user.clone(),
            job: job.map(|(kind, id)| Job::new(*kind, id)),
            ..OwnerUsage::default()
        }
    }
}

impl Ledger {
    /// Returns the usage of an owner, inserting an empty entry if there is none.
    fn get_or_insert(&mut self, key: &OwnerKey) -> &mut OwnerUsage {
        self.owners
            .entry(key.clone())
            .or_insert_with(|| key.empty_usage())
    }

    fn add(&mut self, other: &Self) {
        for (key, usage) in &other.owners {
            self.add_owner(key, usage);
        }
        self.unheld.add(other.unheld);
    }

    /// Adds the usage of an owner, and updates the names of the owner's job.
    fn add_owner(&mut self, key: &OwnerKey, usage: &OwnerUsage) {
        let known = self.get_or_insert(key);
        known.add(usage);
        if usage.job.as_ref().is_some_and(Job::has_details) {
            known.job.clone_from(&usage.job);
        }
    }

    /// Merges the owners with the least usage if there are too many.
    fn limit_owners(&mut self) {
        let user_alone = |key: &OwnerKey| OwnerKey {
            user: key.user.clone(),
            job: None,
        };
        let unknown = |_: &OwnerKey| OwnerKey::default();
        while self.owners.len() > MAX_OWNERS
            && (self.merge_smallest_owners(user_alone) || self.merge_smallest_owners(unknown))
        {
        }
    }

    /// Merges the owners with the least GPU time into other owners. For each of these owners,
    /// `into` returns the owner that receives the usage. Returns `false` if there is nothing left
    /// to merge.
    fn merge_smallest_owners(&mut self, into: impl Fn(&OwnerKey) -> OwnerKey) -> bool {
        let others = self.owners.iter().filter(|(key, _)| into(key) != **key);
        let mut others: Vec<_> = others
            .map(|(key, usage)| (usage.gpu_seconds, key.clone()))
            .collect();
        others.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        others.truncate(self.owners.len().saturating_sub(MAX_OWNERS) + SPARE_OWNERS);
        for (_, key) in &others {
            if let Some(usage) = self.owners.remove(key) {
                self.get_or_insert(&into(key)).add(&usage);
            }
        }
        !others.is_empty()
    }

    fn add_period(&mut self, period: &Period) {
        for usage in &period.owners {
            let key = OwnerKey::new(usage.user.clone(), usage.job.as_ref());
            self.add_owner(&key, usage);
        }
        self.unheld.add(period.unheld);
    }

    fn to_period(&self, at_ms: u64) -> Period {
        Period {
            at_ms,
            owners: self.owners(),
            unheld: self.unheld,
        }
    }

    /// Returns the usage of all owners, the highest energy first.
    fn owners(&self) -> Vec<OwnerUsage> {
        let mut owners: Vec<OwnerUsage> = self.owners.values().cloned().collect();
        let joules = |usage: &OwnerUsage| usage.joules.map_or(0.0, |joules| joules.estimate);
        owners.sort_by(|one, other| {
            let by_energy = joules(other).total_cmp(&joules(one));
            by_energy.then(other.gpu_seconds.total_cmp(&one.gpu_seconds))
        });
        owners
    }
}
