//! The history of jobs: the times and GPUs of each job, including ended jobs.

use std::collections::{HashMap, VecDeque};

use gpumon_probe::model::{Allocation, Job, JobKind, Owner, Reading, Sample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A job, pod, container, notebook or service on one GPU or MIG device. The span starts with the
/// job's first process, or when a scheduler allocates the device to the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobSpan {
    /// The kind of the job.
    pub kind: JobKind,
    /// The ID of the [Job](#job); for a pod without known processes, its namespace and name.
    pub id: String,
    /// The path of a notebook, or the namespace and name of a pod. `null` if unknown.
    pub name: Option<String>,
    /// The login name of the user of the job's first process; `null` if unknown.
    pub user: Option<String>,
    /// The UUID of the GPU or MIG device.
    pub uuid: String,
    /// The time at which the job was first seen on the device.
    pub from_ms: u64,
    /// The time at which the job was last seen on the device. For a running job, this is the time
    /// of the newest sample.
    pub to_ms: u64,
    /// Whether the job's ID is found only in the environment of its processes. Omitted from JSON if
    /// `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

/// The response of `/api/v1/jobs`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobList {
    /// The jobs, the most recently seen first. The maximum is 1024.
    pub jobs: Vec<JobSpan>,
}

/// A job counts as ended if it has had no process for longer than this. The limit is this high
/// because the steps of a job and the cells of a notebook can be minutes apart.
const MAX_GAP_MS: u64 = 5 * 60 * 1000;

/// The maximum number of jobs in memory, and in the response to a request.
pub const MAX_JOBS: usize = 1024;

/// The maximum number of jobs that are written with one bucket.
const MAX_CHANGED_JOBS: usize = 512;

/// The jobs in the samples so far.
#[derive(Debug, Default)]
pub struct Jobs {
    /// The jobs that are running or have just ended, by kind, ID and device.
    open: HashMap<(JobKind, String, String), JobSpan>,
    /// The ended jobs, in the order in which they ended.
    past: VecDeque<JobSpan>,
    /// The end of the newest job span that has been taken for writing.
    taken_ms: u64,
}

impl JobSpan {
    /// Returns `true` if `text` identifies the job by ID or name, see [`is_job_named`].
    pub fn matches_id_or_name(&self, text: &str) -> bool {
        is_job_named(self.kind, &self.id, self.name.as_ref(), text)
    }

    /// Returns a unique key. A running job keeps its key while its end time advances.
    pub(crate) fn key(&self) -> (&'static str, &str, &str, u64) {
        (self.kind.json_name(), &self.id, &self.uuid, self.from_ms)
    }

    /// Returns `true` if both spans belong to the same job, on other devices or at other times.
    pub fn is_same_job(&self, other: &Self) -> bool {
        let is_same_name =
            || self.kind == JobKind::Pod && self.name.is_some() && self.name == other.name;
        self.kind == other.kind && (self.id == other.id || is_same_name())
    }
}

/// Returns `true` if `text` identifies the job: by its ID or a sufficient prefix of it, by its
/// name, or by the last part of its name.
pub fn is_job_named(kind: JobKind, id: &str, name: Option<&String>, text: &str) -> bool {
    let last = |name: &str| name.rsplit('/').next() == Some(text);
    let is_named = name.is_some_and(|name| name == text || last(name));
    // Six characters are enough to identify these IDs. Numeric IDs must be complete.
    let is_begun = matches!(kind, JobKind::Container | JobKind::Notebook | JobKind::Pod)
        && text.len() >= 6
        && id.starts_with(text);
    let is_unit = id.strip_suffix(".service") == Some(text);
    // Like `qstat`, accept a job's number without its server name.
    let is_pbs_number = kind == JobKind::Pbs && id.split('.').next() == Some(text);
    id == text || is_named || is_begun || is_unit || is_pbs_number
}

impl Jobs {
    /// Adds the jobs of a sample, and ends the jobs that have not been seen for a while.
    pub fn push(&mut self, sample: &Sample) {
        let at_ms = sample.at_ms;
        let is_over = |span: &JobSpan| span.to_ms.saturating_add(MAX_GAP_MS) < at_ms;
        self.past.extend(
            self.open
                .extract_if(|_, span| is_over(span))
                .map(|(_, span)| span),
        );
        self.past.drain(..self.past.len().saturating_sub(MAX_JOBS));
        for gpu in &sample.gpus {
            let Some(uuid) = &gpu.uuid else { continue };
            let mig = || gpu.mig_devices.items().iter();
            let held = mig()
                .map(|mig| (&mig.uuid, &mig.allocated_to))
                .chain([(uuid, &gpu.allocated_to)]);
            for (uuid, holders) in held {
                for holder in holders {
                    self.record_job(holder.job(), allocation_user(holder), uuid, at_ms);
                }
            }
            for process in gpu.processes.items() {
                let Some(job) = process.owner.value().and_then(Owner::job) else {
                    continue;
                };
                let of_instance = mig()
                    .find(|mig| Some(mig.instance) == process.mig)
                    .map(|mig| &mig.uuid);
                self.record_job(
                    job,
                    process.user.value(),
                    of_instance.unwrap_or(uuid),
                    at_ms,
                );
            }
        }
    }

    fn record_job(&mut self, job: Job, user: Option<&String>, uuid: &str, at_ms: u64) {
        let key = (job.kind, job.id, uuid.to_owned());
        let is_full = self.open.len() >= MAX_JOBS && !self.open.contains_key(&key);
        if is_full {
            return;
        }
        let path = job.path.as_ref().and_then(Reading::value).cloned();
        let span = self
            .open
            .entry(key)
            .or_insert_with_key(|(kind, id, uuid)| JobSpan {
                kind: *kind,
                id: id.clone(),
                name: None,
                user: None,
                uuid: uuid.clone(),
                from_ms: at_ms,
                to_ms: at_ms,
                private: job.private,
            });
        span.private &= job.private;
        span.to_ms = at_ms;
        span.name = job.name.or(path).or_else(|| span.name.take());
        if span.user.is_none() {
            span.user = user.cloned();
        }
    }

    /// Returns all jobs in memory.
    pub fn all(&self) -> impl Iterator<Item = &JobSpan> {
        self.past.iter().chain(self.open.values())
    }

    /// Returns the jobs that were seen since the last call.
    pub(crate) fn take_changed_jobs(&mut self) -> Vec<JobSpan> {
        let taken_ms = self.taken_ms;
        let changed = self
            .all()
            .filter(|span| span.to_ms > taken_ms)
            .take(MAX_CHANGED_JOBS);
        let changed: Vec<_> = changed.cloned().collect();
        self.taken_ms = changed
            .iter()
            .map(|span| span.to_ms)
            .fold(taken_ms, u64::max);
        changed
    }
}

fn allocation_user(holder: &Allocation) -> Option<&String> {
    match holder {
        Allocation::Slurm { user, .. } => user.as_ref(),
        Allocation::Kubernetes { .. } => None,
    }
}

/// Merges two lists, the most recently seen job first. If a job is in both lists, the entry in
/// `first` is used.
pub fn merge_jobs(first: Vec<JobSpan>, second: Vec<JobSpan>) -> Vec<JobSpan> {
    let mut all = first;
    for span in second {
        let is_known = |known: &JobSpan| {
            known.is_same_job(&span) && known.uuid == span.uuid && known.from_ms == span.from_ms
        };
        if !all.iter().any(is_known) {
            all.push(span);
        }
    }
    all.sort_by(|one, other| other.to_ms.cmp(&one.to_ms).then(one.uuid.cmp(&other.uuid)));
    all.truncate(MAX_JOBS);
    all
}

#[cfg(test)]
mod tests {
    use gpumon_probe::{
        host::HostReader,
        model::{Absence, GpuSample, Health},
    };

    use super::*;

    fn make_slurm_allocation(job_id: &str) -> Allocation {
        Allocation::Slurm {
            job_id: job_id.to_owned(),
            user: Some("ana".to_owned()),
        }
    }

    /// Returns a sample of one GPU with these allocations.
    fn make_sample(at_ms: u64, holders: &[Allocation]) -> Sample {
        let mut gpu = GpuSample::new_absent(
            0,
            Some("GPU-a".to_owned()),
            at_ms,
            Health::Ok,
            &Absence::NotSupported,
        );
        gpu.allocated_to = holders.to_vec();
        Sample {
            seq: 0,
            at_ms,
            interval_ms: 1000,
            gpus: vec![gpu],
            host: HostReader::new().read(),
        }
    }

    fn list_times(jobs: &Jobs) -> Vec<(String, u64, u64)> {
        let mut times: Vec<_> = jobs
            .all()
            .map(|span| (span.id.clone(), span.from_ms, span.to_ms))
            .collect();
        times.sort();
        times
    }

    #[test]
    fn job_is_continued_after_short_gap() {
        let mut jobs = Jobs::default();
        for (at_ms, holders) in [
            (
                1_000,
                &[make_slurm_allocation("1"), make_slurm_allocation("2")][..],
            ),
            (2_000, &[make_slurm_allocation("1")]),
            (3_000, &[]),
            (100_000, &[make_slurm_allocation("1")]),
            (500_000, &[make_slurm_allocation("2")]),
            (900_000, &[make_slurm_allocation("1")]),
        ] {
            jobs.push(&make_sample(at_ms, holders));
        }
        let span = |id: &str, from_ms, to_ms| (id.to_owned(), from_ms, to_ms);
        let known = [
            span("1", 1_000, 100_000),
            span("1", 900_000, 900_000),
            span("2", 1_000, 1_000),
            span("2", 500_000, 500_000),
        ];
        assert_eq!(list_times(&jobs), known);
        assert!(
            jobs.all()
                .all(|span| span.user.as_deref() == Some("ana") && span.uuid == "GPU-a")
        );
    }

    #[test]
    fn each_changed_job_is_returned_once() {
        let mut jobs = Jobs::default();
        let taken = |jobs: &mut Jobs| {
            jobs.take_changed_jobs()
                .into_iter()
                .map(|span| span.id)
                .collect::<Vec<_>>()
        };
        jobs.push(&make_sample(1_000, &[make_slurm_allocation("1")]));
        assert_eq!(taken(&mut jobs), ["1"]);
        assert_eq!(taken(&mut jobs), [""; 0]);
        jobs.push(&make_sample(2_000, &[make_slurm_allocation("2")]));
        assert_eq!(taken(&mut jobs), ["2"]);
    }

    #[test]
    fn number_of_remembered_jobs_is_limited() {
        let mut jobs = Jobs::default();
        for round in 0..4_u64 {
            let holders: Vec<_> = (0..MAX_JOBS)
                .map(|number| make_slurm_allocation(&format!("{round}-{number}")))
                .collect();
            jobs.push(&make_sample(1_000 + round * 400_000, &holders));
        }
        assert!(
            jobs.all().count() <= 2 * MAX_JOBS
                && jobs.take_changed_jobs().len() <= MAX_CHANGED_JOBS
        );
    }

    #[test]
    fn job_is_found_by_id_name_or_prefix() {
        let span = |kind, id: &str, name: Option<&str>| JobSpan {
            kind,
            id: id.to_owned(),
            name: name.map(str::to_owned),
            user: None,
            uuid: String::new(),
            from_ms: 0,
            to_ms: 0,
            private: false,
        };
        let pod = span(JobKind::Pod, "11112222-3333", Some("research/train-0"));
        for text in ["11112222-3333", "111122", "research/train-0", "train-0"] {
            assert!(pod.matches_id_or_name(text), "{text}");
        }
        assert!(
            !pod.matches_id_or_name("11112")
                && !pod.matches_id_or_name("research")
                && !pod.matches_id_or_name("")
        );
        assert!(!span(JobKind::Slurm, "88123456", None).matches_id_or_name("881234"));
        assert!(span(JobKind::Service, "ollama.service", None).matches_id_or_name("ollama"));
        assert!(span(JobKind::Pbs, "88123[7].server", None).matches_id_or_name("88123[7]"));
        assert!(!span(JobKind::Pbs, "88123.server", None).matches_id_or_name("8812"));
        let by_name = span(JobKind::Pod, "research/train-0", Some("research/train-0"));
        assert!(
            pod.is_same_job(&by_name)
                && !pod.is_same_job(&span(JobKind::Slurm, "11112222-3333", None))
        );
    }

    #[test]
    fn job_in_both_lists_keeps_first_version() {
        let span = |id: &str, to_ms| JobSpan {
            kind: JobKind::Slurm,
            id: id.to_owned(),
            name: None,
            user: None,
            uuid: "GPU-a".to_owned(),
            from_ms: 5,
            to_ms,
            private: false,
        };
        assert_eq!(
            merge_jobs(vec![span("1", 9)], vec![span("1", 8), span("2", 10)]),
            [span("2", 10), span("1", 9)]
        );
    }
}
