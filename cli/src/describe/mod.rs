//! Descriptions of a GPU, which all terminal views share: its problems, names, and readings.
//!
//! Each statement is a [`Phrase`] with a short form for lines full of numbers, and a long form.

mod event;
mod framework;
mod limits;
mod names;
mod readings;

use gpumon_probe::{
    derive::{MAX_LIMITS_AGE_MS, is_memory_nearly_full},
    model::{
        Absence, Allocation, Condition, ConditionKind, Gpu, GpuSample, Health, LimitClass, Limits,
        MigInstance, REASONS, Reading, Severity, ThrottleCause, ThrottleReason,
        join_meaning_and_advice,
    },
    units::{format_byte_size, format_duration},
    untrusted::to_printable,
    vendor::describe_error,
};
use unicode_width::UnicodeWidthStr;

use crate::terminal::units::format_clock;

pub(crate) use self::{
    event::describe_event,
    framework::{compare_with_framework, format_factor, format_framework_label},
    limits::{LimitLines, describe_limits},
    names::{
        MAX_NAME_WIDTH, NotebookNames, capitalize, find_mig_device, find_mig_device_of_process,
        find_notebook_path, fit_name, format_device_label, format_models,
        format_name_without_vendor, label_device,
    },
    readings::{
        BUSY_WIDTH, BUSY_WIDTH_WITH_SM, LoadLevel, LoadLevels, Thresholds, Total,
        format_codec_utilization, format_mig_utilization, format_pcie_link, format_power_draw,
        format_total_memory, format_used_memory, format_used_of_total, format_utilization,
        shows_sm_activity, sum_gpu_readings, used_memory_fraction,
    },
};

/// A statement about a GPU, with its importance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Phrase {
    /// The short form of the phrase, at most [`Phrase::MAX_SHORT_WIDTH`] columns wide.
    pub(crate) short: String,
    /// The long form of the phrase, which includes a remedy if there is one.
    pub(crate) long: String,
    pub(crate) level: Level,
}

impl Phrase {
    /// The maximum width of a short form in columns. Views reserve this width for the first phrase
    /// about a GPU.
    pub(crate) const MAX_SHORT_WIDTH: usize = 24;

    fn new(level: Level, short: impl Into<String>, long: impl Into<String>) -> Self {
        Self {
            short: short.into(),
            long: long.into(),
            level,
        }
    }
}

/// The importance of a phrase. The most important level comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// A problem that needs action.
    Act,
    /// A problem that deserves attention.
    Warn,
    /// Useful information.
    Note,
    /// A normal state, shown only for information.
    Quiet,
}

impl From<Severity> for Level {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Notice => Self::Note,
            Severity::Warning => Self::Warn,
            Severity::Critical => Self::Act,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    pub(crate) now_ms: u64,
    /// Whether there is only one sample. A single sample has no conditions, because they are
    /// detected over several samples.
    pub(crate) is_one_shot: bool,
}

/// Returns all phrases about a GPU, the most important first.
pub(crate) fn list_gpu_phrases(gpu: &GpuSample, context: Context) -> Vec<Phrase> {
    let mut phrases: Vec<Phrase> = find_health_phrase(gpu, context.now_ms)
        .into_iter()
        .collect();
    phrases.extend(
        gpu.conditions
            .iter()
            .flat_map(|condition| list_condition_phrases(condition, gpu)),
    );
    if gpu.health == Health::Ok {
        let reasons = gpu.throttle_reasons.value().map_or(&[][..], Vec::as_slice);
        // A single sample has no conditions, so problems are derived from its readings.
        if context.is_one_shot {
            phrases.extend(list_reason_phrases(reasons));
            phrases.extend(find_nearly_full_phrase(gpu));
        }
        phrases.extend(find_clock_setting_phrase(reasons));
        phrases.extend(readings::find_unified_memory_phrase(gpu));
    }
    phrases.sort_by_key(|phrase| phrase.level);
    phrases
}

fn find_nearly_full_phrase(gpu: &GpuSample) -> Option<Phrase> {
    let (free, total) = (
        *gpu.memory.free_bytes.value()?,
        *gpu.memory.total_bytes.value()?,
    );
    is_memory_nearly_full(free, total).then(|| make_nearly_full_phrase(Level::Warn, free, total))
}

// Phrases for GPUs without readings.

/// Show the duration of a state only if the state has lasted at least this long, in milliseconds.
const JUST_NOW_MS: u64 = 5_000;

fn find_health_phrase(gpu: &GpuSample, now_ms: u64) -> Option<Phrase> {
    let history = |since_ms: u64, text: &dyn Fn() -> String| {
        if now_ms.saturating_sub(since_ms) < JUST_NOW_MS {
            String::new()
        } else {
            text()
        }
    };
    let lasting = |since_ms: u64| {
        history(since_ms, &|| {
            format!(" for {}", format_duration(now_ms - since_ms))
        })
    };
    let since = |since_ms: u64| {
        history(since_ms, &|| {
            format!(" since {}", format_clock(since_ms, now_ms))
        })
    };
    Some(match &gpu.health {
        Health::Ok if gpu.power.draw_watts == Reading::Absent(Absence::NoAnswer) => Phrase::new(
            Level::Warn,
            "not read yet",
            "not read yet: waiting for the driver",
        ),
        Health::Ok => return None,
        Health::Asleep { since_ms } => Phrase::new(
            Level::Quiet,
            format!("asleep{}", lasting(*since_ms)),
            format!("asleep{} to save power", since(*since_ms)),
        ),
        Health::Hung { since_ms } => Phrase::new(
            Level::Act,
            match lasting(*since_ms).as_str() {
                "" => "not responding".to_owned(),
                lasting => format!("hung{lasting}"),
            },
            format!(
                "not responding{} (driver hang){}",
                since(*since_ms),
                if gpu.uuid.is_some() {
                    ", showing the last values"
                } else {
                    ": see gpumon doctor"
                }
            ),
        ),
        Health::Lost { since_ms } => Phrase::new(
            Level::Act,
            format!("GPU lost{}", lasting(*since_ms)),
            format!("GPU lost{}: see gpumon doctor", since(*since_ms)),
        ),
        Health::Failed {
            since_ms,
            reason,
            meaning,
            advice,
        } => {
            let explained = join_meaning_and_advice(meaning, advice);
            let why = if explained.is_empty() {
                format!("{reason}; see gpumon doctor")
            } else {
                explained
            };
            Phrase::new(
                Level::Act,
                "cannot be read",
                format!("cannot be read{}: {why}", since(*since_ms)),
            )
        }
    })
}

/// For a GPU without readings, returns the start of this state and the phrase for the state.
/// Returns `None` if the GPU has readings.
pub(crate) fn find_unreadable_state(gpu: &GpuSample) -> Option<(u64, Phrase)> {
    let (Health::Asleep { since_ms }
    | Health::Hung { since_ms }
    | Health::Lost { since_ms }
    | Health::Failed { since_ms, .. }) = gpu.health
    else {
        return None;
    };
    Some((since_ms, find_health_phrase(gpu, since_ms)?))
}

// Short phrases for conditions. The text of a condition itself is longer, for views with room for
// sentences.

/// Returns the phrases of a condition: one per throttle reason for reduced clocks, otherwise a
/// single phrase.
fn list_condition_phrases(condition: &Condition, gpu: &GpuSample) -> Vec<Phrase> {
    let level = Level::from(condition.severity);
    vec![match &condition.kind {
        ConditionKind::Throttled { reasons, .. } => return list_reason_phrases(reasons),
        ConditionKind::Xid { code, count, .. } => make_xid_phrase(level, *code, *count),
        ConditionKind::MemoryNearlyFull {
            free_bytes,
            total_bytes,
        } => {
            // The sample may be newer than the condition, so the free memory is read from the
            // sample if possible.
            let free_bytes = *gpu.memory.free_bytes.value().unwrap_or(free_bytes);
            make_nearly_full_phrase(level, free_bytes, *total_bytes)
        }
        kind => Phrase::new(level, kind.short_text(), kind.long_text()),
    }]
}

fn make_nearly_full_phrase(level: Level, free_bytes: u64, total_bytes: u64) -> Phrase {
    let kind = ConditionKind::MemoryNearlyFull {
        free_bytes,
        total_bytes,
    };
    Phrase::new(level, kind.short_text(), kind.long_text())
}

/// Returns a phrase for each throttle reason that has a severity. A reason is left out if another
/// reason in the list explains it.
fn list_reason_phrases(reasons: &[ThrottleReason]) -> Vec<Phrase> {
    let own = reasons
        .iter()
        .filter(|reason| !reason.is_explained_by(reasons));
    own.filter_map(|reason| {
        let info = reason.info();
        let level = Level::from(info.severity?);
        Some(Phrase::new(level, info.short, info.long))
    })
    .collect()
}

/// Returns a phrase if a setting deliberately reduces the clocks.
fn find_clock_setting_phrase(reasons: &[ThrottleReason]) -> Option<Phrase> {
    let setting = REASONS
        .iter()
        .find(|info| info.cause == ThrottleCause::Setting && reasons.contains(&info.reason))?;
    Some(Phrase::new(Level::Quiet, setting.short, setting.short))
}

/// Returns what limits the GPU, or `None` if this is unknown or outdated.
pub(crate) fn find_current_limits(gpu: &GpuSample, now_ms: u64) -> Option<&Limits> {
    let age_ms = now_ms.saturating_sub(gpu.limits.read_at_ms(gpu.at_ms));
    let limits = gpu.limits.value();
    limits.filter(|_| age_ms <= MAX_LIMITS_AGE_MS)
}

/// Returns a phrase about what limits the GPU. Returns `None` if the GPU is idle, or if its limits
/// are unknown or outdated.
pub(crate) fn find_limits_phrase(gpu: &GpuSample, now_ms: u64) -> Option<Phrase> {
    let limits = find_current_limits(gpu, now_ms).filter(|it| it.main != LimitClass::Idle)?;
    let mut short = limits.main_share();
    if short.width() > Phrase::MAX_SHORT_WIDTH {
        limits.main.label().clone_into(&mut short);
    }
    let long: String = limits.summary().chars().map(to_printable).collect();
    Some(Phrase::new(Level::Note, short, long))
}

fn make_xid_phrase(level: Level, code: u32, count: u32) -> Phrase {
    let times = match count {
        0 | 1 => String::new(),
        _ => format!(" ({count} times)"),
    };
    let info = describe_error(code);
    let title = info.title(code);
    // An error without a name also needs its description.
    let short = if info.name.is_empty() {
        format!("{title}: {}", info.short_text())
    } else {
        title.clone()
    };
    Phrase::new(
        level,
        short,
        format!("{title}: {}{times}", info.long_text()),
    )
}

/// Returns the labels of GPUs and MIG devices that are allocated but have no processes. Each label
/// is followed by the names of the jobs or pods.
pub(crate) fn list_unused_allocations(
    gpu: &GpuSample,
    known: Option<&Gpu>,
) -> Vec<(String, String)> {
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
        let device = known.and_then(|known| find_mig_device(known, part.instance));
        let name = format_device_label(gpu.index, device);
        (name, Some(part.instance), &part.allocated_to)
    });
    let all = [(gpu.index.to_string(), None, &gpu.allocated_to)]
        .into_iter()
        .chain(parts);
    let unused = all.filter(|(_, part, holders)| is_free(*part) && !holders.is_empty());
    unused
        .map(|(name, _, holders)| (name, join_holder_names(holders)))
        .collect()
}

/// Joins the names of the jobs and pods, without duplicates.
fn join_holder_names(holders: &[Allocation]) -> String {
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

/// Returns the note about the number of processes that a sample omits.
pub(crate) fn format_omitted_processes(count: u32) -> String {
    format!("{count} more process{}", if count == 1 { "" } else { "es" })
}

/// Returns a note about processes of other PID namespaces, because these processes are not visible.
/// Returns `None` if there are none.
pub(crate) fn format_unlisted_processes(gpu: &GpuSample) -> Option<String> {
    let bytes = gpu.unlisted_memory_bytes?;
    Some(format!(
        "processes of other namespaces are not visible: {} in use",
        format_byte_size(bytes as f64)
    ))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod condition_tests {
    use super::*;

    #[test]
    fn every_xid_has_short_phrase() {
        for code in 1..=999 {
            let phrase = make_xid_phrase(Level::Act, code, 3);
            assert!(
                phrase.short.chars().count() <= Phrase::MAX_SHORT_WIDTH,
                "{}",
                phrase.short
            );
            assert!(
                phrase.long.starts_with(&format!("Xid {code}: "))
                    && phrase.long.ends_with(" (3 times)")
            );
        }
    }

    #[test]
    fn fell_off_bus_xid_includes_remedy() {
        let phrase = make_xid_phrase(Level::Act, 79, 1);
        assert_eq!(phrase.short, "Xid 79: fell off the bus");
        assert_eq!(
            phrase.long,
            "Xid 79: GPU has fallen off the bus – reboot the machine"
        );
    }

    #[test]
    fn xid_phrase_falls_back_to_catalog_text() {
        assert_eq!(
            make_xid_phrase(Level::Act, 46, 1).short,
            "Xid 46: needs a reset"
        );
        assert_eq!(
            make_xid_phrase(Level::Act, 46, 1).long,
            "Xid 46: the GPU stopped working"
        );
        assert_eq!(
            make_xid_phrase(Level::Warn, 69, 1).short,
            "Xid 69: program failed"
        );
        assert_eq!(
            make_xid_phrase(Level::Warn, 999, 1).short,
            "Xid 999: see events"
        );
    }
}
