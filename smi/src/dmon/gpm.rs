//! The columns for GPM metrics, by `nvmlGpmMetricId_t`.

use gpumon_probe::vendor::nvml::query::{QueryBackend, Subject, Value};

use crate::{Refusal, monitor};

/// The highest metric ID that driver 580 has.
const LAST_METRIC: u32 = 209;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Levels {
    pub(super) gpu: bool,
    pub(super) mig: bool,
}

impl Default for Levels {
    fn default() -> Self {
        Self {
            gpu: true,
            mig: false,
        }
    }
}

impl Levels {
    /// The values that [`Levels::parse`] accepts.
    pub(super) const WORDS: &[&str] = &["d", "m", "dm", "md"];

    /// Parses one of [`Levels::WORDS`].
    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::WORDS.contains(&text).then(|| Self {
            gpu: text.contains('d'),
            mig: text.contains('m'),
        })
    }
}

/// Parses a comma-separated list of metric IDs.
pub(super) fn parse(text: &str) -> Result<Vec<u32>, Refusal> {
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
        .filter(|metric| !describe_column(*metric).0.starts_with("id="))
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
pub(super) fn describe_column(metric: u32) -> (String, &'static str, usize) {
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
        100..=103 => fixed(&format!("c2c{}", DIRECTIONS[(metric % 4) as usize]), RATE),
        104..=159 => {
            let direction = DIRECTIONS[(metric % 4) as usize];
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

/// Returns `true` if the metric is a number of elapsed cycles, after which nvidia-smi prints no
/// space.
pub(super) fn counts_elapsed_cycles(metric: u32) -> bool {
    metric >= FIRST_CONTEXT_SWITCH_METRIC && metric.is_multiple_of(5)
}

/// The name suffixes of chip-to-chip metrics: total sent, total received, data sent, data received.
const DIRECTIONS: [&str; 4] = ["ttx", "trx", "dtx", "drx"];

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
