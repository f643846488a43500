//! The arguments for the system's `ssh`.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{Host, far_side};

/// The maximum time to establish a connection, in seconds.
const CONNECT_S: u32 = 10;
/// The interval between keepalive checks, in seconds. The connection ends after three unanswered
/// checks.
const ALIVE_S: u32 = 5;

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
        // ssh allocates no terminal and forwards nothing. It uses an existing shared connection of
        // the user but does not create one.
        arguments.extend(["-T", "-a", "-x"].map(OsString::from));
        let options = [
            "BatchMode=yes".to_owned(),
            format!("ConnectTimeout={CONNECT_S}"),
            format!("ServerAliveInterval={ALIVE_S}"),
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
            far_side::build_remote_command(interval).into(),
        ]);
        arguments
    }
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
