//! What happens, in its order: requests, records, and answers to what waited for them.

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

/// While nothing is measured: often enough to know what was held before.
const IDLE: Duration = Duration::from_secs(1);

/// Who has measured once often does so again.
const MEASURES_AGAIN_WITHIN: Duration = Duration::from_secs(10);

/// Records of this time are remembered for measurements that begin: what comes next tells of the
/// time before, too.
const REMEMBERED_MS: u64 = 2_500;

/// How often what waits is looked at, where nothing else happens.
const TICK: Duration = Duration::from_millis(250);

pub(super) enum Happening {
    /// A line, which may be an invalid request.
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

/// Why there are no readings, where that is so.
type Problem = Option<String>;

pub(super) struct Session {
    source: SourceArgs,
    server: ServerArgs,
    forwarder: Forwarder,
    happenings: SyncSender<Happening>,
    feed: Option<Feed<Happening>>,
    interval: Duration,
    /// When something was measured last.
    measured: Option<Instant>,
    problem: Problem,
    inventory: Option<Inventory>,
    sample: Option<Sample>,
    /// The newest records, and when they came.
    recent: VecDeque<(u64, Record)>,
    measurements: Measurements,
    trees: HashMap<u32, ProcessTree>,
    /// Requests that wait for a measurement's end, and for the first sample.
    waiting_for_cost: Vec<(u64, u64)>,
    waiting_for_sample: Vec<u64>,
    /// How often samples are wanted, and when the last one was.
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

    /// Begins to read the GPUs, for which nobody waits.
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

    /// Does what is asked until nobody asks any more.
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
            // PIDs are used again. The client's own tree stays: it knows what parents that have
            // ended left behind.
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
            // What is missing between two samples is told by their times.
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
        // A tick may come a little early.
        if sample.at_ms + INTERVAL.as_millis() as u64 / 2 >= *last_ms + u64::from(*interval_ms) {
            *last_ms = sample.at_ms;
            write(&json!({ "sample": sample }));
        }
    }

    /// Something is not as it should be, and whoever measures is told.
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

    /// Samples come often where something is measured or streamed, and rarely else.
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

/// The most bytes of an invalid request that the answer repeats.
const MAX_QUOTED_BYTES: usize = 200;

/// Answers an invalid request at once, because its sender may wait for the answer.
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

/// Returns `true` if there is a process with this PID, even one of another user.
fn is_process(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

/// The server may read its disk for it, for which the readings do not wait.
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
