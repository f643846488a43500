//! What every view of a terminal says about a GPU, in the same words: what is the matter with it,
//! how it and its parts are called, how much memory is how much.
//!
//! Whatever can be said is a [`Phrase`]: short, for a line that is full of numbers, and long, where there is room.

mod condition;
mod device_name;
mod engines;
mod event;
mod load;

use anstyle::Style;
use gpumon_probe::{
    derive::is_memory_nearly_full,
    model::{Allocation, Gpu, GpuSample, Health, MigDevice, MigInstance},
    units::byte_size,
    untrusted::escaped,
};
use gpumon_workload::protocol::FrameworkRun;

pub(crate) use self::{
    condition::{Level, Phrase, without_readings},
    device_name::{LONGEST, NotebookNames, capital, device, fitted, full_name, notebook_path},
    engines::{format_codec, format_pcie_link},
    event::of_event,
    load::{
        BUSY_WIDTH, BUSY_WIDTH_WITH_SM, Load, Loads, Thresholds, Total, add_up_gpus, busy, draw_of,
        is_sm_activity, of_part, share, total, used, used_of,
    },
};
use crate::terminal::{
    columns::format_number,
    style::{DIM, NOTICE},
};

/// The end of a list of processes that a sample has no room for.
pub(crate) fn more_processes(count: u32) -> String {
    format!("{count} more process{}", if count == 1 { "" } else { "es" })
}

/// Returns a note about processes of other PID namespaces that are not visible, if there are any.
pub(crate) fn unlisted_processes(gpu: &GpuSample) -> Option<String> {
    let bytes = gpu.unlisted_memory_bytes?;
    Some(format!(
        "processes of other namespaces are not visible: {} in use",
        byte_size(bytes as f64)
    ))
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    pub(crate) now_ms: u64,
    /// Whether nothing was seen before, so that no condition had the time to begin.
    pub(crate) is_one_shot: bool,
}

/// All that is to be said of a GPU, what matters most first.
pub(crate) fn of_gpu(gpu: &GpuSample, context: Context) -> Vec<Phrase> {
    let mut phrases: Vec<Phrase> = condition::phrase(gpu, context.now_ms).into_iter().collect();
    phrases.extend(
        gpu.conditions
            .iter()
            .flat_map(|condition| condition::phrases(condition, gpu)),
    );
    if gpu.health == Health::Ok {
        let reasons = gpu.throttle_reasons.value().map_or(&[][..], Vec::as_slice);
        // What a single look sees is told at once.
        if context.is_one_shot {
            phrases.extend(condition::reason_phrases(reasons));
            phrases.extend(nearly_full(gpu));
        }
        phrases.extend(condition::setting_phrase(reasons));
        phrases.extend(load::unified_phrase(gpu));
    }
    phrases.sort_by_key(|phrase| phrase.level);
    phrases
}

fn nearly_full(gpu: &GpuSample) -> Option<Phrase> {
    let (free, total) = (
        *gpu.memory.free_bytes.value()?,
        *gpu.memory.total_bytes.value()?,
    );
    is_memory_nearly_full(free, total)
        .then(|| condition::nearly_full_phrase(Level::Warn, free, total))
}

/// A GPU or MIG device, as it is called, and to whom it is given while no process is listed on it.
pub(crate) fn unused_allocations(gpu: &GpuSample, known: Option<&Gpu>) -> Vec<(String, String)> {
    let is_whole = gpu.processes_omitted == 0 && gpu.unlisted_memory_bytes.is_none();
    let Some(processes) = gpu.processes.value().filter(|_| is_whole) else {
        return Vec::new();
    };
    let is_free = |part: Option<MigInstance>| {
        !processes
            .iter()
            .any(|process| part.is_none() || process.mig == part)
    };
    let parts = gpu.mig_devices.value().into_iter().flatten().map(|part| {
        let device = known.and_then(|known| device_of(known, part.instance));
        let name = device.map_or_else(|| gpu.index.to_string(), |device| label(gpu.index, device));
        (name, Some(part.instance), &part.allocated_to)
    });
    let all = [(gpu.index.to_string(), None, &gpu.allocated_to)]
        .into_iter()
        .chain(parts);
    let unused = all.filter(|(_, part, holders)| is_free(*part) && !holders.is_empty());
    unused
        .map(|(name, _, holders)| (name, names(holders)))
        .collect()
}

/// Each job or pod once.
fn names(holders: &[Allocation]) -> String {
    let mut names: Vec<String> = Vec::new();
    for holder in holders {
        let user = match holder {
            Allocation::Slurm {
                user: Some(user), ..
            } => format!(" ({user})"),
            _ => String::new(),
        };
        let name = holder.label() + &user;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

/// `6:0` is the first part of GPU 6, as containers are given it.
pub(crate) fn label(gpu: u32, device: &MigDevice) -> String {
    format!("{gpu}:{}", device.index)
}

pub(crate) fn device_of(gpu: &Gpu, instance: MigInstance) -> Option<&MigDevice> {
    gpu.mig_devices
        .iter()
        .find(|device| device.instance == instance)
}

/// As `CuPy 14.0`.
pub(crate) fn framework(run: &FrameworkRun) -> String {
    let version = run.version.split('+').next().unwrap_or_default();
    escaped(format!("{} {version}", run.name).trim_end())
}

/// How the runner compares with it.
pub(crate) fn comparison(run: &FrameworkRun) -> Option<(Style, String)> {
    let ratio = run.ratio?;
    Some((
        if ratio < 1.0 { NOTICE } else { DIM },
        format!("gpumon is {}", factor(ratio)),
    ))
}

/// As `1.10x faster`, of the other's time over this one.
pub(crate) fn factor(ratio: f64) -> String {
    let (ratio, word) = if ratio < 1.0 {
        (1.0 / ratio, "slower")
    } else {
        (ratio, "faster")
    };
    format!("{}x {word}", format_number(ratio, 2))
}

#[cfg(test)]
mod tests;
