//! The event loop of `gpumon measure`, which handles requests and records in order and sends
//! pending responses.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    io,
    os::unix::process::parent_id,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender},
    time::{Duration, Instant},
};

use gpumon_history::span::HistoryQuery;
use gpumon_probe::model::{CostMark, Inventory, Mark, Record, Sample, StoredCost, now_ms};
use rustix::{
    io::Errno,
    process::{Pid, test_kill_process},
};
use serde_json::json;

use super::{
    Measurement, Measurements, Request, StreamInterval, add_measurement,
    describe_unknown_measurement, list_meters, parse_id, send_error, send_response, write_line,
};
use crate::{
    background::spawn_detached_thread,
    child_processes::ProcessTree,
    commands::{mark::MarkForwarder, run::SAMPLING_INTERVAL},
    exit::{Failure, Result},
    feed::{Feed, Input},
    local_server::{NoServerError, ServerArgs},
    options::SourceArgs,
};

/// The sampling interval while no measurement is running. Sampling continues because a new
/// measurement needs the memory in use just before its start.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// After a measurement, keep the short sampling interval for this duration, because another
/// measurement is likely to follow.
const REPEAT_WINDOW: Duration = Duration::from_secs(10);

/// The maximum age, in milliseconds, of records that are kept for measurements that start later.
/// Such a measurement also needs the last records before its start, because each record covers the
/// time since the previous record.
const MAX_KEPT_RECORD_AGE_MS: u64 = 2_500;

/// The interval at which pending requests are checked while there are no events.
const TICK_INTERVAL: Duration = Duration::from_millis(250);

pub(super) enum SessionEvent {
    /// A line of input, which may be invalid.
    Request(Vec<u8>),
    EndOfRequests,
    Opened(Result<Feed<Self>>),
    Fed(Input),
}

impl From<Input> for SessionEvent {
    fn from(input: Input) -> Self {
        Self::Fed(input)
    }
}

pub(super) struct Session {
    source: SourceArgs,
    server: ServerArgs,
    forwarder: MarkForwarder,
    happenings: SyncSender<SessionEvent>,
    feed: Option<Feed<SessionEvent>>,
    interval: Duration,
    /// The last time at which any measurement was running.
    measured: Option<Instant>,
    /// The reason why readings are missing, if any.
    problem: Option<String>,
    inventory: Option<Inventory>,
    sample: Option<Sample>,
    /// Recent records, each with its time in milliseconds since 1970.
    recent: VecDeque<(u64, Record)>,
    measurements: Measurements,
    trees: HashMap<u32, ProcessTree>,
    /// Pending requests for a cost: the request's ID and the measurement's number.
    waiting_for_cost: Vec<(u64, u64)>,
    waiting_for_sample: Vec<u64>,
    /// The interval of streamed samples, and the time of the last streamed sample, in milliseconds.
    stream: Option<(u32, u64)>,
}

impl Session {
    pub(super) fn new(
        source: &SourceArgs,
        server: &ServerArgs,
        happenings: SyncSender<SessionEvent>,
    ) -> Self {
        Self {
            source: source.clone(),
            server: server.clone(),
            forwarder: MarkForwarder::new(server),
            happenings,
            feed: None,
            interval: SAMPLING_INTERVAL,
            measured: Some(Instant::now()),
            problem: None,
            inventory: None,
            sample: None,
            recent: VecDeque::new(),
            measurements: Measurements::new(),
            trees: HashMap::from([(parent_id(), ProcessTree::new(parent_id()))]),
            waiting_for_cost: Vec::new(),
            waiting_for_sample: Vec::new(),
            stream: None,
        }
    }

    /// Opens the source of readings in the background.
    pub(super) fn start_reading(&self) -> io::Result<()> {
        let happenings = self.happenings.clone();
        Feed::start_in_background(
            &self.source,
            &self.server,
            SAMPLING_INTERVAL,
            happenings,
            SessionEvent::Opened,
        )
    }

    /// Handles events until the input ends.
    pub(super) fn run_loop(&mut self, waiting: &Receiver<SessionEvent>) -> Result {
        loop {
            match waiting.recv_timeout(TICK_INTERVAL) {
                Ok(SessionEvent::Request(line)) => self.handle_request(&line),
                Ok(SessionEvent::Opened(Ok(feed))) => self.feed = Some(feed),
                Ok(
                    SessionEvent::Opened(Err(failure)) | SessionEvent::Fed(Input::Failed(failure)),
                ) => {
                    self.record_failure(&failure);
                }
                Ok(SessionEvent::Fed(input)) => self.handle_input(input),
                Ok(SessionEvent::EndOfRequests) | Err(RecvTimeoutError::Disconnected) => {
                    self.forwarder.wait_for_queued_marks();
                    return Ok(());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.respond_to_pending_requests();
            self.adjust_sampling_interval();
        }
    }

    fn handle_request(&mut self, line: &[u8]) {
        let request: Request = match serde_json::from_slice(line) {
            Ok(request) => request,
            Err(error) => return refuse_invalid_request(line, &error),
        };
        let Request { id, at_ms, .. } = request;
        let at_ms = at_ms.unwrap_or_else(|| now_ms() as f64);
        if let Some(number) = request.begin {
            self.begin_measurement(
                number,
                request.name,
                request.pid.unwrap_or_else(parent_id),
                at_ms,
            );
        } else if let Some(number) = request.end {
            match self.measurements.get_mut(&number) {
                Some(measurement) => measurement.set_end_time(at_ms),
                None => send_error(id, &describe_unknown_measurement(number)),
            }
        } else if let Some(number) = request.cost {
            self.waiting_for_cost.push((id.unwrap_or_default(), number));
        } else if let Some(number) = request.forget {
            self.measurements.remove(&number);
        } else if let Some(text) = request.mark {
            self.add_mark(id, &text, at_ms);
        } else if request.snapshot.is_some() {
            self.waiting_for_sample.push(id.unwrap_or_default());
        } else if let Some(stream) = request.stream {
            self.stream = match stream {
                StreamInterval::EveryMs(interval_ms) => Some((interval_ms, 0)),
                StreamInterval::Never => None,
            };
        } else if let Some(history) = request.history {
            request_history(self.server.clone(), id, history);
        } else {
            send_error(
                id,
                "the request contains no command: valid commands are begin, end, cost, forget, \
                 mark, snapshot, stream and history",
            );
        }
    }

    fn begin_measurement(&mut self, number: u64, name: Option<String>, root: u32, at_ms: f64) {
        let mut measurement = Measurement::new(name, root, at_ms);
        if !self.trees.contains_key(&root) {
            // The trees of finished measurements are dropped, because their PIDs may be reused. The
            // tree of the client is kept, because it has recorded orphans that could not be found
            // again: their parents have ended.
            let measured: BTreeSet<u32> = self
                .measurements
                .values()
                .filter_map(Measurement::unfinished_tree_root)
                .collect();
            self.trees
                .retain(|known, _| *known == parent_id() || measured.contains(known));
        }
        let tree = self
            .trees
            .entry(root)
            .or_insert_with(|| ProcessTree::new(root));
        for (_, record) in &self.recent {
            measurement.add_record(record, tree);
        }
        if let Some(meter) = &mut measurement.meter {
            if let Some(problem) = &self.problem {
                meter.add_missing_data_note(problem);
            }
            if !process_exists(root) {
                meter.add_missing_data_note(&format!(
                    "there is no process {root}; use the PID of a running process"
                ));
            }
        }
        add_measurement(&mut self.measurements, number, measurement);
        self.measured = Some(Instant::now());
    }

    fn add_mark(&mut self, id: Option<u64>, text: &str, at_ms: f64) {
        let mark = match Mark::parse_text(text) {
            Ok(text) => CostMark {
                at_ms: at_ms as u64,
                text,
            },
            Err(why) => return send_error(id, &why),
        };
        list_meters(&mut self.measurements).for_each(|meter| meter.add_mark(mark.clone()));
        if !self.source.no_daemon {
            self.forwarder.queue_mark(&mark);
        }
    }

    fn handle_input(&mut self, input: Input) {
        match input {
            Input::Record { text, at_ms, .. } => {
                if let Ok(record) = Record::decode(&text) {
                    self.handle_record(record, at_ms);
                }
            }
            Input::Remark(remark) => self.send_remark(&remark),
            Input::NoReadings(problem) => {
                self.send_remark(&problem);
                self.problem = Some(problem);
            }
            Input::ServerEnded => {
                let continued = self
                    .feed
                    .as_mut()
                    .map(|feed| feed.continue_without_server(self.interval));
                if let Some(Err(failure)) = continued {
                    self.record_failure(&failure);
                }
            }
            // Missed samples need no handling here, because a meter detects a gap by comparing the
            // times of the samples.
            Input::Missed(_) | Input::Failed(_) | Input::Stop => {}
        }
    }

    fn handle_record(&mut self, record: Record, at_ms: u64) {
        match &record {
            Record::Inventory(inventory) => self.inventory = Some(inventory.clone()),
            Record::Sample(sample) => {
                self.problem = None;
                self.trees
                    .values_mut()
                    .for_each(ProcessTree::find_new_members);
                self.stream_sample(sample);
                self.sample = Some(sample.clone());
            }
            _ => {}
        }
        for measurement in self.measurements.values_mut() {
            if let Some(tree) = measurement
                .unfinished_tree_root()
                .and_then(|root| self.trees.get_mut(&root))
            {
                measurement.add_record(&record, tree);
            }
        }
        self.recent.push_back((at_ms, record));
        while self
            .recent
            .front()
            .is_some_and(|(old_ms, _)| old_ms + MAX_KEPT_RECORD_AGE_MS < at_ms)
        {
            self.recent.pop_front();
        }
    }

    fn stream_sample(&mut self, sample: &Sample) {
        let Some((interval_ms, last_ms)) = &mut self.stream else {
            return;
        };
        // Samples may arrive slightly early, so half a sampling interval is tolerated.
        if sample.at_ms + SAMPLING_INTERVAL.as_millis() as u64 / 2
            >= *last_ms + u64::from(*interval_ms)
        {
            *last_ms = sample.at_ms;
            write_line(&json!({ "sample": sample }));
        }
    }

    /// Sends a remark to the client and records it in all measurements.
    fn send_remark(&mut self, remark: &str) {
        write_line(&json!({ "remark": remark }));
        self.record_missing_data(remark);
    }

    /// Records in all unfinished measurements that readings are missing.
    fn record_missing_data(&mut self, why: &str) {
        list_meters(&mut self.measurements).for_each(|meter| meter.add_missing_data_note(why));
    }

    fn record_failure(&mut self, failure: &Failure) {
        let problem = failure.describe_read_failure();
        write_line(&json!({ "failed": problem }));
        self.record_missing_data(&problem);
        self.problem = Some(problem);
    }

    fn respond_to_pending_requests(&mut self) {
        let gpus = self
            .inventory
            .as_ref()
            .map(|inventory| &inventory.gpus[..])
            .unwrap_or_default();
        let is_over = self.problem.is_some();
        self.measurements
            .values_mut()
            .for_each(|measurement| measurement.finish_if_due(gpus, is_over));
        self.waiting_for_cost.retain(|(id, number)| {
            let Some(measurement) = self.measurements.get_mut(number) else {
                send_error(Some(*id), &describe_unknown_measurement(*number));
                return false;
            };
            if measurement.find_deadline().is_some() {
                return true;
            }
            let cost = measurement.calculate_cost(now_ms() as f64, gpus);
            send_response(
                Some(*id),
                json!({ "cost": cost, "stored": StoredCost::from_cost(&cost) }),
            );
            false
        });
        if let (Some(inventory), Some(sample)) = (&self.inventory, &self.sample) {
            for id in self.waiting_for_sample.drain(..) {
                send_response(
                    Some(id),
                    json!({ "snapshot": { "inventory": inventory, "sample": sample } }),
                );
            }
        } else if let Some(problem) = &self.problem {
            self.waiting_for_sample
                .drain(..)
                .for_each(|id| send_error(Some(id), problem));
        }
    }

    /// Chooses a short sampling interval during measurements and streams, and a long one otherwise.
    fn adjust_sampling_interval(&mut self) {
        if self.measurements.values().any(Measurement::is_running) {
            self.measured = Some(Instant::now());
        }
        let is_measured = self
            .measured
            .is_some_and(|measured| measured.elapsed() < REPEAT_WINDOW);
        let streamed = self.stream.map_or(IDLE_INTERVAL, |(interval_ms, _)| {
            Duration::from_millis(interval_ms.into())
        });
        let wanted = if is_measured {
            SAMPLING_INTERVAL
        } else {
            streamed.clamp(SAMPLING_INTERVAL, IDLE_INTERVAL)
        };
        if wanted != self.interval
            && let Some(feed) = &mut self.feed
        {
            self.interval = wanted;
            feed.set_interval(wanted);
        }
    }
}

/// The maximum number of bytes of an invalid request that are quoted in the response.
const MAX_QUOTED_BYTES: usize = 200;

/// Responds to an invalid request immediately, because the client may be waiting.
fn refuse_invalid_request(line: &[u8], error: &serde_json::Error) {
    let quoted = String::from_utf8_lossy(&line[..line.len().min(MAX_QUOTED_BYTES)]);
    let why = format!(
        "the gpumon executable cannot parse this request: {error}: {quoted}; reinstall gpumon if \
         the versions of its Python package and its executable differ"
    );
    match parse_id(line) {
        Ok(id) => send_error(id, &why),
        // A line that is not a JSON object has no request ID, so the report has no ID either.
        Err(_) => write_line(&json!({ "error": why })),
    }
}

/// Returns `true` if a process with this PID exists, even if it belongs to another user.
fn process_exists(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

/// Requests history on a new thread, because the server may have to read its disk.
fn request_history(server: ServerArgs, id: Option<u64>, history: HistoryQuery) {
    let work = move || {
        let asked = server
            .connect()
            .map_err(|error: NoServerError| error.to_string())
            .and_then(|server| {
                server
                    .send_get_request(&format!("/api/v1/{}", history.request_target()))
                    .map_err(|error| {
                        format!("the server does not respond: {error}; restart the server")
                    })
            });
        let read = asked.and_then(|asked| match asked.status {
            200 => serde_json::from_str::<serde_json::Value>(&asked.body)
                .map_err(|error| error.to_string()),
            _ => Err(asked.body.trim().to_owned()),
        });
        match read {
            Ok(span) => send_response(id, json!({ "history": span })),
            Err(why) => send_error(id, &why),
        }
    };
    if spawn_detached_thread("history", work).is_err() {
        send_error(
            id,
            "cannot start a thread for the request to the server; end other programs",
        );
    }
}
