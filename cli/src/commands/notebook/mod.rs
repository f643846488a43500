//! `gpumon notebook`: what notebooks have kept of their runs.

mod file;
mod report;

use std::path::PathBuf;

use clap::Subcommand;

use self::file::Notebook;
use crate::{exit::Failure, terminal::output::print_report};

/// Report what the cells of a notebook cost, as its file has it
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES, disable_help_subcommand = true)]
pub(crate) struct NotebookArgs {
    #[command(subcommand)]
    action: Action,
}

const NOTES: &str = "\
Examples:
  gpumon notebook report train.ipynb
      Print what each cell cost: duration, GPU time, peak memory and energy, the total first.
  papermill --engine gpumon train.ipynb out.ipynb && gpumon notebook report out.ipynb
      Run a notebook without a browser, and report on it.
  gpumon notebook report out.ipynb --json | jq .total.energy_joules
      Print the energy of all cells in joules.

Exit codes: 0 success, 1 error or no costs in the file, 2 invalid argument or no notebook";

#[derive(Debug, Subcommand)]
enum Action {
    /// Print what each cell cost when it was run last
    ///
    /// A notebook keeps the cost of each cell that held a GPU in the cell's metadata, where it was run in JupyterLab, or
    /// without a browser by papermill, nbconvert or nbclient with gpumon's hooks. Peak memory of all cells is the highest
    /// of one; duration, GPU time and energy are sums over the cells that are listed. A cost that does not belong to the
    /// cell's last run, because gpumon did not see that run or the cell was changed after it, is marked as of an earlier
    /// run and is not in the sums.
    Report {
        /// Notebook file
        file: PathBuf,

        /// Print the report as JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &NotebookArgs) -> Result<(), Failure> {
    let Action::Report { file, json } = &args.action;
    let notebook = Notebook::read(file)?;
    print_report(
        *json,
        || report::as_json(&notebook),
        |terminal| report::draw(&notebook, terminal),
    )
}

/// Reads a notebook and writes both reports.
#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz(file: &std::path::Path) {
    if let Ok(notebook) = Notebook::read(file) {
        report::as_json(&notebook);
        report::draw(&notebook, None);
    }
}
