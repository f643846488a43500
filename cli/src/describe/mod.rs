//! Descriptions of a GPU, which all terminal views share: its problems, names, and amounts.
//!
//! Each statement is a [`Phrase`] with a short form for lines full of numbers, and a long form.

mod allocation;
mod busy;
mod condition;
mod device_name;
mod engines;
mod event;
mod framework;
mod health;
mod load;
mod memory;
mod mig;
mod notebook_names;
mod phrase;
mod power;
mod totals;

use gpumon_probe::{
    derive::is_memory_nearly_full,
    model::{GpuSample, Health},
    units::byte_size,
};

pub(crate) use self::{
    allocation::unused_allocations,
    busy::{BUSY_WIDTH, BUSY_WIDTH_WITH_SM, busy, is_sm_activity, of_part},
    device_name::{LONGEST, capital, device, fit_name, full_name},
    engines::{format_codec, format_pcie_link},
    event::of_event,
    framework::{comparison, factor, framework},
    health::without_readings,
    load::{Load, Loads, Thresholds},
    memory::{share, total, used, used_of},
    mig::{device_of, label},
    notebook_names::{NotebookNames, notebook_path},
    phrase::{Level, Phrase},
    power::draw_of,
    totals::{Total, add_up_gpus},
};

/// Returns the note about processes that a sample omits.
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
    /// Whether there are no earlier samples, so that no condition had time to start.
    pub(crate) is_one_shot: bool,
}

/// Returns all phrases about a GPU, the most important first.
pub(crate) fn of_gpu(gpu: &GpuSample, context: Context) -> Vec<Phrase> {
    let mut phrases: Vec<Phrase> = health::phrase(gpu, context.now_ms).into_iter().collect();
    phrases.extend(
        gpu.conditions
            .iter()
            .flat_map(|condition| condition::phrases(condition, gpu)),
    );
    if gpu.health == Health::Ok {
        let reasons = gpu.throttle_reasons.value().map_or(&[][..], Vec::as_slice);
        // A single sample has no conditions, so its own readings are reported.
        if context.is_one_shot {
            phrases.extend(condition::reason_phrases(reasons));
            phrases.extend(nearly_full(gpu));
        }
        phrases.extend(condition::setting_phrase(reasons));
        phrases.extend(memory::unified_phrase(gpu));
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

#[cfg(test)]
mod tests;
