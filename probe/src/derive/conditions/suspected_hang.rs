//! The condition that kernels run without a pause but make no progress: a collective waits for a
//! process that never arrives, or a kernel spins forever.
//!
//! A program under a debugger is not reported, because somebody has stopped it on purpose. A
//! persistent kernel that waits for requests is not reported, because every request changes a
//! reading. While another GPU of the same job works, for example to evaluate the model for all
//! GPUs, a GPU may wait for minutes, so the condition starts only after a longer delay.

use super::{
    baseline::{IdlePower, draw_watts},
    rule::{Moment, Observation, Rule, View},
};
use crate::model::{
    Ancestor, ConditionKind, GpuProcess, GpuSample, Job, JobKind, Owner, Process, ProcessKind,
};

/// The condition starts after all readings have been unchanged for this long. A shorter wait can be
/// normal.
const BEGIN_AFTER_MS: u64 = 120_000;

/// While another GPU of the same job works, the condition starts after all readings have been
/// unchanged for this long.
pub(super) const BEGIN_WITH_WORK_AFTER_MS: u64 = 600_000;

/// The minimum utilization of a GPU that may hang. A kernel that never ends causes a utilization of
/// 100 % in every second.
const BUSY_PERCENT: f64 = 99.5;

/// The maximum memory utilization of a GPU that may hang, as caused by a kernel that polls a flag
/// in memory.
const MAX_MEMORY_PERCENT: f64 = 1.0;

/// The maximum power draw of a board whose kernels only wait, as a share of the power limit. An
/// H200 draws a quarter of its limit.
const MAX_WAITING_POWER_SHARE: f64 = 0.5;

/// The maximum traffic over links of a GPU that may hang. On an H200, an idle or spinning GPU has
/// up to 1 MB/s.
const MAX_TRAFFIC_BYTES_PER_SECOND: f64 = 4e6;

/// The maximum change in used memory for readings to count as unchanged. The driver itself causes
/// small changes from time to time.
const MAX_CHANGE_BYTES: u64 = 2 << 20;

/// The maximum change in SM activity for readings to count as unchanged. A waiting kernel always
/// occupies the same multiprocessors, so its activity varies by less than this.
const MAX_CHANGE_SM_PERCENT: f64 = 0.2;

/// The maximum change in power draw, in watts, for readings to count as unchanged. With a waiting
/// kernel, the draw varies by a tenth of a watt, and changes slowly while the chip cools or warms.
const MAX_CHANGE_WATTS: f64 = 3.0;
const MAX_CHANGE_POWER_SHARE: f64 = 0.04;
const POWER_AVERAGING_MS: f64 = 20_000.0;

/// The longest gap between readings. After a longer gap, progress in between cannot be ruled out.
const MAX_GAP_MS: u64 = 60_000;

/// The maximum number of processes that the condition names because they differ from the rest of
/// their job.
const MAX_DIFFERING: usize = 4;

#[derive(Default)]
pub(super) struct SuspectedHang {
    idle_power: IdlePower,
    still: Option<UnchangedReadings>,
    /// While the condition lasts, the time at which the readings stopped changing.
    since: Option<Moment>,
}

/// Readings that have not changed since a point in time.
#[derive(Debug, Clone, Copy)]
struct UnchangedReadings {
    since: Moment,
    /// The time of the latest comparison.
    at: Moment,
    used_bytes: Option<u64>,
    sm_percent: Option<f64>,
    watts: f64,
}

impl Rule for SuspectedHang {
    fn observe(&mut self, view: &View<'_>, lasts: bool) -> Observation<ConditionKind> {
        self.idle_power.learn(view);
        if !lasts {
            self.since = None;
        }
        let Some(watts) = draw_watts(view, view.sample) else {
            return Observation::Unknown;
        };
        match matches_hang_pattern(
            view,
            watts,
            self.idle_power.max_watts_of_waiting_kernels(view),
        ) {
            None => return Observation::Unknown,
            Some(false) => {
                self.still = None;
                return Observation::Inactive;
            }
            Some(true) => {}
        }
        let Some(still) = self.update_unchanged_readings(view, watts) else {
            return Observation::Inactive;
        };
        let processes = list_compute_processes(view.sample);
        // Samples with an attached debugger are inconclusive, so that debugging a hang does not end
        // the condition.
        if processes
            .iter()
            .any(|process| process.traced.value() == Some(&true))
        {
            self.still = None;
            return Observation::Inconclusive;
        }
        let siblings = Siblings::find_job_siblings(view, &processes);
        let begins_after_ms = if siblings.work {
            BEGIN_WITH_WORK_AFTER_MS
        } else {
            BEGIN_AFTER_MS
        };
        if self.since.is_none() && view.now.ms_since(still.since) < begins_after_ms {
            return Observation::Inconclusive;
        }
        self.since.get_or_insert(still.since);
        let Siblings {
            waiting,
            mut differing,
            ..
        } = siblings;
        // If most GPUs of the job differ from this GPU, this GPU is the exception, so the differing
        // processes are not named.
        if differing.len() > waiting.len().saturating_add(1).min(MAX_DIFFERING) {
            differing.clear();
        }
        Observation::Active(ConditionKind::SuspectedHang {
            power_watts: (watts * 10.0).round() / 10.0,
            pids: processes.iter().map(|process| process.pid).collect(),
            waiting,
            differing,
        })
    }

    fn earlier_start(&self) -> Option<Moment> {
        self.since
    }

    fn forget(&mut self) {
        // The learned idle power is kept, because it is a property of the board.
        *self = Self {
            idle_power: std::mem::take(&mut self.idle_power),
            ..Self::default()
        };
    }
}

impl SuspectedHang {
    /// Compares the sample with the previous sample. Returns `None` if a reading has changed, or if
    /// it is unknown whether a reading has changed.
    fn update_unchanged_readings(
        &mut self,
        view: &View<'_>,
        watts: f64,
    ) -> Option<UnchangedReadings> {
        let used_bytes = view.fresh_value(&view.sample.memory.used_bytes).copied();
        let sm_percent = view.fresh_activity(|activity| &activity.sm_percent);
        let new = UnchangedReadings {
            since: view.now,
            at: view.now,
            used_bytes,
            sm_percent,
            watts,
        };
        let moved = self.still.is_some_and(|still| still.differs_from(&new));
        let still = self
            .still
            .filter(|_| !moved)
            .map_or(new, |still| still.merge_newer(&new));
        self.still = Some(still);
        (!moved).then_some(still)
    }
}

impl UnchangedReadings {
    fn differs_from(&self, new: &Self) -> bool {
        let memory = self
            .used_bytes
            .zip(new.used_bytes)
            .is_some_and(|(was, is)| was.abs_diff(is) > MAX_CHANGE_BYTES);
        let sm = self
            .sm_percent
            .zip(new.sm_percent)
            .is_some_and(|(was, is)| (was - is).abs() > MAX_CHANGE_SM_PERCENT);
        let power = (self.watts - new.watts).abs()
            > MAX_CHANGE_WATTS.max(self.watts * MAX_CHANGE_POWER_SHARE);
        memory || sm || power || new.at.ms_since(self.at) > MAX_GAP_MS
    }

    fn merge_newer(self, new: &Self) -> Self {
        let weight = (new.at.ms_since(self.at) as f64 / POWER_AVERAGING_MS).min(1.0);
        Self {
            at: new.at,
            used_bytes: self.used_bytes.or(new.used_bytes),
            sm_percent: self.sm_percent.or(new.sm_percent),
            watts: self.watts + (new.watts - self.watts) * weight,
            ..self
        }
    }
}

/// Returns `true` if the GPU may be running kernels that only wait, so that it must be sampled
/// often. Absent readings do not rule this out.
pub fn may_be_hung(gpu: &GpuSample) -> bool {
    let utilization = &gpu.utilization;
    let runs = utilization
        .gpu_percent
        .value()
        .zip(utilization.memory_percent.value())
        .is_none_or(|(gpu, memory)| runs_without_memory_access(*gpu, *memory));
    let draws_little = gpu
        .power
        .mean_watts()
        .zip(gpu.power.limit_watts.value())
        .is_none_or(|(watts, limit)| watts <= limit * MAX_WAITING_POWER_SHARE);
    runs && draws_little
}

/// Returns `true` if kernels run all the time without accessing memory.
fn runs_without_memory_access(gpu_percent: f64, memory_percent: f64) -> bool {
    gpu_percent >= BUSY_PERCENT && memory_percent <= MAX_MEMORY_PERCENT
}

/// Returns `true` if kernels run all the time, without traffic and with about the power draw of an
/// idle GPU. Returns `None` if readings are missing.
fn matches_hang_pattern(view: &View<'_>, watts: f64, waiting_watts: Option<f64>) -> Option<bool> {
    let (gpu_percent, memory_percent) = view.fresh_utilization(view.sample)?;
    let engines_rest = view
        .sample
        .utilization
        .engine_percents()
        .into_iter()
        .all(|share| view.fresh_value(share).is_none_or(|share| *share <= 0.0));
    let (pcie, nvlink) = (&view.sample.pcie, &view.sample.nvlink);
    let rates = [
        &pcie.tx_bytes_per_second,
        &pcie.rx_bytes_per_second,
        &nvlink.tx_bytes_per_second,
        &nvlink.rx_bytes_per_second,
    ];
    let is_silent = rates.into_iter().all(|rate| {
        view.fresh_value(rate)
            .is_none_or(|rate| *rate <= MAX_TRAFFIC_BYTES_PER_SECOND)
    });
    Some(
        runs_without_memory_access(gpu_percent, memory_percent)
            && watts <= waiting_watts?
            && engines_rest
            && is_silent,
    )
}

fn list_compute_processes(gpu: &GpuSample) -> Vec<&Process> {
    let all = gpu.processes.items().iter();
    all.filter(|process| process.kind != ProcessKind::Graphics)
        .collect()
}

/// Other GPUs with processes of the same job.
#[derive(Debug, Default)]
struct Siblings {
    /// GPUs on which kernels also run all the time without accessing memory.
    waiting: Vec<u32>,
    differing: Vec<GpuProcess>,
    /// Whether kernels run on any of the GPUs in `differing`.
    work: bool,
}

impl Siblings {
    fn find_job_siblings(view: &View<'_>, processes: &[&Process]) -> Self {
        let mut siblings = Self::default();
        for gpu in view.other_responding_gpus() {
            let theirs = list_compute_processes(gpu);
            let is_of_job =
                |process: &&&Process| processes.iter().any(|own| is_same_job(own, process));
            let Some(process) = theirs.iter().find(is_of_job) else {
                continue;
            };
            let Some((gpu_percent, memory_percent)) = view.fresh_utilization(gpu) else {
                continue;
            };
            if runs_without_memory_access(gpu_percent, memory_percent) {
                siblings.waiting.push(gpu.index);
            } else {
                siblings.work |= gpu_percent > 0.0;
                siblings.differing.push(GpuProcess {
                    gpu: gpu.index,
                    pid: process.pid,
                });
            }
        }
        siblings
    }
}

// Detection of processes that belong to the same job.

/// Programs that run many unrelated children: shells, service and session managers, and programs
/// that run many commands.
const UNRELATED_PARENTS: [&str; 4] = [
    "ash bash busybox csh dash fish ksh nu pwsh sh tcsh zsh",
    "atd catatonit conmon containerd containerd-shim cron crond docker-init dockerd dumb-init \
     init runsv runsvdir s6-supervise s6-svscan supervisord systemd tini",
    "SCREEN code code-server login node sshd sshd-session su sudo",
    "make parallel raylet xargs",
];

/// Name prefixes of more programs whose children are unrelated.
const UNRELATED_PARENT_PREFIXES: [&str; 4] = ["gnome-", "jupyter", "konsole", "tmux"];

/// Programs that are interpreters. Two processes of the same interpreter can run different
/// programs.
const INTERPRETERS: [&str; 6] = ["python", "julia", "node", "perl", "ruby", "java"];

/// Returns `true` if two processes belong to the same job.
///
/// Processes of the same notebook kernel or batch job belong together. A pod, a container or a
/// shell can run unrelated programs, so its processes belong together only if they have a common
/// launcher, such as `torchrun`, or run the same program.
pub(in crate::derive) fn is_same_job(one: &Process, other: &Process) -> bool {
    if one.pid == other.pid {
        return true;
    }
    let (Some(owner), Some(theirs)) = (one.owner.value(), other.owner.value()) else {
        return false;
    };
    let (job, their_job) = (non_service_job(owner), non_service_job(theirs));
    let kind = job.as_ref().map(|job| job.kind);
    if job != their_job {
        return false;
    }
    let is_whole = |kind: JobKind| kind == JobKind::Notebook || kind.batch_system().is_some();
    if kind.is_some_and(is_whole) || have_common_launcher(one, owner, other, theirs) {
        return true;
    }
    let Some(program) = one
        .name
        .value()
        .filter(|program| other.name.value() == Some(program))
    else {
        return false;
    };
    // All ancestors are compared, because launchers may start each process in its own shell.
    let shares_launcher = launcher_pids(&owner.parents)
        .any(|pid| launcher_pids(&theirs.parents).any(|their| pid == their));
    let shares_parent = owner
        .parents
        .first()
        .is_some_and(|parent| Some(parent) == theirs.parents.first());
    shares_launcher
        || (!is_interpreter(program)
            && owner.unit == theirs.unit
            && (kind.is_some() || shares_parent))
}

/// Returns the job of a process unless the job is a service. Login services and container engines
/// can run several unrelated jobs.
fn non_service_job(owner: &Owner) -> Option<Job> {
    owner
        .job()
        .filter(|job| job.kind != JobKind::Service)
        .map(|job| Job {
            path: None,
            name: None,
            ..job
        })
}

/// Returns `true` if one process started the other, or if the same program started both and is not
/// a shell.
fn have_common_launcher(one: &Process, owner: &Owner, other: &Process, theirs: &Owner) -> bool {
    let line = |process: &Process, owner: &Owner| {
        let near = owner
            .parents
            .iter()
            .take_while(|parent| !starts_unrelated_programs(parent))
            .map(|parent| parent.pid);
        std::iter::once(process.pid).chain(near).collect::<Vec<_>>()
    };
    let their_line = line(other, theirs);
    line(one, owner).iter().any(|pid| their_line.contains(pid))
}

/// Returns `true` if `program` is the name of an interpreter, with or without a version.
fn is_interpreter(program: &str) -> bool {
    let is_version = |rest: &str| {
        rest.chars()
            .all(|letter| letter == '.' || letter.is_ascii_digit())
    };
    INTERPRETERS
        .iter()
        .any(|interpreter| program.strip_prefix(interpreter).is_some_and(is_version))
}

fn launcher_pids(parents: &[Ancestor]) -> impl Iterator<Item = u32> {
    parents
        .iter()
        .filter(|parent| !starts_unrelated_programs(parent))
        .map(|parent| parent.pid)
}

fn starts_unrelated_programs(parent: &Ancestor) -> bool {
    UNRELATED_PARENTS
        .iter()
        .flat_map(|names| names.split(' '))
        .any(|name| parent.name == name)
        || UNRELATED_PARENT_PREFIXES
            .iter()
            .any(|start| parent.name.starts_with(start))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod same_job_tests {
    use super::*;
    use crate::{
        derive::examples,
        model::{Absence, Container, ContainerRuntime, Reading},
    };

    fn make_process(
        pid: u32,
        name: &str,
        parents: &[(u32, &str)],
        container: Option<&str>,
    ) -> Process {
        let parents = parents
            .iter()
            .map(|(pid, name)| Ancestor {
                pid: *pid,
                name: (*name).to_owned(),
            })
            .collect();
        let container = container.map(|id| Container {
            runtime: ContainerRuntime::Docker,
            id: id.to_owned(),
            name: None,
        });
        let owner = Owner {
            container,
            parents,
            ..Owner::default()
        };
        Process {
            name: Reading::Now(name.to_owned()),
            owner: Reading::Now(owner),
            ..examples::make_process(pid, 1)
        }
    }

    #[track_caller]
    fn assert_same_job(is_same: bool, one: &Process, other: &Process) {
        assert_eq!(
            (is_same_job(one, other), is_same_job(other, one)),
            (is_same, is_same),
            "{one:#?} {other:#?}"
        );
    }

    #[test]
    fn programs_of_launcher_are_same_job() {
        let ranks = |launcher| {
            let parents = [(50, launcher), (10, "bash"), (9, "tmux: server")];
            (
                make_process(7, "train.py", &parents, None),
                make_process(8, "eval.py", &parents, None),
            )
        };
        for (launcher, is_same) in [
            ("torchrun", true),
            ("mpirun", true),
            ("python3", true),
            ("bash", false),
            ("systemd", false),
        ] {
            let (one, other) = ranks(launcher);
            assert_same_job(is_same, &one, &other);
        }
        let main = make_process(50, "train.py", &[(10, "bash")], None);
        assert_same_job(
            true,
            &main,
            &make_process(7, "python3", &[(50, "python3"), (10, "bash")], None),
        );
        let kernel = |pid| make_process(pid, "python3", &[(60, "jupyter-lab"), (10, "bash")], None);
        assert_same_job(false, &kernel(7), &kernel(8));
    }

    #[test]
    fn processes_of_same_program_are_same_job() {
        let started = |pid, name| make_process(pid, name, &[(10, "bash"), (9, "sshd")], None);
        assert_same_job(true, &started(7, "train.py"), &started(8, "train.py"));
        assert_same_job(false, &started(7, "train.py"), &started(8, "other.py"));
        assert_same_job(false, &started(7, "python3.12"), &started(8, "python3.12"));
        assert_same_job(
            true,
            &started(7, "python_train.py"),
            &started(8, "python_train.py"),
        );
        assert_same_job(
            false,
            &started(7, "train.py"),
            &make_process(8, "train.py", &[(11, "bash"), (9, "sshd")], None),
        );
        let wrapped = |pid, name| {
            make_process(
                pid,
                name,
                &[(pid + 100, "bash"), (50, "mpirun"), (10, "bash")],
                None,
            )
        };
        assert_same_job(true, &wrapped(7, "python3"), &wrapped(8, "python3"));
        assert_same_job(false, &wrapped(7, "a.out"), &wrapped(8, "b.out"));
    }

    #[test]
    fn same_programs_in_container_are_same_job() {
        let inside = |pid, name, id| {
            make_process(pid, name, &[(5, "bash"), (4, "containerd-shim")], Some(id))
        };
        assert_same_job(
            false,
            &inside(7, "train.py", "a"),
            &inside(8, "serve.py", "a"),
        );
        assert_same_job(
            true,
            &inside(7, "train.py", "a"),
            &make_process(8, "train.py", &[(6, "bash")], Some("a")),
        );
        assert_same_job(
            false,
            &inside(7, "train.py", "a"),
            &inside(8, "train.py", "b"),
        );
        let launched =
            |pid, name| make_process(pid, name, &[(50, "torchrun"), (5, "bash")], Some("a"));
        assert_same_job(true, &launched(7, "train.py"), &launched(8, "eval.py"));
    }

    #[test]
    fn process_with_unknown_owner_is_separate_job() {
        let unknown = |pid| Process {
            owner: Reading::Absent(Absence::NotReadYet),
            ..make_process(pid, "train.py", &[], None)
        };
        assert_same_job(true, &unknown(7), &unknown(7));
        assert_same_job(false, &unknown(7), &unknown(8));
        assert_same_job(
            false,
            &make_process(7, "train.py", &[], None),
            &make_process(8, "train.py", &[], None),
        );
    }
}
