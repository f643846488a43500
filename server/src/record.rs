//! The collector's lines, decoded.

use gpumon_probe::model::Record;
use serde::Deserialize;

/// What kind of record a line is.
#[derive(Debug, Deserialize)]
struct Kind<'a> {
    #[serde(rename = "type", borrow)]
    kind: &'a str,
}

/// Decodes a line. What serde derives for [`Record`] first copies everything to find its `type`; this looks for that
/// first, which is at the beginning of what the collector writes.
///
/// # Errors
/// Where the line is not a record.
pub(crate) fn decode(line: &str) -> Result<Record, serde_json::Error> {
    match leading_kind(line).map_or_else(|| serde_json::from_str(line).map(|Kind { kind }| kind), Ok)? {
        "inventory" => serde_json::from_str(line).map(Record::Inventory),
        "sample" => serde_json::from_str(line).map(Record::Sample),
        "details" => serde_json::from_str(line).map(Record::Details),
        "trace" => serde_json::from_str(line).map(Record::Trace),
        "answers" => serde_json::from_str(line).map(Record::Answers),
        // Events are few; and what is no record gets the error that says so.
        _ => serde_json::from_str(line),
    }
}

/// The `type` that stands first, and is spelled plainly.
fn leading_kind(line: &str) -> Option<&str> {
    let kind = line.strip_prefix(r#"{"type":""#)?.split_once('"')?.0;
    (!kind.contains('\\')).then_some(kind)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gpumon_probe::{
        model::{Absence, Event, EventKind, GpuDetails, Trace, TraceMetric},
        owner::CommandLines,
        sampler::{self, Options},
        vendor::nvml::query::{CachedAnswers, Query, Value},
        vendor::{DriverAnswers, SourceChoice},
    };

    use super::*;

    /// One record of each kind, as the collector makes them.
    fn records() -> Vec<Record> {
        let source = SourceChoice::Sim(3).open(None).unwrap().into();
        let moment = sampler::once(&source, &Options::new(Duration::from_secs(1), CommandLines::All)).unwrap();
        vec![
            Record::Inventory(moment.inventory),
            Record::Sample(moment.sample),
            Record::Details(GpuDetails::absent(1, None, 5, &Absence::DriverError { code: 7 })),
            Record::Trace(Trace {
                index: 0,
                uuid: None,
                metric: TraceMetric::PowerWatts,
                start_us: 1,
                offsets_us: vec![0, 20_000],
                values: vec![1.0, 2.5],
                gap: false,
            }),
            Record::Answers(DriverAnswers { gpus: vec![(0, answers().into())] }),
            Record::Event(Event { at_ms: 3, gpu: None, what: EventKind::MigChanged }),
        ]
    }

    fn answers() -> CachedAnswers {
        let mut answers = CachedAnswers::default();
        answers.keep(None, Query::Field(185, 2), 2, Ok(Value::Numbers(vec![43_600])));
        answers
    }

    #[test]
    fn every_record_is_decoded_as_it_was_written() {
        for record in records() {
            let line = serde_json::to_string(&record).unwrap();
            assert!(leading_kind(&line).is_some(), "{line}");
            assert_eq!(decode(&line).unwrap(), record);
            // Somebody else's collector may write the type last.
            let (kind, rest) = line[1..].split_once(',').unwrap();
            let turned = format!("{{{},{kind}}}", rest.trim_end_matches('}').to_owned() + &closing(rest));
            assert_eq!(decode(&turned).unwrap(), record, "{turned}");
        }
    }

    /// The braces at the end of an object's text, but the last.
    fn closing(text: &str) -> String {
        "}".repeat(text.len() - text.trim_end_matches('}').len() - 1)
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for line in ["", "null", "{}", r#"{"type":"sample"}"#, r#"{"type":"samples"}"#, r#"{"type":"sample","#, "[1]"] {
            assert!(decode(line).is_err(), "{line}");
        }
    }
}
