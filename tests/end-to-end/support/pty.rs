//! A pseudoterminal: the program's side, and the viewer's side, through which a test reads the
//! screen and types.

use std::os::fd::{AsFd, OwnedFd};

use rustix::{
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

/// Opens a terminal of this size. Returns the viewer's side and the program's side.
pub(super) fn open_pty(columns: u16, rows: u16) -> (OwnedFd, OwnedFd) {
    // The program must not inherit the viewer's side, because it would keep the terminal open.
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
