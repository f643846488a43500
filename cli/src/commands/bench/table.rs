//! Outcomes as a table for people, which grows while they come.

use gpumon_probe::{model::Reading, units::byte_size};
use gpumon_workload::protocol::{Bound, Dtype, Extent, Load, Outcome, Stopped, Times};

use super::compare::Compared;
use crate::{
    describe,
    table::{
        style::{ALARM, DIM, NOTICE, WELL, paint},
        units::three_digits,
    },
};

/// What stands where there is no number.
const NONE: &str = "-";
/// How wide each column is, but for the last. The first stands left in its column, the others right.
const WIDTHS: [usize; 12] = [17, 5, 9, 7, 6, 7, 12, 7, 8, 5, 8, 9];
const HEADINGS: [&str; 12] =
    ["workload", "type", "size", "device", "95 %", "host", "rate", "of peak", "at clock", "power", "clock", "limit"];
/// The column that gives way where results are compared.
const HOST: usize = 5;

pub(super) struct Table {
    compares: bool,
    /// On what the last line ran.
    device: Option<String>,
}

impl Table {
    /// One with or without earlier results.
    pub(super) fn new(compares: bool) -> Self {
        Self { compares, device: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.device.is_none()
    }

    /// The next line, below a heading where it is the first on this device.
    pub(super) fn lines(&mut self, outcome: &Outcome, load: Option<&Load>, compared: Option<Compared>) -> String {
        let device = device(outcome);
        let mut text = String::new();
        if self.device.as_ref() != Some(&device) {
            let mut headings = HEADINGS;
            if self.compares {
                headings[HOST] = "vs old";
            }
            let space = if self.device.is_some() { "\n" } else { "" };
            let heading = format!("{} result", aligned(&headings.map(str::to_owned)));
            text = format!("{space}{device}\n{}\n", paint(DIM, &heading));
            self.device = Some(device);
        }
        let mut cells = cells(outcome, load);
        if self.compares {
            cells[HOST] = compared.map_or_else(|| NONE.to_owned(), |compared| format!("{:.2}x", compared.ratio));
        }
        let mut lines = vec![format!("{} {}", aligned(&cells), verdict(outcome))];
        lines.extend(remarks(outcome, load).into_iter().map(|remark| format!("  {remark}")));
        text + &lines.join("\n") + "\n"
    }
}

fn aligned(cells: &[String; 12]) -> String {
    let pad = |(at, (cell, width)): (usize, (&String, usize))| match at {
        0 => format!("{cell:width$}"),
        _ => format!("{cell:>width$}"),
    };
    cells.iter().zip(WIDTHS).enumerate().map(pad).collect::<Vec<_>>().join(" ")
}

fn cells(outcome: &Outcome, load: Option<&Load>) -> [String; 12] {
    let main = outcome.device_time.as_ref().or(outcome.host_time.as_ref());
    let none = || NONE.to_owned();
    let median = |times: &Option<Times>| times.as_ref().map_or_else(none, |times| time(times.median_us));
    let spread = |times: &Times| {
        let percent = (times.high_us - times.low_us) / 2.0 / times.median_us * 100.0;
        if percent < 9.95 { format!("±{percent:.1} %") } else { format!("±{percent:.0} %") }
    };
    let has_type = outcome.cost.moved_bytes > 0 || outcome.cost.operations > 0;
    let size = match outcome.extent {
        Extent::Elements => byte_size((outcome.n * outcome.dtype.bytes()) as f64),
        Extent::Side => format!("{}^2", outcome.n),
        Extent::Times => format!("{}x", outcome.n),
        Extent::Fixed => none(),
    };
    let share = |share: f64| format!("{:.1} %", share * 100.0);
    let of_rated = match (&outcome.roofline.share, outcome.roofline.limit) {
        (Reading::Now(reached), _) => share(*reached),
        (_, Bound::Driver | Bound::Latency) => none(),
        _ => "unknown".to_owned(),
    };
    let read = |value: Option<String>| value.unwrap_or_else(none);
    [
        name(outcome),
        if has_type { outcome.dtype.to_string() } else { none() },
        size,
        median(&outcome.device_time),
        main.map_or_else(none, spread),
        median(&outcome.host_time),
        rate(outcome),
        of_rated,
        read(load.and_then(|load| load.share_at_clock).map(share)),
        read(load.and_then(|load| load.watts).map(|watts| format!("{:.0} W", watts.mean))),
        read(load.and_then(|load| load.sm_mhz).map(|mhz| format!("{:.0} MHz", mhz.mean))),
        limit(outcome, load).to_owned(),
    ]
}

/// What ran, with the GPU that it copied to.
pub(super) fn name(outcome: &Outcome) -> String {
    let to = outcome.to.as_ref().and_then(|to| to.index).map(|index| format!(" to {index}"));
    outcome.id.to_string() + &to.unwrap_or_default()
}

fn device(outcome: &Outcome) -> String {
    let name = describe::without_maker(&outcome.device.name);
    match outcome.device.index {
        Some(index) => format!("GPU {index}: {name}"),
        None => format!("CPU: {name}, {} threads", outcome.environment.threads),
    }
}

/// What keeps it from being faster: the throttle reason of most of the time, or what bounds the work.
fn limit(outcome: &Outcome, load: Option<&Load>) -> &'static str {
    match load.and_then(Load::mostly_throttled_by) {
        Some("sw_power_cap") => return "power cap",
        Some("hw_power_brake_slowdown") => return "brake",
        Some("sw_thermal_slowdown" | "hw_thermal_slowdown") => return "heat",
        Some("hw_slowdown") => return "hardware",
        Some("sync_boost") => return "boost",
        _ => {}
    }
    match outcome.roofline.limit {
        Bound::Memory => "memory",
        Bound::Compute => "compute",
        Bound::Latency => "latency",
        Bound::Link => "link",
        Bound::Driver => "driver",
    }
}

fn verdict(outcome: &Outcome) -> String {
    match outcome.stopped {
        _ if outcome.verify.wrong > 0 => paint(ALARM, "MISMATCH"),
        Stopped::Interrupted => paint(NOTICE, "interrupted"),
        _ if !outcome.verify.ok => paint(ALARM, "unverified"),
        _ => paint(WELL, "verified"),
    }
}

/// What has no place in the line, in lines below it.
fn remarks(outcome: &Outcome, load: Option<&Load>) -> Vec<String> {
    let verify = &outcome.verify;
    let mut remarks = Vec::new();
    if verify.wrong > 0 {
        let first = verify.first_wrong.map_or_else(String::new, |first| format!(", first at index {first}"));
        let mismatch = format!("MISMATCH: {} of {} elements{first}", verify.wrong, verify.checked);
        remarks.push(paint(ALARM, &mismatch));
    } else if !verify.ok && !outcome.partial {
        remarks.push(paint(ALARM, "not verified: no element was checked"));
    }
    if let Some(others) = load.map(|load| &load.others).filter(|others| !others.is_empty()) {
        let beside = gpumon_probe::untrusted::escaped(&format!("shared with {others}"));
        remarks.push(paint(NOTICE, &beside));
    }
    remarks
}

/// `620 ns`, `1.85 us`, `512 us`, `17.3 ms`.
pub(in crate::commands) fn time(us: f64) -> String {
    match us {
        tiny if tiny < 0.9995 => format!("{} ns", three_digits(tiny * 1e3)),
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
    let prefixes = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")];
    let (size, prefix) = prefixes.into_iter().find(|(size, _)| per_second >= size * 0.9995).unwrap_or((1e3, "k"));
    format!("{} {prefix}{unit}", three_digits(per_second / size))
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::{super::fuzzing::outcome, *};

    fn load() -> Load {
        serde_json::from_str(
            r#"{"samples":6,"sm_mhz":{"min":1500,"mean":1755.4,"max":1980},"watts":{"min":90,"mean":612.3,"max":700},
            "share_at_clock":0.9123,"held_down_by":{"sw_power_cap":4},"others":[]}"#,
        )
        .unwrap()
    }

    #[test]
    fn times_and_rates_have_three_digits() {
        assert_eq!(
            [0.62, 1.847, 512.4, 17_312.0, 2.5e6].map(time),
            ["620 ns", "1.85 us", "512 us", "17.3 ms", "2.50 s"]
        );
        let rates = [4.292e12, 55.5e9, 999.9e9, 1e3].map(|rate| with_prefix(rate, "B/s"));
        assert_eq!(rates, ["4.29 TB/s", "55.5 GB/s", "1.00 TB/s", "1.00 kB/s"]);
    }

    #[test]
    fn a_line_says_all_and_fits_120_columns() {
        let text = Table::new(false).lines(&outcome("GPU-a", 500.0), Some(&load()), None);
        let text = anstream::adapter::strip_str(&text).to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines.iter().all(|line| line.width() <= 120), "{text}");
        let end = |line: &str, word: &str| line[..line.find(word).unwrap() + word.len()].width();
        for (heading, cell) in [("of peak", "87.2 %"), ("host", "510 us"), ("power", "612 W"), ("limit", "power cap")] {
            assert_eq!(end(lines[1], heading), end(lines[2], cell), "{heading}: {text}");
        }
        for words in ["copy", "fp32", "1.00 GiB", "500 us", "±0.2 %", "510 us", "4.29 TB/s", "91.2 %", "612 W"] {
            assert!(lines[2].contains(words), "{words}: {text}");
        }
        assert!(lines[2].ends_with("1755 MHz power cap verified"), "{text}");
    }

    #[test]
    fn what_is_wrong_or_was_not_alone_is_told_below() {
        let mut table = Table::new(true);
        let mut wrong = outcome("GPU-a", 500.0);
        wrong.verify.wrong = 2;
        wrong.verify.first_wrong = Some(7);
        let mut load = load();
        load.others = serde_json::from_str(r#"{"others":[{"pid":42,"user":"ana","name":"py\u001bthon"}]}"#).unwrap();
        let text = table.lines(&wrong, Some(&load), Some(Compared { ratio: 0.934, is_slower: true }));
        let text = anstream::adapter::strip_str(&text).to_string();
        for words in ["vs old", " 0.93x ", "MISMATCH: 2 of 5 elements, first at index 7", "shared with py", "42 of ana"]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text:?}");
        wrong.verify.wrong = 0;
        wrong.verify.ok = false;
        assert!(table.lines(&wrong, None, None).contains("no element was checked"));
    }
}
