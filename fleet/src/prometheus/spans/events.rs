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
        metrics::Family,
        query::{Source, Steps},
        query_table::{DCGM_XID_METRICS, Scope, build_up_query},
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

impl SpanReader {
    async fn query_events(mut self) -> Result<FleetEvents, QueryError> {
        let mut all: Vec<(EventKey, Occurrences)> = Vec::new();
        let steps = |moments| {
            let step = self.range.seconds().div_ceil(moments).next_multiple_of(60);
            Steps::new_until_this_minute(self.range.seconds(), step)
        };
        let (fine, coarse) = (steps(MAX_STEPS), steps(MAX_GPU_STEPS));
        let families = self.told.families;
        let scope = Scope {
            matchers: &self.source.matchers,
            families,
            present: families,
            jobs: &self.told.jobs,
        };
        let xid = scope.build_dcgm_selector(DCGM_XID_METRICS);
        let up = build_up_query(&scope);
        if families.own {
            let counters = self.build_metric_selector("gpumon_gpu_xid_errors_total", "");
            let count =
                move |row: &Row<'_>, interner: &mut Interner<'_>| count_xids(row, interner, fine);
            all.extend(self.query_rows(&counters, Some(fine), count).await?);
            let lasting = self.build_metric_selector("gpumon_gpu_xid", "");
            let lasting = self
                .query_rows(&format!("{lasting} == 1"), None, read_xid_key)
                .await?;
            for key in lasting {
                mark_lasting_event(&mut all, key, self.to_ms);
            }
            let rules = self.build_metric_selector(DOWN_COUNT_RULE, "");
            let has_rules = self
                .query_number(&format!("count({rules})"))
                .await?
                .is_some();
            let now = format!("{} == 0", self.build_metric_selector("gpumon_gpu_up", ""));
            let (down, steps) = if has_rules {
                let rule = self.build_metric_selector(DOWN_RULE, "");
                (format!("count_over_time({rule}[{}s])", fine.step_s), fine)
            } else {
                (now.clone(), coarse)
            };
            all.extend(
                self.query_periods(&down, steps, &now, FleetEventKind::GpuNotResponding)
                    .await?,
            );
        }
        if let Some(xid) = xid {
            let count = move |row: &Row<'_>, interner: &mut Interner<'_>| {
                count_dcgm_xids(row, interner, coarse)
            };
            let found = self
                .query_rows(&format!("{xid} > 0"), Some(coarse), count)
                .await?;
            all.extend(found.into_iter().flatten());
        }
        let down = format!("min_over_time({up}[{}s]) == 0", fine.step_s);
        let now = format!("{up} == 0");
        all.extend(
            self.query_periods(&down, fine, &now, FleetEventKind::NodeUnreachable)
                .await?,
        );
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
        let key = move |row: &Row<'_>, interner: &mut Interner<'_>| -> Option<EventKey> {
            let of_gpu = kind == FleetEventKind::GpuNotResponding;
            let gpu = if of_gpu {
                Some(read_gpu_index(&row.labels)?)
            } else {
                None
            };
            let target = interner.intern_target(&row.labels, Family::Own)?;
            Some((target, gpu, kind, None))
        };
        let event = move |row: &Row<'_>, interner: &mut Interner<'_>| {
            Some((key(row, interner)?, count_occurrences(row, steps)))
        };
        let mut all = self.query_rows(expression, Some(steps), event).await?;
        let lasting = self.query_rows(now, None, key).await?;
        for (_, found) in &mut all {
            found.lasts = false;
        }
        for key in lasting {
            mark_lasting_event(&mut all, key, self.to_ms);
        }
        Ok(all)
    }

    /// Sends a query, and returns the results of `read` for the series in the response.
    async fn query_rows<T: Send + 'static>(
        &mut self,
        expression: &str,
        steps: Option<Steps>,
        read: impl Fn(&Row<'_>, &mut Interner<'_>) -> Option<T> + Send + 'static,
    ) -> Result<Vec<T>, QueryError> {
        let label = self.source.settings.node_label.clone();
        let read_all = move |answer: &Answer<'_>| {
            let mut interner = Interner::new(label.as_deref());
            let rows = answer.rows.iter();
            rows.filter_map(|row| read(row, &mut interner))
                .collect::<Vec<_>>()
        };
        self.send_query(expression, steps, read_all).await
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
    row: &Row<'_>,
    interner: &mut Interner<'_>,
    steps: Steps,
) -> Option<(EventKey, Occurrences)> {
    let key = read_xid_key(row, interner)?;
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
}

/// Counts Xids using dcgm-exporter's metrics. They contain only the newest Xid of each GPU, and
/// only while the exporter runs.
fn count_dcgm_xids(
    row: &Row<'_>,
    interner: &mut Interner<'_>,
    steps: Steps,
) -> Option<Vec<(EventKey, Occurrences)>> {
    let target = interner.intern_target(&row.labels, Family::Old)?;
    let gpu = read_gpu_index(&row.labels)?;
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
    let events = codes.into_iter().map(|(code, mut found)| {
        found.lasts = is_now && last == Some(code);
        let key = (
            Arc::clone(&target),
            Some(gpu),
            FleetEventKind::Xid,
            Some(code),
        );
        (key, found)
    });
    Some(events.collect())
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
    let lasting = Occurrences {
        count: 1,
        last_s: now_ms as f64 / 1000.0,
        lasts: true,
    };
    match all.iter_mut().find(|(known, _)| *known == key) {
        Some((_, found)) if found.count > 0 => found.lasts = true,
        Some((_, found)) => *found = lasting,
        None => all.push((key, lasting)),
    }
}
