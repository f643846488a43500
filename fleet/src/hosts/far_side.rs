//! The remote command that runs on a host: one line that works in every user's shell.

use std::time::Duration;

use super::smi;

const SCRIPT: &str = include_str!("far_side.sh");

/// The interval between lists of processes in seconds. Each list starts several programs.
const PROCESSES_S: u64 = 5;

/// Returns a command that prints samples of a host's GPUs at this interval until its standard input
/// ends. The user's shell may not be a POSIX shell, so it starts one that is.
pub(super) fn command(interval: Duration) -> String {
    let lines = SCRIPT
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let script = lines
        .collect::<Vec<_>>()
        .join(" ")
        .replace("@VERSIONS@", &versions())
        .replace("@INTERVAL_MS@", &interval.as_millis().to_string())
        .replace("@INTERVAL_S@", &interval.as_secs().max(1).to_string())
        .replace("@PROCESSES_S@", &PROCESSES_S.to_string())
        .replace("@FIELDS@", &smi::fields().join(" "));
    format!("exec sh -c '{script}'")
}

/// Returns a pattern of the compatible versions: those with the same minor version before 1.0, and
/// with the same major version afterwards.
fn versions() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut numbers = version.split('.');
    match (numbers.next(), numbers.next()) {
        (Some("0"), Some(minor)) => format!("\"gpumon 0.{minor}.\"*"),
        (Some(major), _) => format!("\"gpumon {major}.\"*"),
        (None, _) => format!("\"gpumon {version}\""),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn it_is_one_line_that_every_shell_can_hand_on() {
        let command = command(Duration::from_secs(2));
        let script = command
            .strip_prefix("exec sh -c '")
            .unwrap()
            .strip_suffix('\'')
            .unwrap();
        // A single quote would end the script. In fish, a backslash before a quote is special, and
        // in csh, an exclamation mark before a letter.
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
