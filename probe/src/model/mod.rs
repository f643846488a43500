//! The data model: the records of `gpumon collect`, the frames of the WebSocket and the entries of
//! the history.
//!
//! Names end with a unit: `_bytes`, `_percent` (0 to 100), `_watts`, `_celsius`, `_mhz`, `_ms`.
//! Every `at_ms` and `since_ms` is a wall-clock time in milliseconds since the Unix epoch. The
//! TypeScript types in `static/src/wire/` are generated from this module.

mod condition;
mod cost;
mod details;
mod energy_price;
mod event;
pub mod fields;
mod gpu_name;
mod inventory;
mod limits;
mod object;
mod process;
mod reading;
mod sample;
mod vendor;
mod wording;

use std::{
    borrow::Cow,
    time::{SystemTime, UNIX_EPOCH},
};

use schemars::JsonSchema;
use serde::{Serialize, de::Error};
use ts_rs::TS;

use crate::vendor::DriverAnswers;

pub use condition::{Condition, ConditionKind, GpuProcess, MemoryGrowth, Severity};
pub use cost::{Cell, CellRun, Cost, CostCondition, CostMark, CostXid, GpuCost, StoredCost};
pub use details::{
    AccountedProcess, ApplicationClocks, Bar1, ComputeMode, ConfidentialCompute, Ecc, EccCounts,
    EccLocation, Fabric, FabricState, Fan, GpuDetails, Mode, Modes, NvLink, NvLinkRemote,
    RecoveryAction, RemappedRows, RetiredPages, SpareRows, ThrottledTimes,
};
pub use energy_price::EnergyPrice;
pub use event::{
    Alert, Event, EventKind, FiringAlert, GpuRef, Mark, ProcessRef, Run, RunKind, RunStatus,
    XidReport, join_meaning_and_advice,
};
pub(crate) use gpu_name::sysfs_device_path;
pub use gpu_name::{GpuName, GpuNameError, normalize_bus_id};
pub use inventory::{
    Board, Driver, EnergySource, Gpu, GpuLink, Inventory, KnownGpu, MaxClocks, MigDevice, PciPath,
    Platform, Playback, PowerLimits, SourceKind, Thresholds,
};
pub use limits::{
    ArithmeticUnit, Confidence, LimitClass, LimitEvidence, LimitShare, LimitSummary, LimitSums,
    Limits, OwnerLimits,
};
pub use object::Object;
pub use process::{
    Allocation, Ancestor, BatchJob, Container, ContainerRuntime, Job, JobKind, Notebook, Owner,
    Pod, Process, ProcessKind,
};
pub use reading::{Absence, Reading};
pub(crate) use reading::{Absent, absent};
pub use sample::{
    Activity, Clocks, CpuSample, DiskSample, GpuSample, Health, HostSample, MemoryKind,
    MemorySample, MigInstance, MigSample, NetworkSample, NvLinks, PcieLink, Power, REASONS,
    RamSample, ReasonInfo, Sample, Temperature, ThrottleCause, ThrottleReason, Trace, TraceMetric,
    Utilization,
};
pub use vendor::Vendor;
pub use wording::{GPU_PROCESS, SLOW_CLOCK_RATIO, WORDINGS, Wording};

/// A line of `gpumon collect`: a JSON object whose kind is given by `type`.
///
/// The first line is an inventory, and another inventory follows every change.
// Only one record exists at a time, so the size of the largest variant does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Serialize, TS, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Record {
    /// The inventory of the machine, its driver and its GPUs.
    Inventory(Inventory),
    /// The readings of one moment.
    Sample(Sample),
    /// The slowly changing readings of one GPU, sent every ten seconds.
    Details(GpuDetails),
    /// Values of one GPU that the driver recorded between two samples.
    Trace(Trace),
    /// The driver's latest responses to individual calls. A server requests them for programs that
    /// imitate the vendor's own tools.
    #[ts(skip)]
    #[schemars(skip)]
    Answers(DriverAnswers),
    /// An event of a GPU or of the machine.
    Event(Event),
}

impl Record {
    /// Decodes a line. This replaces the code that serde derives, which would be larger and would
    /// copy the whole value to find its `type`.
    ///
    /// # Errors
    /// Returns an error if the line is not a record.
    pub fn decode(line: &str) -> Result<Self, serde_json::Error> {
        match &*read_type(line)? {
            "inventory" => serde_json::from_str(line).map(Self::Inventory),
            "sample" => serde_json::from_str(line).map(Self::Sample),
            "details" => serde_json::from_str(line).map(Self::Details),
            "trace" => serde_json::from_str(line).map(Self::Trace),
            "answers" => serde_json::from_str(line).map(Self::Answers),
            "event" => serde_json::from_str(line).map(Self::Event),
            other => Err(serde_json::Error::custom(format!("unknown type `{other}`"))),
        }
    }
}

/// Returns the `type` of a record or frame. In text that gpumon writes, `type` is the first field.
///
/// # Errors
/// Returns an error if the text is not an object with a `type`.
pub fn read_type(text: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    let at_sight = text
        .strip_prefix(r#"{"type":""#)
        .and_then(|rest| Some(rest.split_once('"')?.0));
    match at_sight.filter(|kind| !kind.contains('\\')) {
        Some(kind) => Ok(kind.into()),
        None => Object::parse(text)?.take::<String>("type").map(Cow::Owned),
    }
}

/// Returns the current time in milliseconds since the Unix epoch, or 0 if the clock is set to a
/// time before 1970.
pub fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        owner::CommandLines,
        sampler::{self, Options},
        vendor::{
            SourceChoice,
            nvml::query::{CachedAnswers, Query, Value},
        },
    };

    /// Returns one record of each kind, with values as a collector writes them.
    fn make_records() -> Vec<Record> {
        let source = SourceChoice::Sim(3)
            .open(&crate::vendor::Roots::default())
            .unwrap();
        let moment = sampler::sample_once(
            &source,
            &Options::new(Duration::from_secs(1), CommandLines::All),
        )
        .unwrap();
        vec![
            Record::Inventory(moment.inventory),
            Record::Sample(moment.sample),
            Record::Details(GpuDetails::new_absent(
                1,
                None,
                5,
                &Absence::DriverError { code: 7 },
            )),
            Record::Trace(Trace {
                index: 0,
                uuid: None,
                metric: TraceMetric::PowerWatts,
                start_us: 1,
                offsets_us: vec![0, 20_000],
                values: vec![1.0, 2.5],
                gap: false,
            }),
            Record::Answers(DriverAnswers {
                renumbered: false,
                gpus: vec![(0, make_cached_answers().into())],
            }),
            Record::Event(Event {
                at_ms: 3,
                gpu: None,
                what: EventKind::MigChanged,
            }),
        ]
    }

    fn make_cached_answers() -> CachedAnswers {
        let mut answers = CachedAnswers::default();
        answers.store_answer(
            None,
            Query::Field(185, 2),
            2,
            Ok(Value::Numbers(vec![43_600])),
        );
        answers
    }

    #[test]
    fn every_record_kind_survives_json_round_trip() {
        let records = make_records();
        // The `match` makes the compiler report kinds that are missing from `make_records`.
        let numbers = records.iter().map(|record| match record {
            Record::Inventory(_) => 0,
            Record::Sample(_) => 1,
            Record::Details(_) => 2,
            Record::Trace(_) => 3,
            Record::Answers(_) => 4,
            Record::Event(_) => 5,
        });
        assert!(numbers.eq(0..6));
        for record in records {
            let line = serde_json::to_string(&record).unwrap();
            assert!(line.starts_with(r#"{"type":""#), "{line}");
            assert_eq!(Record::decode(&line).unwrap(), record);
            // Other programs may write the field `type` last.
            let (kind, rest) = line[1..].split_once(',').unwrap();
            let turned = format!(
                "{{{},{kind}}}",
                rest.trim_end_matches('}').to_owned() + &closing_braces(rest)
            );
            assert_eq!(Record::decode(&turned).unwrap(), record, "{turned}");
        }
    }

    /// Returns the closing braces at the end of `text`, except for the last one.
    fn closing_braces(text: &str) -> String {
        "}".repeat(text.len() - text.trim_end_matches('}').len() - 1)
    }

    #[test]
    fn invalid_record_is_refused() {
        for line in [
            "",
            "null",
            "{}",
            r#"{"type":"sample"}"#,
            r#"{"type":"samples"}"#,
            r#"{"type":"sample","#,
            "[1]",
        ] {
            assert!(Record::decode(line).is_err(), "{line}");
        }
    }
}
