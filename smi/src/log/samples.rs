//! What the driver keeps of the last seconds, summed up. The text alone has it, and only where `-d` asks for it.

use gpumon_probe::vendor::nvml::query::{Query as Q, Value};

use super::{
    cursor::Cursor,
    format::{ABSENT, mhz, percent, watts, word},
    item::{Item, group, value},
};

/// The samples of the `nvmlSamplingType_t` in `about`.
pub(super) const fn samples(title: &'static str, kind: &'static [i128]) -> Item {
    group(title, "").about(kind).holds(ITEMS)
}

/// `NVML_TOTAL_POWER_SAMPLES`, in milliwatts.
const POWER: i128 = 0;
/// `NVML_PROCESSOR_CLK_SAMPLES` and `NVML_MEMORY_CLK_SAMPLES`, in MHz.
const CLOCKS: [i128; 2] = [5, 6];

static ITEMS: &[Item] = &[
    value("Duration", "", |at| {
        sum(at, |_, kept| format!("{:.2} sec", kept.duration() / 1e6))
    }),
    value("Number of Samples", "", |at| {
        sum(at, |_, kept| kept.values.len().to_string())
    }),
    value("Max", "", |at| {
        sum(at, |at, kept| unit(at, most(&kept.values)))
    }),
    value("Min", "", |at| {
        sum(at, |at, kept| unit(at, least(&kept.values)))
    }),
    value("Avg", "", |at| {
        sum(at, |at, kept| {
            unit(
                at,
                kept.values.iter().sum::<f64>() / kept.values.len() as f64,
            )
        })
    }),
];

/// Times in microseconds, and what was measured at them.
struct Kept {
    times: Vec<f64>,
    values: Vec<f64>,
}

impl Kept {
    /// From the first to the last, in microseconds.
    fn duration(&self) -> f64 {
        most(&self.times) - least(&self.times)
    }
}

/// The function of the samples, if there are any.
fn sum(at: &Cursor<'_>, format: fn(&Cursor<'_>, &Kept) -> String) -> String {
    let flat: Vec<f64> = match at.ask(Q::Samples(at.argument(0), 0)) {
        Ok(Value::Numbers(numbers)) => numbers.into_iter().map(|number| number as f64).collect(),
        Ok(Value::Reals(reals)) => reals,
        Ok(Value::Text(_)) => Vec::new(),
        Err(code) => return word(code),
    };
    let (times, values) = flat
        .as_chunks()
        .0
        .iter()
        .map(|[time, value]| (*time, *value))
        .unzip();
    let kept = Kept { times, values };
    if kept.values.is_empty() {
        ABSENT.to_owned()
    } else {
        format(at, &kept)
    }
}

fn most(numbers: &[f64]) -> f64 {
    numbers.iter().copied().fold(f64::MIN, f64::max)
}

fn least(numbers: &[f64]) -> f64 {
    numbers.iter().copied().fold(f64::MAX, f64::min)
}

/// In the unit of the samples; what is not power is cut to whole numbers.
fn unit(at: &Cursor<'_>, value: f64) -> String {
    let whole = value as i128;
    match at.nth(0) {
        POWER => watts(whole),
        kind if CLOCKS.contains(&kind) => mhz(whole),
        _ => percent(whole),
    }
}
