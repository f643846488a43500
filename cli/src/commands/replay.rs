//! `gpumon replay`: plays back a recording.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use gpumon_probe::local_time::time_zone;
use gpumon_recording::{Player, Recording};
use gpumon_server::{
    SampleSource, ServerSettings,
    auth::AccessPolicy,
    listen::{Listener, PortPurpose},
    view::ShowProcesses,
};

use super::{
    serve::{parse_address, run_in_runtime, wait_for_shutdown},
    top::ScreenArgs,
};
use crate::{
    config::ResolvedArguments,
    exit::{Failure, Result, print_message, usage},
    fleet::options::build_passive_server_settings,
    options::SourceArgs,
    time_spans::{TimeReference, TypedTime, format_time},
    top,
};

/// Play back a recording in the terminal, or on the web page
///
/// FILE was made by `gpumon record`, or by `gpumon collect > FILE`. The older files of a recording
/// that was rotated (FILE.1, FILE.2 and so on) are played before it. Press ? for the keys: pause,
/// step, skip, faster, slower, go to a time.
///
/// With --serve, a server plays the recording to the page and to every other client, which show
/// that it is a recording. No command finds this server automatically, and its metrics are empty,
/// so that no program takes the recording for live readings.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct ReplayArgs {
    /// Recording to play back
    file: PathBuf,

    /// Playback speed, 0.1 to 1000 times the real speed
    #[arg(long, default_value_t = 1.0, value_name = "N", value_parser = parse_speed)]
    speed: f64,

    /// Begin at this moment: a time of day, a date and time, or a time after the first sample, such
    /// as +90s
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<TypedTime>,

    /// Play the recording on the web page instead of the terminal
    #[arg(long)]
    serve: bool,

    /// Loopback address and port to listen on; port 0 selects a free port
    #[arg(
        long, requires = "serve", default_value = "127.0.0.1:9124", value_name = "ADDRESS:PORT",
        value_parser = parse_address
    )]
    listen: SocketAddr,

    /// Listen on a unix socket instead of a port, accessible to this user only
    #[arg(
        long,
        requires = "serve",
        value_name = "PATH",
        conflicts_with = "listen"
    )]
    socket: Option<PathBuf>,

    /// With --serve, exit when the parent process exits
    #[arg(long, requires = "serve")]
    exit_with_parent: bool,

    #[command(flatten)]
    screen: ScreenArgs,
}

const NOTES: &str = "\
Examples:
  gpumon replay night.gpumon.gz --speed 30
      Play back a night in 24 minutes.
  gpumon replay night.gpumon.gz --from 03:10
      Begin at ten past three.
  gpumon replay night.gpumon.gz --serve
      Play it on the page at http://127.0.0.1:9124/.

Exit codes: 0 success, 1 error, 2 invalid argument or not a recording";

pub(crate) fn run(source: &SourceArgs, args: ReplayArgs, resolved: ResolvedArguments) -> Result {
    let player = open_player(&args.file, args.speed, args.from)?;
    let remark = describe_damaged_parts(player.recording());
    if args.serve {
        if let Some(remark) = remark {
            print_message(&remark);
        }
        return run_in_runtime(serve(
            player,
            args.listen,
            args.socket,
            args.exit_with_parent,
        ));
    }
    top::run(
        args.screen
            .into_request(source.clone(), None, Some(player), remark, resolved),
    )
}

async fn serve(
    player: Player,
    listen: SocketAddr,
    socket: Option<PathBuf>,
    exit_with_parent: bool,
) -> Result {
    let shutdown = wait_for_shutdown(exit_with_parent, None)?;
    let policy = Arc::new(AccessPolicy::allow_all());
    let door = match &socket {
        Some(path) => Listener::open_unix(path).await?,
        None => Listener::open_tcp(listen, PortPurpose::Everything, &policy)?,
    };
    tracing::info!("replaying at {}", door.display_address(&policy));
    let settings = ServerSettings {
        readings: SampleSource::Recording(Box::new(player)),
        policy,
        show_processes: ShowProcesses::Names,
        ..build_passive_server_settings()
    };
    Ok(gpumon_server::run(vec![door], settings, shutdown).await?)
}

/// Opens a recording and returns a player that starts at `from`.
fn open_player(file: &Path, speed: f64, from: Option<TypedTime>) -> Result<Player> {
    let recording = Recording::open(file).map_err(Failure::from_usage_error)?;
    let times_ms = recording.first_and_last_sample_ms();
    let mut player = Player::new(recording);
    player.set_speed(speed);
    if let Some(from) = from {
        let at_ms = resolve_start(from, times_ms).map_err(|why| usage!(why))?;
        player.start_at(at_ms);
    }
    Ok(player)
}

fn resolve_start(from: TypedTime, (first_ms, last_ms): (u64, u64)) -> Result<u64, String> {
    let at_ms = from.resolve(&TimeReference::from_recording((first_ms, last_ms)))?;
    // A start time up to one second before the first sample is accepted, because users type whole
    // seconds and the first sample is rarely at a whole second.
    if at_ms.saturating_add(1000) > first_ms && at_ms <= last_ms {
        return Ok(at_ms);
    }
    let zone = time_zone();
    let [at, first, last] = [at_ms, first_ms, last_ms].map(|ms| format_time(ms, &zone));
    Err(format!(
        "{at} is not in the recording, which covers {first} to {last}"
    ))
}

/// Opens a recording, and prints a message if parts of it are damaged.
pub(super) fn open_recording(file: &Path) -> Result<Recording> {
    let recording = Recording::open(file).map_err(Failure::from_usage_error)?;
    if let Some(remark) = describe_damaged_parts(&recording) {
        print_message(&remark);
    }
    Ok(recording)
}

/// Describes the damaged parts of a recording. Returns `None` if the recording is complete.
pub(crate) fn describe_damaged_parts(recording: &Recording) -> Option<String> {
    let cuts = recording.unreadable_parts();
    let first = cuts.first()?;
    let after = if first.after_ms == 0 {
        "its beginning".to_owned()
    } else {
        format_time(first.after_ms, &time_zone())
    };
    let bytes: u64 = cuts.iter().map(|cut| cut.bytes).sum();
    let more = if cuts.len() > 1 {
        format!(" and in {} more places", cuts.len() - 1)
    } else {
        String::new()
    };
    let what = if first.is_at_end {
        "cut off"
    } else {
        "damaged"
    };
    Some(format!(
        "{} is {what} after {after}{more}: {bytes} bytes cannot be read and are skipped",
        first.file
    ))
}

fn parse_speed(text: &str) -> Result<f64, String> {
    let speed = text
        .strip_suffix('x')
        .unwrap_or(text)
        .parse()
        .ok()
        .filter(|speed| (0.1..=1000.0).contains(speed));
    speed.ok_or_else(|| "expected a factor from 0.1 to 1000, such as 10".to_owned())
}
