//! Reading of keys and mouse events on a separate thread, while this program is in the foreground.

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

use super::{Input, bytes::InputParser};
use crate::top::job::TerminalJob;

/// The interval at which the thread checks whether this program is in the foreground again, while
/// another program receives the keys.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The maximum number of bytes per read.
const READ_BYTES: usize = 4096;

/// Starts to read keys and mouse events. The terminal must already be set up.
pub(in crate::top) fn watch_terminal(inputs: SyncSender<Input>) -> io::Result<()> {
    // Standard input may be a file, so keys are read from the terminal device.
    let opened = if io::stdin().is_terminal() {
        None
    } else {
        Some(open_terminal()?)
    };
    let body = move || {
        let keyboard = match &opened {
            Some(file) => file.as_fd(),
            None => stdin(),
        };
        let left = forward_inputs(keyboard, |input| inputs.send(input).is_ok());
        if !left {
            let _ = inputs.send(Input::Gone);
        }
    };
    thread::Builder::new()
        .name("keys".to_owned())
        .spawn(body)
        .map(drop)
}

fn open_terminal() -> io::Result<File> {
    let why = |error| {
        format!(
            "cannot read the keyboard: standard input is not a terminal, and /dev/tty cannot be \
             opened: {error}"
        )
    };
    File::open("/dev/tty").map_err(|error| io::Error::new(error.kind(), why(error)))
}

/// Sends each input from the keyboard. Returns `true` if the receiver no longer exists, or `false`
/// if the terminal was closed.
fn forward_inputs(keyboard: BorrowedFd<'_>, mut tell: impl FnMut(Input) -> bool) -> bool {
    let mut bytes = InputParser::default();
    let mut part = [0; READ_BYTES];
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
        if !TerminalJob::detect().has_terminal() {
            thread::sleep(POLL_INTERVAL);
            continue;
        }
        match rustix::io::read(keyboard, &mut part) {
            // The shell has left an end-of-file character in the input. If the terminal had been
            // closed, `poll` would have reported this.
            Ok(0) => thread::sleep(POLL_INTERVAL),
            Ok(length) => {
                if !bytes
                    .parse(&part[..length], length == READ_BYTES)
                    .into_iter()
                    .all(&mut tell)
                {
                    return true;
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            // Either another process has come to the foreground, or the terminal was closed, which
            // the next `poll` reports.
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
    fn closed_terminal_ends_reading() {
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
        let listening = thread::spawn(move || forward_inputs(inside.as_fd(), |_| true));
        drop(outside);
        assert!(!listening.join().unwrap());
    }
}
