//! Keys and mouse, on a thread of their own, which reads only while the terminal is this program's.

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

/// How often it is looked whether the terminal is this program's again, while somebody types in it.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// What is read at once.
const AT_ONCE: usize = 4096;

/// Listens to keys and mouse from now on; the terminal must be set up for it.
pub(in crate::top) fn watch_terminal(inputs: SyncSender<Input>) -> io::Result<()> {
    // Standard input can be a file, and the terminal still has keys.
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

/// Sends each input until nobody wants them, which is true, or the terminal is gone.
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
            // The end of a line that a shell left behind, and no end of the terminal: that would
            // have been seen.
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
            // Somebody else came to the front meanwhile, or the terminal is gone, which is seen
            // next.
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
