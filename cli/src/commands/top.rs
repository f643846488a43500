//! `gpumon top`: the interactive screen.

use std::path::PathBuf;

use gpumon_probe::vendor::SourceChoice;
use gpumon_recording::Player;

use super::replay;
use crate::{
    config::{self, ResolvedArguments},
    exit::{Failure, Result},
    fleet::options::{UnprefixedFleetArgs, make_missing_fleet_error},
    local_server::{Server, ServerArgs},
    options::{ShownGpus, ShownProcesses, SourceArgs, build_interval_parser},
    top::{self, Request, Selection, settings::Settings},
};

/// Monitor GPUs interactively: charts, processes, links, MIG devices, host, events
///
/// Readings come from a running server, which also provides up to 30 days of history; without a
/// server, or with --source, the driver is read directly. Press ? for the keys.
#[derive(Debug, clap::Args)]
pub(crate) struct TopArgs {
    /// Play back a recording, as `gpumon replay FILE` does
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,

    /// Sampling interval in milliseconds, 100 to 60000
    #[arg(
        long,
        env = "GPUMON_TOP_INTERVAL_MS",
        value_name = "MS",
        default_value_t = 1000,
        value_parser = build_interval_parser()
    )]
    interval_ms: u32,

    #[command(flatten)]
    screen: ScreenArgs,

    /// Disable sending signals to processes
    #[arg(long)]
    readonly: bool,

    /// Print one frame to standard output and exit; the frame has 120 x 40 characters if the output
    /// is no terminal
    #[arg(long, conflicts_with_all = ["replay", "interval_ms"])]
    once: bool,

    /// Show a fleet: a heat map of all GPUs of many machines
    #[arg(long, conflicts_with_all = [
        "replay", "once", "ids", "only_visible", "user", "pids", "compute", "graphics", "readonly"
    ])]
    fleet: bool,

    #[command(flatten)]
    server: ServerArgs,

    #[command(flatten)]
    fleet_source: UnprefixedFleetArgs,
}

/// Options for the appearance of the screen, live and in a replay.
#[derive(Debug, clap::Args)]
pub(crate) struct ScreenArgs {
    #[command(flatten)]
    settings: Settings,

    /// Disable the mouse; same as --mouse=false
    #[arg(long)]
    no_mouse: bool,

    #[command(flatten)]
    gpus: ShownGpus,

    /// List only the processes of this user
    #[arg(short, long, value_name = "USER")]
    user: Option<String>,

    #[command(flatten)]
    shown: ShownProcesses,
}

impl ScreenArgs {
    /// Returns the request for the screen. If a `player` is given, the screen shows the player's
    /// recording; otherwise, it shows readings of a server or the driver. `resolved` is the command
    /// line.
    pub(crate) fn into_request(
        self,
        source: SourceArgs,
        server: Option<Server>,
        player: Option<Player>,
        remark: Option<String>,
        resolved: ResolvedArguments,
    ) -> Request {
        Request {
            server,
            player,
            is_theme_typed: resolved.is_typed("theme"),
            remarks: remark.into_iter().chain(resolved.remarks).collect(),
            file: config::find_writable_path(source.config.as_deref()),
            is_file_named: source.config.is_some(),
            source,
            mouse: self.settings.mouse && !self.no_mouse,
            settings: self.settings,
            selection: Selection::new(self.gpus),
            user: self.user,
            shown: self.shown,
            readonly: false,
            once: false,
        }
    }
}

pub(crate) fn run(source: &SourceArgs, mut args: TopArgs, resolved: ResolvedArguments) -> Result {
    args.screen.settings.interval_ms = args.interval_ms;
    if args.fleet {
        let fleet = args
            .fleet_source
            .args
            .settings()?
            .ok_or_else(make_missing_fleet_error)?;
        let request = args
            .screen
            .into_request(source.clone(), None, None, None, resolved);
        return top::fleet::run(request, fleet);
    }
    let asks_server =
        args.replay.is_none() && !source.no_daemon && source.source == SourceChoice::Auto;
    let server = if asks_server {
        args.server.connect().ok()
    } else {
        None
    };
    let player = args
        .replay
        .as_deref()
        .map(Player::open)
        .transpose()
        .map_err(Failure::from_usage_error)?;
    let remark = player
        .as_ref()
        .and_then(|player| replay::describe_damaged_parts(player.recording()));
    let request = args
        .screen
        .into_request(source.clone(), server, player, remark, resolved);
    top::run(Request {
        readonly: args.readonly,
        once: args.once,
        ..request
    })
}
