//! The columns of GPU readings, by group.

use gpumon_probe::vendor::nvml::query::{Query, Value};

use super::violations::Violations;
use crate::Context;

/// The letters of all groups.
pub(super) const GROUPS: &str = "pucvmet";

/// The field for the memory temperature, `NVML_FI_DEV_MEMORY_TEMP`.
const MEMORY_TEMPERATURE: u32 = 82;

const BYTES_PER_MIB: i128 = 1 << 20;

/// A column: its headings, and a function that returns its value for a GPU; `None` if unavailable.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) read: fn(&Reader<'_>) -> Option<i128>,
}

/// The source of a column's values for one GPU.
pub(super) struct Reader<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) gpu: u32,
    /// The counters of this round, if a column needs them.
    pub(super) violations: Option<Violations>,
    pub(super) before: Option<Violations>,
}

impl Reader<'_> {
    fn ask(&self, query: Query) -> Option<Value> {
        self.context.ask(self.gpu, query).ok()
    }

    fn number(&self, query: Query) -> Option<i128> {
        self.ask(query)?.at(0)
    }

    /// Returns bytes in whole MiB, rounded down.
    fn mib(&self, query: Query, place: usize) -> Option<i128> {
        Some(self.ask(query)?.at(place)? / BYTES_PER_MIB)
    }

    /// Returns bytes in whole MiB, rounded up.
    fn mib_rounded_up(&self, query: Query, place: usize) -> Option<i128> {
        Some((self.ask(query)?.at(place)? + BYTES_PER_MIB - 1) / BYTES_PER_MIB)
    }

    /// Returns the errors of this `nvmlMemoryErrorType_t` since the driver was loaded; `None` if
    /// ECC is off.
    fn ecc_errors(&self, error_type: u32) -> Option<i128> {
        let on = self.number(Query::EccMode)? != 0;
        if on {
            self.number(Query::TotalEccErrors(error_type, 0))
        } else {
            None
        }
    }

    /// Returns the rate in MiB/s. `nvmlDeviceGetPcieThroughput` returns KiB/s.
    fn pcie(&self, direction: u32) -> Option<i128> {
        Some(self.number(Query::PcieThroughput(direction))? / 1024)
    }
}

pub(super) fn of(group: char) -> &'static [Column] {
    match group {
        'p' => &POWER,
        'u' => &UTILIZATION,
        'c' => &CLOCKS,
        'v' => &VIOLATIONS,
        'm' => &MEMORY,
        'e' => &ERRORS,
        't' => &TRAFFIC,
        _ => &[],
    }
}

const fn column(
    name: &'static str,
    unit: &'static str,
    read: fn(&Reader<'_>) -> Option<i128>,
) -> Column {
    Column { name, unit, read }
}

static POWER: [Column; 3] = [
    column("pwr", "W", |gpu| {
        Some(gpu.number(Query::PowerUsage)? / 1000)
    }),
    column("gtemp", "C", |gpu| gpu.number(Query::Temperature)),
    column("mtemp", "C", |gpu| {
        gpu.number(Query::Field(MEMORY_TEMPERATURE, 0))
    }),
];

static UTILIZATION: [Column; 6] = [
    column("sm", "%", |gpu| gpu.number(Query::UtilizationRates)),
    column("mem", "%", |gpu| gpu.ask(Query::UtilizationRates)?.at(1)),
    column("enc", "%", |gpu| gpu.number(Query::EncoderUtilization)),
    column("dec", "%", |gpu| gpu.number(Query::DecoderUtilization)),
    column("jpg", "%", |gpu| gpu.number(Query::JpgUtilization)),
    column("ofa", "%", |gpu| gpu.number(Query::OfaUtilization)),
];

static CLOCKS: [Column; 2] = [
    column("mclk", "MHz", |gpu| gpu.number(Query::Clock(2))),
    column("pclk", "MHz", |gpu| gpu.number(Query::Clock(1))),
];

static VIOLATIONS: [Column; 2] = [
    column("pviol", "%", |gpu| {
        gpu.violations?.power_percent(gpu.before)
    }),
    column("tviol", "bool", |gpu| gpu.violations?.thermal(gpu.before)),
];

static MEMORY: [Column; 3] = [
    column("fb", "MB", |gpu| gpu.mib_rounded_up(Query::MemoryInfo, 3)),
    column("bar1", "MB", |gpu| gpu.mib(Query::Bar1MemoryInfo, 2)),
    column("ccpm", "MB", |gpu| gpu.mib(Query::ProtectedMemory, 2)),
];

static ERRORS: [Column; 3] = [
    column("sbecc", "errs", |gpu| gpu.ecc_errors(0)),
    column("dbecc", "errs", |gpu| gpu.ecc_errors(1)),
    column("pci", "errs", |gpu| gpu.number(Query::PcieReplays)),
];

static TRAFFIC: [Column; 2] = [
    column("rxpci", "MB/s", |gpu| gpu.pcie(1)),
    column("txpci", "MB/s", |gpu| gpu.pcie(0)),
];
