//! The samples of a recording within a time span.

use std::ops::Range;

use anyhow::Context as _;
use gpumon_probe::model::Record;
use gpumon_recording::{Kind, Recording};

use crate::{
    exit::{Failure, Result, say, usage},
    moment::Beside,
};

/// Calls `take` with each sample of a span and with the inventories that precede samples. Damaged
/// parts of the recording are reported and skipped.
///
/// # Errors
/// Returns an error if the span has no sample, or if `take` fails.
pub(crate) fn samples(
    recording: &Recording,
    span: &Range<u64>,
    mut take: impl FnMut(Record) -> Result,
) -> Result {
    let blocks = recording.within(span);
    let mut count = 0_u64;
    if let Some(first) = blocks.first()
        && let Some(inventory) = recording.inventory_before(*first).unwrap_or_default()
    {
        take(decode(&inventory)?)?;
    }
    for block in blocks {
        let lines = match recording.read(block) {
            Ok(lines) => lines,
            Err(error) => {
                say(&format!("{error}; it is left out"));
                continue;
            }
        };
        for line in lines.lines() {
            let is_wanted = match line.kind {
                Kind::Inventory => true,
                Kind::Sample => span.contains(&line.at_ms),
                _ => false,
            };
            if is_wanted {
                count += u64::from(line.kind == Kind::Sample);
                take(decode(lines.text(line))?)?;
            }
        }
    }
    if count == 0 {
        let (first_ms, last_ms) = recording.times_ms();
        let zone = Beside::recording((first_ms, last_ms)).zone;
        let [first, last] = [first_ms, last_ms].map(|ms| crate::moment::shown(ms, &zone));
        return Err(usage!(
            "there is no sample in that time: the recording is from {first} to {last}"
        ));
    }
    Ok(())
}

fn decode(record: &str) -> Result<Record> {
    Record::decode(record)
        .context("this version cannot read a record; use the gpumon that recorded it")
        .map_err(Failure::from)
}
