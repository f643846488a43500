//! `gpumon schema`: what the keys of gpumon's JSON mean, as a JSON Schema made from the program's own types.

use std::io::{self, Write};

use gpumon_probe::model::Record;
use gpumon_server::frame::{ServerFrame, Snapshot};
use schemars::{Schema, generate::SchemaSettings};

use crate::exit::Failure;

/// Print the JSON Schema of what gpumon writes: each key, what it means, and its unit
#[derive(Debug, clap::Args)]
pub(crate) struct SchemaArgs {
    /// Of what
    #[arg(value_enum, default_value_t = What::Snapshot)]
    what: What,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum What {
    /// `gpumon --json`, and the server's /api/v1/snapshot
    Snapshot,
    /// A line of `gpumon collect`
    Record,
    /// A frame of the server's /api/v1/stream
    Frame,
}

pub(crate) fn run(args: &SchemaArgs) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &schema(args.what)).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

/// Of what is written, not of what would be understood.
fn schema(what: What) -> Schema {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    match what {
        What::Snapshot => generator.into_root_schema_for::<Snapshot>(),
        What::Record => generator.into_root_schema_for::<Record>(),
        What::Frame => generator.into_root_schema_for::<ServerFrame>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_a_snapshot_says_what_it_means() {
        let schema = schema(What::Snapshot).to_value();
        let kinds = schema["$defs"].as_object().unwrap();
        assert!(kinds.len() > 40, "{}", kinds.len());
        for (kind, described) in kinds.iter().chain([(&"Snapshot".to_owned(), &schema)]) {
            for (key, value) in described["properties"].as_object().into_iter().flatten() {
                let is_said = value["description"].is_string() || value["const"].is_string();
                assert!(is_said, "{kind}.{key} has no description: {value}");
            }
        }
    }
}
