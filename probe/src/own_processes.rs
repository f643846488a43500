//! Details of this user's processes in samples of a collector that runs as another user.
//!
//! A system-wide collector hides command lines, because other users could see them, and cannot read
//! everything: the path of a notebook, or a job that is recorded only in the environment. This
//! process may read and show both for its user's own processes.

use std::{
    collections::{BTreeSet, HashMap},
    mem,
    path::PathBuf,
    time::Duration,
};

use rustix::process::geteuid;

use crate::{
    model::{Event, EventKind, GpuSample, Process, Reading},
    owner::{self, CommandLines, ProcessFields, ProcessName, Resolver},
    sampler::process_list,
};

/// The maximum difference between two readings of the same start time, which changes when the clock
/// is set. In another PID namespace, the same PID belongs to another process, which hardly has the
/// same user and was started in the same minute.
const SAME_START_MS: u64 = 60_000;

/// A reader that adds details to this user's processes.
pub struct OwnProcesses {
    resolver: Resolver,
    uid: u32,
    /// The names of this user in samples: the login name, and the number for collectors that find
    /// no name.
    user: [String; 2],
    /// The processes in the last sample, and those that have started since.
    listed: BTreeSet<u32>,
    /// The names of processes, including ended ones.
    names: HashMap<u32, ProcessName>,
}

impl OwnProcesses {
    /// Returns a reader of the processes below `proc_root`, which is `/proc`, or the mounted
    /// `/proc` of the host in a container.
    pub fn new(proc_root: PathBuf) -> Self {
        let uid = geteuid().as_raw();
        Self {
            resolver: Resolver::new(proc_root, CommandLines::Own),
            uid,
            user: [owner::user_name(uid), uid.to_string()],
            listed: BTreeSet::new(),
            names: HashMap::new(),
        }
    }

    /// Fills in details of this user's own processes. Waits for details of new processes, but at
    /// most for `patience`. Returns `false` and changes nothing if no process belongs to this user.
    pub fn fill(&mut self, gpus: &mut [GpuSample], patience: Duration) -> bool {
        let listed = gpus
            .iter()
            .flat_map(processes)
            .filter(|process| self.may_be_own(&process.user));
        self.listed = listed.map(|process| process.pid).collect();
        self.resolver.ask(self.listed.clone(), patience);
        let own: BTreeSet<u32> = self
            .listed
            .iter()
            .copied()
            .filter(|pid| self.is_own(*pid))
            .collect();
        self.names.retain(|pid, _| own.contains(pid));
        let budget = process_list::budget(gpus.len() as u32);
        for gpu in gpus {
            if processes(gpu).any(|process| own.contains(&process.pid)) {
                self.fill_gpu(gpu, &own, budget);
            }
        }
        !own.is_empty()
    }

    /// Fills in the details of one GPU's processes. Fewer processes may fit into the sample,
    /// because the details are longer.
    fn fill_gpu(&mut self, gpu: &mut GpuSample, own: &BTreeSet<u32>, budget: usize) {
        let (Reading::Now(processes)
        | Reading::Earlier {
            value: processes, ..
        }) = &mut gpu.processes
        else {
            return;
        };
        let (listed, omitted) =
            process_list::fit(mem::take(processes), budget, |process, fields| {
                if own.contains(&process.pid) && self.may_be_own(&process.user) {
                    self.describe(process, fields);
                }
            });
        *processes = listed;
        gpu.processes_omitted = gpu.processes_omitted.saturating_add(omitted.len() as u32);
    }

    fn describe(&mut self, process: &mut Process, fields: ProcessFields) {
        let mut described = process.clone();
        self.resolver.describe(&mut described, fields);
        let times = process.started_ms.value().zip(described.started_ms.value());
        if times.is_some_and(|(theirs, ours)| theirs.abs_diff(*ours) > SAME_START_MS) {
            return;
        }
        // The collector's values are kept, because its events identify processes by them.
        keep_known(&process.started_ms, &mut described.started_ms);
        keep_known(&process.user, &mut described.user);
        let name = ProcessName {
            name: described.name.clone(),
            program: described.program.clone(),
        };
        self.names.insert(process.pid, name);
        *process = described;
    }

    /// Replaces the name of this user's process in a start or end event by the name in samples.
    /// Waits for the name, but at most for `patience`. Returns `false` and changes nothing if the
    /// event is about something else.
    pub fn name(&mut self, event: &mut Event, patience: Duration) -> bool {
        let (EventKind::ProcessStarted(process) | EventKind::ProcessEnded(process)) =
            &mut event.what
        else {
            return false;
        };
        if !self.may_be_own(&process.user) {
            return false;
        }
        let known = self.names.get(&process.pid).cloned().or_else(|| {
            self.listed.insert(process.pid);
            self.resolver.ask(self.listed.clone(), patience);
            self.resolver
                .name(process.pid)
                .filter(|_| self.is_own(process.pid))
        });
        let is_news =
            |known: &ProcessName| known.name.value().is_some() && known.name != process.name;
        let Some(known) = known.filter(is_news) else {
            return false;
        };
        (process.name, process.program) = (known.name, known.program);
        true
    }

    /// Returns `true` if the process belongs to this user, or if the collector does not know the
    /// user.
    fn may_be_own(&self, user: &Reading<String>) -> bool {
        user.value().is_none_or(|user| self.user.contains(user))
    }

    fn is_own(&self, pid: u32) -> bool {
        self.resolver.uid(pid) == Some(self.uid)
    }
}

fn processes(gpu: &GpuSample) -> impl Iterator<Item = &Process> {
    gpu.processes.value().into_iter().flatten()
}

fn keep_known<T: Clone>(theirs: &Reading<T>, ours: &mut Reading<T>) {
    if theirs.value().is_some() {
        ours.clone_from(theirs);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;
    use crate::{
        derive::examples,
        model::{Absence, ProcessRef},
    };

    const PATIENCE: Duration = Duration::from_secs(20);

    struct Running(Child);

    impl Drop for Running {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn as_told_by_another(pid: u32, user: Reading<String>, started_ms: Reading<u64>) -> Process {
        let (name, command) = (
            Reading::Now("sleep".to_owned()),
            Reading::Absent(Absence::Hidden),
        );
        Process {
            name,
            command,
            user,
            started_ms,
            ..examples::process(pid, 1)
        }
    }

    #[test]
    fn own_processes_are_told_whole_and_those_of_others_stay_as_they_are() {
        let running = Running(Command::new("sleep").arg("617").spawn().unwrap());
        let pid = running.0.id();
        // A new process has no arguments for a moment.
        while std::fs::read(format!("/proc/{pid}/cmdline"))
            .unwrap()
            .is_empty()
        {
            std::thread::yield_now();
        }
        let mut own = OwnProcesses::new("/proc".into());
        let me = Reading::Now(own.user[0].clone());
        let unknown = || Reading::Absent(Absence::Unknown);
        let other = as_told_by_another(pid, Reading::Now("somebody".to_owned()), unknown());
        let long_ago = as_told_by_another(pid, me.clone(), Reading::Now(1_000_000));
        let mut gpus = [(); 3].map(|()| examples::sample(0));
        gpus[0].processes = Reading::Now(vec![as_told_by_another(pid, me, unknown())]);
        gpus[1].processes = Reading::Now(vec![long_ago.clone()]);
        gpus[2].processes = Reading::Now(vec![other.clone()]);
        assert!(own.fill(&mut gpus, PATIENCE));
        let of = |gpu: usize| &gpus[gpu].processes.value().unwrap()[0];
        assert_eq!(of(0).command, Reading::Now("sleep 617".to_owned()));
        assert!(
            of(0).started_ms.value().is_some()
                && of(0).owner.value().is_some_and(|owner| !owner.partial)
        );
        assert_eq!(
            (of(1), of(2)),
            (&long_ago, &other),
            "another process of that number, and another user's"
        );
        assert!(!own.fill(&mut [], PATIENCE));
    }

    #[test]
    fn where_a_collector_sees_no_owner_this_process_looks_itself() {
        let mut own = OwnProcesses::new("/proc".into());
        let unknown = Reading::Absent(Absence::Unknown);
        let mut gpus = [examples::sample(0)];
        let init = as_told_by_another(1, unknown.clone(), Reading::Absent(Absence::Unknown));
        let nobody = as_told_by_another(u32::MAX, unknown, Reading::Absent(Absence::Unknown));
        let this = as_told_by_another(
            std::process::id(),
            init.user.clone(),
            init.started_ms.clone(),
        );
        gpus[0].processes = Reading::Now(vec![this, nobody.clone()]);
        assert!(own.fill(&mut gpus, PATIENCE));
        let told = gpus[0].processes.value().unwrap();
        assert!(
            told[0]
                .command
                .value()
                .is_some_and(|command| !command.is_empty())
        );
        assert_eq!(
            (told[0].user.value(), &told[1]),
            (Some(&own.user[0]), &nobody)
        );
    }

    #[test]
    fn events_call_own_processes_what_samples_call_them() {
        let script = std::env::temp_dir().join(format!("gpumon-own-{}.py", std::process::id()));
        std::fs::write(&script, "import time; time.sleep(60)").unwrap();
        let Ok(child) = Command::new("python3").arg(&script).spawn() else {
            return;
        };
        let running = Running(child);
        let pid = running.0.id();
        let mut own = OwnProcesses::new("/proc".into());
        let about = |own: &OwnProcesses, what: fn(ProcessRef) -> EventKind, user: &str| {
            let (name, started_ms) = (
                Reading::Now("python3".to_owned()),
                Reading::Absent(Absence::Unknown),
            );
            let user = Reading::Now(if user.is_empty() {
                own.user[0].clone()
            } else {
                user.to_owned()
            });
            Event {
                at_ms: 1,
                gpu: None,
                what: what(ProcessRef {
                    pid,
                    name,
                    program: None,
                    user,
                    started_ms,
                }),
            }
        };
        let file = script.file_name().unwrap().to_str().unwrap();
        let (start, end) = (
            EventKind::ProcessStarted as fn(_) -> _,
            EventKind::ProcessEnded as fn(_) -> _,
        );
        let is_named = |own: &mut OwnProcesses, what, user, name: &str| {
            let mut event = about(own, what, user);
            own.name(&mut event, PATIENCE);
            let (EventKind::ProcessStarted(told) | EventKind::ProcessEnded(told)) = event.what
            else {
                unreachable!()
            };
            told.name == Reading::Now(name.to_owned())
        };
        // The loop is needed, because the process may not have started the interpreter yet.
        let begun = std::time::Instant::now();
        while !is_named(&mut own, start, "", file) {
            assert!(begun.elapsed() < PATIENCE);
            own = OwnProcesses::new("/proc".into());
        }
        assert!(is_named(&mut own, start, "somebody", "python3"));
        let mut gpus = [examples::sample(0)];
        gpus[0].processes = Reading::Now(vec![as_told_by_another(
            pid,
            Reading::Now(own.user[0].clone()),
            Reading::Absent(Absence::Unknown),
        )]);
        assert!(own.fill(&mut gpus, PATIENCE));
        drop(running);
        assert!(
            is_named(&mut own, end, "", file),
            "it is known from the sample"
        );
        std::fs::remove_file(&script).unwrap();
    }
}
