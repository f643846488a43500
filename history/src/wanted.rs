//! The selection of metrics in a request for history.

use std::{borrow::Cow, collections::BTreeSet, sync::LazyLock};

use gpumon_probe::model::fields::{Field, GPU_FIELDS, HOST_FIELDS, Kind, OVERVIEW};

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
    pub fn word(self) -> &'static str {
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
