//! Sending signals to processes. A signal is sent only to the process shown on the screen, and
//! never to another process that has reused its PID.

use std::{
    fs, io,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::Path,
};

use gpumon_probe::process_stat::ProcessStat;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, Uid, geteuid, pidfd_open, pidfd_send_signal},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KillSignal {
    /// The signal of Ctrl-C, for which Python raises `KeyboardInterrupt`.
    Interrupt,
    Terminate,
    /// A signal that ends the process unconditionally.
    End,
}

impl KillSignal {
    pub(super) const ALL: [Self; 3] = [Self::Interrupt, Self::Terminate, Self::End];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "INT",
            Self::Terminate => "TERM",
            Self::End => "KILL",
        }
    }

    pub(super) fn effect(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt, like Ctrl-C",
            Self::Terminate => "request a normal exit",
            Self::End => "end at once; unsaved work is lost",
        }
    }

    fn signal(self) -> Signal {
        match self {
            Self::Interrupt => Signal::INT,
            Self::Terminate => Signal::TERM,
            Self::End => Signal::KILL,
        }
    }
}

/// A process pinned by a pidfd. While the pidfd is open, a signal cannot reach another process that
/// has reused the PID.
#[derive(Debug)]
pub(super) struct PinnedProcess {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) user: String,
    handle: OwnedFd,
}

/// Returns `true` if the user `own` may signal a process that belongs to `owner`. Only root and the
/// owner may.
fn may_signal(own: Uid, owner: u32) -> bool {
    own.is_root() || owner == own.as_raw()
}

impl PinnedProcess {
    /// Opens a handle to the process that started at `started_ms`. If there is no such process, the
    /// error contains `missing` as an explanation.
    pub(super) fn open(
        pid: u32,
        started_ms: Option<u64>,
        name: String,
        user: String,
        missing: &str,
    ) -> Result<Self, String> {
        let gone = || format!("{name} ({pid}) {missing}: no signal is sent");
        let number = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(gone)?;
        let handle = pidfd_open(number, PidfdFlags::empty()).map_err(|error| match error {
            Errno::SRCH => gone(),
            Errno::NOSYS => {
                "this kernel is too old to send signals safely: it needs Linux 5.3".to_owned()
            }
            error => format!("cannot open a handle of process {pid}: {error}"),
        })?;
        // The process is checked only after its handle was opened, so that a reuse of the PID in
        // between is detected.
        let stat = ProcessStat::read(Path::new("/proc"), pid).map_err(|_| gone())?;
        if started_ms.is_none() || !stat.may_have_started_at(started_ms) {
            return Err(format!(
                "PID {pid} in this PID namespace does not belong, or no longer belongs, to \
                 {name}: no signal is sent"
            ));
        }
        let owner = fs::metadata(format!("/proc/{pid}"))
            .map_err(|_| gone())?
            .uid();
        if !may_signal(geteuid(), owner) {
            return Err(format!(
                "{name} ({pid}) belongs to {user}: only {user} or root can send signals to it"
            ));
        }
        Ok(Self {
            pid,
            name,
            user,
            handle,
        })
    }

    /// Returns the process's name and PID, such as `python (4242)`.
    pub(super) fn label(&self) -> String {
        format!("{} ({})", self.name, self.pid)
    }

    pub(super) fn send(&self, kill: KillSignal) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.handle, kill.signal())?)
    }

    pub(super) fn has_ended(&self) -> bool {
        let mut handles = [PollFd::new(&self.handle, PollFlags::IN)];
        poll(
            &mut handles,
            Some(&Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            }),
        )
        .is_ok_and(|ready| ready > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        process::{Child, Command},
        time::{Duration, Instant},
    };

    use super::*;

    fn spawn_sleeper() -> (Child, Option<u64>) {
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let started_ms = ProcessStat::read(Path::new("/proc"), child.id())
            .unwrap()
            .birth
            .started_ms;
        (child, started_ms)
    }

    fn open_process(pid: u32, started_ms: Option<u64>) -> Result<PinnedProcess, String> {
        PinnedProcess::open(
            pid,
            started_ms,
            "sleep".to_owned(),
            "ana".to_owned(),
            "has ended",
        )
    }

    #[test]
    fn signaled_process_ends_and_is_detected() {
        let (mut child, started_ms) = spawn_sleeper();
        let target = open_process(child.id(), started_ms).unwrap();
        assert!(!target.has_ended());
        target.send(KillSignal::Terminate).unwrap();
        let begun = Instant::now();
        while !target.has_ended() {
            assert!(begun.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap()),
            Some(15)
        );
        assert!(target.send(KillSignal::End).is_err(), "nobody else gets it");
        assert!(
            open_process(child.id(), started_ms)
                .unwrap_err()
                .contains("has ended")
        );
    }

    #[test]
    fn process_with_reused_pid_is_not_signaled() {
        let (mut child, started_ms) = spawn_sleeper();
        let refused =
            open_process(child.id(), started_ms.map(|started| started - 3_600_000)).unwrap_err();
        assert!(refused.contains("no signal is sent"), "{refused}");
        assert!(
            open_process(child.id(), None).is_err(),
            "a start that is not known cannot be compared"
        );
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn signaling_other_users_process_requires_root() {
        let user = Uid::from_raw(1000);
        assert!(may_signal(user, 1000) && may_signal(Uid::ROOT, 1000));
        assert!(!may_signal(user, 1001) && !may_signal(user, 0));
    }
}
