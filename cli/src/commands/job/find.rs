//! Lookup of a job by its ID or name, and measurement of its devices.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use anyhow::anyhow;
use gpumon_history::{
    jobs::JobSpan,
    span::{ConditionSpan, HistorySpan},
};
use gpumon_probe::{
    model::{JobKind, now_ms},
    units::duration,
    untrusted::escaped,
};
use strsim::jaro_winkler;

use super::super::figures::{
    Figures, METRICS, Meter, Point, find_series, overlapping_ms, throttled_percent, time_ms,
};
use crate::{
    exit::{Failure, usage},
    past::PastArgs,
};

/// The maximum number of other jobs that an error lists.
const NAMED: usize = 5;

/// A job with the spans in which it used devices.
#[derive(Debug)]
pub(crate) struct FoundJob {
    pub(crate) kind: JobKind,
    /// The name for people, such as `Slurm job 88123`.
    pub(crate) label: String,
    pub(crate) user: Option<String>,
    /// The spans in which the job used devices, newest first.
    pub(crate) spans: Vec<JobSpan>,
    /// The jobs that used the same devices at the same time.
    pub(crate) others: BTreeSet<String>,
}

impl FoundJob {
    /// Returns the first and the last time at which the job used any device, in milliseconds since
    /// 1970.
    pub(crate) fn times_ms(&self) -> (u64, u64) {
        let from_ms = self
            .spans
            .iter()
            .map(|span| span.from_ms)
            .min()
            .unwrap_or(0);
        (
            from_ms,
            self.spans.iter().map(|span| span.to_ms).max().unwrap_or(0),
        )
    }
}

/// Finds the single job with this ID or name.
///
/// # Errors
/// Returns an error if no job matches, or several do.
pub(crate) fn find(id: &str, past: &PastArgs) -> Result<FoundJob, Failure> {
    let all = past.list_jobs(None)?;
    let mut called: Vec<JobSpan> = all
        .iter()
        .filter(|span| span.is_called(id))
        .cloned()
        .collect();
    if called.is_empty() {
        // The list of all jobs is limited, and this job may be missing in it.
        called = past.list_jobs(Some(id))?;
    }
    choose(id, called, all, now_ms(), past.cure()).map_err(|why| usage!(why))
}

fn choose(
    id: &str,
    called: Vec<JobSpan>,
    all: Vec<JobSpan>,
    now_ms: u64,
    cure: &str,
) -> Result<FoundJob, String> {
    let Some(first) = called.first().cloned() else {
        return Err(unknown(id, &all, now_ms, cure));
    };
    // An exact ID takes precedence over names.
    let exact: Vec<_> = called
        .iter()
        .filter(|span| span.id == id)
        .cloned()
        .collect();
    let (first, called) = exact
        .first()
        .cloned()
        .map_or((first, called), |first| (first, exact));
    let different: BTreeSet<_> = called
        .iter()
        .filter(|span| !span.is_same_job(&first))
        .map(full_label)
        .collect();
    if !different.is_empty() {
        let mut names: Vec<_> = [full_label(&first)].into_iter().chain(different).collect();
        names.truncate(NAMED);
        return Err(format!(
            "'{id}' matches several jobs: name one of {}",
            names.join(", ")
        ));
    }
    let (spans, rest): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|span| span.is_same_job(&first));
    let spans = if spans.is_empty() { called } else { spans };
    let is_beside = |other: &&JobSpan| {
        let at_once = |span: &JobSpan| {
            span.uuid == other.uuid && span.from_ms < other.to_ms && other.from_ms < span.to_ms
        };
        spans.iter().any(at_once)
    };
    let others = rest.iter().filter(is_beside).map(label_with_user).collect();
    let known = |what: fn(&JobSpan) -> Option<&String>| spans.iter().find_map(what).cloned();
    let newest = spans
        .iter()
        .find(|span| span.name.is_some())
        .unwrap_or(&first);
    Ok(FoundJob {
        kind: first.kind,
        label: label(newest),
        user: known(|span| span.user.as_ref()),
        others,
        spans,
    })
}

fn unknown(id: &str, all: &[JobSpan], now_ms: u64, cure: &str) -> String {
    let mut known: Vec<&JobSpan> = Vec::new();
    for span in all {
        if !known.iter().any(|other| other.is_same_job(span)) {
            known.push(span);
        }
    }
    if known.is_empty() {
        return format!("there is no job '{id}': none has been seen on a GPU; {cure}");
    }
    // The jobs are sorted by the similarity of their names. Equally similar jobs stay in the order
    // in which they were last seen.
    let distance = |span: &&JobSpan| {
        let names = [
            Some(span.id.as_str()),
            span.name.as_deref(),
            span.name
                .as_deref()
                .and_then(|name| name.rsplit('/').next()),
        ];
        let nearest = names
            .into_iter()
            .flatten()
            .map(|name| jaro_winkler(name, id))
            .fold(0.0, f64::max);
        ((1.0 - nearest) * 1000.0) as u64
    };
    known.sort_by_key(distance);
    let oldest_ms = all.iter().map(|span| span.from_ms).min().unwrap_or(now_ms);
    let names: Vec<_> = known
        .iter()
        .take(NAMED)
        .map(|span| label_with_user(span))
        .collect();
    let reach = duration(now_ms.saturating_sub(oldest_ms));
    format!(
        "there is no job '{id}' among those of the last {reach}: the nearest by name: {}; {cure}",
        names.join(", ")
    )
}

pub(crate) fn label(span: &JobSpan) -> String {
    let short = span.id.chars().take(12).collect::<String>();
    if let Some(system) = span.kind.batch_system() {
        return format!("{system} job {}", span.id);
    }
    match (span.kind, &span.name) {
        (JobKind::Pod, name) => format!("pod {}", name.as_ref().unwrap_or(&span.id)),
        (JobKind::Notebook, Some(path)) => format!("notebook {path}"),
        (JobKind::Notebook, None) => format!("notebook {short}"),
        (JobKind::Container, _) => format!("container {short}"),
        (_, _) => span.id.clone(),
    }
}

fn full_label(span: &JobSpan) -> String {
    format!(
        "{} ({})",
        escaped(&span.id),
        escaped(&label_with_user(span))
    )
}

fn label_with_user(span: &JobSpan) -> String {
    let user = span
        .user
        .as_ref()
        .map_or_else(String::new, |user| format!(" of {user}"));
    label(span) + &user
}

/// The metrics of MIG devices in history.
const MIG: [&str; 4] = [
    "mig.activity.sm_percent",
    "mig.activity.tensor_percent",
    "mig.memory.used_bytes",
    "mig.memory.total_bytes",
];
const TOTAL: &str = "memory.total_bytes";

/// The interval between points of history, until a day is a month old.
const SUMMED_UP_MS: u64 = 60_000;

/// The time for which history may not have any points yet.
const JUST_BEGUN_MS: u64 = 10_000;

/// A device with the measurements during a job.
#[derive(Debug, Default)]
pub(crate) struct MeasuredDevice {
    pub(crate) uuid: String,
    /// The driver's index; for a MIG device, its index on its GPU.
    pub(crate) index: u32,
    pub(crate) name: Option<String>,
    pub(crate) is_mig: bool,
    /// The time for which the job held the device. `known_ms` is the part that history covers.
    pub(crate) held_ms: u64,
    pub(crate) known_ms: u64,
    pub(crate) figures: Figures,
    pub(crate) idle_percent: Option<f64>,
    pub(crate) memory_total_bytes: Option<f64>,
    /// The device's conditions during the job, oldest first.
    pub(crate) conditions: Vec<ConditionSpan>,
}

#[derive(Debug)]
pub(crate) struct Measured {
    /// The devices of the job, GPUs first, sorted by index.
    pub(crate) devices: Vec<MeasuredDevice>,
    pub(crate) all: Figures,
}

impl Measured {
    pub(crate) fn new(job: &FoundJob, past: &PastArgs) -> Result<Self, Failure> {
        let held = by_device(&job.spans);
        let metrics: Vec<_> = METRICS.into_iter().chain([TOTAL]).chain(MIG).collect();
        let mut accounts: BTreeMap<&str, (MeasuredDevice, Meter)> = BTreeMap::new();
        for range in merge_ranges(job.spans.iter().map(|span| span.from_ms..span.to_ms)) {
            // The first point may begin before the job was first seen.
            let range = range.start.saturating_sub(SUMMED_UP_MS)..range.end + 1;
            add(&past.ask(&range, &metrics, None)?, &held, &mut accounts);
        }
        let mut devices: Vec<_> = held
            .iter()
            .map(|(uuid, held)| finish_device(uuid, held, accounts.remove(uuid)))
            .collect();
        if devices.iter().all(|device| device.known_ms == 0) {
            let (label, cure) = (&job.label, past.cure());
            let (from_ms, to_ms) = job.times_ms();
            if to_ms - from_ms < JUST_BEGUN_MS {
                return Err(anyhow!(
                    "{label}: it has held a GPU for a few seconds at most, without a reading yet; \
                     try again if it still runs"
                )
                .into());
            }
            return Err(anyhow!("{label}: history has no readings of its GPUs; {cure}").into());
        }
        devices.sort_by_key(|device| (device.is_mig, device.index));
        let all = Figures::of_all(&devices.iter().map(|device| &device.figures), None);
        Ok(Self { devices, all })
    }
}

/// Returns the times for which each device was held, by UUID.
fn by_device(spans: &[JobSpan]) -> BTreeMap<&str, Vec<Range<u64>>> {
    let mut all: BTreeMap<&str, Vec<Range<u64>>> = BTreeMap::new();
    for span in spans {
        all.entry(&span.uuid)
            .or_default()
            .push(span.from_ms..span.to_ms);
    }
    all.into_iter()
        .map(|(uuid, ranges)| (uuid, merge_ranges(ranges.into_iter())))
        .collect()
}

/// Merges overlapping ranges, and sorts them by their start.
fn merge_ranges(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut ranges: Vec<_> = ranges.collect();
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

fn add<'a>(
    span: &HistorySpan,
    held: &BTreeMap<&'a str, Vec<Range<u64>>>,
    measured: &mut BTreeMap<&'a str, (MeasuredDevice, Meter)>,
) {
    let gpus = span.gpus.iter().map(|gpu| (gpu, false));
    for (device, is_mig) in gpus.chain(span.mig_devices.iter().map(|mig| (mig, true))) {
        let Some((uuid, ranges)) = held.get_key_value(device.uuid.as_str()) else {
            continue;
        };
        let (known, meter) = measured.entry(uuid).or_default();
        (known.index, known.is_mig) = (device.index, is_mig);
        known.name = device.name.clone().or(known.name.take());
        meter.interrupt();
        for (place, at_ms) in span.times_ms.iter().enumerate() {
            let time_ms = time_ms(span, place);
            let held_ms: u64 = ranges
                .iter()
                .map(|range| overlapping_ms(range, &(*at_ms..at_ms + time_ms)))
                .sum();
            if held_ms == 0 {
                meter.interrupt();
                continue;
            }
            let mut point = Point::new(span, device, place);
            point.time_ms = point.time_ms.min(held_ms);
            meter.add(&point);
            let total = find_series(device, TOTAL).and_then(|series| series.values[place]);
            known.memory_total_bytes = total.or(known.memory_total_bytes);
        }
        let meanwhile = span.conditions.iter().filter(|condition| {
            let lasted = condition.from_ms..condition.to_ms.unwrap_or(span.to_ms);
            condition.uuid == **uuid
                && ranges
                    .iter()
                    .any(|range| overlapping_ms(range, &lasted) > 0)
        });
        for condition in meanwhile {
            if !known.conditions.contains(condition) {
                known.conditions.push(condition.clone());
            }
        }
    }
}

fn finish_device(
    uuid: &str,
    held: &[Range<u64>],
    measured: Option<(MeasuredDevice, Meter)>,
) -> MeasuredDevice {
    let (device, meter) = measured.unwrap_or_default();
    let held_ms: u64 = held.iter().map(|range| range.end - range.start).sum();
    let throttled =
        (held_ms > 0 && !device.is_mig).then(|| throttled_percent(&device.conditions, held));
    MeasuredDevice {
        uuid: uuid.to_owned(),
        held_ms,
        known_ms: meter.time_ms(),
        figures: meter.to_figures(throttled),
        idle_percent: meter.idle_percent(),
        ..device
    }
}

#[cfg(test)]
mod tests {
    use gpumon_history::span::{DeviceSpan, Series};

    use super::*;

    const CURE: &str = "keep more";

    fn span(kind: JobKind, id: &str, name: Option<&str>, uuid: &str, times: (u64, u64)) -> JobSpan {
        let [id, uuid] = [id, uuid].map(str::to_owned);
        let (name, user) = (name.map(str::to_owned), Some("ana".to_owned()));
        JobSpan {
            kind,
            id,
            name,
            user,
            uuid,
            from_ms: times.0,
            to_ms: times.1,
            private: false,
        }
    }

    fn all() -> Vec<JobSpan> {
        vec![
            span(JobKind::Slurm, "88123", None, "GPU-0", (50_000, 90_000)),
            span(JobKind::Slurm, "88123", None, "GPU-1", (50_000, 80_000)),
            span(JobKind::Slurm, "88124", None, "GPU-1", (70_000, 95_000)),
            span(JobKind::Slurm, "7", None, "GPU-1", (10_000, 40_000)),
            span(
                JobKind::Pod,
                "aaaa-bbbb",
                Some("research/train-0"),
                "GPU-2",
                (20_000, 30_000),
            ),
            span(
                JobKind::Pod,
                "research/train-0",
                Some("research/train-0"),
                "GPU-2",
                (10_000, 30_000),
            ),
            span(
                JobKind::Pod,
                "cccc-dddd",
                Some("web/train-0"),
                "GPU-3",
                (10_000, 20_000),
            ),
            span(
                JobKind::Notebook,
                "0123456789",
                Some("/home/ana/train.ipynb"),
                "GPU-4",
                (0, 5_000),
            ),
            span(
                JobKind::Service,
                "ollama.service",
                None,
                "GPU-5",
                (0, 5_000),
            ),
        ]
    }

    fn found(id: &str) -> Result<FoundJob, String> {
        let called = all()
            .into_iter()
            .filter(|span| span.is_called(id))
            .collect();
        choose(id, called, all(), 100_000, CURE)
    }

    #[test]
    fn a_job_is_found_by_what_people_call_it_on_all_its_gpus_with_who_was_beside_it() {
        let slurm = found("88123").unwrap();
        assert_eq!(
            (slurm.label.as_str(), slurm.spans.len(), slurm.times_ms()),
            ("Slurm job 88123", 2, (50_000, 90_000))
        );
        assert_eq!(
            slurm.others.iter().map(String::as_str).collect::<Vec<_>>(),
            ["Slurm job 88124 of ana"]
        );
        for id in ["research/train-0", "aaaa-bbbb", "aaaa-bb"] {
            let pod = found(id).unwrap();
            assert_eq!(
                (pod.label.as_str(), pod.spans.len(), pod.others.len()),
                ("pod research/train-0", 2, 0),
                "{id}"
            );
        }
        for (id, label) in [
            ("train.ipynb", "notebook /home/ana/train.ipynb"),
            ("ollama", "ollama.service"),
            ("012345", "notebook /home/ana/train.ipynb"),
        ] {
            assert_eq!(found(id).unwrap().label, label);
        }
    }

    #[test]
    fn what_is_no_job_or_several_is_refused_with_those_that_there_are() {
        let several = found("train-0").unwrap_err();
        assert!(
            several.starts_with("'train-0' matches several jobs: name one of")
                && several.contains("cccc-dddd"),
            "{several}"
        );
        let near = found("88125").unwrap_err();
        let start = "there is no job '88125' among those of the last 1 min: the nearest by name: Slurm job 8812";
        assert!(
            near.starts_with(start) && near.ends_with("; keep more"),
            "{near}"
        );
        assert!(found("8812").is_err(), "a number is whole");
        let none = choose("1", Vec::new(), Vec::new(), 5, CURE).unwrap_err();
        assert_eq!(
            none,
            "there is no job '1': none has been seen on a GPU; keep more"
        );
    }

    #[test]
    fn times_that_overlap_are_one() {
        assert_eq!(
            merge_ranges([5..9, 1..3, 2..4, 9..10].into_iter()),
            [1..4, 5..10]
        );
        assert_eq!(
            (
                overlapping_ms(&(0..5), &(3..9)),
                overlapping_ms(&(0..5), &(6..9))
            ),
            (2, 0)
        );
    }

    /// Returns a minute of history with points every ten seconds. The GPU is busy in the last three
    /// points.
    fn make_minute() -> HistorySpan {
        let series = |values: [f64; 6]| {
            let values: Vec<_> = values.into_iter().map(Some).collect();
            Series {
                min: Some(values.clone()),
                max: Some(values.clone()),
                values,
            }
        };
        let metrics = [
            (
                "utilization.gpu_percent",
                series([0.0, 0.0, 0.0, 90.0, 90.0, 60.0]),
            ),
            (
                "power.draw_watts",
                series([100.0, 100.0, 100.0, 500.0, 500.0, 500.0]),
            ),
            (TOTAL, series([80.0; 6])),
        ];
        let metrics = metrics
            .map(|(name, series)| (name.to_owned(), series))
            .into();
        let gpu = DeviceSpan {
            uuid: "GPU-0".to_owned(),
            index: 3,
            metrics,
            ..DeviceSpan::default()
        };
        let times_ms = (0..6).map(|place| place * 10_000).collect();
        HistorySpan {
            to_ms: 60_000,
            resolution_ms: 10_000,
            times_ms,
            gpus: vec![gpu],
            ..HistorySpan::default()
        }
    }

    fn measure_held(ranges: &[Range<u64>]) -> MeasuredDevice {
        let held = BTreeMap::from([("GPU-0", ranges.to_vec())]);
        let mut accounts = BTreeMap::new();
        add(&make_minute(), &held, &mut accounts);
        finish_device("GPU-0", &held["GPU-0"], accounts.remove("GPU-0"))
    }

    #[test]
    fn gpu_is_measured_only_while_held() {
        let all = measure_held(&[0..30_000, 30_000..60_000]);
        assert_eq!(
            (all.index, all.held_ms, all.known_ms, all.idle_percent),
            (3, 60_000, 60_000, Some(50.0))
        );
        assert_eq!(
            (all.figures.0[0], all.figures.0[1], all.figures.0[5]),
            (Some(40.0), Some(90.0), Some(18_000.0))
        );
        assert_eq!(all.memory_total_bytes, Some(80.0));
        let later = measure_held(&[30_000..40_000, 45_000..50_000]);
        assert_eq!(
            (later.held_ms, later.known_ms, later.idle_percent),
            (15_000, 15_000, Some(0.0))
        );
        assert_eq!(
            (later.figures.0[0], later.figures.0[5]),
            (Some(90.0), Some(7_500.0)),
            "half of a point is half its energy"
        );
        assert_eq!(measure_held(&[70_000..75_000, 75_000..80_000]).known_ms, 0);
    }
}
