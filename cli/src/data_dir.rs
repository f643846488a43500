//! The directory in which gpumon keeps data, for commands that share data with a server.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The data directory of the system service.
const SYSTEM: &str = "/var/lib/gpumon";

/// The data directory of `gpumon serve --data-dir`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DataDirArgs {
    /// Data directory, the same as for `gpumon serve`; by default /var/lib/gpumon for root and
    /// ~/.local/state/gpumon for others
    #[arg(long, env = "GPUMON_DATA_DIR", value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    data_dir: Option<PathBuf>,
}

impl DataDirArgs {
    /// Returns the directory; `None` if it is `none`, or if the user has no home directory.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        let named = self
            .data_dir
            .clone()
            .filter(|folder| !folder.as_os_str().is_empty());
        named
            .or_else(usual)
            .filter(|folder| folder != Path::new("none"))
    }

    /// Returns these arguments, completed with the directory of a settings file if nothing else
    /// names one.
    pub(crate) fn or(&self, in_settings: Option<PathBuf>) -> Self {
        Self {
            data_dir: self.data_dir.clone().or(in_settings),
        }
    }
}

fn usual() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some(SYSTEM.into());
    }
    Some(find_folder("XDG_STATE_HOME", ".local/state")?.join("gpumon"))
}

/// Returns the directory that a variable of the XDG base directory specification names, or else the
/// directory `usual` below the user's home directory. As the specification demands, relative paths
/// are ignored.
pub(crate) fn find_folder(variable: &str, usual: &str) -> Option<PathBuf> {
    let absolute = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute(variable).or_else(|| Some(absolute("HOME")?.join(usual)))
}
