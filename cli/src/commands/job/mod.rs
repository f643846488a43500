//! `gpumon job ID`: reports how well a job used its GPUs.

mod find;
mod limits;

use gpumon_history::span::ConditionSpan;
use gpumon_probe::{
    local_time::time_zone,
    model::{Vendor, now_ms},
    stat::Window,
    units::{format_duration, join_list},
    untrusted::escape_untrusted,
};
use serde_json::{Value, json};

use self::find::{FoundJob, MeasuredDevice};
pub(super) use self::find::{MeasuredJob, find_job};
use crate::{
    commands::figures::{FIGURES, Figure, MEMORY_PEAK_INDEX},
    describe::{self, LimitLines, describe_limits},
    exit::Result,
    past_readings::PastArgs,
    terminal::{
        columns::{Column, Columns},
        line::{DIM, STRONG, paint},
        output::print_report,
        units::{ABSENT, format_count, format_gib},
    },
    time_spans::format_time,
};

/// Report how well a Slurm, PBS or LSF job, pod, notebook, container or service used its GPUs
///
/// ID is the ID of the Slurm, PBS or LSF job, the namespace and name or the UID of a pod, the path
/// or the file name of a notebook, the ID of a container, or the name of a service. For each GPU,
/// the report has the time, utilization, SM active and Tensor active, the share of time in which
/// the GPU was idle, peak memory, energy, the share of time with reduced clocks, and what limited
/// the work, with advice. The values are of the whole GPU: they include other work on it at the
/// same time, and the report names its owners. A job can be reported for as long as history is
/// kept, also after it has ended.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct JobArgs {
    /// ID or name of the job
    #[arg(value_name = "ID")]
    id: String,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    past: PastArgs,
}

const NOTES: &str = "\
Examples:
  gpumon job 88123
      Report on a Slurm job, while it runs or after it has ended.
  gpumon job research/train-0
      Report on a pod.
  gpumon job train.ipynb --json
      Report on a notebook, as JSON.
  gpumon job $SLURM_JOB_ID >> report.txt
      Append the report to a file at the end of a job script.

Environment:
  GPUMON_CONTROL  default of --control

Exit codes: 0 success, 1 error or no server, 2 invalid argument or unknown job";

pub(crate) fn run(args: &JobArgs) -> Result {
    let job = find_job(&args.id, &args.past)?;
    let measured = MeasuredJob::new(&job, &args.past)?;
    print_report(
        args.json,
        || to_json(&job, &measured),
        |terminal| format_report(&job, &measured, now_ms(), terminal),
    )
}

/// The maximum age of a running job's last reading, in milliseconds. A job with an older reading
/// counts as ended, because history is written every ten seconds.
const MAX_READING_AGE_MS: u64 = 30_000;

/// Print a remark if history covers less than this fraction of the time in which the job held its
/// devices.
const MIN_RECORDED_SHARE: f64 = 0.9;

/// The maximum number of conditions that are listed for each GPU.
const MAX_CONDITIONS: usize = 4;

pub(crate) fn to_json(job: &FoundJob, measured: &MeasuredJob) -> Value {
    let (from_ms, to_ms) = job.time_range_ms();
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
                "limits": device.limits,
                "figures": device.figures.to_json(),
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
        "all": measured.all.to_json(),
        "gpus": devices,
        "advice": give_advice(measured, !job.others.is_empty()),
    })
}

fn format_report(
    job: &FoundJob,
    measured: &MeasuredJob,
    now_ms: u64,
    terminal: Option<usize>,
) -> String {
    let all = COLUMNS
        .into_iter()
        .chain(FIGURES.iter().map(Figure::column));
    let rows: Vec<_> = measured.devices.iter().map(format_cells).collect();
    let columns = Columns::new(&all.collect::<Vec<_>>(), &rows, terminal);
    let mut text = format_heading(job, measured, now_ms) + "\n" + &columns.format_rows(&rows);
    for remark in list_remarks(job, &measured.devices) {
        text += &columns.format_remark(0, DIM, &escape_untrusted(&remark));
    }
    let limits = describe_used_devices(measured);
    let shares = limits.into_iter().map(|lines| lines.shares);
    for sentence in shares.chain(give_advice(measured, !job.others.is_empty())) {
        text += &(columns.wrap_sentence(0, &sentence) + "\n");
    }
    text
}

/// Returns the remarks below the report: conditions of the devices, gaps in the history, and other
/// jobs that used the same devices.
fn list_remarks(job: &FoundJob, devices: &[MeasuredDevice]) -> Vec<String> {
    let mut remarks = Vec::new();
    for device in devices {
        let conditions = device.conditions.iter().take(MAX_CONDITIONS);
        remarks.extend(conditions.map(|condition| describe_condition(device, condition)));
        if device.conditions.len() > MAX_CONDITIONS {
            remarks.push(format!(
                "{}: {} more conditions, shown with --json",
                format_device_name(device),
                device.conditions.len() - MAX_CONDITIONS
            ));
        }
    }
    let held_ms: u64 = devices.iter().map(|device| device.held_ms).sum();
    let known_ms: u64 = devices.iter().map(|device| device.known_ms).sum();
    if (known_ms as f64) < held_ms as f64 * MIN_RECORDED_SHARE {
        let share = 100.0 * known_ms as f64 / held_ms as f64;
        remarks.push(format!(
            "History covers {share:.0} % of the time in which the job held GPUs; the figures \
             apply only to that part."
        ));
    }
    if !job.others.is_empty() {
        let others: Vec<_> = job.others.iter().map(String::as_str).collect();
        remarks.push(format!(
            "Also on these GPUs at the same time, and included in the figures: {}.",
            others.join(", ")
        ));
    }
    remarks
}

fn format_heading(job: &FoundJob, measured: &MeasuredJob, now_ms: u64) -> String {
    let zone = time_zone();
    let (from_ms, to_ms) = job.time_range_ms();
    let user = job
        .user
        .as_ref()
        .map_or_else(String::new, |user| format!(" of {user}"));
    let devices = format_count(measured.devices.len() as u64, "GPU");
    let from = format_time(from_ms, &zone);
    let time = format_duration(to_ms - from_ms);
    let until = if now_ms.saturating_sub(to_ms) < MAX_READING_AGE_MS {
        "now".to_owned()
    } else {
        format_time(to_ms, &zone)
    };
    let title = escape_untrusted(&describe::capitalize(&format!("{}{user}", job.label)));
    format!(
        "{}: {devices}, {from} to {until} ({time})\n",
        paint(STRONG, &title)
    )
}

/// The first columns of the table. The columns of [`FIGURES`] follow.
const COLUMNS: [Column; 4] = [
    Column::new_left_aligned("GPU", 0),
    Column::new_left_aligned("Model", 6),
    Column::new_right_aligned("Time", 0),
    Column::new_right_aligned("Idle", 0),
];

fn format_cells(device: &MeasuredDevice) -> Vec<String> {
    let index = if device.is_mig {
        format!("MIG {}", device.index)
    } else {
        device.index.to_string()
    };
    let model = device.name.as_deref().map_or(ABSENT, Vendor::strip_vendor);
    let idle = device
        .idle_percent
        .map_or_else(|| ABSENT.to_owned(), |percent| format!("{percent:.0} %"));
    let mut figures: Vec<_> = device.figures.format_cells().collect();
    if let (Some(total), Some(_)) = (
        device.memory_total_bytes,
        device.figures.0[MEMORY_PEAK_INDEX],
    ) {
        let used = figures[MEMORY_PEAK_INDEX]
            .trim_end_matches(" GiB")
            .to_owned();
        figures[MEMORY_PEAK_INDEX] = format!("{used} of {} GiB", format_gib(total as u64));
    }
    [
        index,
        escape_untrusted(model),
        format_duration(device.held_ms),
        idle,
    ]
    .into_iter()
    .chain(figures)
    .collect()
}

fn describe_condition(device: &MeasuredDevice, condition: &ConditionSpan) -> String {
    let time = condition.to_ms.map_or_else(
        || "since then".to_owned(),
        |to_ms| {
            format!(
                "for {}",
                format_duration(to_ms.saturating_sub(condition.from_ms))
            )
        },
    );
    let from = format_time(condition.from_ms, &time_zone());
    format!(
        "{}: {} ({from}, {time})",
        format_device_name(device),
        condition.condition.text
    )
}

/// The minimum duration, in milliseconds, for which history must cover the job's use of a device.
/// If it covers less, no advice is given about the device.
const MIN_TIME_MS: u64 = 60_000;

/// A GPU counts as unused if it was idle for at least this percentage of the time.
const UNUSED_IDLE_PERCENT: f64 = 99.9;

const LITTLE_MEMORY: f64 = 0.2;

/// Returns sentences of advice, most important first.
fn give_advice(measured: &MeasuredJob, is_shared: bool) -> Vec<String> {
    let known: Vec<_> = measured
        .devices
        .iter()
        .filter(|device| is_known(device))
        .collect();
    if known.is_empty() {
        return vec!["The job held its GPUs for too short a time to give advice.".to_owned()];
    }
    let (unused, used): (Vec<_>, Vec<_>) = known.into_iter().partition(|device| is_unused(device));
    let mut sentences = Vec::new();
    sentences.extend(advise_on_unused(&unused, used.len()));
    let limits = describe_used_devices(measured);
    sentences.extend(limits.into_iter().filter_map(|lines| lines.advice));
    sentences.extend(advise_on_memory(&used).filter(|_| !is_shared));
    sentences
}

/// Describes what limited the devices that the job used.
fn describe_used_devices(measured: &MeasuredJob) -> Vec<LimitLines> {
    describe_limits(measured.devices.iter().map(|device| {
        let is_used = is_known(device) && !is_unused(device);
        let limits = device.limits.as_ref().filter(|_| is_used);
        (format_device_name(device), limits)
    }))
}

fn is_known(device: &MeasuredDevice) -> bool {
    device.known_ms >= MIN_TIME_MS
}

fn is_unused(device: &MeasuredDevice) -> bool {
    device
        .idle_percent
        .is_some_and(|idle| idle >= UNUSED_IDLE_PERCENT)
}

fn advise_on_unused(unused: &[&MeasuredDevice], used: usize) -> Option<String> {
    if unused.is_empty() {
        return None;
    }
    let names: Vec<_> = unused
        .iter()
        .map(|device| format_device_name(device))
        .collect();
    let (names, were) = (
        join_list(&names),
        if names.len() == 1 { "was" } else { "were" },
    );
    Some(match used {
        0 => format!(
            "{names} {were} never used: check that the program finds a GPU, or request no GPU."
        ),
        1 => format!("{names} {were} never used: request one GPU."),
        used => format!("{names} {were} never used: request {used} GPUs."),
    })
}

fn advise_on_memory(used: &[&MeasuredDevice]) -> Option<String> {
    let shares = used.iter().filter_map(|device| {
        let total = device.memory_total_bytes.filter(|total| *total > 0.0)?;
        Some(device.figures.0[MEMORY_PEAK_INDEX]? / total)
    });
    let share = shares.collect::<Window>().mean()?;
    let percent = share * 100.0;
    (share < LITTLE_MEMORY).then(|| {
        format!(
            "At most {percent:.0} % of the memory was used: a smaller GPU or a MIG instance is \
             enough, or a larger batch fits."
        )
    })
}

fn format_device_name(device: &MeasuredDevice) -> String {
    if device.is_mig {
        format!("MIG device {}", device.index)
    } else {
        format!("GPU {}", device.index)
    }
}

#[cfg(test)]
mod tests;
