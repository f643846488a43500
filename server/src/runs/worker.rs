//! A process that works, from its start to its end.

use std::{
    pin::pin,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command},
    sync::{Notify, watch},
    time::{Instant, sleep_until, timeout},
};

use super::{
    RunSettings,
    lines::{Lines, TooLong},
    report::clean,
};

/// What a process is to do.
pub(crate) struct Order {
    /// As JSON.
    pub(crate) job: String,
    /// When it has taken too long.
    pub(crate) limit: Duration,
    pub(crate) cancelled: Arc<Notify>,
    /// Becomes true when the server stops.
    pub(crate) stopped: watch::Receiver<bool>,
}

/// How a process came to its end.
#[derive(Debug, Default)]
pub(crate) struct End {
    /// Why it had to end; `None` where it ended by itself.
    pub(crate) because: Option<Because>,
    /// Why it is of no use: it could not be started, wrote what is no report, or cannot be killed.
    pub(crate) broken: Option<String>,
    pub(crate) status: Option<ExitStatus>,
    /// The last line of its standard error.
    pub(crate) last_words: Option<String>,
}

/// Why a process has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Because {
    Cancelled,
    TimeLimit,
    ServerStops,
}

/// Signals, and how long each has to take effect.
type Ladder = &'static [(Signal, Duration)];

/// It gives memory back and says what it has.
const CANCEL: Ladder = &[(Signal::INT, PATIENCE), (Signal::TERM, PATIENCE), (Signal::KILL, PATIENCE)];
/// What does not end in time may not listen either.
const LIMIT: Ladder = &[(Signal::TERM, PATIENCE), (Signal::KILL, PATIENCE)];
/// The server waits for nobody for longer than a second.
const STOP: Ladder = &[(Signal::INT, Duration::from_millis(600)), (Signal::KILL, PATIENCE)];
const PATIENCE: Duration = Duration::from_secs(5);

/// How long one that has ended may keep its pipes open, which what it has started may hold.
const MOMENT: Duration = Duration::from_secs(1);
/// Of the last line of standard error.
const LAST_WORDS: usize = 1000;

/// Has a process do it, and gives each line that it writes to `tell`. The process ends with this future.
pub(crate) async fn work(
    settings: &RunSettings,
    mut order: Order,
    tell: impl FnMut(&str) -> Result<(), String>,
) -> End {
    let mut child = match start(settings, &order.job) {
        Ok(child) => child,
        Err(error) => {
            let program = settings.program.display();
            return End { broken: Some(format!("cannot start {program}: {error}")), ..End::default() };
        }
    };
    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let mut last_words = tokio::spawn(last_line(child.stderr.take()));
    let mut reading = pin!(read(child.stdout.take(), tell));
    let mut end = End::default();
    let mut open = true;
    let (mut ladder, mut due) = (LIMIT.iter(), Instant::now() + order.limit);
    loop {
        tokio::select! {
            status = child.wait() => {
                end.status = status.ok();
                break;
            }
            result = &mut reading, if open => {
                open = false;
                if let Err(why) = result {
                    end.broken = Some(why);
                    (ladder, due) = (LIMIT.iter(), Instant::now());
                }
            }
            () = order.cancelled.notified(), if end.because.is_none() => {
                end.because = Some(Because::Cancelled);
                (ladder, due) = (CANCEL.iter(), Instant::now());
            }
            _ = order.stopped.wait_for(|stopped| *stopped), if end.because != Some(Because::ServerStops) => {
                end.because = Some(Because::ServerStops);
                (ladder, due) = (STOP.iter(), Instant::now());
            }
            () = sleep_until(due) => {
                if end.broken.is_none() {
                    end.because.get_or_insert(Because::TimeLimit);
                }
                let Some((signal, patience)) = ladder.next() else {
                    end.broken = Some("its process cannot be killed: it is stuck in the driver".to_owned());
                    break;
                };
                // It fails where the process has just ended.
                let _ = pid.map(|pid| kill_process(pid, *signal));
                due = Instant::now() + *patience;
            }
        }
    }
    if open && let Ok(Err(why)) = timeout(MOMENT, reading).await {
        end.broken = Some(why);
    }
    end.last_words = timeout(MOMENT, &mut last_words).await.ok().and_then(Result::ok).flatten();
    end
}

fn start(settings: &RunSettings, job: &str) -> std::io::Result<Child> {
    Command::new(&settings.program)
        .args(&settings.arguments)
        .arg(job)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
}

/// Reads lines until there are no more.
async fn read<T: AsyncRead + Unpin>(
    stream: Option<T>,
    mut tell: impl FnMut(&str) -> Result<(), String>,
) -> Result<(), String> {
    let Some(mut stream) = stream else { return Ok(()) };
    let (mut lines, mut chunk) = (Lines::default(), vec![0; 16 * 1024]);
    while let Ok(length @ 1..) = stream.read(&mut chunk).await {
        lines.push(&chunk[..length], |line| if line.is_empty() { Ok(()) } else { tell(line) })?;
    }
    Ok(())
}

/// The last thing that it complained of.
async fn last_line<T: AsyncRead + Unpin>(stream: Option<T>) -> Option<String> {
    let mut last = None;
    let _ = read(stream, |line| {
        last = Some(clean(line.trim_start_matches("gpumon: "), LAST_WORDS));
        Ok(())
    })
    .await;
    last
}

impl From<TooLong> for String {
    fn from(TooLong: TooLong) -> Self {
        "a line is longer than 64 KiB".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[tokio::test]
    async fn what_takes_longer_than_it_may_is_ended() {
        let settings = RunSettings {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), "echo \"$0\"; exec sleep 60".into()],
            allowed_for_all: false,
        };
        let (_serving, stopped) = watch::channel(false);
        let job = "the job".to_owned();
        let order = Order { job, limit: Duration::from_millis(500), cancelled: Arc::default(), stopped };
        let mut told = Vec::new();
        let end = work(&settings, order, |line| {
            told.push(line.to_owned());
            Ok(())
        });
        let end = timeout(Duration::from_secs(30), end).await.unwrap();
        assert_eq!((end.because, end.broken), (Some(Because::TimeLimit), None));
        assert_eq!(end.status.and_then(|status| status.signal()), Some(Signal::TERM.as_raw()));
        assert_eq!(told, ["the job"]);
    }
}
