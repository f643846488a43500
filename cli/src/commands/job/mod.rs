//! `gpumon job ID`: reports how well a job used its GPUs.

mod find;

use gpumon_history::span::ConditionSpan;
use gpumon_probe::{
    local_time::time_zone,
    model::{Vendor, now_ms},
    stat::Window,
    units::{duration, list},
    untrusted::escaped,
};
use serde_json::{Value, json};

use self::find::{FoundJob, MeasuredDevice};
pub(super) use self::find::{Measured, find};
use crate::{
    commands::figures::{
        FIGURES, Figure, MEMORY_PEAK, SM_ACTIVE, TENSOR_ACTIVE, THROTTLED, UTILIZATION,
    },
    describe,
    exit::Failure,
    moment::shown,
    past::PastArgs,
    terminal::{
        columns::{Column, Columns},
        output::print_report,
        style::{DIM, STRONG, paint},
        units::{ABSENT, gib_in_column},
    },
};

/// Report how well a Slurm, PBS or LSF job, pod, notebook, container or service used its GPUs
///
/// ID is the ID of the Slurm, PBS or LSF job, the namespace and name or the UID of a pod, the path
/// or the file name of a notebook, the ID of a container, or the name of a service. For each GPU,
/// the report has the time, utilization, SM active and Tensor active, the share of time in which
/// the GPU was idle, peak memory, energy, and the share of time with reduced clocks. The values are
/// of the whole GPU: they include other work on it at the same time, and the report names its
/// owners. A job can be reported for as long as history is kept, also after it has ended.
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
      At the end of a job script, keep the report.

Environment:
  GPUMON_CONTROL  default of --control

Exit codes: 0 success, 1 error or no server, 2 invalid argument or unknown job";

pub(crate) fn run(args: &JobArgs) -> Result<(), Failure> {
    let job = find(&args.id, &args.past)?;
    let measured = Measured::new(&job, &args.past)?;
    print_report(
        args.json,
        || as_json(&job, &measured),
        |terminal| draw(&job, &measured, now_ms(), terminal),
    )
}

/// The maximum age of the last reading of a job that still runs, in milliseconds. History is
/// written every ten seconds.
const RUNNING_MS: u64 = 30_000;

/// The share of the time that history must cover. If it covers less, a remark shows the share.
const KNOWN: f64 = 0.9;

/// The maximum number of conditions that are listed for each GPU.
const CONDITIONS: usize = 4;

pub(crate) fn as_json(job: &FoundJob, measured: &Measured) -> Value {
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

fn draw(job: &FoundJob, measured: &Measured, now_ms: u64, terminal: Option<usize>) -> String {
    let all = COLUMNS
        .into_iter()
        .chain(FIGURES.iter().map(Figure::column));
    let rows: Vec<_> = measured.devices.iter().map(format_cells).collect();
    let columns = Columns::new(&all.collect::<Vec<_>>(), &rows, terminal);
    let mut text = head(job, measured, now_ms) + "\n" + &columns.format_rows(&rows);
    for device in &measured.devices {
        for condition in device.conditions.iter().take(CONDITIONS) {
            text +=
                &columns.format_remark(0, DIM, &escaped(&describe_condition(device, condition)));
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

/// The first columns of the table, followed by those of [`FIGURES`].
const COLUMNS: [Column; 4] = [
    Column::align_left("GPU", 0),
    Column::align_left("Model", 6),
    Column::align_right("Time", 0),
    Column::align_right("Idle", 0),
];

fn format_cells(device: &MeasuredDevice) -> Vec<String> {
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

fn describe_condition(device: &MeasuredDevice, condition: &ConditionSpan) -> String {
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

/// The minimum time for which advice is given, in milliseconds.
const LEAST_MS: u64 = 60_000;

/// The minimum idle time of a GPU that counts as unused, in percent.
const UNUSED_IDLE_PERCENT: f64 = 99.9;

const MUCH_IDLE_PERCENT: f64 = 30.0;
const LOW_UTILIZATION_PERCENT: f64 = 40.0;
const GOOD_UTILIZATION_PERCENT: f64 = 70.0;
const BUSY_SM_PERCENT: f64 = 50.0;
const LOW_TENSOR_PERCENT: f64 = 1.0;
const LITTLE_MEMORY: f64 = 0.2;
const MUCH_THROTTLED_PERCENT: f64 = 20.0;

/// Returns at most two sentences of advice, most important first.
fn give_advice(measured: &Measured, is_shared: bool) -> Vec<String> {
    let known: Vec<_> = measured
        .devices
        .iter()
        .filter(|device| device.known_ms >= LEAST_MS)
        .collect();
    if known.is_empty() {
        return vec!["The job has held its GPUs too briefly for advice.".to_owned()];
    }
    let (unused, used): (Vec<_>, Vec<_>) = known.into_iter().partition(|device| is_unused(device));
    let mut sentences = Vec::new();
    sentences.extend(of_unused(&unused, used.len()));
    sentences.extend(of_used(&used, is_shared));
    sentences.truncate(2);
    sentences
}

fn is_unused(device: &MeasuredDevice) -> bool {
    device
        .idle_percent
        .is_some_and(|idle| idle >= UNUSED_IDLE_PERCENT)
}

fn of_unused(unused: &[&MeasuredDevice], used: usize) -> Option<String> {
    if unused.is_empty() {
        return None;
    }
    let names: Vec<_> = unused.iter().map(|device| name(device)).collect();
    let (names, were) = (list(&names), if names.len() == 1 { "was" } else { "were" });
    Some(match used {
        0 => format!(
            "{names} {were} never used: check that the program finds a GPU, or request none."
        ),
        1 => format!("{names} {were} never used: request one GPU."),
        used => format!("{names} {were} never used: request {used} GPUs."),
    })
}

fn of_used(used: &[&MeasuredDevice], is_shared: bool) -> Vec<String> {
    let mean = |value: fn(&MeasuredDevice) -> Option<f64>| {
        let values = used.iter().filter_map(|device| value(device));
        values.collect::<Window>().mean()
    };
    let mut sentences = Vec::new();
    if let Some(throttled) =
        mean(|device| device.figures.0[THROTTLED]).filter(|share| *share >= MUCH_THROTTLED_PERCENT)
    {
        sentences.push(format!(
            "Clocks were reduced for {throttled:.0} % of the time: see the conditions of each GPU, \
             and tell an administrator \
             where heat is the reason."
        ));
    }
    let utilization = mean(|device| device.figures.0[UTILIZATION]);
    if let Some(idle) =
        mean(|device| device.idle_percent).filter(|share| *share >= MUCH_IDLE_PERCENT)
    {
        sentences.push(format!(
            "Nothing ran for {idle:.0} % of the time: let data loading, checkpoints and evaluation \
             run beside the computation, \
             and end interactive jobs when they are not used."
        ));
    } else if let Some(percent) = utilization.filter(|percent| *percent < LOW_UTILIZATION_PERCENT) {
        sentences.push(format!(
            "GPU utilization was {percent:.0} % on average: try larger batches or more data loader \
             workers, or a smaller GPU or \
             MIG instance."
        ));
    }
    let tensor = mean(|device| device.figures.0[TENSOR_ACTIVE])
        .filter(|percent| *percent < LOW_TENSOR_PERCENT);
    let is_busy = mean(|device| device.figures.0[SM_ACTIVE])
        .is_some_and(|percent| percent >= BUSY_SM_PERCENT);
    if tensor.is_some() && is_busy {
        sentences.push(
            "Tensor cores were hardly used: where it trains or infers, try bf16 or TF32."
                .to_owned(),
        );
    }
    let share = mean(|device| {
        Some(
            device.figures.0[MEMORY_PEAK]?
                / device.memory_total_bytes.filter(|total| *total > 0.0)?,
        )
    });
    if let Some(share) = share.filter(|share| *share < LITTLE_MEMORY && !is_shared) {
        let percent = share * 100.0;
        sentences.push(format!(
            "At most {percent:.0} % of the memory was used: a smaller GPU or a MIG instance is \
             enough, or a larger batch fits."
        ));
    }
    if sentences.is_empty()
        && utilization.is_some_and(|percent| percent >= GOOD_UTILIZATION_PERCENT)
    {
        sentences.push("The GPUs were used well.".to_owned());
    }
    sentences
}

fn name(device: &MeasuredDevice) -> String {
    if device.is_mig {
        format!("MIG device {}", device.index)
    } else {
        format!("GPU {}", device.index)
    }
}

#[cfg(test)]
mod tests;
