//! The history of a span, in the format of the `/api/v1/history` response.

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

/// A span of history on one time axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct HistorySpan {
    /// The start of the span: the requested start, or the start of the available history if that is
    /// later.
    pub from_ms: u64,
    /// The end of the span in milliseconds.
    pub to_ms: u64,
    /// The length of a point in milliseconds: the sampling interval (1000 or more), 10000, 60000,
    /// 900000, or a multiple of one of these if fewer points were requested.
    pub resolution_ms: u64,
    /// The start of the available history, or `to_ms` if there is none.
    pub oldest_ms: u64,
    /// The state of the history storage.
    pub storage: Storage,
    /// The start of each point, the oldest first. For samples, the times at which they were taken;
    /// otherwise multiples of `resolution_ms`, without gaps between the first and the last point.
    pub times_ms: Vec<u64>,
    /// The GPUs that have a value in the span.
    pub gpus: Vec<DeviceSpan>,
    /// The MIG devices that have a value in the span. Omitted if no MIG metric was requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<DeviceSpan>>", optional)]
    pub mig_devices: Vec<DeviceSpan>,
    /// The metrics of the host by name. Omitted if no host metric was requested.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[ts(as = "Option<BTreeMap<String, Series>>", optional)]
    pub host: BTreeMap<String, Series>,
    /// The events of the span, the oldest first. The maximum is 1000; other events take precedence
    /// over process events.
    pub events: Vec<Event>,
    /// The conditions of the span, ordered by start time. The maximum is 1000.
    pub conditions: Vec<ConditionSpan>,
}

/// The part of a span that belongs to one GPU or MIG device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct DeviceSpan {
    /// The UUID of the device.
    pub uuid: String,
    /// The device's last known index in the driver.
    pub index: u32,
    /// The name of the GPU or the profile of the MIG device; `null` if the driver has not reported
    /// it.
    pub name: Option<String>,
    /// The UUID of the GPU that contains the MIG device. Omitted for GPUs, and if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub parent: Option<String>,
    /// The metrics by name, such as `power.draw_watts`; names of MIG metrics begin with `mig.`.
    /// Metrics without any value are omitted.
    pub metrics: BTreeMap<String, Series>,
}

/// The values of one metric in a span.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Series {
    /// A value for each time in `times_ms`, or `null` if there is none: the mean of a gauge, or the
    /// last value of a counter or state.
    pub values: Vec<Option<f64>>,
    /// The minimum values of a gauge. Omitted if the points are samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub min: Option<Vec<Option<f64>>>,
    /// The maximum values of a gauge. Omitted if the points are samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub max: Option<Vec<Option<f64>>>,
}

impl HistorySpan {
    /// Returns the GPUs, the MIG devices and the host with their metrics. The host has no
    /// [`DeviceSpan`].
    pub fn parts(&self) -> impl Iterator<Item = SpanPart<'_>> {
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

/// The part of a span that belongs to one device, or to the host.
#[derive(Debug, Clone, Copy)]
pub struct SpanPart<'a> {
    pub kind: DeviceKind,
    /// The description of the device; `None` for the host.
    pub device: Option<&'a DeviceSpan>,
    /// The metrics of the device by name.
    pub metrics: &'a BTreeMap<String, Series>,
}

impl Series {
    /// Returns the statistics at a position on the time axis. For a sample, the minimum and maximum
    /// equal the value.
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

/// A condition with its start and end.
#[derive(Debug, Clone, PartialEq, Serialize, TS, JsonSchema)]
pub struct ConditionSpan {
    /// The UUID of the GPU.
    pub uuid: String,
    /// The time at which the condition began.
    pub from_ms: u64,
    /// The time at which the condition ended; `null` if it continues.
    pub to_ms: Option<u64>,
    /// The last state of the condition.
    #[serde(flatten)]
    #[ts(flatten)]
    pub condition: Condition,
}

impl ConditionSpan {
    /// Returns `true` if both conditions have the same kind, GPU and start.
    pub fn is_same_condition(&self, other: &Self) -> bool {
        (&self.uuid, self.from_ms) == (&other.uuid, other.from_ms)
            && discriminant(&self.condition.kind) == discriminant(&other.condition.kind)
    }
}

flat! { ConditionSpan { uuid, from_ms, to_ms, condition: rest } }

/// The history storage, and the time that it covers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Storage {
    /// Whether history is on disk and survives a restart of the server.
    pub on_disk: bool,
    /// The reason why history is not written to disk, as text for display. Omitted if there is no
    /// problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub problem: Option<String>,
    /// The time for which history is kept, in milliseconds.
    pub reach_ms: u64,
}
