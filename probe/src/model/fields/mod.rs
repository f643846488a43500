//! The catalogue of fields: every number of a sample, described once.
//!
//! History, `--csv`, `/metrics`, `gpumon top`, the sanity checks, the page's charts and the
//! reference page read it. A new number is its place in the sample, the driver's call that fills
//! it, and an entry here; `make types` writes what is generated from it.

mod access;
mod gpu;
mod host;
mod metrics;

use super::{Gpu, GpuSample, MigSample};

pub use access::Access;
pub use gpu::GPU_FIELDS;
pub use host::HOST_FIELDS;
pub use metrics::{BOARD_METRICS, DETAIL_METRICS, Metric, SAMPLE_METRICS};

/// The few that an overview of all GPUs shows, in its order. Every client gets their history.
pub const OVERVIEW: [&str; 4] = [
    "utilization.gpu_percent",
    "memory.used_bytes",
    "power.draw_watts",
    "temperature.gpu_celsius",
];

/// The charts of a dashboard by name, with their titles, in their order. Fields name the one that
/// they are a line of; `mig` has those of MIG devices.
pub const CHARTS: [(&str, &str); 15] = [
    ("activity", "Activity"),
    ("memory", "Memory"),
    ("power", "Power"),
    ("temperature", "Temperature"),
    ("clocks", "Clocks"),
    ("pcie", "PCIe"),
    ("nvlink", "NVLink"),
    ("units", "Execution units"),
    ("engines", "Engines"),
    ("fan", "Fan"),
    ("mig", "MIG devices"),
    ("cpu", "CPU"),
    ("ram", "RAM"),
    ("disk", "Disks"),
    ("network", "Network"),
];

/// No link of a GPU moves 10 TB in a second.
pub(crate) const MOST_BYTES_PER_SECOND: f64 = 1e13;

/// NVML's fan speed is a share of the speed at the tolerated noise, and may exceed it.
pub(crate) const MOST_FAN_PERCENT: f64 = 200.0;

/// One number of `S`, and all that is said of it anywhere.
#[derive(Debug, Clone, Copy)]
pub struct Field<S: 'static = GpuSample> {
    /// The path in the sample's JSON, joined by dots; it ends in the unit. History frames and CSV
    /// columns have it.
    pub id: &'static str,
    /// What it is called where it stands alone.
    pub label: &'static str,
    /// The same in seven columns at most, as above those of a table.
    pub short_label: &'static str,
    /// One sentence: what it is, and what it is not.
    pub help: &'static str,
    /// What it is counted in.
    pub unit: Unit,
    /// How it moves.
    pub kind: Kind,
    /// How often it is read while nobody watches.
    pub unwatched: Unwatched,
    /// The least and the largest value that can be; a reading outside is unknown.
    pub range: (f64, f64),
    /// How it is reached in a sample.
    pub access: Access<S>,
    /// The same of a MIG device.
    pub mig: Option<Access<MigSample>>,
    /// Its name for Prometheus, in whose base units it is told there.
    pub prometheus: Option<&'static str>,
    /// The same of a MIG device.
    pub prometheus_mig: Option<&'static str>,
    /// Its names in dcgm-exporter.
    pub dcgm: Option<Dcgm>,
    /// Its name in OpenTelemetry's semantic conventions.
    pub otel: Option<&'static str>,
    /// How it is drawn over time without being asked.
    pub chart: Option<Chart>,
    /// What it is out of.
    pub limit: Option<Limit>,
    /// From which percentages of its limit on it counts as moderate, and as heavy, unless a
    /// terminal's settings say otherwise; a temperature's limit is that of the slowdown.
    pub load: Option<[u32; 2]>,
    /// Whether `--csv` has it without being asked.
    pub in_csv: bool,
}

/// What a number is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// 0 to 100.
    Percent,
    /// Of memory, shown in powers of 1024.
    Bytes,
    /// Of power.
    Watts,
    /// Of energy.
    Joules,
    /// Degrees.
    Celsius,
    /// Degrees between two temperatures.
    CelsiusDifference,
    /// Of a clock.
    Megahertz,
    /// Over a link, a disk or a network.
    BytesPerSecond,
    /// Of time.
    Seconds,
    /// A number of things, or a state that is a number.
    Count,
}

/// How a number moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Up and down.
    Gauge,
    /// Up, until what counts it starts anew.
    Counter,
    /// Among few values that stand for something.
    State,
}

/// How often a number is read while nobody watches. Who watches gets all numbers with every sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unwatched {
    /// With every sample, too.
    EverySample,
    /// Every ten seconds, those of the host every five, as they are then.
    Rarely,
    /// The same, as an average since it was read before.
    Averaged,
}

/// Names in dcgm-exporter.
#[derive(Debug, Clone, Copy)]
pub struct Dcgm {
    /// Until 4.8, in DCGM's own units: percent, MHz, MiB, mJ and nanoseconds, but shares from 0 to
    /// 1 where the name begins with `DCGM_FI_PROF_`.
    pub name: &'static str,
    /// Since 4.9, in Prometheus' base units where it is another one.
    pub renamed: &'static str,
}

/// How a number is drawn over time.
#[derive(Debug, Clone, Copy)]
pub struct Chart {
    /// What settings of `gpumon top` call it.
    pub key: &'static str,
    /// The chart that it is a line of, one of [`CHARTS`].
    pub name: &'static str,
    /// What its line is called in that chart.
    pub line: &'static str,
    /// The line's color there.
    pub color: Color,
}

/// The color of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// That of utilization everywhere.
    Utilization,
    /// That of memory everywhere.
    Memory,
    /// That of power everywhere.
    Power,
    /// That of temperature everywhere.
    Temperature,
    /// One of those that tell the lines of a chart apart.
    Line(u8),
}

/// What a number is out of.
#[derive(Debug, Clone, Copy)]
pub enum Limit {
    /// The field of this id, of the same sample.
    Field(&'static str),
    /// What the board can do.
    Board(fn(&Gpu) -> Option<f64>),
}

impl Unit {
    /// The least and the largest value that can be of this unit where an entry says nothing else.
    const fn range(self) -> (f64, f64) {
        match self {
            Self::Percent => (0.0, 100.0),
            Self::Celsius | Self::CelsiusDifference => (-40.0, 200.0),
            Self::Watts | Self::Megahertz => (0.0, 20_000.0),
            Self::BytesPerSecond => (0.0, MOST_BYTES_PER_SECOND),
            Self::Bytes | Self::Joules | Self::Seconds | Self::Count => (0.0, f64::MAX),
        }
    }

    /// The value in Prometheus' base units: a share from 0 to 1, and hertz.
    pub fn base(self, value: f64) -> f64 {
        match self {
            Self::Percent => value / 100.0,
            Self::Megahertz => value * 1e6,
            _ => value,
        }
    }
}

impl Dcgm {
    /// Names with one alone if it was kept, and no names for a number that dcgm-exporter lacks.
    const fn from_names(names: &[&'static str]) -> Option<Self> {
        match *names {
            [name] => Some(Self {
                name,
                renamed: name,
            }),
            [name, renamed] => Some(Self { name, renamed }),
            _ => None,
        }
    }

    /// The value in DCGM's own units.
    pub fn value(&self, unit: Unit, value: f64) -> f64 {
        match unit {
            Unit::Percent if self.name.starts_with("DCGM_FI_PROF_") => value / 100.0,
            Unit::Bytes => (value / f64::from(1 << 20)).floor(),
            Unit::Joules => value * 1e3,
            Unit::Seconds => (value * 1e9).round(),
            // Thousands of KiB.
            Unit::BytesPerSecond if self.name.starts_with("DCGM_FI_DEV_") => {
                (value / 1024e3).floor()
            }
            _ => value,
        }
    }

    /// The value under the name that it has since 4.9.
    pub fn renamed_value(&self, unit: Unit, value: f64) -> f64 {
        if self.name == self.renamed {
            self.value(unit, value)
        } else {
            unit.base(value)
        }
    }
}

impl<S> Field<S> {
    const fn new(
        id: &'static str,
        access: Access<S>,
        label: &'static str,
        short_label: &'static str,
        unit: Unit,
    ) -> Self {
        Self {
            id,
            label,
            short_label,
            help: "",
            unit,
            kind: Kind::Gauge,
            unwatched: Unwatched::EverySample,
            range: unit.range(),
            access,
            mig: None,
            prometheus: None,
            prometheus_mig: None,
            dcgm: None,
            otel: None,
            chart: None,
            limit: None,
            load: None,
            in_csv: false,
        }
    }

    const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    const fn kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    const fn unwatched(self, unwatched: Unwatched) -> Self {
        Self { unwatched, ..self }
    }

    const fn range(self, least: f64, largest: f64) -> Self {
        Self {
            range: (least, largest),
            ..self
        }
    }

    const fn prometheus(self, name: &'static str) -> Self {
        Self {
            prometheus: Some(name),
            ..self
        }
    }

    const fn dcgm(self, name: &'static str, renamed: &'static str) -> Self {
        Self {
            dcgm: Some(Dcgm { name, renamed }),
            ..self
        }
    }

    const fn otel(self, name: &'static str) -> Self {
        Self {
            otel: Some(name),
            ..self
        }
    }

    const fn mig(self, access: Access<MigSample>) -> Self {
        Self {
            mig: Some(access),
            ..self
        }
    }

    const fn prometheus_mig(self, name: &'static str) -> Self {
        Self {
            prometheus_mig: Some(name),
            ..self
        }
    }

    const fn chart(
        self,
        key: &'static str,
        name: &'static str,
        line: &'static str,
        color: Color,
    ) -> Self {
        Self {
            chart: Some(Chart {
                key,
                name,
                line,
                color,
            }),
            ..self
        }
    }

    const fn limit(self, limit: Limit) -> Self {
        Self {
            limit: Some(limit),
            ..self
        }
    }

    const fn load(self, moderate: u32, heavy: u32) -> Self {
        Self {
            load: Some([moderate, heavy]),
            ..self
        }
    }

    const fn in_csv(self) -> Self {
        Self {
            in_csv: true,
            ..self
        }
    }
}

impl<S> Field<S> {
    /// What the number is out of in this sample; `None` where that is not known. `fields` are those
    /// of the same kind of sample, and `gpu` is the board.
    pub fn limit_value(&self, fields: &[Self], sample: &S, gpu: Option<&Gpu>) -> Option<f64> {
        match self.limit? {
            Limit::Field(id) => fields
                .iter()
                .find(|field| field.id == id)?
                .access
                .value(sample),
            Limit::Board(read) => read(gpu?),
        }
    }
}

/// Those of these fields that are drawn over time without being asked.
pub fn charted<S>(fields: &'static [Field<S>]) -> impl Iterator<Item = &'static Field<S>> + Clone {
    fields.iter().filter(|field| field.chart.is_some())
}

/// The fields of [`OVERVIEW`].
pub fn overview() -> impl Iterator<Item = &'static Field> {
    OVERVIEW
        .iter()
        .filter_map(|id| GPU_FIELDS.iter().find(|field| field.id == *id))
}

#[cfg(test)]
mod tests;
