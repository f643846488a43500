//! How much of processes a client may see: what its user could read in `/proc`.

use std::{borrow::Cow, time::Duration};

use gpumon_history::jobs::JobList;
use gpumon_probe::{
    bounded,
    model::{Absence, JobKind, Process, Reading, Sample},
    usage::Usage,
};
use tokio::{sync::Mutex, task::spawn_blocking, time::Instant};

use crate::{frame::History, peer::Peer};

/// The table of mounts of a machine with thousands of containers.
const LONGEST_MOUNTINFO: usize = 4 << 20;

/// How long it is believed to be as it was.
const BELIEVED: Duration = Duration::from_secs(5);

static PROC: ProcPrivacy = ProcPrivacy { read: Mutex::const_new(None) };

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum View {
    /// All that the collector tells.
    Whole,
    /// Names, those of scripts too, and users, without command lines and the paths of notebooks.
    Names,
}

impl View {
    /// The server's own user and root see everything, and so does every user of a machine where everybody may read
    /// everybody's command line in `/proc`. Of whom nothing is known might be anybody.
    pub(crate) async fn of(peer: Peer) -> Self {
        if peer.is_own() || (peer.uid().is_some() && !PROC.is_private(proc_is_private).await) {
            Self::Whole
        } else {
            Self::Names
        }
    }

    pub(crate) fn sample(self, sample: &Sample) -> Cow<'_, Sample> {
        match self {
            Self::Whole => Cow::Borrowed(sample),
            Self::Names => {
                let mut sample = sample.clone();
                for gpu in &mut sample.gpus {
                    let (Reading::Now(processes) | Reading::Earlier { value: processes, .. }) = &mut gpu.processes
                    else {
                        continue;
                    };
                    processes.iter_mut().for_each(hide_command);
                }
                Cow::Owned(sample)
            }
        }
    }

    pub(crate) fn usage(self, mut usage: Usage) -> Usage {
        if self == Self::Names {
            let jobs = usage.owners.iter_mut().filter_map(|owner| owner.job.as_mut());
            jobs.filter_map(|job| job.path.as_mut()).for_each(hide);
        }
        usage
    }

    pub(crate) fn jobs(self, mut list: JobList) -> JobList {
        if self == Self::Names {
            let notebooks = list.jobs.iter_mut().filter(|span| span.kind == JobKind::Notebook);
            notebooks.for_each(|span| span.name = None);
        }
        list
    }

    pub(crate) fn history(self, mut history: History) -> History {
        if self == Self::Names {
            let holders = history.gpus.iter_mut().flat_map(|gpu| &mut gpu.holders);
            holders.for_each(|holder| hide_command(&mut holder.process));
        }
        history
    }
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
        model::{Notebook, Owner, ProcessKind},
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
            let used = View::Names.usage(Usage { owners: vec![owner], ..Usage::default() });
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
