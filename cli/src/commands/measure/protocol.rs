//! What is asked.

use gpumon_history::plan::HistoryQuery;
use serde::Deserialize;

/// A request. Times are in milliseconds since 1970; numbers of measurements are the client's own.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    /// The answer has it, too.
    pub(super) id: Option<u64>,
    /// Measures from `at_ms` on: the process `pid`, by default the one that has started this, and what it has started.
    pub(super) begin: Option<u64>,
    /// It was over at `at_ms`.
    pub(super) end: Option<u64>,
    /// Asks for what a measurement has found: a `Cost`, with the `StoredCost` of notebooks beside it.
    pub(super) cost: Option<u64>,
    /// Nobody will ask for a measurement any more.
    pub(super) forget: Option<u64>,
    /// Marks `at_ms`, with this text.
    pub(super) mark: Option<String>,
    /// Asks for the newest sample, with the inventory.
    pub(super) snapshot: Option<bool>,
    /// Asks for samples, one in so many milliseconds, until it is `null`.
    #[serde(default, deserialize_with = "given")]
    pub(super) stream: Option<Stream>,
    /// Asks a running server for a span of its history.
    pub(super) history: Option<HistoryQuery>,
    pub(super) at_ms: Option<f64>,
    pub(super) pid: Option<u32>,
    pub(super) name: Option<String>,
}

/// How often samples are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    EveryMs(u32),
    Never,
}

/// Tells `null` from what is not there.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Stream>, D::Error> {
    let interval_ms = Option::deserialize(deserializer)?;
    Ok(Some(interval_ms.map_or(Stream::Never, Stream::EveryMs)))
}

/// Returns the `id` of a request that is otherwise invalid.
///
/// # Errors
/// The line is no JSON object, so its request is unknown.
pub(super) fn parse_id(line: &[u8]) -> serde_json::Result<Option<u64>> {
    #[derive(Deserialize)]
    struct RequestId {
        id: Option<u64>,
    }
    serde_json::from_slice(line).map(|RequestId { id }| id)
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
