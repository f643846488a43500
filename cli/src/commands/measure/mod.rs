//! `gpumon measure`: runs measurements for the Python package.
//!
//! Requests and responses are JSON objects, one per line, on standard input and output. The command
//! exits at the end of its input.

mod session;

use std::{
    collections::BTreeMap,
    io::{self, BufRead},
    sync::{
        Arc,
        atomic::AtomicBool,
        mpsc::{self, SyncSender},
    },
    time::{Duration, Instant},
};

use gpumon_history::span::HistoryQuery;
use gpumon_probe::{
    model::{Cost, Gpu, Record},
    usage::cost::CostMeter,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use signal_hook::{consts::SIGINT, flag};

use self::session::{Session, SessionEvent};
use crate::{
    background::spawn_detached_thread, child_processes::ProcessTree, exit::Result,
    local_server::ServerArgs, options::SourceArgs, terminal::output::print_json,
};

/// Measure processes on request, for the Python package
#[derive(Debug, clap::Args)]
pub(crate) struct MeasureArgs {
    #[command(flatten)]
    server: ServerArgs,
}

/// The maximum number of queued events.
const QUEUE_LENGTH: usize = 256;

pub(crate) fn run(source: &SourceArgs, args: &MeasureArgs) -> Result {
    source.source.check_scenario_file()?;
    // Ctrl-C is meant for the notebook's cell or the program in the terminal, so this process
    // catches SIGINT and does nothing.
    flag::register(SIGINT, Arc::new(AtomicBool::new(false)))?;
    let (happenings, waiting) = mpsc::sync_channel(QUEUE_LENGTH);
    let lines = happenings.clone();
    spawn_detached_thread("requests", move || forward_requests(&lines))?;
    let mut session = Session::new(source, &args.server, happenings);
    session.start_reading()?;
    session.run_loop(&waiting)
}

fn forward_requests(happenings: &SyncSender<SessionEvent>) {
    for line in io::stdin().lock().split(b'\n') {
        let Ok(line) = line else { break };
        if happenings.send(SessionEvent::Request(line)).is_err() {
            return;
        }
    }
    let _ = happenings.send(SessionEvent::EndOfRequests);
}

/// Writes a line of output. Errors are ignored, because they mean that the client has ended. The
/// input then ends as well, which stops this command.
fn write_line(line: &impl Serialize) {
    let _ = print_json(line);
}

/// Sends a response if the request has an ID.
fn send_response(id: Option<u64>, mut answer: Value) {
    if let (Some(id), Value::Object(parts)) = (id, &mut answer) {
        parts.insert("id".to_owned(), id.into());
        write_line(&answer);
    }
}

/// Sends an error as the response, or as a remark if the request has no ID.
fn send_error(id: Option<u64>, why: &str) {
    match id {
        Some(_) => send_response(id, json!({ "error": why })),
        None => write_line(&json!({ "remark": why })),
    }
}

/// A request from the client. Times are in milliseconds since 1970. The client assigns the numbers
/// of measurements.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// The ID, which is repeated in the response.
    id: Option<u64>,
    /// Starts the measurement with this number at `at_ms`. It covers the process `pid` and its
    /// descendants. If `pid` is missing, the parent of this process is measured.
    begin: Option<u64>,
    /// Ends the measurement with this number at `at_ms`.
    end: Option<u64>,
    /// Requests the result of the measurement with this number: a `Cost`, and a `StoredCost` for
    /// notebooks.
    cost: Option<u64>,
    /// Discards the measurement with this number. Its result is not needed.
    forget: Option<u64>,
    /// Adds a mark with this text at `at_ms`.
    mark: Option<String>,
    /// Requests the newest sample with the inventory.
    snapshot: Option<bool>,
    /// Starts a stream of samples at this interval in milliseconds; `null` stops the stream.
    #[serde(default, deserialize_with = "read_stream")]
    stream: Option<StreamInterval>,
    /// Requests a span of history from a running server.
    history: Option<HistoryQuery>,
    at_ms: Option<f64>,
    pid: Option<u32>,
    name: Option<String>,
}

/// The interval of streamed samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamInterval {
    EveryMs(u32),
    Never,
}

/// Deserializes the interval of the stream. `null` is distinguished from an absent key.
fn read_stream<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<StreamInterval>, D::Error> {
    let interval_ms = Option::deserialize(deserializer)?;
    Ok(Some(
        interval_ms.map_or(StreamInterval::Never, StreamInterval::EveryMs),
    ))
}

/// Returns the `id` of a request that is otherwise invalid.
///
/// # Errors
/// Returns an error if the line is not a JSON object.
fn parse_id(line: &[u8]) -> serde_json::Result<Option<u64>> {
    #[derive(Deserialize)]
    struct RequestId {
        id: Option<u64>,
    }
    serde_json::from_slice(line).map(|RequestId { id }| id)
}

/// The maximum number of measurements to keep. A loop with a thousand measured steps per second
/// exceeds the limit after 20 seconds. By then, the program has requested the results that it
/// needs.
const MAX_MEASUREMENTS: usize = 20_000;

/// The measurements, by number.
type Measurements = BTreeMap<u64, Measurement>;

/// Adds a measurement. If there are too many measurements, the oldest ones that have ended are
/// removed.
fn add_measurement(measurements: &mut Measurements, number: u64, measurement: Measurement) {
    measurements.insert(number, measurement);
    while measurements.len() > MAX_MEASUREMENTS
        && let Some(oldest) = measurements
            .iter()
            .find(|(_, one)| !one.is_running())
            .map(|(number, _)| *number)
    {
        measurements.remove(&oldest);
    }
}

/// Returns the meters of all unfinished measurements.
fn list_meters(measurements: &mut Measurements) -> impl Iterator<Item = &mut Box<CostMeter>> {
    measurements
        .values_mut()
        .filter_map(|one| one.meter.as_mut())
}

/// Returns the error message for an unknown measurement number.
fn describe_unknown_measurement(number: u64) -> String {
    format!(
        "measurement {number} is unknown: it never started, or was discarded because there were \
         more than {MAX_MEASUREMENTS} measurements"
    )
}

/// The maximum time to wait for traces, which are values that the driver itself has recorded. They
/// normally arrive within two seconds.
const MAX_RECORD_DELAY: Duration = Duration::from_secs(3);

struct Measurement {
    /// The meter; `None` once the measurement is finished.
    meter: Option<Box<CostMeter>>,
    /// The PID of the root of the measured process tree.
    root: u32,
    /// The time at which the measurement ended; `None` while it is running.
    ended: Option<Instant>,
    /// The result of a finished measurement.
    cost: Box<Cost>,
}

impl Measurement {
    fn new(name: Option<String>, root: u32, at_ms: f64) -> Self {
        Self {
            meter: Some(Box::new(CostMeter::new(name, at_ms))),
            root,
            ended: None,
            cost: Box::default(),
        }
    }

    fn is_running(&self) -> bool {
        self.ended.is_none()
    }

    /// Returns the root of the measured process tree, or `None` once the measurement is finished.
    fn unfinished_tree_root(&self) -> Option<u32> {
        self.meter.as_ref().map(|_| self.root)
    }

    fn set_end_time(&mut self, at_ms: f64) {
        if let (Some(meter), None) = (&mut self.meter, self.ended) {
            meter.end(at_ms);
            self.ended = Some(Instant::now());
        }
    }

    fn add_record(&mut self, record: &Record, tree: &mut ProcessTree) {
        if let Some(meter) = &mut self.meter {
            tree.add_to_meter(meter, record);
        }
    }

    /// Returns the time at which a measurement that has ended must be finished, even if records are
    /// missing. Returns `None` if the measurement has not ended or is already finished.
    fn find_deadline(&self) -> Option<Instant> {
        let ended = self.ended.filter(|_| self.meter.is_some());
        ended.map(|ended| ended + MAX_RECORD_DELAY)
    }

    /// Finishes an ended measurement if its result is complete or its deadline has passed.
    /// `is_over` means that no more records will arrive.
    fn finish_if_due(&mut self, gpus: &[Gpu], is_over: bool) {
        let Some(due) = self.find_deadline() else {
            return;
        };
        let is_done =
            |meter: &mut Box<CostMeter>| is_over || meter.is_final() || due <= Instant::now();
        if let Some(meter) = self.meter.take_if(is_done) {
            *self.cost = meter.into_cost(gpus);
        }
    }

    /// Returns the cost so far.
    fn calculate_cost(&mut self, now_ms: f64, gpus: &[Gpu]) -> Cost {
        match &mut self.meter {
            Some(meter) => meter.current_cost(now_ms, gpus),
            None => (*self.cost).clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_requests_are_parsed() {
        let read = |text| serde_json::from_str::<Request>(text).unwrap();
        let begin = read(r#"{"begin": 7, "at_ms": 1790000000000.1, "name": "train", "pid": 1234}"#);
        assert_eq!(
            (begin.begin, begin.pid, begin.name.as_deref()),
            (Some(7), Some(1234), Some("train"))
        );
        assert_eq!(
            read(r#"{"stream": 500}"#).stream,
            Some(StreamInterval::EveryMs(500))
        );
        assert_eq!(
            read(r#"{"stream": null}"#).stream,
            Some(StreamInterval::Never)
        );
        assert_eq!(read(r#"{"forget": 1}"#).stream, None);
        let history =
            read(r#"{"id": 3, "history": {"from_ms": 5, "metrics": "a,b&c", "points": 600}}"#)
                .history;
        assert_eq!(
            history.unwrap().request_target(),
            "history?from_ms=5&metrics=a%2Cb%26c&points=600"
        );
        let error = serde_json::from_str::<Request>(r#"{"began": 7}"#)
            .unwrap_err()
            .to_string();
        assert!(error.contains("unknown field `began`"), "{error}");
    }

    #[test]
    fn invalid_request_keeps_its_id() {
        let invalid = [
            r#"{"id": 3, "history": {"points": 2.5}}"#,
            r#"{"history": {"points": -1}, "id": 3}"#,
            r#"{"id": 3, "unheard of": [1, {"id": 4}]}"#,
            r#"{"id": 3, "mark": "\udce9"}"#,
        ];
        for line in invalid {
            assert!(serde_json::from_str::<Request>(line).is_err(), "{line}");
            assert_eq!(parse_id(line.as_bytes()).unwrap(), Some(3), "{line}");
        }
        assert_eq!(
            parse_id(br#"{"begin": 7, "pid": 1099511627776}"#).unwrap(),
            None
        );
        for line in [
            &b"{"[..],
            b"Segmentation fault",
            br#"{"id": 3, "from_ms": NaN}"#,
            b"{\"id\": 3, \xff}",
        ] {
            assert!(parse_id(line).is_err(), "{}", line.escape_ascii());
        }
    }
}
