//! The remote command that runs on a host, as a single line that works in every user's shell.

use std::time::Duration;

use super::smi;

const SCRIPT: &str = include_str!("far_side.sh");

/// The interval between process lists, in seconds. Each list starts several programs.
const PROCESSES_S: u64 = 5;

/// Returns a command that prints samples of a host's GPUs every `interval` until its standard input
/// ends. The user's shell may not be a POSIX shell, so the command starts `sh`.
pub(super) fn build_remote_command(interval: Duration) -> String {
    let lines = SCRIPT
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let script = lines
        .collect::<Vec<_>>()
        .join(" ")
        .replace("@VERSIONS@", &build_version_pattern())
        .replace("@INTERVAL_MS@", &interval.as_millis().to_string())
        .replace("@INTERVAL_S@", &interval.as_secs().max(1).to_string())
        .replace("@PROCESSES_S@", &PROCESSES_S.to_string())
        .replace("@FIELDS@", &smi::list_query_fields().join(" "));
    format!("exec sh -c '{script}'")
}

/// Returns a shell pattern that matches the compatible versions: before 1.0, those with the same
/// minor version; from 1.0 on, those with the same major version.
fn build_version_pattern() -> String {
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
    fn remote_command_is_valid_in_every_shell() {
        let command = build_remote_command(Duration::from_secs(2));
        let script = command
            .strip_prefix("exec sh -c '")
            .unwrap()
            .strip_suffix('\'')
            .unwrap();
        // The script is in single quotes, so a single quote would end it. In fish, a backslash
        // before a quote is special; in csh, an exclamation mark before a letter is.
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
