//! The commands in the documentation work.
//!
//! Commands are the lines that begin with `$ ` in blocks marked `console`. They run with simulated
//! GPUs, page by page, in one folder for each page, with a running server. A command must exit with
//! 0, or with the code in its comment (`# exit code 3`). A command that runs until it is stopped
//! passes as soon as it has written something. Blocks of other kinds are not run;
//! `tests/python/test_documentation.py` checks the names in them. A block that is marked with a
//! type and a file, such as `toml slow.toml`, is written to that file before the commands run.

use std::{
    fs::{self, File},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::support::{
    Server, Tty, gpumon_command, run_in_parallel, send_signal, wait_for_condition,
};

/// The maximum run time of one command.
const MAX_COMMAND_TIME: Duration = Duration::from_mins(5);

/// Programs that a machine may lack. If one is missing in a pipeline, only the commands before it
/// run.
const OPTIONAL_PROGRAMS: [&str; 2] = ["jq", "promtool"];

fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn list_pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut folders = vec![repository_root(), repository_root().join("docs")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            } else if path.is_dir() && folder != repository_root() {
                folders.push(path);
            }
        }
    }
    pages
}

fn find_commands(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut is_console, mut goes_on) = (Vec::<(usize, String)>::new(), false, false);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if let Some(kind) = line.strip_prefix("```") {
            is_console = kind == "console";
        } else if let (true, Some(command)) = (is_console, line.strip_prefix("$ ")) {
            found.push((number + 1, command.to_owned()));
        } else if let (true, Some((_, last))) = (goes_on, found.last_mut()) {
            last.push('\n');
            last.push_str(line);
        }
        goes_on = is_console && line.ends_with('\\');
    }
    found
}

/// Returns the name and the text of each file that a page contains.
pub(crate) fn find_files(page: &str) -> impl Iterator<Item = (&str, &str)> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    blocks.filter_map(|block| {
        let (first_line, text) = block.split_once('\n')?;
        let (_, name) = first_line.split_once(' ')?;
        Some((name, text))
    })
}

/// Returns whether a command runs until somebody stops it.
fn is_endless(command: &str) -> bool {
    let has = |words: &str| command.contains(words);
    has("gpumon serve")
        || has("--serve")
        || has("--watch")
        || (has("gpumon collect") && !has("--count"))
        || (has("dmon") && !has("-c "))
}

/// Returns whether this machine has the programs that the command needs.
fn has_needed_programs(command: &str) -> bool {
    !command.starts_with("curl ")
        || Command::new("curl")
            .arg("--version")
            .stdout(Stdio::null())
            .status()
            .is_ok()
}

/// Returns the exit code in the command's comment.
fn documented_exit_code(command: &str) -> i32 {
    command
        .split_once("# exit code ")
        .map_or(0, |(_, code)| code.trim().parse().unwrap())
}

struct CommandRunner {
    folder: tempfile::TempDir,
    server: Server,
    control: PathBuf,
}

impl CommandRunner {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (bin, control) = (
            folder.path().join("bin"),
            folder.path().join("control.sock"),
        );
        fs::create_dir(&bin).unwrap();
        // If the page starts a second server, it uses a free port and leaves the local socket to
        // the first server.
        let script = format!(
            "#!/bin/bash\n[ \"$1\" = serve ] && set -- \"$@\" --listen 127.0.0.1:0 --no-control\n\
             [[ \"$*\" = *--serve ]] && set -- \"$@\" --listen 127.0.0.1:0\n\
             exec -a \"$(basename \"$0\")\" '{}' \"$@\"\n",
            env!("CARGO_BIN_EXE_gpumon")
        );
        let program = bin.join("gpumon");
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(folder.path().join("train.py"), "print('training')\n").unwrap();
        let socket = control.to_str().unwrap();
        let arguments = [
            "serve",
            "--source",
            "sim:2",
            "--listen",
            "127.0.0.1:0",
            "--control",
            socket,
        ];
        let server = Server::start(gpumon_command(&arguments));
        // The first command of a page may need a sample.
        wait_for_condition("the server has a sample", || {
            server.get("/readyz").status == 200
        });
        Self {
            folder,
            server,
            control,
        }
    }

    fn build_command(&self, command: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("bash");
        shell
            .args(["-c", &self.localize_command(command)])
            .current_dir(self.folder.path())
            .env(
                "PATH",
                format!("{}:{path}", self.folder.path().join("bin").display()),
            )
            .env("HOME", self.folder.path())
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"))
            .env("GPUMON_SOURCE", "sim:2")
            .env("GPUMON_CONTROL", &self.control)
            .env("GPUMON_LOCKS", self.folder.path())
            .env_remove("GPUMON_NVML_LIB")
            .env_remove("GPUMON_LIBCUDA")
            .env_remove("CUDA_VISIBLE_DEVICES");
        shell
    }

    /// Returns the command with the server's port, and without missing programs.
    fn localize_command(&self, command: &str) -> String {
        let mut command =
            command.replace("127.0.0.1:9123", &format!("127.0.0.1:{}", self.server.port));
        for program in OPTIONAL_PROGRAMS {
            let is_there = Command::new(program)
                .arg("--version")
                .stdout(Stdio::null())
                .status()
                .is_ok();
            if let Some((before, _)) = command
                .split_once(&format!("| {program}"))
                .filter(|_| !is_there)
            {
                command = before.to_owned();
            }
        }
        command
    }

    fn find_problem(&self, command: &str) -> Option<String> {
        if ["gpumon top", "gpumon replay"]
            .iter()
            .any(|screen| command.contains(screen))
            && !is_endless(command)
        {
            // A terminal starts in another directory, so the command first changes to the page's
            // folder.
            let command = format!("cd '{}' && {command}", self.folder.path().display());
            let mut terminal = Tty::start(
                self.build_command(&command).env("TERM", "xterm-256color"),
                120,
                40,
            );
            terminal.wait_for_text("GiB");
            terminal.press("q");
            return (!terminal.wait_for_end().success()).then(|| "does not end well".to_owned());
        }
        let log = self.folder.path().join("log");
        let file = File::create(&log).unwrap();
        let mut shell = self.build_command(command);
        shell
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .process_group(0);
        let mut child = shell.spawn().unwrap();
        let begun = Instant::now();
        let said = || String::from_utf8_lossy(&fs::read(&log).unwrap()).into_owned();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                let expected = Some(documented_exit_code(command));
                return (status.code() != expected)
                    .then(|| format!("{status}, not {expected:?}: {}", said()));
            }
            let is_late = begun.elapsed() > MAX_COMMAND_TIME;
            if is_late || (is_endless(command) && !said().trim().is_empty()) {
                send_signal("-TERM", child.id());
                let _ = Command::new("kill")
                    .args(["-KILL", "--", &format!("-{}", child.id())])
                    .status();
                let _ = child.wait();
                return is_late.then(|| {
                    format!(
                        "takes more than {} s: {}",
                        MAX_COMMAND_TIME.as_secs(),
                        said()
                    )
                });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn every_documented_command_works() {
    let complaints = std::sync::Mutex::new(Vec::new());
    let pages: Vec<_> = list_pages()
        .into_iter()
        .map(|page| {
            let text = fs::read_to_string(&page).unwrap();
            (find_commands(&text), text, page)
        })
        .collect();
    assert!(
        pages
            .iter()
            .map(|(commands, ..)| commands.len())
            .sum::<usize>()
            > 30,
        "too few commands were found"
    );
    run_in_parallel(2, &pages, |(commands, text, page)| {
        if commands.is_empty() {
            return;
        }
        let place = CommandRunner::new();
        for (name, content) in find_files(text) {
            fs::write(place.folder.path().join(name), content).unwrap();
        }
        for (line, command) in commands
            .iter()
            .filter(|(_, command)| has_needed_programs(command))
        {
            if let Some(complaint) = place.find_problem(command) {
                complaints.lock().unwrap().push(format!(
                    "{}:{line}: `{command}` {complaint}",
                    page.display()
                ));
            }
        }
    });
    let complaints = complaints.into_inner().unwrap();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
