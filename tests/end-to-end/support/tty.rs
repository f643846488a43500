//! A program on its own terminal, with simulated input and a simulated screen.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread::{self, JoinHandle},
    time::Instant,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    termios::{LocalModes, tcgetattr},
};

use super::{TEST_TIMEOUT, pty, screen::render_screen, wait_for_condition};

/// A byte that no program writes. It marks the end of the output.
const END_MARK: u8 = 0;

/// A terminal with a program, which ends with the test.
pub(crate) struct Tty {
    pub(crate) child: Child,
    /// The file to which a test writes key presses; `None` after the terminal was closed.
    keyboard: Option<File>,
    /// The program's side is kept open so that the terminal remains after the program ends.
    program_side: OwnedFd,
    written: Arc<Mutex<Vec<u8>>>,
    is_closed: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Tty {
    /// Starts a command on a terminal of this size.
    pub(crate) fn start(command: &Command, columns: u16, rows: u16) -> Self {
        // The terminal becomes the controlling terminal, like that of a login shell.
        Self::start_with_wrapper(&["setsid", "--ctty", "--wait"], command, columns, rows)
    }

    /// Starts a command on a terminal that is not the controlling terminal, so that the command
    /// gets no signal when the terminal is closed.
    pub(crate) fn start_without_session(command: &Command, columns: u16, rows: u16) -> Self {
        Self::start_with_wrapper(&["setsid", "--wait"], command, columns, rows)
    }

    fn start_with_wrapper(starter: &[&str], command: &Command, columns: u16, rows: u16) -> Self {
        let (master, program_side) = pty::open_pty(columns, rows);
        let end = || Stdio::from(program_side.try_clone().unwrap());
        let mut on_it = Command::new(starter[0]);
        on_it
            .args(&starter[1..])
            .arg(command.get_program())
            .args(command.get_args());
        copy_variables(&mut on_it, command);
        let child = on_it
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let keyboard = File::from(master);
        let (mut reader, written) = (
            keyboard.try_clone().unwrap(),
            Arc::new(Mutex::new(Vec::new())),
        );
        let is_closed = Arc::new(AtomicBool::new(false));
        let (seen, closed) = (Arc::clone(&written), Arc::clone(&is_closed));
        let reader = thread::spawn(move || {
            let mut part = [0; 4096];
            while !closed.load(SeqCst) {
                // The reader only waits for a short time, because it keeps the terminal open while
                // it waits.
                let soon = Timespec {
                    tv_sec: 0,
                    tv_nsec: 50_000_000,
                };
                if poll(&mut [PollFd::new(&reader, PollFlags::IN)], Some(&soon)) == Ok(0) {
                    continue;
                }
                let Ok(length @ 1..) = reader.read(&mut part) else {
                    return;
                };
                seen.lock().unwrap().extend_from_slice(&part[..length]);
            }
        });
        Self {
            child,
            keyboard: Some(keyboard),
            program_side,
            written,
            is_closed,
            reader: Some(reader),
        }
    }

    /// Closes the terminal, like a closed window or connection.
    pub(crate) fn hang_up(&mut self) {
        self.is_closed.store(true, SeqCst);
        self.reader.take().map(JoinHandle::join);
        self.keyboard = None;
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard
            .as_ref()
            .unwrap()
            .write_all(keys.as_bytes())
            .unwrap();
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        pty::set_size(self.keyboard.as_ref().unwrap(), columns, rows);
    }

    /// Returns the complete output so far, including escape sequences.
    pub(crate) fn output_text(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    /// Discards the output so far.
    pub(crate) fn discard_output(&self) {
        self.written.lock().unwrap().clear();
    }

    #[track_caller]
    pub(crate) fn wait_for_text(&self, text: &str) {
        self.wait_until(text, |written| render_screen(written).contains(text));
    }

    /// Waits until this control sequence has been written.
    #[track_caller]
    pub(crate) fn wait_for_sequence(&self, sequence: &str) {
        self.wait_until(sequence, |written| written.contains(sequence));
    }

    #[track_caller]
    fn wait_until(&self, what: &str, has_come: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        while !has_come(&self.output_text()) {
            assert!(
                begun.elapsed() < TEST_TIMEOUT,
                "{what:?} did not appear in time: {}",
                render_screen(&self.output_text())
            );
            thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// Returns whether input is echoed and read line by line, as a shell requires.
    pub(crate) fn is_restored(&self) -> bool {
        tcgetattr(&self.program_side)
            .unwrap()
            .local_modes
            .contains(LocalModes::ECHO | LocalModes::ICANON)
    }

    /// Returns the PID of the program. If `setsid` has started the program as a child, this is the
    /// PID of that child.
    pub(crate) fn pid(&self) -> u32 {
        let id = self.child.id();
        let children =
            std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        children
            .split_ascii_whitespace()
            .next()
            .map_or(id, |child| child.parse().unwrap())
    }

    /// Waits until the program has ended and all of its output was read.
    pub(crate) fn wait_for_end(&mut self) -> ExitStatus {
        let mut status = None;
        wait_for_condition("the program has ended", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        if self.keyboard.is_some() && rustix::io::write(&self.program_side, &[END_MARK]).is_ok() {
            wait_for_condition("all output of the terminal was read", || {
                self.written.lock().unwrap().contains(&END_MARK)
            });
            // Another process may have written output after the mark. So only the mark is removed,
            // and all output is kept.
            self.written
                .lock()
                .unwrap()
                .retain(|byte| *byte != END_MARK);
        }
        status.unwrap()
    }
}

/// Copies the environment changes of one command to another.
pub(crate) fn copy_variables(command: &mut Command, other: &Command) {
    for (name, value) in other.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
