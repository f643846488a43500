//! The usage so far, in total and by quarters of an hour.

use std::collections::BTreeMap;

use super::{OwnerUsage, PERIOD_MS, Period, UnheldUsage};
use crate::model::{Job, JobKind};

/// The maximum number of remembered owners, more than the jobs of a machine in months. Beyond that,
/// jobs with the least usage are added to their user, and then users to the unknown owner. The
/// periods together also have at most this number of owners.
pub(super) const MOST_OWNERS: usize = 4096;

/// The number of additional owners that are merged at a time, because finding the smallest requires
/// reading all of them.
pub(super) const SPARE_OWNERS: usize = 256;

/// The identity of an owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OwnerKey {
    pub(super) user: Option<String>,
    pub(super) job: Option<(JobKind, String)>,
}

/// The usage by owner.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    owners: BTreeMap<OwnerKey, OwnerUsage>,
    pub(super) unheld: UnheldUsage,
}

/// The usage so far.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    pub(super) total: Ledger,
    /// The usage by the start of the period, without fresh usage.
    periods: BTreeMap<u64, Ledger>,
    /// The usage that has not been taken yet, by the start of the period.
    fresh: BTreeMap<u64, Ledger>,
}

impl Accounts {
    /// Adds the usage of one moment.
    pub(super) fn add(&mut self, at_ms: u64, used: &Ledger) {
        self.total.add(used);
        self.total.limit();
        let fresh = self.fresh.entry(at_ms / PERIOD_MS * PERIOD_MS).or_default();
        fresh.add(used);
        fresh.limit();
    }

    /// Returns the usage since the previous call.
    pub(super) fn take_fresh(&mut self) -> Vec<Period> {
        let fresh = std::mem::take(&mut self.fresh);
        let taken = fresh
            .iter()
            .map(|(at_ms, ledger)| ledger.period(*at_ms))
            .collect();
        for (at_ms, ledger) in fresh {
            let period = self.periods.entry(at_ms).or_default();
            period.add(&ledger);
            period.limit();
        }
        // Periods without owners also use memory, so that each counts as at least one.
        let size = |ledger: &Ledger| ledger.owners.len().max(1);
        let mut count: usize = self.periods.values().map(size).sum();
        while count > MOST_OWNERS
            && let Some((_, oldest)) = self.periods.pop_first()
        {
            count -= size(&oldest);
        }
        taken
    }

    /// Returns the remembered periods, the oldest first. A period can occur twice if it has fresh
    /// usage.
    pub(super) fn periods(&self) -> impl Iterator<Item = Period> {
        self.periods
            .iter()
            .chain(&self.fresh)
            .map(|(at_ms, ledger)| ledger.period(*at_ms))
    }
}

impl OwnerKey {
    pub(super) fn new(user: Option<String>, job: Option<&Job>) -> Self {
        Self {
            user,
            job: job.map(|job| (job.kind, job.id.clone())),
        }
    }

    /// Returns the empty usage of this owner.
    fn new_usage(&self) -> OwnerUsage {
        let job = self.job.clone().map(|(kind, id)| Job {
            kind,
            id,
            path: None,
            name: None,
            private: false,
        });
        OwnerUsage {
            user: self.user.clone(),
            job,
            ..OwnerUsage::default()
        }
    }
}

impl Ledger {
    /// Returns the usage of an owner, which is created if it is missing.
    pub(super) fn get_or_insert(&mut self, key: &OwnerKey) -> &mut OwnerUsage {
        self.owners
            .entry(key.clone())
            .or_insert_with(|| key.new_usage())
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (key, usage) in &other.owners {
            self.add_owner(key, usage);
        }
        self.unheld.add(other.unheld);
    }

    /// Adds the usage of an owner, and takes over the newest names of its job.
    fn add_owner(&mut self, key: &OwnerKey, usage: &OwnerUsage) {
        let known = self.get_or_insert(key);
        known.add(usage);
        if usage.job.as_ref().is_some_and(Job::has_details) {
            known.job.clone_from(&usage.job);
        }
    }

    /// Merges the owners with the least usage if there are too many.
    pub(super) fn limit(&mut self) {
        let user_alone = |key: &OwnerKey| OwnerKey {
            user: key.user.clone(),
            job: None,
        };
        let unknown = |_: &OwnerKey| OwnerKey::default();
        while self.owners.len() > MOST_OWNERS
            && (self.merge_least(user_alone) || self.merge_least(unknown))
        {}
    }

    /// Merges the owners with the least GPU time into the owners returned by `into`. Returns
    /// `false` if there is nothing left to merge.
    fn merge_least(&mut self, into: impl Fn(&OwnerKey) -> OwnerKey) -> bool {
        let others = self.owners.iter().filter(|(key, _)| into(key) != **key);
        let mut others: Vec<_> = others
            .map(|(key, usage)| (usage.gpu_seconds, key.clone()))
            .collect();
        others.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        others.truncate(self.owners.len().saturating_sub(MOST_OWNERS) + SPARE_OWNERS);
        for (_, key) in &others {
            if let Some(usage) = self.owners.remove(key) {
                self.get_or_insert(&into(key)).add(&usage);
            }
        }
        !others.is_empty()
    }

    pub(super) fn add_period(&mut self, period: &Period) {
        for usage in &period.owners {
            let key = OwnerKey::new(usage.user.clone(), usage.job.as_ref());
            self.add_owner(&key, usage);
        }
        self.unheld.add(period.unheld);
    }

    pub(super) fn period(&self, at_ms: u64) -> Period {
        Period {
            at_ms,
            owners: self.owners(),
            unheld: self.unheld,
        }
    }

    /// Returns the usage of all owners, the highest energy first.
    pub(super) fn owners(&self) -> Vec<OwnerUsage> {
        let mut owners: Vec<OwnerUsage> = self.owners.values().cloned().collect();
        let joules = |usage: &OwnerUsage| usage.joules.map_or(0.0, |joules| joules.estimate);
        owners.sort_by(|one, other| {
            let by_energy = joules(other).total_cmp(&joules(one));
            by_energy.then(other.gpu_seconds.total_cmp(&one.gpu_seconds))
        });
        owners
    }
}
