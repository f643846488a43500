//! What a line of a recording is, as far as one has to know who looks for a moment.

use std::ops::Range;

use gpumon_probe::model::type_of;
use serde::Deserialize;

/// A line in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Where it is, without its end.
    pub range: Range<usize>,
    /// What it is.
    pub kind: Kind,
    /// When it was recorded, in milliseconds since 1970; 0 where it does not say.
    pub at_ms: u64,
}

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What is there.
    Inventory,
    /// What was read at one moment.
    Sample,
    /// What changes slowly about the GPU of this index.
    Details(u32),
    /// What happened.
    Event,
    /// What nobody needs who looks for a moment.
    Other,
}

#[derive(Deserialize)]
struct Stamp {
    #[serde(default)]
    at_ms: u64,
    #[serde(default)]
    index: u32,
}

/// Kind and time of a record, without reading the rest.
///
/// # Errors
/// Where it is no object with a `type`.
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

/// A block of ten seconds has a few hundred records, one of many short events a few thousand.
const MOST_RECORDS: usize = 100_000;

/// The lines of a text.
///
/// # Errors
/// Why a record is not part of a recording: it is invalid, or there are too many.
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
