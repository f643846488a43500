//! `gpumon help` and `gpumon licenses`: print all options of gpumon or of a command, and the
//! licenses of gpumon and its libraries.

use std::io;

use flate2::read::GzDecoder;

use crate::{
    exit::{Result, usage},
    suggest::find_nearest,
    terminal::output::print,
};

/// Print all options of gpumon, or of a command
#[derive(Debug, clap::Args)]
pub(crate) struct HelpArgs {
    /// Command, optionally with a subcommand; by default, gpumon itself
    #[arg(value_name = "COMMAND")]
    path: Vec<String>,
}

/// Prints the help of a command. `gpumon` is the definition of the command line.
pub(crate) fn run(gpumon: clap::Command, args: &HelpArgs) -> Result {
    let mut command = gpumon;
    command.build();
    command = command.mut_arg("help", |help| {
        let text = "Print an overview of all commands";
        help.help(text).long_help(text)
    });
    for name in &args.path {
        let Some(found) = command.find_subcommand(name) else {
            let names = command.get_subcommands().map(clap::Command::get_name);
            let hint = find_nearest(name, names)
                .map_or_else(String::new, |meant| format!(": did you mean '{meant}'?"));
            let path = args.path.join(" ");
            return Err(usage!("unknown command '{path}'{hint}"));
        };
        command = found.clone();
    }
    print(&command.render_long_help().ansi().to_string())
}

/// The license texts of the libraries, which `make licenses` collects and `build.rs` compresses.
const COMPRESSED_LICENSES: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/THIRD-PARTY-LICENSES.txt"));

/// Prints the licenses.
pub(crate) fn print_licenses() -> Result {
    io::copy(
        &mut GzDecoder::new(COMPRESSED_LICENSES),
        &mut io::stdout().lock(),
    )?;
    Ok(())
}
