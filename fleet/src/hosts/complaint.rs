//! Conversion of ssh's error messages into sentences with a remedy.

use gpumon_probe::owner::{clean_line, clean_name};

/// The message that nologin(8) writes to standard output.
pub(super) const NOLOGIN: &str = "This account is currently not available";

/// Fragments of ssh's error messages, each with its meaning and remedy.
const COMPLAINTS: [(&str, &str, &str); 15] = [
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
        NOLOGIN,
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
    for (said, what, cure) in COMPLAINTS {
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
        || format!("{host}: the ssh connection ended without an error message"),
        |line| format!("{host}: {line}"),
    )
}

/// Returns `true` for a shell's or Perl's warning that the host lacks a locale that ssh passed on.
/// Such a warning is never the reason why a connection ended.
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
        "{host}: {version} is installed, which is not the version of gpumon on this machine, and \
         nvidia-smi was not found; {install}"
    )
}

#[cfg(test)]
mod tests {
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
                "n1: the ssh connection ended without an error message",
            ),
            ("", "n1: the ssh connection ended without an error message"),
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
            "gpumon 0.1.0 is installed, which is not the version of gpumon on this machine"
        ));
    }
}
