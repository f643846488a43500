//! The child processes of this one: those that it starts, and orphans below them that it adopts.

use std::{
    collections::BTreeSet,
    io,
    path::Path,
    process::{Child, Command, id},
    sync::{Mutex, PoisonError},
    thread,
};

use gpumon_probe::owner::children;
use rustix::process::{Pid, WaitOptions, set_child_subreaper, waitpid};
use signal_hook::{consts::SIGCHLD, iterator::Signals};

/// Those that [`start`] has started: whoever holds the [`Child`] waits for it.
static STARTED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Starts a program that the reaper of [`adopt_orphans`] does not wait for.
pub(crate) fn start(command: &mut Command) -> io::Result<Child> {
    // The reaper does not see a child before its PID is noted.
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let child = command.spawn()?;
    started.insert(child.id());
    Ok(child)
}

/// From now on, processes below this one whose parents end become its children, and not those of the first process of the
/// PID namespace. A thread removes them from the list of processes when they have ended; nothing waits until they end.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    // The end of a child is not known to a process that ignores this signal, as its parent can have told it to.
    let mut ended = Signals::new([SIGCHLD])?;
    // Any PID turns it on. A sandbox can refuse it: orphans stay with the first process then.
    let _ = set_child_subreaper(Pid::from_raw(id().cast_signed()));
    thread::Builder::new().name("orphans".to_owned()).spawn(move || ended.forever().for_each(|_| reap())).map(drop)
}

fn reap() {
    let started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let adopted = children(Path::new("/proc"), id()).into_iter().filter(|pid| !started.contains(pid));
    for pid in adopted.filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
        // It does nothing while the process runs.
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}
