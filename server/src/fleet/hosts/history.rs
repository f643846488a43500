//! The history, events and usage of a fleet, combined from all hubs.

use std::{collections::BTreeMap, sync::Arc};

use gpumon_fleet::{
    Range,
    model::{
        Amounts, FleetEvent, FleetEventKind, FleetEvents, FleetHistory, FleetOwner, FleetSeries,
        FleetState, FleetUsage, HELD_BYTES, MEMORY_TOTAL, MEMORY_USED, OwnerUsage, POWER,
        UTILIZATION, add_amounts,
    },
};
use gpumon_history::{
    bucket::BUCKET_MS,
    span::{HistorySpan, MetricSelection, SpanRequest},
};
use gpumon_probe::{
    model::{EventKind, Health},
    stat::Window,
    usage::UnheldUsage,
};

use super::{current_fleet, node::HostNode};

/// The number of points of a chart that fills a screen.
const POINT_COUNT: u64 = 360;

const READING_NAMES: [&str; 4] = [UTILIZATION, MEMORY_USED, MEMORY_TOTAL, POWER];
const GPU_COUNT: &str = "gpus";
const HELD_GPU_COUNT: &str = "gpus_held";

pub(super) fn build_history(
    nodes: &[Arc<HostNode>],
    node: Option<&str>,
    range: Range,
    now_ms: u64,
) -> FleetHistory {
    let asked_ms = range.start_ms(now_ms);
    let step_ms = (u64::from(range.seconds()) * 1000 / POINT_COUNT)
        .max(1)
        .next_multiple_of(BUCKET_MS);
    let request = SpanRequest {
        from_ms: asked_ms,
        to_ms: now_ms,
        points: (POINT_COUNT + 2) as u32,
        resolution_ms: Some(step_ms),
        wanted: MetricSelection::parse_names(READING_NAMES.into_iter()).0,
    };
    let mut sums = ReadingSums::default();
    let mut oldest_ms = now_ms;
    for node in nodes {
        let span = node.hub.read_span(&request);
        oldest_ms = oldest_ms.min(span.oldest_ms);
        sums.add(&span, step_ms);
    }
    let (at_ms, series) = sums.into_series(step_ms);
    FleetHistory {
        node: node.map(str::to_owned),
        state: FleetState::Current,
        problems: describe_unknown_part(oldest_ms, asked_ms),
        at_ms,
        series,
    }
}

/// The readings of all GPUs by time and name.
#[derive(Default)]
struct ReadingSums(BTreeMap<u64, BTreeMap<&'static str, Window>>);

impl ReadingSums {
    fn add(&mut self, span: &HistorySpan, step_ms: u64) {
        for gpu in &span.gpus {
            for (place, at_ms) in span.times_ms.iter().enumerate() {
                let value = |id| *gpu.metrics.get(id)?.values.get(place)?;
                let sums = self.0.entry(at_ms - at_ms % step_ms).or_default();
                let mut add = |id, value: Option<f64>| {
                    if let Some(value) = value {
                        sums.entry(id).or_default().add(value, 1.0);
                    }
                };
                for id in READING_NAMES {
                    add(id, value(id));
                }
                add(GPU_COUNT, value(MEMORY_TOTAL).map(|_| 1.0));
                // The history does not record past processes. A GPU whose utilization is above 0
                // therefore counts as held.
                let is_busy = value(UTILIZATION).is_some_and(|percent| percent > 0.0);
                add(
                    HELD_GPU_COUNT,
                    value(MEMORY_USED).map(|bytes| f64::from(is_busy || bytes > HELD_BYTES)),
                );
            }
        }
    }

    /// Returns the series at regular times, with `None` where there is no value.
    fn into_series(self, step_ms: u64) -> (Vec<u64>, Vec<FleetSeries>) {
        let (Some((first, _)), Some((last, _))) =
            (self.0.first_key_value(), self.0.last_key_value())
        else {
            return (Vec::new(), Vec::new());
        };
        let at_ms: Vec<_> = (*first..=*last).step_by(step_ms as usize).collect();
        let of = |id: &'static str| {
            let value = |at: &u64| {
                let gpus = self.0.get(at)?.get(id)?;
                if id == UTILIZATION {
                    gpus.mean()
                } else {
                    gpus.weighted_sum()
                }
            };
            FleetSeries {
                id: id.to_owned(),
                values: at_ms.iter().map(value).collect(),
            }
        };
        let series = READING_NAMES
            .into_iter()
            .chain([GPU_COUNT, HELD_GPU_COUNT])
            .map(of)
            .collect();
        (at_ms, series)
    }
}

/// Returns a sentence about the part of a span for which there is no data, if there is such a part.
fn describe_unknown_part(from_ms: u64, asked_ms: u64) -> Vec<String> {
    if from_ms <= asked_ms + 60_000 {
        return Vec::new();
    }
    vec![
        "The data covers the time since this server started to read the hosts, at most six hours; \
         for longer spans, use Prometheus (`gpumon fleet --prometheus URL`)."
            .to_owned(),
    ]
}

// Events of a fleet: the events of each hub, and failures of connections.

pub(super) fn list_events(nodes: &[Arc<HostNode>], range: Range, now_ms: u64) -> FleetEvents {
    let from_ms = range.start_ms(now_ms);
    let mut events = Vec::new();
    let mut oldest_ms = now_ms;
    for node in nodes {
        oldest_ms = oldest_ms.min(node.since_ms);
        add_node_events(node, from_ms, now_ms, &mut events);
    }
    let mut answer = FleetEvents {
        state: FleetState::Current,
        problems: describe_unknown_part(oldest_ms, from_ms),
        ..FleetEvents::new_loading(from_ms, now_ms)
    };
    answer.set_events(events);
    answer
}

fn add_node_events(node: &HostNode, from_ms: u64, now_ms: u64, events: &mut Vec<FleetEvent>) {
    let name = &node.host.name;
    let outages = node.outages();
    if outages.has_any_since(from_ms) {
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

// Usage by owner, summed over all hubs.

pub(super) fn sum_usage(nodes: &[Arc<HostNode>], range: Range, now_ms: u64) -> FleetUsage {
    let asked_ms = range.start_ms(now_ms);
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
            let owner = current_fleet::job_owner(used.user, used.job.as_ref());
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
    let mut problems = describe_unknown_part(from_ms, asked_ms);
    let interrupted = nodes
        .iter()
        .filter(|node| node.outages().has_any_since(asked_ms));
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
        ..FleetUsage::new_loading(from_ms, now_ms)
    };
    let owners = by_owner.into_iter();
    let owners = owners.map(|(owner, (amounts, nodes))| OwnerUsage::new(owner, amounts, nodes));
    usage.set_owners(owners.collect());
    usage
}

/// Returns a sentence about hosts that could not be read for a part of the time.
fn describe_interrupted_hosts(count: usize) -> Option<String> {
    (count > 0).then(|| {
        let hosts = current_fleet::format_host_count(count);
        format!(
            "{hosts} could not be read for part of the time; usage during that time is left out"
        )
    })
}

#[cfg(test)]
mod tests {
    use gpumon_history::span::{DeviceSpan, Series};

    use super::*;

    #[test]
    fn gpus_with_memory_or_load_count_as_held() {
        let gpu = |used: [Option<f64>; 3], load: [Option<f64>; 3]| {
            let of = |values: [Option<f64>; 3]| Series {
                values: values.to_vec(),
                ..Series::default()
            };
            let metrics = [
                (UTILIZATION, of(load)),
                (MEMORY_USED, of(used)),
                (MEMORY_TOTAL, of(used.map(|it| it.map(|_| 8e10)))),
            ];
            DeviceSpan {
                metrics: metrics.map(|(id, of)| (id.to_owned(), of)).into(),
                ..DeviceSpan::default()
            }
        };
        let gpus = vec![
            gpu([Some(4e10), Some(5e8), None], [Some(0.0), Some(0.0), None]),
            gpu([Some(5e8), Some(5e8), None], [Some(60.0), Some(0.0), None]),
        ];
        let mut sums = ReadingSums::default();
        sums.add(
            &HistorySpan {
                times_ms: vec![10_000, 20_000, 30_000],
                gpus,
                ..HistorySpan::default()
            },
            10_000,
        );
        let (at_ms, series) = sums.into_series(10_000);
        assert_eq!(at_ms, [10_000, 20_000, 30_000]);
        let of = |id: &str| {
            series
                .iter()
                .find(|series| series.id == id)
                .unwrap()
                .values
                .clone()
        };
        assert_eq!(of(UTILIZATION), [Some(30.0), Some(0.0), None]);
        assert_eq!(of(GPU_COUNT), [Some(2.0), Some(2.0), None]);
        assert_eq!(of(HELD_GPU_COUNT), [Some(2.0), Some(0.0), None]);
    }
}
