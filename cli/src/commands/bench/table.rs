//! The table of benchmark results, printed row by row as results arrive.

use gpumon_probe::{
    model::{Absence, Reading},
    units::format_byte_size,
    untrusted::escape_untrusted,
};
use gpumon_workload::protocol::{
    DeviceName, Dtype, Extent, FrameworkRun, LimitingResource, Load, MeasureEnd, Roofline,
    RunOutcome, Throughput, Times,
};

use super::baseline::Comparison;
use crate::{
    describe,
    terminal::{
        columns::{Column, Columns, format_number},
        line::{ALARM, HEALTHY, NOTICE, STRONG, paint},
        units::{ABSENT, format_optional, format_three_digits},
    },
};

/// The content of a table: workloads without a comparison, workloads with a comparison, or a burn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TableKind {
    /// Workloads, grouped by device.
    #[default]
    Workloads,
    /// Workloads, each with the ratio of its earlier time to its new time.
    Compared,
    /// Workloads, with the ratios to the GPU's baseline and to the baselines of other GPUs.
    Baselines,
    /// Devices under `gpumon burn`, one per row.
    Burn,
}

/// The options that decide which columns a table has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Layout {
    pub(crate) subject: TableKind,
    /// Whether frameworks run the same workloads for comparison. For frameworks, only the host
    /// times are known.
    pub(crate) is_beside: bool,
    /// Whether the run may include integer matrix products.
    pub(crate) has_integers: bool,
}

type Field = (Column, fn(&Row<'_>) -> String);

struct Row<'a> {
    outcome: &'a RunOutcome,
    load: Option<&'a Load>,
    compared: Option<Comparison>,
}

pub(super) struct Table {
    subject: TableKind,
    fields: Vec<Field>,
    columns: Columns,
    /// The device of the last printed row.
    group: Option<String>,
}

impl Table {
    pub(super) fn new(layout: Layout, devices: &[DeviceName], terminal: Option<usize>) -> Self {
        let fields = list_fields(layout, devices);
        let all: Vec<_> = fields.iter().map(|(column, _)| *column).collect();
        Self {
            subject: layout.subject,
            fields,
            columns: Columns::with_headings(&all, terminal),
            group: None,
        }
    }

    /// Returns the row of an outcome. The headings precede the first row of the table, and the
    /// device's name precedes the first row of a device.
    pub(super) fn format_outcome(
        &mut self,
        outcome: &RunOutcome,
        load: Option<&Load>,
        compared: Option<Comparison>,
    ) -> String {
        self.format_headings(&format_device(&outcome.device))
            + &self.format_row(&Row {
                outcome,
                load,
                compared,
            })
    }

    /// Returns the row of a framework that ran the same workload.
    pub(super) fn format_framework_row(&self, run: &FrameworkRun, outcome: &RunOutcome) -> String {
        let line = |outcome: &RunOutcome| {
            self.format_row(&Row {
                outcome,
                load: None,
                compared: None,
            })
        };
        format_framework_comparison_row(&self.columns, 2, run, outcome, line)
    }

    fn format_row(&self, row: &Row<'_>) -> String {
        let cells: Vec<_> = self.fields.iter().map(|(_, cell)| cell(row)).collect();
        format!(
            "{}\n{}",
            self.columns.format_row(&cells),
            format_remarks(&self.columns, 2, row.outcome, row.load)
        )
    }

    /// Returns the row of a failed workload, including its error.
    pub(super) fn format_failure(
        &mut self,
        id: &str,
        place: Option<&DeviceName>,
        error: &str,
    ) -> String {
        let place = place.map_or_else(String::new, format_device);
        let name = if self.subject == TableKind::Burn {
            &place
        } else {
            id
        };
        self.format_headings(&place)
            + &self
                .columns
                .format_sentence_line(name, ALARM, &format!("failed: {error}"))
    }

    fn format_headings(&mut self, device: &str) -> String {
        let mut text = String::new();
        if self.group.is_none() {
            text = self.columns.headings();
        }
        if self.group.as_deref() != Some(device) {
            if self.subject != TableKind::Burn && !device.is_empty() {
                text += &(paint(STRONG, device) + "\n");
            }
            self.group = Some(device.to_owned());
        }
        text
    }
}

/// Returns the columns for a run on `devices`. If the terminal is too narrow, the columns with the
/// highest rank are left out first.
fn list_fields(
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
    if subject == TableKind::Burn {
        let longest = devices
            .iter()
            .map(|name| format_device(name).chars().count())
            .max()
            .unwrap_or_default();
        add(
            Column::new_left_aligned("device", 0).with_min_width(longest),
            |row| format_device(&row.outcome.device),
        );
    } else {
        add(
            Column::new_left_aligned("workload", 0).with_min_width(17),
            |row| format_workload_name(row.outcome),
        );
    }
    add(
        Column::new_right_aligned("type", 3).with_min_width(5),
        |row| {
            if has_dtype(row.outcome) {
                row.outcome.dtype.to_string()
            } else {
                ABSENT.to_owned()
            }
        },
    );
    add(
        Column::new_right_aligned("size", 5).with_min_width(8),
        |row| format_size(row.outcome),
    );
    if subject != TableKind::Burn {
        if on_gpu {
            add(Column::new_point_aligned("device us", 6, 3, 0), |row| {
                format_median(row.outcome.device_time.as_ref())
            });
        }
        add(Column::new_point_aligned("± %", 2, 1, 7), |row| {
            format_spread(row.outcome)
        });
        if subject == TableKind::Compared {
            add(
                Column::new_right_aligned("vs old", 0).with_min_width(7),
                |row| format_ratio(row.compared.map(|compared| compared.ratio)),
            );
        }
        if subject == TableKind::Baselines {
            add(
                Column::new_right_aligned("vs base", 0).with_min_width(7),
                |row| format_ratio(row.compared.map(|compared| compared.ratio)),
            );
            add(
                Column::new_right_aligned("siblings", 2).with_min_width(8),
                |row| format_ratio(row.compared.and_then(|compared| compared.siblings)),
            );
        }
        let needs_host = on_host || is_beside;
        if subject == TableKind::Workloads || needs_host {
            let rank = if needs_host { 0 } else { 8 };
            add(Column::new_point_aligned("host us", 6, 3, rank), |row| {
                format_median(row.outcome.host_time.as_ref())
            });
        }
        add(Column::new_point_aligned("GB/s", 4, 2, 1), |row| {
            format_billions(
                row.outcome
                    .rate
                    .bytes_per_second
                    .filter(|_| !is_limited_by_compute(row.outcome)),
            )
        });
    }
    // The unit `GOP/s` covers both integer and floating-point operations.
    let operations = if has_integers { "GOP/s" } else { "GFLOP/s" };
    add(Column::new_point_aligned(operations, 6, 2, 1), |row| {
        format_billions(
            row.outcome
                .rate
                .operations_per_second
                .filter(|_| is_limited_by_compute(row.outcome)),
        )
    });
    if on_gpu {
        add(Column::new_point_aligned("peak %", 4, 1, 6), |row| {
            format_percent(row.outcome.roofline.share.value().copied())
        });
        add(Column::new_point_aligned("clock %", 5, 1, 9), |row| {
            format_percent(row.load.and_then(|load| load.share_at_clock))
        });
        add(Column::new_right_aligned("W", 8).with_min_width(4), |row| {
            format_whole_number(row.load.and_then(|load| load.watts).map(|watts| watts.mean))
        });
        add(
            Column::new_right_aligned("MHz", 10).with_min_width(4),
            |row| format_whole_number(row.load.and_then(|load| load.sm_mhz).map(|mhz| mhz.mean)),
        );
        if subject == TableKind::Burn {
            add(
                Column::new_right_aligned("max °C", 7).with_min_width(6),
                |row| {
                    format_whole_number(
                        row.load
                            .and_then(|load| load.celsius)
                            .map(|range| range.max),
                    )
                },
            );
        }
    }
    add(
        Column::new_right_aligned("limit", 4).with_min_width(8),
        |row| describe_speed_limit(row.outcome, row.load),
    );
    if subject == TableKind::Burn {
        add(
            Column::new_right_aligned("errors", 0).with_min_width(8),
            |row| row.outcome.verify.wrong.to_string(),
        );
    }
    add(
        Column::new_left_aligned("result", 0).with_min_width(8),
        |row| format_verdict(row.outcome),
    );
    fields
}

/// Converts a framework's run to an outcome of the same workload. Returns `None` if the run failed.
fn framework_run_to_outcome(
    run: &FrameworkRun,
    name: &str,
    outcome: &RunOutcome,
) -> Option<RunOutcome> {
    let (host_time, verify) = (run.host_time.clone()?, run.verify?);
    let rate = Throughput::from_cost(outcome.cost, Some(host_time.median_us));
    let roofline = Roofline {
        share: Reading::Absent(Absence::Unknown),
        ..outcome.roofline.clone()
    };
    let (id, host_time) = (name.to_owned().into(), Some(host_time));
    Some(RunOutcome {
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

fn has_dtype(outcome: &RunOutcome) -> bool {
    outcome.cost.moved_bytes > 0 || outcome.cost.operations > 0
}

fn format_size(outcome: &RunOutcome) -> String {
    match outcome.extent {
        Extent::Elements => format_byte_size((outcome.n * outcome.dtype.bytes()) as f64),
        _ => format_problem_size(outcome),
    }
}

/// Formats the problem size, which is the number of elements such as `1000`, the size of a matrix
/// such as `64^2`, or the number of repetitions such as `10x`.
pub(crate) fn format_problem_size(outcome: &RunOutcome) -> String {
    if let Some(shape) = outcome.shape {
        return shape.to_string();
    }
    match outcome.extent {
        Extent::Elements if outcome.dtype == Dtype::Bytes => format_byte_size(outcome.n as f64),
        Extent::Elements => outcome.n.to_string(),
        Extent::Side => format!("{}^2", outcome.n),
        Extent::Times => format!("{}x", outcome.n),
        Extent::Fixed => ABSENT.to_owned(),
    }
}

/// Returns the median in microseconds, or a dash.
pub(crate) fn format_median(times: Option<&Times>) -> String {
    format_optional(times.map(|times| times.median_us), |us| {
        format_number(us, 3)
    })
}

fn format_spread(outcome: &RunOutcome) -> String {
    let times = outcome.device_time.as_ref().or(outcome.host_time.as_ref());
    let percent = times.map(|times| (times.high_us - times.low_us) / 2.0 / times.median_us * 100.0);
    format_optional(percent, |percent| {
        let decimals = usize::from(percent < 9.95);
        format!("{percent:.decimals$}")
    })
}

fn format_ratio(ratio: Option<f64>) -> String {
    format_optional(ratio, |ratio| format!("{ratio:.2}x"))
}

fn format_percent(share: Option<f64>) -> String {
    format_optional(share, |share| format!("{:.1}", share * 100.0))
}

fn format_whole_number(value: Option<f64>) -> String {
    format_optional(value, |value| format!("{value:.0}"))
}

/// Returns `true` if the workload is limited by computing. Its rate is then shown in operations per
/// second, and otherwise in bytes per second.
fn is_limited_by_compute(outcome: &RunOutcome) -> bool {
    outcome.roofline.limit == LimitingResource::Compute
}

fn format_billions(per_second: Option<f64>) -> String {
    format_optional(per_second, |per_second| format_number(per_second / 1e9, 2))
}

/// Returns the workload's name. If the workload copies between two GPUs, the receiving GPU is
/// added.
pub(super) fn format_workload_name(outcome: &RunOutcome) -> String {
    let to = outcome
        .to
        .as_ref()
        .and_then(|to| to.index)
        .map(|index| format!(" to {index}"));
    outcome.id.to_string() + &to.unwrap_or_default()
}

/// Formats a device such as `GPU 0: H200` or `CPU: AMD EPYC`.
fn format_device(device: &DeviceName) -> String {
    match device.index {
        Some(_) => describe::label_device(device),
        None => format!("CPU: {}", device.name),
    }
}

/// Returns the cause that limits the speed: the dominant throttle reason if there is one, otherwise
/// the resource that bounds the workload.
fn describe_speed_limit(outcome: &RunOutcome, load: Option<&Load>) -> String {
    let throttle = match load.and_then(Load::main_throttle_reason) {
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
pub(crate) fn format_verdict(outcome: &RunOutcome) -> String {
    match outcome.stopped {
        _ if outcome.verify.wrong > 0 => paint(ALARM, "mismatch"),
        MeasureEnd::Interrupted => paint(NOTICE, "interrupted"),
        _ if !outcome.verify.ok => paint(ALARM, "unverified"),
        _ => paint(HEALTHY, "verified"),
    }
}

/// Returns the lines below a row, which report mismatches and other processes on the GPU.
pub(crate) fn format_remarks(
    columns: &Columns,
    indent: usize,
    outcome: &RunOutcome,
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
        remarks += &columns.format_remark(
            indent,
            NOTICE,
            &escape_untrusted(&format!("shared with {others}")),
        );
    }
    remarks
}

/// Returns the row of a framework that ran the same workload. `indent` is in columns, and `line`
/// formats an outcome as a row.
pub(crate) fn format_framework_comparison_row(
    columns: &Columns,
    indent: usize,
    run: &FrameworkRun,
    outcome: &RunOutcome,
    line: impl FnOnce(&RunOutcome) -> String,
) -> String {
    let name = format!("{:indent$}{}", "", describe::format_framework_label(run));
    let Some(of_run) = framework_run_to_outcome(run, &name, outcome) else {
        return columns.format_sentence_line(
            &name,
            ALARM,
            &format!("failed: {}", run.error.as_deref().unwrap_or_default()),
        );
    };
    let lines = line(&of_run);
    match (
        describe::compare_with_framework(run),
        lines.strip_suffix('\n'),
    ) {
        (Some((style, text)), Some(line)) => {
            columns.append_or_wrap(line, indent + 2, &paint(style, &text)) + "\n"
        }
        _ => lines,
    }
}

/// Formats a time in microseconds with three significant digits, such as `620 ns`, `1.85 us`, `512
/// us` or `17.3 ms`.
pub(crate) fn format_microseconds(us: f64) -> String {
    match us {
        tiny if tiny < 0.9995 => format!("{} ns", format_three_digits(tiny * 1e3)),
        short if short < 999.5 => format!("{} us", format_three_digits(short)),
        long if long < 999_500.0 => format!("{} ms", format_three_digits(long / 1e3)),
        longer => format!("{} s", format_three_digits(longer / 1e6)),
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use gpumon_workload::protocol::Verification;

    use super::*;
    use crate::fuzzing::make_outcome;
    use crate::terminal::line::strip_styles;

    fn make_layout(subject: TableKind) -> Layout {
        Layout {
            subject,
            is_beside: false,
            has_integers: false,
        }
    }

    fn make_load() -> Load {
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
    fn narrow_table_drops_less_important_columns() {
        let outcome = make_outcome("GPU-a", 500.0);
        let devices = [outcome.device.clone()];
        let lines = |columns| {
            let text = Table::new(make_layout(TableKind::Workloads), &devices, Some(columns))
                .format_outcome(&outcome, Some(&make_load()), None);
            strip_styles(&text)
        };
        let expected = [
            "workload           type     size  device us  ± %    host us    GB/s   GFLOP/s peak % \
             clock %    W  MHz    limit result",
            "GPU 0: H200",
            "copy               fp32 1.00 GiB    500      0.2    510     4290         -      \
             87.2    91.2  612 1755    power verified",
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
    fn devices_are_grouped_below_single_heading() {
        let mut other = make_outcome("GPU-b", 400.0);
        other.device.index = Some(1);
        let first = make_outcome("GPU-a", 500.0);
        let mut table = Table::new(
            make_layout(TableKind::Workloads),
            &[first.device.clone(), other.device.clone()],
            None,
        );
        let text = [&first, &first, &other]
            .map(|outcome| strip_styles(&table.format_outcome(outcome, None, None)))
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
        let failed = strip_styles(&table.format_failure(
            "triad",
            Some(&other.device),
            "it is too large: give --size",
        ));
        assert_eq!(
            failed,
            "triad             failed: it is too large: give --size\n"
        );
    }

    #[test]
    fn integer_operations_are_not_labeled_as_floating_point() {
        let table = Table::new(
            Layout {
                has_integers: true,
                ..make_layout(TableKind::Burn)
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
    fn burn_table_has_row_per_device() {
        let mut outcome = make_outcome("GPU-a", 500.0);
        (outcome.device_time, outcome.host_time) = (None, None);
        outcome.verify.wrong = 3;
        let mut table = Table::new(
            make_layout(TableKind::Burn),
            std::slice::from_ref(&outcome.device),
            Some(80),
        );
        let text = strip_styles(&table.format_outcome(&outcome, Some(&make_load()), None));
        assert!(
            text.starts_with("device") && text.lines().all(|line| line.width() <= 80),
            "{text}"
        );
        assert!(
            text.contains("\nGPU 0: H200 ") && text.contains("   3 mismatch\n  mismatch: 3 of 5"),
            "{text}"
        );
        let failed =
            strip_styles(&table.format_failure("burn", Some(&outcome.device), "no memory"));
        assert_eq!(failed, "GPU 0: H200 failed: no memory\n");
    }

    #[test]
    fn framework_row_has_host_time() {
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
            let mut table = Table::new(
                Layout {
                    is_beside: true,
                    ..make_layout(TableKind::Workloads)
                },
                devices,
                Some(columns),
            );
            let first = table.format_outcome(&outcome, None, None);
            strip_styles(
                &(first
                    + &[&run, &wrong, &failed]
                        .map(|run| table.format_framework_row(run, &outcome))
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
    fn mismatch_and_shared_gpu_are_noted_below_row() {
        let mut wrong = make_outcome("GPU-a", 500.0);
        let mut table = Table::new(
            make_layout(TableKind::Compared),
            std::slice::from_ref(&wrong.device),
            Some(120),
        );
        wrong.verify.wrong = 2;
        wrong.verify.first_wrong = Some(7);
        let mut load = make_load();
        load.others =
            serde_json::from_str(r#"{"others":[{"pid":42,"user":"ana","name":"py\u001bthon"}]}"#)
                .unwrap();
        let compared = Comparison {
            ratio: 0.934,
            is_slower: true,
            siblings: None,
            before_us: 467.0,
            before_ms: None,
        };
        let text = table.format_outcome(&wrong, Some(&load), Some(compared));
        let text = strip_styles(&text);
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
                .format_outcome(&wrong, None, None)
                .contains("no element was checked")
        );
    }
}
