//! The events of a time range that ends now.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{SpanReader, to_fresh_value};
use crate::{
    model::{FleetEvent, FleetEventKind, FleetEvents},
    prometheus::{
        answer::{Answer, Row},
        cached::FreshValue,
        client::QueryError,
        current_fleet::FleetContext,
        labels::{Interner, Target, read_gpu_index},
        metrics::{Families, Family},
        query::{Source, Steps, build_selector},
        query_table::{Scope, build_up_query},
    },
    source::Range,
};

/// The maximum number of steps in a range query.
const MAX_STEPS: u32 = 120;

/// The maximum number of steps in a range query that reads a series of every GPU. For GPUs that did
/// not respond, such a query is sent only if Prometheus lacks the recording rules for them.
const MAX_GPU_STEPS: u32 = 40;

/// The recording rule for GPUs that did not respond.
const DOWN_RULE: &str = "gpu:gpumon_gpu_up:zero";

/// A metric of the same recording rules as `DOWN_RULE`. It exists for every node, even a node
/// without problems.
const DOWN_COUNT_RULE: &str = "instance:gpumon_gpus_down:sum";

/// The key that identifies an event. Occurrences with the same key are counted together.
type EventKey = (Arc<Target>, Option<u32>, FleetEventKind, Option<u32>);

#[derive(Default)]
struct Occurrences {
    count: u32,
    last_s: f64,
    lasts: bool,
}

pub(in crate::prometheus) async fn read_events(
    source: Arc<Source>,
    told: FleetContext,
    range: Range,
    before: Option<Arc<FleetEvents>>,
) -> FreshValue<FleetEvents> {
    let reader = SpanReader::new(source, told, range);
    let empty = FleetEvents::new_loading(reader.from_ms, reader.to_ms);
    let period = Duration::from_secs(u64::from(range.seconds() / 288).clamp(60, 900));
    to_fresh_value(reader.query_events().await, before, empty, period)
}

/// Returns the response for a time range before anything has been read.
pub(in crate::prometheus) fn empty_events(source: &Arc<Source>, range: Range) -> FleetEvents {
    let reader = SpanReader::new(Arc::clone(source), FleetContext::default(), range);
    FleetEvents::new_loading(reader.from_ms, reader.to_ms)
}

impl SpanReader {
    async fn query_events(mut self) -> Result<FleetEvents, QueryError> {
        let mut all: Vec<(EventKey, Occurrences)> = Vec::new();
        let label = self.source.settings.node_label.clone();
        let steps = |moments| {
            let step = self.range.seconds().div_ceil(moments).next_multiple_of(60);
            Steps::new_until_this_minute(self.range.seconds(), step)
        };
        let (fine, coarse) = (steps(MAX_STEPS), steps(MAX_GPU_STEPS));
        let families = self.told.families;
        if families.own {
            let counters = self.build_metric_selector("gpumon_gpu_xid_errors_total", "");
            let of = label.clone();
            all.extend(
                self.send_query(&counters, Some(fine), move |answer| {
                    count_xids(answer, fine, of.as_deref())
                })
                .await?
                .unwrap_or_default(),
            );
            let lasting = self.build_metric_selector("gpumon_gpu_xid", "");
            let of = label.clone();
            let lasting = self
                .send_query(&format!("{lasting} == 1"), None, move |answer| {
                    list_xid_keys(answer, of.as_deref())
                })
                .await?;
            for key in lasting.unwrap_or_default() {
                mark_lasting_event(&mut all, key, self.to_ms);
            }
            let rules = self.build_metric_selector(DOWN_COUNT_RULE, "");
            let has_rules = self
                .query_number(&format!("count({rules})"))
                .await?
                .is_some();
            let (down, steps) = if has_rules {
                (
                    format!(
                        "count_over_time({}[{}s])",
                        self.build_metric_selector(DOWN_RULE, ""),
                        fine.step_s
                    ),
                    fine,
                )
            } else {
                (
                    format!("{} == 0", self.build_metric_selector("gpumon_gpu_up", "")),
                    coarse,
                )
            };
            let now = format!("{} == 0", self.build_metric_selector("gpumon_gpu_up", ""));
            all.extend(
                self.query_periods(&down, steps, &now, FleetEventKind::GpuNotResponding)
                    .await?,
            );
        }
        let dcgm = [
            (Family::Renamed, "DCGM_FI_DEV_XID_ERROR"),
            (Family::Old, "DCGM_FI_DEV_XID_ERRORS"),
        ];
        let names: Vec<_> = dcgm
            .into_iter()
            .filter(|(of, _)| families.contains(*of))
            .map(|(_, name)| name)
            .collect();
        if let Some(xid) = build_selector(&names, &self.source.matchers) {
            let of = label.clone();
            let read = move |answer: &Answer<'_>| count_dcgm_xids(answer, coarse, of.as_deref());
            all.extend(
                self.send_query(&format!("{xid} > 0"), Some(coarse), read)
                    .await?
                    .unwrap_or_default(),
            );
        }
        let scope = Scope {
            matchers: &self.source.matchers,
            families: Families::ALL,
            present: Families::ALL,
            jobs: &self.told.jobs,
        };
        if let Some(up) = build_up_query(&scope) {
            let down = format!("min_over_time({up}[{}s]) == 0", fine.step_s);
            all.extend(
                self.query_periods(
                    &down,
                    fine,
                    &format!("{up} == 0"),
                    FleetEventKind::NodeUnreachable,
                )
                .await?,
            );
        }
        self.check_any_query_answered()?;
        Ok(self.merge_events(all))
    }

    /// Returns the events of a kind. An event lasts as long as `expression` has a value. `now` is
    /// an instant query that finds ongoing events, because the steps of the range query can be more
    /// than an hour apart.
    async fn query_periods(
        &mut self,
        expression: &str,
        steps: Steps,
        now: &str,
        kind: FleetEventKind,
    ) -> Result<Vec<(EventKey, Occurrences)>, QueryError> {
        let label = self.source.settings.node_label.clone();
        let key = move |interner: &mut Interner<'_>, row: &Row<'_>| -> Option<EventKey> {
            let of_gpu = kind == FleetEventKind::GpuNotResponding;
            let gpu = if of_gpu {
                Some(read_gpu_index(&row.labels)?)
            } else {
                None
            };
            Some((
                interner.intern_target(&row.labels, Family::Own)?,
                gpu,
                kind,
                None,
            ))
        };
        let of = label.clone();
        let read = move |answer: &Answer<'_>| {
            let mut interner = Interner::new(of.as_deref());
            answer
                .rows
                .iter()
                .filter_map(|row| Some((key(&mut interner, row)?, count_occurrences(row, steps))))
                .collect()
        };
        let mut all: Vec<(EventKey, Occurrences)> = self
            .send_query(expression, Some(steps), read)
            .await?
            .unwrap_or_default();
        let read = move |answer: &Answer<'_>| {
            let mut interner = Interner::new(label.as_deref());
            answer
                .rows
                .iter()
                .filter_map(|row| key(&mut interner, row))
                .collect()
        };
        let lasting: Vec<EventKey> = self.send_query(now, None, read).await?.unwrap_or_default();
        for (_, found) in &mut all {
            found.lasts = false;
        }
        for key in lasting {
            mark_lasting_event(&mut all, key, self.to_ms);
        }
        Ok(all)
    }

    fn merge_events(self, all: Vec<(EventKey, Occurrences)>) -> FleetEvents {
        let mut merged: BTreeMap<_, Occurrences> = BTreeMap::new();
        for ((target, gpu, kind, xid), found) in
            all.into_iter().filter(|(_, found)| found.count > 0)
        {
            // Several jobs or Prometheus replicas can report the same event. Their counts are
            // therefore merged.
            let known = merged
                .entry((
                    self.told.nodes.node_name(&target).to_owned(),
                    gpu,
                    kind as u8,
                    xid,
                ))
                .or_default();
            known.count = known.count.max(found.count);
            known.last_s = known.last_s.max(found.last_s);
            known.lasts |= found.lasts;
        }
        let kinds = [
            FleetEventKind::Xid,
            FleetEventKind::GpuNotResponding,
            FleetEventKind::NodeUnreachable,
        ];
        let event = |((node, gpu, kind, xid), found): (
            (String, Option<u32>, u8, Option<u32>),
            Occurrences,
        )| {
            FleetEvent {
                node,
                gpu,
                kind: kinds[usize::from(kind)],
                xid,
                count: found.count,
                last_ms: (found.last_s * 1000.0) as u64,
                lasts: found.lasts,
            }
        };
        let mut events = FleetEvents {
            state: self.state(),
            problems: self.problems.clone(),
            ..FleetEvents::new_loading(self.from_ms, self.to_ms)
        };
        events.set_events(merged.into_iter().map(event).collect());
        events
    }
}

/// Returns how often an event has started, and when it last occurred.
fn count_occurrences(row: &Row<'_>, steps: Steps) -> Occurrences {
    let step = f64::from(steps.step_s);
    let mut found = Occurrences::default();
    for (at, _) in &row.samples {
        if found.count == 0 || at - found.last_s > step * 1.5 {
            found.count += 1;
        }
        found.last_s = *at;
    }
    found.lasts = found.last_s >= steps.to as f64 - step * 0.5;
    found
}

/// Counts Xids using gpumon's counters. If a counter first appears within the time range, its
/// initial value counts as well.
fn count_xids(
    answer: &Answer<'_>,
    steps: Steps,
    label: Option<&str>,
) -> Vec<(EventKey, Occurrences)> {
    let mut interner = Interner::new(label);
    let event = |row: &Row<'_>| {
        let key = read_xid_key(row, &mut interner)?;
        let (begin, first) = *row.samples.first()?;
        let is_before = begin < steps.from as f64 + f64::from(steps.step_s) * 0.5;
        let mut found = Occurrences::default();
        let mut last = if is_before { first } else { 0.0 };
        for (at, value) in row
            .samples
            .iter()
            .copied()
            .filter(|(_, value)| value.is_finite())
        {
            // A value that is lower than the previous one means that the counter was reset.
            let more = if value < last { value } else { value - last };
            if more > 0.0 {
                found.count = found.count.saturating_add(more as u32);
                found.last_s = at;
            }
            last = value;
        }
        Some((key, found))
    };
    answer.rows.iter().filter_map(event).collect()
}

/// Counts Xids using dcgm-exporter's metrics. They contain only the newest Xid of each GPU, and
/// only while the exporter runs.
fn count_dcgm_xids(
    answer: &Answer<'_>,
    steps: Steps,
    label: Option<&str>,
) -> Vec<(EventKey, Occurrences)> {
    let mut interner = Interner::new(label);
    let mut all = Vec::new();
    for row in &answer.rows {
        let Some((target, gpu)) = interner
            .intern_target(&row.labels, Family::Old)
            .zip(read_gpu_index(&row.labels))
        else {
            continue;
        };
        let mut codes: BTreeMap<u32, Occurrences> = BTreeMap::new();
        let mut last = None;
        for (at, value) in &row.samples {
            let code = *value as u32;
            let found = codes.entry(code).or_default();
            if last != Some(code) {
                found.count += 1;
                found.last_s = *at;
            }
            last = Some(code);
        }
        let is_now = row
            .samples
            .last()
            .is_some_and(|(at, _)| *at >= steps.to as f64 - f64::from(steps.step_s) * 0.5);
        for (code, mut found) in codes {
            found.lasts = is_now && last == Some(code);
            all.push((
                (
                    Arc::clone(&target),
                    Some(gpu),
                    FleetEventKind::Xid,
                    Some(code),
                ),
                found,
            ));
        }
    }
    all
}

fn list_xid_keys(answer: &Answer<'_>, label: Option<&str>) -> Vec<EventKey> {
    let mut interner = Interner::new(label);
    answer
        .rows
        .iter()
        .filter_map(|row| read_xid_key(row, &mut interner))
        .collect()
}

/// Returns the key of the Xid event that a series describes.
fn read_xid_key(row: &Row<'_>, interner: &mut Interner<'_>) -> Option<EventKey> {
    let code = row.labels.get("code").parse().ok()?;
    Some((
        interner.intern_target(&row.labels, Family::Own)?,
        Some(read_gpu_index(&row.labels)?),
        FleetEventKind::Xid,
        Some(code),
    ))
}

fn mark_lasting_event(all: &mut Vec<(EventKey, Occurrences)>, key: EventKey, now_ms: u64) {
    let last_s = now_ms as f64 / 1000.0;
    match all.iter_mut().find(|(known, _)| *known == key) {
        Some((_, found)) => {
            found.lasts = true;
            if found.count == 0 {
                *found = Occurrences {
                    count: 1,
                    last_s,
                    lasts: true,
                };
            }
        }
        None => all.push((
            key,
            Occurrences {
                count: 1,
                last_s,
                lasts: true,
            },
        )),
    }
}
