//! `gpumon info`: what this machine has to compute with, and what that can do at best.
//!
//! - [`links`] is what NVML says of PCIe and NVLink, [`text`] all of it for people.

mod links;
mod text;

use gpumon_workload::{
    Unavailable,
    info::{Cpu, GpuInfo, Gpus},
};
use serde::Serialize;

use self::links::Links;
use crate::{exit::Failure, options::SourceArgs, terminal::output::print_report};

/// Print the properties and theoretical peak rates of GPUs and CPU
///
/// Properties come from the CUDA driver. Peak rates are computed from the number of multiprocessors, the maximum clock
/// and the data sheet of the architecture, without sparsity; for an unknown architecture they are absent. Links come
/// from NVML.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct InfoArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const NOTES: &str = "\
Examples:
  gpumon info
      Print GPUs, links and CPU.
  gpumon info --json | jq '.gpus[] | [.index, .uuid, .memory_bytes_per_second]'
      Print the peak memory bandwidth of every GPU.

Environment:
  GPUMON_LIBCUDA  path of the CUDA driver library, if the loader does not find libcuda.so.1
  CUDA_VISIBLE_DEVICES  GPUs visible to CUDA, in this order

Exit codes: 0 success, 2 invalid argument, 3 no GPU or no driver (only the CPU is printed)";

const NO_GPU: u8 = 3;

#[derive(Debug, Serialize)]
struct Machine {
    /// The newest CUDA that the driver knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    cuda: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_gpu: Option<String>,
    gpus: Vec<GpuWithLinks>,
    cpu: Cpu,
}

#[derive(Debug, Serialize)]
struct GpuWithLinks {
    #[serde(flatten)]
    info: GpuInfo,
    links: Links,
}

pub(crate) fn run(source: &SourceArgs, args: &InfoArgs) -> Result<(), Failure> {
    source.source.check()?;
    let found = gpus(source);
    let (cuda, gpus, error) = match found {
        Ok((cuda, gpus)) => (Some(cuda), gpus, None),
        Err(error) => (None, Vec::new(), Some(error)),
    };
    let machine = Machine {
        cuda,
        no_gpu: error.as_ref().map(ToString::to_string),
        gpus,
        cpu: Cpu::this(),
    };
    print_report(args.json, || &machine, |_| text::of(&machine))?;
    error.map_or(Ok(()), |error| Err(Failure::with_code(error, NO_GPU)))
}

fn gpus(source: &SourceArgs) -> Result<(String, Vec<GpuWithLinks>), Unavailable> {
    let Gpus { cuda, gpus } = Gpus::read()?;
    let known = links::read(source);
    Ok((
        cuda,
        gpus.into_iter()
            .map(|info| GpuWithLinks {
                links: links::find_links(&known, &info.uuid),
                info,
            })
            .collect(),
    ))
}
