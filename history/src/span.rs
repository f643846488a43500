//! A span of history: its format in the response of `/api/v1/history`, the selection of its
//! metrics, and the request, from which the resolution is chosen.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    mem::discriminant,
    ops::RangeInclusive,
    sync::LazyLock,
};

use gpumon_probe::{
    flat,
    model::{
        Condition, Event,
        fields::{Field, GPU_FIELDS, HOST_FIELDS, Kind, OVERVIEW},
    },
    stat::Stat,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::grid::Grid;

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
    pub mig_devices: Vec<DeviceSpan>,
    /// The metrics of the host by name. Omitted if no host metric was requested.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
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
    #[serde(skip_serializing_if = "Option::is_none")]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub min: Option<Vec<Option<f64>>>,
    /// The maximum values of a gauge. Omitted if the points are samples.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    /// Returns the statistics at a position on the time axis. If the point is a single sample, the
    /// minimum and maximum equal the value.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub problem: Option<String>,
    /// The time for which history is kept, in milliseconds.
    pub reach_ms: u64,
}

// The selection of metrics in a request for history.

/// The name of the metric for the memory of each process on a GPU, as used in requests.
const HOLDERS_METRIC: &str = "processes.memory_bytes";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceKind {
    Gpu,
    Mig,
    /// The host, which has an empty UUID.
    Host,
}

/// A field of the field catalog, as a metric of one kind of device.
#[derive(Debug)]
pub struct Metric {
    pub device: DeviceKind,
    /// The name in requests. Names of MIG metrics begin with `mig.`.
    pub id: Cow<'static, str>,
    /// The field's name in the field catalog.
    pub field: &'static str,
    /// The field's position in the field catalog.
    pub place: usize,
    pub kind: Kind,
    /// The field's description in the field catalog.
    pub help: &'static str,
    is_charted: bool,
}

static METRICS: LazyLock<[Vec<Metric>; 3]> = LazyLock::new(|| {
    fn list_metrics<S>(
        device: DeviceKind,
        fields: &[Field<S>],
        id: fn(&Field<S>) -> Option<Cow<'static, str>>,
    ) -> Vec<Metric> {
        let metric = |(place, field): (usize, &Field<S>)| {
            Some(Metric {
                device,
                id: id(field)?,
                field: field.id,
                place,
                kind: field.kind,
                help: field.help,
                is_charted: field.chart.is_some(),
            })
        };
        fields.iter().enumerate().filter_map(metric).collect()
    }
    [
        list_metrics(DeviceKind::Gpu, GPU_FIELDS, |field| Some(field.id.into())),
        list_metrics(DeviceKind::Mig, GPU_FIELDS, |field| {
            field.mig.map(|_| format!("mig.{}", field.id).into())
        }),
        list_metrics(DeviceKind::Host, HOST_FIELDS, |field| Some(field.id.into())),
    ]
});

impl DeviceKind {
    /// All kinds, in display order.
    pub const ALL: [Self; 3] = [Self::Gpu, Self::Mig, Self::Host];

    /// Returns the kind's name in the database and in exports.
    pub fn export_name(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::Mig => "mig",
            Self::Host => "host",
        }
    }

    /// Returns the metrics of this kind of device, in the order of the field catalog.
    pub fn metrics(self) -> &'static [Metric] {
        &METRICS[self as usize]
    }
}

impl Metric {
    /// Returns the metrics of all kinds of devices.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        METRICS.iter().flatten()
    }

    /// Returns the metric that has this name in requests.
    pub fn find(id: &str) -> Option<&'static Self> {
        Self::all().find(|metric| metric.id == id)
    }
}

/// A selection of history metrics.
#[derive(Debug, Clone, Default)]
pub struct MetricSelection {
    metrics: [Vec<&'static Metric>; 3],
    /// Whether the selection includes the processes that hold memory.
    pub holders: bool,
}

impl MetricSelection {
    /// Selects the metrics shown in the overview of all GPUs.
    pub fn select_overview() -> Self {
        Self::select(|metric| metric.device == DeviceKind::Gpu && OVERVIEW.contains(&metric.field))
    }

    /// Selects the GPU metrics that have a chart by default.
    pub fn select_gpu_charts() -> Self {
        Self::select(|metric| metric.device == DeviceKind::Gpu && metric.is_charted)
    }

    /// Selects the GPU and host metrics that have a chart by default.
    pub fn select_charts() -> Self {
        Self::select(|metric| metric.device != DeviceKind::Mig && metric.is_charted)
    }

    /// Selects all metrics, but not the processes that hold memory.
    pub fn select_all() -> Self {
        Self::select(|_| true)
    }

    fn select(is_chosen: impl Fn(&Metric) -> bool) -> Self {
        let chosen = |device: DeviceKind| {
            let metrics = device.metrics().iter();
            metrics.filter(|metric| is_chosen(metric)).collect()
        };
        Self {
            metrics: DeviceKind::ALL.map(chosen),
            holders: false,
        }
    }

    /// Returns the selected metrics of one kind of device.
    pub fn metrics_for(&self, device: DeviceKind) -> &[&'static Metric] {
        &self.metrics[device as usize]
    }

    /// Returns the names of the selected metrics, sorted and without duplicates.
    pub fn ids(&self) -> Vec<String> {
        let metrics = self.metrics.iter().flatten();
        let holders = self.holders.then_some(HOLDERS_METRIC);
        let ids: BTreeSet<_> = metrics.map(|metric| &*metric.id).chain(holders).collect();
        ids.into_iter().map(str::to_owned).collect()
    }

    /// Returns the metrics with the given names, and an error if any name is unknown.
    pub fn parse_names<'a>(ids: impl Iterator<Item = &'a str>) -> (Self, Result<(), String>) {
        let (mut wanted, mut unknown) = (Self::default(), Vec::new());
        for id in ids {
            match Metric::find(id) {
                Some(metric) => wanted.metrics[metric.device as usize].push(metric),
                None if id == HOLDERS_METRIC => wanted.holders = true,
                None => unknown.push(id),
            }
        }
        if unknown.is_empty() {
            return (wanted, Ok(()));
        }
        let all = Self {
            holders: true,
            ..Self::select_all()
        };
        (
            wanted,
            Err(format!(
                "unknown metric '{}'; use one or more of {}",
                unknown.join("', '"),
                all.ids().join(", ")
            )),
        )
    }
}

// The request for a span, and the choice of its resolution and of the tier that its points are
// made from.

/// The allowed range for the number of points in a request.
pub const POINT_LIMITS: RangeInclusive<u32> = 1..=5000;

/// A request for a span of history.
#[derive(Debug, Clone)]
pub struct SpanRequest {
    /// The start of the span.
    pub from_ms: u64,
    /// The end of the span.
    pub to_ms: u64,
    /// The maximum number of points on the time axis.
    pub points: u32,
    /// The time that each point should cover. It takes precedence over `points`. If no tier has
    /// this resolution, a multiple of a tier's resolution is used.
    pub resolution_ms: Option<u64>,
    /// The metrics of the span.
    pub wanted: MetricSelection,
}

/// The query of `GET /api/v1/history`: a span of time, its metrics and resolution.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryQuery {
    /// The start in milliseconds since 1970; by default, ten minutes before the end.
    pub from_ms: Option<u64>,
    /// The end in milliseconds since 1970; by default, now.
    pub to_ms: Option<u64>,
    /// Comma-separated metrics of the field catalog; by default, the metrics of the overview.
    pub metrics: Option<String>,
    /// The maximum number of points; by default, 600.
    #[schemars(range(min = *POINT_LIMITS.start(), max = *POINT_LIMITS.end()))]
    pub points: Option<u32>,
    /// The length of a point in milliseconds, instead of `points`. At most 5000 points are
    /// returned.
    #[schemars(range(min = 1))]
    pub resolution_ms: Option<u64>,
}

impl HistoryQuery {
    /// Returns the endpoint's path with this query, for a request to a server.
    pub fn request_target(&self) -> String {
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        let metrics = self.metrics.as_deref();
        let parts = [
            ("from_ms", number(self.from_ms)),
            ("to_ms", number(self.to_ms)),
            (
                "metrics",
                metrics.map(|ids| utf8_percent_encode(ids, NON_ALPHANUMERIC).to_string()),
            ),
            ("points", number(self.points.map(u64::from))),
            ("resolution_ms", number(self.resolution_ms)),
        ];
        let parts = parts.into_iter();
        let parts: Vec<_> = parts
            .filter_map(|(key, value)| Some(format!("{key}={}", value?)))
            .collect();
        format!("history?{}", parts.join("&"))
    }
}

impl SpanRequest {
    /// Returns the endpoint's path with the query that requests this span from a server.
    pub fn request_target(&self) -> String {
        let query = HistoryQuery {
            from_ms: Some(self.from_ms),
            to_ms: Some(self.to_ms),
            metrics: Some(self.wanted.ids().join(",")),
            points: Some(self.points),
            resolution_ms: self.resolution_ms,
        };
        query.request_target()
    }
}

/// The history that is available at one resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier {
    /// The time between two entries, in milliseconds.
    pub resolution_ms: u64,
    /// The time of the oldest entry.
    pub oldest_ms: u64,
    /// Whether the entries are single samples; otherwise, they aggregate several samples.
    pub is_sampled: bool,
}

/// The resolution and source of a span's points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The start of the span, limited to the available history.
    pub from_ms: u64,
    /// The end of the span.
    pub to_ms: u64,
    /// The oldest time in any tier.
    pub oldest_ms: u64,
    /// The index of the tier that the points are made from.
    pub tier: usize,
    /// The time that a point covers, or 0 if each entry of the tier becomes a point.
    pub step_ms: u64,
    /// The time that a point covers, in milliseconds. Unlike `step_ms`, it is never 0.
    pub resolution_ms: u64,
}

impl Plan {
    /// Chooses one of the tiers, which are ordered from fine to coarse.
    ///
    /// To read as little as possible, points are made from the coarsest tier whose number of
    /// entries is at least half the maximum number of points. If this tier does not reach back to
    /// the start of the span, a coarser tier that reaches further is chosen. If all tiers are too
    /// coarse, the finest is chosen. If the request sets a resolution, the coarsest tier whose
    /// resolution divides it is chosen.
    pub fn new(request: &SpanRequest, tiers: &[Tier]) -> Self {
        let SpanRequest { to_ms, points, .. } = *request;
        // A coarser entry starts before the finer entries that it was made from. A coarser tier
        // therefore reaches further back only if its first entry also ends before the first finer
        // entry.
        let is_older = |coarser: &Tier, than: &Tier| {
            coarser.oldest_ms + coarser.resolution_ms <= than.oldest_ms
        };
        let oldest = tiers
            .iter()
            .reduce(|oldest, tier| if is_older(tier, oldest) { tier } else { oldest });
        let oldest_ms = oldest.map_or(to_ms, |tier| tier.oldest_ms);
        let from_ms = request.from_ms.max(oldest_ms).min(to_ms);
        let least_ms = request
            .resolution_ms
            .unwrap_or((to_ms - from_ms) / u64::from(points.max(1)));
        let coarsest = |is_fit: &dyn Fn(u64) -> bool| {
            tiers.iter().rposition(|tier| is_fit(tier.resolution_ms))
        };
        let enough = match request.resolution_ms {
            None => coarsest(&|tier_ms| tier_ms <= 2 * least_ms),
            Some(asked_ms) => coarsest(&|tier_ms| asked_ms.is_multiple_of(tier_ms))
                .or_else(|| coarsest(&|tier_ms| tier_ms <= asked_ms)),
        };
        let enough = enough.unwrap_or(0);
        let reaches = |at: usize| {
            let tier = &tiers[at];
            tier.oldest_ms <= from_ms
                || !tiers[at + 1..]
                    .iter()
                    .any(|coarser| is_older(coarser, tier))
        };
        let tier = (enough..tiers.len())
            .find(|tier| reaches(*tier))
            .unwrap_or(enough);
        let entry_ms = tiers.get(tier).map_or(1000, |tier| tier.resolution_ms);
        let resolution_ms = least_ms.max(1).next_multiple_of(entry_ms);
        let is_sampled = tiers.get(tier).is_none_or(|tier| tier.is_sampled);
        let step_ms = if is_sampled && resolution_ms == entry_ms {
            0
        } else {
            resolution_ms
        };
        Self {
            from_ms,
            to_ms,
            oldest_ms,
            tier,
            step_ms,
            resolution_ms,
        }
    }

    /// Returns an empty grid for this plan's points.
    pub fn new_grid(&self, wanted: &MetricSelection) -> Grid {
        Grid::new(self.from_ms, self.to_ms, self.step_ms, wanted.clone())
    }
}

/// Rounds a gauge to four significant digits, which is enough for charts. Without rounding, noise
/// would be a third of the transferred and stored bytes. Counters and states are not rounded.
pub fn round_to_four_digits(value: f64) -> f64 {
    const DIGITS: i32 = 4;
    if !value.is_normal() {
        return value;
    }
    let digits_left = value.abs().log10().floor() as i32 + 1 - DIGITS;
    // Multiplying or dividing by a whole power of ten avoids rounding errors.
    let power = 10_f64.powi(digits_left.abs());
    if digits_left > 0 {
        (value / power).round() * power
    } else {
        (value * power).round() / power
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1000;
    const MINUTE: u64 = 60 * SECOND;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    const NOW: u64 = 1000 * DAY;

    /// Returns the chosen tier and the resolution for a span that ends now, on a server that has
    /// run for `reach_ms`.
    fn plan_tier_and_resolution(reach_ms: u64, span_ms: u64, points: u32) -> (usize, u64) {
        let tier = |resolution_ms: u64, keep_ms: u64| {
            let oldest_ms = (NOW - keep_ms.min(reach_ms)) / resolution_ms * resolution_ms;
            Tier {
                resolution_ms,
                oldest_ms,
                is_sampled: resolution_ms == SECOND,
            }
        };
        let tiers = [
            tier(SECOND, 10 * MINUTE),
            tier(10 * SECOND, 2 * DAY),
            tier(MINUTE, 30 * DAY),
            tier(15 * MINUTE, 365 * DAY),
        ];
        let request = SpanRequest {
            from_ms: NOW - span_ms,
            to_ms: NOW,
            points,
            resolution_ms: None,
            wanted: MetricSelection::select_overview(),
        };
        let plan = Plan::new(&request, &tiers);
        assert!(span_ms / plan.resolution_ms <= points.into());
        (plan.tier, plan.resolution_ms)
    }

    #[test]
    fn coarsest_sufficient_tier_is_chosen() {
        for (span_ms, expected) in [
            (MINUTE, (0, SECOND)),
            (10 * MINUTE, (0, SECOND)),
            (HOUR, (1, 10 * SECOND)),
            (6 * HOUR, (2, MINUTE)),
            (DAY, (2, 3 * MINUTE)),
            (7 * DAY, (3, 30 * MINUTE)),
            (30 * DAY, (3, 75 * MINUTE)),
            (365 * DAY, (3, 59 * 15 * MINUTE)),
        ] {
            assert_eq!(
                plan_tier_and_resolution(365 * DAY, span_ms, 600),
                expected,
                "{span_ms}"
            );
        }
    }

    #[test]
    fn requested_resolution_is_multiple_of_tier() {
        let tiers = [
            (SECOND, 10 * MINUTE),
            (10 * SECOND, 2 * DAY),
            (MINUTE, 30 * DAY),
            (15 * MINUTE, 365 * DAY),
        ];
        let tiers = tiers.map(|(resolution_ms, keep_ms)| Tier {
            resolution_ms,
            oldest_ms: NOW - keep_ms,
            is_sampled: resolution_ms == SECOND,
        });
        for (span_ms, asked_ms, expected) in [
            (5 * MINUTE, SECOND, (0, SECOND, 0)),
            (5 * MINUTE, 7 * SECOND, (0, 7 * SECOND, 7 * SECOND)),
            (2 * HOUR, MINUTE, (2, MINUTE, MINUTE)),
            (119 * MINUTE, HOUR, (3, HOUR, HOUR)),
            (DAY, 90 * SECOND, (1, 90 * SECOND, 90 * SECOND)),
            (DAY, 8 * MINUTE, (2, 8 * MINUTE, 8 * MINUTE)),
            (3 * DAY, 10 * SECOND, (2, MINUTE, MINUTE)),
            (HOUR, SECOND, (1, 10 * SECOND, 10 * SECOND)),
        ] {
            let (from_ms, to_ms, wanted) =
                (NOW - span_ms, NOW - 1, MetricSelection::select_overview());
            let request = SpanRequest {
                from_ms,
                to_ms,
                points: 1,
                resolution_ms: Some(asked_ms),
                wanted,
            };
            let Plan {
                tier,
                resolution_ms,
                step_ms,
                ..
            } = Plan::new(&request, &tiers);
            assert_eq!(
                (tier, resolution_ms, step_ms),
                expected,
                "{span_ms} {asked_ms}"
            );
        }
    }

    #[test]
    fn span_longer_than_tier_retention_uses_coarser_tier() {
        assert_eq!(
            plan_tier_and_resolution(365 * DAY, 11 * MINUTE, 5000),
            (1, 10 * SECOND)
        );
        assert_eq!(
            plan_tier_and_resolution(365 * DAY, 3 * DAY, 5000),
            (2, MINUTE)
        );
        assert_eq!(
            plan_tier_and_resolution(365 * DAY, 31 * DAY, 5000),
            (3, 15 * MINUTE)
        );
    }

    #[test]
    fn new_server_returns_fine_points_for_long_spans() {
        let tiers = [Tier {
            resolution_ms: SECOND,
            oldest_ms: NOW - 5 * SECOND,
            is_sampled: true,
        }];
        let request = |span_ms| SpanRequest {
            from_ms: NOW - span_ms,
            to_ms: NOW,
            points: 600,
            resolution_ms: None,
            wanted: MetricSelection::select_overview(),
        };
        let plan = Plan::new(&request(10 * MINUTE), &tiers);
        assert_eq!(
            (plan.from_ms, plan.oldest_ms, plan.step_ms),
            (NOW - 5 * SECOND, NOW - 5 * SECOND, 0)
        );
        assert_eq!(Plan::new(&request(30 * DAY), &tiers), plan);
        let none = Plan::new(&request(HOUR), &[]);
        assert_eq!((none.from_ms, none.oldest_ms), (NOW, NOW));
    }

    #[test]
    fn finer_tier_is_chosen_despite_rounded_start() {
        let tier = |resolution_ms, oldest_ms| Tier {
            resolution_ms,
            oldest_ms,
            is_sampled: false,
        };
        let request = SpanRequest {
            from_ms: 295_000,
            to_ms: 311_000,
            points: 5000,
            resolution_ms: None,
            wanted: MetricSelection::select_overview(),
        };
        let plan = |oldest_ms| {
            let plan = Plan::new(&request, &[tier(10_000, 300_000), tier(60_000, oldest_ms)]);
            (plan.resolution_ms, plan.oldest_ms)
        };
        assert_eq!(plan(260_000), (10_000, 300_000));
        assert_eq!(plan(240_000), (60_000, 240_000));
    }
}
