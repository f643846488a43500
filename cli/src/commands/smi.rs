//! `gpumon smi`: the face of nvidia-smi.

use crate::{exit::Failure, options::SourceArgs, smi};

/// Run as nvidia-smi: same arguments, output and exit codes
///
/// To replace nvidia-smi for programs that parse its output, link gpumon under that name:
/// `ln -s $(which gpumon) ~/bin/nvidia-smi`. The options also work with plain `gpumon`: `gpumon -L`, `gpumon -q`,
/// `gpumon dmon`. Commands that change a GPU are refused.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, override_usage = USAGE)]
pub(crate) struct SmiArgs {
    /// Arguments of nvidia-smi, after gpumon's own options; see `gpumon smi -h`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    words: Vec<String>,
}

/// gpumon's own options come first: what follows is nvidia-smi's, word for word.
const USAGE: &str = "gpumon smi [--source <SOURCE>] [--nvml-lib <PATH>] [--no-daemon] [ARGUMENTS]...";

pub(crate) fn run(source: &SourceArgs, args: &SmiArgs) -> Result<(), Failure> {
    match smi::run(source, &args.words) {
        0 => Ok(()),
        code => Err(Failure::reported(code)),
    }
}
