//! Whose process a PID is: its name, command line, user and start, its notebook, job, pod, container and service.
//!
//! Everything is read below one root, which is `/proc` but in tests.

mod belonging;
mod cgroup;
#[cfg(fuzzing)]
pub mod fuzzing;
mod jupyter;
mod proc_fs;

use std::{
    collections::HashMap,
    path::PathBuf,
    time::{Duration, Instant},
};

use uzers::{Users, UsersCache};

use self::proc_fs::{Origin, ProcFs};
use crate::model::{Absence, Owner, Process, Reading};

/// A process can become another program (exec) or rename itself, as workers of Ray and vLLM do.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// What a process belongs to does not change, but for the name of its notebook. Finding out takes twenty files.
const ASK_OWNER_AGAIN: Duration = Duration::from_secs(30);

/// A command line can be megabytes long; this much of it tells what it is, and travels with every sample.
const LONGEST_COMMAND: usize = 1024;

/// Whose command lines may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandLines {
    /// Everybody's: for a person at a terminal, who could as well ask `ps`.
    All,
    /// Only those of the user gpumon runs as: for a service, whose viewers may be others.
    Own,
}

/// Fills in what the driver does not know of a process.
pub struct Resolver {
    proc_fs: ProcFs,
    commands: CommandLines,
    own_uid: u32,
    users: UsersCache,
    known: HashMap<u32, Known>,
}

/// What was found of a process that was born then.
struct Known {
    origin: Origin,
    read_at: Instant,
    name: Reading<String>,
    command: Reading<String>,
    user: Reading<String>,
    owner: Reading<Owner>,
    owner_read_at: Instant,
}

impl Resolver {
    /// Reads below `root`, which is `/proc` but in tests.
    pub fn new(root: impl Into<PathBuf>, commands: CommandLines) -> Self {
        Self {
            proc_fs: ProcFs::new(root.into()),
            commands,
            own_uid: rustix::process::geteuid().as_raw(),
            users: UsersCache::new(),
            known: HashMap::new(),
        }
    }

    /// Fills in every process of one reading, and forgets those that are not in it.
    ///
    /// A process that ended since the driver listed it stays in the list, with its details unknown.
    pub fn fill(&mut self, processes: &mut [Process]) {
        self.known.retain(|pid, _| processes.iter().any(|process| process.pid == *pid));
        for process in processes {
            self.fill_one(process);
        }
    }

    fn fill_one(&mut self, process: &mut Process) {
        if self.known.get(&process.pid).is_none_or(|known| known.read_at.elapsed() > LOOK_AGAIN) {
            self.look_again(process.pid);
        }
        let Some(known) = self.known.get(&process.pid) else {
            for detail in [&mut process.name, &mut process.command, &mut process.user] {
                *detail = Reading::Absent(Absence::Unknown);
            }
            process.started_ms = Reading::Absent(Absence::Unknown);
            process.owner = Reading::Absent(Absence::Unknown);
            return;
        };
        process.name = known.name.clone();
        process.command = known.command.clone();
        process.user = known.user.clone();
        process.owner = known.owner.clone();
        process.started_ms = match known.origin.birth.started_ms {
            Some(started_ms) => Reading::Now(started_ms),
            None => Reading::Absent(Absence::Unknown),
        };
    }

    /// Also whether the PID is still that process's: it takes a kernel longer than this to come round to it again.
    fn look_again(&mut self, pid: u32) {
        match self.proc_fs.origin(pid) {
            Some(origin) => {
                let before = self.known.remove(&pid).filter(|known| known.origin == origin);
                self.known.insert(pid, self.look_up(pid, origin, before));
            }
            None => drop(self.known.remove(&pid)),
        }
    }

    /// `before` is what was known of the same process.
    fn look_up(&self, pid: u32, origin: Origin, before: Option<Known>) -> Known {
        let arguments = self.proc_fs.arguments(pid);
        let uid = self.proc_fs.uid(pid);
        let hidden = self.commands == CommandLines::Own && uid != Some(self.own_uid);
        let program = self.proc_fs.name(pid, arguments.as_deref());
        let script = program.as_deref().zip(arguments.as_deref()).filter(|_| !hidden);
        let script = script.and_then(|(program, arguments)| proc_fs::script(program, arguments));
        let (owner, owner_read_at) = match before {
            Some(known) if known.owner_read_at.elapsed() < ASK_OWNER_AGAIN => (known.owner, known.owner_read_at),
            _ => {
                let owner = belonging::owner(&self.proc_fs, pid, origin, arguments.as_deref(), hidden);
                (Reading::Now(owner), Instant::now())
            }
        };
        Known {
            name: known_or_unknown(script.or(program)),
            command: if hidden {
                Reading::Absent(Absence::Hidden)
            } else {
                let line = arguments.as_ref().map(|arguments| shorten(arguments.join(" ")));
                known_or_unknown(line.filter(|line| !line.is_empty()))
            },
            user: known_or_unknown(uid.map(|uid| self.user_name(uid))),
            owner,
            owner_read_at,
            origin,
            read_at: Instant::now(),
        }
    }

    fn user_name(&self, uid: u32) -> String {
        let user = self.users.get_user_by_uid(uid);
        user.map_or_else(|| uid.to_string(), |user| user.name().to_string_lossy().into_owned())
    }
}

fn shorten(mut line: String) -> String {
    if line.len() > LONGEST_COMMAND {
        line.truncate(line.floor_char_boundary(LONGEST_COMMAND));
        line.push('…');
    }
    line
}

fn known_or_unknown(text: Option<String>) -> Reading<String> {
    text.map_or(Reading::Absent(Absence::Unknown), Reading::Now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProcessKind;

    fn process(pid: u32) -> Process {
        Process {
            pid,
            kind: ProcessKind::Compute,
            memory_bytes: Reading::Now(1),
            sm_percent: Reading::Now(0.0),
            memory_percent: Reading::Now(0.0),
            encoder_percent: Reading::Now(0.0),
            decoder_percent: Reading::Now(0.0),
            name: Reading::Absent(Absence::NoAnswer),
            command: Reading::Absent(Absence::NoAnswer),
            user: Reading::Absent(Absence::NoAnswer),
            started_ms: Reading::Absent(Absence::NoAnswer),
            mig: None,
            mps: false,
            owner: Reading::Absent(Absence::NoAnswer),
        }
    }

    #[test]
    fn this_very_process_is_known_by_name_user_and_start() {
        let mut processes = [process(std::process::id())];
        Resolver::new("/proc", CommandLines::Own).fill(&mut processes);
        let [this] = processes;
        assert!(this.name.value().is_some_and(|name| name.starts_with("gpumon_probe")), "{:?}", this.name);
        assert!(this.command.value().is_some_and(|command| command.contains("gpumon_probe")), "{:?}", this.command);
        assert!(this.user.value().is_some());
        let age_ms = crate::model::now_ms().saturating_sub(*this.started_ms.value().unwrap());
        assert!(age_ms < 3_600_000, "a test runs for less than an hour, not {age_ms} ms");
    }

    #[test]
    fn a_process_that_has_ended_stays_listed_with_its_details_unknown() {
        let mut processes = [process(u32::MAX - 1)];
        Resolver::new("/proc", CommandLines::All).fill(&mut processes);
        assert_eq!(processes[0].name, Reading::Absent(Absence::Unknown));
        assert_eq!(processes[0].memory_bytes, Reading::Now(1));
    }

    #[test]
    fn a_command_line_of_any_length_is_cut_between_two_characters() {
        assert_eq!(shorten("python train.py".to_owned()), "python train.py");
        let cut = shorten("ä".repeat(LONGEST_COMMAND));
        assert_eq!(cut.chars().count(), LONGEST_COMMAND / 2 + 1);
        assert!(cut.ends_with("ä…"));
    }

    #[test]
    fn another_users_command_line_is_hidden_from_a_service_only() {
        let mut service = Resolver::new("/proc", CommandLines::Own);
        service.own_uid = u32::MAX - 1;
        let mut processes = [process(std::process::id())];
        service.fill(&mut processes);
        assert_eq!(processes[0].command, Reading::Absent(Absence::Hidden));
        assert!(processes[0].name.value().is_some());

        let mut person = Resolver::new("/proc", CommandLines::All);
        person.own_uid = u32::MAX - 1;
        person.fill(&mut processes);
        assert!(processes[0].command.value().is_some());
    }
}
