//! How much of processes a client may see: by default, what its user could read in `/proc`.

use std::{borrow::Cow, sync::Arc, time::Duration};

use gpumon_history::{jobs::JobList, span::HistorySpan};
use gpumon_probe::{
    bounded,
    model::{
        Absence, Allocation, Condition, ConditionKind, Event, EventKind, FiringAlert, GpuDetails, JobKind, Process,
        Reading, Sample,
    },
    usage::Usage,
};
use tokio::{sync::Mutex, task::spawn_blocking, time::Instant};

use crate::{auth::Client, frame::History};

/// The table of mounts of a machine with thousands of containers.
const LONGEST_MOUNTINFO: usize = 4 << 20;

/// How long it is believed to be as it was.
const BELIEVED: Duration = Duration::from_secs(5);

static PROC: ProcPrivacy = ProcPrivacy { read: Mutex::const_new(None) };

/// What others than the server's own user and root see of processes, by `--show-processes`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ShowProcesses {
    /// Each client the processes of its own user alone.
    Own,
    /// Everybody all, with command lines.
    All,
    /// Everybody names and users; command lines where the client's user can read them in `/proc`.
    #[default]
    Names,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum View {
    /// All that the collector tells.
    Whole,
    /// Names, those of scripts too, and users, without command lines and the paths of notebooks.
    Names,
    /// What is of this user alone; nothing of anybody where the user is not known.
    Own(Option<Arc<str>>),
}

impl View {
    /// The server's own user and root see everything. What others see is a setting, and by default what they could read in
    /// `/proc`: of whom nothing is known might be anybody.
    pub(crate) async fn of(client: &Client, show: ShowProcesses) -> Self {
        let peer = client.peer;
        match show {
            _ if peer.is_own() => Self::Whole,
            ShowProcesses::All => Self::Whole,
            ShowProcesses::Own => Self::Own(client.user().await.map(Into::into)),
            ShowProcesses::Names if peer.uid().is_some() && !PROC.is_private(proc_is_private).await => Self::Whole,
            ShowProcesses::Names => Self::Names,
        }
    }

    pub(crate) fn sample<'a>(&self, sample: &'a Sample) -> Cow<'a, Sample> {
        if *self == Self::Whole {
            return Cow::Borrowed(sample);
        }
        let mut sample = sample.clone();
        for gpu in &mut sample.gpus {
            let processes = match &mut gpu.processes {
                Reading::Now(processes) | Reading::Earlier { value: processes, .. } => processes,
                Reading::Absent(_) => &mut Vec::new(),
            };
            match self {
                Self::Own(user) => {
                    gpu.allocated_to.retain(|holder| is_for(holder, user.as_deref()));
                    if let Reading::Now(mig) | Reading::Earlier { value: mig, .. } = &mut gpu.mig_devices {
                        let each = mig.iter_mut().map(|mig| &mut mig.allocated_to);
                        each.for_each(|all| all.retain(|holder| is_for(holder, user.as_deref())));
                    }
                    processes.retain(|process| is_of(&process.user, user.as_deref()));
                    let own: Vec<u32> = processes.iter().map(|process| process.pid).collect();
                    gpu.conditions.iter_mut().for_each(|condition| conceal(condition, &own));
                }
                _ => processes.iter_mut().for_each(hide_command),
            }
        }
        Cow::Owned(sample)
    }

    pub(crate) fn usage(&self, mut usage: Usage) -> Usage {
        match self {
            Self::Whole => {}
            Self::Names => {
                let jobs = usage.owners.iter_mut().filter_map(|owner| owner.job.as_mut());
                jobs.filter_map(|job| job.path.as_mut()).for_each(hide);
            }
            Self::Own(user) => {
                usage.owners.retain(|owner| owner.user.is_some() && owner.user.as_deref() == user.as_deref());
            }
        }
        usage
    }

    pub(crate) fn jobs(&self, mut list: JobList) -> JobList {
        match self {
            Self::Whole => {}
            Self::Names => {
                let notebooks = list.jobs.iter_mut().filter(|span| span.kind == JobKind::Notebook);
                notebooks.for_each(|span| span.name = None);
            }
            Self::Own(user) => list.jobs.retain(|span| user.is_some() && span.user.as_deref() == user.as_deref()),
        }
        list
    }

    pub(crate) fn history(&self, mut history: History) -> History {
        match self {
            Self::Whole => {}
            Self::Names => {
                let holders = history.gpus.iter_mut().flat_map(|gpu| &mut gpu.holders);
                holders.for_each(|holder| hide_command(&mut holder.process));
            }
            Self::Own(user) => {
                for gpu in &mut history.gpus {
                    gpu.holders.retain(|holder| is_of(&holder.process.user, user.as_deref()));
                }
            }
        }
        history
    }

    /// The same event as this client may know it; `None` where that is not at all.
    pub(crate) fn event(&self, event: &Event) -> Option<Event> {
        let mut event = event.clone();
        if let Self::Own(user) = self {
            match &mut event.what {
                EventKind::ProcessStarted(process) | EventKind::ProcessEnded(process) => {
                    is_of(&process.user, user.as_deref()).then_some(())?;
                }
                EventKind::ConditionBegan(condition) | EventKind::ConditionEnded(condition) => conceal(condition, &[]),
                EventKind::Xid(report) => (report.pid, report.message) = (None, None),
                EventKind::AlertFiring(alert) | EventKind::AlertResolved(alert) => alert.text = of_rule(&alert.rule),
                // Nobody knows whose notebook it is.
                EventKind::Cell(_) => return None,
                _ => {}
            }
        }
        Some(event)
    }

    pub(crate) fn alerts(&self, mut firing: Vec<FiringAlert>) -> Vec<FiringAlert> {
        if !self.has_all_events() {
            for FiringAlert { alert, .. } in &mut firing {
                alert.text = of_rule(&alert.rule);
            }
        }
        firing
    }

    /// Whether events are the same for this client as for most.
    pub(crate) fn has_all_events(&self) -> bool {
        !matches!(self, Self::Own(_))
    }

    pub(crate) fn details(&self, mut details: GpuDetails) -> GpuDetails {
        if !self.has_all_events() && details.accounting.value().is_some() {
            details.accounting = Reading::Absent(Absence::Hidden);
        }
        details
    }

    pub(crate) fn span(&self, mut span: HistorySpan) -> HistorySpan {
        if !self.has_all_events() {
            span.events = span.events.iter().filter_map(|event| self.event(event)).collect();
            span.conditions.iter_mut().for_each(|one| conceal(&mut one.condition, &[]));
        }
        span
    }
}

fn is_of(user: &Reading<String>, own: Option<&str>) -> bool {
    own.is_some() && user.value().map(String::as_str) == own
}

/// Whether a scheduler has given it to this user, as far as it says to whom.
fn is_for(holder: &Allocation, own: Option<&str>) -> bool {
    let user = match holder {
        Allocation::Slurm { user, .. } => user.as_deref(),
        Allocation::Kubernetes { .. } => None,
    };
    own.is_some() && user == own
}

/// All that those who may not know everybody's processes learn of an alert: its text may name some.
fn of_rule(rule: &str) -> String {
    format!("The alert rule {rule} fires")
}

/// Takes from a condition what it tells of processes, unless all of them are the client's own.
fn conceal(condition: &mut Condition, own: &[u32]) {
    let is_own = |pid: &u32| own.contains(pid);
    let text = match &mut condition.kind {
        ConditionKind::Xid { code, pid, .. } if !pid.is_none_or(|pid| is_own(&pid)) => {
            *pid = None;
            format!("The driver reported Xid {code}.")
        }
        ConditionKind::HeldIdle { pids, .. } if !pids.iter().all(is_own) => {
            pids.retain(is_own);
            "Processes hold memory, and none has done anything for minutes.".to_owned()
        }
        ConditionKind::SuspectedHang { pids, differing, .. }
            if !(pids.iter().all(is_own) && differing.iter().all(|process| is_own(&process.pid))) =>
        {
            pids.retain(is_own);
            differing.retain(|process| is_own(&process.pid));
            "Kernels have run for minutes without a pause, and nothing moves.".to_owned()
        }
        ConditionKind::MemoryFilling { growing, .. } if !growing.iter().all(|process| is_own(&process.pid)) => {
            growing.retain(|process| is_own(&process.pid));
            "Memory in use grows steadily, and will be full within an hour.".to_owned()
        }
        _ => return,
    };
    condition.text = text;
}

/// What is absent keeps its reason.
fn hide(text: &mut Reading<String>) {
    if text.value().is_some() {
        *text = Reading::Absent(Absence::Hidden);
    }
}

fn hide_command(process: &mut Process) {
    hide(&mut process.command);
    if let Reading::Now(owner) | Reading::Earlier { value: owner, .. } = &mut process.owner
        && let Some(notebook) = &mut owner.notebook
    {
        hide(&mut notebook.path);
    }
}

/// Whether `/proc` is private, as it was read last, and when that was.
struct ProcPrivacy {
    read: Mutex<Option<(Instant, bool)>>,
}

impl ProcPrivacy {
    /// As `read` tells, off the event loop and not for every request: the table of mounts can be long.
    async fn is_private(&self, read: impl FnOnce() -> bool + Send + 'static) -> bool {
        let mut known = self.read.lock().await;
        if let Some((at, is_private)) = *known
            && at.elapsed() < BELIEVED
        {
            return is_private;
        }
        let is_private = spawn_blocking(read).await.unwrap_or(true);
        *known = Some((Instant::now(), is_private));
        is_private
    }
}

/// Whether users see only their own processes in `/proc`, or the kernel does not tell.
fn proc_is_private() -> bool {
    bounded::text("/proc/self/mountinfo", LONGEST_MOUNTINFO).map_or(true, |text| hides_processes(&text))
}

/// Whether `/proc` is mounted with `hidepid` (proc(5)), as `mountinfo` has it: `ID PARENT DEV ROOT MOUNT-POINT OPTIONS
/// … - TYPE SOURCE OPTIONS`. The last one that is mounted there counts.
fn hides_processes(mountinfo: &str) -> bool {
    let of_proc = mountinfo.lines().rfind(|line| line.split(' ').nth(4) == Some("/proc"));
    let Some(line) = of_proc else { return true };
    let options = line.split([' ', ',']);
    let hidepid = options.filter_map(|option| option.strip_prefix("hidepid=")).next_back();
    hidepid.is_some_and(|value| !matches!(value, "0" | "off"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use gpumon_probe::{
        model::{Alert, Cell, GpuProcess, MemoryGrowth, Notebook, Owner, ProcessKind, ProcessRef, Severity, XidReport},
        usage::OwnerUsage,
    };

    use super::*;
    use crate::frame::{GpuHistory, HolderHistory};

    #[tokio::test]
    async fn the_table_of_mounts_is_not_read_for_every_request() {
        let proc = ProcPrivacy { read: Mutex::const_new(None) };
        assert!(!proc.is_private(|| false).await);
        assert!(!proc.is_private(|| panic!("it has just been read")).await);
        let long_ago = Instant::now().checked_sub(BELIEVED).unwrap();
        *proc.read.lock().await = Some((long_ago, false));
        assert!(proc.is_private(|| true).await);
    }

    #[test]
    fn what_is_hidden_says_so_and_what_is_absent_keeps_its_reason() {
        let absent = |reason| Reading::Absent(reason);
        for (path, shown) in [
            (Reading::Now("train.ipynb".to_owned()), Absence::Hidden),
            (absent(Absence::NoPermission), Absence::NoPermission),
        ] {
            let notebook = Notebook { kernel_id: "k".to_owned(), kernel_name: None, path, kernel_pid: 7 };
            let process = Process {
                pid: 7,
                kind: ProcessKind::Compute,
                memory_bytes: Reading::Now(1),
                sm_percent: Reading::Now(0.0),
                memory_percent: Reading::Now(0.0),
                encoder_percent: Reading::Now(0.0),
                decoder_percent: Reading::Now(0.0),
                name: Reading::Now("train.py".to_owned()),
                command: Reading::Now("python3 train.py --token secret".to_owned()),
                user: Reading::Now("ana".to_owned()),
                host_memory_bytes: Reading::Now(1),
                traced: Reading::Now(false),
                started_ms: Reading::Now(1),
                mig: None,
                mps: false,
                owner: Reading::Now(Owner { notebook: Some(notebook), ..Owner::default() }),
            };
            let owner = OwnerUsage {
                user: Some("ana".to_owned()),
                job: process.owner.value().unwrap().job(),
                gpu_seconds: 1.0,
                exclusive_seconds: 1.0,
                active_seconds: 1.0,
                joules: None,
            };
            let usage = Usage { owners: vec![owner], ..Usage::default() };
            let of = |user: Option<&str>| View::Own(user.map(Into::into)).usage(usage.clone()).owners.len();
            assert_eq!([of(Some("ana")), of(Some("bob")), of(None)], [1, 0, 0]);
            let used = View::Names.usage(usage);
            let holders = vec![HolderHistory { process, memory_bytes: Vec::new() }];
            let gpus = vec![GpuHistory { uuid: "GPU-0".to_owned(), metrics: BTreeMap::new(), holders }];
            let mut history = View::Names.history(History { gpus, ..History::default() });
            let process = history.gpus.remove(0).holders.remove(0).process;
            let job = used.owners[0].job.as_ref().unwrap();
            assert_eq!((job.id.as_str(), &job.path), ("k", &Some(Reading::Absent(shown.clone()))));
            assert_eq!(process.command, absent(Absence::Hidden));
            let owner = process.owner.value().unwrap();
            assert_eq!(owner.notebook.as_ref().unwrap().path, Reading::Absent(shown));
        }
    }

    fn started(pid: u32, user: &str) -> Event {
        let process = ProcessRef {
            pid,
            name: Reading::Now("train.py".to_owned()),
            user: Reading::Now(user.to_owned()),
            started_ms: Reading::Now(1),
        };
        Event { at_ms: 1, gpu: None, what: EventKind::ProcessStarted(process) }
    }

    fn condition(kind: ConditionKind) -> Condition {
        Condition { since_ms: 1, severity: Severity::Notice, text: "secret.py (PID 7)".to_owned(), kind }
    }

    #[test]
    fn an_event_of_somebody_elses_process_is_none() {
        let view = View::Own(Some("ana".into()));
        assert!(view.event(&started(1, "ana")).is_some() && view.event(&started(1, "bob")).is_none());
        assert!(View::Own(None).event(&started(1, "ana")).is_none());
        assert!(View::Names.event(&started(1, "bob")).is_some());
        let report = XidReport {
            code: 31,
            pid: Some(7),
            meaning: "Memory page fault.".to_owned(),
            advice: "Check the program.".to_owned(),
            message: Some("pid=7, name=secret.py".to_owned()),
        };
        let xid = Event { at_ms: 1, gpu: None, what: EventKind::Xid(report) };
        let told = serde_json::to_string(&view.event(&xid).unwrap()).unwrap();
        assert!(told.contains("31") && !told.contains("secret.py") && !told.contains("pid"), "{told}");
    }

    #[test]
    fn alerts_cells_and_what_schedulers_gave_tell_nothing_of_somebody_else() {
        let ana = View::Own(Some("ana".into()));
        let slurm = |user: &str| Allocation::Slurm { job_id: "7".to_owned(), user: Some(user.to_owned()) };
        let [namespace, pod, container] = ["research", "train-0", "trainer"].map(str::to_owned);
        let pod = Allocation::Kubernetes { namespace, pod, container };
        assert!(is_for(&slurm("ana"), Some("ana")) && !is_for(&slurm("bob"), Some("ana")));
        assert!(!is_for(&pod, Some("ana")) && !is_for(&slurm("ana"), None));

        let (rule, text) = ("hang".to_owned(), "secret.py (PID 7) hangs".to_owned());
        let alert = Alert { rule, severity: Severity::Warning, since_ms: 1, text, silenced: false };
        let event = Event { at_ms: 1, gpu: None, what: EventKind::AlertFiring(alert.clone()) };
        let told = serde_json::to_string(&ana.event(&event).unwrap()).unwrap();
        assert!(told.contains("hang") && !told.contains("secret.py"), "{told}");
        let firing = vec![FiringAlert { gpu: None, alert }];
        assert!(!ana.alerts(firing.clone())[0].alert.text.contains("secret.py"));
        assert_eq!(View::Names.alerts(firing.clone()), firing);

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
        };
        let event = Event { at_ms: 1, gpu: None, what: EventKind::Cell(cell) };
        assert!(ana.event(&event).is_none() && View::Names.event(&event).is_some());
    }

    #[test]
    fn a_condition_names_no_process_of_somebody_else() {
        let foreign = [
            ConditionKind::Xid { code: 31, pid: Some(7), count: 1, last_ms: 1 },
            ConditionKind::HeldIdle { bytes: 1, idle_ms: 1, pids: vec![1, 7] },
            ConditionKind::SuspectedHang {
                power_watts: 1.0,
                pids: vec![1],
                waiting: Vec::new(),
                differing: vec![GpuProcess { gpu: 0, pid: 7 }],
            },
            ConditionKind::MemoryFilling {
                left_ms: 1,
                bytes_per_second: 1.0,
                growing: vec![MemoryGrowth { pid: 7, bytes_per_second: 1.0 }],
            },
        ];
        for kind in foreign {
            let event = Event { at_ms: 1, gpu: None, what: EventKind::ConditionBegan(condition(kind.clone())) };
            let told = serde_json::to_string(&View::Own(Some("ana".into())).event(&event).unwrap()).unwrap();
            assert!(!told.contains("secret.py") && !told.contains('7'), "{told}");
            let mut own = condition(kind);
            conceal(&mut own, &[1, 7]);
            assert_eq!(own.text, "secret.py (PID 7)", "all of them are the client's own");
        }
        let mut other = condition(ConditionKind::HeldByNobody { bytes: 7 });
        let before = other.clone();
        conceal(&mut other, &[]);
        assert_eq!(other, before);
    }

    #[test]
    fn hidepid_is_read_from_the_options_of_proc() {
        let proc = "22 27 0:21 / /proc rw,relatime shared:5 - proc proc rw";
        assert!(!hides_processes(proc));
        assert!(!hides_processes(&format!("{proc},hidepid=0\n")) && !hides_processes(&format!("{proc},hidepid=off")));
        for value in ["1", "2", "4", "noaccess", "invisible", "ptraceable"] {
            assert!(hides_processes(&format!("{proc},gid=5,hidepid={value}\n23 27 0:22 / /sys rw - sysfs sysfs rw")));
        }
        assert!(hides_processes(&format!("{proc}\n{proc},hidepid=2")), "the last one covers the first");
        assert!(hides_processes(""));
    }
}
