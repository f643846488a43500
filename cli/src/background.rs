//! Helper that starts background threads.

use std::{io, thread};

/// Starts a named thread that runs `work` and is never joined.
pub(crate) fn spawn_detached_thread(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let builder = thread::Builder::new().name(name.to_owned());
    builder.spawn(work).map(drop)
}
