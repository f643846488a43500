//! `gpumon tutorials`: runs tutorial benchmarks, which are small programs in several variants.

use gpumon_workload::{
    protocol::{
        Backend, FrameworkTime, Job, Report, RunOutcome, TutorialReport, TutorialsJob,
        VariantOutcome,
    },
    tutorials::CASES,
};

use super::bench::{
    format_framework_comparison_row, format_median, format_microseconds, format_problem_size,
    format_remarks, format_verdict,
};
use crate::{
    describe,
    exit::Result,
    options::SourceArgs,
    terminal::{
        columns::{Column, Columns, terminal_columns},
        line::{ALARM, DIM, HEALTHY, NOTICE, PLAIN, STRONG, paint},
    },
    workload_run::{self, FrameworkArgs, ReportFormatter, RunTargetArgs},
};

/// Run tutorial benchmarks in several variants, and compare them with frameworks
///
/// The cases come from the tutorials of CUDA.jl, Flux, CuPy, Numba, JAX and D2L: matrix products,
/// sums, training, transfers, fused operations, batches, devices. Each variant is timed by the GPU
/// and by the host, and its result is verified. Each variant is listed with the time of a framework
/// on an H200, or on CPU cores of the H200's host; if this machine has the same device, the host
/// times are compared.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct TutorialsArgs {
    /// Cases to run, a to k5; by default, all
    #[arg(value_name = "CASE")]
    cases: Vec<String>,

    #[command(flatten)]
    place: RunTargetArgs,

    #[command(flatten)]
    beside: FrameworkArgs,

    /// Use small arrays, with the sizes given in the table; measure each variant for 0.2 seconds,
    /// and skip the comparison with known figures of frameworks
    #[arg(long)]
    quick: bool,

    /// Print one JSON object per line for each variant
    #[arg(long)]
    json: bool,
}

const NOTES: &str = "\
Examples:
  gpumon tutorials
      Run all cases, in about two minutes.
  gpumon tutorials c f
      Measure the cost of copies between host and device.
  gpumon tutorials --beside --python ~/venv/bin/python3
      Compare with the frameworks that are installed in this environment.
  gpumon tutorials --json | jq -r 'select(.framework.same_device and .share_of_framework > 1) | [.row, .variant] | @tsv'
      List the variants that are slower than a framework.

Environment:
  GPUMON_LIBCUDA  path of the CUDA driver library, if the loader does not find libcuda.so.1

Exit codes: 0 all results verified, 1 mismatch or error, 2 invalid argument, 3 no such GPU, or no driver although a GPU was requested, 5 refused (not enough memory), 130 interrupted";

pub(crate) fn run(source: &SourceArgs, args: &TutorialsArgs) -> Result {
    source.source.check_scenario_file()?;
    let job = Job::Tutorials(TutorialsJob {
        cases: args.cases.clone(),
        place: args.place.to_target(),
        quick: args.quick,
    });
    workload_run::run_and_print(
        source,
        &job,
        args.place.time_limit,
        Some(&args.beside),
        &mut TutorialsFormatter::with_width(args.quick, terminal_columns()),
        args.json,
    )
}

/// Returns the values that the argument [`TutorialsArgs::cases`] accepts.
pub(crate) fn list_accepted_cases() -> Vec<&'static str> {
    CASES.iter().map(|case| case.id).collect()
}

/// The indentation of variants below the title of their case.
const INDENT: usize = 3;
const VARIANT_WIDTH: usize = 38;
const COLUMNS: [Column; 5] = [
    Column::new_left_aligned("variant", 0).with_min_width(VARIANT_WIDTH),
    Column::new_right_aligned("size", 2).with_min_width(8),
    Column::new_point_aligned("device us", 6, 3, 1),
    Column::new_point_aligned("host us", 6, 3, 0),
    Column::new_left_aligned("result", 0).with_min_width(8),
];
const QUICK_NOTE: &str = "Quick run: the sizes in the table apply, not the sizes in the titles.";

struct TutorialsFormatter {
    /// Whether this is a quick run, in which sizes differ from those in the cases' titles.
    is_quick: bool,
    columns: Columns,
    /// The current case, and the sentence about what it demonstrates.
    case: Option<(String, String)>,
}

impl TutorialsFormatter {
    fn with_width(is_quick: bool, terminal: Option<usize>) -> Self {
        Self {
            is_quick,
            columns: Columns::with_headings(&COLUMNS, terminal),
            case: None,
        }
    }

    /// Returns the row of a variant. The first row of a case is preceded by the previous case's
    /// takeaway and the new case's title.
    fn format_report(&mut self, report: &TutorialReport) -> String {
        let lines = self.format_variant(report);
        if self
            .case
            .as_ref()
            .is_some_and(|(case, _)| *case == report.case)
        {
            return lines;
        }
        let before = if self.case.is_some() {
            format!("{}\n", self.format_summary())
        } else {
            let note = if self.is_quick {
                format!("{QUICK_NOTE}\n")
            } else {
                String::new()
            };
            note + &self.columns.headings()
        };
        self.case = Some((report.case.to_string(), report.teaches.to_string()));
        let title = paint(STRONG, &format!("{:INDENT$}{}", report.case, report.title));
        format!("{before}{title}\n{lines}")
    }

    fn format_variant(&self, report: &TutorialReport) -> String {
        let place = match report.backend {
            Backend::Cuda => "GPU",
            Backend::Cpu => "CPU",
        };
        let name = format!("{:INDENT$}{place} {}", "", report.variant);
        let line = |style, text: &str| self.columns.format_sentence_line(&name, style, text);
        let shown = |text: &str, style, verdict: &str| {
            let line = line(PLAIN, &format!("{text}: {verdict}"));
            let text = line
                .strip_suffix(&format!("{verdict}\n"))
                .unwrap_or_default();
            format!("{text}{}\n", paint(style, verdict))
        };
        match &report.found {
            VariantOutcome::Measured { outcome } => self.format_measured_row(name, report, outcome),
            VariantOutcome::Shown { ok: true, text } => shown(text, HEALTHY, "verified"),
            VariantOutcome::Shown { ok: false, text } => shown(text, ALARM, "mismatch"),
            VariantOutcome::Skipped { reason } => line(DIM, &format!("skipped: {reason}")),
            VariantOutcome::Failed { error, .. } => line(ALARM, &format!("failed: {error}")),
        }
    }

    /// Returns a row with the device time, the host time and the verification. If there is room,
    /// the comparison with a framework is on the same line.
    fn format_measured_row(
        &self,
        name: String,
        report: &TutorialReport,
        outcome: &RunOutcome,
    ) -> String {
        let mut text = self.format_row(name, outcome);
        if let Some((is_slower, comparison)) = format_comparison(report) {
            text = self.columns.append_or_wrap(
                &text,
                2 * INDENT,
                &paint(if is_slower { NOTICE } else { DIM }, &comparison),
            );
        }
        text.push('\n');
        text += &format_remarks(&self.columns, 2 * INDENT, outcome, None);
        for run in &report.beside {
            text += &format_framework_comparison_row(
                &self.columns,
                2 * INDENT,
                run,
                outcome,
                |of_run| {
                    let line = self.format_row(of_run.id.to_string(), of_run);
                    format!(
                        "{line}\n{}",
                        format_remarks(&self.columns, 3 * INDENT, of_run, None)
                    )
                },
            );
        }
        text
    }

    fn format_row(&self, name: String, outcome: &RunOutcome) -> String {
        let [device, host] =
            [&outcome.device_time, &outcome.host_time].map(|times| format_median(times.as_ref()));
        self.columns.format_row(&[
            name,
            format_problem_size(outcome),
            device,
            host,
            format_verdict(outcome),
        ])
    }
}

impl ReportFormatter for TutorialsFormatter {
    fn format_result(&mut self, report: &Report) -> Option<String> {
        if let Report::Tutorial { tutorial } = report {
            Some(self.format_report(tutorial))
        } else {
            None
        }
    }

    /// Returns the sentence about what the last case demonstrates.
    fn format_summary(&self) -> String {
        let lesson = |(_, teaches): &(_, String)| {
            format!(
                "{:INDENT$}{}\n",
                "",
                self.columns.wrap_sentence(INDENT, teaches)
            )
        };
        self.case.as_ref().map_or_else(String::new, lesson)
    }
}

/// Compares the variant with a framework. Returns whether the variant is slower than the framework,
/// and the comparison as text. If the framework's time is from a different device, the text
/// contains only this time.
fn format_comparison(report: &TutorialReport) -> Option<(bool, String)> {
    // If a framework also ran on this machine, the comparison with that run is shown. The
    // comparison with a time that was measured in advance is then left out.
    if report.beside.iter().any(|run| run.ratio.is_some()) {
        return None;
    }
    let (framework, share) = (report.framework.as_ref()?, report.share_of_framework?);
    let FrameworkTime {
        name,
        us,
        on,
        measured,
        same_device,
    } = framework;
    let figure = format!("{} on {on}, measured {measured}", format_microseconds(*us));
    if !same_device {
        return Some((false, format!("{name}: {figure}")));
    }
    Some((
        share > 1.0,
        format!(
            "{} than {name} ({figure})",
            describe::format_factor(1.0 / share)
        ),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{
        fuzzing::make_outcome as outcome,
        terminal::{line::strip_styles, snapshot::assert_report_matches_snapshot},
    };

    use super::*;

    fn make_report(case: &'static str, found: VariantOutcome) -> TutorialReport {
        TutorialReport {
            case: case.into(),
            title: "A title".into(),
            teaches: "It teaches.".into(),
            variant: "a variant".into(),
            backend: Backend::Cuda,
            found,
            framework: None,
            share_of_framework: None,
            beside: Vec::new(),
        }
    }

    fn format_compared_report(share: f64, same_device: bool, columns: Option<usize>) -> String {
        let mut report = make_report(
            "a",
            VariantOutcome::Measured {
                outcome: Box::new(outcome("GPU-a", 60.0)),
            },
        );
        report.framework = Some(FrameworkTime {
            name: "CuPy".into(),
            us: 73.0,
            on: "an H200".into(),
            measured: "2026-11".into(),
            same_device,
        });
        report.share_of_framework = Some(share);
        strip_styles(&TutorialsFormatter::with_width(false, columns).format_report(&report))
    }

    #[test]
    fn tutorial_time_is_compared_only_on_same_device() {
        let faster = format_compared_report(1.0 / 1.1, true, Some(160));
        let words = "verified  1.10x faster than CuPy (73.0 us on an H200, measured 2026-11)\n";
        assert!(faster.ends_with(words), "{faster}");
        assert!(
            format_compared_report(2.0, true, Some(160)).contains("2.00x slower than CuPy ("),
            "{}",
            format_compared_report(2.0, true, Some(160))
        );
        let other = format_compared_report(2.0, false, Some(160));
        assert!(
            other.ends_with("verified  CuPy: 73.0 us on an H200, measured 2026-11\n"),
            "{other}"
        );
    }

    #[test]
    fn tutorial_table_shows_framework_time() {
        assert_report_matches_snapshot("tutorials", |terminal| {
            format_compared_report(0.5, true, terminal)
        });
    }

    #[test]
    fn tutorial_case_has_title_first_and_lesson_last() {
        let mut text = TutorialsFormatter::with_width(true, None);
        let shown = || VariantOutcome::Shown {
            ok: true,
            text: "80 GB fit".to_owned(),
        };
        let first = strip_styles(&text.format_report(&make_report("e", shown())));
        assert!(
            first.starts_with(&format!("{QUICK_NOTE}\nvariant "))
                && first.contains("\ne  A title\n"),
            "{first}"
        );
        assert!(
            first.ends_with("   GPU a variant                       80 GB fit: verified\n"),
            "{first}"
        );
        let skipped = strip_styles(&text.format_report(&make_report(
            "e",
            VariantOutcome::Skipped {
                reason: "why".to_owned(),
            },
        )));
        assert_eq!(
            skipped,
            "   GPU a variant                       skipped: why\n"
        );
        let failed = text.format_report(&make_report(
            "e",
            VariantOutcome::Failed {
                error: "why".to_owned(),
                refused: false,
            },
        ));
        assert!(
            failed.ends_with(&format!(" {}\n", paint(ALARM, "failed: why"))),
            "{failed:?}"
        );
        let next = strip_styles(&text.format_report(&make_report("k1", shown())));
        assert!(next.starts_with("   It teaches.\n\nk1 A title"), "{next}");
        assert_eq!(text.format_summary(), "   It teaches.\n");
    }
}
