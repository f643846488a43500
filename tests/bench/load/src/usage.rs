//! The resource usage of this process.

use anyhow::Result;
use nix::sys::{
    resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit},
    time::TimeValLike,
};

/// Returns the processor time of this process in seconds.
pub(crate) fn cpu_seconds() -> f64 {
    let micros = |usage: nix::sys::resource::Usage| {
        usage.user_time().num_microseconds() + usage.system_time().num_microseconds()
    };
    getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |usage| micros(usage) as f64 / 1e6)
}

/// Rounds to two decimal places.
pub(crate) fn round_hundredths(seconds: f64) -> f64 {
    (seconds * 100.0).round() / 100.0
}

/// Raises the limit of open files to the maximum.
pub(crate) fn allow_many_connections() -> Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?)
}
