//! One line of `gpumon collect`.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Serialize, de::Error};
use ts_rs::TS;

use super::{Event, GpuDetails, Inventory, Object, Sample, Trace};
use crate::vendor::DriverAnswers;

/// What the collector writes, one JSON object per line, told apart by `type`.
///
/// The first line is an inventory; it comes again whenever it has changed.
// One of them exists at a time, so that the size of the largest does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Serialize, TS, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Record {
    /// What is there.
    Inventory(Inventory),
    /// What was read at one moment.
    Sample(Sample),
    /// What changes slowly about one GPU, every ten seconds.
    Details(GpuDetails),
    /// What the driver itself recorded of one GPU between two samples.
    Trace(Trace),
    /// What the driver answered last, call by call, when a server asks for it on behalf of a
    /// program that does as the vendor's own tools do.
    #[ts(skip)]
    #[schemars(skip)]
    Answers(DriverAnswers),
    /// What happened.
    Event(Event),
}

impl Record {
    /// Decodes a line. What serde would derive copies everything first, to find its `type`, and is
    /// much code.
    ///
    /// # Errors
    /// Where the line is not a record.
    pub fn decode(line: &str) -> Result<Self, serde_json::Error> {
        match &*type_of(line)? {
            "inventory" => serde_json::from_str(line).map(Self::Inventory),
            "sample" => serde_json::from_str(line).map(Self::Sample),
            "details" => serde_json::from_str(line).map(Self::Details),
            "trace" => serde_json::from_str(line).map(Self::Trace),
            "answers" => serde_json::from_str(line).map(Self::Answers),
            "event" => serde_json::from_str(line).map(Self::Event),
            other => Err(serde_json::Error::custom(format!("unknown type `{other}`"))),
        }
    }
}

/// The `type` of a record or a frame, which stands first in what gpumon writes.
///
/// # Errors
/// Where the text is not an object with one.
pub fn type_of(text: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    let at_sight = text
        .strip_prefix(r#"{"type":""#)
        .and_then(|rest| Some(rest.split_once('"')?.0));
    match at_sight.filter(|kind| !kind.contains('\\')) {
        Some(kind) => Ok(kind.into()),
        None => Object::parse(text)?.take::<String>("type").map(Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        model::{Absence, EventKind, TraceMetric},
        owner::CommandLines,
        sampler::{self, Options},
        vendor::{
            SourceChoice,
            nvml::query::{CachedAnswers, Query, Value},
        },
    };

    /// One record of each kind, as the collector makes them.
    fn records() -> Vec<Record> {
        let source = SourceChoice::Sim(3)
            .open(&crate::vendor::Roots::default())
            .unwrap();
        let moment = sampler::once(
            &source,
            &Options::new(Duration::from_secs(1), CommandLines::All),
        )
        .unwrap();
        vec![
            Record::Inventory(moment.inventory),
            Record::Sample(moment.sample),
            Record::Details(GpuDetails::absent(
                1,
                None,
                5,
                &Absence::DriverError { code: 7 },
            )),
            Record::Trace(Trace {
                index: 0,
                uuid: None,
                metric: TraceMetric::PowerWatts,
                start_us: 1,
                offsets_us: vec![0, 20_000],
                values: vec![1.0, 2.5],
                gap: false,
            }),
            Record::Answers(DriverAnswers {
                renumbered: false,
                gpus: vec![(0, answers().into())],
            }),
            Record::Event(Event {
                at_ms: 3,
                gpu: None,
                what: EventKind::MigChanged,
            }),
        ]
    }

    fn answers() -> CachedAnswers {
        let mut answers = CachedAnswers::default();
        answers.keep(
            None,
            Query::Field(185, 2),
            2,
            Ok(Value::Numbers(vec![43_600])),
        );
        answers
    }

    #[test]
    fn every_record_is_decoded_as_it_was_written() {
        let records = records();
        // A kind of record that is new compiles only once it stands here, and then belongs into the
        // list.
        let numbers = records.iter().map(|record| match record {
            Record::Inventory(_) => 0,
            Record::Sample(_) => 1,
            Record::Details(_) => 2,
            Record::Trace(_) => 3,
            Record::Answers(_) => 4,
            Record::Event(_) => 5,
        });
        assert!(numbers.eq(0..6));
        for record in records {
            let line = serde_json::to_string(&record).unwrap();
            assert!(line.starts_with(r#"{"type":""#), "{line}");
            assert_eq!(Record::decode(&line).unwrap(), record);
            // Somebody else's collector may write the type last.
            let (kind, rest) = line[1..].split_once(',').unwrap();
            let turned = format!(
                "{{{},{kind}}}",
                rest.trim_end_matches('}').to_owned() + &closing(rest)
            );
            assert_eq!(Record::decode(&turned).unwrap(), record, "{turned}");
        }
    }

    /// The braces at the end of an object's text, but the last.
    fn closing(text: &str) -> String {
        "}".repeat(text.len() - text.trim_end_matches('}').len() - 1)
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for line in [
            "",
            "null",
            "{}",
            r#"{"type":"sample"}"#,
            r#"{"type":"samples"}"#,
            r#"{"type":"sample","#,
            "[1]",
        ] {
            assert!(Record::decode(line).is_err(), "{line}");
        }
    }
}
