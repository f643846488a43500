//! What was used so far: in all, and in each quarter of an hour.

use std::collections::BTreeMap;

use super::{OwnerUsage, PERIOD_MS, Period, UnheldUsage};
use crate::model::{Job, JobKind};

/// The most owners that are remembered, more than the jobs that a machine sees in months. Beyond
/// that, the jobs that used least are added to their user, and then users to the owner that is not
/// known. Of the parts of time, so many in all are remembered.
pub(super) const MOST_OWNERS: usize = 4096;

/// The number of additional owners that are merged at a time, since finding the smallest means
/// reading all of them.
pub(super) const SPARE_OWNERS: usize = 256;

/// Who an owner is.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OwnerKey {
    pub(super) user: Option<String>,
    pub(super) job: Option<(JobKind, String)>,
}

/// What was used, by whom.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    owners: BTreeMap<OwnerKey, OwnerUsage>,
    pub(super) unheld: UnheldUsage,
}

/// What was used so far.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    pub(super) total: Ledger,
    /// By the beginning of its part of the time, without what is fresh.
    periods: BTreeMap<u64, Ledger>,
    /// What nobody has taken yet.
    fresh: BTreeMap<u64, Ledger>,
}

impl Accounts {
    /// Adds what was used at a moment.
    pub(super) fn add(&mut self, at_ms: u64, used: &Ledger) {
        self.total.add(used);
        self.total.limit();
        let fresh = self.fresh.entry(at_ms / PERIOD_MS * PERIOD_MS).or_default();
        fresh.add(used);
        fresh.limit();
    }

    /// What was used since this was asked last.
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
        // One in which nobody held a GPU takes room, too.
        let size = |ledger: &Ledger| ledger.owners.len().max(1);
        let mut count: usize = self.periods.values().map(size).sum();
        while count > MOST_OWNERS
            && let Some((_, oldest)) = self.periods.pop_first()
        {
            count -= size(&oldest);
        }
        taken
    }

    /// What is remembered by parts of the time, the oldest first. What is fresh may make two of
    /// one.
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

    /// Returns an owner that has used nothing yet.
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
    /// Returns the usage of an owner, to be added to.
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

    /// Adds the amounts of an owner, and the newest names of its job.
    fn add_owner(&mut self, key: &OwnerKey, usage: &OwnerUsage) {
        let known = self.get_or_insert(key);
        known.add(usage);
        if usage.job.as_ref().is_some_and(Job::has_details) {
            known.job.clone_from(&usage.job);
        }
    }

    /// Adds what the owners who used least have used to others, where there are too many.
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

    /// Adds the usage of the owners with the least GPU time to that of the owners that `into`
    /// names. Returns `false` if all owners already are among these.
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

    /// Who used the most energy first.
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
