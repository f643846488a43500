//! `gpumon replay`: plays back a recording.

use std::{iter, net::SocketAddr, path::PathBuf, sync::Arc};

use gpumon_probe::local_time::time_zone;
use gpumon_recording::{BadRecording, Player, Recording};
use gpumon_server::{
    Readings, Settings,
    auth::Doors,
    listen::{Listener, Purpose},
    view::ShowProcesses,
};

use super::{
    serve::{asked_to_end, in_runtime, parse_address},
    top::ScreenArgs,
};
use crate::{
    config::Resolved,
    exit::{Failure, Result, say, usage},
    fleet::served::default_settings,
    moment::{Beside, Moment, shown},
    options::SourceArgs,
    top,
};

/// Play back a recording in the terminal, or on the web page
///
/// FILE was made by `gpumon record`, or by `gpumon collect > FILE`. The older files of a recording
/// that was rotated (FILE.1, FILE.2 and so on) are played before it. Press ? for the keys: pause,
/// step, skip, faster, slower, go to a time.
///
/// With --serve, a server plays the recording to the page and to every other client, which show
/// that it is a recording. No command finds this server by itself, and its metrics are empty, so
/// that no program takes the recording for live readings.
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
    from: Option<Moment>,

    /// Play the recording on the web page instead
    #[arg(long)]
    serve: bool,

    /// Loopback address and port to listen on; port 0 selects a free port
    #[arg(long, requires = "serve", default_value = "127.0.0.1:9124", value_name = "ADDRESS:PORT", value_parser = parse_address)]
    listen: SocketAddr,

    /// Listen on a unix socket instead, accessible to this user only
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

pub(crate) fn run(source: &SourceArgs, args: ReplayArgs, resolved: Resolved) -> Result {
    let player = open(&args.file, args.speed, args.from)?;
    let remark = cuts(player.recording());
    if args.serve {
        if let Some(remark) = remark {
            say(&remark);
        }
        return in_runtime(serve(
            player,
            args.listen,
            args.socket,
            args.exit_with_parent,
        ));
    }
    top::run(
        args.screen
            .request(source.clone(), None, Some(player), remark, resolved),
    )
}

async fn serve(
    player: Player,
    listen: SocketAddr,
    socket: Option<PathBuf>,
    exit_with_parent: bool,
) -> Result {
    let shutdown = asked_to_end(exit_with_parent, None)?;
    let doors = Arc::new(Doors::none());
    let door = match &socket {
        Some(path) => Listener::unix(path).await?,
        None => Listener::tcp(listen, Purpose::Everything, &doors)?,
    };
    tracing::info!("replaying at {}", door.address(&doors));
    let settings = Settings {
        readings: Readings::Recording(Box::new(player)),
        doors,
        show_processes: ShowProcesses::Names,
        ..default_settings()
    };
    gpumon_server::run(iter::once(door).collect(), settings, shutdown).await?;
    Ok(())
}

/// Opens a recording and returns a player at the requested start.
fn open(file: &std::path::Path, speed: f64, from: Option<Moment>) -> Result<Player> {
    let recording = Recording::open(file).map_err(failure)?;
    let times_ms = recording.times_ms();
    let mut player = Player::new(recording);
    player.set_speed(speed);
    if let Some(from) = from {
        let at_ms = within(from, times_ms).map_err(|why| usage!(why))?;
        player.start_at(at_ms);
    }
    Ok(player)
}

fn within(from: Moment, (first_ms, last_ms): (u64, u64)) -> Result<u64, String> {
    let at_ms = from.resolve(&Beside::recording((first_ms, last_ms)))?;
    // The comparison ignores fractions of a second, because the first sample is rarely at a whole
    // second.
    if at_ms.saturating_add(1000) > first_ms && at_ms <= last_ms {
        return Ok(at_ms);
    }
    let zone = time_zone();
    let [at, first, last] = [at_ms, first_ms, last_ms].map(|ms| shown(ms, &zone));
    Err(format!(
        "{at} is not in the recording, which is from {first} to {last}"
    ))
}

/// Reports a bad recording as an invalid argument.
pub(crate) fn failure(error: BadRecording) -> Failure {
    Failure::usage(error)
}

/// Returns a description of damaged parts of a recording; `None` if it is complete.
pub(crate) fn cuts(recording: &Recording) -> Option<String> {
    let cuts = recording.cuts();
    let first = cuts.first()?;
    let after = if first.after_ms == 0 {
        "its beginning".to_owned()
    } else {
        shown(first.after_ms, &time_zone())
    };
    let bytes: u64 = cuts.iter().map(|cut| cut.bytes).sum();
    let more = if cuts.len() > 1 {
        format!(" and at {} more places", cuts.len() - 1)
    } else {
        String::new()
    };
    let what = if first.is_at_end {
        "cut off"
    } else {
        "damaged"
    };
    Some(format!(
        "{} is {what} after {after}{more}: {bytes} bytes cannot be read, and the rest is used",
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
    speed.ok_or_else(|| "not a speed: give 0.1 to 1000 times the real one, as 10".to_owned())
}
