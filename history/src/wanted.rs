//! Which metrics of the past somebody wants.

use std::{borrow::Cow, collections::BTreeSet, sync::LazyLock};

use gpumon_probe::model::fields::{Field, GPU_FIELDS, HOST_FIELDS, Kind, OVERVIEW};

/// Stands for what each holder has of a GPU's memory, among the metrics that may be asked for.
const HOLDERS: &str = "processes.memory_bytes";

/// The kinds of devices that have readings of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceKind {
    /// A GPU.
    Gpu,
    /// A part of a GPU.
    Mig,
    /// The machine. There is one of it, whose UUID is empty.
    Host,
}

/// A field of the catalogue as the history of one kind of devices has it.
#[derive(Debug)]
pub struct Metric {
    /// The kind of devices that have it.
    pub device: DeviceKind,
    /// The name that is asked for, with `mig.` before it if it belongs to MIG devices.
    pub id: Cow<'static, str>,
    /// The name in the catalogue.
    pub field: &'static str,
    /// The place in the catalogue.
    pub place: usize,
    /// How it moves.
    pub kind: Kind,
    /// Its description in the catalogue.
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
    /// All kinds, in the order in which they are shown.
    pub const ALL: [Self; 3] = [Self::Gpu, Self::Mig, Self::Host];

    /// The name in the database and in exports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::Mig => "mig",
            Self::Host => "host",
        }
    }

    /// The metrics that such devices have, in the order of the catalogue.
    pub fn metrics(self) -> &'static [Metric] {
        &METRICS[self as usize]
    }
}

impl Metric {
    /// All metrics of all devices.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        METRICS.iter().flatten()
    }

    /// The metric of this name.
    pub fn find(id: &str) -> Option<&'static Self> {
        Self::all().find(|metric| metric.id == id)
    }
}

/// Metrics of the catalogue.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    metrics: [Vec<&'static Metric>; 3],
    /// Whether the processes that held the memory are wanted, too.
    pub holders: bool,
}

impl Wanted {
    /// What an overview of all GPUs shows.
    pub fn overview() -> Self {
        Self::choose(|metric| metric.device == DeviceKind::Gpu && OVERVIEW.contains(&metric.field))
    }

    /// What is drawn of GPUs without being asked.
    pub fn of_gpus() -> Self {
        Self::choose(|metric| metric.device == DeviceKind::Gpu && metric.is_charted)
    }

    /// The metrics of GPUs and of the machine that are drawn without being asked for.
    pub fn all_charted() -> Self {
        Self::choose(|metric| metric.device != DeviceKind::Mig && metric.is_charted)
    }

    /// All metrics, without the processes that held the memory.
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

    /// The metrics that are wanted of one kind of devices.
    pub fn metrics_of(&self, device: DeviceKind) -> &[&'static Metric] {
        &self.metrics[device as usize]
    }

    /// Their names, each once and in one order, however they were asked for.
    pub fn ids(&self) -> Vec<String> {
        let metrics = self.metrics.iter().flatten();
        let holders = self.holders.then_some(HOLDERS);
        let ids: BTreeSet<_> = metrics.map(|metric| &*metric.id).chain(holders).collect();
        ids.into_iter().map(str::to_owned).collect()
    }

    /// The metrics of these names, and what is wrong with the others.
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

/// A gauge with the digits that a chart shows, four. The rest is noise, which would be a third of
/// what a new client gets and of what is stored. Counters and states keep all.
pub fn rounded(value: f64) -> f64 {
    const DIGITS: i32 = 4;
    if !value.is_normal() {
        return value;
    }
    let digits_left = value.abs().log10().floor() as i32 + 1 - DIGITS;
    // Of whole numbers, so that nothing is lost by the way.
    let power = 10_f64.powi(digits_left.abs());
    if digits_left > 0 {
        (value / power).round() * power
    } else {
        (value * power).round() / power
    }
}
