//! What fuzzing feeds with bytes from outside.

use crate::record;

/// Decodes a line of a collector, as the server does.
pub fn record(line: &str) {
    let _ = record::decode(line);
}
