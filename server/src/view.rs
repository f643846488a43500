//! Permissions for data about processes. By default, a client sees the data that its user can read
//! in `/proc`.

use std::{borrow::Cow, sync::Arc, time::Duration};

use gpumon_history::{jobs::JobList, span::HistorySpan};
use gpumon_probe::{
    bounded,
    model::{
        Absence, Alert, Allocation, Condition, ConditionKind, Event, EventKind, FiringAlert,
        GpuDetails, GpuSample, JobKind, Limits, Owner, Process, ProcessRef, Reading, Sample,
    },
    surroundings::hides_processes,
    usage::{OwnerUsage, Usage},
};
use tokio::{sync::Mutex, task::spawn_blocking, time::Instant};

use crate::{auth::Client, frame::History};

/// The maximum size of the mount table in bytes, which is enough for thousands of containers.
const MAX_MOUNTINFO_BYTES: usize = 4 << 20;

/// The time for which the privacy setting of `/proc` is cached.
const CACHE_TIME: Duration = Duration::from_secs(5);

static PROC_PRIVACY: ProcPrivacy = ProcPrivacy {
    read: Mutex::const_new(None),
};

/// The setting `--show-processes`: the processes that clients may see. It does not apply to the
/// server's own user and root, who see all processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ShowProcesses {
    /// Each client sees only the processes of its own user.
    Own,
    /// All clients see all processes, including their command lines.
    All,
    /// All clients see names and users, and also the data that their own user can read in `/proc`.
    #[default]
    Names,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum View {
    /// A view of all data that the collector reports.
    Whole,
    /// A view of all processes, but only with the data that [`Datum::readers`] permits.
    Names {
        /// The client's user, if known.
        user: Option<Arc<str>>,
        /// Whether the client's user can read other users' command lines in `/proc`.
        commands: bool,
    },
    /// A view of the processes of this user, or of no processes if the user is unknown.
    Own(Option<Arc<str>>),
}

/// A restricted kind of data about a process. Every client may read all other data: memory and
/// shares of the GPU; CPU use, which is only a part of a GPU's limits; pod, container, service and
/// batch job according to `/proc/PID/cgroup`; and the random ID of a Jupyter kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Datum {
    /// The names of the program and its ancestors, the user, and times: `/proc/PID/comm`, `stat`
    /// and `status`.
    Program,
    /// The command line (`/proc/PID/cmdline`).
    CommandLine,
    /// The script's name, which is part of the command line.
    ScriptName,
    /// The path of a notebook and the name of its kernel specification. Jupyter keeps both in a
    /// connection file with mode 0600.
    Notebook,
    /// The rank, and the ID of a batch job that is only found in the process's environment
    /// (`/proc/PID/environ`, mode 0400). Also the data that the process reads from disks
    /// (`/proc/PID/io`, mode 0400).
    Environment,
}

/// The clients that may read a [`Datum`] of a process, besides the process's own user, the server's
/// own user and root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readers {
    /// Every client, as the setting `names` of `--show-processes` permits.
    Everybody,
    /// Users of this machine, unless `/proc` is mounted with `hidepid`.
    UsersOfProc,
    /// No other client.
    Nobody,
}

impl Datum {
    /// Returns who may read this datum. Permissions are defined only here.
    const fn readers(self) -> Readers {
        match self {
            Self::Program => Readers::Everybody,
            Self::CommandLine | Self::ScriptName => Readers::UsersOfProc,
            Self::Notebook | Self::Environment => Readers::Nobody,
        }
    }
}

impl View {
    /// The view of an unknown client.
    pub(crate) const UNKNOWN_CLIENT: Self = Self::Names {
        user: None,
        commands: false,
    };

    /// Returns the view of a client. The server's own user and root see everything.
    pub(crate) async fn for_client(client: &Client, show: ShowProcesses) -> Self {
        let peer = client.peer;
        match show {
            _ if peer.belongs_to_server_user() => Self::Whole,
            ShowProcesses::All => Self::Whole,
            ShowProcesses::Own => Self::Own(client.user_name().await.map(Into::into)),
            ShowProcesses::Names => {
                let commands =
                    peer.uid().is_some() && !PROC_PRIVACY.is_private(proc_is_private).await;
                Self::Names {
                    user: client.user_name().await.map(Into::into),
                    commands,
                }
            }
        }
    }

    pub(crate) fn hides_nothing(&self) -> bool {
        *self == Self::Whole
    }

    /// Returns `true` if the view contains other users' processes.
    pub(crate) fn shows_other_users(&self) -> bool {
        !matches!(self, Self::Own(_))
    }

    fn user(&self) -> Option<&str> {
        match self {
            Self::Whole => None,
            Self::Names { user, .. } | Self::Own(user) => user.as_deref(),
        }
    }

    /// Returns `true` if `owner` is the client's user.
    fn is_own(&self, owner: Option<&str>) -> bool {
        self.user().is_some() && self.user() == owner
    }

    /// Returns `true` if a scheduler has allocated the device to the client's user.
    fn is_own_allocation(&self, holder: &Allocation) -> bool {
        match holder {
            Allocation::Slurm { user, .. } => self.is_own(user.as_deref()),
            Allocation::Kubernetes { .. } => false,
        }
    }

    /// Returns `true` if the client may read this datum of a process that belongs to `owner`.
    fn is_permitted(&self, datum: Datum, owner: Option<&str>) -> bool {
        let is_own = self.is_own(owner);
        match self {
            Self::Whole => true,
            Self::Own(_) => is_own,
            Self::Names { commands, .. } => match datum.readers() {
                Readers::Everybody => true,
                Readers::UsersOfProc => *commands || is_own,
                Readers::Nobody => is_own,
            },
        }
    }

    /// Returns the parts of the sample that the client may see. The sample is borrowed if nothing
    /// is hidden.
    pub(crate) fn filter_sample<'a>(&self, sample: &'a Sample) -> Cow<'a, Sample> {
        let processes = || {
            sample
                .gpus
                .iter()
                .filter_map(|gpu| gpu.processes.value())
                .flatten()
        };
        let has_names = || {
            sample
                .gpus
                .iter()
                .flat_map(|gpu| &gpu.conditions)
                .any(|condition| condition.kind.anonymous_text().is_some())
        };
        let has_private_limits = || {
            sample.gpus.iter().any(|gpu| {
                let has_numbers = gpu.limits.value().is_some_and(Limits::has_private_numbers);
                let processes = gpu.processes.value().map_or(&[][..], Vec::as_slice);
                has_numbers && !self.permits_private_limits(processes)
            })
        };
        let is_complete = match self {
            Self::Whole => true,
            // The sample must be copied if a condition names processes, because these processes may
            // be missing from the sample's list.
            Self::Names { .. } => {
                !has_names()
                    && !has_private_limits()
                    && processes().all(|process| self.shows_whole_process(process))
            }
            Self::Own(_) => false,
        };
        if is_complete {
            return Cow::Borrowed(sample);
        }
        let mut sample = sample.clone();
        for gpu in &mut sample.gpus {
            self.filter_gpu(gpu);
        }
        Cow::Owned(sample)
    }

    fn filter_gpu(&self, gpu: &mut GpuSample) {
        let mut none = Vec::new();
        let processes = gpu.processes.value_mut().unwrap_or(&mut none);
        if !self.permits_private_limits(processes)
            && let Some(limits) = gpu.limits.value_mut()
        {
            limits.hide_private_numbers();
        }
        if !self.shows_other_users() {
            let is_own = |holder: &Allocation| self.is_own_allocation(holder);
            gpu.allocated_to.retain(is_own);
            for mig in gpu.mig_devices.value_mut().into_iter().flatten() {
                mig.allocated_to.retain(is_own);
            }
            processes.retain(|process| self.is_own(user_of(process)));
            let is_shown = |pid: &u32| processes.iter().any(|process| process.pid == *pid);
            if let Some(limits) = gpu.limits.value_mut() {
                for owner in &mut limits.owners {
                    owner.pids.retain(is_shown);
                }
                limits.owners.retain(|owner| !owner.pids.is_empty());
            }
        }
        let named: Vec<u32> = processes
            .iter()
            .filter(|process| self.shows_all_process_names(process))
            .map(|process| process.pid)
            .collect();
        gpu.conditions
            .iter_mut()
            .for_each(|condition| self.conceal_condition(condition, &named));
        for process in processes {
            self.filter_process(process);
        }
    }

    /// Returns `true` if the client may see the numbers in a GPU's limits that only the users of
    /// its processes may read.
    fn permits_private_limits(&self, processes: &[Process]) -> bool {
        processes
            .iter()
            .all(|process| self.is_permitted(Datum::Environment, user_of(process)))
    }

    fn filter_process(&self, process: &mut Process) {
        let user = process.user.value().cloned();
        let permits = |datum| self.is_permitted(datum, user.as_deref());
        if !permits(Datum::CommandLine) {
            hide_value(&mut process.command);
        }
        if !permits(Datum::ScriptName) {
            hide_script(&mut process.name, &mut process.program);
        }
        let Some(owner) = process.owner.value_mut() else {
            return;
        };
        if let Some(notebook) = owner
            .notebook
            .as_mut()
            .filter(|_| !permits(Datum::Notebook))
        {
            hide_value(&mut notebook.path);
            notebook.kernel_name = None;
        }
        if !permits(Datum::Environment) {
            owner.rank = None;
        }
        for job in owner.batch_jobs_mut() {
            job.take_if(|job| job.private && !permits(Datum::Environment));
        }
    }

    /// Returns `true` if [`Self::filter_process`] hides nothing.
    fn shows_whole_process(&self, process: &Process) -> bool {
        let permits = |datum| self.is_permitted(datum, user_of(process));
        let owner = process.owner.value();
        let is_private_job = owner
            .and_then(Owner::batch_job)
            .is_some_and(|(_, job)| job.private);
        let has_kernel_name = process
            .notebook()
            .is_some_and(|notebook| notebook.kernel_name.is_some());
        let has_private_numbers = owner.is_some_and(|owner| owner.rank.is_some());
        self.shows_all_process_names(process)
            && (!has_private_numbers || permits(Datum::Environment))
            && (process.command.value().is_none() || permits(Datum::CommandLine))
            && (!has_kernel_name || permits(Datum::Notebook))
            && (!is_private_job || permits(Datum::Environment))
    }

    /// Returns `true` if the client may read every name of the process that can occur in an alert's
    /// or condition's text.
    fn shows_all_process_names(&self, process: &Process) -> bool {
        let permits = |datum| self.is_permitted(datum, user_of(process));
        let notebook = process.notebook();
        (process.program.is_none() || permits(Datum::ScriptName))
            && (notebook.is_none_or(|notebook| notebook.path.value().is_none())
                || permits(Datum::Notebook))
    }

    pub(crate) fn filter_usage(&self, mut usage: Usage) -> Usage {
        match self {
            Self::Whole => {}
            Self::Names { .. } => {
                let (hidden, shown): (Vec<_>, _) = usage.owners.into_iter().partition(|owner| {
                    let is_private = owner.job.as_ref().is_some_and(|job| job.private);
                    is_private && !self.is_permitted(Datum::Environment, owner.user.as_deref())
                });
                usage.owners = shown;
                for owner in hidden {
                    add_hidden_usage(&mut usage.owners, owner);
                }
                for owner in &mut usage.owners {
                    let path = owner.job.as_mut().and_then(|job| job.path.as_mut());
                    path.filter(|_| !self.is_permitted(Datum::Notebook, owner.user.as_deref()))
                        .map(hide_value);
                }
            }
            Self::Own(_) => usage
                .owners
                .retain(|owner| self.is_own(owner.user.as_deref())),
        }
        usage
    }

    /// Returns `true` if the client may read the costs of kernels that belong to `owner`.
    pub(crate) fn permits_cost(&self, owner: Option<&str>) -> bool {
        self.is_permitted(Datum::Notebook, owner)
    }

    pub(crate) fn filter_jobs(&self, mut list: JobList) -> JobList {
        match self {
            Self::Whole => {}
            Self::Names { .. } => {
                list.jobs.retain(|span| {
                    !span.private || self.is_permitted(Datum::Environment, span.user.as_deref())
                });
                let notebooks = list
                    .jobs
                    .iter_mut()
                    .filter(|span| span.kind == JobKind::Notebook);
                let hidden = notebooks
                    .filter(|span| !self.is_permitted(Datum::Notebook, span.user.as_deref()));
                hidden.for_each(|span| span.name = None);
            }
            Self::Own(_) => list.jobs.retain(|span| self.is_own(span.user.as_deref())),
        }
        list
    }

    pub(crate) fn filter_history(&self, mut history: History) -> History {
        for gpu in &mut history.gpus {
            if !self.shows_other_users() {
                gpu.holders
                    .retain(|holder| self.is_own(user_of(&holder.process)));
            }
            gpu.holders
                .iter_mut()
                .for_each(|holder| self.filter_process(&mut holder.process));
        }
        history
    }

    /// Returns the parts of the event that the client may see, or `None` if the client may not see
    /// the event.
    pub(crate) fn filter_event(&self, event: &Event) -> Option<Event> {
        let mut event = event.clone();
        if self.hides_nothing() {
            return Some(event);
        }
        match &mut event.what {
            EventKind::ProcessStarted(process) | EventKind::ProcessEnded(process) => {
                let ProcessRef {
                    name,
                    program,
                    user,
                    ..
                } = process;
                let user = user.value().map(String::as_str);
                self.is_permitted(Datum::Program, user).then_some(())?;
                if !self.is_permitted(Datum::ScriptName, user) {
                    hide_script(name, program);
                }
            }
            EventKind::ConditionBegan(condition) | EventKind::ConditionEnded(condition) => {
                self.conceal_condition(condition, &[]);
            }
            EventKind::Xid(report) if !self.shows_other_users() => {
                (report.pid, report.message) = (None, None);
            }
            EventKind::AlertFiring(alert) | EventKind::AlertResolved(alert) => {
                self.conceal_alert(alert);
            }
            EventKind::Cell(cell) if !self.is_permitted(Datum::Notebook, cell.user.as_deref()) => {
                self.shows_other_users().then_some(())?;
                "notebook".clone_into(&mut cell.notebook);
            }
            _ => {}
        }
        Some(event)
    }

    pub(crate) fn filter_alerts(&self, mut firing: Vec<FiringAlert>) -> Vec<FiringAlert> {
        if !self.hides_nothing() {
            for firing in &mut firing {
                self.conceal_alert(&mut firing.alert);
            }
        }
        firing
    }

    pub(crate) fn filter_details(&self, mut details: GpuDetails) -> GpuDetails {
        if !self.shows_other_users() && details.accounting.value().is_some() {
            details.accounting = Reading::Absent(Absence::Hidden);
        }
        details
    }

    pub(crate) fn filter_span(&self, mut span: HistorySpan) -> HistorySpan {
        if !self.hides_nothing() {
            span.events = span
                .events
                .iter()
                .filter_map(|event| self.filter_event(event))
                .collect();
            span.conditions
                .iter_mut()
                .for_each(|one| self.conceal_condition(&mut one.condition, &[]));
        }
        span
    }

    /// Removes data about processes from a condition. Nothing is removed if all of its processes
    /// are in `named`, the PIDs of processes whose names the client may read. PIDs are kept for
    /// clients that may see other users' processes.
    fn conceal_condition(&self, condition: &mut Condition, named: &[u32]) {
        if self.hides_nothing() {
            return;
        }
        let is_named = |pid: &u32| named.contains(pid);
        let has_others = self.shows_other_users();
        let keeps = |pid: &u32| has_others || is_named(pid);
        match &mut condition.kind {
            // The text of an Xid condition contains the PID and the program's name, so it is
            // replaced.
            ConditionKind::Xid { code, pid, .. }
                if !has_others && !pid.is_none_or(|pid| is_named(&pid)) =>
            {
                *pid = None;
                condition.text = format!("The driver reported Xid {code}.");
            }
            ConditionKind::HeldIdle { pids, .. } if !pids.iter().all(is_named) => {
                pids.retain(keeps);
            }
            ConditionKind::SuspectedHang {
                pids, differing, ..
            } if !(pids.iter().all(is_named)
                && (has_others || differing.iter().all(|process| is_named(&process.pid)))) =>
            {
                pids.retain(keeps);
                differing.retain(|process| keeps(&process.pid));
            }
            ConditionKind::MemoryFilling { growing, .. }
                if !growing.iter().all(|process| is_named(&process.pid)) =>
            {
                growing.retain(|process| keeps(&process.pid));
            }
            // All kinds are listed, so that a new one cannot reveal processes by mistake.
            ConditionKind::Xid { .. }
            | ConditionKind::HeldIdle { .. }
            | ConditionKind::SuspectedHang { .. }
            | ConditionKind::MemoryFilling { .. }
            | ConditionKind::Throttled { .. }
            | ConditionKind::HardlyUsed { .. }
            | ConditionKind::HeldByNobody { .. }
            | ConditionKind::SlowerThanItself { .. }
            | ConditionKind::BelowBaseline { .. }
            | ConditionKind::MemoryNearlyFull { .. }
            | ConditionKind::EccUncorrected { .. }
            | ConditionKind::RowRemap { .. }
            | ConditionKind::PageRetirementPending
            | ConditionKind::RecoveryNeeded { .. }
            | ConditionKind::NvLinkDown { .. }
            | ConditionKind::PcieDegraded { .. } => return,
        }
        if let Some(text) = condition.kind.anonymous_text() {
            text.clone_into(&mut condition.text);
        }
    }

    fn conceal_alert(&self, alert: &mut Alert) {
        if self.hides_alert_text(alert.names_processes) {
            alert.text = format!("The alert rule {} is firing", alert.rule);
        }
    }

    /// Returns `true` if the client may not see an alert's text. `names_processes` is whether the
    /// text can contain names of processes.
    pub(crate) fn hides_alert_text(&self, names_processes: bool) -> bool {
        match self {
            Self::Whole => false,
            Self::Names { .. } => names_processes,
            // Even a text without process names can contain PIDs, for example a text about a driver
            // error.
            Self::Own(_) => true,
        }
    }
}

/// Adds the usage of a hidden job to the job's user, who may already have an entry without a job.
fn add_hidden_usage(owners: &mut Vec<OwnerUsage>, hidden: OwnerUsage) {
    match owners
        .iter_mut()
        .find(|owner| owner.job.is_none() && owner.user == hidden.user)
    {
        Some(owner) => owner.add(&hidden),
        None => owners.push(OwnerUsage {
            job: None,
            ..hidden
        }),
    }
}

fn user_of(process: &Process) -> Option<&str> {
    process.user.value().map(String::as_str)
}

/// Hides a value. If the value is absent, its reason is kept.
fn hide_value(text: &mut Reading<String>) {
    if text.value().is_some() {
        *text = Reading::Absent(Absence::Hidden);
    }
}

/// Replaces a script's name by the program's name.
fn hide_script(name: &mut Reading<String>, program: &mut Option<String>) {
    if let Some(program) = program.take() {
        *name = Reading::Now(program);
    }
}

/// The cached privacy setting of `/proc`, and the time at which it was read.
struct ProcPrivacy {
    read: Mutex<Option<(Instant, bool)>>,
}

impl ProcPrivacy {
    /// Returns the cached setting, or else the result of `read`. `read` runs outside the event
    /// loop, because the mount table can be long.
    async fn is_private(&self, read: impl FnOnce() -> bool + Send + 'static) -> bool {
        let mut known = self.read.lock().await;
        if let Some((at, is_private)) = *known
            && at.elapsed() < CACHE_TIME
        {
            return is_private;
        }
        let is_private = spawn_blocking(read).await.unwrap_or(true);
        *known = Some((Instant::now(), is_private));
        is_private
    }
}

/// Returns `true` if users see only their own processes in `/proc`, or if the mount options cannot
/// be read.
fn proc_is_private() -> bool {
    bounded::read_text("/proc/self/mountinfo", MAX_MOUNTINFO_BYTES)
        .map_or(true, |text| hides_processes(&text))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use gpumon_history::jobs::JobSpan;
    use gpumon_probe::{
        host::HostReader,
        model::{
            BatchJob, Cell, GpuProcess, Health, Job, LimitClass, LimitEvidence, LimitSummary,
            MemoryGrowth, Notebook, OwnerLimits, ProcessKind, Severity, XidReport,
        },
    };

    use super::*;
    use crate::{
        frame::{GpuHistory, HolderHistory},
        hub::make_limited_gpu,
    };

    #[tokio::test]
    async fn mount_table_is_cached() {
        let proc = ProcPrivacy {
            read: Mutex::const_new(None),
        };
        assert!(!proc.is_private(|| false).await);
        assert!(!proc.is_private(|| panic!("it has just been read")).await);
        let long_ago = Instant::now().checked_sub(CACHE_TIME).unwrap();
        *proc.read.lock().await = Some((long_ago, false));
        assert!(proc.is_private(|| true).await);
    }

    const ANA: &str = "ana";

    /// Returns the view of a user of this machine who can read command lines in `/proc`.
    fn make_local_view(user: &str) -> View {
        View::Names {
            user: Some(user.into()),
            commands: true,
        }
    }

    /// Returns a process of the user ana that contains every kind of restricted data.
    fn make_process(notebook_path: Reading<String>) -> Process {
        let now = |text: &str| Reading::Now(text.to_owned());
        let kernel_name = Some("secret-kernel".to_owned());
        let notebook = Notebook {
            kernel_id: "k".to_owned(),
            kernel_name,
            path: notebook_path,
            kernel_pid: 7,
        };
        let slurm = BatchJob {
            job_id: "secret-job".to_owned(),
            step: None,
            private: true,
        };
        let unit = Some("public.service".to_owned());
        Process {
            pid: 7,
            kind: ProcessKind::Compute,
            memory_bytes: Reading::Now(1),
            sm_percent: Reading::Now(0.0),
            memory_percent: Reading::Now(0.0),
            encoder_percent: Reading::Now(0.0),
            decoder_percent: Reading::Now(0.0),
            name: now("script.py"),
            program: Some("python3".to_owned()),
            command: now("python3 script.py --token hunter2"),
            user: now(ANA),
            host_memory_bytes: Reading::Now(1),
            traced: Reading::Now(false),
            started_ms: Reading::Now(1),
            mig: None,
            mps: false,
            owner: Reading::Now(Owner {
                notebook: Some(notebook),
                slurm: Some(slurm),
                unit,
                ..Owner::default()
            }),
        }
    }

    #[test]
    fn private_job_of_every_batch_system_is_hidden() {
        let job = || {
            Some(BatchJob {
                job_id: "secret-job".to_owned(),
                step: None,
                private: true,
            })
        };
        let of = |owner: Owner| Process {
            owner: Reading::Now(owner),
            ..make_process(Reading::Absent(Absence::Unknown))
        };
        for owner in [
            Owner {
                slurm: job(),
                ..Owner::default()
            },
            Owner {
                pbs: job(),
                ..Owner::default()
            },
            Owner {
                lsf: job(),
                ..Owner::default()
            },
        ] {
            let sample = make_sample(of(owner), Vec::new());
            assert!(!to_json(&*View::UNKNOWN_CLIENT.filter_sample(&sample)).contains("secret-job"));
            assert!(to_json(&*make_local_view(ANA).filter_sample(&sample)).contains("secret-job"));
        }
    }

    fn make_secret_path() -> Reading<String> {
        Reading::Now("/home/ana/secret.ipynb".to_owned())
    }

    fn make_sample(process: Process, conditions: Vec<Condition>) -> Sample {
        let mut gpu = GpuSample::new_absent(0, None, 1, Health::Ok, &Absence::Unknown);
        (gpu.processes, gpu.conditions) = (Reading::Now(vec![process]), conditions);
        Sample {
            seq: 0,
            at_ms: 1,
            interval_ms: 1000,
            gpus: vec![gpu],
            host: HostReader::new().read(),
        }
    }

    fn make_history(process: Process) -> History {
        let holders = vec![HolderHistory {
            process,
            memory_bytes: Vec::new(),
        }];
        let gpus = vec![GpuHistory {
            uuid: "GPU-0".to_owned(),
            metrics: BTreeMap::new(),
            holders,
        }];
        History {
            gpus,
            ..History::default()
        }
    }

    fn to_json(value: &impl serde::Serialize) -> String {
        serde_json::to_string(value).unwrap()
    }

    #[test]
    fn each_private_value_is_visible_only_with_permission() {
        let stranger = View::UNKNOWN_CLIENT;
        // Each entry is the text of a datum, and whether it is visible to an unknown client, to
        // another user who can read `/proc`, and to the process's user.
        let data = [
            ("hunter2", [false, true, true]),
            ("script.py", [false, true, true]),
            ("secret.ipynb", [false, false, true]),
            ("secret-kernel", [false, false, true]),
            ("secret-job", [false, false, true]),
            ("python3", [true, true, true]),
            ("public.service", [true, true, true]),
        ];
        for (at, view) in [stranger, make_local_view("bob"), make_local_view(ANA)]
            .iter()
            .enumerate()
        {
            let shown =
                to_json(&view.filter_history(make_history(make_process(make_secret_path()))));
            for (text, is_shown) in &data {
                assert_eq!(
                    shown.contains(text),
                    is_shown[at],
                    "{text} {view:?}: {shown}"
                );
            }
        }
        let own = View::Own(Some(ANA.into()))
            .filter_history(make_history(make_process(make_secret_path())));
        assert_eq!(
            to_json(&own),
            to_json(&make_history(make_process(make_secret_path())))
        );
    }

    #[test]
    fn every_client_sees_limits() {
        let mut sample = make_sample(make_process(make_secret_path()), Vec::new());
        sample.gpus[0].limits = make_limited_gpu(1, 1000).limits;
        for view in [View::UNKNOWN_CLIENT, View::Own(None)] {
            let seen = view.filter_sample(&sample);
            assert_eq!(seen.gpus[0].limits, sample.gpus[0].limits, "{view:?}");
        }
    }

    #[test]
    fn limits_of_hidden_owners_are_hidden() {
        let mut sample = make_sample(make_process(make_secret_path()), Vec::new());
        let mut gpu = make_limited_gpu(1, 1000);
        let share = [(LimitClass::Host, 100.0)];
        let limits = LimitSummary::new(1000, share, |_| LimitEvidence::default()).unwrap();
        let make_owner = |pid| OwnerLimits {
            pids: vec![pid],
            limits: limits.clone(),
        };
        gpu.limits.value_mut().unwrap().owners = vec![make_owner(7), make_owner(8)];
        sample.gpus[0].limits = gpu.limits;
        for (view, shown) in [
            (View::UNKNOWN_CLIENT, vec![7, 8]),
            (View::Own(Some(ANA.into())), vec![7]),
            (View::Own(None), vec![]),
        ] {
            let seen = view.filter_sample(&sample);
            let owners = &seen.gpus[0].limits.value().unwrap().owners;
            let pids: Vec<u32> = owners.iter().map(|owner| owner.pids[0]).collect();
            assert_eq!(pids, shown, "{view:?}");
        }
    }

    #[test]
    fn hidden_path_is_distinguished_from_absent_path() {
        for (path, shown) in [
            (make_secret_path(), Absence::Hidden),
            (
                Reading::Absent(Absence::NoPermission),
                Absence::NoPermission,
            ),
        ] {
            let mut seen = make_process(path);
            make_local_view("bob").filter_process(&mut seen);
            assert_eq!(
                seen.owner.value().unwrap().notebook.as_ref().unwrap().path,
                Reading::Absent(shown)
            );
        }
    }

    #[test]
    fn usage_and_jobs_hide_private_data() {
        let used = |job: Option<Job>| OwnerUsage {
            user: Some(ANA.to_owned()),
            job,
            gpu_seconds: 1.0,
            exclusive_seconds: 1.0,
            active_seconds: 1.0,
            joules: None,
        };
        let notebook = make_process(make_secret_path())
            .owner
            .value()
            .unwrap()
            .job();
        let private = Owner {
            notebook: None,
            ..make_process(make_secret_path())
                .owner
                .value()
                .unwrap()
                .clone()
        }
        .job();
        let usage = Usage {
            owners: vec![used(notebook), used(private), used(None)],
            ..Usage::default()
        };
        let span = |kind, id: &str, name: Option<&str>, private| JobSpan {
            kind,
            id: id.to_owned(),
            name: name.map(str::to_owned),
            user: Some(ANA.to_owned()),
            uuid: "GPU-0".to_owned(),
            from_ms: 1,
            to_ms: 2,
            private,
        };
        let jobs = JobList {
            jobs: vec![
                span(
                    JobKind::Notebook,
                    "k",
                    Some("/home/ana/secret.ipynb"),
                    false,
                ),
                span(JobKind::Slurm, "secret-job", None, true),
                span(JobKind::Slurm, "public-job", None, false),
            ],
        };
        for view in [make_local_view("bob"), View::UNKNOWN_CLIENT] {
            let seen = view.filter_usage(usage.clone());
            let shown = to_json(&seen) + &to_json(&view.filter_jobs(jobs.clone()));
            assert!(
                !shown.contains("secret") && shown.contains("public-job"),
                "{shown}"
            );
            let sums: Vec<f64> = seen.owners.iter().map(|owner| owner.gpu_seconds).collect();
            assert_eq!(sums, [1.0, 2.0], "what the hidden job used is its user's");
        }
        assert_eq!(make_local_view(ANA).filter_usage(usage.clone()), usage);
        assert_eq!(make_local_view(ANA).filter_jobs(jobs.clone()), jobs);
        let of = |user: Option<&str>| {
            View::Own(user.map(Into::into))
                .filter_usage(usage.clone())
                .owners
                .len()
        };
        assert_eq!([of(Some(ANA)), of(Some("bob")), of(None)], [3, 0, 0]);
    }

    #[test]
    fn condition_text_hides_notebook_names_from_others() {
        let condition = make_condition(ConditionKind::HeldIdle {
            bytes: 1,
            idle_ms: 1,
            pids: vec![7],
        });
        let sample = make_sample(make_process(make_secret_path()), vec![condition]);
        let seen = to_json(&*make_local_view("bob").filter_sample(&sample));
        assert!(
            !seen.contains("secret") && seen.contains("have been idle for minutes"),
            "{seen}"
        );
        assert!(
            matches!(make_local_view(ANA).filter_sample(&sample), Cow::Owned(seen) if seen == sample)
        );
    }

    fn make_start_event(pid: u32, user: &str) -> Event {
        let process = ProcessRef {
            pid,
            name: Reading::Now("train.py".to_owned()),
            program: Some("python3".to_owned()),
            user: Reading::Now(user.to_owned()),
            started_ms: Reading::Now(1),
        };
        Event {
            at_ms: 1,
            gpu: None,
            what: EventKind::ProcessStarted(process),
        }
    }

    fn make_condition(kind: ConditionKind) -> Condition {
        Condition {
            since_ms: 1,
            severity: Severity::Notice,
            text: "secret.py (PID 7)".to_owned(),
            kind,
        }
    }

    #[test]
    fn process_event_of_other_user_is_hidden() {
        let view = View::Own(Some("ana".into()));
        assert!(
            view.filter_event(&make_start_event(1, "ana")).is_some()
                && view.filter_event(&make_start_event(1, "bob")).is_none()
        );
        assert!(
            View::Own(None)
                .filter_event(&make_start_event(1, "ana"))
                .is_none()
        );
        let Some(seen) = View::UNKNOWN_CLIENT.filter_event(&make_start_event(1, "bob")) else {
            panic!("others are shown")
        };
        assert!(
            !to_json(&seen).contains("train.py") && to_json(&seen).contains("python3"),
            "{}",
            to_json(&seen)
        );
        assert_eq!(
            make_local_view("ana").filter_event(&make_start_event(1, "bob")),
            Some(make_start_event(1, "bob"))
        );
        let report = XidReport {
            code: 31,
            name: None,
            pid: Some(7),
            meaning: "Memory page fault.".to_owned(),
            advice: "Check the program.".to_owned(),
            message: Some("pid=7, name=secret.py".to_owned()),
        };
        let xid = Event {
            at_ms: 1,
            gpu: None,
            what: EventKind::Xid(report),
        };
        let reported = serde_json::to_string(&view.filter_event(&xid).unwrap()).unwrap();
        assert!(
            reported.contains("31") && !reported.contains("secret.py") && !reported.contains("pid"),
            "{reported}"
        );
    }

    #[test]
    fn restricted_view_hides_alerts_cells_and_allocations() {
        let ana = View::Own(Some("ana".into()));
        let slurm = |user: &str| Allocation::Slurm {
            job_id: "7".to_owned(),
            user: Some(user.to_owned()),
        };
        let [namespace, pod, container] = ["research", "train-0", "trainer"].map(str::to_owned);
        let pod = Allocation::Kubernetes {
            namespace,
            pod,
            container,
        };
        assert!(ana.is_own_allocation(&slurm("ana")) && !ana.is_own_allocation(&slurm("bob")));
        let unknown = View::Own(None);
        assert!(!ana.is_own_allocation(&pod) && !unknown.is_own_allocation(&slurm("ana")));

        let (rule, text) = ("hang".to_owned(), "secret.py (PID 7) hangs".to_owned());
        let alert = Alert {
            rule,
            severity: Severity::Warning,
            since_ms: 1,
            text,
            silenced: false,
            names_processes: true,
        };
        let event = Event {
            at_ms: 1,
            gpu: None,
            what: EventKind::AlertFiring(alert.clone()),
        };
        let reported = serde_json::to_string(&ana.filter_event(&event).unwrap()).unwrap();
        assert!(
            reported.contains("hang") && !reported.contains("secret.py"),
            "{reported}"
        );
        let firing = vec![FiringAlert { gpu: None, alert }];
        assert!(
            !ana.filter_alerts(firing.clone())[0]
                .alert
                .text
                .contains("secret.py")
        );
        assert!(
            !to_json(&make_local_view("ana").filter_alerts(firing.clone())).contains("secret.py")
        );
        let mut harmless = firing;
        harmless[0].alert.names_processes = false;
        assert_eq!(
            View::UNKNOWN_CLIENT.filter_alerts(harmless.clone()),
            harmless
        );

        let cell = Cell {
            notebook: "secret.ipynb".to_owned(),
            kernel_id: "k".to_owned(),
            cell_id: "c".to_owned(),
            execution_count: None,
            started_ms: 1,
            ended_ms: 2,
            gpus: vec![0],
            gpu_ms: None,
            peak_bytes: None,
            change_bytes: None,
            joules: None,
            shared: false,
            user: Some("bob".to_owned()),
        };
        let event = Event {
            at_ms: 1,
            gpu: None,
            what: EventKind::Cell(cell),
        };
        assert!(ana.filter_event(&event).is_none());
        for view in [View::UNKNOWN_CLIENT, make_local_view("ana")] {
            let seen = to_json(&view.filter_event(&event).unwrap());
            assert!(!seen.contains("secret"), "{seen}");
        }
        assert_eq!(make_local_view("bob").filter_event(&event), Some(event));
    }

    #[test]
    fn condition_hides_processes_of_other_users() {
        let foreign = [
            ConditionKind::Xid {
                code: 31,
                pid: Some(7),
                count: 1,
                last_ms: 1,
            },
            ConditionKind::HeldIdle {
                bytes: 1,
                idle_ms: 1,
                pids: vec![1, 7],
            },
            ConditionKind::SuspectedHang {
                power_watts: 1.0,
                pids: vec![1],
                waiting: Vec::new(),
                differing: vec![GpuProcess { gpu: 0, pid: 7 }],
            },
            ConditionKind::MemoryFilling {
                left_ms: 1,
                bytes_per_second: 1.0,
                growing: vec![MemoryGrowth {
                    pid: 7,
                    bytes_per_second: 1.0,
                }],
            },
        ];
        for kind in foreign {
            let event = Event {
                at_ms: 1,
                gpu: None,
                what: EventKind::ConditionBegan(make_condition(kind.clone())),
            };
            let reported =
                serde_json::to_string(&View::Own(Some("ana".into())).filter_event(&event).unwrap())
                    .unwrap();
            assert!(
                !reported.contains("secret.py") && !reported.contains('7'),
                "{reported}"
            );
            let mut own = make_condition(kind);
            View::Own(Some("ana".into())).conceal_condition(&mut own, &[1, 7]);
            assert_eq!(
                own.text, "secret.py (PID 7)",
                "all of them are the client's own"
            );
        }
        let mut other = make_condition(ConditionKind::HeldByNobody { bytes: 7 });
        let before = other.clone();
        View::Own(None).conceal_condition(&mut other, &[]);
        assert_eq!(other, before);
    }
}
