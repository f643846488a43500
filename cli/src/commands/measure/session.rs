//! The event loop of `gpumon measure`, which handles requests and records in their order and sends
//! pending answers.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    io,
    os::unix::process::parent_id,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender},
    time::{Duration, Instant},
};

use gpumon_history::plan::HistoryQuery;
use gpumon_probe::model::{CostMark, Inventory, Mark, Record, Sample, StoredCost, now_ms};
use rustix::{
    io::Errno,
    process::{Pid, test_kill_process},
};
use serde_json::json;

use super::{
    Measurement, Measurements, Request, Stream, parse_id, refuse, refuse_line, send_answer, write,
};
use crate::{
    background::spawn,
    commands::{mark::Forwarder, run::INTERVAL},
    exit::{Failure, Result},
    feed::{Feed, Input},
    local::{NoServer, ServerArgs},
    options::SourceArgs,
    process_tree::ProcessTree,
};

/// The sampling interval without a running measurement. A new measurement must know the memory in
/// use just before its start.
const IDLE: Duration = Duration::from_secs(1);

/// The time after a measurement during which another one is likely.
const MEASURES_AGAIN_WITHIN: Duration = Duration::from_secs(10);

/// The age up to which records are kept for new measurements, in milliseconds, because a record
/// also covers the time before it.
const REMEMBERED_MS: u64 = 2_500;

/// The interval at which pending requests are checked if nothing else happens.
const TICK: Duration = Duration::from_millis(250);

pub(super) enum Happening {
    /// A line of input, which may be an invalid request.
    Request(Vec<u8>),
    EndOfRequests,
    Opened(Result<Feed<Self>>),
    Fed(Input),
}

impl From<Input> for Happening {
    fn from(input: Input) -> Self {
        Self::Fed(input)
    }
}

/// The reason why readings are missing, if any.
type Problem = Option<String>;

pub(super) struct Session {
    source: SourceArgs,
    server: ServerArgs,
    forwarder: Forwarder,
    happenings: SyncSender<Happening>,
    feed: Option<Feed<Happening>>,
    interval: Duration,
    /// The last time at which a measurement was running.
    measured: Option<Instant>,
    problem: Problem,
    inventory: Option<Inventory>,
    sample: Option<Sample>,
    /// Recent records, with the times at which they arrived.
    recent: VecDeque<(u64, Record)>,
    measurements: Measurements,
    trees: HashMap<u32, ProcessTree>,
    /// Pending requests for a cost: the request's ID, and the number of the measurement.
    waiting_for_cost: Vec<(u64, u64)>,
    waiting_for_sample: Vec<u64>,
    /// The interval of streamed samples and the time of the last one, in milliseconds.
    stream: Option<(u32, u64)>,
}

impl Session {
    pub(super) fn new(
        source: &SourceArgs,
        server: &ServerArgs,
        happenings: SyncSender<Happening>,
    ) -> Self {
        Self {
            source: source.clone(),
            server: server.clone(),
            forwarder: Forwarder::new(server),
            happenings,
            feed: None,
            interval: INTERVAL,
            measured: Some(Instant::now()),
            problem: None,
            inventory: None,
            sample: None,
            recent: VecDeque::new(),
            measurements: Measurements::default(),
            trees: HashMap::from([(parent_id(), ProcessTree::new(parent_id()))]),
            waiting_for_cost: Vec::new(),
            waiting_for_sample: Vec::new(),
            stream: None,
        }
    }

    /// Starts reading the GPUs in the background.
    pub(super) fn open(&self) -> io::Result<()> {
        let happenings = self.happenings.clone();
        Feed::start_in_background(
            &self.source,
            &self.server,
            INTERVAL,
            happenings,
            Happening::Opened,
        )
    }

    /// Handles events until the input ends.
    pub(super) fn follow(&mut self, waiting: &Receiver<Happening>) -> Result {
        loop {
            match waiting.recv_timeout(TICK) {
                Ok(Happening::Request(line)) => self.on_request(&line),
                Ok(Happening::Opened(Ok(feed))) => self.feed = Some(feed),
                Ok(Happening::Opened(Err(failure)) | Happening::Fed(Input::Failed(failure))) => {
                    self.fail(&failure);
                }
                Ok(Happening::Fed(input)) => self.on_input(input),
                Ok(Happening::EndOfRequests) | Err(RecvTimeoutError::Disconnected) => {
                    self.forwarder.finish();
                    return Ok(());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.answer_what_waits();
            self.choose_interval();
        }
    }

    fn on_request(&mut self, line: &[u8]) {
        let request: Request = match serde_json::from_slice(line) {
            Ok(request) => request,
            Err(error) => return refuse_invalid(line, &error),
        };
        let Request { id, at_ms, .. } = request;
        let at_ms = at_ms.unwrap_or_else(|| now_ms() as f64);
        if let Some(number) = request.begin {
            self.begin(
                number,
                request.name,
                request.pid.unwrap_or_else(parent_id),
                at_ms,
            );
        } else if let Some(number) = request.end {
            match self.measurements.get(number) {
                Some(measurement) => measurement.end(at_ms),
                None => refuse(id, &Measurements::explain_missing(number)),
            }
        } else if let Some(number) = request.cost {
            self.waiting_for_cost.push((id.unwrap_or_default(), number));
        } else if let Some(number) = request.forget {
            self.measurements.forget(number);
        } else if let Some(text) = request.mark {
            self.mark(id, &text, at_ms);
        } else if request.snapshot.is_some() {
            self.waiting_for_sample.push(id.unwrap_or_default());
        } else if let Some(stream) = request.stream {
            self.stream = match stream {
                Stream::EveryMs(interval_ms) => Some((interval_ms, 0)),
                Stream::Never => None,
            };
        } else if let Some(history) = request.history {
            ask_for_history(self.server.clone(), id, history);
        } else {
            refuse(
                id,
                "a request says what it wants: begin, end, cost, forget, mark, snapshot, stream or history",
            );
        }
    }

    fn begin(&mut self, number: u64, name: Option<String>, root: u32, at_ms: f64) {
        let mut measurement = Measurement::new(name, root, at_ms);
        if !self.trees.contains_key(&root) {
            // Trees of finished measurements are dropped, because PIDs are reused. The client's own
            // tree is kept, because it knows orphans of processes that have ended.
            let measured: BTreeSet<u32> = self
                .measurements
                .all()
                .filter_map(|one| one.root())
                .collect();
            self.trees
                .retain(|known, _| *known == parent_id() || measured.contains(known));
        }
        let tree = self
            .trees
            .entry(root)
            .or_insert_with(|| ProcessTree::new(root));
        for (_, record) in &self.recent {
            measurement.push(record, tree);
        }
        if let Some(meter) = &mut measurement.meter {
            if let Some(problem) = &self.problem {
                meter.lose(problem);
            }
            if !is_process(root) {
                meter.lose(&format!(
                    "no such process: {root}; name the PID of a running process"
                ));
            }
        }
        self.measurements.add(number, measurement);
        self.measured = Some(Instant::now());
    }

    fn mark(&mut self, id: Option<u64>, text: &str, at_ms: f64) {
        let mark = match Mark::parse_text(text) {
            Ok(text) => CostMark {
                at_ms: at_ms as u64,
                text,
            },
            Err(why) => return refuse(id, &why),
        };
        self.measurements
            .list_meters()
            .for_each(|meter| meter.add_mark(mark.clone()));
        if self.asks_server() {
            self.forwarder.send(&mark);
        }
    }

    fn on_input(&mut self, input: Input) {
        match input {
            Input::Record { text, at_ms, .. } => {
                if let Ok(record) = Record::decode(&text) {
                    self.on_record(record, at_ms);
                }
            }
            Input::Remark(remark) => self.tell(&remark),
            Input::NoReadings(problem) => {
                self.tell(&problem);
                self.problem = Some(problem);
            }
            Input::ServerEnded => {
                let continued = self
                    .feed
                    .as_mut()
                    .map(|feed| feed.continue_without_server(self.interval));
                if let Some(Err(failure)) = continued {
                    self.fail(&failure);
                }
            }
            // Missed samples need no handling: meters detect gaps by the samples' times.
            Input::Missed(_) | Input::Failed(_) | Input::Stop => {}
        }
    }

    fn on_record(&mut self, record: Record, at_ms: u64) {
        match &record {
            Record::Inventory(inventory) => self.inventory = Some(inventory.clone()),
            Record::Sample(sample) => {
                self.problem = None;
                self.trees.values_mut().for_each(ProcessTree::remember);
                self.stream_sample(sample);
                self.sample = Some(sample.clone());
            }
            _ => {}
        }
        for measurement in self.measurements.all() {
            if let Some(tree) = measurement
                .root()
                .and_then(|root| self.trees.get_mut(&root))
            {
                measurement.push(&record, tree);
            }
        }
        self.recent.push_back((at_ms, record));
        while self
            .recent
            .front()
            .is_some_and(|(old_ms, _)| old_ms + REMEMBERED_MS < at_ms)
        {
            self.recent.pop_front();
        }
    }

    fn stream_sample(&mut self, sample: &Sample) {
        let Some((interval_ms, last_ms)) = &mut self.stream else {
            return;
        };
        // A sample may arrive slightly early.
        if sample.at_ms + INTERVAL.as_millis() as u64 / 2 >= *last_ms + u64::from(*interval_ms) {
            *last_ms = sample.at_ms;
            write(&json!({ "sample": sample }));
        }
    }

    /// Sends a remark to the client and records it in all measurements.
    fn tell(&mut self, remark: &str) {
        write(&json!({ "remark": remark }));
        self.measurements.record_loss(remark);
    }

    fn fail(&mut self, failure: &Failure) {
        let problem = failure.describe();
        write(&json!({ "failed": problem }));
        self.measurements.record_loss(&problem);
        self.problem = Some(problem);
    }

    fn answer_what_waits(&mut self) {
        let gpus = self
            .inventory
            .as_ref()
            .map(|inventory| &inventory.gpus[..])
            .unwrap_or_default();
        let is_over = self.problem.is_some();
        self.measurements
            .all()
            .for_each(|measurement| measurement.finish(gpus, is_over));
        self.waiting_for_cost.retain(|(id, number)| {
            let Some(measurement) = self.measurements.get(*number) else {
                refuse(Some(*id), &Measurements::explain_missing(*number));
                return false;
            };
            if measurement.find_deadline().is_some() {
                return true;
            }
            let cost = measurement.find_cost(now_ms() as f64, gpus);
            send_answer(
                Some(*id),
                json!({ "cost": cost, "stored": StoredCost::new(&cost) }),
            );
            false
        });
        if let (Some(inventory), Some(sample)) = (&self.inventory, &self.sample) {
            for id in self.waiting_for_sample.drain(..) {
                send_answer(
                    Some(id),
                    json!({ "snapshot": { "inventory": inventory, "sample": sample } }),
                );
            }
        } else if let Some(problem) = &self.problem {
            self.waiting_for_sample
                .drain(..)
                .for_each(|id| refuse(Some(id), problem));
        }
    }

    /// Chooses a short sampling interval during measurements and streams, and a long one otherwise.
    fn choose_interval(&mut self) {
        if self.measurements.is_any_running() {
            self.measured = Some(Instant::now());
        }
        let is_measured = self
            .measured
            .is_some_and(|measured| measured.elapsed() < MEASURES_AGAIN_WITHIN);
        let streamed = self.stream.map_or(IDLE, |(interval_ms, _)| {
            Duration::from_millis(interval_ms.into())
        });
        let wanted = if is_measured {
            INTERVAL
        } else {
            streamed.clamp(INTERVAL, IDLE)
        };
        if wanted != self.interval
            && let Some(feed) = &mut self.feed
        {
            self.interval = wanted;
            feed.set_interval(wanted);
        }
    }

    fn asks_server(&self) -> bool {
        !self.source.no_daemon
    }
}

/// The maximum number of bytes of an invalid request that the answer quotes.
const MAX_QUOTED_BYTES: usize = 200;

/// Answers an invalid request at once, because the client may wait for the answer.
fn refuse_invalid(line: &[u8], error: &serde_json::Error) {
    let quoted = String::from_utf8_lossy(&line[..line.len().min(MAX_QUOTED_BYTES)]);
    let why = format!(
        "the gpumon program cannot read this request: {error}: {quoted}; reinstall gpumon if the versions of its Python \
         package and its program differ"
    );
    match parse_id(line) {
        Ok(id) => refuse(id, &why),
        Err(_) => refuse_line(&why),
    }
}

/// Returns `true` if a process with this PID exists, even if it belongs to another user.
fn is_process(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

/// Requests history on a new thread, because the server may have to read its disk.
fn ask_for_history(server: ServerArgs, id: Option<u64>, history: HistoryQuery) {
    let work = move || {
        let asked = server
            .connect()
            .map_err(|error: NoServer| error.to_string())
            .and_then(|server| {
                server
                    .ask("GET", &format!("/api/v1/{}", history.target()))
                    .map_err(|error| format!("the server does not answer: {error}; restart it"))
            });
        let read = asked.and_then(|asked| match asked.status {
            200 => serde_json::from_str::<serde_json::Value>(&asked.body)
                .map_err(|error| error.to_string()),
            _ => Err(asked.body.trim().to_owned()),
        });
        match read {
            Ok(span) => send_answer(id, json!({ "history": span })),
            Err(why) => refuse(id, &why),
        }
    };
    if spawn("history", work).is_err() {
        refuse(
            id,
            "no thread could be started to ask the server; end other programs",
        );
    }
}
