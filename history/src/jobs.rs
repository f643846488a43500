//! The history of jobs: the times and GPUs of each job, also after its end.

use std::collections::{HashMap, VecDeque};

use gpumon_probe::model::{Allocation, Job, JobKind, Owner, Reading, Sample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A job, pod, container, notebook or service on one GPU or MIG device. The span starts with its
/// first process, or when a scheduler gives the device to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobSpan {
    /// The kind of the job.
    pub kind: JobKind,
    /// The ID of the [Job](#job); for a pod without known processes, its namespace and name.
    pub id: String,
    /// The path of a notebook, or the namespace and name of a pod. `null` if unknown.
    pub name: Option<String>,
    /// The login name of the first process's user; `null` if unknown.
    pub user: Option<String>,
    /// The UUID of the GPU or MIG device.
    pub uuid: String,
    /// The time at which the job was first seen on the device.
    pub from_ms: u64,
    /// The time at which the job was last seen on the device. For a running job, this is the time
    /// of the newest sample.
    pub to_ms: u64,
    /// Whether only the environment of the job's processes contains the ID. Omitted from JSON if
    /// `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

/// The response of `/api/v1/jobs`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobList {
    /// The jobs, the most recently seen first; at most 1024.
    pub jobs: Vec<JobSpan>,
}

/// The longest time without a process after which a job still continues: there are gaps between the
/// steps of a job and the cells of a notebook.
const LONGEST_GAP_MS: u64 = 5 * 60 * 1000;

/// The maximum number of jobs that are remembered and returned.
pub const MOST: usize = 1024;

/// The maximum number of jobs written per bucket.
const MOST_CHANGED: usize = 512;

/// The jobs of all samples so far.
#[derive(Debug, Default)]
pub struct Jobs {
    /// The jobs that are running or have just ended, by kind, ID and device.
    open: HashMap<(JobKind, String, String), JobSpan>,
    /// The ended jobs, in the order of their ends.
    past: VecDeque<JobSpan>,
    /// The time of the newest job span that was handed over for writing.
    taken_ms: u64,
}

impl JobSpan {
    /// Returns `true` if the text is an ID or name of the job, as in [`is_job_called`].
    pub fn is_called(&self, text: &str) -> bool {
        is_job_called(self.kind, &self.id, self.name.as_ref(), text)
    }

    /// Returns a unique key. A running job has the same key in later lists, with a later end.
    pub(crate) fn key(&self) -> (&'static str, &str, &str, u64) {
        (self.kind.word(), &self.id, &self.uuid, self.from_ms)
    }

    /// Returns `true` if both spans belong to the same job, on other devices or at other times.
    pub fn is_same_job(&self, other: &Self) -> bool {
        let is_same_name =
            || self.kind == JobKind::Pod && self.name.is_some() && self.name == other.name;
        self.kind == other.kind && (self.id == other.id || is_same_name())
    }
}

/// Returns `true` if a text names this job: its ID or enough of its beginning, its name or the last
/// part of the name.
pub fn is_job_called(kind: JobKind, id: &str, name: Option<&String>, text: &str) -> bool {
    let last = |name: &str| name.rsplit('/').next() == Some(text);
    let is_named = name.is_some_and(|name| name == text || last(name));
    // Six characters of these IDs are unique enough. Numbers must be complete.
    let is_begun = matches!(kind, JobKind::Container | JobKind::Notebook | JobKind::Pod)
        && text.len() >= 6
        && id.starts_with(text);
    let is_unit = id.strip_suffix(".service") == Some(text);
    // Like `qstat`, accept a job's number without its server.
    let is_pbs_number = kind == JobKind::Pbs && id.split('.').next() == Some(text);
    id == text || is_named || is_begun || is_unit || is_pbs_number
}

impl Jobs {
    /// Updates the jobs to those of a sample.
    pub fn push(&mut self, sample: &Sample) {
        let at_ms = sample.at_ms;
        let is_over = |span: &JobSpan| span.to_ms.saturating_add(LONGEST_GAP_MS) < at_ms;
        self.past.extend(
            self.open
                .extract_if(|_, span| is_over(span))
                .map(|(_, span)| span),
        );
        self.past.drain(..self.past.len().saturating_sub(MOST));
        for gpu in &sample.gpus {
            let Some(uuid) = &gpu.uuid else { continue };
            let mig = || gpu.mig_devices.value().into_iter().flatten();
            let held = mig()
                .map(|mig| (&mig.uuid, &mig.allocated_to))
                .chain([(uuid, &gpu.allocated_to)]);
            for (uuid, holders) in held {
                for holder in holders {
                    self.see(holder.job(), user_of(holder), uuid, at_ms);
                }
            }
            for process in gpu.processes.value().into_iter().flatten() {
                let Some(job) = process.owner.value().and_then(Owner::job) else {
                    continue;
                };
                let of_instance = mig()
                    .find(|mig| Some(mig.instance) == process.mig)
                    .map(|mig| &mig.uuid);
                self.see(
                    job,
                    process.user.value(),
                    of_instance.unwrap_or(uuid),
                    at_ms,
                );
            }
        }
    }

    fn see(&mut self, job: Job, user: Option<&String>, uuid: &str, at_ms: u64) {
        let key = (job.kind, job.id, uuid.to_owned());
        let is_full = self.open.len() >= MOST && !self.open.contains_key(&key);
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

    /// Returns all remembered jobs.
    pub fn all(&self) -> impl Iterator<Item = &JobSpan> {
        self.past.iter().chain(self.open.values())
    }

    /// Returns the jobs that were seen since the last call.
    pub(crate) fn take_changed(&mut self) -> Vec<JobSpan> {
        let taken_ms = self.taken_ms;
        let changed = self
            .all()
            .filter(|span| span.to_ms > taken_ms)
            .take(MOST_CHANGED);
        let changed: Vec<_> = changed.cloned().collect();
        self.taken_ms = changed
            .iter()
            .map(|span| span.to_ms)
            .fold(taken_ms, u64::max);
        changed
    }
}

fn user_of(holder: &Allocation) -> Option<&String> {
    match holder {
        Allocation::Slurm { user, .. } => user.as_ref(),
        Allocation::Kubernetes { .. } => None,
    }
}

/// Merges two lists, the most recently seen job first. If both have a job, the entry of `first` is
/// used.
pub fn joined(first: Vec<JobSpan>, second: Vec<JobSpan>) -> Vec<JobSpan> {
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
    all.truncate(MOST);
    all
}

#[cfg(test)]
mod tests {
    use gpumon_probe::{
        host::HostReader,
        model::{Absence, GpuSample, Health},
    };

    use super::*;

    fn slurm(job_id: &str) -> Allocation {
        Allocation::Slurm {
            job_id: job_id.to_owned(),
            user: Some("ana".to_owned()),
        }
    }

    /// Returns a sample of one GPU with these allocations.
    fn sample(at_ms: u64, holders: &[Allocation]) -> Sample {
        let mut gpu = GpuSample::absent(
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

    fn times(jobs: &Jobs) -> Vec<(String, u64, u64)> {
        let mut times: Vec<_> = jobs
            .all()
            .map(|span| (span.id.clone(), span.from_ms, span.to_ms))
            .collect();
        times.sort();
        times
    }

    #[test]
    fn a_job_lasts_until_it_was_seen_last_and_a_short_gap_is_no_end() {
        let mut jobs = Jobs::default();
        for (at_ms, holders) in [
            (1_000, &[slurm("1"), slurm("2")][..]),
            (2_000, &[slurm("1")]),
            (3_000, &[]),
            (100_000, &[slurm("1")]),
            (500_000, &[slurm("2")]),
            (900_000, &[slurm("1")]),
        ] {
            jobs.push(&sample(at_ms, holders));
        }
        let span = |id: &str, from_ms, to_ms| (id.to_owned(), from_ms, to_ms);
        let known = [
            span("1", 1_000, 100_000),
            span("1", 900_000, 900_000),
            span("2", 1_000, 1_000),
            span("2", 500_000, 500_000),
        ];
        assert_eq!(times(&jobs), known);
        assert!(
            jobs.all()
                .all(|span| span.user.as_deref() == Some("ana") && span.uuid == "GPU-a")
        );
    }

    #[test]
    fn what_has_changed_is_taken_once() {
        let mut jobs = Jobs::default();
        let taken = |jobs: &mut Jobs| {
            jobs.take_changed()
                .into_iter()
                .map(|span| span.id)
                .collect::<Vec<_>>()
        };
        jobs.push(&sample(1_000, &[slurm("1")]));
        assert_eq!(taken(&mut jobs), ["1"]);
        assert_eq!(taken(&mut jobs), [""; 0]);
        jobs.push(&sample(2_000, &[slurm("2")]));
        assert_eq!(taken(&mut jobs), ["2"]);
    }

    #[test]
    fn however_many_come_so_many_are_remembered() {
        let mut jobs = Jobs::default();
        for round in 0..4_u64 {
            let holders: Vec<_> = (0..MOST)
                .map(|number| slurm(&format!("{round}-{number}")))
                .collect();
            jobs.push(&sample(1_000 + round * 400_000, &holders));
        }
        assert!(jobs.all().count() <= 2 * MOST && jobs.take_changed().len() <= MOST_CHANGED);
    }

    #[test]
    fn a_job_is_called_by_its_id_its_name_or_enough_of_either() {
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
            assert!(pod.is_called(text), "{text}");
        }
        assert!(!pod.is_called("11112") && !pod.is_called("research") && !pod.is_called(""));
        assert!(!span(JobKind::Slurm, "88123456", None).is_called("881234"));
        assert!(span(JobKind::Service, "ollama.service", None).is_called("ollama"));
        assert!(span(JobKind::Pbs, "88123[7].server", None).is_called("88123[7]"));
        assert!(!span(JobKind::Pbs, "88123.server", None).is_called("8812"));
        let by_name = span(JobKind::Pod, "research/train-0", Some("research/train-0"));
        assert!(
            pod.is_same_job(&by_name)
                && !pod.is_same_job(&span(JobKind::Slurm, "11112222-3333", None))
        );
    }

    #[test]
    fn two_lists_are_one_with_what_the_first_says() {
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
            joined(vec![span("1", 9)], vec![span("1", 8), span("2", 10)]),
            [span("2", 10), span("1", 9)]
        );
    }
}
