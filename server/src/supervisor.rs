//! Keeps the collector running.
//!
//! The collector is the child process that loads NVML and reads it. Whatever the driver does to it (a crash, a call that
//! never returns, an upgrade underneath it), it is replaced, and clients are told.

use std::{ffi::OsString, path::PathBuf, process::Stdio, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStderr, ChildStdout, Command},
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use crate::{frame::CollectorState, hub::Hub};

/// How to start a collector.
#[derive(Debug, Clone)]
pub struct Collector {
    /// The program: gpumon itself.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The interval it was told.
    pub interval: Duration,
}

/// A driver without persistence mode opens its GPUs for up to half a minute before the first line comes.
const FIRST_LINE: Duration = Duration::from_mins(1);
/// So many intervals without a line, and at least so much time, mean that the collector itself hangs.
const SILENT_INTERVALS: u32 = 5;
const SILENT_AT_LEAST: Duration = Duration::from_secs(5);
/// The pause before a new start doubles from the shortest to the longest.
const SHORTEST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A collector that ran for so long starts the pauses anew.
const STEADY: Duration = Duration::from_secs(30);
/// Where there is nothing to read, a driver may be installed or a GPU appear, so it is tried again now and then.
const LOOK_AGAIN: Duration = Duration::from_secs(15);
/// A process stuck in the driver cannot be killed. It is left behind after this time.
const BURIAL: Duration = Duration::from_secs(1);

/// Runs collectors, one after another, until it is dropped.
pub(crate) async fn supervise(collector: Collector, hub: Arc<Hub>) {
    let mut pause = SHORTEST_PAUSE;
    let mut last_message = None;
    loop {
        let started = Instant::now();
        let (state, message, wait) = match run_once(&collector, &hub).await {
            End::NothingToRead(message) => (CollectorState::Unavailable, message, LOOK_AGAIN),
            End::Broken(message) => {
                let wait = if started.elapsed() > STEADY { SHORTEST_PAUSE } else { pause };
                pause = (wait * 2).min(LONGEST_PAUSE);
                let message = format!("{message}; a new one starts in {:.1} s", wait.as_secs_f64());
                (CollectorState::Restarting, message, wait)
            }
        };
        // What stays as it is need not be said again every few seconds.
        if last_message.as_ref() != Some(&message) {
            tracing::warn!("{message}");
            last_message = Some(message.clone());
        }
        hub.collector_is(state, Some(message));
        sleep(wait).await;
    }
}

/// How a collector ended.
enum End {
    /// It said why there is nothing to read, and ended by itself before its first line.
    NothingToRead(String),
    /// It died, fell silent, or wrote what is no record.
    Broken(String),
}

async fn run_once(collector: &Collector, hub: &Hub) -> End {
    let spawned = Command::new(&collector.program)
        .args(&collector.arguments)
        // It ends when this pipe closes, which it does also where this process is killed.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => return End::Broken(format!("cannot start the collector: {error}")),
    };
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return End::Broken("the collector has no output".to_owned());
    };
    let last_words = tokio::spawn(pass_on(BufReader::new(stderr).lines()));
    let mut lines = BufReader::new(stdout).lines();
    let silence = (collector.interval * SILENT_INTERVALS).max(SILENT_AT_LEAST);
    let (lines_read, broken) = read_lines(&mut lines, hub, silence).await;
    if let Some(message) = broken {
        bury(child).await;
        return End::Broken(message);
    }
    how_it_ended(child, last_words, lines_read).await
}

/// Reads until the output ends, or something is wrong with it.
async fn read_lines(lines: &mut Lines<BufReader<ChildStdout>>, hub: &Hub, silence: Duration) -> (u64, Option<String>) {
    let mut count = 0;
    loop {
        let patience = if count == 0 { FIRST_LINE } else { silence };
        match timeout(patience, lines.next_line()).await {
            Err(_) => {
                let seconds = patience.as_secs();
                return (count, Some(format!("the collector hangs: nothing came from it for {seconds} s")));
            }
            Ok(Ok(Some(line))) => {
                if let Err(error) = hub.take_in(line) {
                    return (count, Some(format!("the collector wrote what is not a record: {error}")));
                }
                count += 1;
            }
            Ok(Ok(None) | Err(_)) => return (count, None),
        }
    }
}

async fn how_it_ended(mut child: Child, last_words: JoinHandle<Option<String>>, lines_read: u64) -> End {
    let Ok(Ok(status)) = timeout(BURIAL, child.wait()).await else {
        bury(child).await;
        return End::Broken("the collector closed its output and does not end".to_owned());
    };
    let last_words = timeout(BURIAL, last_words).await.ok().and_then(Result::ok).flatten();
    match (lines_read, status.code(), last_words) {
        (0, Some(_), Some(message)) => End::NothingToRead(message),
        (_, _, Some(message)) => End::Broken(format!("the collector ended ({status}): {message}")),
        (_, _, None) => End::Broken(format!("the collector ended ({status})")),
    }
}

/// Passes the collector's messages on to this process's own, and returns the last.
async fn pass_on(mut lines: Lines<BufReader<ChildStderr>>) -> Option<String> {
    let mut last = None;
    while let Ok(Some(line)) = lines.next_line().await {
        tracing::debug!("collector: {line}");
        last = Some(line.trim_start_matches("gpumon: ").to_owned());
    }
    last
}

async fn bury(mut child: Child) {
    let _ = timeout(BURIAL, child.kill()).await;
}
