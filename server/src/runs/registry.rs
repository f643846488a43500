//! The known runs: all runs in progress, and the most recent ones that have ended. This module also
//! determines which changes each client receives, and limits what jobs may request.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
    thread,
    time::Duration,
};

use axum::http::StatusCode;
use gpumon_probe::model::{Event, EventKind, Run, RunKind, RunStatus, now_ms};
use gpumon_workload::{
    parent::{self, Listener, StandardError, StopReason, StopRequest, WorkerEnd, WorkerError},
    protocol::{InvalidReport, Job, ReportLine},
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use super::{
    RunSettings,
    state::{RecordChange, RunDetails, RunRecord, RunState, clean_text},
};
use crate::{
    frame::ServerFrame,
    hub::{Hub, encode},
    lock,
    refusal::{Refusal, bad_request},
    stream::TextFrame,
};

/// The maximum number of ended runs that are kept.
const MAX_ENDED_RUNS: usize = 50;
/// The maximum number of runs that terminals announce at the same time.
const MAX_ANNOUNCED_RUNS: usize = 8;
/// The interval at which a server that is shutting down checks whether runs have ended.
const END_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// The maximum number of characters kept of the last line of a worker's standard error.
const MAX_LAST_LINE_CHARS: usize = 1000;

pub(crate) struct Runs {
    settings: RunSettings,
    hub: Arc<Hub>,
    stopped: watch::Receiver<bool>,
    table: Mutex<RunTable>,
    changed: watch::Sender<u64>,
}

/// All runs, oldest first.
#[derive(Default)]
struct RunTable {
    entries: VecDeque<RunEntry>,
    started: u64,
    changes: u64,
}

struct RunEntry {
    record: RunRecord,
    changed: u64,
    /// The request to stop the run, if this server started it.
    stop: Option<Arc<StopRequest>>,
}

impl Runs {
    pub(crate) fn new(
        settings: RunSettings,
        hub: Arc<Hub>,
        stopped: watch::Receiver<bool>,
    ) -> Self {
        Self {
            settings,
            hub,
            stopped,
            table: Mutex::default(),
            changed: watch::Sender::new(0),
        }
    }

    pub(crate) fn start(self: &Arc<Self>, job: &Job) -> Result<RunState, Refusal> {
        let limit = job_time_limit(job).map_err(bad_request)?;
        let stop = Arc::new(StopRequest::default());
        let mut table = self.lock();
        if let Some(busy) = table
            .entries
            .iter()
            .find(|entry| entry.stop.is_some() && entry.record.is_running())
        {
            let RunState { run, title, .. } = busy.record.state.clone();
            let message = format!(
                "another run is active: {title} ({run}); wait until it ends, or cancel it\n"
            );
            return Err((StatusCode::CONFLICT, message));
        }
        table.started += 1;
        // The ID contains the time, so that run IDs are unique even across servers.
        let name = format!("{:x}-{}", now_ms(), table.started);
        let seconds = Some(job.requested_seconds()).filter(|seconds| *seconds > 0.0);
        let state = RunState {
            seconds,
            ..RunState::new_running(name.clone(), job.kind_and_name().0, job_title(job), true)
        };
        let mut listener = RunListener {
            runs: Arc::clone(self),
            name,
            stop: Arc::clone(&stop),
            server_stopped: self.stopped.clone(),
        };
        let (job, command) = (job.clone(), self.settings.worker.clone());
        // The worker process ends together with the thread that started it. The thread therefore
        // waits for the process.
        let supervision = move || {
            let end = parent::run_worker(
                &command,
                &job,
                limit,
                StandardError::KeepLastLine,
                &mut listener,
            );
            let (status, why) = exit_status(end, limit);
            listener.runs.end_run(&listener.name, status, why);
        };
        let thread = thread::Builder::new()
            .name("run".to_owned())
            .spawn(supervision);
        thread.map_err(|error| {
            (
                StatusCode::SERVICE_UNAVAILABLE,
                format!("cannot start a run: {error}\n"),
            )
        })?;
        self.add_run(table, state.clone(), Some(stop));
        Ok(state)
    }

    pub(crate) fn announce_run(&self, name: &str) -> Result<(), Refusal> {
        let table = self.lock();
        if table
            .entries
            .iter()
            .any(|entry| entry.record.state.run == name)
        {
            let message = "a run with this name already exists; use another name\n";
            return Err((StatusCode::CONFLICT, message.to_owned()));
        }
        let announced = table
            .entries
            .iter()
            .filter(|entry| entry.stop.is_none() && entry.record.is_running());
        if announced.count() >= MAX_ANNOUNCED_RUNS {
            let message = "too many runs from terminals are active; try again when one has ended\n";
            return Err((StatusCode::TOO_MANY_REQUESTS, message.to_owned()));
        }
        self.add_run(
            table,
            RunState::new_running(name.to_owned(), RunKind::Other, String::new(), false),
            None,
        );
        Ok(())
    }

    /// Processes a report of a run's process. Reports after the end are ignored.
    ///
    /// # Errors
    /// Returns an error if the line is not a report.
    pub(crate) fn process_report(
        &self,
        name: &str,
        line: Result<ReportLine, InvalidReport>,
    ) -> Result<(), String> {
        let report = line.map_err(|error| error.to_string())?.report;
        let gpus = self.hub.gpus();
        let index_of = |uuid: &str| {
            gpus.iter()
                .find(|gpu| gpu.uuid.as_deref() == Some(uuid))
                .map(|gpu| gpu.index)
        };
        self.change_run(name, |record| match record.apply_report(report, index_of) {
            RecordChange::Began => self.add_event(record, EventKind::RunBegan),
            RecordChange::Step => self.add_event(record, EventKind::RunStep),
            RecordChange::Other => {}
        });
        Ok(())
    }

    /// Ends a run. If the run has reported an exit code, the code determines its status. Otherwise,
    /// `status` and `why` are used.
    pub(crate) fn end_run(&self, name: &str, status: RunStatus, why: Option<String>) {
        self.change_run(name, |record| {
            let (status, why) = match record.state.code {
                Some(0) => (RunStatus::Done, None),
                Some(130) => (RunStatus::Canceled, None),
                Some(_) => (RunStatus::Failed, why.filter(|_| !record.has_failure())),
                None => (status, why),
            };
            record.end_run(status, why);
            if record.has_reported_devices() {
                self.add_event(record, EventKind::RunEnded);
            }
        });
    }

    pub(crate) fn has_reported_its_end(&self, name: &str) -> bool {
        self.lock()
            .find(name)
            .is_some_and(|entry| entry.record.state.code.is_some())
    }

    /// Requests the end of a run, and returns its state. Returns `None` if no run has this name.
    pub(crate) fn cancel(&self, name: &str) -> Option<RunState> {
        let mut table = self.lock();
        let entry = table.find(name)?;
        if let Some(stop) = entry.stop.as_ref().filter(|_| entry.record.is_running()) {
            stop.request_stop();
        }
        Some(entry.record.state.clone())
    }

    /// Waits until no worker process is running, but not longer than `at_most`. The workers stop
    /// because the server is shutting down.
    pub(crate) async fn wait_for_workers(&self, at_most: Duration) {
        let is_working = || {
            self.lock()
                .entries
                .iter()
                .any(|entry| entry.stop.is_some() && entry.record.is_running())
        };
        let deadline = Instant::now() + at_most;
        while is_working() && Instant::now() < deadline {
            sleep(END_CHECK_INTERVAL).await;
        }
    }

    pub(crate) fn list_states(&self) -> Vec<RunState> {
        self.lock()
            .entries
            .iter()
            .rev()
            .map(|entry| entry.record.state.clone())
            .collect()
    }

    pub(crate) fn find_details(&self, name: &str) -> Option<RunDetails> {
        self.lock().find(name).map(|entry| entry.record.details())
    }

    /// Returns a channel with the number of the last change.
    pub(crate) fn subscribe_changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns frames of the runs that have changed since the change number `change`.
    pub(crate) fn changed_run_frames(&self, change: u64) -> Vec<TextFrame> {
        let table = self.lock();
        let changed = table.entries.iter().filter(|entry| entry.changed > change);
        changed
            .map(|entry| encode(&ServerFrame::Run(entry.record.state.clone())))
            .collect()
    }

    fn add_run(
        &self,
        mut table: MutexGuard<'_, RunTable>,
        state: RunState,
        stop: Option<Arc<StopRequest>>,
    ) {
        table.changes += 1;
        let changed = table.changes;
        table.entries.push_back(RunEntry {
            record: RunRecord::new(state),
            changed,
            stop,
        });
        self.changed.send_replace(changed);
    }

    /// Changes a run that is in progress. Events are sent while the lock is held, so that they stay
    /// in order.
    fn change_run(&self, name: &str, change: impl FnOnce(&mut RunRecord)) {
        let mut table = self.lock();
        let number = table.changes + 1;
        let Some(entry) = table.find(name).filter(|entry| entry.record.is_running()) else {
            return;
        };
        change(&mut entry.record);
        entry.changed = number;
        table.changes = number;
        table.remove_oldest_ended();
        self.changed.send_replace(number);
    }

    /// Adds an event for each GPU of the run, or a single event for the host if the run uses no
    /// GPU.
    fn add_event(&self, record: &RunRecord, what: impl Fn(Run) -> EventKind) {
        let at_ms = now_ms();
        let devices = &record.state.devices;
        let on = |index: u32| devices.iter().any(|device| device.index == Some(index));
        let gpus: Vec<_> = self
            .hub
            .gpus()
            .into_iter()
            .filter(|gpu| on(gpu.index))
            .map(Some)
            .collect();
        for gpu in if gpus.is_empty() { vec![None] } else { gpus } {
            self.hub.add_event(Event {
                at_ms,
                gpu,
                what: what(record.to_event_run()),
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, RunTable> {
        lock::lock(&self.table)
    }
}

impl RunTable {
    fn find(&mut self, name: &str) -> Option<&mut RunEntry> {
        self.entries
            .iter_mut()
            .find(|entry| entry.record.state.run == name)
    }

    /// Removes the oldest ended run if there are more than the limit.
    fn remove_oldest_ended(&mut self) {
        let is_over = |entry: &RunEntry| !entry.record.is_running();
        if self.entries.iter().filter(|entry| is_over(entry)).count() > MAX_ENDED_RUNS
            && let Some(oldest) = self.entries.iter().position(is_over)
        {
            self.entries.remove(oldest);
        }
    }
}

struct RunListener {
    runs: Arc<Runs>,
    name: String,
    stop: Arc<StopRequest>,
    server_stopped: watch::Receiver<bool>,
}

impl Listener for RunListener {
    type Error = String;

    fn on_line(&mut self, _: &str, line: Result<ReportLine, InvalidReport>) -> Result<(), String> {
        self.runs.process_report(&self.name, line)
    }

    fn on_tick(&mut self) -> Option<StopReason> {
        let server_stops = self
            .server_stopped
            .borrow()
            .then_some(StopReason::ParentEnds);
        server_stops.or_else(|| self.stop.reason())
    }
}

/// Returns the status of a run whose process ended without reporting an exit code.
fn exit_status(
    end: Result<WorkerEnd, WorkerError<String>>,
    limit: Duration,
) -> (RunStatus, Option<String>) {
    let end = match end {
        Ok(end) => end,
        Err(WorkerError::Listener(why)) => return (RunStatus::Failed, Some(why)),
        Err(error) => return (RunStatus::Failed, Some(error.to_string())),
    };
    let Some(status) = end.status else {
        let why = "the process of the run cannot be killed: it is stuck in the driver";
        return (RunStatus::Failed, Some(why.to_owned()));
    };
    match end.stopped {
        Some(StopReason::Canceled) => (RunStatus::Canceled, None),
        Some(StopReason::ParentEnds) => (
            RunStatus::Canceled,
            Some("the server was stopped".to_owned()),
        ),
        Some(StopReason::TimeLimit) => {
            let seconds = limit.as_secs();
            (
                RunStatus::Failed,
                Some(format!("the run exceeded its time limit of {seconds} s")),
            )
        }
        None => {
            let line = end
                .last_error_line
                .map(|line| clean_text(line.trim_start_matches("gpumon: "), MAX_LAST_LINE_CHARS));
            let line = line.map_or_else(
                || " without an error message".to_owned(),
                |line| format!(": {line}"),
            );
            (
                RunStatus::Failed,
                Some(format!("the process of the run ended ({status}){line}")),
            )
        }
    }
}

/// The minimum time between two updates. Progress is only displayed, so the states in between can
/// be skipped.
const MIN_UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// One client's position in the sequence of changes to runs. The client first receives a frame for
/// each known run, and then one for every change. If there are too many changes, it receives only
/// the newest states.
pub(crate) struct RunFollower {
    runs: Arc<Runs>,
    changes: watch::Receiver<u64>,
    seen: u64,
    not_before: Instant,
}

impl RunFollower {
    pub(crate) fn new(runs: &Arc<Runs>) -> Self {
        Self {
            runs: Arc::clone(runs),
            changes: runs.subscribe_changes(),
            seen: 0,
            not_before: Instant::now(),
        }
    }

    /// Waits until a run has changed, and returns a frame for each changed run. If the future is
    /// canceled, no change is lost.
    pub(crate) async fn wait_for_changed_runs(&mut self) -> Vec<TextFrame> {
        sleep_until(self.not_before).await;
        // Waiting fails only if the sender is dropped. This is impossible, because `self` owns the
        // runs.
        let _ = self.changes.wait_for(|change| *change > self.seen).await;
        let change = *self.changes.borrow_and_update();
        let frames = self.runs.changed_run_frames(self.seen);
        self.seen = change;
        self.not_before = Instant::now() + MIN_UPDATE_INTERVAL;
        frames
    }
}

/// The maximum run time that a client may request for a job, in seconds.
pub(crate) const MAX_RUN_S: f64 = 24.0 * 60.0 * 60.0;
/// The keys in a job whose values are durations that the client requests, in seconds.
pub(crate) const TIME_KEYS: [&str; 2] = ["seconds", "hold_seconds"];
/// The maximum number of characters in the title of a job, which consists of workload names.
const MAX_TITLE_CHARS: usize = 80;

/// Returns the title that a job has until its process reports one.
fn job_title(job: &Job) -> String {
    clean_text(&job.title(), MAX_TITLE_CHARS)
}

/// Returns the time limit of a job.
///
/// # Errors
/// Returns an error with the valid times if the job requests too long a time.
fn job_time_limit(job: &Job) -> Result<Duration, String> {
    let [of_burn, of_oom] = TIME_KEYS;
    let (key, seconds) = match job {
        Job::Burn(burn) => (of_burn, burn.seconds),
        Job::Oom(oom) => (of_oom, oom.hold_seconds),
        Job::Bench(_) | Job::Tutorials(_) | Job::Selftest(_) => return Ok(job.default_time_limit()),
    };
    if (0.0..=MAX_RUN_S).contains(&seconds) {
        return Ok(job.default_time_limit());
    }
    Err(format!(
        "\"{key}\": {seconds} is not a valid run time; use 0 to {MAX_RUN_S} s"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_job(json: &str) -> Job {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn job_with_excessive_duration_is_refused() {
        let usual = job_time_limit(&parse_job(r#"{"kind":"bench"}"#)).unwrap();
        assert_eq!(
            job_time_limit(&parse_job(r#"{"kind":"burn","seconds":90}"#)),
            Ok(usual + Duration::from_secs(90))
        );
        for seconds in ["-1", "86401", "1e308"] {
            let error = job_time_limit(&parse_job(&format!(
                r#"{{"kind":"oom","hold_seconds":{seconds}}}"#
            )))
            .unwrap_err();
            assert!(
                error.contains("hold_seconds") && error.contains("86400"),
                "{error}"
            );
        }
    }

    #[test]
    fn title_has_no_control_characters() {
        assert_eq!(
            job_title(&parse_job(r#"{"kind":"oom","scenario":"fill\u001b"}"#)),
            "fill "
        );
    }
}
