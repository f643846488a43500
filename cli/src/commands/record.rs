//! `gpumon record`: records readings into a file.

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    sync::{
        Arc,
        atomic::AtomicBool,
        mpsc::{self, RecvTimeoutError, SyncSender},
    },
    time::{Duration, Instant},
};

use anyhow::anyhow;
use gpumon_probe::{
    local_time::time_zone,
    units::{AcceptedAmounts, format_decimal_size},
};
use gpumon_recording::{Files, RecordKind, RotationLimits, Writer, pack_record};
use serde::Deserialize;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ},
    flag,
    iterator::Signals,
};

use crate::{
    background::spawn_detached_thread,
    exit::{Failure, Result, print_message, usage},
    feed::{Feed, Input},
    local_server::ServerArgs,
    options::{MAX_SIZE_BYTES, SourceArgs, build_interval_parser},
    terminal::{output::StatusLine, text::cut, units::format_count},
    time_spans::format_time,
};

/// Record readings into a file, to replay, export or compare them later
///
/// Readings come from a running server; without a server, or with --source, the driver is read
/// directly. The file has the records of `gpumon collect`, compressed by gzip: `zcat FILE` prints
/// them. The recorder writes every ten seconds, so if it is killed, at most the last ten seconds
/// are lost. Ctrl-C ends a recording.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct RecordArgs {
    /// File to record into, for example lab.gpumon.gz; - is standard output
    file: PathBuf,

    /// Sampling interval in milliseconds, 100 to 60000
    #[arg(long, default_value_t = 1000, value_name = "MS", value_parser = build_interval_parser())]
    interval_ms: u32,

    /// End after this time, for example 30m, 8h or 7d; by default, record until interrupted
    #[arg(long, value_name = "TIME", value_parser = |text: &str| ACCEPTED_DURATIONS.parse(text))]
    duration: Option<Duration>,

    /// Begin a new file at this size, for example 100MB; the full file is renamed to FILE.1, FILE.1
    /// to FILE.2, and so on
    #[arg(long, value_name = "SIZE", value_parser = |text: &str| ACCEPTED_FILE_SIZES.parse(text))]
    size: Option<u64>,

    /// Begin a new file after this time, for example 1h or 1d
    #[arg(long, value_name = "TIME", value_parser = |text: &str| ACCEPTED_DURATIONS.parse(text))]
    every: Option<Duration>,

    /// Keep this number of full files and delete older ones; by default, keep all
    #[arg(long, value_name = "N")]
    keep: Option<usize>,

    /// Include the driver's own record of power and utilization, 50 values per second and GPU
    #[arg(long)]
    traces: bool,

    /// Overwrite FILE, and the older files of that recording
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    server: ServerArgs,
}

const NOTES: &str = "\
Examples:
  gpumon record night.gpumon.gz --duration 12h
      Record one night.
  gpumon record lab.gpumon.gz --size 100MB --keep 9
      Record until interrupted, using at most 1 GB.
  gpumon replay lab.gpumon.gz
      Play back a recording, with its older files.
  ssh HOST gpumon record - --duration 1h > host.gpumon.gz
      Record on another machine.

Environment:
  GPUMON_CONTROL  default of --control

Exit codes: 0 success, 1 error, 2 invalid argument or FILE exists, 4 permission denied, 6 no GPU, 9 driver not loaded, \
12 NVML library not found, 18 NVML library and driver versions differ";

/// The maximum number of queued inputs.
const QUEUE_LENGTH: usize = 64;

/// The interval at which the progress line is updated.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn run(source: &SourceArgs, args: &RecordArgs) -> Result {
    if args.keep.is_some() && args.size.is_none() && args.every.is_none() {
        return Err(usage!(
            "--keep needs a limit for each file: add --size or --every"
        ));
    }
    let limits = RotationLimits {
        bytes: args.size,
        time: args.every,
        keep: args.keep,
    };
    let is_stdout = args.file.as_os_str() == "-";
    if is_stdout && io::stdout().is_terminal() {
        return Err(usage!(
            "a recording is binary and cannot be printed on a terminal: give a file, or redirect \
             the output with `> FILE`"
        ));
    }
    let path = (!is_stdout).then(|| args.file.clone());
    match &path {
        Some(path) => Files::check_path(path, limits, args.force),
        None => Files::open_standard_output(limits).map(drop),
    }
    .map_err(Failure::from_usage_error)?;
    // With a handler for SIGXFSZ, exceeding the file size limit is an error that can be reported.
    // Without it, the signal would end the program.
    flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    let (inputs, waiting) = mpsc::sync_channel(QUEUE_LENGTH);
    stop_on_signals(inputs.clone())?;
    let interval = Duration::from_millis(args.interval_ms.into());
    let feed = Feed::start(source, &args.server, interval, args.traces, inputs)?;
    let mut recorder = Recorder {
        path,
        limits,
        overwrite: args.force,
        files: None,
        writer: Writer::default(),
        progress: Progress::new(),
    };
    let followed = recorder.record_until_end(&waiting, feed, interval, args.duration);
    recorder.progress.clear();
    // Even if the recording failed, records that have already arrived are written to the file.
    let flushed = recorder.flush();
    if recorder.files.is_some() {
        let name = if is_stdout {
            "standard output".to_owned()
        } else {
            args.file.display().to_string()
        };
        print_message(&format!(
            "{} in {name}",
            recorder.progress.summarize(recorder.written_bytes())
        ));
    }
    followed.and(flushed)
}

struct Recorder {
    /// The path of the file, or `None` for standard output.
    path: Option<PathBuf>,
    limits: RotationLimits,
    overwrite: bool,
    /// The output files. They are not created before the first record arrives, so that no file is
    /// overwritten if the source cannot be read.
    files: Option<Files>,
    writer: Writer,
    progress: Progress,
}

impl Recorder {
    /// Writes records until the recording ends.
    fn record_until_end(
        &mut self,
        waiting: &mpsc::Receiver<Input>,
        mut feed: Feed<Input>,
        interval: Duration,
        duration: Option<Duration>,
    ) -> Result {
        let mut end = None;
        loop {
            let now = Instant::now();
            if end.is_some_and(|end| end <= now) {
                return Ok(());
            }
            if self.writer.next_due_time().is_some_and(|due| due <= now) {
                self.flush()?;
            }
            self.progress.show(self.written_bytes());
            let next = [self.writer.next_due_time(), end]
                .into_iter()
                .flatten()
                .fold(now + PROGRESS_INTERVAL, Instant::min);
            match waiting.recv_timeout(next.saturating_duration_since(now)) {
                Ok(Input::Record { text, kind, at_ms }) => {
                    end = end.or_else(|| duration.map(|duration| now + duration));
                    self.add_record(&text, kind, at_ms)?;
                }
                Ok(Input::Missed(samples)) => self.progress.missed += samples,
                Ok(Input::Remark(remark) | Input::NoReadings(remark)) => {
                    self.progress.clear();
                    print_message(&remark);
                }
                Ok(Input::ServerEnded) => feed.continue_without_server(interval)?,
                Ok(Input::Failed(failure)) => return Err(failure),
                Ok(Input::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn add_record(&mut self, text: &str, kind: RecordKind, at_ms: u64) -> Result {
        let files = match &mut self.files {
            Some(files) => files,
            none => {
                let created = match &self.path {
                    Some(path) => Files::create(path, self.limits, self.overwrite),
                    None => Files::open_standard_output(self.limits),
                };
                none.insert(created.map_err(Failure::from_usage_error)?)
            }
        };
        if kind == RecordKind::Inventory {
            files.set_first_block(pack_record(text));
        }
        self.progress.count_record(text, kind, at_ms);
        self.writer.push(text, kind, at_ms, Instant::now());
        Ok(())
    }

    fn flush(&mut self) -> Result {
        let Some(block) = self.writer.take_block() else {
            return Ok(());
        };
        let Some(files) = &mut self.files else {
            return Ok(());
        };
        files
            .write(&block)
            .map_err(|error| match self.progress.format_written_time() {
                Some(until) => anyhow!("{error}; the recording can be read up to {until}").into(),
                None => Failure::from(anyhow::Error::from(error)),
            })?;
        self.progress.written_ms = self.progress.newest_ms;
        Ok(())
    }

    fn written_bytes(&self) -> u64 {
        self.files.as_ref().map_or(0, Files::total_bytes)
    }
}

/// Ends the recording on Ctrl-C, SIGTERM and SIGHUP.
fn stop_on_signals(inputs: SyncSender<Input>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    spawn_detached_thread("signals", move || {
        for _ in signals.forever() {
            if inputs.send(Input::Stop).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

/// The accepted durations of a recording: from one second to one year.
const ACCEPTED_DURATIONS: AcceptedAmounts<Duration> = AcceptedAmounts::accept_durations(
    Duration::from_secs(1),
    Duration::from_hours(366 * 24),
    "a time from 1 second to 366 days, such as 30s, 10m, 2h or 1d",
);

/// The accepted maximum file sizes. The minimum is far above the size of one block of a recording,
/// which is about 100 kB on a machine with many GPUs.
const ACCEPTED_FILE_SIZES: AcceptedAmounts<u64> = AcceptedAmounts::accept_sizes(
    1_000_000,
    MAX_SIZE_BYTES,
    "a size of 1MB or more, such as 100MB or 2GiB",
);

struct Progress {
    line: Option<StatusLine>,
    begun: Instant,
    samples: u64,
    /// The number of samples that were missed because this program was too slow.
    missed: u64,
    gpus: usize,
    newest_ms: u64,
    /// The time of the newest sample in the file, in milliseconds since 1970.
    written_ms: u64,
}

#[derive(Deserialize)]
struct InventoryGpus {
    gpus: Vec<serde::de::IgnoredAny>,
}

impl Progress {
    fn new() -> Self {
        let line = StatusLine::can_be_shown().then(StatusLine::default);
        Self {
            line,
            begun: Instant::now(),
            samples: 0,
            missed: 0,
            gpus: 0,
            newest_ms: 0,
            written_ms: 0,
        }
    }

    fn count_record(&mut self, text: &str, kind: RecordKind, at_ms: u64) {
        match kind {
            RecordKind::Inventory => {
                self.gpus = serde_json::from_str(text)
                    .map_or(self.gpus, |InventoryGpus { gpus }| gpus.len());
            }
            RecordKind::Sample => (self.samples, self.newest_ms) = (self.samples + 1, at_ms),
            _ => {}
        }
    }

    /// Returns the time of the newest sample in the file, or `None` if the file has no sample.
    fn format_written_time(&self) -> Option<String> {
        (self.written_ms > 0).then(|| format_time(self.written_ms, &time_zone()))
    }

    fn show(&mut self, bytes: u64) {
        let text = self.format_line(bytes) + "  Ctrl-C ends";
        if let Some(line) = &mut self.line {
            line.show(&cut(&text, StatusLine::columns()));
        }
    }

    fn clear(&mut self) {
        if let Some(line) = &mut self.line {
            line.clear();
        }
    }

    fn format_line(&self, bytes: u64) -> String {
        let seconds = self.begun.elapsed().as_secs();
        let time = format!(
            "{}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        );
        let missed = if self.missed > 0 {
            format!(", {} missed", self.missed)
        } else {
            String::new()
        };
        format!(
            "{time}  {}  {} samples{missed}  {}",
            format_count(self.gpus as u64, "GPU"),
            self.samples,
            format_decimal_size(bytes as f64)
        )
    }

    /// Returns a summary of a finished recording.
    fn summarize(&self, bytes: u64) -> String {
        let each = bytes
            .checked_div(self.samples)
            .map(|each| format!(" ({} a sample)", format_decimal_size(each as f64)))
            .unwrap_or_default();
        format!("recorded {}{each}", self.format_line(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_size_requires_unit() {
        assert_eq!(
            ["100MB", "2 GiB"].map(|text| ACCEPTED_FILE_SIZES.parse(text)),
            [Ok(100_000_000), Ok(2 << 30)]
        );
        for text in ["", "100", "1kB", "MB", "-1MB", "1e30TB", "nanMB"] {
            assert!(
                ACCEPTED_FILE_SIZES
                    .parse(text)
                    .unwrap_err()
                    .contains("100MB"),
                "{text}"
            );
        }
    }
}
