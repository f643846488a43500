//! What can be typed. Each command's own arguments stand with the command, what several share in `options`.

use clap::{Parser, Subcommand};

use crate::{
    commands::{collect, doctor, pause, schema, serve, show, smi},
    options::SourceArgs,
};

/// Shows what a GPU does: now, as a table. Commands collect samples and serve them.
#[derive(Debug, Parser)]
#[command(name = "gpumon", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) source: SourceArgs,

    #[command(flatten)]
    pub(crate) show: show::ShowArgs,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed, 2 bad argument, 4 no permission, 6 no GPU, 9 driver not loaded, \
12 no NVIDIA library, 18 library and driver do not match";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Collect(collect::CollectArgs),
    Serve(serve::ServeArgs),
    Doctor(doctor::DoctorArgs),
    Pause(pause::PauseArgs),
    Resume(pause::ResumeArgs),
    Schema(schema::SchemaArgs),
    Smi(smi::SmiArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        Args::command().debug_assert();
    }
}
