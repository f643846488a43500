//! Reading of processes in two stages.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use super::{
    CommandLines,
    as_user::User,
    lookup::{self, OwnerQuery},
    proc_fs::{self, ProcFs, Status},
};
use crate::{
    model::{Absence, Owner, Reading, now_ms},
    process_stat::ProcessStat,
};

/// The interval between two lookups of a process's owners. It is long because a lookup reads twenty
/// files, and only the notebook's name can change.
const OWNER_REFRESH_AFTER: Duration = Duration::from_secs(30);

pub(super) struct ProcessReader {
    proc_fs: ProcFs,
    commands: CommandLines,
    own_uid: u32,
}

/// The result of the first stage: data from the kernel, which cannot block.
#[derive(Debug, Clone)]
pub(super) struct Basics {
    pub(super) origin: ProcessStat,
    pub(super) user: Option<User>,
    pub(super) host_memory_bytes: Reading<u64>,
    pub(super) traced: Reading<bool>,
    /// Whether the command line is hidden.
    pub(super) hidden: bool,
    /// The program's name from `comm`, which may be truncated.
    pub(super) name: String,
    pub(super) owner: Reading<Owner>,
}

/// The result of the second stage: data that the process controls, so reading it can block.
#[derive(Debug, Clone)]
pub(super) struct Details {
    pub(super) name: ProcessName,
    pub(super) command: Reading<String>,
    pub(super) owner: Owner,
    owner_read: Instant,
}

/// The displayed name of a process, and the program's name if that is different.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessName {
    /// The displayed name, see [`Process::name`](crate::model::Process::name).
    pub(crate) name: Reading<String>,
    /// The program's name, see [`Process::program`](crate::model::Process::program).
    pub(crate) program: Option<String>,
}

impl ProcessReader {
    pub(super) fn new(root: PathBuf, commands: CommandLines) -> Self {
        Self {
            proc_fs: ProcFs::new(root),
            commands,
            own_uid: rustix::process::geteuid().as_raw(),
        }
    }

    #[cfg(test)]
    pub(super) fn with_uid(self, own_uid: u32) -> Self {
        Self { own_uid, ..self }
    }

    /// Returns `true` if this process is not in the machine's initial PID namespace, so that
    /// processes in other namespaces are not visible.
    pub(super) fn is_in_child_pid_namespace(&self) -> bool {
        self.proc_fs.is_in_namespace
    }

    /// Runs the first stage of reading a process.
    ///
    /// # Errors
    /// Returns the reason for the absence if there is no such process.
    pub(super) fn read_basics(&self, pid: u32) -> Result<Basics, Absence> {
        let missing = || self.proc_fs.missing_reason(pid);
        let origin = self.proc_fs.read_stat(pid).ok_or_else(missing)?;
        let Status {
            user,
            resident_bytes,
            traced,
            has_ended,
        } = self.proc_fs.read_status(pid);
        let why_none = if has_ended {
            Absence::Ended
        } else {
            Absence::Unknown
        };
        let host_memory_bytes = Reading::from(resident_bytes.ok_or(why_none)).with_time(now_ms());
        Ok(Basics {
            origin,
            user,
            host_memory_bytes,
            traced: Reading::from(traced.ok_or(Absence::Unknown)),
            hidden: self.commands == CommandLines::Own
                && user.map(|user| user.uid) != Some(self.own_uid),
            name: super::clean_name(&self.proc_fs.read_name(pid, None).ok_or_else(missing)?),
            owner: lookup::read_cgroup_owner(&self.proc_fs, pid),
        })
    }

    /// Runs the second stage of reading a process, which can block forever. `before` is the
    /// previous result for the same process.
    pub(super) fn read_details(
        &self,
        pid: u32,
        basics: &Basics,
        before: Option<Details>,
    ) -> Details {
        let &Basics {
            origin,
            user,
            hidden,
            owner: ref by_cgroup,
            ..
        } = basics;
        let arguments = self.proc_fs.read_arguments(pid);
        let program = self.proc_fs.read_name(pid, arguments.as_deref());
        let script = program
            .as_deref()
            .zip(arguments.as_deref())
            .filter(|_| !hidden);
        let script =
            script.and_then(|(program, arguments)| proc_fs::script_name(program, arguments));
        let command = arguments
            .as_ref()
            .map(|arguments| super::clean_line(&proc_fs::command_line(arguments)));
        let (owner, owner_read) = match before {
            Some(before) if before.owner_read.elapsed() < OWNER_REFRESH_AFTER => {
                (before.owner, before.owner_read)
            }
            before => {
                let is_root = self.own_uid == 0;
                let arguments = arguments.as_deref();
                let kernel = before.and_then(|before| Some(before.owner.notebook?.kernel_pid));
                let query = OwnerQuery {
                    pid,
                    origin,
                    user,
                    by_cgroup,
                    arguments,
                    kernel,
                    hidden,
                    is_root,
                };
                (lookup::read_owner(&self.proc_fs, &query), Instant::now())
            }
        };
        let clean_name = |name: String| super::clean_name(&name);
        let name = match script {
            Some(script) => ProcessName {
                name: Reading::Now(super::clean_name(&script)),
                program: program.map(clean_name),
            },
            None => ProcessName {
                name: to_reading(program.map(clean_name)),
                program: None,
            },
        };
        Details {
            name,
            command: if hidden {
                Reading::Absent(Absence::Hidden)
            } else {
                to_reading(command.filter(|line| !line.is_empty()))
            },
            owner,
            owner_read,
        }
    }
}

/// Returns the login name, or the numeric ID if there is no name. Can block, because a directory
/// service may be queried.
pub fn user_name(uid: u32) -> String {
    let user = uzers::get_user_by_uid(uid);
    user.map_or_else(
        || uid.to_string(),
        |user| super::clean_name(&user.name().to_string_lossy()),
    )
}

fn to_reading(text: Option<String>) -> Reading<String> {
    text.map_or(Reading::Absent(Absence::Unknown), Reading::Now)
}
