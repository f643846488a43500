//! The field catalog, which describes every number in a sample.
//!
//! The catalog is used by the history, `--csv`, `/metrics`, `gpumon top`, the sanity checks, the
//! web page's charts and the reference page. A new number needs a field in the sample, the driver
//! call that fills the field, and a catalog entry here; `make types` writes the generated files.

mod access;
mod gpu;
mod host;
mod metrics;

use super::{Gpu, GpuSample, MigSample};

pub use access::Access;
pub use gpu::GPU_FIELDS;
pub use host::HOST_FIELDS;
pub use metrics::{BOARD_METRICS, DETAIL_METRICS, Metric, SAMPLE_METRICS};

/// The fields shown in an overview of all GPUs, in display order. Every client receives the history
/// of these fields.
pub const OVERVIEW: [&str; 4] = [
    "utilization.gpu_percent",
    "memory.used_bytes",
    "power.draw_watts",
    "temperature.gpu_celsius",
];

/// The names and titles of all charts, in display order. Each field names its chart; the chart
/// `mig` shows the fields of MIG devices.
pub const CHARTS: [(&str, &str); 16] = [
    ("activity", "Activity"),
    ("limits", "Limited by"),
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

/// The maximum plausible rate of a GPU's links, in bytes per second (10 TB/s).
pub(crate) const MAX_BYTES_PER_SECOND: f64 = 1e13;

/// The maximum plausible fan speed. NVML reports a percentage of the speed at the maximum noise
/// level, which fans may exceed.
pub(crate) const MAX_FAN_PERCENT: f64 = 200.0;

/// The description of one number in a value of type `S`, such as a sample.
#[derive(Debug, Clone, Copy)]
pub struct Field<S: 'static = GpuSample> {
    /// The path in the sample's JSON, joined by dots, with the unit at the end. The ID is also used
    /// in history frames and CSV columns.
    pub id: &'static str,
    /// The name in running text and headings.
    pub label: &'static str,
    /// A name of at most seven characters, for table columns.
    pub short_label: &'static str,
    /// A sentence that defines the field.
    pub help: &'static str,
    pub unit: Unit,
    pub kind: Kind,
    /// How often the field is read while nobody watches.
    pub unwatched: Unwatched,
    /// The smallest and the largest plausible value. Readings outside this range are treated as
    /// unknown.
    pub range: (f64, f64),
    /// Functions that get the field's value from a sample, or change it.
    pub access: Access<S>,
    /// Functions that get the field's value from the sample of a MIG device, or change it. `None`
    /// if MIG devices do not have the field.
    pub mig: Option<Access<MigSample>>,
    /// The name of the Prometheus metric, whose values are in Prometheus' base units.
    pub prometheus: Option<&'static str>,
    /// The name of the Prometheus metric for MIG devices.
    pub prometheus_mig: Option<&'static str>,
    /// The names in dcgm-exporter.
    pub dcgm: Option<Dcgm>,
    /// The name in OpenTelemetry's semantic conventions.
    pub otel: Option<&'static str>,
    /// The chart that shows the field by default.
    pub chart: Option<Chart>,
    /// The limit that the value is compared with.
    pub limit: Option<Limit>,
    /// Two percentages of the limit: the value counts as moderate above the first, and as heavy
    /// above the second. The terminal's settings can change them. For a temperature, the limit is
    /// the slowdown temperature.
    pub load: Option<[u32; 2]>,
    /// Whether `--csv` shows the field by default.
    pub in_csv: bool,
}

/// The unit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A share from 0 to 100.
    Percent,
    /// An amount of memory, shown in powers of 1024.
    Bytes,
    Watts,
    Joules,
    Celsius,
    /// A difference between two temperatures.
    CelsiusDifference,
    Megahertz,
    /// The rate of a link, a disk or a network.
    BytesPerSecond,
    Seconds,
    /// A number of items, or a numeric code for a state.
    Count,
}

/// How a number changes over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A value that rises and falls.
    Gauge,
    /// A value that only rises, until the counter is reset.
    Counter,
    /// One of a few values that represent states.
    State,
}

/// How often a number is read while nobody watches. Clients that watch receive all numbers with
/// every sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unwatched {
    /// The number is read with every sample, even while nobody watches.
    EverySample,
    /// The current value is read every ten seconds, or every five seconds for the host.
    Rarely,
    /// The average since the previous reading is read every ten seconds, or every five seconds for
    /// the host.
    Averaged,
}

/// The names of a metric in dcgm-exporter.
#[derive(Debug, Clone, Copy)]
pub struct Dcgm {
    /// The name up to version 4.8. Its values are in DCGM's own units: percent, MHz, MiB, mJ and
    /// nanoseconds. If the name starts with `DCGM_FI_PROF_`, percentages are fractions from 0 to 1.
    pub name: &'static str,
    /// The name since version 4.9. If this name differs from the earlier one, its values are in
    /// Prometheus' base units.
    pub renamed: &'static str,
}

/// A number's line in a chart.
#[derive(Debug, Clone, Copy)]
pub struct Chart {
    /// The name in the settings of `gpumon top`. Fields with the same name are stacked.
    pub key: &'static str,
    /// The name of the chart, one of [`CHARTS`].
    pub name: &'static str,
    /// The label of the line.
    pub line: &'static str,
    /// The color of the line.
    pub color: Color,
}

/// The color of a chart's line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// The color of utilization in all views.
    Utilization,
    /// The color of memory in all views.
    Memory,
    /// The color of power in all views.
    Power,
    /// The color of temperature in all views.
    Temperature,
    /// One of the numbered colors that distinguish the lines of a chart.
    Line(u8),
}

/// The limit that a number is compared with.
#[derive(Debug, Clone, Copy)]
pub enum Limit {
    /// The field with this ID in the same sample.
    Field(&'static str),
    /// A property of the board.
    Board(fn(&Gpu) -> Option<f64>),
}

impl Unit {
    /// Returns the default range of plausible values for the unit.
    const fn range(self) -> (f64, f64) {
        match self {
            Self::Percent => (0.0, 100.0),
            Self::Celsius | Self::CelsiusDifference => (-40.0, 200.0),
            Self::Watts | Self::Megahertz => (0.0, 20_000.0),
            Self::BytesPerSecond => (0.0, MAX_BYTES_PER_SECOND),
            Self::Bytes | Self::Joules | Self::Seconds | Self::Count => (0.0, f64::MAX),
        }
    }

    /// Converts a value to Prometheus' base units, such as fractions from 0 to 1 instead of
    /// percentages, and hertz.
    pub fn to_base_unit(self, value: f64) -> f64 {
        match self {
            Self::Percent => value / 100.0,
            Self::Megahertz => value * 1e6,
            _ => value,
        }
    }
}

impl Dcgm {
    /// Creates the names from an earlier and a current name, or from one name that never changed.
    /// Returns `None` if `names` is empty, which means that dcgm-exporter lacks the metric.
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

    /// Converts a value to DCGM's own units.
    pub fn to_dcgm_unit(&self, unit: Unit, value: f64) -> f64 {
        match unit {
            Unit::Percent if self.name.starts_with("DCGM_FI_PROF_") => value / 100.0,
            Unit::Bytes => (value / f64::from(1 << 20)).floor(),
            Unit::Joules => value * 1e3,
            Unit::Seconds => (value * 1e9).round(),
            // For metrics with this prefix, the unit is 1000 KiB per second.
            Unit::BytesPerSecond if self.name.starts_with("DCGM_FI_DEV_") => {
                (value / 1024e3).floor()
            }
            _ => value,
        }
    }

    /// Converts a value to the unit of [`Self::renamed`], the name since version 4.9.
    pub fn to_renamed_unit(&self, unit: Unit, value: f64) -> f64 {
        if self.name == self.renamed {
            self.to_dcgm_unit(unit, value)
        } else {
            unit.to_base_unit(value)
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

    const fn prometheus_name(self, name: &'static str) -> Self {
        Self {
            prometheus: Some(name),
            ..self
        }
    }

    const fn dcgm_names(self, name: &'static str, renamed: &'static str) -> Self {
        Self {
            dcgm: Some(Dcgm { name, renamed }),
            ..self
        }
    }

    const fn otel_name(self, name: &'static str) -> Self {
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

    const fn prometheus_mig_name(self, name: &'static str) -> Self {
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

    const fn load_thresholds(self, moderate: u32, heavy: u32) -> Self {
        Self {
            load: Some([moderate, heavy]),
            ..self
        }
    }

    const fn include_in_csv(self) -> Self {
        Self {
            in_csv: true,
            ..self
        }
    }
}

impl<S> Field<S> {
    /// Returns the field's limit in this sample, or `None` if it is unknown. `fields` is the
    /// catalog for this kind of sample, and `gpu` has the board's properties.
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

/// Returns the fields that charts show by default.
pub fn charted_fields<S>(
    fields: &'static [Field<S>],
) -> impl Iterator<Item = &'static Field<S>> + Clone {
    fields.iter().filter(|field| field.chart.is_some())
}

/// Returns the fields of [`OVERVIEW`].
pub fn overview_fields() -> impl Iterator<Item = &'static Field> {
    OVERVIEW
        .iter()
        .filter_map(|id| GPU_FIELDS.iter().find(|field| field.id == *id))
}

#[cfg(test)]
mod tests;
