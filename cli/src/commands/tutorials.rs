//! `gpumon tutorials`: tutorial benchmarks, each a small program in several variants.

use gpumon_workload::{
    protocol::{Backend, Found, FrameworkTime, Job, Outcome, Report, TutorialReport, TutorialsJob},
    tutorials::CASES,
};

use super::bench::{
    count, format_framework, format_microseconds, format_remarks, format_verdict, median,
};
use crate::{
    describe,
    exit::Failure,
    options::SourceArgs,
    run::{self, ForPeople, FrameworkArgs, WhereArgs},
    terminal::{
        columns::{Column, Columns, terminal_columns},
        style::{ALARM, DIM, NOTICE, PLAIN, STRONG, WELL, paint},
    },
};

/// Run tutorial benchmarks in several variants, and compare them with frameworks
///
/// The cases come from the tutorials of CUDA.jl, Flux, CuPy, Numba, JAX and D2L: matrix products,
/// sums, training, transfers, fused operations, batches, devices. Each variant is timed by the GPU
/// and by the host, and its result is verified. Next to it is the time of a framework on an H200,
/// or on CPU cores of its host; on such a device, the host times are compared.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct TutorialsArgs {
    /// Cases to run, a to k5; by default, all
    #[arg(value_name = "CASE")]
    cases: Vec<String>,

    #[command(flatten)]
    place: WhereArgs,

    #[command(flatten)]
    beside: FrameworkArgs,

    /// Use small arrays, whose sizes the table names, measure each variant for 0.2 seconds, and
    /// skip the comparison with known figures of frameworks
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
      Measure what copies between host and device cost.
  gpumon tutorials --beside --python ~/venv/bin/python3
      Compare with the frameworks that are installed there.
  gpumon tutorials --json | jq -r 'select(.framework.same_device and .share_of_framework > 1) \
| [.row, .variant] | @tsv'
      List the variants that are slower than a framework.

Environment:
  GPUMON_LIBCUDA  path of the CUDA driver library, if the loader does not find libcuda.so.1

Exit codes: 0 all results verified, 1 mismatch or error, 2 invalid argument, 3 no such GPU or no \
driver although requested, 5 refused (not enough memory), 130 interrupted";

pub(crate) fn run(source: &SourceArgs, args: &TutorialsArgs) -> Result<(), Failure> {
    source.source.check()?;
    let job = Job::Tutorials(TutorialsJob {
        cases: args.cases.clone(),
        place: args.place.place(),
        quick: args.quick,
    });
    run::print(
        source,
        &job,
        args.place.time_limit,
        Some(&args.beside),
        &mut Text::new(args.quick),
        args.json,
    )
}

/// Returns the values that the argument [`TutorialsArgs::cases`] accepts.
pub(crate) fn names() -> Vec<&'static str> {
    CASES.iter().map(|case| case.id).collect()
}

/// The indentation of variants below the title of their case.
const INDENT: usize = 3;
const VARIANT: usize = 38;
const COLUMNS: [Column; 5] = [
    Column::align_left("variant", 0).at_least(VARIANT),
    Column::align_right("size", 2).at_least(8),
    Column::align_points("device us", 6, 3, 1),
    Column::align_points("host us", 6, 3, 0),
    Column::align_left("result", 0).at_least(8),
];
const QUICK: &str = "Quick run: sizes are those of the table, not those of the titles.";

struct Text {
    /// Whether the run is quick, so that sizes differ from those in the titles.
    is_quick: bool,
    columns: Columns,
    /// The current case, and the lesson that it teaches.
    case: Option<(String, String)>,
}

impl Text {
    fn new(is_quick: bool) -> Self {
        Self::with_room(is_quick, terminal_columns())
    }

    fn with_room(is_quick: bool, terminal: Option<usize>) -> Self {
        Self {
            is_quick,
            columns: Columns::with_headings(&COLUMNS, terminal),
            case: None,
        }
    }

    /// Returns the row of a variant. The first row of a case follows the lesson of the previous
    /// case and the title.
    fn lines(&mut self, report: &TutorialReport) -> String {
        let lines = self.variant(report);
        if self
            .case
            .as_ref()
            .is_some_and(|(case, _)| *case == report.case)
        {
            return lines;
        }
        let before = if self.case.is_some() {
            format!("{}\n", self.end())
        } else {
            let note = if self.is_quick {
                format!("{QUICK}\n")
            } else {
                String::new()
            };
            note + &self.columns.headings()
        };
        self.case = Some((report.case.to_string(), report.teaches.to_string()));
        let title = paint(STRONG, &format!("{:INDENT$}{}", report.case, report.title));
        format!("{before}{title}\n{lines}")
    }

    fn variant(&self, report: &TutorialReport) -> String {
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
            Found::Measured { outcome } => self.measured(name, report, outcome),
            Found::Shown { ok: true, text } => shown(text, WELL, "verified"),
            Found::Shown { ok: false, text } => shown(text, ALARM, "mismatch"),
            Found::Skipped { reason } => line(DIM, &format!("skipped: {reason}")),
            Found::Failed { error, .. } => line(ALARM, &format!("failed: {error}")),
        }
    }

    /// Returns a row with both times and the verification. The comparison with a framework follows
    /// on the same line if there is room.
    fn measured(&self, name: String, report: &TutorialReport, outcome: &Outcome) -> String {
        let mut text = self.line(name, outcome);
        if let Some((is_slower, comparison)) = comparison(report) {
            text = self.columns.append_or_wrap(
                &text,
                2 * INDENT,
                &paint(if is_slower { NOTICE } else { DIM }, &comparison),
            );
        }
        text.push('\n');
        text += &format_remarks(&self.columns, 2 * INDENT, outcome, None);
        for run in &report.beside {
            text += &format_framework(&self.columns, 2 * INDENT, run, outcome, |of_run| {
                let line = self.line(of_run.id.to_string(), of_run);
                format!(
                    "{line}\n{}",
                    format_remarks(&self.columns, 3 * INDENT, of_run, None)
                )
            });
        }
        text
    }

    fn line(&self, name: String, outcome: &Outcome) -> String {
        let [device, host] =
            [&outcome.device_time, &outcome.host_time].map(|times| median(times.as_ref()));
        self.columns
            .line(&[name, count(outcome), device, host, format_verdict(outcome)])
    }
}

impl ForPeople for Text {
    fn result(&mut self, report: &Report) -> Option<String> {
        if let Report::Tutorial { tutorial } = report {
            Some(self.lines(tutorial))
        } else {
            None
        }
    }

    /// Returns the lesson of the last case.
    fn end(&self) -> String {
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

/// Returns whether the variant is slower than the framework, and the comparison as text. On a
/// different device, the text has only the framework's time.
fn comparison(report: &TutorialReport) -> Option<(bool, String)> {
    // A framework that ran on this machine is a better comparison.
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
        format!("{} than {name} ({figure})", describe::factor(1.0 / share)),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{
        commands::bench::sample_outcome as outcome,
        terminal::{snapshot::compare_report, style::plain},
    };

    use super::*;

    fn report(case: &'static str, found: Found) -> TutorialReport {
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

    fn compare_times(share: f64, same_device: bool, columns: Option<usize>) -> String {
        let mut report = report(
            "a",
            Found::Measured {
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
        plain(&Text::with_room(false, columns).lines(&report))
    }

    #[test]
    fn a_time_is_compared_with_a_frameworks_on_the_same_device_alone() {
        let faster = compare_times(1.0 / 1.1, true, Some(160));
        let words = "verified  1.10x faster than CuPy (73.0 us on an H200, measured 2026-11)\n";
        assert!(faster.ends_with(words), "{faster}");
        assert!(
            compare_times(2.0, true, Some(160)).contains("2.00x slower than CuPy ("),
            "{}",
            compare_times(2.0, true, Some(160))
        );
        let other = compare_times(2.0, false, Some(160));
        assert!(
            other.ends_with("verified  CuPy: 73.0 us on an H200, measured 2026-11\n"),
            "{other}"
        );
    }

    #[test]
    fn table_has_the_time_of_a_framework() {
        compare_report("tutorials", |terminal| compare_times(0.5, true, terminal));
    }

    #[test]
    fn a_case_begins_with_its_title_and_ends_with_what_it_teaches() {
        let mut text = Text::with_room(true, None);
        let shown = || Found::Shown {
            ok: true,
            text: "80 GB fit".to_owned(),
        };
        let first = plain(&text.lines(&report("e", shown())));
        assert!(
            first.starts_with(&format!("{QUICK}\nvariant ")) && first.contains("\ne  A title\n"),
            "{first}"
        );
        assert!(
            first.ends_with("   GPU a variant                       80 GB fit: verified\n"),
            "{first}"
        );
        let skipped = plain(&text.lines(&report(
            "e",
            Found::Skipped {
                reason: "why".to_owned(),
            },
        )));
        assert_eq!(
            skipped,
            "   GPU a variant                       skipped: why\n"
        );
        let failed = text.lines(&report(
            "e",
            Found::Failed {
                error: "why".to_owned(),
                refused: false,
            },
        ));
        assert!(
            failed.ends_with(&format!(" {}\n", paint(ALARM, "failed: why"))),
            "{failed:?}"
        );
        let next = plain(&text.lines(&report("k1", shown())));
        assert!(next.starts_with("   It teaches.\n\nk1 A title"), "{next}");
        assert_eq!(text.end(), "   It teaches.\n");
    }
}
