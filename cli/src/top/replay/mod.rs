//! Conversion of the records in a replay to updates of the screen.

use std::io;

use gpumon_probe::model::Record;
use gpumon_recording::PlayedItem;

use super::model::Update;

/// Converts replayed records to updates.
///
/// # Errors
/// Returns an error if reading the recording failed or a record is invalid.
pub(super) fn convert_records(played: io::Result<Vec<PlayedItem>>) -> io::Result<Vec<Update>> {
    let update = |played| match played {
        PlayedItem::Rewound => Ok(Update::Rewound),
        PlayedItem::Record(text) => {
            let record = Record::decode(&text)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            Ok(Update::Record(Box::new(record)))
        }
    };
    played?.into_iter().map(update).collect()
}

#[cfg(test)]
mod tests;
