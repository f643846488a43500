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
    units::format_byte_size,
};

pub(crate) use self::{
    allocation::list_unused_allocations,
    busy::{
        BUSY_WIDTH, BUSY_WIDTH_WITH_SM, format_part_utilization, format_utilization,
        shows_sm_activity,
    },
    device_name::{MAX_NAME_WIDTH, capitalize, fit_name, format_name_without_vendor, label_device},
    engines::{format_codec_utilization, format_pcie_link},
    event::describe_event,
    framework::{compare_with_framework, format_factor, format_framework_label},
    health::find_unreadable_state,
    load::{LoadLevel, LoadLevels, Thresholds},
    memory::{format_total_memory, format_used_memory, format_used_of_total, used_memory_fraction},
    mig::{find_mig_device, format_mig_label},
    notebook_names::{NotebookNames, find_notebook_path},
    phrase::{Level, Phrase},
    power::format_power_draw,
    totals::{Total, add_up_gpus},
};

/// Returns the note about the number of processes that a sample omits.
pub(crate) fn format_omitted_processes(count: u32) -> String {
    format!("{count} more process{}", if count == 1 { "" } else { "es" })
}

/// Returns a note about processes of other PID namespaces, which are not visible, or `None` if
/// there are none.
pub(crate) fn format_unlisted_processes(gpu: &GpuSample) -> Option<String> {
    let bytes = gpu.unlisted_memory_bytes?;
    Some(format!(
        "processes of other namespaces are not visible: {} in use",
        format_byte_size(bytes as f64)
    ))
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    pub(crate) now_ms: u64,
    /// Whether there is only a single sample, so that no condition could have started.
    pub(crate) is_one_shot: bool,
}

/// Returns all phrases about a GPU, the most important first.
pub(crate) fn list_gpu_phrases(gpu: &GpuSample, context: Context) -> Vec<Phrase> {
    let mut phrases: Vec<Phrase> = health::find_health_phrase(gpu, context.now_ms)
        .into_iter()
        .collect();
    phrases.extend(
        gpu.conditions
            .iter()
            .flat_map(|condition| condition::list_condition_phrases(condition, gpu)),
    );
    if gpu.health == Health::Ok {
        let reasons = gpu.throttle_reasons.value().map_or(&[][..], Vec::as_slice);
        // A single sample has no conditions, so problems are derived from its readings.
        if context.is_one_shot {
            phrases.extend(condition::list_reason_phrases(reasons));
            phrases.extend(find_nearly_full_phrase(gpu));
        }
        phrases.extend(condition::find_setting_phrase(reasons));
        phrases.extend(memory::find_unified_memory_phrase(gpu));
    }
    phrases.sort_by_key(|phrase| phrase.level);
    phrases
}

fn find_nearly_full_phrase(gpu: &GpuSample) -> Option<Phrase> {
    let (free, total) = (
        *gpu.memory.free_bytes.value()?,
        *gpu.memory.total_bytes.value()?,
    );
    is_memory_nearly_full(free, total)
        .then(|| condition::make_nearly_full_phrase(Level::Warn, free, total))
}

#[cfg(test)]
mod tests;
