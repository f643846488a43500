//! The metrics that a request for history selects.

use std::{borrow::Cow, collections::BTreeSet, sync::LazyLock};

use gpumon_probe::model::fields::{Field, GPU_FIELDS, HOST_FIELDS, Kind, OVERVIEW};

/// The name in requests for the memory of each process on a GPU.
const HOLDERS: &str = "processes.memory_bytes";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceKind {
    Gpu,
    Mig,
    /// The host, which has an empty UUID.
    Host,
}

/// A field of the catalogue in the history of one kind of device.
#[derive(Debug)]
pub struct Metric {
    pub device: DeviceKind,
    /// The name in requests. Those of MIG devices begin with `mig.`.
    pub id: Cow<'static, str>,
    /// The name of the field in the catalogue.
    pub field: &'static str,
    /// The position in the catalogue.
    pub place: usize,
    pub kind: Kind,
    /// The description in the catalogue.
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
    /// All kinds in the order of their display.
    pub const ALL: [Self; 3] = [Self::Gpu, Self::Mig, Self::Host];

    /// Returns the name in the database and in exports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::Mig => "mig",
            Self::Host => "host",
        }
    }

    /// Returns the metrics of this kind in the order of the catalogue.
    pub fn metrics(self) -> &'static [Metric] {
        &METRICS[self as usize]
    }
}

impl Metric {
    /// Returns all metrics of all devices.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        METRICS.iter().flatten()
    }

    /// Returns the metric with this name in requests.
    pub fn find(id: &str) -> Option<&'static Self> {
        Self::all().find(|metric| metric.id == id)
    }
}

/// A selection of metrics of the catalogue.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    metrics: [Vec<&'static Metric>; 3],
    /// Whether the selection includes the processes that hold memory.
    pub holders: bool,
}

impl Wanted {
    /// Returns the metrics in the overview of all GPUs.
    pub fn overview() -> Self {
        Self::choose(|metric| metric.device == DeviceKind::Gpu && OVERVIEW.contains(&metric.field))
    }

    /// Returns the metrics of GPUs that have a chart by default.
    pub fn of_gpus() -> Self {
        Self::choose(|metric| metric.device == DeviceKind::Gpu && metric.is_charted)
    }

    /// Returns the metrics of GPUs and of the host that have a chart by default.
    pub fn all_charted() -> Self {
        Self::choose(|metric| metric.device != DeviceKind::Mig && metric.is_charted)
    }

    /// Returns all metrics, without the processes that hold memory.
    pub fn all() -> Self {
        Self::choose(|_| true)
    }

    fn choose(is_chosen: impl Fn(&Metric) -> bool) -> Self {
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
    pub fn metrics_of(&self, device: DeviceKind) -> &[&'static Metric] {
        &self.metrics[device as usize]
    }

    /// Returns the sorted names without duplicates. The order of the request does not matter.
    pub fn ids(&self) -> Vec<String> {
        let metrics = self.metrics.iter().flatten();
        let holders = self.holders.then_some(HOLDERS);
        let ids: BTreeSet<_> = metrics.map(|metric| &*metric.id).chain(holders).collect();
        ids.into_iter().map(str::to_owned).collect()
    }

    /// Returns the metrics with these names, and an error that describes unknown names.
    pub fn named<'a>(ids: impl Iterator<Item = &'a str>) -> (Self, Result<(), String>) {
        let (mut wanted, mut unknown) = (Self::default(), Vec::new());
        for id in ids {
            match Metric::find(id) {
                Some(metric) => wanted.metrics[metric.device as usize].push(metric),
                None if id == HOLDERS => wanted.holders = true,
                None => unknown.push(id),
            }
        }
        if unknown.is_empty() {
            return (wanted, Ok(()));
        }
        let all = Self {
            holders: true,
            ..Self::all()
        };
        (
            wanted,
            Err(format!(
                "unknown metric '{}'; there are {}",
                unknown.join("', '"),
                all.ids().join(", ")
            )),
        )
    }
}

/// Rounds a gauge to four significant digits, which is enough for charts. The noise beyond them
/// would be a third of the transferred and stored bytes. Counters and states are not rounded.
pub fn rounded(value: f64) -> f64 {
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
