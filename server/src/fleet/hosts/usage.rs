//! Usage by owner, summed over all hubs.

use std::{collections::BTreeMap, sync::Arc};

use gpumon_fleet::{
    Range,
    model::{Amounts, FleetOwner, FleetState, FleetUsage, OwnerUsage, add_amounts},
};
use gpumon_probe::usage::UnheldUsage;

use super::{node::HostNode, owners};

pub(super) fn sum_usage(nodes: &[Arc<HostNode>], range: Range, now_ms: u64) -> FleetUsage {
    let asked_ms = now_ms.saturating_sub(u64::from(range.seconds()) * 1000);
    let mut by_owner: BTreeMap<FleetOwner, (Amounts, u32)> = BTreeMap::new();
    let mut unheld = UnheldUsage::default();
    let mut from_ms = now_ms;
    for node in nodes {
        let used = node.hub.read_usage(&(asked_ms..now_ms));
        if let Some(oldest_ms) = used.oldest_ms.filter(|oldest_ms| *oldest_ms > 0) {
            from_ms = from_ms.min(oldest_ms.max(asked_ms));
        }
        unheld.add(used.unheld);
        let mut here: BTreeMap<FleetOwner, Amounts> = BTreeMap::new();
        for used in used.owners {
            let owner = owners::job_owner(used.user, used.job.as_ref());
            let joules = used.joules.map(|joules| joules.estimate);
            let amounts = [Some(used.gpu_seconds), Some(used.active_seconds), joules];
            let sum = here.entry(owner).or_default();
            *sum = add_amounts(*sum, amounts);
        }
        for (owner, amounts) in here {
            let (sum, nodes) = by_owner.entry(owner).or_default();
            *sum = add_amounts(*sum, amounts);
            *nodes += 1;
        }
    }
    let held: f64 = by_owner.values().filter_map(|(sum, _)| sum[2]).sum();
    // The usage before this server's start is unknown, so a sentence reports the missing part.
    let mut problems: Vec<_> = describe_unknown_part(from_ms, asked_ms)
        .into_iter()
        .collect();
    let interrupted = nodes.iter().filter(|node| {
        let outages = node.outages();
        outages.count > 0 && outages.last_ms >= asked_ms
    });
    problems.extend(describe_interrupted_hosts(interrupted.count()));
    let mut usage = FleetUsage {
        state: if problems.is_empty() {
            FleetState::Current
        } else {
            FleetState::Partial
        },
        problems,
        unheld_gpu_s: Some(unheld.gpu_seconds),
        unheld_energy_joules: Some(unheld.joules),
        energy_joules: Some(held + unheld.joules),
        ..FleetUsage::empty(from_ms, now_ms)
    };
    let owners = by_owner.into_iter();
    let owners = owners.map(|(owner, (amounts, nodes))| OwnerUsage::new(owner, amounts, nodes));
    usage.set_owners(owners.collect());
    usage
}

/// Returns a sentence about hosts that could not be read for a part of the time.
fn describe_interrupted_hosts(count: usize) -> Option<String> {
    let hosts = if count == 1 {
        "1 host".to_owned()
    } else {
        format!("{count} hosts")
    };
    (count > 0).then(|| {
        format!(
            "{hosts} could not be read for a part of the time; usage during that time is left out"
        )
    })
}

/// Returns a sentence about the part of a span for which there is no data.
pub(super) fn describe_unknown_part(from_ms: u64, asked_ms: u64) -> Option<String> {
    (from_ms > asked_ms + 60_000).then(|| {
        "The data covers the time since this server started to read the hosts, at most six hours; \
         for longer spans, use Prometheus (`gpumon fleet --prometheus URL`)."
            .to_owned()
    })
}
