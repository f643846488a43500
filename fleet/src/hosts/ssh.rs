//! The arguments of the system's `ssh`.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{Host, far_side};

/// The maximum time to establish a connection, in seconds.
const CONNECT_S: u32 = 10;
/// The interval between checks of a connection, in seconds. It ends after three unanswered checks.
const ALIVE_S: u32 = 5;

/// The system's `ssh` with its agent and configuration. It never asks for a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ssh {
    pub program: PathBuf,
    /// The configuration file (`-F`), or `None` for the user's own.
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
    /// Uses this configuration file instead of the user's own.
    pub fn with_config(config: Option<&Path>) -> Self {
        Self {
            config: config.map(Path::to_owned),
            ..Self::default()
        }
    }

    /// Returns the arguments for samples of this host at this interval.
    pub fn arguments(&self, host: &Host, interval: Duration) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        if let Some(config) = &self.config {
            arguments.extend(["-F".into(), config.into()]);
        }
        // There is no terminal and no forwarding. An existing shared connection of the user is
        // used, but none is created.
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
        // Arguments after `--` are never options.
        arguments.extend([
            "--".into(),
            host.destination.clone().into(),
            far_side::command(interval).into(),
        ]);
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::HostList;

    #[test]
    fn a_host_stands_where_nothing_is_an_option() {
        let hosts = HostList::parse("ana@a:2222", 1).unwrap();
        let ssh = Ssh::with_config(Some(Path::new("/x/config")));
        let arguments = ssh.arguments(&hosts.hosts()[0], Duration::from_secs(2));
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
