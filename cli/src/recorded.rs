//! Iteration over the samples of a recording within a time span.

use std::ops::Range;

use anyhow::Context as _;
use gpumon_probe::model::Record;
use gpumon_recording::{RecordKind, Recording};

use crate::{
    exit::{Failure, Result, print_message, usage},
    moment::TimeReference,
};

/// Calls `take` with each sample of a span, and with each inventory before its samples. Damaged
/// parts of the recording are reported and skipped.
///
/// # Errors
/// Returns an error if the span has no sample, or if `take` returns an error.
pub(crate) fn for_each_sample(
    recording: &Recording,
    span: &Range<u64>,
    mut take: impl FnMut(Record) -> Result,
) -> Result {
    let blocks = recording.blocks_in_span(span);
    let mut count = 0_u64;
    if let Some(first) = blocks.first()
        && let Some(inventory) = recording.read_inventory_before(*first).unwrap_or_default()
    {
        take(decode_record(&inventory)?)?;
    }
    for block in blocks {
        let lines = match recording.read(block) {
            Ok(lines) => lines,
            Err(error) => {
                print_message(&format!("{error}; the block is skipped"));
                continue;
            }
        };
        for line in lines.lines() {
            let is_wanted = match line.kind {
                RecordKind::Inventory => true,
                RecordKind::Sample => span.contains(&line.at_ms),
                _ => false,
            };
            if is_wanted {
                count += u64::from(line.kind == RecordKind::Sample);
                take(decode_record(lines.text(line))?)?;
            }
        }
    }
    if count == 0 {
        let (first_ms, last_ms) = recording.first_and_last_sample_ms();
        let zone = TimeReference::from_recording((first_ms, last_ms)).zone;
        let [first, last] = [first_ms, last_ms].map(|ms| crate::moment::format_time(ms, &zone));
        return Err(usage!(
            "there is no sample in the requested time: the recording is from {first} to {last}"
        ));
    }
    Ok(())
}

fn decode_record(record: &str) -> Result<Record> {
    Record::decode(record)
        .context(
            "this version of gpumon cannot read the recording; use the version that recorded it",
        )
        .map_err(Failure::from)
}
