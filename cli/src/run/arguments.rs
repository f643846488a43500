//! Arguments of all commands that start a run.

use std::{env, ffi::OsString, path::PathBuf, time::Duration};

use gpumon_probe::units::Amount;
use gpumon_workload::protocol::{BackendChoice, Where};

use crate::options::parse_time;

/// Where to work, and for how long at most.
#[derive(Debug, clap::Args)]
pub(crate) struct WhereArgs {
    /// Backend to run on
    #[arg(long, value_enum, default_value_t = BackendChoice::Auto)]
    backend: BackendChoice,

    /// GPU to run on: CUDA index, UUID or its prefix, or PCI bus ID, as listed by `gpumon info`;
    /// nvidia:0; or `all`. By default 0, or the CPU if there is no GPU
    #[arg(long, value_name = "GPU")]
    device: Option<String>,

    /// Run even if another user computes on the GPU, with at most a quarter of the free memory
    #[arg(long)]
    share: bool,

    /// Stop after this time, for example 30s or 2h; by default, ten minutes beyond the requested duration
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) time_limit: Option<Duration>,
}

impl WhereArgs {
    pub(crate) fn place(&self) -> Where {
        Where {
            backend: self.backend,
            device: self.device.clone(),
            share: self.share,
        }
    }
}

/// `80%` or `0.8`: a share of something, from more than 0 to 1.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let share = Amount::parse(text).and_then(|amount| match amount.unit.as_str() {
        "" => Some(amount.number),
        "%" => Some(amount.number / 100.0),
        _ => None,
    });
    share
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .ok_or_else(|| "not a share of at most 1, such as 0.9 or 90%".to_owned())
}

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
    fn a_share_is_written_in_two_ways() {
        for (text, thousandths) in [
            ("80%", 800.0),
            ("0.8", 800.0),
            ("1", 1000.0),
            ("100 %", 1000.0),
            ("0.5%", 5.0),
        ] {
            assert_eq!(
                (parse_share(text).unwrap() * 1000.0).round().to_bits(),
                f64::to_bits(thousandths),
                "{text}"
            );
        }
        for text in ["", "0", "-1", "1.1", "101%", "80", "nan", "all", "%"] {
            assert!(parse_share(text).unwrap_err().contains("90%"), "{text}");
        }
    }

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
