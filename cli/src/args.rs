//! The top-level command line. Each command defines its own arguments next to its code; arguments
//! that several commands share are in `options`.

use clap::Parser;
use gpumon_probe::model::EnergyPrice;

use crate::{
    commands::{Command, show},
    options::SourceArgs,
};

macro_rules! exit_codes {
    () => {
        "Exit codes: 0 success, 1 error, 2 invalid argument, 4 permission denied, 6 no GPU, 9 \
         driver not loaded, 12 NVML library not found, 18 NVML library and driver versions differ"
    };
}

/// Monitors GPUs in JupyterLab, the browser and the terminal
///
/// Without a command, gpumon prints every GPU and its processes as a table.
#[derive(Debug, Parser)]
#[command(
    name = "gpumon",
    version,
    disable_help_subcommand = true,
    allow_negative_numbers = true,
    max_term_width = 100,
    after_help = exit_codes!(),
    after_long_help = NOTES
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) source: SourceArgs,

    /// Price of energy, such as 0.30/kWh or '0.30 EUR/kWh'; with a price, costs are shown next to
    /// energy in reports, in the table's total and on a server's page
    #[arg(
        long,
        alias = "price",
        global = true,
        env = "GPUMON_ENERGY_PRICE",
        value_name = "PRICE",
        display_order = 904
    )]
    pub(crate) energy_price: Option<EnergyPrice>,

    #[command(flatten)]
    pub(crate) show: show::ShowArgs,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const NOTES: &str = concat!(
    "\
Examples:
  gpumon
      Show every GPU and its processes.
  gpumon --json | jq '.sample.gpus[].memory.free_bytes'
      Print the free memory of every GPU.
  gpumon --source sim:4
      Show four simulated GPUs.
  gpumon wait --free 20GiB -- python train.py
      Start training when a GPU has 20 GiB of free memory.

Environment:
  GPUMON_SOURCE  default of --source
  GPUMON_NVML_LIB  default of --nvml-lib
  GPUMON_LIBCUDA  path of the CUDA driver library, if the loader does not find libcuda.so.1
  GPUMON_CONTROL  default of --control
  GPUMON_CONFIG  default of --config
  GPUMON_ENERGY_PRICE  default of --energy-price
  NO_COLOR  disables colors if set

",
    exit_codes!()
);

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_definition_is_consistent() {
        Args::command().debug_assert();
    }
}
