//! Summaries of the samples that the driver keeps for several seconds. They appear only in text
//! output, and only with `-d`.

use gpumon_probe::{
    stat::{Stat, Window},
    vendor::nvml::query::{Query as Q, Value},
};

use super::{
    cursor::Cursor,
    format::{ABSENT, format_code, format_mhz, format_percent, format_watts},
    item::{Item, computed_item, group_item},
};

/// Defines a summary of the samples with the given `nvmlSamplingType_t`.
pub(super) const fn samples_item(title: &'static str, kind: &'static [i128]) -> Item {
    group_item(title, "").with_numbers(kind).with_items(ITEMS)
}

/// The sampling type `NVML_TOTAL_POWER_SAMPLES`, in milliwatts.
const POWER: i128 = 0;
/// The sampling types `NVML_PROCESSOR_CLK_SAMPLES` and `NVML_MEMORY_CLK_SAMPLES`, in MHz.
const CLOCKS: [i128; 2] = [5, 6];

static ITEMS: &[Item] = &[
    computed_item("Duration", "", |at| {
        format_summary(at, |_, kept| {
            format!("{:.2} sec", (kept.times.max - kept.times.min) / 1e6)
        })
    }),
    computed_item("Number of Samples", "", |at| {
        format_summary(at, |_, kept| kept.count.to_string())
    }),
    computed_item("Max", "", |at| {
        format_summary(at, |at, kept| format_in_unit(at, kept.values.max))
    }),
    computed_item("Min", "", |at| {
        format_summary(at, |at, kept| format_in_unit(at, kept.values.min))
    }),
    computed_item("Avg", "", |at| {
        format_summary(at, |at, kept| format_in_unit(at, kept.values.mean))
    }),
];

/// The samples' times in microseconds, and their values.
struct SampleSummary {
    count: usize,
    times: Stat,
    values: Stat,
}

/// Formats a summary of the samples, or the reason why there are none.
fn format_summary(at: &Cursor<'_>, format: fn(&Cursor<'_>, &SampleSummary) -> String) -> String {
    let flat: Vec<f64> = match at.run_query(Q::Samples(at.argument_at(0), 0)) {
        Ok(Value::Numbers(numbers)) => numbers.into_iter().map(|number| number as f64).collect(),
        Ok(Value::Reals(reals)) => reals,
        Ok(Value::Text(_)) => Vec::new(),
        Err(code) => return format_code(code),
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
                &SampleSummary {
                    count,
                    times,
                    values,
                },
            )
        }
        _ => ABSENT.to_owned(),
    }
}

/// Formats a value in the unit of its sampling type. The value is truncated to an integer.
fn format_in_unit(at: &Cursor<'_>, value: f64) -> String {
    let whole = value as i128;
    match at.number_at(0) {
        POWER => format_watts(whole),
        kind if CLOCKS.contains(&kind) => format_mhz(whole),
        _ => format_percent(whole),
    }
}
