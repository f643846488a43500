//! A terminal of a given size with a program in it.

use std::{
    fs::{self, File},
    io::Read,
    os::fd::OwnedFd,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Instant,
};

use super::{TEST_TIMEOUT, pty, send_signal};

pub(crate) struct Terminal {
    pub(crate) child: Child,
    screen: File,
    written: Receiver<Vec<u8>>,
    /// The complete output so far.
    pub(crate) text: String,
}

impl Terminal {
    /// Starts the program in a terminal of this size. The terminal supports UTF-8 and colors,
    /// unless the command sets other variables.
    pub(crate) fn start(mut command: Command, columns: u16, rows: u16) -> Self {
        let (screen, inside) = pty::open_pty(columns, rows);
        let given = |name: &str| command.get_envs().any(|(known, _)| known == name);
        let (term, locale) = (given("TERM"), given("LC_ALL"));
        if !term {
            command.env("TERM", "xterm-256color");
        }
        if !locale {
            command.env("LC_ALL", "C.UTF-8");
        }
        let stdio = |side: &OwnedFd| Stdio::from(side.try_clone().unwrap());
        let child = command
            .stdin(stdio(&inside))
            .stdout(stdio(&inside))
            .stderr(stdio(&inside))
            .spawn()
            .unwrap();
        // `command` and `inside` keep the program's side open. They are dropped here, so that the
        // terminal closes when the program ends.
        drop((command, inside));
        let screen = File::from(screen);
        let (mut reader, (tell, written)) = (screen.try_clone().unwrap(), mpsc::channel());
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // When the last program has ended, reading from the terminal fails.
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if tell.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            screen,
            written,
            text: String::new(),
        }
    }

    /// Waits until the output meets this condition.
    #[track_caller]
    pub(crate) fn wait_until(&mut self, is_so: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        while !is_so(&self.text) {
            let left = TEST_TIMEOUT.saturating_sub(begun.elapsed());
            let bytes = self.written.recv_timeout(left).unwrap_or_else(|_| {
                panic!(
                    "the expected output did not appear in time: {:?}{}",
                    self.text,
                    describe_threads(self.child.id())
                )
            });
            self.text += &String::from_utf8_lossy(&bytes);
        }
    }

    /// Waits until the program ends. Returns its output and its exit code.
    pub(crate) fn wait_for_end(mut self) -> (String, Option<i32>) {
        let code = self.child.wait().unwrap().code();
        while let Ok(bytes) = self.written.recv_timeout(TEST_TIMEOUT) {
            self.text += &String::from_utf8_lossy(&bytes);
        }
        (std::mem::take(&mut self.text), code)
    }

    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        pty::set_size(&self.screen, columns, rows);
        // When the size of a terminal changes, the kernel only notifies programs that have it as
        // their controlling terminal. It is not the controlling terminal of this program, so the
        // test sends the signal.
        send_signal("-WINCH", self.child.id());
    }

    /// Returns the lines of each frame in the output.
    pub(crate) fn frames(&self) -> Vec<Vec<String>> {
        let frames = self.text.split("\u{1b}[?2026h\u{1b}[H").skip(1);
        let whole = frames.filter_map(|frame| frame.split_once("\u{1b}[J\u{1b}[?2026l"));
        whole
            .map(|(frame, _)| {
                frame
                    .lines()
                    .map(|line| line.trim_end().to_owned())
                    .collect()
            })
            .collect()
    }
}

/// Describes the threads of a program that does not respond: state, signals and system call.
fn describe_threads(pid: u32) -> String {
    let read = |folder: &Path, file| fs::read_to_string(folder.join(file)).unwrap_or_default();
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let describe = |folder: &Path| {
        let known = ["Name", "State", "SigPnd", "ShdPnd", "SigBlk", "SigCgt"];
        let status = read(folder, "status");
        let lines = status
            .lines()
            .filter(|line| known.iter().any(|name| line.starts_with(name)));
        let system_call = read(folder, "syscall");
        format!("\n{} {system_call}", lines.collect::<Vec<_>>().join(" "))
    };
    let found = threads.into_iter().flatten().flatten();
    found.map(|thread| describe(&thread.path())).collect()
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
