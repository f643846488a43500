//! `gpumon smi`: the face of nvidia-smi.

use crate::{exit::Failure, options::SourceArgs, smi};

/// Answer as nvidia-smi does: the same arguments, the same output, the same exit codes
///
/// Link gpumon under the name nvidia-smi (`ln -s $(which gpumon) ~/bin/nvidia-smi`), and programs that parse its output
/// use it. Its flags also work behind plain `gpumon`: `gpumon -L`, `gpumon -q`, `gpumon dmon`. What would change a GPU is
/// refused.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, override_usage = USAGE)]
pub(crate) struct SmiArgs {
    /// What nvidia-smi takes, behind gpumon's own options; see `gpumon smi -h`
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
