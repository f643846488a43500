//! One line per process and GPU.

use gpumon_probe::model::{Owner, Process, Sample};
use unicode_width::UnicodeWidthStr;

use super::{
    Layout,
    gpus::{cut, left, reason, right},
    style::{DIM, paint},
    units::{ABSENT, duration, gib_in_column, whole},
};

const HEADINGS: [&str; 7] = ["GPU", "PID", "USER", "MEMORY", "SM", "TIME", "WHAT"];
/// All but user and what it is are numbers, which are aligned on the right.
const ALIGNED_LEFT: [bool; 7] = [false, false, true, false, false, false, true];
const GAP: &str = "  ";
/// A longer user name would push the command off the screen.
const LONGEST_USER: usize = 16;

pub(super) fn lines(sample: &Sample, layout: Layout) -> Vec<String> {
    let rows: Vec<[String; 7]> = sample
        .gpus
        .iter()
        .flat_map(|gpu| {
            gpu.processes.value().into_iter().flatten().map(|process| row(gpu.index, process, sample.at_ms, layout))
        })
        .collect();
    let all_known = sample.gpus.iter().all(|gpu| gpu.processes.value().is_some());
    let mut lines = match rows.as_slice() {
        [] if all_known => vec![paint(DIM, "no processes")],
        [] => Vec::new(),
        rows => table(rows, layout),
    };
    for gpu in &sample.gpus {
        if let Some(reason) = reason(&gpu.processes) {
            let line = format!("processes of GPU {}: {reason}", gpu.index);
            lines.push(paint(DIM, &cut(&line, layout.width.unwrap_or(usize::MAX), layout)));
        }
    }
    lines
}

fn row(gpu: u32, process: &Process, now_ms: u64, layout: Layout) -> [String; 7] {
    let absent = || ABSENT.to_owned();
    [
        gpu.to_string(),
        process.pid.to_string(),
        process.user.value().map_or_else(absent, |user| cut(user, LONGEST_USER, layout)),
        process
            .memory_bytes
            .value()
            .map_or_else(|| "unknown".to_owned(), |bytes| format!("{} GiB", gib_in_column(*bytes))),
        whole(&process.sm_percent, "%"),
        process.started_ms.value().map_or_else(absent, |started| duration(now_ms.saturating_sub(*started))),
        what(process).map_or_else(absent, |what| printable(&what)),
    ]
}

/// What a person would call it: the notebook, or the command; and the job, pod, container or service behind it.
fn what(process: &Process) -> Option<String> {
    let owner = process.owner.value();
    let program = process.command.value().or_else(|| process.name.value()).cloned();
    let notebook = owner.and_then(|owner| owner.notebook.as_ref()?.path.as_deref());
    let what = match (notebook, process.name.value()) {
        (Some(path), Some(name)) => format!("{} ({name})", path.rsplit('/').next().unwrap_or(path)),
        (Some(path), None) => path.to_owned(),
        (None, _) => program?,
    };
    let behind = owner.and_then(behind).map(|behind| format!(" ({behind})")).unwrap_or_default();
    Some(what + &behind)
}

/// The most telling of what a process runs in.
fn behind(owner: &Owner) -> Option<String> {
    let short = |id: &str| id.chars().take(12).collect::<String>();
    let slurm = owner.slurm.as_ref().map(|job| format!("slurm {}", job.job_id));
    let pod = owner.pod.as_ref().map(|pod| format!("pod {}", pod.uid));
    let container = owner.container.as_ref().map(|container| format!("container {}", short(&container.id)));
    slurm.or(pod).or(container).or_else(|| owner.unit.clone())
}

/// A command line is any bytes its owner likes, escape sequences for this terminal among them.
fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

fn table(rows: &[[String; 7]], layout: Layout) -> Vec<String> {
    let mut widths = HEADINGS.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let before_command: usize = widths[..6].iter().map(|width| width + GAP.len()).sum();
    let room = layout.width.map_or(usize::MAX, |width| width.saturating_sub(before_command));
    let draw = |cells: &[String; 7]| {
        let mut line = String::new();
        for (column, cell) in cells.iter().enumerate() {
            line += &match column {
                6 => cut(cell, room, layout),
                _ if ALIGNED_LEFT[column] => left(cell, widths[column]) + GAP,
                _ => right(cell, widths[column]) + GAP,
            };
        }
        line
    };
    let whole_width = layout.width.unwrap_or(usize::MAX);
    let mut lines = vec![paint(DIM, &cut(&draw(&HEADINGS.map(str::to_owned)), whole_width, layout))];
    lines.extend(rows.iter().map(|row| cut(&draw(row), whole_width, layout)));
    lines
}
