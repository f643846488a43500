//! Options for the hosts that are read over ssh.

use std::{env, fs::File, path::PathBuf, time::Duration};

use anyhow::{Context, anyhow};
use gpumon_fleet::hosts::{HostList, MOST_HOSTS, Ssh};
use gpumon_probe::{
    bounded,
    private_file::{PrivateFile, Secrecy},
};
use gpumon_server::fleet::{
    FleetSettings,
    hosts::{Hosts, HostsSettings},
    nodes::{NodeSettings, RemoteNodes},
};

use crate::{
    commands::tether,
    exit::{Failure, Result, usage},
};

/// The sampling interval of hosts in the fleet overview.
const INTERVAL: Duration = Duration::from_secs(2);

/// The maximum size of a file with host names, in bytes.
const MAX_FILE_BYTES: usize = 4 << 20;

/// The file name that means standard input.
const STDIN: &str = "-";

#[derive(Debug, Clone, clap::Args)]
// The field names must match the option names, which have the prefix `fleet-`.
#[allow(clippy::struct_field_names)]
pub(crate) struct HostsArgs {
    /// Hosts to read over ssh instead of a Prometheus, such as `a,ana@b,c:2222,node[01-08]`; up to
    /// 64. Each host is read with gpumon if installed, otherwise with nvidia-smi
    #[arg(long, env = "GPUMON_FLEET_HOSTS", value_name = "LIST")]
    fleet_hosts: Option<String>,

    /// File with hosts to read over ssh, one list per line; # starts a comment, and `-` is standard
    /// input
    #[arg(long, env = "GPUMON_FLEET_HOSTS_FILE", value_name = "FILE")]
    fleet_hosts_file: Option<PathBuf>,

    /// Configuration file of ssh (`ssh -F`), instead of ~/.ssh/config
    #[arg(long, env = "GPUMON_FLEET_SSH_CONFIG", value_name = "FILE")]
    fleet_ssh_config: Option<PathBuf>,
}

impl HostsArgs {
    /// Returns `true` if any hosts are given.
    pub(super) fn has_hosts(&self) -> bool {
        self.list().is_some() || self.file().is_some()
    }

    fn list(&self) -> Option<&str> {
        self.fleet_hosts.as_deref().filter(|list| !list.is_empty())
    }

    fn file(&self) -> Option<&PathBuf> {
        self.fleet_hosts_file
            .as_ref()
            .filter(|file| !file.as_os_str().is_empty())
    }

    /// Returns the given hosts, at most `most`, or `None` if no hosts are given.
    ///
    /// # Errors
    /// Returns an error if a name is invalid or a file cannot be read.
    pub(crate) fn read_hosts(&self, most: usize) -> Result<Option<HostList>> {
        let usage = |error: anyhow::Error| Failure::usage(error);
        let listed = self
            .list()
            .map(|list| HostList::parse(list, most))
            .transpose();
        let listed = listed.map_err(|error| usage(anyhow!("--hosts: {error}")))?;
        let Some(file) = self.file() else {
            return Ok(listed);
        };
        let text = read_host_file(file).map_err(usage)?;
        let in_file = HostList::parse_file(&text, most);
        let in_file = in_file.map_err(|error| usage(anyhow!("{}: {error}", file.display())))?;
        let Some(listed) = listed else {
            return Ok(Some(in_file));
        };
        listed
            .merge(in_file, most)
            .map(Some)
            .map_err(|error| usage(anyhow!(error)))
    }

    /// Returns the settings of a fleet with the given hosts, without connecting to the hosts.
    pub(super) fn settings(&self) -> Result<Option<FleetSettings>> {
        let Some(hosts) = self.read_hosts(MOST_HOSTS)? else {
            return Ok(None);
        };
        let config = self
            .fleet_ssh_config
            .as_deref()
            .filter(|file| !file.as_os_str().is_empty());
        if let Some(file) = config {
            // The configuration can name programs that ssh starts, and ssh checks the permissions
            // only of the user's default file. The permissions of other files are therefore checked
            // here.
            PrivateFile::read(file, Secrecy::Public)
                .map_err(|error| usage!("--ssh-config {}: {error}", file.display()))?;
        }
        let program = env::current_exe().context("cannot find the gpumon executable")?;
        let hosts = Hosts::new(HostsSettings {
            hosts,
            ssh: Ssh::with_config(config),
            tether: (
                program,
                vec![
                    tether::COMMAND_NAME.to_owned(),
                    std::process::id().to_string(),
                ],
            ),
            interval: INTERVAL,
        });
        let nodes = RemoteNodes::open(NodeSettings::default()).map_err(|why| usage!(why))?;
        Ok(Some(FleetSettings {
            reader: hosts.clone(),
            nodes,
            hosts: Some(hosts),
        }))
    }
}

/// Reads a file with host names, up to the maximum size.
pub(crate) fn read_host_file(file: &PathBuf) -> anyhow::Result<String> {
    let read = if file.as_os_str() == STDIN {
        bounded::read_text_from(std::io::stdin(), MAX_FILE_BYTES)
    } else {
        File::open(file).and_then(|open| bounded::read_text_from(open, MAX_FILE_BYTES))
    };
    read.with_context(|| format!("cannot read {} as a list of hosts", file.display()))
}
