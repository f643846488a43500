//! Lines of a collector and frames of a server, decoded.

use gpumon_probe::model::Record;
use gpumon_server::frame::{ClientFrame, ServerFrame};
use serde::Deserialize;

use crate::top::{
    metrics::{HOST_METRICS, METRICS},
    model::Update,
};

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(rename = "type", borrow)]
    kind: &'a str,
}

/// Decodes a line. What serde derives for the enum first copies everything to find its `type`; samples and details,
/// which are most of what comes, are decoded by their `type` at sight.
pub(in crate::top) fn record(line: &str) -> Result<Record, serde_json::Error> {
    match kind(line) {
        Some("sample") => serde_json::from_str(line).map(Record::Sample),
        Some("details") => serde_json::from_str(line).map(Record::Details),
        Some("inventory") => serde_json::from_str(line).map(Record::Inventory),
        _ => serde_json::from_str(line),
    }
}

/// What a frame of a server says; `None` where that is of no concern here, or of a kind that a newer server knows.
pub(super) fn frame(text: &str) -> Option<Update> {
    match kind(text)? {
        "hello" => Some(Update::Hello(serde_json::from_str(text).ok()?)),
        "sample" | "details" | "inventory" | "event" => Some(Update::Record(Box::new(record(text).ok()?))),
        _ => match serde_json::from_str(text).ok()? {
            ServerFrame::History(past) => Some(Update::History(past)),
            ServerFrame::Collector(status) => Some(Update::Collector(status)),
            _ => None,
        },
    }
}

/// A request for an interval, as it travels.
pub(super) fn interval(ms: u32) -> Option<String> {
    serde_json::to_string(&ClientFrame::Interval { ms }).ok()
}

/// A request for the past of all that can be charted.
pub(super) fn history() -> Option<String> {
    let ids = METRICS.iter().map(|metric| metric.id).chain(HOST_METRICS.iter().map(|metric| metric.id));
    serde_json::to_string(&ClientFrame::History { metrics: ids.map(str::to_owned).collect() }).ok()
}

fn kind(line: &str) -> Option<&str> {
    let at_sight = line.strip_prefix(r#"{"type":""#).and_then(|rest| Some(rest.split_once('"')?.0));
    at_sight.or_else(|| serde_json::from_str::<Kind<'_>>(line).ok().map(|Kind { kind }| kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::testing;

    #[test]
    fn every_record_comes_back_as_it_was_written() {
        let moment = testing::moment(2);
        let records = [
            Record::Inventory(moment.inventory),
            Record::Sample(moment.sample),
            Record::Details(moment.details[0].clone()),
        ];
        for written in records {
            assert_eq!(record(&serde_json::to_string(&written).unwrap()).unwrap(), written);
        }
        assert!(record("{}").is_err());
        assert!(record(r#"{"type":"sample"}"#).is_err());
    }

    #[test]
    fn frames_of_no_concern_are_left_out() {
        assert!(frame(r#"{"type":"heartbeat","at_ms":5}"#).is_none());
        assert!(frame(r#"{"type":"something_new","x":5}"#).is_none());
        let paused = r#"{"type":"collector","state":"paused","since_ms":1,"message":null}"#;
        assert!(matches!(frame(paused), Some(Update::Collector(_))));
        assert_eq!(interval(500).unwrap(), r#"{"type":"interval","ms":500}"#);
    }
}
