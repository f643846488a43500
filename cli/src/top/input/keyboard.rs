//! Keys and mouse, read on a separate thread while this program is in the foreground.

use std::{
    fs::File,
    io::{self, IsTerminal},
    os::fd::{AsFd, BorrowedFd},
    sync::mpsc::SyncSender,
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    stdio::stdin,
};

use super::{Input, bytes::Bytes};
use crate::top::job::Job;

/// How often the thread checks whether this program is in the foreground again, while the user
/// types in another one.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The size of one read in bytes.
const AT_ONCE: usize = 4096;

/// Starts reading keys and mouse. The terminal must already be set up.
pub(in crate::top) fn watch_terminal(inputs: SyncSender<Input>) -> io::Result<()> {
    // Standard input can be a file, so the keys are read from the terminal device.
    let opened = if io::stdin().is_terminal() {
        None
    } else {
        Some(open()?)
    };
    let body = move || {
        let keyboard = match &opened {
            Some(file) => file.as_fd(),
            None => stdin(),
        };
        let left = listen(keyboard, |input| inputs.send(input).is_ok());
        if !left {
            let _ = inputs.send(Input::Gone);
        }
    };
    thread::Builder::new()
        .name("keys".to_owned())
        .spawn(body)
        .map(drop)
}

fn open() -> io::Result<File> {
    let why = |error| {
        format!(
            "cannot read the keyboard: standard input is not a terminal, and neither is /dev/tty: {error}"
        )
    };
    File::open("/dev/tty").map_err(|error| io::Error::new(error.kind(), why(error)))
}

/// Sends each input. Returns `true` when the receiver is gone, and `false` when the terminal is.
fn listen(keyboard: BorrowedFd<'_>, mut tell: impl FnMut(Input) -> bool) -> bool {
    let mut bytes = Bytes::default();
    let mut part = [0; AT_ONCE];
    loop {
        let mut waiting = [PollFd::from_borrowed_fd(keyboard, PollFlags::IN)];
        match poll(&mut waiting, None) {
            Ok(_)
                if waiting[0]
                    .revents()
                    .intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) =>
            {
                return false;
            }
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return false,
        }
        if !Job::now().has_terminal() {
            thread::sleep(POLL_INTERVAL);
            continue;
        }
        match rustix::io::read(keyboard, &mut part) {
            // A shell left an end-of-file character behind. A terminal that is gone would have been
            // reported by `poll`.
            Ok(0) => thread::sleep(POLL_INTERVAL),
            Ok(length) => {
                if !bytes
                    .parse(&part[..length], length == AT_ONCE)
                    .into_iter()
                    .all(&mut tell)
                {
                    return true;
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            // Another process came to the foreground in the meantime, or the terminal is gone,
            // which `poll` reports next.
            Err(_) => thread::sleep(POLL_INTERVAL),
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::{
        fs::{Mode, OFlags},
        pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    };

    use super::*;

    #[test]
    fn a_terminal_that_is_closed_ends_the_wait_for_keys() {
        let outside =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&outside).unwrap();
        unlockpt(&outside).unwrap();
        let path = ptsname(&outside, Vec::new()).unwrap();
        let inside = rustix::fs::open(
            path,
            OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .unwrap();
        let listening = thread::spawn(move || listen(inside.as_fd(), |_| true));
        drop(outside);
        assert!(!listening.join().unwrap());
    }
}
