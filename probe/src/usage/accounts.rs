//! The usage so far, in total and in periods of 15 minutes.

use std::collections::BTreeMap;

use super::{OwnerUsage, PERIOD_MS, Period, UnheldUsage};
use crate::model::{Job, JobKind};

/// The maximum number of owners kept in memory, more than a machine has jobs in months. Beyond this
/// limit, jobs with the least usage are merged into their user, and then users into the unknown
/// owner. The limit also applies to all periods together.
pub(super) const MAX_OWNERS: usize = 4096;

/// The number of owners above the limit at which owners are merged. Merging many at once is
/// cheaper, because finding the smallest requires reading all of them.
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
    /// The usage that has already been taken, by start of the period.
    periods: BTreeMap<u64, Ledger>,
    /// The usage that has not been taken yet, by start of the period.
    fresh: BTreeMap<u64, Ledger>,
}

impl Accounts {
    /// Adds the usage in `used`, which occurred at `at_ms`.
    pub(super) fn add(&mut self, at_ms: u64, used: &Ledger) {
        self.total.add(used);
        self.total.limit_owners();
        let fresh = self.fresh.entry(at_ms / PERIOD_MS * PERIOD_MS).or_default();
        fresh.add(used);
        fresh.limit_owners();
    }

    /// Returns the usage since the previous call.
    pub(super) fn take_new_usage(&mut self) -> Vec<Period> {
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

    /// Returns the periods in memory, the oldest first. A period that has new usage can occur
    /// twice.
    pub(super) fn periods(&self) -> impl Iterator<Item = Period> {
        self.periods
            .iter()
            .chain(&self.fresh)
            .map(|(at_ms, ledger)| ledger.to_period(*at_ms))
    }
}

impl OwnerKey {
    pub(super) fn new(user: Option<String>, job: Option<&Job>) -> Self {
        Self {
            user,
            job: job.map(|job| (job.kind, job.id.clone())),
        }
    }

    /// Returns usage of this owner with all amounts set to zero.
    fn empty_usage(&self) -> OwnerUsage {
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
    /// Returns the usage of an owner, inserting an empty entry if there is none.
    pub(super) fn get_or_insert(&mut self, key: &OwnerKey) -> &mut OwnerUsage {
        self.owners
            .entry(key.clone())
            .or_insert_with(|| key.empty_usage())
    }

    pub(super) fn add(&mut self, other: &Self) {
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
    pub(super) fn limit_owners(&mut self) {
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

    /// Merges the owners with the least GPU time into the owners returned by `into`. Returns
    /// `false` if there is nothing left to merge.
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

    pub(super) fn add_period(&mut self, period: &Period) {
        for usage in &period.owners {
            let key = OwnerKey::new(usage.user.clone(), usage.job.as_ref());
            self.add_owner(&key, usage);
        }
        self.unheld.add(period.unheld);
    }

    pub(super) fn to_period(&self, at_ms: u64) -> Period {
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
