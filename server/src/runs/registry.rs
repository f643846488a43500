//! The runs that are known: those that go on, and the last that did.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gpumon_probe::model::{Event, EventKind, Run, RunKind, RunStatus, now_ms};
use gpumon_workload::job::Job;
use tokio::sync::{Notify, watch};

use super::{
    RunSettings,
    demand::{kind_of, limit_of, title_of},
    record::{News, RunRecord},
    report::understand,
    state::{RunDetails, RunState},
    worker::{self, Because, End, Order},
};
use crate::{
    frame::ServerFrame,
    hub::{Hub, encode},
    stream::TextFrame,
};

/// Runs that are over and remembered.
const OVER: usize = 20;
/// Terminals that announce a run at the same time.
const ANNOUNCED: usize = 8;

/// All runs of this server.
pub(crate) struct Runs {
    settings: RunSettings,
    hub: Arc<Hub>,
    stopped: watch::Receiver<bool>,
    book: Mutex<Book>,
    /// The number of the last change.
    changed: watch::Sender<u64>,
}

/// The oldest run first.
#[derive(Default)]
struct Book {
    entries: VecDeque<Entry>,
    started: u64,
    changes: u64,
}

struct Entry {
    record: RunRecord,
    /// The number of its last change.
    changed: u64,
    /// Ends it; only of those that were started here.
    cancel: Option<Arc<Notify>>,
}

/// Why a run does not begin.
#[derive(Debug)]
pub(crate) enum NoRun {
    /// Another one goes on.
    Busy { run: String, title: String },
    /// There is one of this name.
    Known,
    /// Terminals announce more than anybody could follow.
    TooMany,
    /// The job asks for what no job may have.
    Unreasonable(String),
}

impl Runs {
    pub(crate) fn new(settings: RunSettings, hub: Arc<Hub>, stopped: watch::Receiver<bool>) -> Self {
        Self { settings, hub, stopped, book: Mutex::default(), changed: watch::Sender::new(0) }
    }

    pub(crate) fn settings(&self) -> &RunSettings {
        &self.settings
    }

    /// Has a process do the job.
    pub(crate) fn start(self: &Arc<Self>, job: &Job) -> Result<RunState, NoRun> {
        let limit = limit_of(job).map_err(NoRun::Unreasonable)?;
        let json = serde_json::to_string(job).expect("a job is made of strings and numbers");
        let cancelled = Arc::new(Notify::new());
        let mut book = self.lock();
        if let Some(busy) = book.entries.iter().find(|entry| entry.cancel.is_some() && entry.record.is_running()) {
            let RunState { run, title, .. } = busy.record.state.clone();
            return Err(NoRun::Busy { run, title });
        }
        book.started += 1;
        // No two have the same name, whatever server they were started by.
        let name = format!("{:x}-{}", now_ms(), book.started);
        let state = RunState::beginning(name.clone(), kind_of(job), title_of(job), true);
        self.add(book, state.clone(), Some(Arc::clone(&cancelled)));
        let runs = Arc::clone(self);
        let order = Order { job: json, limit, cancelled, stopped: self.stopped.clone() };
        tokio::spawn(async move {
            let end = worker::work(&runs.settings, order, |line| runs.tell(&name, line)).await;
            let (status, why) = how_it_ended(end, limit);
            runs.end(&name, status, why);
        });
        Ok(state)
    }

    /// A terminal announces a run of this name.
    pub(crate) fn announce(&self, name: &str) -> Result<(), NoRun> {
        let book = self.lock();
        if book.entries.iter().any(|entry| entry.record.state.run == name) {
            return Err(NoRun::Known);
        }
        let announced = book.entries.iter().filter(|entry| entry.cancel.is_none() && entry.record.is_running());
        if announced.count() >= ANNOUNCED {
            return Err(NoRun::TooMany);
        }
        self.add(book, RunState::beginning(name.to_owned(), RunKind::Other, String::new(), false), None);
        Ok(())
    }

    /// Takes in a line of the process that works. After the end, nothing is taken in any more.
    ///
    /// # Errors
    /// Where it is no report.
    pub(crate) fn tell(&self, name: &str, line: &str) -> Result<(), String> {
        let report = understand(line)?;
        let gpus = self.hub.gpus();
        let index_of = |uuid: &str| gpus.iter().find(|gpu| gpu.uuid.as_deref() == Some(uuid)).map(|gpu| gpu.index);
        self.change(name, |record| match record.take(report, index_of) {
            News::Began => self.happened(record, EventKind::RunBegan),
            News::Step => self.happened(record, EventKind::RunStep),
            News::None => {}
        });
        Ok(())
    }

    /// The run is over: as the code that it told says, and like this where it told none.
    pub(crate) fn end(&self, name: &str, status: RunStatus, why: Option<String>) {
        self.change(name, |record| {
            let (status, why) = match record.state.code {
                Some(0) => (RunStatus::Done, None),
                Some(130) => (RunStatus::Cancelled, None),
                Some(_) => (RunStatus::Failed, record.last_failure().or(why)),
                None => (status, why),
            };
            record.end(status, why);
            if record.has_begun() {
                self.happened(record, EventKind::RunEnded);
            }
        });
    }

    /// Whether a run has told the code with which it ended.
    pub(crate) fn has_told_its_end(&self, name: &str) -> bool {
        self.lock().find(name).is_some_and(|entry| entry.record.state.code.is_some())
    }

    /// Asks a run to end, and says how it is; `None` where there is no such run.
    pub(crate) fn cancel(&self, name: &str) -> Option<RunState> {
        let mut book = self.lock();
        let entry = book.find(name)?;
        if let Some(cancel) = entry.cancel.as_ref().filter(|_| entry.record.is_running()) {
            cancel.notify_one();
        }
        Some(entry.record.state.clone())
    }

    /// The newest first.
    pub(crate) fn all(&self) -> Vec<RunState> {
        self.lock().entries.iter().rev().map(|entry| entry.record.state.clone()).collect()
    }

    /// A run with all that has come of it.
    pub(crate) fn details(&self, name: &str) -> Option<RunDetails> {
        self.lock().find(name).map(|entry| entry.record.details())
    }

    /// The number of the last change, and each that follows.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The runs that have changed since this change, as frames.
    pub(crate) fn changed_since(&self, change: u64) -> Vec<TextFrame> {
        let book = self.lock();
        let changed = book.entries.iter().filter(|entry| entry.changed > change);
        changed.map(|entry| encode(&ServerFrame::Run(entry.record.state.clone()))).collect()
    }

    fn add(&self, mut book: MutexGuard<'_, Book>, state: RunState, cancel: Option<Arc<Notify>>) {
        book.changes += 1;
        let changed = book.changes;
        book.entries.push_back(Entry { record: RunRecord::new(state), changed, cancel });
        self.changed.send_replace(changed);
    }

    /// Changes a run that goes on. Events go out under the lock, and so in their order.
    fn change(&self, name: &str, change: impl FnOnce(&mut RunRecord)) {
        let mut book = self.lock();
        let number = book.changes + 1;
        let Some(entry) = book.find(name).filter(|entry| entry.record.is_running()) else { return };
        change(&mut entry.record);
        entry.changed = number;
        book.changes = number;
        book.forget();
        self.changed.send_replace(number);
    }

    /// Tells of it once for each GPU on which it works, or once for the machine.
    fn happened(&self, record: &RunRecord, what: impl Fn(Run) -> EventKind) {
        let at_ms = now_ms();
        let devices = &record.state.devices;
        let on = |index: u32| devices.iter().any(|device| device.index == Some(index));
        let gpus: Vec<_> = self.hub.gpus().into_iter().filter(|gpu| on(gpu.index)).map(Some).collect();
        for gpu in if gpus.is_empty() { vec![None] } else { gpus } {
            self.hub.happened(Event { at_ms, gpu, what: what(record.as_event()) });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn find(&mut self, name: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.record.state.run == name)
    }

    /// Forgets the oldest of those that are over, where there are more than are remembered.
    fn forget(&mut self) {
        let is_over = |entry: &Entry| !entry.record.is_running();
        if self.entries.iter().filter(|entry| is_over(entry)).count() > OVER
            && let Some(oldest) = self.entries.iter().position(is_over)
        {
            self.entries.remove(oldest);
        }
    }
}

/// What the end of its process means for a run that has not told its end itself.
fn how_it_ended(end: End, limit: Duration) -> (RunStatus, Option<String>) {
    match (end.broken, end.because) {
        (Some(why), _) => (RunStatus::Failed, Some(why)),
        (None, Some(Because::Cancelled)) => (RunStatus::Cancelled, None),
        (None, Some(Because::ServerStops)) => (RunStatus::Cancelled, Some("the server was stopped".to_owned())),
        (None, Some(Because::TimeLimit)) => {
            let seconds = limit.as_secs();
            (RunStatus::Failed, Some(format!("it took longer than {seconds} s, and its process was ended")))
        }
        (None, None) => {
            let status = end.status.map_or_else(|| "no exit status".to_owned(), |status| status.to_string());
            let words = end.last_words.map_or_else(|| " without a word".to_owned(), |words| format!(": {words}"));
            (RunStatus::Failed, Some(format!("its process ended ({status}){words}")))
        }
    }
}
