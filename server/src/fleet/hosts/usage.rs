//! Who used how much, added up over hubs.

use std::{collections::BTreeMap, sync::Arc};

use gpumon_fleet::{
    Range,
    model::{FleetOwner, FleetState, FleetUsage, OwnerUsage},
};

use super::{node::HostNode, owners};

/// So many owners are listed.
const MOST_OWNERS: usize = 1000;

pub(super) fn usage(nodes: &[Arc<HostNode>], range: Range, now_ms: u64) -> FleetUsage {
    let asked_ms = now_ms.saturating_sub(u64::from(range.seconds()) * 1000);
    let mut by_owner: BTreeMap<FleetOwner, OwnerUsage> = BTreeMap::new();
    let (mut unheld_gpu_s, mut unheld_joules) = (0.0, 0.0);
    let mut from_ms = now_ms;
    for node in nodes {
        let used = node.hub.usage_in(&(asked_ms..now_ms));
        if let Some(oldest_ms) = used.oldest_ms.filter(|oldest_ms| *oldest_ms > 0) {
            from_ms = from_ms.min(oldest_ms.max(asked_ms));
        }
        unheld_gpu_s += used.unheld.gpu_seconds;
        unheld_joules += used.unheld.joules;
        let mut here: BTreeMap<FleetOwner, OwnerUsage> = BTreeMap::new();
        for used in used.owners {
            let owner = owners::of_job(used.user, used.job.as_ref());
            let nothing =
                OwnerUsage { owner: owner.clone(), gpu_s: None, active_gpu_s: None, energy_joules: None, nodes: 1 };
            let sum = here.entry(owner).or_insert(nothing);
            add(&mut sum.gpu_s, used.gpu_seconds);
            add(&mut sum.active_gpu_s, used.active_seconds);
            if let Some(joules) = used.joules {
                add(&mut sum.energy_joules, joules.estimate);
            }
        }
        for (owner, used) in here {
            match by_owner.get_mut(&owner) {
                Some(sum) => {
                    sum.nodes += 1;
                    for (sum, more) in [
                        (&mut sum.gpu_s, used.gpu_s),
                        (&mut sum.active_gpu_s, used.active_gpu_s),
                        (&mut sum.energy_joules, used.energy_joules),
                    ] {
                        if let Some(more) = more {
                            add(sum, more);
                        }
                    }
                }
                None => {
                    by_owner.insert(owner, used);
                }
            }
        }
    }
    let mut owners: Vec<_> = by_owner.into_values().collect();
    owners.sort_by(|one, other| other.gpu_s.unwrap_or(0.0).total_cmp(&one.gpu_s.unwrap_or(0.0)));
    let owners_total = owners.len() as u32;
    let held: f64 = owners.iter().filter_map(|owner| owner.energy_joules).sum();
    owners.truncate(MOST_OWNERS);
    // What is known begins with this server: a span that reaches further back is answered from there on.
    FleetUsage {
        from_ms,
        to_ms: now_ms,
        state: FleetState::Current,
        problems: since_start(from_ms, asked_ms).into_iter().collect(),
        owners,
        owners_total,
        unheld_gpu_s: Some(unheld_gpu_s),
        unheld_energy_joules: Some(unheld_joules),
        energy_joules: Some(held + unheld_joules),
    }
}

fn add(sum: &mut Option<f64>, more: f64) {
    *sum = Some(sum.unwrap_or(0.0) + more);
}

/// What is asked for and not known, in a sentence.
pub(super) fn since_start(from_ms: u64, asked_ms: u64) -> Option<String> {
    (from_ms > asked_ms + 60_000).then(|| {
        "Known since this server reads the hosts, and for six hours at most; Prometheus keeps more \
         (`gpumon fleet --prometheus URL`)."
            .to_owned()
    })
}
