//! Who used how much: energy and GPU time by owner, from samples.
//!
//! An owner is a user and, where there is one, what their processes are of together: a notebook, Slurm job, pod, container
//! or service. [`UsageMeter`] takes samples in their order, and knows neither where they come from nor what time it is.
//!
//! Where processes of one owner alone hold a GPU, all that the board draws is theirs, what it draws at rest included, and
//! exact. Where several do, nobody can tell whose a joule was: an owner has used between what the board drew beyond its idle
//! power while nobody else's kernels ran, and all that it drew while they held it. [`Joules::estimate`] lies between.

mod gpu_meter;
mod share_out;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::gpu_meter::GpuMeter;
use crate::model::{GpuSample, Job, JobKind, Sample};

/// More jobs than a machine sees in months; beyond that, those who used least are told by their user alone.
const MOST_OWNERS: usize = 4096;

/// What was used since a moment, by whom.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// When the first sample was taken; 0 before there is one.
    pub since_ms: u64,
    /// When the last one was. What happened in the seconds before it may be missing.
    pub at_ms: u64,
    /// By owner, who used the most energy first.
    pub owners: Vec<OwnerUsage>,
    /// What no listed process can have used.
    pub unheld: UnheldUsage,
}

/// What one owner used, of all GPUs together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Joules {
    /// What it was at least.
    pub least: f64,
    /// What it was at most.
    pub most: f64,
    /// Split by SM share: what the board drew beyond its idle power by the share of each owner, the rest evenly. Where the
    /// driver tells no shares, all of it evenly.
    pub estimate: f64,
}

/// What GPUs used while no process was listed that held them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnheldUsage {
    /// How long that was, in seconds, of all GPUs together.
    pub gpu_seconds: f64,
    /// Energy.
    pub joules: f64,
}

/// Who an owner is.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct OwnerKey {
    user: Option<String>,
    job: Option<(JobKind, String)>,
}

/// Adds up what is used.
#[derive(Debug, Default)]
pub struct UsageMeter {
    since_ms: Option<u64>,
    at_ms: u64,
    gpus: BTreeMap<u32, GpuMeter>,
    accounts: Accounts,
}

/// What was used so far.
#[derive(Debug, Default)]
struct Accounts {
    owners: BTreeMap<OwnerKey, Account>,
    unheld: UnheldUsage,
}

#[derive(Debug, Clone, Default)]
struct Account {
    /// The notebook or pod with its name, as it was told last.
    job: Option<Job>,
    gpu_seconds: f64,
    exclusive_seconds: f64,
    active_seconds: f64,
    joules: Option<Joules>,
}

impl UsageMeter {
    /// Takes in the next sample. A gap between two samples, as of a collector that was paused, is nobody's.
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
        self.accounts.limit();
    }

    /// What was used so far.
    pub fn usage(&self) -> Usage {
        let mut owners: Vec<OwnerUsage> =
            self.accounts.owners.iter().map(|(key, account)| owner_usage(key, account)).collect();
        let joules = |usage: &OwnerUsage| usage.joules.map_or(0.0, |joules| joules.estimate);
        owners.sort_by(|one, other| {
            let by_energy = joules(other).total_cmp(&joules(one));
            by_energy.then(other.gpu_seconds.total_cmp(&one.gpu_seconds))
        });
        Usage { since_ms: self.since_ms.unwrap_or(0), at_ms: self.at_ms, owners, unheld: self.accounts.unheld }
    }
}

fn owner_usage(key: &OwnerKey, account: &Account) -> OwnerUsage {
    OwnerUsage {
        user: key.user.clone(),
        job: account.job.clone().or_else(|| {
            let (kind, id) = key.job.clone()?;
            Some(Job { kind, id, path: None, name: None })
        }),
        gpu_seconds: account.gpu_seconds,
        exclusive_seconds: account.exclusive_seconds,
        active_seconds: account.active_seconds,
        joules: account.joules,
    }
}

impl Accounts {
    fn of(&mut self, key: &OwnerKey) -> &mut Account {
        self.owners.entry(key.clone()).or_default()
    }

    /// Tells those who used least by their user alone, where there are too many.
    fn limit(&mut self) {
        while self.owners.len() > MOST_OWNERS {
            let with_job = self.owners.iter().filter(|(key, _)| key.job.is_some());
            let least = with_job.min_by(|(_, one), (_, other)| one.gpu_seconds.total_cmp(&other.gpu_seconds));
            let Some(least) = least.map(|(key, _)| key.clone()) else { return };
            let Some(account) = self.owners.remove(&least) else { return };
            self.of(&OwnerKey { job: None, ..least }).add(&account);
        }
    }
}

impl Account {
    fn add(&mut self, other: &Self) {
        self.gpu_seconds += other.gpu_seconds;
        self.exclusive_seconds += other.exclusive_seconds;
        self.active_seconds += other.active_seconds;
        if let Some(joules) = other.joules {
            self.add_joules(joules);
        }
    }

    fn add_joules(&mut self, more: Joules) {
        let joules = self.joules.get_or_insert_default();
        joules.least += more.least;
        joules.most += more.most;
        joules.estimate += more.estimate;
    }
}
