//! The columns of `dmon`: GPU readings, by the groups that `-s` selects, and GPM metrics.

use gpumon_probe::vendor::nvml::query::{Query, QueryBackend, Subject, Value};

use crate::{
    Context, Refusal,
    formats::{BYTES_PER_MIB, round_up_to_mib},
    monitor,
};

/// The letters of all column groups.
pub(super) const COLUMN_GROUPS: &str = "pucvmet";

/// The field for the memory temperature, `NVML_FI_DEV_MEMORY_TEMP`.
const MEMORY_TEMPERATURE: u32 = 82;

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
    /// This round's violation counters; `None` if no column needs them.
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
        self.read_value(query)?
            .number_at(place)
            .map(round_up_to_mib)
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
        gpu.violations?.power_limited_percent(gpu.before)
    }),
    new_column("tviol", "bool", |gpu| {
        gpu.violations?.thermally_limited_flag(gpu.before)
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

// The columns for GPM metrics, by `nvmlGpmMetricId_t`.

/// The highest metric ID that driver 580 has.
const LAST_METRIC: u32 = 209;

/// The name suffixes of chip-to-chip metrics: total sent, total received, data sent, data received.
const C2C_DIRECTIONS: [&str; 4] = ["ttx", "trx", "dtx", "drx"];

/// The ID of the first context switch metric.
const FIRST_CONTEXT_SWITCH_METRIC: u32 = 170;

/// The columns for context switch metrics: elapsed cycles, active cycles, requests, cycles per
/// request, share of active cycles.
const CONTEXT_SWITCH_COLUMNS: [(&str, &str, usize); 5] = [
    ("elp", "GPM:#", 16),
    ("act", "GPM:#", 10),
    ("req", "GPM:#", 10),
    ("cperq", "GPM:C/R", 10),
    ("actpt", "GPM:%", 10),
];

/// The devices for which GPM metrics are shown: the whole GPU, its MIG devices, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MetricLevels {
    pub(super) gpu: bool,
    pub(super) mig: bool,
}

impl Default for MetricLevels {
    fn default() -> Self {
        Self {
            gpu: true,
            mig: false,
        }
    }
}

impl MetricLevels {
    /// The values that [`MetricLevels::parse`] accepts.
    pub(super) const WORDS: &[&str] = &["d", "m", "dm", "md"];

    /// Parses one of [`MetricLevels::WORDS`].
    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::WORDS.contains(&text).then(|| Self {
            gpu: text.contains('d'),
            mig: text.contains('m'),
        })
    }
}

/// Parses a comma-separated list of metric IDs.
pub(super) fn parse_metrics(text: &str) -> Result<Vec<u32>, Refusal> {
    let fault =
        |what: String| monitor::make_value_refusal(&format!("{what}Could not parse GPM metrics\n"));
    if let Some(other) = text
        .chars()
        .find(|character| !character.is_ascii_digit() && *character != ',')
    {
        return Err(fault(format!("Found offending character: {other}\n")));
    }
    let metrics = text
        .split(',')
        .filter(|word| !word.is_empty())
        .map(|word| {
            let metric = word.parse().ok().filter(|metric| *metric <= LAST_METRIC);
            metric.ok_or_else(|| fault(format!("Metric value too high: {word}\n")))
        })
        .collect::<Result<Vec<_>, _>>()?;
    if metrics.is_empty() {
        Err(fault(String::new()))
    } else {
        Ok(metrics)
    }
}

pub(super) fn list_metrics() -> Vec<String> {
    (1..=LAST_METRIC)
        .filter(|metric| !describe_metric_column(*metric).0.starts_with("id="))
        .map(|metric| metric.to_string())
        .collect()
}

/// Returns the GPM metrics for the time since the previous round, with `None` for unavailable
/// metrics.
pub(super) fn read_metrics(
    driver: &dyn QueryBackend,
    subject: Subject,
    metrics: &[u32],
) -> Vec<Option<i128>> {
    let Ok(Value::Reals(values)) = driver.answer_gpm(subject, metrics) else {
        return vec![None; metrics.len()];
    };
    let mut values = values
        .into_iter()
        .map(|value| value.is_finite().then_some(value as i128));
    metrics.iter().map(|_| values.next().flatten()).collect()
}

/// Returns the name, unit, and width of a metric's column.
pub(super) fn describe_metric_column(metric: u32) -> (String, &'static str, usize) {
    const PERCENT: &str = "GPM:%";
    const RATE: &str = "GPM:MiB/s";
    const NARROW: usize = 10;
    let fixed = |name: &str, unit| (name.to_owned(), unit, NARROW);
    let numbered = |name, number: u32, unit| fixed(&format!("{name}{number}"), unit);
    match metric {
        1 => fixed("gract", PERCENT),
        2 => fixed("smutil", PERCENT),
        3 => fixed("smocc", PERCENT),
        4 => fixed("intutil", PERCENT),
        5 => fixed("mmaact", PERCENT),
        6 => fixed("dfmat", PERCENT),
        7 => fixed("hmmat", PERCENT),
        9 => fixed("immat", PERCENT),
        10 => fixed("dram", PERCENT),
        11 => fixed("fp64", PERCENT),
        12 => fixed("fp32", PERCENT),
        13 => fixed("fp16", PERCENT),
        20 => fixed("pcitx", RATE),
        21 => fixed("pcirx", RATE),
        30..=37 => numbered("nvdec", metric - 30, PERCENT),
        40..=47 => numbered("nvjpg", metric - 40, PERCENT),
        50..=51 => numbered("nvofa", metric - 50, PERCENT),
        60 => fixed("nvlrx", RATE),
        61 => fixed("nvltx", RATE),
        62..=97 => {
            let direction = ["rx", "tx"][(metric % 2) as usize];
            fixed(&format!("nvl{}{direction}", (metric - 62) / 2), RATE)
        }
        100..=103 => fixed(
            &format!("c2c{}", C2C_DIRECTIONS[(metric % 4) as usize]),
            RATE,
        ),
        104..=159 => {
            let direction = C2C_DIRECTIONS[(metric % 4) as usize];
            fixed(&format!("c2c{}{direction}", (metric - 104) / 4), RATE)
        }
        160 => fixed("hmhit", PERCENT),
        161 => fixed("hmmiss", PERCENT),
        162 => fixed("pmhit", PERCENT),
        163 => fixed("pmmiss", PERCENT),
        164 => fixed("dmhit", PERCENT),
        165 => fixed("dmmiss", PERCENT),
        166..=169 => numbered("nvenc", metric - 166, PERCENT),
        FIRST_CONTEXT_SWITCH_METRIC..=LAST_METRIC => {
            let (name, unit, width) = CONTEXT_SWITCH_COLUMNS[(metric % 5) as usize];
            (
                format!("cs{}{name}", (metric - FIRST_CONTEXT_SWITCH_METRIC) / 5),
                unit,
                width,
            )
        }
        _ => numbered("id=", metric, PERCENT),
    }
}

/// Returns `true` if the metric counts elapsed cycles. nvidia-smi prints no space after such a
/// metric.
pub(super) fn counts_elapsed_cycles(metric: u32) -> bool {
    metric >= FIRST_CONTEXT_SWITCH_METRIC && metric.is_multiple_of(5)
}

// The share of time during which a limit has reduced the clocks.

/// The policy `NVML_PERF_POLICY_POWER`. The constant below is `NVML_PERF_POLICY_THERMAL`.
const POWER_POLICY: u32 = 0;
const THERMAL_POLICY: u32 = 1;

/// The driver's counters for the power limit and the thermal limit. `None` means that the driver
/// has no such counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Violations {
    power: Option<ViolationCounter>,
    thermal: Option<ViolationCounter>,
}

/// The elapsed time, in microseconds, and the time during which a limit reduced the clocks, in
/// nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ViolationCounter {
    reference_us: i128,
    violation_ns: i128,
}

impl Violations {
    pub(super) fn read(context: &Context<'_>, gpu: u32) -> Self {
        let counter = |policy| {
            let answer = context
                .run_query(gpu, Query::ViolationStatus(policy))
                .ok()?;
            Some(ViolationCounter {
                reference_us: answer.number_at(0)?,
                violation_ns: answer.number_at(1)?,
            })
        };
        Self {
            power: counter(POWER_POLICY),
            thermal: counter(THERMAL_POLICY),
        }
    }

    /// Returns the share of time since `before` in which the power limit reduced the clocks, in
    /// percent. Returns 0 if there is no earlier count.
    pub(super) fn power_limited_percent(self, before: Option<Self>) -> Option<i128> {
        let now = self.power?;
        let Some(before) = before.and_then(|before| before.power) else {
            return Some(0);
        };
        let passed_us = now.reference_us - before.reference_us;
        if passed_us <= 0 {
            return Some(0);
        }
        Some(((now.violation_ns - before.violation_ns) / (passed_us * 10)).clamp(0, 100))
    }

    /// Returns 1 if the temperature limit reduced the clocks at any time since `before`, otherwise
    /// 0.
    pub(super) fn thermally_limited_flag(self, before: Option<Self>) -> Option<i128> {
        let now = self.thermal?;
        let before = before.and_then(|before| before.thermal).unwrap_or(now);
        Some(i128::from(now.violation_ns > before.violation_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_violations(reference_us: i128, violation_ns: i128) -> Violations {
        let counter = Some(ViolationCounter {
            reference_us,
            violation_ns,
        });
        Violations {
            power: counter,
            thermal: counter,
        }
    }

    #[test]
    fn violation_percentage_covers_time_between_readings() {
        let before = make_violations(1_000_000, 5_000_000);
        let after = make_violations(2_000_000, 255_000_000);
        assert_eq!(after.power_limited_percent(Some(before)), Some(25));
        assert_eq!(after.thermally_limited_flag(Some(before)), Some(1));
        assert_eq!(before.thermally_limited_flag(Some(before)), Some(0));
    }

    #[test]
    fn first_violation_count_is_reported_as_zero() {
        assert_eq!(
            make_violations(1, 1_000_000_000).power_limited_percent(None),
            Some(0)
        );
        assert_eq!(
            make_violations(1, 1_000_000_000).thermally_limited_flag(None),
            Some(0)
        );
        assert_eq!(
            Violations {
                power: None,
                thermal: None
            }
            .power_limited_percent(None),
            None
        );
    }
}
