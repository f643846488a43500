//! A table of outcomes, printed row by row as they arrive.

use gpumon_probe::{
    model::{Absence, Reading},
    units::byte_size,
    untrusted::escaped,
};
use gpumon_workload::protocol::{
    Bound, DeviceName, Dtype, Extent, FrameworkRun, Load, Outcome, Rate, Roofline, Stopped, Times,
};

use super::compare::Compared;
use crate::{
    describe,
    terminal::{
        columns::{Column, Columns, format_number, or_absent, terminal_columns},
        style::{ALARM, NOTICE, STRONG, WELL, paint},
        units::{ABSENT, three_digits},
    },
};

/// The kind of run that a table shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Subject {
    /// Workloads, grouped by device.
    #[default]
    Workloads,
    /// Workloads with the ratio to earlier results.
    Compared,
    /// Workloads with the ratios to the GPU's baseline and to those of other GPUs.
    Baselines,
    /// Devices under `gpumon burn`, one per row.
    Burn,
}

/// The selection of columns in a table.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Layout {
    pub(crate) subject: Subject,
    /// Whether frameworks also run, for which only the host's time is known.
    pub(crate) is_beside: bool,
    /// Whether the run may include integer matrix products.
    pub(crate) has_integers: bool,
}

type Field = (Column, fn(&Row<'_>) -> String);

/// The data of one row.
struct Row<'a> {
    outcome: &'a Outcome,
    load: Option<&'a Load>,
    compared: Option<Compared>,
}

pub(super) struct Table {
    subject: Subject,
    fields: Vec<Field>,
    columns: Columns,
    /// The device of the last row.
    group: Option<String>,
}

impl Table {
    pub(super) fn new(layout: Layout, devices: &[DeviceName]) -> Self {
        Self::with_room(layout, devices, terminal_columns())
    }

    fn with_room(layout: Layout, devices: &[DeviceName], terminal: Option<usize>) -> Self {
        let fields = fields(layout, devices);
        let all: Vec<_> = fields.iter().map(|(column, _)| *column).collect();
        Self {
            subject: layout.subject,
            fields,
            columns: Columns::with_headings(&all, terminal),
            group: None,
        }
    }

    /// Returns the row of an outcome. The first row follows the headings, and the first row of each
    /// device follows its name.
    pub(super) fn lines(
        &mut self,
        outcome: &Outcome,
        load: Option<&Load>,
        compared: Option<Compared>,
    ) -> String {
        self.head(&device(&outcome.device))
            + &self.line(&Row {
                outcome,
                load,
                compared,
            })
    }

    /// Returns the row of a framework that ran the same workload.
    pub(super) fn format_framework(&self, run: &FrameworkRun, outcome: &Outcome) -> String {
        let line = |outcome: &Outcome| {
            self.line(&Row {
                outcome,
                load: None,
                compared: None,
            })
        };
        format_framework(&self.columns, 2, run, outcome, line)
    }

    fn line(&self, row: &Row<'_>) -> String {
        let cells: Vec<_> = self.fields.iter().map(|(_, cell)| cell(row)).collect();
        format!(
            "{}\n{}",
            self.columns.line(&cells),
            format_remarks(&self.columns, 2, row.outcome, row.load)
        )
    }

    /// Returns the row of a failed workload, with its error.
    pub(super) fn failure(&mut self, id: &str, place: Option<&DeviceName>, error: &str) -> String {
        let place = place.map_or_else(String::new, device);
        let name = if self.subject == Subject::Burn {
            &place
        } else {
            id
        };
        self.head(&place)
            + &self
                .columns
                .format_sentence_line(name, ALARM, &format!("failed: {error}"))
    }

    fn head(&mut self, device: &str) -> String {
        let mut text = String::new();
        if self.group.is_none() {
            text = self.columns.headings();
        }
        if self.group.as_deref() != Some(device) {
            if self.subject != Subject::Burn && !device.is_empty() {
                text += &(paint(STRONG, device) + "\n");
            }
            self.group = Some(device.to_owned());
        }
        text
    }
}

/// Returns the columns for a run on these devices. If the terminal is too narrow, columns with the
/// highest rank are left out first.
fn fields(
    Layout {
        subject,
        is_beside,
        has_integers,
    }: Layout,
    devices: &[DeviceName],
) -> Vec<Field> {
    let on_gpu = devices.is_empty() || devices.iter().any(|device| device.index.is_some());
    let on_host = devices.iter().any(|device| device.index.is_none());
    let mut fields: Vec<Field> = Vec::new();
    let mut add = |column, cell| fields.push((column, cell));
    if subject == Subject::Burn {
        let longest = devices
            .iter()
            .map(|name| device(name).chars().count())
            .max()
            .unwrap_or_default();
        add(Column::align_left("device", 0).at_least(longest), |row| {
            device(&row.outcome.device)
        });
    } else {
        add(Column::align_left("workload", 0).at_least(17), |row| {
            name(row.outcome)
        });
    }
    add(Column::align_right("type", 3).at_least(5), |row| {
        if has_type(row.outcome) {
            row.outcome.dtype.to_string()
        } else {
            ABSENT.to_owned()
        }
    });
    add(Column::align_right("size", 5).at_least(8), |row| {
        size(row.outcome)
    });
    if subject != Subject::Burn {
        if on_gpu {
            add(Column::align_points("device us", 6, 3, 0), |row| {
                median(row.outcome.device_time.as_ref())
            });
        }
        add(Column::align_points("± %", 2, 1, 7), |row| {
            spread(row.outcome)
        });
        if subject == Subject::Compared {
            add(Column::align_right("vs old", 0).at_least(7), |row| {
                ratio(row.compared.map(|compared| compared.ratio))
            });
        }
        if subject == Subject::Baselines {
            add(Column::align_right("vs base", 0).at_least(7), |row| {
                ratio(row.compared.map(|compared| compared.ratio))
            });
            add(Column::align_right("siblings", 2).at_least(8), |row| {
                ratio(row.compared.and_then(|compared| compared.siblings))
            });
        }
        let needs_host = on_host || is_beside;
        if subject == Subject::Workloads || needs_host {
            let rank = if needs_host { 0 } else { 8 };
            add(Column::align_points("host us", 6, 3, rank), |row| {
                median(row.outcome.host_time.as_ref())
            });
        }
        add(Column::align_points("GB/s", 4, 2, 1), |row| {
            billions(
                row.outcome
                    .rate
                    .bytes_per_second
                    .filter(|_| !is_about_operations(row.outcome)),
            )
        });
    }
    // `GOP/s` includes floating-point operations.
    let operations = if has_integers { "GOP/s" } else { "GFLOP/s" };
    add(Column::align_points(operations, 6, 2, 1), |row| {
        billions(
            row.outcome
                .rate
                .operations_per_second
                .filter(|_| is_about_operations(row.outcome)),
        )
    });
    if on_gpu {
        add(Column::align_points("peak %", 4, 1, 6), |row| {
            of_peak(row.outcome)
        });
        add(Column::align_points("clock %", 5, 1, 9), |row| {
            percent(row.load.and_then(|load| load.share_at_clock))
        });
        add(Column::align_right("W", 8).at_least(4), |row| {
            whole(row.load.and_then(|load| load.watts).map(|watts| watts.mean))
        });
        add(Column::align_right("MHz", 10).at_least(4), |row| {
            whole(row.load.and_then(|load| load.sm_mhz).map(|mhz| mhz.mean))
        });
        if subject == Subject::Burn {
            add(Column::align_right("max °C", 7).at_least(6), |row| {
                whole(
                    row.load
                        .and_then(|load| load.celsius)
                        .map(|range| range.max),
                )
            });
        }
    }
    add(Column::align_right("limit", 4).at_least(8), |row| {
        limit_of(row.outcome, row.load)
    });
    if subject == Subject::Burn {
        add(Column::align_right("errors", 0).at_least(8), |row| {
            row.outcome.verify.wrong.to_string()
        });
    }
    add(Column::align_left("result", 0).at_least(8), |row| {
        format_verdict(row.outcome)
    });
    fields
}

/// Returns a framework's run as an outcome of the same workload; `None` if the run failed.
fn outcome_of(run: &FrameworkRun, name: &str, outcome: &Outcome) -> Option<Outcome> {
    let (host_time, verify) = (run.host_time.clone()?, run.verify?);
    let rate = Rate::from_cost(outcome.cost, Some(host_time.median_us));
    let roofline = Roofline {
        share: Reading::Absent(Absence::Unknown),
        ..outcome.roofline.clone()
    };
    let (id, host_time) = (name.to_owned().into(), Some(host_time));
    Some(Outcome {
        id,
        to: None,
        kernel: None,
        device_time: None,
        host_time,
        rate,
        roofline,
        verify,
        ..outcome.clone()
    })
}

fn has_type(outcome: &Outcome) -> bool {
    outcome.cost.moved_bytes > 0 || outcome.cost.operations > 0
}

fn size(outcome: &Outcome) -> String {
    match outcome.extent {
        Extent::Elements => byte_size((outcome.n * outcome.dtype.bytes()) as f64),
        _ => count(outcome),
    }
}

/// Formats the problem size, such as `1000`, `64^2` or `10x`.
pub(crate) fn count(outcome: &Outcome) -> String {
    if let Some(shape) = outcome.shape {
        return shape.to_string();
    }
    match outcome.extent {
        Extent::Elements if outcome.dtype == Dtype::Bytes => byte_size(outcome.n as f64),
        Extent::Elements => outcome.n.to_string(),
        Extent::Side => format!("{}^2", outcome.n),
        Extent::Times => format!("{}x", outcome.n),
        Extent::Fixed => ABSENT.to_owned(),
    }
}

/// Returns the median in microseconds, or a dash.
pub(crate) fn median(times: Option<&Times>) -> String {
    or_absent(times.map(|times| times.median_us), |us| {
        format_number(us, 3)
    })
}

fn spread(outcome: &Outcome) -> String {
    let times = outcome.device_time.as_ref().or(outcome.host_time.as_ref());
    let percent = times.map(|times| (times.high_us - times.low_us) / 2.0 / times.median_us * 100.0);
    or_absent(percent, |percent| {
        let decimals = usize::from(percent < 9.95);
        format!("{percent:.decimals$}")
    })
}

fn ratio(ratio: Option<f64>) -> String {
    or_absent(ratio, |ratio| format!("{ratio:.2}x"))
}

fn percent(share: Option<f64>) -> String {
    or_absent(share, |share| format!("{:.1}", share * 100.0))
}

fn of_peak(outcome: &Outcome) -> String {
    percent(if let Reading::Now(share) = outcome.roofline.share {
        Some(share)
    } else {
        None
    })
}

fn whole(value: Option<f64>) -> String {
    or_absent(value, |value| format!("{value:.0}"))
}

/// Returns `true` if the rate is in operations because computing is the limit, or `false` if it is
/// in bytes.
fn is_about_operations(outcome: &Outcome) -> bool {
    outcome.roofline.limit == Bound::Compute
}

fn billions(per_second: Option<f64>) -> String {
    or_absent(per_second, |per_second| format_number(per_second / 1e9, 2))
}

/// Returns the workload, with the receiving GPU of a copy.
pub(super) fn name(outcome: &Outcome) -> String {
    let to = outcome
        .to
        .as_ref()
        .and_then(|to| to.index)
        .map(|index| format!(" to {index}"));
    outcome.id.to_string() + &to.unwrap_or_default()
}

/// Formats a device such as `GPU 0: H200` or `CPU: AMD EPYC`.
fn device(device: &DeviceName) -> String {
    match device.index {
        Some(_) => describe::device(device),
        None => format!("CPU: {}", device.name),
    }
}

/// Returns the limit of the speed: the dominant throttle reason, or else the resource that bounds
/// the workload.
fn limit_of(outcome: &Outcome, load: Option<&Load>) -> String {
    let throttle = match load.and_then(Load::mostly_throttled_by) {
        Some("sw_power_cap") => "power",
        Some("hw_power_brake_slowdown") => "brake",
        Some("sw_thermal_slowdown" | "hw_thermal_slowdown") => "heat",
        Some("hw_slowdown") => "hardware",
        Some("sync_boost") => "boost",
        _ => return outcome.roofline.limit.to_string(),
    };
    throttle.to_owned()
}

/// Returns the result of the verification, with its color.
pub(crate) fn format_verdict(outcome: &Outcome) -> String {
    match outcome.stopped {
        _ if outcome.verify.wrong > 0 => paint(ALARM, "mismatch"),
        Stopped::Interrupted => paint(NOTICE, "interrupted"),
        _ if !outcome.verify.ok => paint(ALARM, "unverified"),
        _ => paint(WELL, "verified"),
    }
}

/// Returns the lines below a row: mismatches, and other processes on the GPU.
pub(crate) fn format_remarks(
    columns: &Columns,
    indent: usize,
    outcome: &Outcome,
    load: Option<&Load>,
) -> String {
    let (verify, mut remarks) = (&outcome.verify, String::new());
    if verify.wrong > 0 {
        let first = verify
            .first_wrong
            .map_or_else(String::new, |first| format!(", first at index {first}"));
        let text = format!(
            "mismatch: {} of {} elements{first}",
            verify.wrong, verify.checked
        );
        remarks += &columns.format_remark(indent, ALARM, &text);
    } else if !verify.ok && !outcome.partial {
        remarks += &columns.format_remark(indent, ALARM, "unverified: no element was checked");
    }
    if let Some(others) = load
        .map(|load| &load.others)
        .filter(|others| !others.is_empty())
    {
        remarks +=
            &columns.format_remark(indent, NOTICE, &escaped(&format!("shared with {others}")));
    }
    remarks
}

/// Returns the row of a framework that ran the same workload. `indent` is in columns, and `line`
/// formats an outcome as a row.
pub(crate) fn format_framework(
    columns: &Columns,
    indent: usize,
    run: &FrameworkRun,
    outcome: &Outcome,
    line: impl FnOnce(&Outcome) -> String,
) -> String {
    let name = format!("{:indent$}{}", "", describe::framework(run));
    let Some(of_run) = outcome_of(run, &name, outcome) else {
        return columns.format_sentence_line(
            &name,
            ALARM,
            &format!("failed: {}", run.error.as_deref().unwrap_or_default()),
        );
    };
    let lines = line(&of_run);
    match (describe::comparison(run), lines.strip_suffix('\n')) {
        (Some((style, text)), Some(line)) => {
            columns.append_or_wrap(line, indent + 2, &paint(style, &text)) + "\n"
        }
        _ => lines,
    }
}

/// Formats a time in microseconds with three digits, such as `620 ns`, `1.85 us`, `512 us` or `17.3
/// ms`.
pub(crate) fn format_microseconds(us: f64) -> String {
    match us {
        tiny if tiny < 0.9995 => format!("{} ns", three_digits(tiny * 1e3)),
        short if short < 999.5 => format!("{} us", three_digits(short)),
        long if long < 999_500.0 => format!("{} ms", three_digits(long / 1e3)),
        longer => format!("{} s", three_digits(longer / 1e6)),
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use gpumon_workload::protocol::Verification;

    use super::{super::fuzzing::make_outcome, *};
    use crate::terminal::style::plain;

    fn layout(subject: Subject) -> Layout {
        Layout {
            subject,
            is_beside: false,
            has_integers: false,
        }
    }

    fn load() -> Load {
        serde_json::from_str(
            r#"{"samples":6,"sm_mhz":{"min":1500,"mean":1755.4,"max":1980},"watts":{"min":90,"mean":612.3,"max":700},
            "share_at_clock":0.9123,"held_down_by":{"sw_power_cap":4},"others":[]}"#,
        )
        .unwrap()
    }

    #[test]
    fn times_have_three_digits() {
        assert_eq!(
            [0.62, 1.847, 512.4, 17_312.0, 2.5e6].map(format_microseconds),
            ["620 ns", "1.85 us", "512 us", "17.3 ms", "2.50 s"]
        );
    }

    #[test]
    fn a_line_says_all_in_120_columns_and_what_matters_most_in_80() {
        let outcome = make_outcome("GPU-a", 500.0);
        let devices = [outcome.device.clone()];
        let lines =
            |columns| {
                let text = Table::with_room(layout(Subject::Workloads), &devices, Some(columns))
                    .lines(&outcome, Some(&load()), None);
                plain(&text)
            };
        let expected = [
            "workload           type     size  device us  ± %    host us    GB/s   GFLOP/s peak % clock %    W  MHz    limit result",
            "GPU 0: H200",
            "copy               fp32 1.00 GiB    500      0.2    510     4290         -      87.2    91.2  612 1755    power verified",
        ];
        assert_eq!(lines(120).lines().collect::<Vec<_>>(), expected);
        let expected = [
            "workload           type     size  device us    GB/s   GFLOP/s    limit result",
            "GPU 0: H200",
            "copy               fp32 1.00 GiB    500     4290         -       power verified",
        ];
        assert_eq!(lines(80).lines().collect::<Vec<_>>(), expected);
        assert!(
            [80, 120]
                .into_iter()
                .all(|columns| lines(columns).lines().all(|line| line.width() <= columns))
        );
    }

    #[test]
    fn a_table_has_its_headings_once_and_a_group_for_each_device() {
        let mut other = make_outcome("GPU-b", 400.0);
        other.device.index = Some(1);
        let first = make_outcome("GPU-a", 500.0);
        let mut table = Table::with_room(
            layout(Subject::Workloads),
            &[first.device.clone(), other.device.clone()],
            None,
        );
        let text = [&first, &first, &other]
            .map(|outcome| plain(&table.lines(outcome, None, None)))
            .concat();
        let starts: Vec<_> = text
            .lines()
            .map(|line| line.split(' ').next().unwrap())
            .collect();
        assert_eq!(
            starts,
            ["workload", "GPU", "copy", "copy", "GPU", "copy"],
            "{text}"
        );
        let failed =
            plain(&table.failure("triad", Some(&other.device), "it is too large: give --size"));
        assert_eq!(
            failed,
            "triad             failed: it is too large: give --size\n"
        );
    }

    #[test]
    fn operations_on_integers_are_not_floating_point() {
        let table = Table::with_room(
            Layout {
                has_integers: true,
                ..layout(Subject::Burn)
            },
            &[],
            None,
        );
        assert!(
            table.columns.headings().contains(" GOP/s "),
            "{}",
            table.columns.headings()
        );
    }

    #[test]
    fn devices_that_burn_have_a_line_each() {
        let mut outcome = make_outcome("GPU-a", 500.0);
        (outcome.device_time, outcome.host_time) = (None, None);
        outcome.verify.wrong = 3;
        let mut table = Table::with_room(
            layout(Subject::Burn),
            std::slice::from_ref(&outcome.device),
            Some(80),
        );
        let text = plain(&table.lines(&outcome, Some(&load()), None));
        assert!(
            text.starts_with("device") && text.lines().all(|line| line.width() <= 80),
            "{text}"
        );
        assert!(
            text.contains("\nGPU 0: H200 ") && text.contains("   3 mismatch\n  mismatch: 3 of 5"),
            "{text}"
        );
        let failed = plain(&table.failure("burn", Some(&outcome.device), "no memory"));
        assert_eq!(failed, "GPU 0: H200 failed: no memory\n");
    }

    #[test]
    fn a_framework_has_a_line_of_the_same_table_with_the_host_s_time() {
        let outcome = make_outcome("GPU-a", 500.0);
        let run: FrameworkRun = serde_json::from_str(
            r#"{"name":"CuPy","version":"14.0+cu13","host_time":{"median_us":1020,"low_us":1,"high_us":2,"p5_us":1,
            "p95_us":2,"min_us":1,"n":10},"verify":{"ok":true,"checked":5,"wrong":0,"largest_error":0,"tolerance":1},
            "ratio":2}"#,
        )
        .unwrap();
        let wrong = Verification {
            ok: false,
            wrong: 2,
            ..run.verify.unwrap()
        };
        let wrong = FrameworkRun {
            verify: Some(wrong),
            ratio: None,
            ..run.clone()
        };
        let failed: FrameworkRun = serde_json::from_str(
            r#"{"name":"JAX","host_time":null,"verify":null,"error":"no device"}"#,
        )
        .unwrap();
        let lines = |columns| {
            let devices = std::slice::from_ref(&outcome.device);
            let mut table = Table::with_room(
                Layout {
                    is_beside: true,
                    ..layout(Subject::Workloads)
                },
                devices,
                Some(columns),
            );
            let first = table.lines(&outcome, None, None);
            plain(
                &(first
                    + &[&run, &wrong, &failed]
                        .map(|run| table.format_framework(run, &outcome))
                        .concat()),
            )
        };
        let expected = [
            "workload           type  device us    host us    GB/s   GFLOP/s result",
            "GPU 0: H200",
            "copy               fp32    500        510     4290         -    verified",
            "  CuPy 14.0        fp32      -       1020     2110         -    verified",
            "    gpumon is 2.00x faster",
            "  CuPy 14.0        fp32      -       1020     2110         -    mismatch",
            "  mismatch: 2 of 5 elements",
            "  JAX             failed: no device",
        ];
        assert_eq!(lines(80).lines().collect::<Vec<_>>(), expected);
        assert!(
            lines(160).contains(" verified  gpumon is 2.00x faster\n"),
            "{}",
            lines(160)
        );
    }

    #[test]
    fn what_is_wrong_or_was_not_alone_is_told_below() {
        let mut wrong = make_outcome("GPU-a", 500.0);
        let mut table = Table::with_room(
            layout(Subject::Compared),
            std::slice::from_ref(&wrong.device),
            Some(120),
        );
        wrong.verify.wrong = 2;
        wrong.verify.first_wrong = Some(7);
        let mut load = load();
        load.others =
            serde_json::from_str(r#"{"others":[{"pid":42,"user":"ana","name":"py\u001bthon"}]}"#)
                .unwrap();
        let compared = Compared {
            ratio: 0.934,
            is_slower: true,
            siblings: None,
            before_us: 467.0,
            before_ms: None,
        };
        let text = table.lines(&wrong, Some(&load), Some(compared));
        let text = plain(&text);
        for words in [
            "vs old",
            " 0.93x ",
            "mismatch: 2 of 5 elements, first at index 7",
            "shared with py",
            "42 of ana",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text:?}");
        wrong.verify.wrong = 0;
        wrong.verify.ok = false;
        assert!(
            table
                .lines(&wrong, None, None)
                .contains("no element was checked")
        );
    }
}
