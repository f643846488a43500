//! Frames of a server, decoded.

use gpumon_history::wanted::Wanted;
use gpumon_probe::model::Record;
use gpumon_server::frame::{ClientFrame, ServerFrame};

use crate::top::model::Update;

/// What a frame of a server says; `None` where that is of no concern here, or of a kind that a
/// newer server knows.
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

/// A request for an interval, as it travels.
pub(super) fn interval(ms: u32) -> Option<String> {
    serde_json::to_string(&ClientFrame::Interval { ms }).ok()
}

/// A request for the past of all that can be charted.
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
