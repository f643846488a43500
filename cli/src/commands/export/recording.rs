//! Rows of a recording.

use std::{io::Write, path::Path};

use anyhow::anyhow;
use gpumon_probe::model::{Inventory, Record};
use gpumon_recording::Recording;

use super::Format;
use crate::{
    commands::{replay, show::csv::Csv},
    exit::{Failure, say},
    moment::{Beside, MomentSpan},
    recorded::samples,
};

pub(super) fn export(
    file: &Path,
    span: MomentSpan,
    columns: &Csv,
    format: Format,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let recording = Recording::open(file).map_err(replay::failure)?;
    if let Some(cuts) = replay::cuts(&recording) {
        say(&cuts);
    }
    let span = span
        .resolve(&Beside::recording(recording.times_ms()))
        .map_err(|why| Failure::usage(anyhow!(why)))?;
    if format == Format::Csv {
        out.write_all(columns.header().as_bytes())?;
    }
    let mut inventory: Option<Inventory> = None;
    samples(&recording, &span, |record| {
        match record {
            Record::Inventory(newer) => inventory = Some(newer),
            Record::Sample(sample) => {
                if let Some(inventory) = &inventory {
                    let rows = match format {
                        Format::Csv => columns.rows(inventory, &sample),
                        Format::Ndjson => columns.json_rows(inventory, &sample),
                    };
                    out.write_all(rows.as_bytes())?;
                }
            }
            _ => {}
        }
        Ok(())
    })
}
