//! `gpumon measure`: measures what programs ask for, on behalf of the Python package.
//!
//! Requests and answers are JSON objects, one a line, on standard input and output. It ends with
//! its input.

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

use gpumon_history::plan::HistoryQuery;
use gpumon_probe::{
    model::{Cost, Gpu, Record},
    usage::cost::CostMeter,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use signal_hook::{consts::SIGINT, flag};

use self::session::{Happening, Session};
use crate::{
    background::spawn, exit::Failure, local::ServerArgs, options::SourceArgs,
    process_tree::ProcessTree, terminal::output::print_json,
};

/// Measure processes on request, for the Python package
#[derive(Debug, clap::Args)]
pub(crate) struct MeasureArgs {
    #[command(flatten)]
    server: ServerArgs,
}

/// So much may wait to be measured.
const WAITING: usize = 256;

pub(crate) fn run(source: &SourceArgs, args: &MeasureArgs) -> Result<(), Failure> {
    source.source.check()?;
    // Who interrupts a notebook's cell, or a program in a terminal, does not mean this.
    flag::register(SIGINT, Arc::new(AtomicBool::new(false)))?;
    let (happenings, waiting) = mpsc::sync_channel(WAITING);
    let lines = happenings.clone();
    spawn("requests", move || read(&lines))?;
    let mut session = Session::new(source, &args.server, happenings);
    session.open()?;
    session.follow(&waiting)
}

fn read(happenings: &SyncSender<Happening>) {
    for line in io::stdin().lock().split(b'\n') {
        let Ok(line) = line else { break };
        if happenings.send(Happening::Request(line)).is_err() {
            return;
        }
    }
    let _ = happenings.send(Happening::EndOfRequests);
}

/// Writes a line. An error means that the client has ended, which also ends the input.
fn write(line: &impl Serialize) {
    let _ = print_json(line);
}

/// Answers a request that wants an answer.
fn send_answer(id: Option<u64>, mut answer: Value) {
    if let (Some(id), Value::Object(parts)) = (id, &mut answer) {
        parts.insert("id".to_owned(), id.into());
        write(&answer);
    }
}

/// Reports a line that is no request. It is not known who waits for its answer.
fn refuse_line(why: &str) {
    write(&json!({ "error": why }));
}

/// Answers a request with an error, or reports the error as a remark if the request wants no
/// answer.
fn refuse(id: Option<u64>, why: &str) {
    match id {
        Some(_) => send_answer(id, json!({ "error": why })),
        None => write(&json!({ "remark": why })),
    }
}

/// A request. Times are in milliseconds since 1970; numbers of measurements are the client's own.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// The answer has it, too.
    id: Option<u64>,
    /// Measures from `at_ms` on: the process `pid`, by default the one that has started this, and
    /// what it has started.
    begin: Option<u64>,
    /// Ends this measurement at `at_ms`.
    end: Option<u64>,
    /// Asks for the result of a measurement: a `Cost`, and the `StoredCost` of notebooks.
    cost: Option<u64>,
    /// Nobody will ask for a measurement any more.
    forget: Option<u64>,
    /// Marks `at_ms`, with this text.
    mark: Option<String>,
    /// Asks for the newest sample, with the inventory.
    snapshot: Option<bool>,
    /// Asks for samples, one in so many milliseconds, until it is `null`.
    #[serde(default, deserialize_with = "read_stream")]
    stream: Option<Stream>,
    /// Asks a running server for a span of its history.
    history: Option<HistoryQuery>,
    at_ms: Option<f64>,
    pid: Option<u32>,
    name: Option<String>,
}

/// How often samples are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    EveryMs(u32),
    Never,
}

/// Distinguishes `null` from an absent key.
fn read_stream<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Stream>, D::Error> {
    let interval_ms = Option::deserialize(deserializer)?;
    Ok(Some(interval_ms.map_or(Stream::Never, Stream::EveryMs)))
}

/// Returns the `id` of a request that is otherwise invalid.
///
/// # Errors
/// The line is no JSON object, so its request is unknown.
fn parse_id(line: &[u8]) -> serde_json::Result<Option<u64>> {
    #[derive(Deserialize)]
    struct RequestId {
        id: Option<u64>,
    }
    serde_json::from_slice(line).map(|RequestId { id }| id)
}

/// The most measurements that are kept. A loop that measures a thousand steps a second is kept for
/// some seconds; a program that keeps a measurement for longer has asked for it by then.
const MOST: usize = 20_000;

#[derive(Default)]
struct Measurements(BTreeMap<u64, Measurement>);

impl Measurements {
    fn add(&mut self, number: u64, measurement: Measurement) {
        self.0.insert(number, measurement);
        while self.0.len() > MOST
            && let Some(oldest) = self
                .0
                .iter()
                .find(|(_, one)| !one.is_running())
                .map(|(number, _)| *number)
        {
            self.0.remove(&oldest);
        }
    }

    fn get(&mut self, number: u64) -> Option<&mut Measurement> {
        self.0.get_mut(&number)
    }

    fn forget(&mut self, number: u64) {
        self.0.remove(&number);
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Measurement> {
        self.0.values_mut()
    }

    /// Returns the meters of all measurements that are not done.
    fn list_meters(&mut self) -> impl Iterator<Item = &mut Box<CostMeter>> {
        self.all().filter_map(|one| one.meter.as_mut())
    }

    /// Records that readings are missing, and why.
    fn record_loss(&mut self, why: &str) {
        self.list_meters().for_each(|meter| meter.lose(why));
    }

    /// Returns whether a measurement still runs.
    fn is_any_running(&self) -> bool {
        self.0.values().any(Measurement::is_running)
    }

    /// Why there is none of that number.
    fn explain_missing(number: u64) -> String {
        format!(
            "measurement {number} is not known: it never began, or was forgotten as one of more \
             than {MOST}"
        )
    }
}

/// The driver's records come within two seconds, where they come.
const RECORDS_COME_WITHIN: Duration = Duration::from_secs(3);

struct Measurement {
    /// `None` once it is done.
    meter: Option<Box<CostMeter>>,
    /// The root of the tree of processes.
    root: u32,
    /// When it ended, by this process's clock.
    ended: Option<Instant>,
    /// The cost of a measurement that is done.
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

    /// Returns the root of its tree of processes until it is done.
    fn root(&self) -> Option<u32> {
        self.meter.as_ref().map(|_| self.root)
    }

    fn end(&mut self, at_ms: f64) {
        if let (Some(meter), None) = (&mut self.meter, self.ended) {
            meter.end(at_ms);
            self.ended = Some(Instant::now());
        }
    }

    fn push(&mut self, record: &Record, tree: &mut ProcessTree) {
        if let Some(meter) = &mut self.meter {
            tree.measure(meter, record);
        }
    }

    /// Returns when it is done with the values that are known by then; `None` while it runs, or if
    /// it is done.
    fn find_deadline(&self) -> Option<Instant> {
        let ended = self.ended.filter(|_| self.meter.is_some());
        ended.map(|ended| ended + RECORDS_COME_WITHIN)
    }

    /// Makes it done if nothing more will be known. `is_over` means that no more records arrive.
    fn finish(&mut self, gpus: &[Gpu], is_over: bool) {
        let Some(due) = self.find_deadline() else {
            return;
        };
        let is_done =
            |meter: &mut Box<CostMeter>| is_over || meter.is_final() || due <= Instant::now();
        if let Some(meter) = self.meter.take_if(is_done) {
            *self.cost = meter.into_cost(gpus);
        }
    }

    /// Returns the cost up to now.
    fn find_cost(&mut self, now_ms: f64, gpus: &[Gpu]) -> Cost {
        match &mut self.meter {
            Some(meter) => meter.cost(now_ms, gpus),
            None => (*self.cost).clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_is_documented() {
        let read = |text| serde_json::from_str::<Request>(text).unwrap();
        let begin = read(r#"{"begin": 7, "at_ms": 1790000000000.1, "name": "train", "pid": 1234}"#);
        assert_eq!(
            (begin.begin, begin.pid, begin.name.as_deref()),
            (Some(7), Some(1234), Some("train"))
        );
        assert_eq!(
            read(r#"{"stream": 500}"#).stream,
            Some(Stream::EveryMs(500))
        );
        assert_eq!(read(r#"{"stream": null}"#).stream, Some(Stream::Never));
        assert_eq!(read(r#"{"forget": 1}"#).stream, None);
        let history =
            read(r#"{"id": 3, "history": {"from_ms": 5, "metrics": "a,b&c", "points": 600}}"#)
                .history;
        assert_eq!(
            history.unwrap().target(),
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
