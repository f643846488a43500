//! Decoding of frames from a server, and encoding of requests to the server.

use gpumon_history::wanted::MetricSelection;
use gpumon_probe::model::Record;
use gpumon_server::frame::{ClientFrame, ServerFrame};

use crate::top::model::Update;

/// Decodes a frame from a server. Returns `None` if the screen does not use the frame, or if only
/// newer servers send it.
pub(super) fn decode_frame(text: &str) -> Option<Update> {
    let record = match ServerFrame::decode(text).ok()?? {
        ServerFrame::Hello(hello) => return Some(Update::Hello(Box::new(hello))),
        ServerFrame::History(past) => return Some(Update::History(past)),
        ServerFrame::Collector(status) => return Some(Update::Collector(status)),
        ServerFrame::Sample(sample) => Record::Sample(sample),
        ServerFrame::Details(details) => Record::Details(details),
        ServerFrame::Inventory(inventory) => Record::Inventory(inventory),
        ServerFrame::Event(event) => Record::Event(event),
        _ => return None,
    };
    Some(Update::Record(Box::new(record)))
}

/// Encodes a request for a sampling interval.
pub(super) fn encode_interval(ms: u32) -> Option<String> {
    serde_json::to_string(&ClientFrame::Interval { ms }).ok()
}

/// Encodes a request for the history of all metrics that can be charted.
pub(super) fn encode_history_request() -> Option<String> {
    serde_json::to_string(&ClientFrame::History {
        metrics: MetricSelection::select_charts().ids(),
    })
    .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn irrelevant_frames_are_ignored() {
        assert!(decode_frame(r#"{"type":"heartbeat","at_ms":5}"#).is_none());
        assert!(decode_frame(r#"{"type":"something_new","x":5}"#).is_none());
        let paused = r#"{"type":"collector","state":"paused","since_ms":1,"message":null}"#;
        assert!(matches!(decode_frame(paused), Some(Update::Collector(_))));
        assert_eq!(
            encode_interval(500).unwrap(),
            r#"{"type":"interval","ms":500}"#
        );
    }
}
