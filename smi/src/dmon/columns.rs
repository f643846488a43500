//! The columns for GPU readings, by the groups that `-s` selects.

use gpumon_probe::vendor::nvml::query::{Query, Value};

use super::violations::Violations;
use crate::Context;

/// The letters of all column groups.
pub(super) const GROUPS: &str = "pucvmet";

/// The field for the memory temperature, `NVML_FI_DEV_MEMORY_TEMP`.
const MEMORY_TEMPERATURE: u32 = 82;

const BYTES_PER_MIB: i128 = 1 << 20;

/// A column: its headings, and a function that returns the value for a GPU, or `None` if the value
/// is unavailable.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) read: fn(&ColumnReader<'_>) -> Option<i128>,
}

/// The source of a column's values for one GPU.
pub(super) struct ColumnReader<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) gpu: u32,
    /// This round's violation counters, if a column needs them.
    pub(super) violations: Option<Violations>,
    pub(super) before: Option<Violations>,
}

impl ColumnReader<'_> {
    fn read_value(&self, query: Query) -> Option<Value> {
        self.context.run_query(self.gpu, query).ok()
    }

    fn read_number(&self, query: Query) -> Option<i128> {
        self.read_value(query)?.number_at(0)
    }

    /// Returns an amount of memory in whole MiB, rounded down.
    fn read_mib(&self, query: Query, place: usize) -> Option<i128> {
        Some(self.read_value(query)?.number_at(place)? / BYTES_PER_MIB)
    }

    /// Returns an amount of memory in whole MiB, rounded up.
    fn read_mib_rounded_up(&self, query: Query, place: usize) -> Option<i128> {
        Some((self.read_value(query)?.number_at(place)? + BYTES_PER_MIB - 1) / BYTES_PER_MIB)
    }

    /// Returns the number of errors of the given `nvmlMemoryErrorType_t` since the driver was
    /// loaded, or `None` if ECC is off.
    fn read_ecc_errors(&self, error_type: u32) -> Option<i128> {
        let on = self.read_number(Query::EccMode)? != 0;
        if on {
            self.read_number(Query::TotalEccErrors(error_type, 0))
        } else {
            None
        }
    }

    /// Returns the PCIe rate in MiB/s. `nvmlDeviceGetPcieThroughput` itself uses KiB/s.
    fn read_pcie_traffic(&self, direction: u32) -> Option<i128> {
        Some(self.read_number(Query::PcieThroughput(direction))? / 1024)
    }
}

pub(super) fn find_columns(group: char) -> &'static [Column] {
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

const fn new_column(
    name: &'static str,
    unit: &'static str,
    read: fn(&ColumnReader<'_>) -> Option<i128>,
) -> Column {
    Column { name, unit, read }
}

static POWER: [Column; 3] = [
    new_column("pwr", "W", |gpu| {
        Some(gpu.read_number(Query::PowerUsage)? / 1000)
    }),
    new_column("gtemp", "C", |gpu| gpu.read_number(Query::Temperature)),
    new_column("mtemp", "C", |gpu| {
        gpu.read_number(Query::Field(MEMORY_TEMPERATURE, 0))
    }),
];

static UTILIZATION: [Column; 6] = [
    new_column("sm", "%", |gpu| gpu.read_number(Query::UtilizationRates)),
    new_column("mem", "%", |gpu| {
        gpu.read_value(Query::UtilizationRates)?.number_at(1)
    }),
    new_column("enc", "%", |gpu| gpu.read_number(Query::EncoderUtilization)),
    new_column("dec", "%", |gpu| gpu.read_number(Query::DecoderUtilization)),
    new_column("jpg", "%", |gpu| gpu.read_number(Query::JpgUtilization)),
    new_column("ofa", "%", |gpu| gpu.read_number(Query::OfaUtilization)),
];

static CLOCKS: [Column; 2] = [
    new_column("mclk", "MHz", |gpu| gpu.read_number(Query::Clock(2))),
    new_column("pclk", "MHz", |gpu| gpu.read_number(Query::Clock(1))),
];

static VIOLATIONS: [Column; 2] = [
    new_column("pviol", "%", |gpu| {
        gpu.violations?.power_percent(gpu.before)
    }),
    new_column("tviol", "bool", |gpu| {
        gpu.violations?.thermal_flag(gpu.before)
    }),
];

static MEMORY: [Column; 3] = [
    new_column("fb", "MB", |gpu| {
        gpu.read_mib_rounded_up(Query::MemoryInfo, 3)
    }),
    new_column("bar1", "MB", |gpu| gpu.read_mib(Query::Bar1MemoryInfo, 2)),
    new_column("ccpm", "MB", |gpu| gpu.read_mib(Query::ProtectedMemory, 2)),
];

static ERRORS: [Column; 3] = [
    new_column("sbecc", "errs", |gpu| gpu.read_ecc_errors(0)),
    new_column("dbecc", "errs", |gpu| gpu.read_ecc_errors(1)),
    new_column("pci", "errs", |gpu| gpu.read_number(Query::PcieReplays)),
];

static TRAFFIC: [Column; 2] = [
    new_column("rxpci", "MB/s", |gpu| gpu.read_pcie_traffic(1)),
    new_column("txpci", "MB/s", |gpu| gpu.read_pcie_traffic(0)),
];
