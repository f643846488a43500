//! Job control: whether this program or the shell has the terminal.
//!
//! The kernel stops all threads of a background job that reads or changes its terminal, and then no
//! thread is left to receive a request to end. So the program checks first.

use std::{path::Path, process};

use gpumon_probe::process_stat::ProcessStat;
use rustix::{io::Errno, stdio::stdout, termios::tcgetpgrp};

/// This program's position among the jobs of its terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Job {
    /// The program is in the foreground.
    InFront,
    /// Another job is in the foreground.
    Behind,
    /// There is no job control: the terminal is not the controlling terminal of this session.
    Alone,
    /// The terminal is gone, or no process can bring this program to the foreground again.
    Lost,
}

impl Job {
    pub(super) fn now() -> Self {
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

/// Returns `true` if this program's process group is orphaned by the kernel's rule: no process of
/// the group has a parent that is in the same session but in another group.
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

/// Reads the process group and session of a process. Both are 0 if they are outside the container.
fn read_state(pid: u32) -> Option<ProcessStat> {
    ProcessStat::read_since_boot(Path::new("/proc"), pid, None).ok()
}

#[cfg(test)]
mod tests {
    use gpumon_probe::process_stat::Birth;

    use super::*;

    #[test]
    fn a_job_is_orphaned_where_nobody_of_its_session_could_bring_it_to_the_front() {
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
    fn this_process_has_a_job_state() {
        let own = read_state(process::id()).unwrap();
        assert_eq!(own.parent, std::os::unix::process::parent_id());
        assert!(own.group > 0);
    }
}
