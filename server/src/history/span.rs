//! Spans of history, combined from memory and disk.

use std::sync::{Arc, RwLock};

use gpumon_history::{
    bucket::BUCKET_MS,
    database::{Database, DatabaseError, REACH_MS, StoredSpan},
    memory,
    plan::{Plan, SpanRequest, Tier},
    span::{ConditionSpan, HistorySpan, Storage},
    writer::Writer,
};
use gpumon_probe::model::Event;

use super::HistoryStore;
use crate::lock;

/// Returns a span of history. `events` are the events in memory. The disk is read without holding
/// the lock.
pub(crate) fn read_span(
    past: &RwLock<HistoryStore>,
    request: &SpanRequest,
    events: Vec<Event>,
) -> HistorySpan {
    let writer = lock::read(past).writer.clone();
    let (disk, mut problem) = open_disk(writer.as_ref());
    let mut failed = |error: &DatabaseError| {
        if let (Some(writer), Some(disk)) = (&writer, &disk) {
            writer.report_read_error(disk, error);
        }
        problem = Some(error.to_string());
    };
    let on_disk = disk
        .as_ref()
        .map(Database::list_tiers)
        .transpose()
        .inspect_err(&mut failed)
        .unwrap_or_default();
    let tiers = list_tiers(&lock::read(past), &on_disk.unwrap_or_default());
    let plan = Plan::new(request, &tiers);
    let mut grid = plan.new_grid(&request.wanted);
    let mut stored = StoredSpan::default();
    if let Some(disk) = &disk
        && let Err(error) = stored.read(disk, &plan, tiers.get(plan.tier), &mut grid)
    {
        failed(&error);
    }
    let past = lock::read(past);
    if !tiers.get(plan.tier).is_some_and(|tier| tier.is_sampled) {
        past.memory.add_to_grid(&mut grid, stored.end_ms);
        let end_ms = past
            .memory
            .time_range_ms()
            .map_or(0, |(_, newest_ms)| newest_ms + BUCKET_MS);
        stored.end_ms = stored.end_ms.max(end_ms);
    }
    past.recent.add_to_grid(&mut grid, stored.end_ms);
    let storage = Storage {
        on_disk: disk.is_some(),
        problem,
        reach_ms: if disk.is_some() {
            REACH_MS
        } else {
            memory::REACH_MS
        },
    };
    let known = |uuid: &str| past.buckets.find_device(uuid);
    let mut span = stored.into_span(&plan, grid, storage, known);
    // The conditions in memory are at least as recent as those on disk.
    past.buckets
        .conditions(plan.from_ms, plan.to_ms)
        .for_each(|condition| add_condition(&mut span.conditions, condition));
    span.conditions.sort_by_key(|condition| condition.from_ms);
    for event in events
        .into_iter()
        .filter(|event| (plan.from_ms..=plan.to_ms).contains(&event.at_ms))
    {
        if !span.events.contains(&event) {
            span.events.push(event);
        }
    }
    span.events.sort_by_key(|event| event.at_ms);
    span
}

/// Returns the database if it can be opened, and the writer's or reader's problem if there is one.
fn open_disk(writer: Option<&Arc<Writer>>) -> (Option<Database>, Option<String>) {
    let Some(writer) = writer else {
        return (None, None);
    };
    match writer.open_reader() {
        Ok(disk) => (disk, writer.status().problem),
        Err(error) => (None, Some(error.to_string())),
    }
}

/// Returns the available tiers: samples, buckets in memory or on disk, and the coarser tiers on
/// disk.
fn list_tiers(past: &HistoryStore, stored: &[(usize, Tier)]) -> Vec<Tier> {
    let recent = past.recent.time_range_ms().map(|(oldest_ms, _)| Tier {
        resolution_ms: past.recent.sample_spacing_ms(),
        oldest_ms,
        is_sampled: true,
    });
    let (finest, coarser) = stored.split_at(stored.partition_point(|(tier, _)| *tier == 0));
    let in_memory = past.memory.time_range_ms().map(|(oldest_ms, _)| oldest_ms);
    let oldest_ms = finest
        .iter()
        .map(|(_, tier)| tier.oldest_ms)
        .chain(in_memory)
        .min();
    let tens = oldest_ms.map(|oldest_ms| Tier {
        resolution_ms: BUCKET_MS,
        oldest_ms,
        is_sampled: false,
    });
    recent
        .into_iter()
        .chain(tens)
        .chain(coarser.iter().map(|(_, tier)| *tier))
        .collect()
}

fn add_condition(conditions: &mut Vec<ConditionSpan>, condition: &ConditionSpan) {
    match conditions
        .iter_mut()
        .find(|known| known.is_same_condition(condition))
    {
        Some(known) => known.clone_from(condition),
        None => conditions.push(condition.clone()),
    }
}
