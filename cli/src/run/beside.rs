//! Options of commands beside whose workloads frameworks can run.

use std::{env, ffi::OsString, path::PathBuf, time::Duration};

/// How much longer a run may take with frameworks: each is imported, compiles, and is measured for as long as a workload.
const USUAL_TIME: Duration = Duration::from_mins(20);

/// Whether frameworks run, too, and those of which interpreter.
#[derive(Debug, clap::Args)]
pub(crate) struct BesideArgs {
    /// Run each operation also by NumPy, Numba, CuPy, PyTorch and JAX, where they are installed and have it: on the same
    /// data, with the same verification; the time limit is half an hour by default
    #[arg(long)]
    pub(crate) beside: bool,

    /// Python interpreter for --beside; by default, that of the active environment (`VIRTUAL_ENV`, `CONDA_PREFIX`), or
    /// python3 in PATH
    #[arg(long, value_name = "PATH", requires = "beside", value_hint = clap::ValueHint::ExecutablePath)]
    python: Option<PathBuf>,
}

impl BesideArgs {
    /// Beyond the usual limit of a run.
    pub(super) fn usual_time(&self) -> Duration {
        if self.beside {
            USUAL_TIME
        } else {
            Duration::ZERO
        }
    }

    /// Arguments for the process that works.
    pub(super) fn to_arguments(&self) -> Vec<OsString> {
        if !self.beside {
            return Vec::new();
        }
        let named = self.python.clone();
        let python =
            named.unwrap_or_else(|| python_of(["VIRTUAL_ENV", "CONDA_PREFIX"].map(env::var_os)));
        vec!["--python".into(), python.into()]
    }
}

/// That of the first environment that is active.
fn python_of(environments: [Option<OsString>; 2]) -> PathBuf {
    let active = environments
        .into_iter()
        .flatten()
        .find(|folder| !folder.is_empty());
    active.map_or_else(
        || "python3".into(),
        |folder| PathBuf::from(folder).join("bin/python3"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_active_environment_goes_before_path() {
        let of = |virtual_env: Option<&str>, conda: Option<&str>| {
            python_of([virtual_env, conda].map(|it| it.map(Into::into)))
        };
        assert_eq!(of(None, None), PathBuf::from("python3"));
        assert_eq!(
            of(Some("/venv"), Some("/conda")),
            PathBuf::from("/venv/bin/python3")
        );
        assert_eq!(
            of(Some(""), Some("/conda")),
            PathBuf::from("/conda/bin/python3")
        );
    }
}
