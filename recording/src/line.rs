//! The lines of a recording. They are parsed only as far as needed to find a point in time.

use std::ops::Range;

use gpumon_probe::model::read_type;
use serde::Deserialize;

/// A line within a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The byte range of the line, without its line ending.
    pub range: Range<usize>,
    pub kind: RecordKind,
    /// The time of the record, in milliseconds since 1970; 0 if unknown.
    pub at_ms: u64,
}

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// The list of GPUs, driver and host.
    Inventory,
    /// The readings of one point in time.
    Sample,
    /// The slowly changing readings of the GPU with this index.
    Details(u32),
    Event,
    /// A record that playback does not need.
    Other,
}

#[derive(Deserialize)]
struct Stamp {
    #[serde(default)]
    at_ms: u64,
    #[serde(default)]
    index: u32,
}

/// Returns the kind and time of a record without parsing the rest.
///
/// # Errors
/// Returns an error if the text is not a JSON object with a `type`.
pub fn parse_kind_and_time(text: &str) -> Result<(RecordKind, u64), serde_json::Error> {
    let kind = read_type(text)?;
    if matches!(&*kind, "trace" | "answers") {
        return Ok((RecordKind::Other, 0));
    }
    let Stamp { at_ms, index } = serde_json::from_str(text)?;
    let kind = match &*kind {
        "inventory" => RecordKind::Inventory,
        "sample" => RecordKind::Sample,
        "details" => RecordKind::Details(index),
        "event" => RecordKind::Event,
        _ => RecordKind::Other,
    };
    Ok((kind, at_ms))
}

/// The maximum number of records in a block. A block of ten seconds usually has a few hundred
/// records, or a few thousand if there are many short events.
const MAX_RECORDS: usize = 100_000;

/// Splits a text into lines.
///
/// # Errors
/// Returns the reason if a record is invalid or if there are too many records.
pub(crate) fn parse_lines(text: &str) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    let mut at = 0;
    for part in text.split_inclusive('\n') {
        let record = part.trim_end();
        if !record.is_empty() {
            if lines.len() == MAX_RECORDS {
                return Err(format!("it has more than {MAX_RECORDS} records"));
            }
            let (kind, at_ms) = parse_kind_and_time(record).map_err(|error| error.to_string())?;
            lines.push(Line {
                range: at..at + record.len(),
                kind,
                at_ms,
            });
        }
        at += part.len();
    }
    Ok(lines)
}
