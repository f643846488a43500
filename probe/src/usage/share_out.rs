//! Whose the energy between two samples is.

use std::collections::BTreeMap;

use super::{
    Joules,
    accounts::{Ledger, OwnerKey},
};

/// The time between two samples of a GPU.
#[derive(Debug)]
pub(super) struct Step {
    /// When it begins.
    pub(super) at_ms: u64,
    pub(super) seconds: f64,
    /// The integral of the power; `None` where that is not known.
    pub(super) joules: Option<f64>,
    /// Whether the shares of the holders are of a time before it.
    pub(super) shares_are_old: bool,
    /// Share of the time in which a kernel ran.
    pub(super) gpu_share: Option<f64>,
    /// Whether nothing ran in it.
    pub(super) was_idle: bool,
    pub(super) holders: Vec<Holder>,
    /// Whether there were more than are listed.
    pub(super) omitted: bool,
}

/// A process that held the GPU at one of the two samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Holder {
    pub(super) pid: u32,
    /// Share of the time in which its kernels ran, 0 to 1.
    pub(super) share: Option<f64>,
    pub(super) before: bool,
    pub(super) after: bool,
}

/// All processes of one owner.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    share: Option<f64>,
    before: bool,
    after: bool,
}

impl Step {
    pub(super) fn is_idle(&self) -> bool {
        self.was_idle
    }
}

impl Part {
    /// How much of the time it was there: who came or went in it was, for half of it.
    fn presence(&self) -> f64 {
        if self.before && self.after { 1.0 } else { 0.5 }
    }
}

/// Divides a step, in which so much energy was used, among the owners of its processes.
pub(super) fn share_out(
    step: &Step,
    joules: Option<f64>,
    idle_watts: Option<f64>,
    owner_of: impl Fn(u32) -> OwnerKey,
) -> Ledger {
    let mut used = Ledger::default();
    let mut parts: BTreeMap<OwnerKey, Part> = BTreeMap::new();
    for holder in &step.holders {
        let first = Part {
            share: holder.share,
            before: holder.before,
            after: holder.after,
        };
        parts
            .entry(owner_of(holder.pid))
            .and_modify(|part| {
                part.share = part
                    .share
                    .zip(holder.share)
                    .map(|(one, other)| (one + other).min(1.0));
                part.before |= holder.before;
                part.after |= holder.after;
            })
            .or_insert(first);
    }
    if step.omitted {
        // Others hold it as well, of whom no more is known.
        parts
            .entry(OwnerKey::default())
            .and_modify(|part| part.share = None)
            .or_insert(Part {
                share: None,
                before: true,
                after: true,
            });
    }
    let is_shared = parts.len() > 1;
    for (key, part) in &parts {
        let account = used.of(key);
        account.gpu_seconds += step.seconds * part.presence();
        let of_gpu = step.gpu_share.filter(|_| !is_shared);
        let share = if step.shares_are_old {
            of_gpu.or(part.share)
        } else {
            part.share.or(of_gpu)
        };
        account.active_seconds += step.seconds * share.unwrap_or(0.0);
        if !is_shared {
            account.exclusive_seconds += step.seconds * part.presence();
        }
        if let Some(joules) = joules {
            let idle_joules = idle_watts.map(|watts| (watts * step.seconds).min(joules));
            account.add_joules(part_of(joules, idle_joules, key, &parts));
        }
    }
    // Of a GPU that somebody alone came to or left, the other half was nobody's.
    let presence = if is_shared {
        1.0
    } else {
        parts.values().map(Part::presence).sum()
    };
    used.unheld.gpu_seconds += step.seconds * (1.0 - presence);
    used.unheld.joules += joules.unwrap_or(0.0) * (1.0 - presence);
    used
}

/// One owner's part of the energy; all estimates together are the whole, but for what is nobody's.
fn part_of(
    joules: f64,
    idle_joules: Option<f64>,
    key: &OwnerKey,
    parts: &BTreeMap<OwnerKey, Part>,
) -> Joules {
    let own = &parts[key];
    let is_whole = own.before && own.after;
    if parts.len() == 1 {
        let least = if is_whole { joules } else { 0.0 };
        return Joules {
            least,
            most: joules,
            estimate: joules * own.presence(),
        };
    }
    let presence: f64 = parts.values().map(Part::presence).sum();
    let evenly = own.presence() / presence;
    let shares: Option<f64> = parts.values().map(|part| part.share).sum();
    let Some((all, share)) = shares.filter(|all| *all > 0.0).zip(own.share) else {
        return Joules {
            least: 0.0,
            most: joules,
            estimate: joules * evenly,
        };
    };
    let beyond_idle = joules - idle_joules.unwrap_or(0.0);
    let is_alone_active = share >= all;
    Joules {
        least: if is_whole && is_alone_active && idle_joules.is_some() {
            beyond_idle
        } else {
            0.0
        },
        most: joules,
        estimate: idle_joules.unwrap_or(0.0) * evenly + beyond_idle * share / all,
    }
}
