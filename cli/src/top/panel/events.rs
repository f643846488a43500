//! The view of current conditions and past events.

use std::mem;

use gpumon_probe::model::{Condition, ConditionKind, Event, EventKind, GpuSample, Health};
use ratatui::{layout::Rect, style::Style};

use super::{StyledLine, draw_scroll_view};
use crate::{
    describe::{Level, describe_event, find_unreadable_state},
    terminal::units::format_compact_duration,
    top::{
        model::Model,
        painter::Painter,
        state::State,
        text::{align_left, align_right, format_time, make_printable, wrap},
    },
};

/// The maximum time between an Xid and the start of a condition, in milliseconds. An Xid that is
/// farther away does not count as the condition's cause.
const MAX_DELAY_MS: u64 = 5000;

pub(super) fn draw_events(
    painter: &mut Painter<'_>,
    area: Rect,
    model: &Model,
    state: &State,
) -> u16 {
    let style = |level: Level| painter.theme.choose_level_style(level);
    let columns = usize::from(area.width);
    let dim = painter.theme.dim;
    let mut lines: Vec<StyledLine> = Vec::new();
    let is_shown = |gpu: Option<u32>| {
        state
            .gpu
            .is_none_or(|index| gpu.is_none_or(|gpu| gpu == index))
    };
    for gpu in model.gpus().iter().filter(|gpu| is_shown(Some(gpu.index))) {
        let mut hold = |since_ms: u64, text: &str, level: Level| {
            let since = format!(
                "for {}",
                format_compact_duration(model.now_ms().saturating_sub(since_ms))
            );
            add_event_lines(
                &mut lines,
                columns,
                (&since, dim),
                Some(gpu.index),
                &make_printable(text),
                style(level),
            );
        };
        if let Some((since_ms, phrase)) = find_unreadable_state(gpu) {
            hold(since_ms, &phrase.long, phrase.level);
        }
        for condition in &gpu.conditions {
            hold(
                condition.since_ms,
                &condition.text,
                condition.severity.into(),
            );
        }
    }
    if lines.is_empty() {
        lines.push(vec![("No problems found.".to_owned(), painter.theme.well)]);
    }
    lines.push(StyledLine::new());
    let before = lines.len();
    for event in model.events.iter().rev() {
        let gpu = event.gpu.as_ref().map(|gpu| gpu.index);
        let holds = gpu
            .and_then(|gpu| model.find_gpu(gpu))
            .is_some_and(|gpu| is_current_condition(event, gpu));
        if is_shown(gpu)
            && !holds
            && !model
                .events
                .iter()
                .any(|other| is_condition_caused_by_xid(event, other))
        {
            let (level, text) = describe_event(event);
            add_event_lines(
                &mut lines,
                columns,
                (&format_time(event.at_ms), dim),
                gpu,
                &make_printable(&text),
                style(level),
            );
        }
    }
    if lines.len() == before {
        lines.push(vec![(
            "No events since monitoring started.".to_owned(),
            dim,
        )]);
    }
    draw_scroll_view(painter, area, None, &lines, state.view_scroll)
}

/// Returns `true` if the event belongs to a condition that still exists. The view then already
/// lists this condition.
fn is_current_condition(event: &Event, gpu: &GpuSample) -> bool {
    let is_current = |same: &dyn Fn(&Condition) -> bool| gpu.conditions.iter().any(same);
    match (&event.what, &gpu.health) {
        (EventKind::ConditionBegan(began), _) => is_current(&|now| {
            now.since_ms == began.since_ms
                && mem::discriminant(&now.kind) == mem::discriminant(&began.kind)
                && find_xid_code(now) == find_xid_code(began)
        }),
        (EventKind::Xid(xid), _) => is_current(&|now| {
            find_xid_code(now) == Some(xid.code)
                && now.since_ms.abs_diff(event.at_ms) <= MAX_DELAY_MS
        }),
        (EventKind::GpuLost, Health::Lost { since_ms })
        | (EventKind::GpuHung, Health::Hung { since_ms })
        | (EventKind::GpuFailed { .. }, Health::Failed { since_ms, .. })
        | (EventKind::GpuAsleep, Health::Asleep { since_ms }) => event.at_ms >= *since_ms,
        _ => false,
    }
}

/// Returns `true` if `event` is the start of a condition that was caused by the Xid `other`. The
/// event is then redundant.
fn is_condition_caused_by_xid(event: &Event, other: &Event) -> bool {
    match (&event.what, &other.what) {
        (EventKind::ConditionBegan(began), EventKind::Xid(xid)) => {
            find_xid_code(began) == Some(xid.code)
                && event.gpu == other.gpu
                && event.at_ms.abs_diff(other.at_ms) <= MAX_DELAY_MS
        }
        _ => false,
    }
}

fn find_xid_code(condition: &Condition) -> Option<u32> {
    if let ConditionKind::Xid { code, .. } = condition.kind {
        Some(code)
    } else {
        None
    }
}

/// Adds an event's time, GPU and text, using as many lines as needed.
fn add_event_lines(
    lines: &mut Vec<StyledLine>,
    columns: usize,
    (when, dim): (&str, Style),
    gpu: Option<u32>,
    text: &str,
    style: Style,
) {
    let gpu = gpu.map_or_else(String::new, |gpu| format!("GPU {gpu}"));
    let margin = format!("{}  {}  ", align_right(when, 9), align_left(&gpu, 6));
    let width = margin.chars().count();
    for (place, part) in wrap(text, columns.saturating_sub(width))
        .into_iter()
        .enumerate()
    {
        let margin = if place == 0 {
            margin.clone()
        } else {
            " ".repeat(width)
        };
        lines.push(vec![(margin, dim), (part, style)]);
    }
}
