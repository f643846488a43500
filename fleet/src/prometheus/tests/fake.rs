//! A fake Prometheus server with configurable responses.
//!
//! The server stores series, and supports selections by name, comparisons with numbers, `or`, and
//! counts by name.

use std::{
    collections::HashMap,
    fmt::Write,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use tokio::net::TcpListener;

/// How the server responds to queries.
#[derive(Clone)]
pub(super) enum Behavior {
    /// Evaluates queries on the given series, which are in the format of `/metrics`.
    Series(&'static str),
    /// Never sends a response.
    Hung,
    /// Sends the given response to every request.
    Raw(StatusCode, &'static str, &'static str),
    /// Sends a response that never ends.
    Endless,
    /// Redirects to the given address.
    Elsewhere(&'static str),
}

#[derive(Default)]
pub(super) struct ReceivedRequests {
    pub(super) queries: Vec<String>,
    pub(super) headers: HeaderMap,
}

#[derive(Clone)]
struct SharedState {
    behavior: Arc<Mutex<Behavior>>,
    warnings: Arc<Mutex<Vec<&'static str>>>,
    /// Responses to queries that contain the given words. They take precedence over the stored
    /// series.
    answers: Arc<Mutex<Vec<(&'static str, &'static str)>>>,
    seen: Arc<Mutex<ReceivedRequests>>,
}

/// A fake server that runs until the end of the test.
pub(super) struct FakeServer {
    pub(super) address: SocketAddr,
    shared: SharedState,
}

impl FakeServer {
    pub(super) async fn start(behavior: Behavior) -> Self {
        let shared = SharedState {
            behavior: Arc::new(Mutex::new(behavior)),
            warnings: Arc::default(),
            answers: Arc::default(),
            seen: Arc::default(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .fallback(handle_request)
            .with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, shared }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn set_behavior(&self, behavior: Behavior) {
        *self.shared.behavior.lock().unwrap() = behavior;
    }

    pub(super) fn add_warning(&self, warning: &'static str) {
        self.shared.warnings.lock().unwrap().push(warning);
    }

    /// Sets the series that are returned for queries that contain `words`.
    pub(super) fn add_answer(&self, words: &'static str, series: &'static str) {
        self.shared.answers.lock().unwrap().push((words, series));
    }

    pub(super) fn take_queries(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.seen.lock().unwrap().queries)
    }

    pub(super) fn headers(&self) -> HeaderMap {
        self.shared.seen.lock().unwrap().headers.clone()
    }
}

async fn handle_request(
    State(shared): State<SharedState>,
    headers: HeaderMap,
    Query(parameters): Query<HashMap<String, String>>,
) -> Response {
    let query = parameters.get("query").cloned().unwrap_or_default();
    {
        let mut seen = shared.seen.lock().unwrap();
        seen.queries.push(query.clone());
        seen.headers = headers;
    }
    let behavior = shared.behavior.lock().unwrap().clone();
    match behavior {
        Behavior::Hung => {
            tokio::time::sleep(Duration::from_hours(1)).await;
            StatusCode::OK.into_response()
        }
        Behavior::Raw(status, kind, text) => {
            (status, [(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Behavior::Elsewhere(to) => (StatusCode::FOUND, [(header::LOCATION, to)]).into_response(),
        Behavior::Endless => {
            let begin = Bytes::from_static(br#"{"status":"success","data":{"result":["#);
            let more = Bytes::from(r#"{"metric":{},"value":[1,"1"]},"#.repeat(10_000));
            let all = stream::iter(
                std::iter::once(begin)
                    .chain(std::iter::repeat(more))
                    .map(Ok::<_, std::io::Error>),
            );
            Body::from_stream(all).into_response()
        }
        Behavior::Series(series) => {
            let answers = shared.answers.lock().unwrap().clone();
            let own = answers
                .iter()
                .find(|(words, _)| query.contains(words))
                .map(|(_, series)| *series);
            let result = own.map_or_else(
                || select_series(&query, series),
                |series| series.lines().filter_map(parse_series).collect(),
            );
            let warnings = serde_json::to_string(&*shared.warnings.lock().unwrap()).unwrap();
            format_answer(&result, parameters.get("end"), &warnings).into_response()
        }
    }
}

/// A series: its name, its labels as JSON strings, and its value.
type Series = (String, Vec<(String, String)>, f64);

fn parse_series(line: &str) -> Option<Series> {
    let line = line.trim();
    let (series, value) = line.rsplit_once(' ')?;
    let (name, labels) = series.split_once('{').map_or((series, ""), |(name, rest)| {
        (name, rest.trim_end_matches('}'))
    });
    let mut all = Vec::new();
    let mut rest = labels;
    while let Some((label, behind)) = rest.split_once("=\"") {
        let (value, next) = behind.split_once('"').unwrap();
        all.push((label.trim_start_matches(',').to_owned(), value.to_owned()));
        rest = next;
    }
    Some((name.to_owned(), all, value.parse().ok()?))
}

fn select_series(query: &str, series: &str) -> Vec<Series> {
    let all: Vec<Series> = series.lines().filter_map(parse_series).collect();
    if let Some(of) = query.strip_prefix("count by (__name__) ") {
        let mut counts: Vec<Series> = Vec::new();
        for (name, ..) in all.iter().filter(|(name, ..)| has_word(of, name)) {
            match counts.iter_mut().find(|(known, ..)| known == name) {
                Some((.., count)) => *count += 1.0,
                None => counts.push((name.clone(), Vec::new(), 1.0)),
            }
        }
        return counts;
    }
    let part = |part: &str| -> Vec<Series> {
        let compared = [" == ", " > "].into_iter().find_map(|operator| {
            let (of, number) = part.rsplit_once(operator)?;
            Some((of, operator, number.parse::<f64>().ok()?))
        });
        let of = compared.map_or(part, |(of, ..)| of);
        let holds = |value: f64| match compared {
            Some((_, " == ", number)) => (value - number).abs() < f64::EPSILON,
            Some((_, _, number)) => value > number,
            None => true,
        };
        all.iter()
            .filter(|(name, _, value)| has_word(of, name) && holds(*value))
            .cloned()
            .collect()
    };
    query.split(" or ").flat_map(part).collect()
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|it: char| !it.is_ascii_alphanumeric() && it != '_' && it != ':')
        .any(|part| part == word)
}

/// Formats a query response. For a range query, the response contains only the last point in time.
fn format_answer(all: &[Series], end: Option<&String>, warnings: &str) -> String {
    let now = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs()
    };
    let at = end.map_or_else(now, |end| end.parse().unwrap());
    let mut text = String::new();
    for (name, labels, value) in all {
        let mut metric: serde_json::Map<_, _> = labels
            .iter()
            .map(|(key, value)| (key.clone(), value.clone().into()))
            .collect();
        metric.insert("__name__".to_owned(), name.clone().into());
        let metric = serde_json::Value::Object(metric);
        let separator = if text.is_empty() { "" } else { "," };
        let sample = format!("[{at},\"{value}\"]");
        let samples = if end.is_some() {
            format!("\"values\":[{sample}]")
        } else {
            format!("\"value\":{sample}")
        };
        write!(text, "{separator}{{\"metric\":{metric},{samples}}}").unwrap();
    }
    let form = if end.is_some() { "matrix" } else { "vector" };
    format!(
        "{{\"status\":\"success\",\"warnings\":{warnings},\"data\":{{\"resultType\":\"{form}\",\"result\":[{text}]}}}}"
    )
}
