//! What the driver keeps of the last seconds, summed up. The text alone has it, and only where `-d`
//! asks for it.

use gpumon_probe::{
    stat::{Stat, Window},
    vendor::nvml::query::{Query as Q, Value},
};

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

/// Times in microseconds, and what was measured at them.
struct Kept {
    count: usize,
    times: Stat,
    values: Stat,
}

/// The function of the samples, if there are any.
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

/// In the unit of the samples; what is not power is cut to whole numbers.
fn unit(at: &Cursor<'_>, value: f64) -> String {
    let whole = value as i128;
    match at.nth(0) {
        POWER => watts(whole),
        kind if CLOCKS.contains(&kind) => mhz(whole),
        _ => percent(whole),
    }
}
