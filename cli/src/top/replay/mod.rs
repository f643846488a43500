//! Conversion of a replay's records into updates of the screen.

use std::io;

use gpumon_probe::model::Record;
use gpumon_recording::Played;

use super::model::Update;

/// Converts replayed records.
///
/// # Errors
/// Returns an error if reading failed or a record is invalid.
pub(super) fn updates(played: io::Result<Vec<Played>>) -> io::Result<Vec<Update>> {
    let update = |played| match played {
        Played::Rewound => Ok(Update::Rewound),
        Played::Record(text) => {
            let record = Record::decode(&text)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            Ok(Update::Record(Box::new(record)))
        }
    };
    played?.into_iter().map(update).collect()
}

#[cfg(test)]
mod tests;
