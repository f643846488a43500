//! `gpumon schema`: what the keys of gpumon's JSON mean, as a JSON Schema made from the program's own types.

use std::io::{self, Write};

use gpumon_probe::model::{
    Record,
    fields::{GPU_FIELDS, HOST_FIELDS},
};
use gpumon_server::frame::{ServerFrame, Snapshot};
use schemars::{Schema, generate::SchemaSettings};
use serde_json::Value;

use crate::exit::Failure;

/// Print the JSON Schema of gpumon's output
#[derive(Debug, clap::Args)]
pub(crate) struct SchemaArgs {
    /// Output to describe
    #[arg(value_enum, default_value_t = What::Snapshot)]
    what: What,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum What {
    /// `gpumon --json`, and the server's /api/v1/snapshot
    Snapshot,
    /// A record of `gpumon collect`
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
pub(crate) fn schema(what: What) -> Schema {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = match what {
        What::Snapshot => generator.into_root_schema_for::<Snapshot>(),
        What::Record => generator.into_root_schema_for::<Record>(),
        What::Frame => generator.into_root_schema_for::<ServerFrame>(),
    };
    if let Some(kinds) = schema.get_mut("$defs") {
        for field in GPU_FIELDS {
            describe(kinds, "GpuSample", field.id, field.help);
        }
        // RAM and swap are of one kind, which says of itself what it is.
        let host = HOST_FIELDS.iter().map(|field| (field.id.trim_start_matches("host."), field.help));
        for (path, help) in host.filter(|(path, _)| !path.contains('.')) {
            describe(kinds, "HostSample", path, help);
        }
    }
    schema
}

/// Gives what stands at a path below a kind of object the words of the catalogue; where it comes from, which the types'
/// own documentation tells, becomes its comment.
fn describe(kinds: &mut Value, kind: &str, path: &str, help: &str) {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let Some(property) = kinds.get_mut(kind).and_then(|kind| kind.pointer_mut(&format!("/properties/{first}"))) else {
        return;
    };
    match rest {
        None => {
            let said = property["description"].take();
            property["description"] = help.into();
            property["$comment"] = said;
        }
        Some(rest) => {
            let inner = property.clone();
            for kind in kinds_within(kinds, &inner) {
                describe(kinds, &kind, rest, help);
            }
        }
    }
}

/// The kinds of objects that a property can have, also those in a reading.
fn kinds_within(kinds: &Value, property: &Value) -> Vec<String> {
    match property {
        Value::Object(parts) => {
            let named = parts.get("$ref").and_then(Value::as_str).and_then(|name| name.rsplit('/').next());
            let own: Vec<_> = match named {
                Some(reading) if reading.starts_with("Reading") => kinds_within(kinds, &kinds[reading]),
                Some(name) => vec![name.to_owned()],
                None => Vec::new(),
            };
            own.into_iter().chain(parts.values().flat_map(|part| kinds_within(kinds, part))).collect()
        }
        Value::Array(parts) => parts.iter().flat_map(|part| kinds_within(kinds, part)).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_described_as_the_catalogue_has_them() {
        let schema = schema(What::Snapshot).to_value();
        let described = |kind: &str, key: &str| schema["$defs"][kind]["properties"][key]["description"].clone();
        let help = |id| GPU_FIELDS.iter().find(|field| field.id == id).unwrap().help;
        assert_eq!(described("Power", "draw_watts"), help("power.draw_watts"));
        assert_eq!(described("Activity", "sm_percent"), help("activity.sm_percent"), "within a reading");
        assert_eq!(described("GpuSample", "fan_percent"), help("fan_percent"));
    }

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
