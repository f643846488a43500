//! What is answered of the past: `/api/v1/history`.

use std::{collections::BTreeMap, mem::discriminant};

use gpumon_probe::{
    flat,
    model::{Condition, Event},
    stat::Stat,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::wanted::DeviceKind;

/// A span of time, on one time axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct HistorySpan {
    /// The first moment that is answered: as asked, or the first of which anything is known.
    pub from_ms: u64,
    /// The last.
    pub to_ms: u64,
    /// The time of one point: that of the samples themselves (1000, unless they come more slowly),
    /// 10000, 60000, 900000, or a multiple of one of these where fewer points were asked for.
    pub resolution_ms: u64,
    /// The first moment of which anything is known; `to_ms` where that is nothing.
    pub oldest_ms: u64,
    /// Where the past is kept.
    pub storage: Storage,
    /// When each point begins, oldest first. As sampled, that is when the sample was put together;
    /// else a multiple of `resolution_ms`, without a step left out between the first and the last
    /// of which anything is known.
    pub times_ms: Vec<u64>,
    /// One entry per GPU that has a value in the span.
    pub gpus: Vec<DeviceSpan>,
    /// One entry per MIG device; left out where none was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<DeviceSpan>>", optional)]
    pub mig_devices: Vec<DeviceSpan>,
    /// The machine's, by their names in the catalogue; left out where none was asked for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[ts(as = "Option<BTreeMap<String, Series>>", optional)]
    pub host: BTreeMap<String, Series>,
    /// What happened in the span, the oldest first: at most 1000 events, where those of processes
    /// give way to others.
    pub events: Vec<Event>,
    /// What was the matter in the span, the first to begin first; at most 1000.
    pub conditions: Vec<ConditionSpan>,
}

/// One GPU's part of a span, or a MIG device's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct DeviceSpan {
    /// Its UUID.
    pub uuid: String,
    /// The driver's index when it was seen last.
    pub index: u32,
    /// Its name, or a MIG device's profile; `null` where the driver has not told it.
    pub name: Option<String>,
    /// Of a MIG device, the UUID of the GPU that it is a part of; left out where that is not known,
    /// and of GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub parent: Option<String>,
    /// By their names in the catalogue, as `power.draw_watts`; those of MIG devices with `mig.`
    /// before them. Left out where there is no value at all.
    pub metrics: BTreeMap<String, Series>,
}

/// One metric of a span.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Series {
    /// One for each of `times_ms`, `null` where there was none: the mean of a gauge, the last of a
    /// counter or a state.
    pub values: Vec<Option<f64>>,
    /// The least of a gauge; left out as sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub min: Option<Vec<Option<f64>>>,
    /// The largest of a gauge; left out as sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub max: Option<Vec<Option<f64>>>,
}

impl HistorySpan {
    /// GPUs, MIG devices and the machine, each with its metrics. The machine has no entry.
    pub fn devices(&self) -> impl Iterator<Item = SpanPart<'_>> {
        let host = SpanPart {
            kind: DeviceKind::Host,
            device: None,
            metrics: &self.host,
        };
        let gpus = self.gpus.iter().map(|gpu| (DeviceKind::Gpu, gpu));
        let mig_devices = self.mig_devices.iter().map(|mig| (DeviceKind::Mig, mig));
        let devices = gpus.chain(mig_devices);
        devices
            .map(|(kind, device)| SpanPart {
                kind,
                device: Some(device),
                metrics: &device.metrics,
            })
            .chain((!self.host.is_empty()).then_some(host))
    }
}

/// The part of a span that belongs to one device, or to the machine.
#[derive(Debug, Clone, Copy)]
pub struct SpanPart<'a> {
    /// The kind of the device.
    pub kind: DeviceKind,
    /// Its entry; `None` for the machine.
    pub device: Option<&'a DeviceSpan>,
    /// Its metrics, by their names.
    pub metrics: &'a BTreeMap<String, Series>,
}

impl Series {
    /// The statistics at a place of the time axis. Without a range, one reading is all of it.
    pub fn stat_at(&self, place: usize) -> Option<Stat> {
        let value = (*self.values.get(place)?)?;
        let of = |range: &Option<Vec<Option<f64>>>| {
            let known = range.as_ref().and_then(|range| *range.get(place)?);
            known.unwrap_or(value)
        };
        Some(Stat {
            mean: value,
            min: of(&self.min),
            max: of(&self.max),
        })
    }
}

/// A condition, from its beginning to its end.
#[derive(Debug, Clone, PartialEq, Serialize, TS, JsonSchema)]
pub struct ConditionSpan {
    /// The GPU's UUID.
    pub uuid: String,
    /// When it began.
    pub from_ms: u64,
    /// When it was over; `null` while it lasts.
    pub to_ms: Option<u64>,
    /// As it was last.
    #[serde(flatten)]
    #[ts(flatten)]
    pub condition: Condition,
}

impl ConditionSpan {
    /// Whether both tell of the same: of one beginning of one kind on one GPU.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.uuid, self.from_ms) == (&other.uuid, other.from_ms)
            && discriminant(&self.condition.kind) == discriminant(&other.condition.kind)
    }
}

flat! { ConditionSpan { uuid, from_ms, to_ms, condition: rest } }

/// Where the past is kept, and how far back it can be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Storage {
    /// Whether it is on disk, and outlives the server.
    pub on_disk: bool,
    /// Why it is not, or not now, in words for people; left out where all is as it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub problem: Option<String>,
    /// How far back it will reach once it has run for so long, in milliseconds.
    pub reach_ms: u64,
}
