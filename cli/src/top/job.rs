//! Job control: checks whether this program or another job of the shell is in the foreground of the
//! terminal.
//!
//! The kernel stops all threads of a background job that reads or changes its terminal. No thread
//! could then handle a request to end the program, so the program checks this first.

use std::{path::Path, process};

use gpumon_probe::process_stat::ProcessStat;
use rustix::{io::Errno, stdio::stdout, termios::tcgetpgrp};

/// Whether this program may use its terminal, according to job control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TerminalJob {
    /// This program is in the foreground.
    InFront,
    /// Another job is in the foreground.
    Behind,
    /// There is no job control: the terminal is not the controlling terminal of this session.
    Alone,
    /// The terminal was closed, or no process can bring this program back to the foreground.
    Lost,
}

impl TerminalJob {
    pub(super) fn detect() -> Self {
        let front = match tcgetpgrp(stdout()) {
            Ok(front) => front.as_raw_nonzero().get().unsigned_abs(),
            // `OPNOTSUPP` means that the foreground process group is outside this container's PID
            // namespace.
            Err(Errno::NOTTY | Errno::OPNOTSUPP) => return Self::Alone,
            Err(_) => return Self::Lost,
        };
        match read_state(process::id()) {
            Some(own) if own.group != front => {
                if is_orphaned(own, read_state) {
                    Self::Lost
                } else {
                    Self::Behind
                }
            }
            _ => Self::InFront,
        }
    }

    /// Returns `true` if the terminal may be changed and read.
    pub(super) fn has_terminal(self) -> bool {
        matches!(self, Self::InFront | Self::Alone)
    }
}

/// Returns `true` if this program's process group is orphaned according to the kernel's rule: no
/// process in the group has a parent in another group of the same session.
fn is_orphaned(own: ProcessStat, state_of: impl Fn(u32) -> Option<ProcessStat>) -> bool {
    let mut parent = own.parent;
    loop {
        match state_of(parent) {
            Some(above) if above.session == own.session && above.group == own.group => {
                parent = above.parent;
            }
            Some(above) => return above.session != own.session,
            None => return true,
        }
    }
}

/// Reads the process group and the session of a process. Each is 0 if it is outside of the
/// container.
fn read_state(pid: u32) -> Option<ProcessStat> {
    ProcessStat::read_with_boot_time(Path::new("/proc"), pid, None).ok()
}

#[cfg(test)]
mod tests {
    use gpumon_probe::process_stat::Birth;

    use super::*;

    #[test]
    fn job_without_parent_in_session_is_orphaned() {
        let place = |parent, group, session| ProcessStat {
            state: 'S',
            parent,
            group,
            session,
            threads: 1,
            cpu_ms: 0,
            birth: Birth {
                ticks: 0,
                started_ms: None,
            },
        };
        // Process 10 is a shell, 20 is its job, and 21 is a child of the job.
        let all = |pid| match pid {
            1 => Some(place(0, 0, 0)),
            10 => Some(place(1, 10, 10)),
            20 => Some(place(10, 20, 10)),
            21 => Some(place(20, 20, 10)),
            _ => None,
        };
        assert!(!is_orphaned(place(10, 20, 10), all));
        assert!(
            !is_orphaned(place(21, 20, 10), all),
            "by way of its own group"
        );
        assert!(is_orphaned(place(1, 20, 10), all), "its shell has ended");
        assert!(is_orphaned(place(1, 10, 10), all), "the shell itself");
        assert!(
            is_orphaned(place(0, 20, 10), all),
            "from outside the container"
        );
        assert!(is_orphaned(place(30, 20, 10), all), "it ended just now");
    }

    #[test]
    fn current_process_has_job_state() {
        let own = read_state(process::id()).unwrap();
        assert_eq!(own.parent, std::os::unix::process::parent_id());
        assert!(own.group > 0);
    }
}
