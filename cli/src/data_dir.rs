//! The directory in which gpumon keeps data, for commands that share it with a server.

use std::{
    env,
    path::{Path, PathBuf},
};

/// Where the system service keeps its data.
const SYSTEM: &str = "/var/lib/gpumon";

/// The directory of `gpumon serve --data-dir`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DataDirArgs {
    /// Data directory, as of `gpumon serve`; by default /var/lib/gpumon for root and
    /// ~/.local/state/gpumon for others
    #[arg(long, env = "GPUMON_DATA_DIR", value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    data_dir: Option<PathBuf>,
}

impl DataDirArgs {
    /// The directory; `None` where it is `none`, or the user has no home directory.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        let named = self
            .data_dir
            .clone()
            .filter(|folder| !folder.as_os_str().is_empty());
        named
            .or_else(usual)
            .filter(|folder| folder != Path::new("none"))
    }

    /// The same, where a file of settings names it and nothing else does.
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

/// Returns the folder that a variable of the XDG base directory specification names, or else this
/// one of the home directory. The specification ignores relative paths.
pub(crate) fn find_folder(variable: &str, usual: &str) -> Option<PathBuf> {
    let absolute = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute(variable).or_else(|| Some(absolute("HOME")?.join(usual)))
}
