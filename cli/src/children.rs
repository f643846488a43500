//! The child processes of this process: programs that it starts, and orphans that it adopts.

use std::{
    collections::BTreeSet,
    io,
    path::Path,
    process::{Child, Command, id},
    sync::{Mutex, PoisonError},
};

use gpumon_probe::owner::children;
use rustix::process::{Pid, WaitOptions, set_child_subreaper, waitpid};
use signal_hook::{consts::SIGCHLD, iterator::Signals};

use crate::background::spawn;

/// The PIDs of programs that [`start`] has started. The holder of each [`Child`] waits for it.
static STARTED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Starts a program that the reaper of [`adopt_orphans`] does not wait for.
pub(crate) fn start(command: &mut Command) -> io::Result<Child> {
    // The lock keeps the reaper from seeing a child before its PID is recorded.
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let child = command.spawn()?;
    started.insert(child.id());
    Ok(child)
}

/// Makes this process the parent of all processes below it whose parents end from now on.
/// Otherwise, the first process of the PID namespace would be their parent. A thread reaps them
/// after they have ended; this program does not wait for them to end.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    // A process that ignores this signal is not notified when a child ends. It can inherit this
    // setting from its parent.
    let mut ended = Signals::new([SIGCHLD])?;
    // Any PID turns it on. If a sandbox refuses it, orphans stay with the first process.
    let _ = set_child_subreaper(Pid::from_raw(id().cast_signed()));
    spawn("orphans", move || {
        ended.forever().for_each(|_| reap_orphans());
    })
}

fn reap_orphans() {
    let started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let adopted = children(Path::new("/proc"), id())
        .into_iter()
        .filter(|pid| !started.contains(pid));
    for pid in adopted.filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
        // `NOHANG` skips a process that still runs.
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}
