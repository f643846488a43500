//! Events of a fleet: the events of each hub, and failures of connections.

use std::{collections::BTreeMap, sync::Arc};

use gpumon_fleet::{
    Range,
    model::{FleetEvent, FleetEventKind, FleetEvents, FleetState},
};
use gpumon_probe::model::{EventKind, Health};

use super::{node::HostNode, usage::describe_unknown_part};

pub(super) fn list_events(nodes: &[Arc<HostNode>], range: Range, now_ms: u64) -> FleetEvents {
    let from_ms = now_ms.saturating_sub(u64::from(range.seconds()) * 1000);
    let mut events = Vec::new();
    let mut oldest_ms = now_ms;
    for node in nodes {
        oldest_ms = oldest_ms.min(node.since_ms);
        add_node_events(node, from_ms, now_ms, &mut events);
    }
    let mut answer = FleetEvents {
        state: FleetState::Current,
        problems: describe_unknown_part(oldest_ms, from_ms)
            .into_iter()
            .collect(),
        ..FleetEvents::empty(from_ms, now_ms)
    };
    answer.set_events(events);
    answer
}

fn add_node_events(node: &HostNode, from_ms: u64, now_ms: u64, events: &mut Vec<FleetEvent>) {
    let name = &node.host.name;
    let outages = node.outages();
    if outages.count > 0 && outages.last_ms >= from_ms {
        events.push(FleetEvent {
            node: name.clone(),
            gpu: None,
            kind: FleetEventKind::NodeUnreachable,
            xid: None,
            count: outages.count,
            last_ms: outages.last_ms,
            lasts: outages.lasts,
        });
    }
    let sample = node.hub.current_data().sample;
    let is_gone = |index: u32| {
        let gpus = sample.iter().flat_map(|sample| &sample.gpus);
        gpus.filter(|gpu| gpu.index == index)
            .any(|gpu| !matches!(gpu.health, Health::Ok | Health::Asleep { .. }))
    };
    let mut found: BTreeMap<(Option<u32>, Option<u32>), FleetEvent> = BTreeMap::new();
    for event in node.hub.recent_events() {
        let (kind, xid) = match &event.what {
            EventKind::Xid(report) => (FleetEventKind::Xid, Some(report.code)),
            EventKind::GpuLost | EventKind::GpuHung | EventKind::GpuFailed { .. } => {
                (FleetEventKind::GpuNotResponding, None)
            }
            _ => continue,
        };
        if event.at_ms < from_ms || event.at_ms > now_ms {
            continue;
        }
        let gpu = event.gpu.as_ref().map(|gpu| gpu.index);
        let lasts = xid.is_none() && gpu.is_some_and(is_gone);
        let known = found.entry((gpu, xid)).or_insert_with(|| FleetEvent {
            node: name.clone(),
            gpu,
            kind,
            xid,
            count: 0,
            last_ms: 0,
            lasts,
        });
        known.count += 1;
        known.last_ms = known.last_ms.max(event.at_ms);
    }
    events.extend(found.into_values());
}
