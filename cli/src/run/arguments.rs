//! Arguments of all commands that start a run.

use clap::ValueEnum;
use gpumon_workload::protocol::{self, Dtype, Where};

use crate::options::{Time, parse_time};

/// Where to work, and for how long at most.
#[derive(Debug, clap::Args)]
pub(crate) struct WhereArgs {
    /// Where to run it
    #[arg(long, value_enum, default_value_t = BackendChoice::Auto)]
    backend: BackendChoice,

    /// GPU to use: CUDA's index, or a UUID or its beginning, as `gpumon info` lists them; or `all`
    #[arg(long, value_name = "GPU", default_value = "0")]
    device: String,

    /// Use a GPU on which another user computes, too, with a quarter of the free memory at most
    #[arg(long)]
    share: bool,

    /// Time limit, as 30s or 2h; by default ten minutes beyond the requested duration
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) time_limit: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BackendChoice {
    /// On a GPU, or on the CPU where there is none
    Auto,
    /// On a GPU
    Cuda,
    /// On all threads of the CPU
    Cpu,
    /// On a GPU, and on the CPU
    Both,
}

/// A type of numbers, as it is typed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum DtypeChoice {
    /// 64 bits, floating point
    #[value(alias = "f64")]
    Fp64,
    /// 32 bits, floating point
    #[value(alias = "f32")]
    Fp32,
    /// 32 bits, of which tensor cores multiply 19
    Tf32,
    /// 16 bits, floating point
    #[value(alias = "f16")]
    Fp16,
    /// 16 bits, floating point: the first half of 32
    Bf16,
    /// 8 bits, floating point: e4m3
    #[value(alias = "f8")]
    Fp8,
    /// 8 bits, whole numbers
    #[value(alias = "i8")]
    Int8,
}

impl WhereArgs {
    /// The same for a job.
    pub(crate) fn place(&self) -> Where {
        let backend = match self.backend {
            BackendChoice::Auto => protocol::BackendChoice::Auto,
            BackendChoice::Cuda => protocol::BackendChoice::Cuda,
            BackendChoice::Cpu => protocol::BackendChoice::Cpu,
            BackendChoice::Both => protocol::BackendChoice::Both,
        };
        Where { backend, device: self.device.clone(), share: self.share }
    }
}

impl From<DtypeChoice> for Dtype {
    fn from(choice: DtypeChoice) -> Self {
        match choice {
            DtypeChoice::Fp64 => Self::Fp64,
            DtypeChoice::Fp32 => Self::Fp32,
            DtypeChoice::Tf32 => Self::Tf32,
            DtypeChoice::Fp16 => Self::Fp16,
            DtypeChoice::Bf16 => Self::Bf16,
            DtypeChoice::Fp8 => Self::Fp8,
            DtypeChoice::Int8 => Self::Int8,
        }
    }
}

/// `80%` or `0.8`: a share of something, from more than 0 to 1.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let bad = || "not a share: give one up to 1, as 0.9 or 90%".to_owned();
    let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
    let share = number.trim().parse::<f64>().map_err(|_| bad())? / whole;
    if share > 0.0 && share <= 1.0 { Ok(share) } else { Err(bad()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_written_in_two_ways() {
        for (text, thousandths) in [("80%", 800.0), ("0.8", 800.0), ("1", 1000.0), ("100 %", 1000.0), ("0.5%", 5.0)] {
            assert_eq!((parse_share(text).unwrap() * 1000.0).round().to_bits(), f64::to_bits(thousandths), "{text}");
        }
        for text in ["", "0", "-1", "1.1", "101%", "80", "nan", "all", "%"] {
            assert!(parse_share(text).unwrap_err().contains("90%"), "{text}");
        }
    }
}
