//! Outcomes as a table for people, which grows while they come.

use gpumon_probe::model::Reading;
use gpumon_workload::{Backend, Bound, Dtype, Extent, Outcome, Stopped, Times};

use crate::{
    table::{
        style::{ALARM, DIM, NOTICE, WELL, paint},
        units::three_digits,
    },
    words,
};

/// What stands where there is no number.
const NONE: &str = "-";

/// The table as far as it was printed.
pub(super) struct Table {
    /// On what the last line ran.
    device: Option<String>,
}

impl Table {
    pub(super) fn new() -> Self {
        Self { device: None }
    }

    /// The next line, below a heading where it is the first on this device.
    pub(super) fn lines(&mut self, outcome: &Outcome) -> String {
        let device = device(outcome);
        let row = row(outcome);
        if self.device.as_ref() == Some(&device) {
            return format!("{row}\n");
        }
        let space = if self.device.is_some() { "\n" } else { "" };
        let text = format!("{space}{device}\n{}\n{row}\n", paint(DIM, &heading()));
        self.device = Some(device);
        text
    }
}

fn heading() -> String {
    format!(
        "{:15} {:5} {:>9}  {:>9} {:>7}  {:>9}  {:>9} {:>8}  {}",
        "workload", "type", "array", "device", "95 %", "host", "rate", "of rated", "result"
    )
}

fn row(outcome: &Outcome) -> String {
    let main = outcome.device_time.as_ref().or(outcome.host_time.as_ref());
    let median = |times: &Option<Times>| times.as_ref().map_or_else(|| NONE.to_owned(), |times| time(times.median_us));
    let spread = main.map_or_else(
        || NONE.to_owned(),
        |times| format!("±{:.1} %", (times.high_us - times.low_us) / 2.0 / times.median_us * 100.0),
    );
    let moves = outcome.cost.moved_bytes > 0;
    let array = match outcome.extent {
        Extent::Elements => words::size((outcome.n * outcome.dtype.bytes()) as f64),
        Extent::Side => format!("{0}x{0}", outcome.n),
        Extent::Fixed => NONE.to_owned(),
    };
    let share = match &outcome.roofline.share {
        Reading::Now(share) => format!("{:.1} %", share * 100.0),
        _ if outcome.backend == Backend::Cpu || moves => "unknown".to_owned(),
        _ => NONE.to_owned(),
    };
    let dtype = if moves { outcome.dtype.to_string() } else { NONE.to_owned() };
    format!(
        "{:15} {:5} {:>9}  {:>9} {:>7}  {:>9}  {:>9} {:>8}  {}",
        outcome.id,
        dtype,
        array,
        median(&outcome.device_time),
        spread,
        median(&outcome.host_time),
        rate(outcome),
        share,
        result(outcome),
    )
}

/// What it ran on.
fn device(outcome: &Outcome) -> String {
    let name = words::without_maker(&outcome.device.name);
    match outcome.device.index {
        Some(index) => format!("GPU {index}: {name}"),
        None => format!("CPU: {name}, {} threads", outcome.environment.threads),
    }
}

fn result(outcome: &Outcome) -> String {
    let verify = &outcome.verify;
    match outcome.stopped {
        _ if verify.wrong > 0 => paint(ALARM, &format!("WRONG: {} of {} elements", verify.wrong, verify.checked)),
        Stopped::Interrupted => paint(NOTICE, "interrupted"),
        _ if !verify.ok => paint(ALARM, "nothing was checked"),
        _ => paint(WELL, "right"),
    }
}

/// `1.85 us`, `512 us`, `17.3 ms`.
fn time(us: f64) -> String {
    match us {
        short if short < 999.5 => format!("{} us", three_digits(short)),
        long if long < 999_500.0 => format!("{} ms", three_digits(long / 1e3)),
        longer => format!("{} s", three_digits(longer / 1e6)),
    }
}

/// Of what it is about: operations where computing is its limit, bytes elsewhere.
fn rate(outcome: &Outcome) -> String {
    let (per_second, unit) = match outcome.roofline.limit {
        Bound::Compute => {
            (outcome.rate.operations_per_second, if outcome.dtype == Dtype::Int8 { "OP/s" } else { "FLOP/s" })
        }
        _ => (outcome.rate.bytes_per_second, "B/s"),
    };
    per_second.map_or_else(|| NONE.to_owned(), |per_second| with_prefix(per_second, unit))
}

/// `4.29 TB/s`, of 1000: so are bandwidths sold.
fn with_prefix(per_second: f64, unit: &str) -> String {
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M")];
    let (size, prefix) = prefixes.into_iter().find(|(size, _)| per_second >= size * 0.9995).unwrap_or((1e3, "k"));
    format!("{} {prefix}{unit}", three_digits(per_second / size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_have_three_digits() {
        assert_eq!([1.847, 512.4, 17_312.0, 2.5e6].map(time), ["1.85 us", "512 us", "17.3 ms", "2.50 s"]);
        let rates = [4.292e12, 55.5e9, 999.9e9, 1e3].map(|rate| with_prefix(rate, "B/s"));
        assert_eq!(rates, ["4.29 TB/s", "55.5 GB/s", "1.00 TB/s", "1.00 kB/s"]);
    }
}
