//! `encodersessions` and `fbcsessions`: who encodes video, and who captures the screen.

use std::{io::Write, time::Duration};

use gpumon_probe::vendor::nvml::query::{Query, QueryBackend, Subject};

use crate::{form::Form, scroll::Scroll, subcommand::Stop, ticker::Ticker};

pub(super) static ENCODER: Form = Form::new("encodersessions", ENCODER_HELP)
    .takes(&["-i"])
    .may_take(&["-l"]);

pub(super) static CAPTURE: Form = Form::new("fbcsessions", CAPTURE_HELP)
    .takes(&["-i"])
    .may_take(&["-l"]);

/// After so many rows the heading comes again.
const ROWS: usize = 20;

/// Seconds between two rounds: without `-l`, and with `-l` that has no value.
const PLAIN: u64 = 1;
const LOOP: u64 = 5;

pub(crate) fn encoder(
    arguments: &[String],
    driver: &dyn QueryBackend,
    output: &mut dyn Write,
) -> Result<u8, Stop> {
    scroll(
        &ENCODER,
        arguments,
        driver,
        output,
        ENCODER_HEADING,
        Query::EncoderSessions,
        encoder_row,
    )
}

pub(crate) fn capture(
    arguments: &[String],
    driver: &dyn QueryBackend,
    output: &mut dyn Write,
) -> Result<u8, Stop> {
    scroll(
        &CAPTURE,
        arguments,
        driver,
        output,
        CAPTURE_HEADING,
        Query::FbcSessions,
        capture_row,
    )
}

fn scroll(
    form: &Form,
    arguments: &[String],
    driver: &dyn QueryBackend,
    output: &mut dyn Write,
    heading: &str,
    query: Query,
    row: fn(u32, Option<&[i128]>) -> String,
) -> Result<u8, Stop> {
    let switches = form.parse(arguments)?;
    let seconds = switches
        .number("-l")?
        .and_then(|seconds| u64::try_from(seconds).ok());
    let seconds = seconds
        .unwrap_or(if switches.has("-l") { LOOP } else { PLAIN })
        .max(1);
    let gpus = Form::gpus(&switches, driver)?;
    let mut scroll = Scroll::new(output, None, heading.to_owned(), ROWS)?;
    let mut ticker = Ticker::start(Duration::from_secs(seconds))?;
    loop {
        scroll.round(&rows(driver, &gpus, query, row))?;
        if !ticker.next() {
            return Ok(0);
        }
        driver.forget();
    }
}

/// A row for each session of each GPU, or one for a GPU without any.
pub(super) fn rows(
    driver: &dyn QueryBackend,
    gpus: &[u32],
    query: Query,
    row: fn(u32, Option<&[i128]>) -> String,
) -> Vec<String> {
    let width = if query == Query::EncoderSessions {
        7
    } else {
        11
    };
    let mut rows = Vec::new();
    for gpu in gpus {
        let answer = driver.about(Subject::gpu(*gpu), query).ok();
        let numbers = answer.as_ref().map_or(&[][..], |answer| answer.numbers());
        if numbers.len() < width {
            rows.push(row(*gpu, None));
        }
        rows.extend(
            numbers
                .chunks_exact(width)
                .map(|session| row(*gpu, Some(session))),
        );
    }
    rows
}

fn words<const COUNT: usize>(session: Option<&[i128]>, places: [usize; COUNT]) -> [String; COUNT] {
    places.map(|place| session.map_or_else(|| "-".to_owned(), |session| session[place].to_string()))
}

pub(super) fn encoder_row(gpu: u32, session: Option<&[i128]>) -> String {
    let [id, pid, width, height, frames, latency] = words(session, [0, 1, 3, 4, 5, 6]);
    // `nvmlEncoderType_t`.
    let codec = match session.map(|session| session[2]) {
        Some(0) => "H.264",
        Some(1) => "HEVC",
        Some(2) => "AV1",
        Some(_) => "N/A",
        None => "-",
    };
    format!(
        "{gpu:>5} {id:>7} {pid:>10} {codec:>7} {width:>7} {height:>7} {frames:>7} {latency:>11}"
    )
}

pub(super) fn capture_row(gpu: u32, session: Option<&[i128]>) -> String {
    let [
        id,
        pid,
        display,
        most_wide,
        most_high,
        wide,
        high,
        frames,
        latency,
    ] = words(session, [0, 1, 2, 5, 6, 7, 8, 9, 10]);
    // `nvmlFBCSessionType_t`.
    let kind = match session.map(|session| session[3]) {
        Some(1) => "ToSys",
        Some(2) => "CUDA",
        Some(3) => "Vid",
        Some(4) => "HwEnc",
        Some(_) => "Unknown",
        None => "-",
    };
    let flag = |bit: i128| match session.map(|session| session[4] & bit != 0) {
        Some(true) => "Enabled",
        Some(false) => "Disabled",
        None => "-",
    };
    // `NVML_NVFBC_SESSION_FLAG_*`.
    let (difference, class) = (flag(1), flag(2));
    let mode = match session.map(|session| session[4]) {
        Some(flags) if flags & 4 != 0 => "Blocking",
        Some(flags) if flags & 8 != 0 => "Non Blocking",
        Some(flags) if flags & 16 != 0 => "Blocking Infinite",
        Some(_) => "Unknown",
        None => "-",
    };
    format!(
        "{gpu:>5} {id:>9} {pid:>9} {display:>9} {kind:>9} {difference:>9} {class:>11} {mode:>13} \
         {most_wide:>7} {most_high:>7} {wide:>5} {high:>5} {frames:>9} {latency:>13}"
    )
}

const ENCODER_HEADING: &str = "\
# GPU Session    Process   Codec       H       V Average     Average
# Idx      Id         Id    Type     Res     Res     FPS Latency(us)
";

const CAPTURE_HEADING: &str = "\
# GPU   Session   Process   Display   Session Diff. Map  Class. Map       Capture   Max H   Max V     H     V   Average       Average
# Idx        Id        Id   Ordinal      Type     State       State          Mode     Res     Res   Res   Res       FPS   Latency(us)
";

const ENCODER_HELP: &str = "
    encodersessions -- Shows who encodes video.
    A host of vGPUs does not tell.

    Usage: nvidia-smi encodersessions [options]

    Options include:
    [-h | --help]: Show this help
    [-i | --id]: GPUs by index, PCI bus ID, UUID or serial number.

    [-l | --loop]: Seconds between two rounds, until Ctrl-C [default=5 seconds]


";

const CAPTURE_HELP: &str = "
    fbcsessions -- Shows who captures the screen.

    Usage: nvidia-smi fbcsessions [options]

    Options include:
    [-h | --help]: Show this help
    [-i | --id]: GPUs by index, PCI bus ID, UUID or serial number.

    [-l | --loop]: Seconds between two rounds, until Ctrl-C [default=5 seconds]


";
