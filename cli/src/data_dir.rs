//! The directory in which gpumon stores data, for commands that share data with a server.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The data directory of the system service.
const SYSTEM_DATA_DIR: &str = "/var/lib/gpumon";

/// Options for the data directory of `gpumon serve --data-dir`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DataDirArgs {
    /// Data directory, the same as for `gpumon serve`; by default /var/lib/gpumon for root and
    /// ~/.local/state/gpumon for others
    #[arg(long, env = "GPUMON_DATA_DIR", value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    data_dir: Option<PathBuf>,
}

impl DataDirArgs {
    /// Returns the directory, or `None` if the option is `none` or the user has no home directory.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        let named = self
            .data_dir
            .clone()
            .filter(|folder| !folder.as_os_str().is_empty());
        named
            .or_else(find_default_dir)
            .filter(|folder| folder != Path::new("none"))
    }

    /// Returns these arguments with a data directory. If neither an option nor a variable sets the
    /// data directory, the directory from a settings file, `in_settings`, is used.
    pub(crate) fn with_settings_folder(&self, in_settings: Option<PathBuf>) -> Self {
        Self {
            data_dir: self.data_dir.clone().or(in_settings),
        }
    }
}

fn find_default_dir() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some(SYSTEM_DATA_DIR.into());
    }
    Some(find_xdg_folder("XDG_STATE_HOME", ".local/state")?.join("gpumon"))
}

/// Returns the directory named in an XDG base directory variable, or `usual` below the user's home
/// directory if the variable is not set. As the specification requires, relative paths are ignored.
pub(crate) fn find_xdg_folder(variable: &str, usual: &str) -> Option<PathBuf> {
    let absolute = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute(variable).or_else(|| Some(absolute("HOME")?.join(usual)))
}
