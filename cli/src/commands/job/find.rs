//! Search for a job by ID or name, and measurement of the job's devices.

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
    model::{JobKind, LimitSummary, now_ms},
    units::format_duration,
    untrusted::escape_untrusted,
};
use strsim::jaro_winkler;

use super::{
    super::figures::{
        Figures, METRICS, Meter, Point, calculate_overlap_ms, calculate_throttled_percent,
        find_series, point_duration_ms,
    },
    limits::LimitMeter,
};
use crate::{
    exit::{Result, usage},
    past_readings::PastArgs,
};

/// The maximum number of other jobs that an error message lists.
const MAX_NAMED: usize = 5;

/// A job and the spans in which it used devices.
#[derive(Debug)]
pub(crate) struct FoundJob {
    pub(crate) kind: JobKind,
    /// The displayed name, such as `Slurm job 88123`.
    pub(crate) label: String,
    pub(crate) user: Option<String>,
    /// The spans in which the job used devices, newest first.
    pub(crate) spans: Vec<JobSpan>,
    /// Other jobs that used the same devices at the same time.
    pub(crate) others: BTreeSet<String>,
}

impl FoundJob {
    /// Returns the first and last times at which the job used any device, in milliseconds since
    /// 1970.
    pub(crate) fn time_range_ms(&self) -> (u64, u64) {
        let from_ms = self.spans.iter().map(|span| span.from_ms).min();
        let to_ms = self.spans.iter().map(|span| span.to_ms).max();
        (from_ms.unwrap_or(0), to_ms.unwrap_or(0))
    }
}

/// Finds the single job with the ID or name `id`.
///
/// # Errors
/// Returns an error if no job or more than one job matches.
pub(crate) fn find_job(id: &str, past: &PastArgs) -> Result<FoundJob> {
    let all = past.list_jobs(None)?;
    let mut called: Vec<JobSpan> = all
        .iter()
        .filter(|span| span.matches_id_or_name(id))
        .cloned()
        .collect();
    if called.is_empty() {
        // The list of all jobs has a limited length, so the job may be missing from it. The job is
        // therefore also requested by its ID or name.
        called = past.list_jobs(Some(id))?;
    }
    choose_job(
        id,
        called,
        all,
        now_ms(),
        past.describe_missing_history_fix(),
    )
    .map_err(|why| usage!(why))
}

fn choose_job(
    id: &str,
    called: Vec<JobSpan>,
    all: Vec<JobSpan>,
    now_ms: u64,
    cure: &str,
) -> Result<FoundJob, String> {
    // A job with exactly this ID takes precedence over jobs with this name.
    let exact: Vec<_> = called
        .iter()
        .filter(|span| span.id == id)
        .cloned()
        .collect();
    let called = if exact.is_empty() { called } else { exact };
    let Some(first) = called.first().cloned() else {
        return Err(describe_unknown_job(id, &all, now_ms, cure));
    };
    let different: BTreeSet<_> = called
        .iter()
        .filter(|span| !span.is_same_job(&first))
        .map(format_full_label)
        .collect();
    if !different.is_empty() {
        let mut names: Vec<_> = [format_full_label(&first)]
            .into_iter()
            .chain(different)
            .collect();
        names.truncate(MAX_NAMED);
        return Err(format!(
            "'{id}' matches several jobs: use one of {}",
            names.join(", ")
        ));
    }
    let (spans, rest): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|span| span.is_same_job(&first));
    let spans = if spans.is_empty() { called } else { spans };
    let is_sibling = |other: &&JobSpan| {
        let at_once = |span: &JobSpan| {
            span.uuid == other.uuid && span.from_ms < other.to_ms && other.from_ms < span.to_ms
        };
        spans.iter().any(at_once)
    };
    let others = rest
        .iter()
        .filter(is_sibling)
        .map(format_label_with_user)
        .collect();
    let known = |what: fn(&JobSpan) -> Option<&String>| spans.iter().find_map(what).cloned();
    let newest = spans
        .iter()
        .find(|span| span.name.is_some())
        .unwrap_or(&first);
    Ok(FoundJob {
        kind: first.kind,
        label: format_label(newest),
        user: known(|span| span.user.as_ref()),
        others,
        spans,
    })
}

fn describe_unknown_job(id: &str, all: &[JobSpan], now_ms: u64, cure: &str) -> String {
    let mut known: Vec<&JobSpan> = Vec::new();
    for span in all {
        if !known.iter().any(|other| other.is_same_job(span)) {
            known.push(span);
        }
    }
    if known.is_empty() {
        return format!("there is no job '{id}': no job has been seen on a GPU; {cure}");
    }
    // The jobs are sorted by the similarity of their names to `id`. Jobs with equally similar names
    // remain sorted by the time at which they were last seen.
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
        .take(MAX_NAMED)
        .map(|span| format_label_with_user(span))
        .collect();
    let reach = format_duration(now_ms.saturating_sub(oldest_ms));
    format!(
        "there is no job '{id}' in the last {reach}; jobs with the most similar names: {}; {cure}",
        names.join(", ")
    )
}

pub(crate) fn format_label(span: &JobSpan) -> String {
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

fn format_full_label(span: &JobSpan) -> String {
    format!(
        "{} ({})",
        escape_untrusted(&span.id),
        escape_untrusted(&format_label_with_user(span))
    )
}

fn format_label_with_user(span: &JobSpan) -> String {
    let user = span
        .user
        .as_ref()
        .map_or_else(String::new, |user| format!(" of {user}"));
    format_label(span) + &user
}

/// The MIG device metrics that are read from history.
const MIG_METRICS: [&str; 4] = [
    "mig.activity.sm_percent",
    "mig.activity.tensor_percent",
    "mig.memory.used_bytes",
    "mig.memory.total_bytes",
];
const TOTAL_MEMORY: &str = "memory.total_bytes";

/// The interval between points of history in milliseconds. Points older than a month have longer
/// intervals.
const POINT_INTERVAL_MS: u64 = 60_000;

/// The maximum run time, in milliseconds, of a job that may have no point in history yet.
const MIN_HISTORY_MS: u64 = 10_000;

/// A device, as measured while a job used it.
#[derive(Debug, Default)]
pub(crate) struct MeasuredDevice {
    pub(crate) uuid: String,
    /// The GPU's index in the driver, or the MIG device's index on its GPU.
    pub(crate) index: u32,
    pub(crate) name: Option<String>,
    pub(crate) is_mig: bool,
    /// The total duration for which the job held the device, in milliseconds. History covers only
    /// the part `known_ms` of this duration.
    pub(crate) held_ms: u64,
    pub(crate) known_ms: u64,
    pub(crate) figures: Figures,
    pub(crate) idle_percent: Option<f64>,
    pub(crate) memory_total_bytes: Option<f64>,
    /// `None` for MIG devices, and if the history was recorded by an older version.
    pub(crate) limits: Option<LimitSummary>,
    /// The device's conditions while the job ran, oldest first.
    pub(crate) conditions: Vec<ConditionSpan>,
}

#[derive(Debug)]
pub(crate) struct MeasuredJob {
    /// The job's devices: GPUs before MIG devices, sorted by index.
    pub(crate) devices: Vec<MeasuredDevice>,
    pub(crate) all: Figures,
}

impl MeasuredJob {
    pub(crate) fn new(job: &FoundJob, past: &PastArgs) -> Result<Self> {
        let held = group_by_device(&job.spans);
        let metrics: Vec<_> = METRICS
            .into_iter()
            .chain([TOTAL_MEMORY])
            .chain(MIG_METRICS)
            .chain(LimitMeter::list_metrics())
            .collect();
        let mut accounts = BTreeMap::new();
        for range in merge_ranges(job.spans.iter().map(|span| span.from_ms..span.to_ms)) {
            // The first point may start before the job was first seen, so the range is extended by
            // the length of one point.
            let range = range.start.saturating_sub(POINT_INTERVAL_MS)..range.end + 1;
            add_span_to_devices(
                &past.fetch_history(&range, &metrics, None)?,
                &held,
                &mut accounts,
            );
        }
        let mut devices: Vec<_> = held
            .iter()
            .map(|(uuid, held)| finish_device_measurement(uuid, held, accounts.remove(uuid)))
            .collect();
        if devices.iter().all(|device| device.known_ms == 0) {
            let (label, cure) = (&job.label, past.describe_missing_history_fix());
            let (from_ms, to_ms) = job.time_range_ms();
            if to_ms - from_ms < MIN_HISTORY_MS {
                return Err(anyhow!(
                    "{label}: the job has used a GPU for only a few seconds and has no readings \
                     yet; try again if it is still running"
                )
                .into());
            }
            return Err(
                anyhow!("{label}: history has no readings of this job's GPUs; {cure}").into(),
            );
        }
        devices.sort_by_key(|device| (device.is_mig, device.index));
        let all = Figures::combine(&devices.iter().map(|device| &device.figures), None);
        Ok(Self { devices, all })
    }
}

/// Returns the spans in which each device was held, by UUID.
fn group_by_device(spans: &[JobSpan]) -> BTreeMap<&str, Vec<Range<u64>>> {
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

/// A device with the sums of its readings.
type Account = (MeasuredDevice, Meter, LimitMeter);

fn add_span_to_devices<'a>(
    span: &HistorySpan,
    held: &BTreeMap<&'a str, Vec<Range<u64>>>,
    measured: &mut BTreeMap<&'a str, Account>,
) {
    let gpus = span.gpus.iter().map(|gpu| (gpu, false));
    for (device, is_mig) in gpus.chain(span.mig_devices.iter().map(|mig| (mig, true))) {
        let Some((uuid, ranges)) = held.get_key_value(device.uuid.as_str()) else {
            continue;
        };
        let (known, meter, limits) = measured.entry(uuid).or_default();
        (known.index, known.is_mig) = (device.index, is_mig);
        known.name = device.name.clone().or(known.name.take());
        meter.mark_gap();
        for (place, at_ms) in span.times_ms.iter().enumerate() {
            let time_ms = point_duration_ms(span, place);
            let held_ms: u64 = ranges
                .iter()
                .map(|range| calculate_overlap_ms(range, &(*at_ms..at_ms + time_ms)))
                .sum();
            if held_ms == 0 {
                meter.mark_gap();
                continue;
            }
            let mut point = Point::new(span, device, place);
            point.time_ms = point.time_ms.min(held_ms);
            meter.add(&point);
            limits.add(device, place, point.time_ms);
            let total = find_series(device, TOTAL_MEMORY).and_then(|series| series.values[place]);
            known.memory_total_bytes = total.or(known.memory_total_bytes);
        }
        let meanwhile = span.conditions.iter().filter(|condition| {
            let lasted = condition.from_ms..condition.to_ms.unwrap_or(span.to_ms);
            condition.uuid == **uuid
                && ranges
                    .iter()
                    .any(|range| calculate_overlap_ms(range, &lasted) > 0)
        });
        for condition in meanwhile {
            if !known.conditions.contains(condition) {
                known.conditions.push(condition.clone());
            }
        }
    }
}

fn finish_device_measurement(
    uuid: &str,
    held: &[Range<u64>],
    measured: Option<Account>,
) -> MeasuredDevice {
    let (device, meter, limits) = measured.unwrap_or_default();
    let held_ms: u64 = held.iter().map(|range| range.end - range.start).sum();
    let throttled = (held_ms > 0 && !device.is_mig)
        .then(|| calculate_throttled_percent(&device.conditions, held));
    MeasuredDevice {
        uuid: uuid.to_owned(),
        held_ms,
        known_ms: meter.covered_ms(),
        figures: meter.to_figures(throttled),
        idle_percent: meter.idle_percent(),
        limits: limits.summary(&device.conditions, held),
        ..device
    }
}

#[cfg(test)]
mod tests {
    use gpumon_history::span::{DeviceSpan, Series};

    use super::*;

    const CURE: &str = "keep more";

    fn make_span(
        kind: JobKind,
        id: &str,
        name: Option<&str>,
        uuid: &str,
        times: (u64, u64),
    ) -> JobSpan {
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

    fn make_spans() -> Vec<JobSpan> {
        vec![
            make_span(JobKind::Slurm, "88123", None, "GPU-0", (50_000, 90_000)),
            make_span(JobKind::Slurm, "88123", None, "GPU-1", (50_000, 80_000)),
            make_span(JobKind::Slurm, "88124", None, "GPU-1", (70_000, 95_000)),
            make_span(JobKind::Slurm, "7", None, "GPU-1", (10_000, 40_000)),
            make_span(
                JobKind::Pod,
                "aaaa-bbbb",
                Some("research/train-0"),
                "GPU-2",
                (20_000, 30_000),
            ),
            make_span(
                JobKind::Pod,
                "research/train-0",
                Some("research/train-0"),
                "GPU-2",
                (10_000, 30_000),
            ),
            make_span(
                JobKind::Pod,
                "cccc-dddd",
                Some("web/train-0"),
                "GPU-3",
                (10_000, 20_000),
            ),
            make_span(
                JobKind::Notebook,
                "0123456789",
                Some("/home/ana/train.ipynb"),
                "GPU-4",
                (0, 5_000),
            ),
            make_span(
                JobKind::Service,
                "ollama.service",
                None,
                "GPU-5",
                (0, 5_000),
            ),
        ]
    }

    fn choose_by_id(id: &str) -> Result<FoundJob, String> {
        let called = make_spans()
            .into_iter()
            .filter(|span| span.matches_id_or_name(id))
            .collect();
        choose_job(id, called, make_spans(), 100_000, CURE)
    }

    #[test]
    fn job_is_found_by_any_of_its_names() {
        let slurm = choose_by_id("88123").unwrap();
        assert_eq!(
            (
                slurm.label.as_str(),
                slurm.spans.len(),
                slurm.time_range_ms()
            ),
            ("Slurm job 88123", 2, (50_000, 90_000))
        );
        assert_eq!(
            slurm.others.iter().map(String::as_str).collect::<Vec<_>>(),
            ["Slurm job 88124 of ana"]
        );
        for id in ["research/train-0", "aaaa-bbbb", "aaaa-bb"] {
            let pod = choose_by_id(id).unwrap();
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
            assert_eq!(choose_by_id(id).unwrap().label, label);
        }
    }

    #[test]
    fn error_for_unknown_or_ambiguous_job_lists_jobs() {
        let several = choose_by_id("train-0").unwrap_err();
        assert!(
            several.starts_with("'train-0' matches several jobs: use one of")
                && several.contains("cccc-dddd"),
            "{several}"
        );
        let near = choose_by_id("88125").unwrap_err();
        let start = "there is no job '88125' in the last 1 min; jobs with the most similar \
                     names: Slurm job 8812";
        assert!(
            near.starts_with(start) && near.ends_with("; keep more"),
            "{near}"
        );
        assert!(choose_by_id("8812").is_err(), "a number is whole");
        let none = choose_job("1", Vec::new(), Vec::new(), 5, CURE).unwrap_err();
        assert_eq!(
            none,
            "there is no job '1': no job has been seen on a GPU; keep more"
        );
    }

    #[test]
    fn overlapping_time_ranges_are_merged() {
        assert_eq!(
            merge_ranges([5..9, 1..3, 2..4, 9..10].into_iter()),
            [1..4, 5..10]
        );
        assert_eq!(
            (
                calculate_overlap_ms(&(0..5), &(3..9)),
                calculate_overlap_ms(&(0..5), &(6..9))
            ),
            (2, 0)
        );
    }

    /// Returns a minute of history with a point every ten seconds, in which the GPU is busy in the
    /// last three points.
    fn make_one_minute_span() -> HistorySpan {
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
            (TOTAL_MEMORY, series([80.0; 6])),
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

    fn measure_held_ranges(ranges: &[Range<u64>]) -> MeasuredDevice {
        let held = BTreeMap::from([("GPU-0", ranges.to_vec())]);
        let mut accounts = BTreeMap::new();
        add_span_to_devices(&make_one_minute_span(), &held, &mut accounts);
        finish_device_measurement("GPU-0", &held["GPU-0"], accounts.remove("GPU-0"))
    }

    #[test]
    fn job_is_measured_only_while_it_held_gpu() {
        let all = measure_held_ranges(&[0..30_000, 30_000..60_000]);
        assert_eq!(
            (all.index, all.held_ms, all.known_ms, all.idle_percent),
            (3, 60_000, 60_000, Some(50.0))
        );
        assert_eq!(
            (all.figures.0[0], all.figures.0[1], all.figures.0[5]),
            (Some(40.0), Some(90.0), Some(18_000.0))
        );
        assert_eq!(all.memory_total_bytes, Some(80.0));
        let later = measure_held_ranges(&[30_000..40_000, 45_000..50_000]);
        assert_eq!(
            (later.held_ms, later.known_ms, later.idle_percent),
            (15_000, 15_000, Some(0.0))
        );
        assert_eq!(
            (later.figures.0[0], later.figures.0[5]),
            (Some(90.0), Some(7_500.0)),
            "half of a point is half its energy"
        );
        assert_eq!(
            measure_held_ranges(&[70_000..75_000, 75_000..80_000]).known_ms,
            0
        );
    }
}
