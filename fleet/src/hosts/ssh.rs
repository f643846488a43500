//! The system's `ssh`: its arguments, the remote command, and the meanings of its error messages.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use gpumon_probe::owner::{clean_line, clean_name};

use super::{Host, smi};

/// The maximum time to establish a connection, in seconds.
const CONNECT_TIMEOUT_S: u32 = 10;
/// The interval between keepalive checks, in seconds. The connection ends after three unanswered
/// checks.
const KEEPALIVE_S: u32 = 5;

/// The system's `ssh` program, with the user's agent and configuration. ssh never prompts for a
/// password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ssh {
    pub program: PathBuf,
    /// The configuration file (`-F`), or `None` for the user's default.
    pub config: Option<PathBuf>,
}

impl Default for Ssh {
    fn default() -> Self {
        Self {
            program: "ssh".into(),
            config: None,
        }
    }
}

impl Ssh {
    /// Creates an `Ssh` that uses `config` instead of the user's configuration file.
    pub fn with_config(config: Option<&Path>) -> Self {
        Self {
            config: config.map(Path::to_owned),
            ..Self::default()
        }
    }

    /// Returns the ssh arguments that start the remote command on `host` with samples every
    /// `interval`.
    pub fn build_arguments(&self, host: &Host, interval: Duration) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        if let Some(config) = &self.config {
            arguments.extend(["-F".into(), config.into()]);
        }
        // No terminal is allocated, and neither the agent nor X11 is forwarded. An existing shared
        // connection of the user is used, but none is created.
        arguments.extend(["-T", "-a", "-x"].map(OsString::from));
        let options = [
            "BatchMode=yes".to_owned(),
            format!("ConnectTimeout={CONNECT_TIMEOUT_S}"),
            format!("ServerAliveInterval={KEEPALIVE_S}"),
            "ServerAliveCountMax=3".to_owned(),
            "ClearAllForwardings=yes".to_owned(),
            "ControlMaster=no".to_owned(),
            "PermitLocalCommand=no".to_owned(),
            "LogLevel=ERROR".to_owned(),
        ];
        arguments.extend(
            options
                .into_iter()
                .flat_map(|option| ["-o".into(), option.into()]),
        );
        if let Some(port) = host.port {
            arguments.extend(["-p".into(), port.to_string().into()]);
        }
        // Arguments after `--` are never parsed as options.
        arguments.extend([
            "--".into(),
            host.destination.clone().into(),
            build_remote_command(interval).into(),
        ]);
        arguments
    }
}

// The remote command that runs on a host, as a single line that works in every user's shell.

const REMOTE_SCRIPT: &str = include_str!("remote_command.sh");

/// The interval between process lists, in seconds. Each list starts several programs.
const PROCESS_LIST_S: u64 = 5;

/// Returns a command that prints samples of a host's GPUs every `interval` until its standard input
/// ends. The user's shell may not be a POSIX shell, so the command starts `sh`.
fn build_remote_command(interval: Duration) -> String {
    let lines = REMOTE_SCRIPT
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let script = lines
        .collect::<Vec<_>>()
        .join(" ")
        .replace("@VERSIONS@", &build_version_pattern())
        .replace("@INTERVAL_MS@", &interval.as_millis().to_string())
        .replace("@INTERVAL_S@", &interval.as_secs().max(1).to_string())
        .replace("@PROCESSES_S@", &PROCESS_LIST_S.to_string())
        .replace("@FIELDS@", &smi::list_query_fields().join(" "));
    format!("exec sh -c '{script}'")
}

/// Returns a shell pattern that matches compatible versions of gpumon. Versions before 1.0 must
/// have the same minor version as this one. Versions from 1.0 on must have the same major version.
fn build_version_pattern() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut numbers = version.split('.');
    match (numbers.next(), numbers.next()) {
        (Some("0"), Some(minor)) => format!("\"gpumon 0.{minor}.\"*"),
        (Some(major), _) => format!("\"gpumon {major}.\"*"),
        (None, _) => format!("\"gpumon {version}\""),
    }
}

// Conversion of ssh's error messages into sentences with a remedy.

/// The message that nologin(8) writes to standard output.
pub(super) const NOLOGIN_MESSAGE: &str = "This account is currently not available";

/// Fragments of ssh's error messages, each with its meaning and remedy.
const SSH_ERRORS: [(&str, &str, &str); 15] = [
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "the host key has changed",
        "if the host was reinstalled, remove the old key with `ssh-keygen -R HOST` and connect \
         once with ssh; otherwise another machine may be answering in its place",
    ),
    (
        "Host key verification failed",
        "the host key is unknown",
        "connect once with ssh and accept the key, or add the key to ~/.ssh/known_hosts",
    ),
    (
        "host key is known for",
        "the host key is unknown",
        "connect once with ssh and accept the key, or add the key to ~/.ssh/known_hosts",
    ),
    (
        "Permission denied",
        "the host accepts none of the available ssh keys",
        "add a key to the agent (ssh-add), or add its public part to ~/.ssh/authorized_keys on the \
         host; gpumon cannot enter passwords",
    ),
    (
        "Could not resolve hostname",
        "the host name cannot be resolved",
        "check the name, or add it to ~/.ssh/config",
    ),
    (
        "Connection refused",
        "the host refuses ssh connections",
        "start the ssh server on the host, or specify its port as host:port",
    ),
    (
        "Connection timed out",
        "the host does not respond",
        "check that the host is on and that no firewall blocks ssh",
    ),
    (
        "Operation timed out",
        "the host does not respond",
        "check that the host is on and that no firewall blocks ssh",
    ),
    (
        "timed out during banner exchange",
        "the port is open, but no ssh server responds",
        "check the port and the host's load",
    ),
    (
        "No route to host",
        "the host cannot be reached",
        "check that the host is on and connected to this network",
    ),
    (
        "Network is unreachable",
        "the host cannot be reached",
        "check this machine's network",
    ),
    (
        NOLOGIN_MESSAGE,
        "the account's shell is nologin, which runs no commands",
        "use an account with a shell (USER@HOST), or give this account a shell with `chsh`",
    ),
    (
        "Unprivileged users are not permitted to log in",
        "the host allows no logins while it starts or shuts down",
        "gpumon retries automatically; if this persists, remove /run/nologin on the host",
    ),
    (
        "Timeout, server",
        "the connection was lost",
        "gpumon retries automatically",
    ),
    (
        "Connection closed",
        "the host closed the connection",
        "check the log of the ssh server on the host",
    ),
];

/// Returns a sentence that describes why the connection to `host` ended. `messages` are the error
/// output of ssh and the remote command.
pub fn describe_failure(host: &str, messages: &str) -> String {
    for (said, what, cure) in SSH_ERRORS {
        if messages.contains(said) {
            return format!("{host}: {what}; {}", cure.replace("HOST", host));
        }
    }
    let last = messages
        .lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty() && !is_about_locale(line));
    let last = last.map(|line| clean_line(line.trim_start_matches("gpumon: ")));
    last.map_or_else(
        || {
            format!(
                "{host}: the ssh connection ended without an error message; connect once \
         with ssh to find out why"
            )
        },
        |line| format!("{host}: {line}"),
    )
}

/// Returns `true` if a line belongs to a warning about the locale. ssh passes on the user's locale,
/// and a shell or Perl prints the warning if the host lacks this locale. It is never the reason why
/// a connection ended.
fn is_about_locale(line: &str) -> bool {
    let is_warning = line.contains("setlocale") || line.starts_with("perl: warning:");
    let is_setting =
        ["LC_", "LANG"].iter().any(|name| line.starts_with(name)) && line.contains(" = ");
    is_warning || is_setting || line == "are supported and installed on your system."
}

/// Returns an error message for a host that has neither nvidia-smi nor a compatible gpumon.
/// `version` is the version of an incompatible gpumon, or is empty.
pub fn describe_missing_programs(host: &str, version: &str) -> String {
    let version = clean_name(version.trim());
    let install = "install gpumon's wheel on the host with `pip install jupyterlab_gpumon-*.whl`";
    if version.is_empty() {
        return format!("{host}: neither gpumon nor nvidia-smi was found; {install}");
    }
    format!(
        "{host}: {version} is installed, but this machine has a different version of gpumon, \
         and nvidia-smi was not found; {install}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::HostList;

    #[test]
    fn host_is_passed_after_end_of_options() {
        let hosts = HostList::parse("ana@a:2222", 1).unwrap();
        let ssh = Ssh::with_config(Some(Path::new("/x/config")));
        let arguments = ssh.build_arguments(&hosts.hosts()[0], Duration::from_secs(2));
        let arguments: Vec<_> = arguments.iter().map(|it| it.to_str().unwrap()).collect();
        assert_eq!(arguments[..2], ["-F", "/x/config"]);
        let [.., port, number, dashes, destination, command] = &arguments[..] else {
            panic!("{arguments:?}")
        };
        assert_eq!(
            (*port, *number, *dashes, *destination),
            ("-p", "2222", "--", "ana@a")
        );
        assert!(command.starts_with("exec sh -c '"), "{command}");
        assert!(
            arguments.contains(&"BatchMode=yes"),
            "nobody is there to answer"
        );
    }
}

#[cfg(test)]
mod remote_command_tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn remote_command_is_valid_in_every_shell() {
        let command = build_remote_command(Duration::from_secs(2));
        let script = command
            .strip_prefix("exec sh -c '")
            .unwrap()
            .strip_suffix('\'')
            .unwrap();
        // The script is in single quotes, so a single quote would end it. A backslash before a
        // quote is special in fish, and an exclamation mark before a letter is special in csh. The
        // script must contain none of these.
        assert!(
            !script.contains(['\'', '\n', '@']) && !script.replace("! ", "").contains('!'),
            "{script}"
        );
        assert!(!script.contains("\\\\"), "{script}");
        assert!(command.len() < 8_000, "{}", command.len());
        let checked = Command::new("sh")
            .args(["-n", "-c", script])
            .stderr(Stdio::inherit())
            .status()
            .unwrap();
        assert!(checked.success());
    }
}

#[cfg(test)]
mod error_tests {
    use super::*;

    #[test]
    fn ssh_messages_become_sentences_with_remedy() {
        for (said, expected) in [
            (
                "No ED25519 host key is known for n1 and you have requested strict \
                 checking.\r\nHost key verification failed.\r\n",
                "n1: the host key is unknown; connect once",
            ),
            (
                "ana@n1: Permission denied (publickey,password).\r\n",
                "n1: the host accepts none of the available ssh keys; add a key",
            ),
            (
                "ssh: Could not resolve hostname n1: Name or service not known\r\n",
                "n1: the host name cannot be resolved; check",
            ),
            (
                "ssh: connect to host n1 port 22: Connection refused\r\n",
                "n1: the host refuses ssh connections; start",
            ),
            (
                "ssh: connect to host n1 port 22: Connection timed out\r\n",
                "n1: the host does not respond; check",
            ),
            (
                "ssh: connect to host n1 port 22: No route to host\r\n",
                "n1: the host cannot be reached; check that",
            ),
            (
                "Timeout, server n1 not responding.\r\n",
                "n1: the connection was lost; gpumon retries automatically",
            ),
            (
                "Connection closed by 127.0.0.1 port 22\r\n",
                "n1: the host closed the connection",
            ),
            ("x\ngpumon: no GPU\n\n", "n1: no GPU"),
            (
                "This account is currently not available.\n",
                "n1: the account's shell is nologin, which runs no commands",
            ),
            (
                "\"System is booting up. Unprivileged users are not permitted to log in yet. \
                 Please come back later. For technical details, see pam_nologin(8).\"\nConnection \
                 closed by 127.0.0.1 port 22\r\n",
                "n1: the host allows no logins while it starts or shuts down",
            ),
            (
                "no GPU\nbash: warning: setlocale: LC_ALL: cannot change locale (de_DE.UTF-8)\n",
                "n1: no GPU",
            ),
            (
                "perl: warning: Setting locale failed.\nperl: warning: Please check that your \
                 locale settings:\n\tLANGUAGE = (unset),\n\tLC_ALL = \"x\",\n\tLANG = \"C\"\n    \
                 are supported and installed on your system.\nperl: warning: Falling back to the \
                 standard locale (\"C\").\n",
                "n1: the ssh connection ended without an error message; connect once with ssh to find out why",
            ),
            (
                "",
                "n1: the ssh connection ended without an error message; connect once with ssh to find out why",
            ),
        ] {
            let sentence = describe_failure("n1", said);
            assert!(sentence.starts_with(expected), "{said:?}: {sentence}");
        }
        let changed =
            "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.";
        assert!(describe_failure("n1", changed).contains("ssh-keygen -R n1"));
        let hostile = describe_failure("n1", &format!("\u{1b}[2J{}", "x".repeat(100_000)));
        assert!(!hostile.contains('\u{1b}') && hostile.len() < 1_200);
    }

    #[test]
    fn missing_programs_are_reported_with_remedy() {
        let sentence = describe_missing_programs("n1", "");
        assert!(
            sentence.contains(
                "neither gpumon nor nvidia-smi was found; install gpumon's wheel on the host"
            ),
            "{sentence}"
        );
        assert!(describe_missing_programs("n1", "gpumon 0.1.0\n").contains(
            "gpumon 0.1.0 is installed, but this machine has a different version of gpumon"
        ));
    }
}
