//! Arguments of all commands that start a run.

use std::time::Duration;

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
}
