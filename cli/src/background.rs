//! Threads next to the one that runs a command.

use std::{io, thread};

/// Starts a thread that nothing waits for.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = thread::Builder::new().name(name.to_owned());
    builder.spawn(work).map(drop)
}
