//! The lines of a recording, parsed only as far as necessary to find a moment.

use std::ops::Range;

use gpumon_probe::model::type_of;
use serde::Deserialize;

/// A line within a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The byte range of the line, without its line ending.
    pub range: Range<usize>,
    pub kind: Kind,
    /// When the record was made, in milliseconds since 1970; 0 if unknown.
    pub at_ms: u64,
}

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The list of GPUs, driver and host.
    Inventory,
    /// The readings of one moment.
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
pub fn stamp(text: &str) -> Result<(Kind, u64), serde_json::Error> {
    let kind = type_of(text)?;
    if matches!(&*kind, "trace" | "answers") {
        return Ok((Kind::Other, 0));
    }
    let Stamp { at_ms, index } = serde_json::from_str(text)?;
    let kind = match &*kind {
        "inventory" => Kind::Inventory,
        "sample" => Kind::Sample,
        "details" => Kind::Details(index),
        "event" => Kind::Event,
        _ => Kind::Other,
    };
    Ok((kind, at_ms))
}

/// The maximum number of records in a block. A block of ten seconds usually has a few hundred, and
/// with many short events a few thousand.
const MOST_RECORDS: usize = 100_000;

/// Splits a text into lines.
///
/// # Errors
/// Returns the reason if a record is invalid or if there are too many.
pub(crate) fn lines(text: &str) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    let mut at = 0;
    for part in text.split_inclusive('\n') {
        let record = part.trim_end();
        if !record.is_empty() {
            if lines.len() == MOST_RECORDS {
                return Err(format!("it has more than {MOST_RECORDS} records"));
            }
            let (kind, at_ms) = stamp(record).map_err(|error| error.to_string())?;
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
