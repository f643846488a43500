//! The child processes of this process: programs that this process starts, and orphans that it
//! adopts.

use std::{
    collections::BTreeSet,
    io,
    path::Path,
    process::{Child, Command, id},
    sync::{Mutex, PoisonError},
};

use gpumon_probe::owner::read_children;
use rustix::process::{Pid, WaitOptions, set_child_subreaper, waitpid};
use signal_hook::{consts::SIGCHLD, iterator::Signals};

use crate::background::spawn;

/// The PIDs of the programs that [`start`] has started. The reaper thread skips them, because the
/// owner of each [`Child`] waits for its program.
static STARTED_PIDS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Starts a program that the reaper thread of [`adopt_orphans`] ignores.
pub(crate) fn start(command: &mut Command) -> io::Result<Child> {
    // The reaper thread must not see a child before its PID is recorded.
    let mut started = STARTED_PIDS.lock().unwrap_or_else(PoisonError::into_inner);
    let child = command.spawn()?;
    started.insert(child.id());
    Ok(child)
}

/// Makes this process the parent of all descendants that become orphans from now on. Otherwise, PID
/// 1 of the PID namespace would adopt them. A background thread reaps orphans after they exit;
/// gpumon does not wait for them before it exits itself.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    // While `SIGCHLD` is ignored, the kernel sends no notification when a child ends. A process can
    // inherit this setting, so a handler is installed.
    let mut ended = Signals::new([SIGCHLD])?;
    // Any nonzero PID enables the setting. If a sandbox refuses the call, PID 1 adopts the orphans.
    let _ = set_child_subreaper(Pid::from_raw(id().cast_signed()));
    spawn("orphans", move || {
        ended.forever().for_each(|_| reap_orphans());
    })
}

fn reap_orphans() {
    let started = STARTED_PIDS.lock().unwrap_or_else(PoisonError::into_inner);
    let adopted = read_children(Path::new("/proc"), id())
        .into_iter()
        .filter(|pid| !started.contains(pid));
    for pid in adopted.filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
        // `NOHANG` skips a process that is still running.
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}
