//! The two sides of a terminal.

use std::os::fd::{AsFd, OwnedFd};

use rustix::{
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

/// A terminal of this size: the side of whoever looks at it, and that of the programs in it.
pub(super) fn open(columns: u16, rows: u16) -> (OwnedFd, OwnedFd) {
    // A program that holds the outside of a terminal keeps it open.
    let outside = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&outside).unwrap();
    unlockpt(&outside).unwrap();
    let path = ptsname(&outside, Vec::new()).unwrap();
    let inside = rustix::fs::open(
        path,
        OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .unwrap();
    set_size(&outside, columns, rows);
    (outside, inside)
}

pub(super) fn set_size(screen: impl AsFd, columns: u16, rows: u16) {
    tcsetwinsize(
        screen,
        Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        },
    )
    .unwrap();
}
