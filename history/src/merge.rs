//! Merges the history of this server with that of another server, whose readings this server shows.

use std::{iter, mem::discriminant};

use crate::{
    bucket::Device,
    database::MAX_EVENTS,
    grid::Grid,
    span::{ConditionSpan, HistorySpan, MetricSelection},
};

/// Merges the metrics in `wanted` from two spans. If `theirs` covers all times of `ours`, the
/// points of `theirs` are not changed. Otherwise, the values of both spans are combined at the
/// coarser of the two resolutions.
pub fn merge_spans(
    ours: HistorySpan,
    theirs: HistorySpan,
    wanted: &MetricSelection,
) -> HistorySpan {
    let mut both = if covers_all_times(&theirs, &ours) {
        theirs.clone()
    } else {
        merge_points(&ours, &theirs, wanted)
    };
    both.oldest_ms = ours.oldest_ms.min(theirs.oldest_ms);
    both.from_ms = ours.from_ms.min(theirs.from_ms);
    both.to_ms = ours.to_ms.max(theirs.to_ms);
    both.storage.on_disk = ours.storage.on_disk || theirs.storage.on_disk;
    both.storage.reach_ms = ours.storage.reach_ms.max(theirs.storage.reach_ms);
    both.storage.problem = theirs.storage.problem.or(ours.storage.problem);
    (both.events, both.conditions) = (ours.events, theirs.conditions);
    for event in theirs.events {
        if !both.events.iter().any(|known| known.is_same_event(&event)) {
            both.events.push(event);
        }
    }
    both.events.sort_by_key(|event| event.at_ms);
    both.events
        .drain(..both.events.len().saturating_sub(MAX_EVENTS));
    for condition in ours.conditions {
        if !both
            .conditions
            .iter()
            .any(|known| is_same_condition(known, &condition))
        {
            both.conditions.push(condition);
        }
    }
    both.conditions.sort_by_key(|condition| condition.from_ms);
    both
}

/// Returns `true` if two servers have recorded the same condition. The start times can differ,
/// because each collector detects conditions independently.
fn is_same_condition(one: &ConditionSpan, other: &ConditionSpan) -> bool {
    let overlap = |one: &ConditionSpan, other: &ConditionSpan| {
        one.to_ms.is_none_or(|end_ms| other.from_ms <= end_ms)
    };
    one.uuid == other.uuid
        && discriminant(&one.condition.kind) == discriminant(&other.condition.kind)
        && overlap(one, other)
        && overlap(other, one)
}

/// Returns `true` if `one` has a point near every point of `other`.
fn covers_all_times(one: &HistorySpan, other: &HistorySpan) -> bool {
    let near_ms = one.resolution_ms.max(other.resolution_ms);
    other.times_ms.iter().all(|at_ms| {
        let next = one.times_ms.partition_point(|time| time < at_ms);
        let around = one.times_ms[next.saturating_sub(1)..].iter().take(2);
        around
            .into_iter()
            .any(|time| time.abs_diff(*at_ms) <= near_ms)
    })
}

fn merge_points(ours: &HistorySpan, theirs: &HistorySpan, wanted: &MetricSelection) -> HistorySpan {
    let resolution_ms = ours.resolution_ms.max(theirs.resolution_ms);
    let is_sampled = [ours, theirs].iter().all(|span| has_only_samples(span));
    let step_ms = if is_sampled { 0 } else { resolution_ms };
    let (from_ms, to_ms) = (
        ours.from_ms.min(theirs.from_ms),
        ours.to_ms.max(theirs.to_ms),
    );
    let mut grid = Grid::new(from_ms, to_ms, step_ms, wanted.clone());
    let places = |span| iter::zip(times_with_positions(span), iter::repeat(span));
    let mut places: Vec<_> = places(ours).chain(places(theirs)).collect();
    // The sort is stable. At equal times, the other server's values are therefore added after this
    // server's values.
    places.sort_by_key(|((at_ms, _), _)| *at_ms);
    for ((at_ms, place), span) in places {
        for part in span.parts() {
            let uuid = part.device.map_or("", |device| &*device.uuid);
            let metrics = wanted.metrics_for(part.kind).iter();
            let stats = metrics.map(|metric| part.metrics.get(&*metric.id)?.stat_at(place));
            grid.add_values((part.kind, uuid), at_ms, 1, stats);
        }
    }
    let known = |uuid: &str| {
        let mut devices = theirs.parts().chain(ours.parts());
        let device = devices.find_map(|part| part.device.filter(|device| device.uuid == uuid));
        device.map_or_else(Device::default, |device| Device {
            uuid: device.uuid.clone(),
            index: device.index,
            name: device.name.clone(),
            parent: device.parent.clone(),
        })
    };
    grid.into_span(resolution_ms, known)
}

/// Returns `true` if the points are single samples. Points from several samples also have a minimum
/// and maximum.
fn has_only_samples(span: &HistorySpan) -> bool {
    span.parts()
        .flat_map(|part| part.metrics.values())
        .all(|series| series.min.is_none())
}

fn times_with_positions(span: &HistorySpan) -> impl Iterator<Item = (u64, usize)> + '_ {
    span.times_ms.iter().copied().zip(0..)
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Condition, ConditionKind, Event, EventKind, Mark, Severity};

    use super::*;
    use crate::span::{DeviceSpan, Series, Storage};

    const FIELD: &str = "power.draw_watts";

    fn select_metrics() -> MetricSelection {
        MetricSelection::parse_names([FIELD, "host.cpu.busy_percent"].into_iter()).0
    }

    fn make_series(values: Vec<Option<f64>>, is_sampled: bool) -> Series {
        let range = (!is_sampled).then(|| values.clone());
        Series {
            values,
            min: range.clone(),
            max: range,
        }
    }

    /// Returns a span in which a GPU's power and the host's CPU load have these values.
    fn make_span(
        resolution_ms: u64,
        points: &[(u64, Option<f64>)],
        is_sampled: bool,
    ) -> HistorySpan {
        let times_ms: Vec<_> = points.iter().map(|(at_ms, _)| *at_ms).collect();
        let values: Vec<_> = points.iter().map(|(_, value)| *value).collect();
        let metrics = [(FIELD.to_owned(), make_series(values.clone(), is_sampled))].into();
        let gpus = vec![DeviceSpan {
            uuid: "GPU-0".to_owned(),
            index: 3,
            name: Some("H200".to_owned()),
            metrics,
            ..DeviceSpan::default()
        }];
        let host = [(
            "host.cpu.busy_percent".to_owned(),
            make_series(values, is_sampled),
        )]
        .into();
        let oldest_ms = times_ms.first().copied().unwrap_or(100_000);
        let storage = Storage {
            on_disk: !is_sampled,
            problem: None,
            reach_ms: resolution_ms * 1000,
        };
        let (from_ms, to_ms) = (oldest_ms, 100_000);
        HistorySpan {
            from_ms,
            to_ms,
            resolution_ms,
            oldest_ms,
            storage,
            times_ms,
            gpus,
            host,
            ..HistorySpan::default()
        }
    }

    fn list_power(span: &HistorySpan) -> Vec<(u64, Option<f64>)> {
        span.times_ms
            .iter()
            .copied()
            .zip(span.gpus[0].metrics[FIELD].values.iter().copied())
            .collect()
    }

    #[test]
    fn complete_history_of_other_server_survives_merge() {
        let theirs = make_span(
            1000,
            &[
                (91_000, Some(1.0)),
                (92_000, Some(2.0)),
                (93_000, Some(3.0)),
            ],
            true,
        );
        let ours = make_span(10_000, &[(90_000, Some(7.0))], false);
        let both = merge_spans(ours, theirs.clone(), &select_metrics());
        assert_eq!(
            (list_power(&both), both.resolution_ms),
            (list_power(&theirs), 1000)
        );
        assert!(both.storage.on_disk && both.storage.reach_ms == 10_000_000);
        let nothing = HistorySpan {
            to_ms: 100_000,
            oldest_ms: 100_000,
            ..HistorySpan::default()
        };
        assert_eq!(
            list_power(&merge_spans(nothing, theirs.clone(), &select_metrics())),
            list_power(&theirs)
        );
    }

    #[test]
    fn local_history_fills_gaps_of_other_server() {
        let theirs = make_span(
            1000,
            &[
                (50_000, Some(5.0)),
                (51_000, Some(6.0)),
                (70_000, Some(9.0)),
            ],
            true,
        );
        let ours = make_span(
            1000,
            &[
                (20_000, Some(2.0)),
                (51_000, Some(6.0)),
                (60_500, Some(7.0)),
            ],
            true,
        );
        let both = merge_spans(ours, theirs, &select_metrics());
        let all = [
            (20_000, 2.0),
            (50_000, 5.0),
            (51_000, 6.0),
            (60_500, 7.0),
            (70_000, 9.0),
        ];
        assert_eq!(
            list_power(&both),
            all.map(|(at_ms, watts)| (at_ms, Some(watts)))
        );
        assert_eq!(
            (
                both.oldest_ms,
                both.gpus[0].index,
                both.gpus[0].name.as_deref()
            ),
            (20_000, 3, Some("H200"))
        );
        assert_eq!(both.host["host.cpu.busy_percent"].values.len(), 5);
    }

    #[test]
    fn merged_points_have_coarser_resolution() {
        let theirs = make_span(10_000, &[(80_000, Some(4.0)), (90_000, Some(8.0))], false);
        let ours = make_span(60_000, &[(0, Some(1.0))], false);
        let both = merge_spans(ours, theirs, &select_metrics());
        assert_eq!(list_power(&both), [(0, Some(1.0)), (60_000, Some(6.0))]);
        let watts = &both.gpus[0].metrics[FIELD];
        assert_eq!(
            (
                watts.min.as_ref().unwrap()[1],
                watts.max.as_ref().unwrap()[1]
            ),
            (Some(4.0), Some(8.0))
        );
    }

    #[test]
    fn events_and_conditions_of_two_servers_appear_once() {
        let mark = |at_ms, text: &str| Event {
            at_ms,
            gpu: None,
            what: EventKind::Mark(Mark {
                text: text.to_owned(),
                user: None,
            }),
        };
        let condition = |from_ms, to_ms| ConditionSpan {
            uuid: "GPU-0".to_owned(),
            from_ms,
            to_ms,
            condition: Condition {
                since_ms: from_ms,
                severity: Severity::Warning,
                text: String::new(),
                kind: ConditionKind::PageRetirementPending {},
            },
        };
        let mut ours = make_span(1000, &[], true);
        let mut theirs = ours.clone();
        ours.events = vec![mark(5, "own"), mark(6, "both")];
        theirs.events = vec![mark(4, "theirs"), mark(6, "both")];
        ours.conditions = vec![condition(10, Some(20)), condition(31, None)];
        theirs.conditions = vec![condition(30, Some(40))];
        let both = merge_spans(ours, theirs, &select_metrics());
        assert_eq!(
            both.events
                .iter()
                .map(|event| event.at_ms)
                .collect::<Vec<_>>(),
            [4, 5, 6]
        );
        assert_eq!(
            both.conditions
                .iter()
                .map(|one| one.from_ms)
                .collect::<Vec<_>>(),
            [10, 30]
        );
    }
}
