//! Decoding of a server's frames, and encoding of requests to it.

use gpumon_history::wanted::Wanted;
use gpumon_probe::model::Record;
use gpumon_server::frame::{ClientFrame, ServerFrame};

use crate::top::model::Update;

/// Decodes a server's frame. Returns `None` if the frame is irrelevant here, or of a kind that only
/// newer servers know.
pub(super) fn frame(text: &str) -> Option<Update> {
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
pub(super) fn interval(ms: u32) -> Option<String> {
    serde_json::to_string(&ClientFrame::Interval { ms }).ok()
}

/// Encodes a request for the history of everything that can be charted.
pub(super) fn history() -> Option<String> {
    serde_json::to_string(&ClientFrame::History {
        metrics: Wanted::all_charted().ids(),
    })
    .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_no_concern_are_left_out() {
        assert!(frame(r#"{"type":"heartbeat","at_ms":5}"#).is_none());
        assert!(frame(r#"{"type":"something_new","x":5}"#).is_none());
        let paused = r#"{"type":"collector","state":"paused","since_ms":1,"message":null}"#;
        assert!(matches!(frame(paused), Some(Update::Collector(_))));
        assert_eq!(interval(500).unwrap(), r#"{"type":"interval","ms":500}"#);
    }
}
