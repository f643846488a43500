//! Adds details of the current user's processes to samples from a collector that runs as another
//! user.
//!
//! A system-wide collector hides command lines, because other users could see them. It also cannot
//! read some details, such as the path of a notebook or a job that is recorded only in the
//! environment. For the current user's processes, this process may read and show all of these
//! details.

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

/// The maximum difference between the start times that the collector and this process read for the
/// same process. They differ if the clock was set. Such a large tolerance is safe: if the collector
/// runs in another PID namespace, a PID can belong to a different process there than here, but
/// these two processes are unlikely to have the same user and to have been started in the same
/// minute.
const START_TOLERANCE_MS: u64 = 60_000;

/// A reader that adds details to the current user's processes.
pub struct OwnProcessReader {
    resolver: Resolver,
    uid: u32,
    /// The two names that the current user can have in samples: the login name, or the numeric ID
    /// if the collector finds no login name.
    user: [String; 2],
    /// The PIDs of the processes in the last sample, and of those that have started since then.
    listed: BTreeSet<u32>,
    /// The names of processes by PID, including ended processes.
    names: HashMap<u32, ProcessName>,
}

impl OwnProcessReader {
    /// Creates a reader for the processes below `proc_root`, which is `/proc`, or in a container
    /// the host's mounted `/proc`.
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

    /// Fills in details of the current user's processes. Waits for details of new processes, but no
    /// longer than `patience`. Returns `false` and changes nothing if no process belongs to the
    /// current user.
    pub fn fill_own_processes(&mut self, gpus: &mut [GpuSample], patience: Duration) -> bool {
        let listed = gpus
            .iter()
            .flat_map(|gpu| gpu.processes.items())
            .filter(|process| self.may_belong_to_current_user(&process.user));
        self.listed = listed.map(|process| process.pid).collect();
        self.resolver.request_details(self.listed.clone(), patience);
        let own: BTreeSet<u32> = self
            .listed
            .iter()
            .copied()
            .filter(|pid| self.is_owned_by_current_user(*pid))
            .collect();
        self.names.retain(|pid, _| own.contains(pid));
        let budget = process_list::max_process_bytes_per_gpu(gpus.len() as u32);
        for gpu in gpus {
            let mut processes = gpu.processes.items().iter();
            if processes.any(|process| own.contains(&process.pid)) {
                self.fill_gpu(gpu, &own, budget);
            }
        }
        !own.is_empty()
    }

    /// Fills in the details of the GPU's processes. The details make the JSON of each process
    /// longer, so fewer processes may fit into the sample.
    fn fill_gpu(&mut self, gpu: &mut GpuSample, own: &BTreeSet<u32>, budget: usize) {
        let Some(processes) = gpu.processes.value_mut() else {
            return;
        };
        let (listed, omitted) = process_list::select_processes_within_budget(
            mem::take(processes),
            budget,
            |process, fields| {
                if own.contains(&process.pid) && self.may_belong_to_current_user(&process.user) {
                    self.fill_process_details(process, fields);
                }
            },
        );
        *processes = listed;
        gpu.processes_omitted = gpu.processes_omitted.saturating_add(omitted.len() as u32);
    }

    fn fill_process_details(&mut self, process: &mut Process, fields: ProcessFields) {
        let mut described = process.clone();
        self.resolver.fill_known_details(&mut described, fields);
        let times = process.started_ms.value().zip(described.started_ms.value());
        if times.is_some_and(|(theirs, ours)| theirs.abs_diff(*ours) > START_TOLERANCE_MS) {
            return;
        }
        // The collector's values are kept, because its events identify processes by these values.
        copy_if_present(&process.started_ms, &mut described.started_ms);
        copy_if_present(&process.user, &mut described.user);
        let name = ProcessName {
            name: described.name.clone(),
            program: described.program.clone(),
        };
        self.names.insert(process.pid, name);
        *process = described;
    }

    /// Changes the process name in a start or end event to the name used in samples, if the process
    /// belongs to the current user. Waits for the name, but no longer than `patience`. Returns
    /// `true` if the event was changed.
    pub fn name_event_process(&mut self, event: &mut Event, patience: Duration) -> bool {
        let (EventKind::ProcessStarted(process) | EventKind::ProcessEnded(process)) =
            &mut event.what
        else {
            return false;
        };
        if !self.may_belong_to_current_user(&process.user) {
            return false;
        }
        let known = self.names.get(&process.pid).cloned().or_else(|| {
            self.listed.insert(process.pid);
            self.resolver.request_details(self.listed.clone(), patience);
            self.resolver
                .process_name(process.pid)
                .filter(|_| self.is_owned_by_current_user(process.pid))
        });
        let is_news =
            |known: &ProcessName| known.name.value().is_some() && known.name != process.name;
        let Some(known) = known.filter(is_news) else {
            return false;
        };
        (process.name, process.program) = (known.name, known.program);
        true
    }

    /// Returns `true` if the process belongs to the current user, or if its user is unknown to the
    /// collector.
    fn may_belong_to_current_user(&self, user: &Reading<String>) -> bool {
        user.value().is_none_or(|user| self.user.contains(user))
    }

    fn is_owned_by_current_user(&self, pid: u32) -> bool {
        self.resolver.process_uid(pid) == Some(self.uid)
    }
}

fn copy_if_present<T: Clone>(theirs: &Reading<T>, ours: &mut Reading<T>) {
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

    struct RunningChild(Child);

    impl Drop for RunningChild {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn make_collected_process(
        pid: u32,
        user: Reading<String>,
        started_ms: Reading<u64>,
    ) -> Process {
        let (name, command) = (
            Reading::Now("sleep".to_owned()),
            Reading::Absent(Absence::Hidden),
        );
        Process {
            name,
            command,
            user,
            started_ms,
            ..examples::make_process(pid, 1)
        }
    }

    #[test]
    fn only_processes_of_current_user_get_details() {
        let running = RunningChild(Command::new("sleep").arg("617").spawn().unwrap());
        let pid = running.0.id();
        // A process has no arguments right after its start, so the test waits for them.
        while std::fs::read(format!("/proc/{pid}/cmdline"))
            .unwrap()
            .is_empty()
        {
            std::thread::yield_now();
        }
        let mut own = OwnProcessReader::new("/proc".into());
        let me = Reading::Now(own.user[0].clone());
        let unknown = || Reading::Absent(Absence::Unknown);
        let other = make_collected_process(pid, Reading::Now("somebody".to_owned()), unknown());
        let long_ago = make_collected_process(pid, me.clone(), Reading::Now(1_000_000));
        let mut gpus = [(); 3].map(|()| examples::make_sample(0));
        gpus[0].processes = Reading::Now(vec![make_collected_process(pid, me, unknown())]);
        gpus[1].processes = Reading::Now(vec![long_ago.clone()]);
        gpus[2].processes = Reading::Now(vec![other.clone()]);
        assert!(own.fill_own_processes(&mut gpus, PATIENCE));
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
        assert!(!own.fill_own_processes(&mut [], PATIENCE));
    }

    #[test]
    fn user_of_unidentified_process_is_read() {
        let mut own = OwnProcessReader::new("/proc".into());
        let unknown = Reading::Absent(Absence::Unknown);
        let mut gpus = [examples::make_sample(0)];
        let init = make_collected_process(1, unknown.clone(), Reading::Absent(Absence::Unknown));
        let nobody = make_collected_process(u32::MAX, unknown, Reading::Absent(Absence::Unknown));
        let this = make_collected_process(
            std::process::id(),
            init.user.clone(),
            init.started_ms.clone(),
        );
        gpus[0].processes = Reading::Now(vec![this, nobody.clone()]);
        assert!(own.fill_own_processes(&mut gpus, PATIENCE));
        let reported = gpus[0].processes.value().unwrap();
        assert!(
            reported[0]
                .command
                .value()
                .is_some_and(|command| !command.is_empty())
        );
        assert_eq!(
            (reported[0].user.value(), &reported[1]),
            (Some(&own.user[0]), &nobody)
        );
    }

    #[test]
    fn events_use_process_names_of_samples() {
        let script = std::env::temp_dir().join(format!("gpumon-own-{}.py", std::process::id()));
        std::fs::write(&script, "import time; time.sleep(60)").unwrap();
        let Ok(child) = Command::new("python3").arg(&script).spawn() else {
            return;
        };
        let running = RunningChild(child);
        let pid = running.0.id();
        let mut own = OwnProcessReader::new("/proc".into());
        let about = |own: &OwnProcessReader, what: fn(ProcessRef) -> EventKind, user: &str| {
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
        let is_named = |own: &mut OwnProcessReader, what, user, name: &str| {
            let mut event = about(own, what, user);
            own.name_event_process(&mut event, PATIENCE);
            let (EventKind::ProcessStarted(reported) | EventKind::ProcessEnded(reported)) =
                event.what
            else {
                unreachable!()
            };
            reported.name == Reading::Now(name.to_owned())
        };
        // The check is repeated, because the process may not have started the interpreter yet.
        let begun = std::time::Instant::now();
        while !is_named(&mut own, start, "", file) {
            assert!(begun.elapsed() < PATIENCE);
            own = OwnProcessReader::new("/proc".into());
        }
        assert!(is_named(&mut own, start, "somebody", "python3"));
        let mut gpus = [examples::make_sample(0)];
        gpus[0].processes = Reading::Now(vec![make_collected_process(
            pid,
            Reading::Now(own.user[0].clone()),
            Reading::Absent(Absence::Unknown),
        )]);
        assert!(own.fill_own_processes(&mut gpus, PATIENCE));
        drop(running);
        assert!(
            is_named(&mut own, end, "", file),
            "it is known from the sample"
        );
        std::fs::remove_file(&script).unwrap();
    }
}
