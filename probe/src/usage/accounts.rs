//! What was used so far: in all, and in each quarter of an hour.

use std::collections::BTreeMap;

use super::{Joules, OwnerUsage, PERIOD_MS, Period, UnheldUsage};
use crate::model::{Job, JobKind};

/// The most owners that are remembered, more than the jobs that a machine sees in months. Beyond that, the jobs that used
/// least are added to their user, and then users to the owner that is not known. Of the parts of time, so many in all are
/// remembered.
pub(super) const MOST_OWNERS: usize = 4096;

/// The number of additional owners that are merged at a time, since finding the smallest means reading all of them.
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
    owners: BTreeMap<OwnerKey, Account>,
    pub(super) unheld: UnheldUsage,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Account {
    /// The notebook or pod with its name, as it was told last.
    pub(super) job: Option<Job>,
    pub(super) gpu_seconds: f64,
    pub(super) exclusive_seconds: f64,
    pub(super) active_seconds: f64,
    pub(super) joules: Option<Joules>,
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

    /// What is remembered by parts of the time, the oldest first. What is fresh may make two of one.
    pub(super) fn periods(&self) -> impl Iterator<Item = Period> {
        self.periods
            .iter()
            .chain(&self.fresh)
            .map(|(at_ms, ledger)| ledger.period(*at_ms))
    }
}

impl Ledger {
    pub(super) fn of(&mut self, key: &OwnerKey) -> &mut Account {
        self.owners.entry(key.clone()).or_default()
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (key, account) in &other.owners {
            self.of(key).add(account);
        }
        self.unheld.gpu_seconds += other.unheld.gpu_seconds;
        self.unheld.joules += other.unheld.joules;
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

    /// Adds the accounts with the least GPU time to those of the owners that `into` names. Returns `false` if all owners
    /// already are among these.
    fn merge_least(&mut self, into: impl Fn(&OwnerKey) -> OwnerKey) -> bool {
        let others = self.owners.iter().filter(|(key, _)| into(key) != **key);
        let mut others: Vec<_> = others
            .map(|(key, account)| (account.gpu_seconds, key.clone()))
            .collect();
        others.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        others.truncate(self.owners.len().saturating_sub(MOST_OWNERS) + SPARE_OWNERS);
        for (_, key) in &others {
            if let Some(account) = self.owners.remove(key) {
                self.of(&into(key)).add(&Account {
                    job: None,
                    ..account
                });
            }
        }
        !others.is_empty()
    }

    pub(super) fn add_period(&mut self, period: Period) {
        for owner in period.owners {
            let OwnerUsage {
                user,
                job,
                gpu_seconds,
                exclusive_seconds,
                active_seconds,
                joules,
            } = owner;
            let key = OwnerKey {
                user,
                job: job.as_ref().map(|job| (job.kind, job.id.clone())),
            };
            let job = job.filter(Job::has_details);
            self.of(&key).add(&Account {
                job,
                gpu_seconds,
                exclusive_seconds,
                active_seconds,
                joules,
            });
        }
        self.unheld.gpu_seconds += period.unheld.gpu_seconds;
        self.unheld.joules += period.unheld.joules;
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
        let mut owners: Vec<OwnerUsage> = self
            .owners
            .iter()
            .map(|(key, account)| owner_usage(key, account))
            .collect();
        let joules = |usage: &OwnerUsage| usage.joules.map_or(0.0, |joules| joules.estimate);
        owners.sort_by(|one, other| {
            let by_energy = joules(other).total_cmp(&joules(one));
            by_energy.then(other.gpu_seconds.total_cmp(&one.gpu_seconds))
        });
        owners
    }
}

fn owner_usage(key: &OwnerKey, account: &Account) -> OwnerUsage {
    OwnerUsage {
        user: key.user.clone(),
        job: account.job.clone().or_else(|| {
            let (kind, id) = key.job.clone()?;
            Some(Job {
                kind,
                id,
                path: None,
                name: None,
                private: false,
            })
        }),
        gpu_seconds: account.gpu_seconds,
        exclusive_seconds: account.exclusive_seconds,
        active_seconds: account.active_seconds,
        joules: account.joules,
    }
}

impl Account {
    fn add(&mut self, other: &Self) {
        if other.job.is_some() {
            self.job.clone_from(&other.job);
        }
        self.gpu_seconds += other.gpu_seconds;
        self.exclusive_seconds += other.exclusive_seconds;
        self.active_seconds += other.active_seconds;
        if let Some(joules) = other.joules {
            self.add_joules(joules);
        }
    }

    pub(super) fn add_joules(&mut self, more: Joules) {
        self.joules = Some(self.joules.unwrap_or_default() + more);
    }
}
