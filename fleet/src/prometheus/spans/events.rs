//! The events of a time range that ends now.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{
    super::{
        answer::{Answer, Row},
        ask::{Source, Steps},
        cached::Fresh,
        client::QueryError,
        metrics::{Families, Family},
        now::Told,
        promql::series,
        questions::{Scope, up},
        target::{Interner, Target, gpu},
    },
    SpanReader, fresh,
};
use crate::{
    model::{FleetEvent, FleetEventKind, FleetEvents},
    reader::Range,
};

/// The number of steps of a range query.
const MOMENTS: u32 = 120;

/// The number of steps for single GPUs, if no recording rule has recorded which of them did not
/// respond.
const MOMENTS_OF_GPUS: u32 = 40;

/// The recording rule for GPUs that did not respond.
const DOWN_RULE: &str = "gpu:gpumon_gpu_up:zero";

/// A metric of the same rules that exists for every node, even without problems.
const RULES: &str = "instance:gpumon_gpus_down:sum";

/// The identity of an event. Occurrences with the same key are counted together.
type Key = (Arc<Target>, Option<u32>, FleetEventKind, Option<u32>);

#[derive(Default)]
struct Found {
    count: u32,
    last_s: f64,
    lasts: bool,
}

pub(in crate::prometheus) async fn read(
    source: Arc<Source>,
    told: Told,
    range: Range,
    before: Option<Arc<FleetEvents>>,
) -> Fresh<FleetEvents> {
    let reader = SpanReader::new(source, told, range);
    let empty = FleetEvents::empty(reader.from_ms, reader.to_ms);
    let period = Duration::from_secs(u64::from(range.seconds() / 288).clamp(60, 900));
    fresh(reader.events().await, before, empty, period)
}

/// Returns the events before anything has been read.
pub(in crate::prometheus) fn nothing(source: &Arc<Source>, range: Range) -> FleetEvents {
    let reader = SpanReader::new(Arc::clone(source), Told::default(), range);
    FleetEvents::empty(reader.from_ms, reader.to_ms)
}

impl SpanReader {
    async fn events(mut self) -> Result<FleetEvents, QueryError> {
        let mut all: Vec<(Key, Found)> = Vec::new();
        let label = self.source.settings.node_label.clone();
        let steps = |moments| {
            let step = self.range.seconds().div_ceil(moments).next_multiple_of(60);
            Steps::until_this_minute(self.range.seconds(), step)
        };
        let (fine, coarse) = (steps(MOMENTS), steps(MOMENTS_OF_GPUS));
        let families = self.told.families;
        if families.own {
            let counters = self.metric("gpumon_gpu_xid_errors_total", "");
            let of = label.clone();
            all.extend(
                self.ask(&counters, Some(fine), move |answer| {
                    xids(answer, fine, of.as_deref())
                })
                .await?
                .unwrap_or_default(),
            );
            let lasting = self.metric("gpumon_gpu_xid", "");
            let of = label.clone();
            let lasting = self
                .ask(&format!("{lasting} == 1"), None, move |answer| {
                    keys(answer, of.as_deref())
                })
                .await?;
            for key in lasting.unwrap_or_default() {
                mark_lasting(&mut all, key, self.to_ms);
            }
            let rules = self.metric(RULES, "");
            let has_rules = self.ask_number(&format!("count({rules})")).await?.is_some();
            let (down, steps) = if has_rules {
                (
                    format!(
                        "count_over_time({}[{}s])",
                        self.metric(DOWN_RULE, ""),
                        fine.step_s
                    ),
                    fine,
                )
            } else {
                (format!("{} == 0", self.metric("gpumon_gpu_up", "")), coarse)
            };
            let now = format!("{} == 0", self.metric("gpumon_gpu_up", ""));
            all.extend(
                self.runs(&down, steps, &now, FleetEventKind::GpuNotResponding)
                    .await?,
            );
        }
        let dcgm = [
            (Family::Renamed, "DCGM_FI_DEV_XID_ERROR"),
            (Family::Old, "DCGM_FI_DEV_XID_ERRORS"),
        ];
        let names: Vec<_> = dcgm
            .into_iter()
            .filter(|(of, _)| families.has(*of))
            .map(|(_, name)| name)
            .collect();
        if let Some(xid) = series(&names, &self.source.matchers) {
            let of = label.clone();
            let read = move |answer: &Answer<'_>| dcgm_xids(answer, coarse, of.as_deref());
            all.extend(
                self.ask(&format!("{xid} > 0"), Some(coarse), read)
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
        if let Some(up) = up(&scope) {
            let down = format!("min_over_time({up}[{}s]) == 0", fine.step_s);
            all.extend(
                self.runs(
                    &down,
                    fine,
                    &format!("{up} == 0"),
                    FleetEventKind::NodeUnreachable,
                )
                .await?,
            );
        }
        self.check()?;
        Ok(self.events_of(all))
    }

    /// Returns the periods in which an expression had a value. `now` is the expression for events
    /// that still last, because a step of a week's range is longer than an hour.
    async fn runs(
        &mut self,
        expression: &str,
        steps: Steps,
        now: &str,
        kind: FleetEventKind,
    ) -> Result<Vec<(Key, Found)>, QueryError> {
        let label = self.source.settings.node_label.clone();
        let key = move |interner: &mut Interner<'_>, row: &Row<'_>| -> Option<Key> {
            let of_gpu = kind == FleetEventKind::GpuNotResponding;
            let gpu = if of_gpu {
                Some(gpu(&row.labels)?)
            } else {
                None
            };
            Some((interner.target(&row.labels, Family::Own)?, gpu, kind, None))
        };
        let of = label.clone();
        let read = move |answer: &Answer<'_>| {
            let mut interner = Interner::new(of.as_deref());
            answer
                .rows
                .iter()
                .filter_map(|row| Some((key(&mut interner, row)?, found(row, steps))))
                .collect()
        };
        let mut all: Vec<(Key, Found)> = self
            .ask(expression, Some(steps), read)
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
        let lasting: Vec<Key> = self.ask(now, None, read).await?.unwrap_or_default();
        for (_, found) in &mut all {
            found.lasts = false;
        }
        for key in lasting {
            mark_lasting(&mut all, key, self.to_ms);
        }
        Ok(all)
    }

    fn events_of(self, all: Vec<(Key, Found)>) -> FleetEvents {
        let mut merged: BTreeMap<_, Found> = BTreeMap::new();
        for ((target, gpu, kind, xid), found) in
            all.into_iter().filter(|(_, found)| found.count > 0)
        {
            // Two jobs or replicas report the same events.
            let known = merged
                .entry((
                    self.told.nodes.name_of(&target).to_owned(),
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
        let event =
            |((node, gpu, kind, xid), found): ((String, Option<u32>, u8, Option<u32>), Found)| {
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
            ..FleetEvents::empty(self.from_ms, self.to_ms)
        };
        events.set_events(merged.into_iter().map(event).collect());
        events
    }
}

/// Returns how often an event has started, and the time when it last occurred.
fn found(row: &Row<'_>, steps: Steps) -> Found {
    let step = f64::from(steps.step_s);
    let mut found = Found::default();
    for (at, _) in &row.samples {
        if found.count == 0 || at - found.last_s > step * 1.5 {
            found.count += 1;
        }
        found.last_s = *at;
    }
    found.lasts = found.last_s >= steps.to as f64 - step * 0.5;
    found
}

/// Returns Xids from gpumon's counters. If a counter first appears within the range, its whole
/// value was counted within it.
fn xids(answer: &Answer<'_>, steps: Steps, label: Option<&str>) -> Vec<(Key, Found)> {
    let mut interner = Interner::new(label);
    let event = |row: &Row<'_>| {
        let key = key(row, &mut interner)?;
        let (begin, first) = *row.samples.first()?;
        let is_before = begin < steps.from as f64 + f64::from(steps.step_s) * 0.5;
        let mut found = Found::default();
        let mut last = if is_before { first } else { 0.0 };
        for (at, value) in row
            .samples
            .iter()
            .copied()
            .filter(|(_, value)| value.is_finite())
        {
            // A value lower than the previous one means that the counter was reset.
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

/// Returns Xids from dcgm-exporter, which exports the newest one of each GPU while it runs.
fn dcgm_xids(answer: &Answer<'_>, steps: Steps, label: Option<&str>) -> Vec<(Key, Found)> {
    let mut interner = Interner::new(label);
    let mut all = Vec::new();
    for row in &answer.rows {
        let Some((target, gpu)) = interner
            .target(&row.labels, Family::Old)
            .zip(gpu(&row.labels))
        else {
            continue;
        };
        let mut codes: BTreeMap<u32, Found> = BTreeMap::new();
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

fn keys(answer: &Answer<'_>, label: Option<&str>) -> Vec<Key> {
    let mut interner = Interner::new(label);
    answer
        .rows
        .iter()
        .filter_map(|row| key(row, &mut interner))
        .collect()
}

/// Returns the identity of an Xid event.
fn key(row: &Row<'_>, interner: &mut Interner<'_>) -> Option<Key> {
    let code = row.labels.get("code").parse().ok()?;
    Some((
        interner.target(&row.labels, Family::Own)?,
        Some(gpu(&row.labels)?),
        FleetEventKind::Xid,
        Some(code),
    ))
}

fn mark_lasting(all: &mut Vec<(Key, Found)>, key: Key, now_ms: u64) {
    let last_s = now_ms as f64 / 1000.0;
    match all.iter_mut().find(|(known, _)| *known == key) {
        Some((_, found)) => {
            found.lasts = true;
            if found.count == 0 {
                *found = Found {
                    count: 1,
                    last_s,
                    lasts: true,
                };
            }
        }
        None => all.push((
            key,
            Found {
                count: 1,
                last_s,
                lasts: true,
            },
        )),
    }
}
