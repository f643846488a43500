//! Which job was on which GPU, from when to when: what tells of a job after it has ended.

use std::collections::{HashMap, VecDeque};

use gpumon_probe::model::{Allocation, Job, JobKind, Owner, Reading, Sample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A job, pod, container, notebook or service on one GPU or MIG device: with a process, or since a scheduler has given the
/// device to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobSpan {
    /// What it is.
    pub kind: JobKind,
    /// As [Job](#job) has it; of a pod of which no process was seen, its namespace and name.
    pub id: String,
    /// Of a notebook, its path; of a pod, its namespace and name. `null` where they are not known.
    pub name: Option<String>,
    /// The login name of its processes, the first of them where they are several users'; `null` where it is not known.
    pub user: Option<String>,
    /// The UUID of the GPU or MIG device.
    pub uuid: String,
    /// When it was first seen there.
    pub from_ms: u64,
    /// When it was seen there last; the newest sample's time while it lasts.
    pub to_ms: u64,
}

/// What `/api/v1/jobs` answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobList {
    /// Those that were seen last first; at most 1024.
    pub jobs: Vec<JobSpan>,
}

/// Between two steps of a job, or two cells of a notebook, nothing of it may be on the GPU.
const LONGEST_GAP_MS: u64 = 5 * 60 * 1000;

/// So many are remembered, and answered.
pub const MOST: usize = 1024;

/// So many are written for ten seconds.
const MOST_CHANGED: usize = 512;

/// Those of the samples so far.
#[derive(Debug, Default)]
pub struct Jobs {
    /// Of those that last, or have just ended, by kind, id and device.
    open: HashMap<(JobKind, String, String), JobSpan>,
    /// Those that are over, the first to end first.
    past: VecDeque<JobSpan>,
    /// When the newest was handed over to be written.
    taken_ms: u64,
}

impl JobSpan {
    /// Whether it is what somebody calls by this: by its id or the beginning of it, its name or the last part of that.
    pub fn is_called(&self, text: &str) -> bool {
        let last = |name: &String| name.rsplit('/').next() == Some(text);
        let is_named = self.name.as_ref().is_some_and(|name| name == text || last(name));
        // Whoever types so much means no other; numbers are whole.
        let is_begun = matches!(self.kind, JobKind::Container | JobKind::Notebook | JobKind::Pod)
            && text.len() >= 6
            && self.id.starts_with(text);
        let is_unit = self.id.strip_suffix(".service") == Some(text);
        self.id == text || is_named || is_begun || is_unit
    }

    /// Whether two are parts of one: of a job on another device, or at another time.
    pub fn is_same_job(&self, other: &Self) -> bool {
        let is_same_name = || self.kind == JobKind::Pod && self.name.is_some() && self.name == other.name;
        self.kind == other.kind && (self.id == other.id || is_same_name())
    }
}

impl Jobs {
    /// Takes in a sample.
    pub fn push(&mut self, sample: &Sample) {
        let at_ms = sample.at_ms;
        for gpu in &sample.gpus {
            let Some(uuid) = &gpu.uuid else { continue };
            let mig = || gpu.mig_devices.value().into_iter().flatten();
            let held = mig().map(|mig| (&mig.uuid, &mig.allocated_to)).chain([(uuid, &gpu.allocated_to)]);
            for (uuid, holders) in held {
                for holder in holders {
                    self.see(holder.job(), user_of(holder), uuid, at_ms);
                }
            }
            for process in gpu.processes.value().into_iter().flatten() {
                let Some(job) = process.owner.value().and_then(Owner::job) else { continue };
                let of_instance = mig().find(|mig| Some(mig.instance) == process.mig).map(|mig| &mig.uuid);
                self.see(job, process.user.value(), of_instance.unwrap_or(uuid), at_ms);
            }
        }
        let is_over = |span: &JobSpan| span.to_ms.saturating_add(LONGEST_GAP_MS) < at_ms;
        self.past.extend(self.open.extract_if(|_, span| is_over(span)).map(|(_, span)| span));
        self.past.drain(..self.past.len().saturating_sub(MOST));
    }

    fn see(&mut self, job: Job, user: Option<&String>, uuid: &str, at_ms: u64) {
        let key = (job.kind, job.id, uuid.to_owned());
        let is_full = self.open.len() >= MOST && !self.open.contains_key(&key);
        if is_full {
            return;
        }
        let path = job.path.as_ref().and_then(Reading::value).cloned();
        let span = self.open.entry(key).or_insert_with_key(|(kind, id, uuid)| JobSpan {
            kind: *kind,
            id: id.clone(),
            name: None,
            user: None,
            uuid: uuid.clone(),
            from_ms: at_ms,
            to_ms: at_ms,
        });
        span.to_ms = at_ms;
        span.name = job.name.or(path).or_else(|| span.name.take());
        if span.user.is_none() {
            span.user = user.cloned();
        }
    }

    /// All that are remembered.
    pub fn all(&self) -> impl Iterator<Item = &JobSpan> {
        self.past.iter().chain(self.open.values())
    }

    /// Those that were seen since they were taken last.
    pub(crate) fn take_changed(&mut self) -> Vec<JobSpan> {
        let taken_ms = self.taken_ms;
        let changed = self.all().filter(|span| span.to_ms > taken_ms).take(MOST_CHANGED);
        let changed: Vec<_> = changed.cloned().collect();
        self.taken_ms = changed.iter().map(|span| span.to_ms).fold(taken_ms, u64::max);
        changed
    }
}

fn user_of(holder: &Allocation) -> Option<&String> {
    match holder {
        Allocation::Slurm { user, .. } => user.as_ref(),
        Allocation::Kubernetes { .. } => None,
    }
}

/// One list of several: what is in both is as the first has it. The newest come first.
pub fn joined(first: Vec<JobSpan>, second: Vec<JobSpan>) -> Vec<JobSpan> {
    let mut all = first;
    for span in second {
        let is_known = |known: &JobSpan| known.is_same_job(&span) && known.uuid == span.uuid && known.from_ms == span.from_ms;
        if !all.iter().any(is_known) {
            all.push(span);
        }
    }
    all.sort_by(|one, other| other.to_ms.cmp(&one.to_ms).then(one.uuid.cmp(&other.uuid)));
    all.truncate(MOST);
    all
}
