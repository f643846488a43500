//! `gpumon top`: the live screen.

use std::path::PathBuf;

use gpumon_probe::vendor::SourceChoice;
use gpumon_server::frame::INTERVAL_MS;

use crate::{
    exit::Failure,
    local::ServerArgs,
    options::SourceArgs,
    top::{self, Request, settings::parse_theme, theme::ThemeName},
};

/// Watch GPUs and their processes: charts, links, MIG, the machine, events
///
/// A running server is asked, so that charts begin with the last minutes; without one, or with --source, the driver is
/// read here. Press ? for the keys.
#[derive(Debug, clap::Args)]
pub(crate) struct TopArgs {
    /// Play a recording instead, which `gpumon collect > FILE` made
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,

    /// Time between samples in milliseconds, 100 to 60000; without it, what the settings say, or 1000
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(i64::from(*INTERVAL_MS.start())..=i64::from(*INTERVAL_MS.end())))]
    interval_ms: Option<u32>,

    /// Colours: dark, light, high-contrast or monochrome
    #[arg(long, value_name = "THEME", value_parser = parse_theme)]
    theme: Option<ThemeName>,

    /// Leave the mouse to the terminal, which can select text with it
    #[arg(long)]
    no_mouse: bool,

    /// Settings, instead of `$XDG_CONFIG_HOME/gpumon/top.toml`; W writes them
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,

    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) fn run(source: &SourceArgs, args: TopArgs) -> Result<(), Failure> {
    let asks_server = args.replay.is_none() && !source.no_daemon && source.source == SourceChoice::Auto;
    let server = if asks_server { args.server.connect().ok() } else { None };
    top::run(Request {
        source: source.clone(),
        server,
        recording: args.replay,
        config: args.config,
        interval_ms: args.interval_ms,
        theme: args.theme,
        no_mouse: args.no_mouse,
    })
}
