//! Summaries of the samples that the driver keeps for several seconds. Only the text shows them,
//! and only with `-d`.

use gpumon_probe::{
    stat::{Stat, Window},
    vendor::nvml::query::{Query as Q, Value},
};

use super::{
    cursor::Cursor,
    format::{ABSENT, mhz, percent, watts, word},
    item::{Item, group, value},
};

/// Defines the summary of the samples of an `nvmlSamplingType_t`.
pub(super) const fn samples(title: &'static str, kind: &'static [i128]) -> Item {
    group(title, "").about(kind).holds(ITEMS)
}

/// The samples `NVML_TOTAL_POWER_SAMPLES`, in milliwatts.
const POWER: i128 = 0;
/// The samples `NVML_PROCESSOR_CLK_SAMPLES` and `NVML_MEMORY_CLK_SAMPLES`, in MHz.
const CLOCKS: [i128; 2] = [5, 6];

static ITEMS: &[Item] = &[
    value("Duration", "", |at| {
        sum(at, |_, kept| {
            format!("{:.2} sec", (kept.times.max - kept.times.min) / 1e6)
        })
    }),
    value("Number of Samples", "", |at| {
        sum(at, |_, kept| kept.count.to_string())
    }),
    value("Max", "", |at| {
        sum(at, |at, kept| unit(at, kept.values.max))
    }),
    value("Min", "", |at| {
        sum(at, |at, kept| unit(at, kept.values.min))
    }),
    value("Avg", "", |at| {
        sum(at, |at, kept| unit(at, kept.values.mean))
    }),
];

/// The times of samples in microseconds, and their values.
struct Kept {
    count: usize,
    times: Stat,
    values: Stat,
}

/// Formats the summary of the samples, if there are any.
fn sum(at: &Cursor<'_>, format: fn(&Cursor<'_>, &Kept) -> String) -> String {
    let flat: Vec<f64> = match at.ask(Q::Samples(at.argument(0), 0)) {
        Ok(Value::Numbers(numbers)) => numbers.into_iter().map(|number| number as f64).collect(),
        Ok(Value::Reals(reals)) => reals,
        Ok(Value::Text(_)) => Vec::new(),
        Err(code) => return word(code),
    };
    let all = flat.as_chunks().0;
    let stat = |place: usize| {
        let numbers = all.iter().map(|sample: &[f64; 2]| sample[place]);
        numbers.collect::<Window>().stat()
    };
    match (stat(0), stat(1)) {
        (Some(times), Some(values)) => {
            let count = all.len();
            format(
                at,
                &Kept {
                    count,
                    times,
                    values,
                },
            )
        }
        _ => ABSENT.to_owned(),
    }
}

/// Formats a value in the unit of its samples. The value is truncated to an integer.
fn unit(at: &Cursor<'_>, value: f64) -> String {
    let whole = value as i128;
    match at.nth(0) {
        POWER => watts(whole),
        kind if CLOCKS.contains(&kind) => mhz(whole),
        _ => percent(whole),
    }
}
