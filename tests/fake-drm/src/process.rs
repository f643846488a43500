//! Simulated processes, and their usage of cards.

use std::fmt::Write;

use crate::tree::{self, Tree};

#[derive(Debug, Clone)]
pub struct Process {
    pid: u32,
    name: String,
    /// The link target and the `fdinfo` of each open file, starting at descriptor 3.
    descriptors: Vec<(String, String)>,
}

/// A process's usage of a card that it has opened.
#[derive(Debug, Clone)]
pub struct Client(String);

impl Client {
    /// Creates a client that uses nothing. `number` must be unique for the card.
    pub fn new(driver: &str, address: &str, number: u64) -> Self {
        Self(format!(
            "pos:\t0\nflags:\t02100002\nmnt_id:\t15\nino:\t700\ndrm-driver:\t{driver}\n\
             drm-client-id:\t{number}\ndrm-pdev:\t{address}\n"
        ))
    }

    /// Adds a line such as `drm-engine-gfx: 1000 ns`.
    #[must_use]
    pub fn with_line(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        writeln!(self.0, "{key}:\t{value}").expect("a text can grow");
        self
    }

    /// Adds memory that the client uses, in a region such as `vram` or `gtt`.
    #[must_use]
    pub fn with_memory(self, region: &str, bytes: u64) -> Self {
        self.with_line(
            &format!("drm-resident-{region}"),
            format_args!("{} KiB", bytes / 1024),
        )
    }

    /// Adds time that an engine worked for the client.
    #[must_use]
    pub fn with_engine(self, name: &str, nanoseconds: u64) -> Self {
        self.with_line(
            &format!("drm-engine-{name}"),
            format_args!("{nanoseconds} ns"),
        )
    }
}

impl Process {
    /// Creates a process without open files.
    pub fn new(pid: u32, name: &str) -> Self {
        Self {
            pid,
            name: name.to_owned(),
            descriptors: Vec::new(),
        }
    }

    /// Adds an open file, for example `/dev/null`.
    #[must_use]
    pub fn with_open_file(mut self, target: &str) -> Self {
        let info = "pos:\t0\nflags:\t02100002\n".to_owned();
        self.descriptors.push((target.to_owned(), info));
        self
    }

    /// Adds an open card node with this minor number.
    #[must_use]
    pub fn with_open_card(mut self, minor: u32, client: &Client) -> Self {
        let node = format!("/dev/dri/renderD{minor}");
        self.descriptors.push((node, client.0.clone()));
        self
    }
}

impl Tree {
    /// Adds a process, or replaces its files.
    pub fn add_process(&self, process: &Process) {
        let Process { pid, name, .. } = process;
        let folder = self.proc().join(pid.to_string());
        let numbers = "0 ".repeat(13);
        for (file, content) in [
            ("comm", format!("{name}\n")),
            ("cmdline", format!("{name}\0")),
            ("cgroup", "0::/user.slice/user-1000.slice\n".to_owned()),
            (
                "stat",
                format!("{pid} ({name}) S 1 {pid} {pid} {numbers}1 0 1000 0 0\n"),
            ),
            (
                "status",
                format!(
                    "Name:\t{name}\nState:\tS (sleeping)\nPid:\t{pid}\nTracerPid:\t0\n\
                     Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nVmRSS:\t262144 kB\nThreads:\t1\n"
                ),
            ),
        ] {
            tree::write_file(&folder.join(file), content);
        }
        std::fs::create_dir_all(folder.join("fd")).unwrap();
        for (number, (target, info)) in (3..).zip(&process.descriptors) {
            tree::create_link(target.as_ref(), &folder.join(format!("fd/{number}")));
            tree::write_file(&folder.join(format!("fdinfo/{number}")), info);
        }
    }
}
