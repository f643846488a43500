//! The report, for people and for programs.

use gpumon_history::span::ConditionSpan;
use gpumon_probe::{local_time::time_zone, model::Vendor, units::duration, untrusted::escaped};
use serde_json::{Value, json};

use super::{
    advice::{give_advice, name},
    find::FoundJob,
    measure::{Measured, MeasuredDevice},
};
use crate::{
    commands::figures::{FIGURES, Figure, MEMORY_PEAK},
    describe,
    moment::shown,
    terminal::{
        columns::{Column, Columns},
        style::{DIM, STRONG, paint},
        units::{ABSENT, gib_in_column},
    },
};

/// Seen so lately, it still runs: history is written every ten seconds.
const RUNNING_MS: u64 = 30_000;

/// Where history has less than this of the time, that is said.
const KNOWN: f64 = 0.9;

/// So many are listed of a GPU.
const CONDITIONS: usize = 4;

pub(in crate::commands) fn as_json(job: &FoundJob, measured: &Measured) -> Value {
    let (from_ms, to_ms) = job.times_ms();
    let devices: Vec<_> = measured
        .devices
        .iter()
        .map(|device| {
            json!({
                "index": device.index,
                "uuid": device.uuid,
                "name": device.name,
                "is_mig": device.is_mig,
                "held_ms": device.held_ms,
                "known_ms": device.known_ms,
                "idle_percent": device.idle_percent.map(|percent| (percent * 10.0).round() / 10.0),
                "memory_total_bytes": device.memory_total_bytes,
                "figures": device.figures.as_json(),
                "conditions": device.conditions,
            })
        })
        .collect();
    json!({
        "kind": job.kind,
        "id": job.spans.first().map(|span| &span.id),
        "name": job.spans.iter().find_map(|span| span.name.as_ref()),
        "user": job.user,
        "from_ms": from_ms,
        "to_ms": to_ms,
        "shared_with": job.others,
        "all": measured.all.as_json(),
        "gpus": devices,
        "advice": give_advice(measured, !job.others.is_empty()),
    })
}

pub(super) fn draw(
    job: &FoundJob,
    measured: &Measured,
    now_ms: u64,
    terminal: Option<usize>,
) -> String {
    let all = COLUMNS
        .into_iter()
        .chain(FIGURES.iter().map(Figure::column));
    let rows: Vec<_> = measured.devices.iter().map(cells).collect();
    let columns = Columns::new(&all.collect::<Vec<_>>(), &rows, terminal);
    let mut text = head(job, measured, now_ms) + "\n" + &columns.headings();
    for row in &rows {
        text += &(columns.line(row) + "\n");
    }
    for device in &measured.devices {
        for condition in device.conditions.iter().take(CONDITIONS) {
            text += &columns.format_remark(0, DIM, &escaped(&told(device, condition)));
        }
        if let Some(more) = device
            .conditions
            .len()
            .checked_sub(CONDITIONS)
            .filter(|more| *more > 0)
        {
            text += &columns.format_remark(
                0,
                DIM,
                &format!("{}: {more} more conditions, in --json", name(device)),
            );
        }
    }
    let (held_ms, known_ms) = measured
        .devices
        .iter()
        .fold((0, 0), |(held_ms, known_ms), device| {
            (held_ms + device.held_ms, known_ms + device.known_ms)
        });
    if (known_ms as f64) < held_ms as f64 * KNOWN {
        let share = 100.0 * known_ms as f64 / held_ms as f64;
        text += &columns.format_remark(
            0,
            DIM,
            &format!("History covers {share:.0} % of this time; the figures are for that part."),
        );
    }
    if !job.others.is_empty() {
        let others: Vec<_> = job.others.iter().map(|other| escaped(other)).collect();
        text += &columns.format_remark(
            0,
            DIM,
            &format!(
                "Also on these GPUs at the same time, and included in the figures: {}.",
                others.join(", ")
            ),
        );
    }
    for sentence in give_advice(measured, !job.others.is_empty()) {
        text += &(columns.wrap_sentence(0, &sentence) + "\n");
    }
    text
}

fn head(job: &FoundJob, measured: &Measured, now_ms: u64) -> String {
    let zone = time_zone();
    let (from_ms, to_ms) = job.times_ms();
    let user = job
        .user
        .as_ref()
        .map_or_else(String::new, |user| format!(" of {user}"));
    let count = measured.devices.len();
    let devices = if count == 1 {
        "1 GPU".to_owned()
    } else {
        format!("{count} GPUs")
    };
    let from = shown(from_ms, &zone);
    let time = duration(to_ms - from_ms);
    let until = if now_ms.saturating_sub(to_ms) < RUNNING_MS {
        "now".to_owned()
    } else {
        shown(to_ms, &zone)
    };
    let title = escaped(&describe::capital(&format!("{}{user}", job.label)));
    format!(
        "{}: {devices}, {from} to {until} ({time})\n",
        paint(STRONG, &title)
    )
}

/// The columns before those of [`FIGURES`].
const COLUMNS: [Column; 4] = [
    Column::align_left("GPU", 0),
    Column::align_left("Model", 6),
    Column::align_right("Time", 0),
    Column::align_right("Idle", 0),
];

fn cells(device: &MeasuredDevice) -> Vec<String> {
    let index = if device.is_mig {
        format!("MIG {}", device.index)
    } else {
        device.index.to_string()
    };
    let model = device.name.as_deref().map_or(ABSENT, Vendor::strip_from);
    let idle = device
        .idle_percent
        .map_or_else(|| ABSENT.to_owned(), |percent| format!("{percent:.0} %"));
    let mut figures: Vec<_> = device.figures.cells().collect();
    if let (Some(total), Some(_)) = (device.memory_total_bytes, device.figures.0[MEMORY_PEAK]) {
        let used = figures[MEMORY_PEAK].trim_end_matches(" GiB").to_owned();
        figures[MEMORY_PEAK] = format!("{used} of {} GiB", gib_in_column(total as u64));
    }
    [index, escaped(model), duration(device.held_ms), idle]
        .into_iter()
        .chain(figures)
        .collect()
}

fn told(device: &MeasuredDevice, condition: &ConditionSpan) -> String {
    let time = condition.to_ms.map_or_else(
        || "since then".to_owned(),
        |to_ms| format!("for {}", duration(to_ms.saturating_sub(condition.from_ms))),
    );
    let from = shown(condition.from_ms, &time_zone());
    format!(
        "{}: {} ({from}, {time})",
        name(device),
        condition.condition.text
    )
}
