//! Who used how much: energy and GPU time by owner, from samples.
//!
//! An owner is a user and, where there is one, what their processes are of together: a notebook,
//! batch job, pod, container or service. [`UsageMeter`] takes samples in their order, and knows
//! neither where they come from nor what time it is.
//!
//! Where processes of one owner alone hold a GPU, all that the board draws is theirs, what it draws
//! at rest included, and exact. Where several do, nobody can tell whose a joule was: an owner has
//! used between what the board drew beyond its idle power while nobody else's kernels ran, and all
//! that it drew while they held it. [`Joules::estimate`] lies between.

mod accounts;
pub mod cost;
mod energy;
mod gpu_meter;
mod steps;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, ops::Add};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

pub use self::energy::EnergyMeter;
use self::{
    accounts::{Accounts, Ledger},
    gpu_meter::GpuMeter,
};
use crate::model::{GpuSample, Job, Sample};

/// Time is divided into parts of this length to tell later who used how much when: into a quarter
/// of an hour, of which the days of all time zones can be put together.
pub const PERIOD_MS: u64 = 15 * 60 * 1000;

/// What was used since a moment, by whom.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// When the first sample was taken; 0 before there is one. Of a span of time, where what is
    /// answered begins: a quarter of an hour, or where what is known does.
    pub since_ms: u64,
    /// When the last one was. What happened in the seconds before it may be missing. Of a span of
    /// time, where what is answered ends.
    pub at_ms: u64,
    /// By owner, who used the most energy first.
    pub owners: Vec<OwnerUsage>,
    /// What no listed process can have used.
    pub unheld: UnheldUsage,
    /// Where a span of time was asked for, how far back usage is known, 0 where nothing is; else
    /// left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_ms: Option<u64>,
}

/// What was used in a quarter of an hour, or in a part of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Period {
    /// When it begins: a multiple of [`PERIOD_MS`].
    pub at_ms: u64,
    /// By owner.
    pub owners: Vec<OwnerUsage>,
    /// What no listed process can have used.
    pub unheld: UnheldUsage,
}

/// What one owner used, of all GPUs together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnerUsage {
    /// The login name; `null` where it is not known whose processes these are.
    pub user: Option<String>,
    /// What the processes are of together; `null` where that is nothing more than the user.
    pub job: Option<Job>,
    /// How long a process of theirs held a GPU, in seconds; two GPUs for a minute are 120 s.
    pub gpu_seconds: f64,
    /// Of that, how long nobody else held the same GPU.
    pub exclusive_seconds: f64,
    /// How long their kernels ran, by the driver's SM share of each process (`smUtil`).
    pub active_seconds: f64,
    /// Energy; `null` where no GPU that they held told its power.
    pub joules: Option<Joules>,
}

/// Energy that can be told only within bounds. All are the same where an owner had the GPU alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Joules {
    /// What it was at least.
    pub least: f64,
    /// What it was at most.
    pub most: f64,
    /// Split by SM share: what the board drew beyond its idle power by the share of each owner, the
    /// rest evenly. Where the driver tells no shares, all of it evenly.
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

/// What GPUs used while no process was listed that held them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnheldUsage {
    /// How long that was, in seconds, of all GPUs together.
    pub gpu_seconds: f64,
    /// Energy.
    pub joules: f64,
}

impl OwnerUsage {
    /// Adds the amounts that another owner used, or this one later.
    pub fn add(&mut self, more: &Self) {
        self.gpu_seconds += more.gpu_seconds;
        self.exclusive_seconds += more.exclusive_seconds;
        self.active_seconds += more.active_seconds;
        add_known(&mut self.joules, more.joules);
    }
}

impl UnheldUsage {
    /// Adds what was used elsewhere, or later.
    pub fn add(&mut self, more: Self) {
        self.gpu_seconds += more.gpu_seconds;
        self.joules += more.joules;
    }
}

/// Adds to a sum. Both amounts may be unknown.
fn add_known<T: Add<Output = T> + Copy>(sum: &mut Option<T>, more: Option<T>) {
    if let Some(more) = more {
        *sum = Some(sum.map_or(more, |sum| sum + more));
    }
}

/// Adds up what is used.
#[derive(Debug, Default)]
pub struct UsageMeter {
    since_ms: Option<u64>,
    at_ms: u64,
    gpus: BTreeMap<u32, GpuMeter>,
    accounts: Accounts,
}

impl UsageMeter {
    /// Takes in the next sample. A gap between two samples, as of a collector that was paused, is
    /// nobody's.
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

    /// What was used so far.
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

    /// Gives away what waits for the next reading of the energy counter, by power alone. There is
    /// no next sample.
    pub fn end(&mut self) {
        self.gpus
            .values_mut()
            .for_each(|meter| meter.settle(1.0, &mut self.accounts));
    }

    /// What was used since this was asked last, for whoever keeps it: each part of it once.
    pub fn take_fresh(&mut self) -> Vec<Period> {
        self.accounts.take_fresh()
    }

    /// What is remembered by quarters of an hour, of which there may be several parts.
    pub fn periods(&self) -> impl Iterator<Item = Period> {
        self.accounts.periods()
    }

    /// When the first and the last sample were taken; 0 before there is one.
    pub fn reach_ms(&self) -> (u64, u64) {
        (self.since_ms.unwrap_or(0), self.at_ms)
    }
}

impl Usage {
    /// What periods have together; its times are those of none.
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
    /// One for each part of the time, where there may be several.
    pub fn joined(periods: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut ledgers: BTreeMap<u64, Ledger> = BTreeMap::new();
        for period in periods {
            let ledger = ledgers.entry(period.at_ms).or_default();
            ledger.add_period(&period);
            ledger.limit();
        }
        ledgers
            .into_iter()
            .map(|(at_ms, ledger)| ledger.period(at_ms))
            .collect()
    }
}
