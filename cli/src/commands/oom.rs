//! `gpumon oom`: demonstrates out-of-memory errors safely.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use anyhow::anyhow;
use gpumon_probe::units::AcceptedAmounts;
use gpumon_workload::{
    oom,
    protocol::{Job, MemoryLevel, OomJob, Report, ReportLine, Topic, report::EXIT_INTERRUPTED},
};
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::{
    describe,
    exit::{Failure, Result, print_message},
    options::SourceArgs,
    terminal::{
        line::{ALARM, DIM, HEALTHY, MEMORY, NOTICE, STRONG, paint},
        output::print_raw,
        screen::{Glyphs, is_dumb_terminal},
        text::wrap,
    },
    workload_run::{self, RunTargetArgs, RunView},
};

/// Demonstrate out-of-memory errors safely, with cause and fix
///
/// A demo allocates GPU memory as an application would, shows the error of the driver, and explains
/// its cause and fix. 3 % of the memory, at least 512 MiB, stay free for other processes at all
/// times: the error is provoked by a request larger than the GPU, never by exhausting it. All
/// memory is released at the end, on Ctrl+C, and if gpumon is killed. Without a GPU, the demo runs
/// on a model of GPU memory.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct OomArgs {
    /// Demo to run; `list` lists all demos
    #[arg(value_name = "DEMO", default_value = LIST_VALUE, hide_default_value = true)]
    scenario: String,

    #[command(flatten)]
    place: RunTargetArgs,

    /// Time to hold the memory, for example 500ms, 3s or 2m, up to 10m; each step takes a third of
    /// this time, but at most one second
    #[arg(
        long, value_name = "TIME", default_value = "3s",
        value_parser = |text: &str| ACCEPTED_HOLD_TIMES.parse(text)
    )]
    hold: Duration,

    /// Print one JSON object per line for each report
    #[arg(long)]
    json: bool,

    /// Run as the second process on the GPU with this UUID, and allocate what standard input
    /// requests
    #[arg(long, value_name = "UUID", hide = true)]
    second: Option<String>,
}

const NOTES: &str = "\
Examples:
  gpumon oom list
      List the demos.
  gpumon oom fill --hold 30s
      Fill GPU memory up to the reserve, and hold it for 30 seconds.
  gpumon oom fragment --backend cpu
      Run on a model of GPU memory, without a GPU.
  gpumon oom leak --json | jq -r 'select(.report == \"said\") | .text'
      Print the explanations as text.

Environment:
  GPUMON_LIBCUDA  path of the CUDA driver library, if the loader does not find libcuda.so.1
  CUDA_VISIBLE_DEVICES  GPUs visible to CUDA, in this order

Exit codes: 0 success, 1 failure or unexpected result, 2 invalid argument, 3 no such GPU or no driver, 5 refused (other processes need the memory), 130 interrupted";

/// The argument that lists the scenarios instead of running one.
const LIST_VALUE: &str = "list";

pub(crate) fn run(source: &SourceArgs, args: &OomArgs) -> Result {
    if let Some(uuid) = &args.second {
        return run_as_second_process(uuid);
    }
    if args.scenario == LIST_VALUE {
        return workload_run::print_list(oom::list_scenarios(), args.json, |scenario| {
            format!("{:12}{}", scenario.id, scenario.shows)
        });
    }
    source.source.check_scenario_file()?;
    let job = OomJob {
        scenario: args.scenario.clone(),
        place: args.place.to_target(),
        hold_seconds: args.hold.as_secs_f64(),
    };
    let mut reader = if args.json {
        OutputFormat::Program
    } else {
        OutputFormat::Person(Page::new())
    };
    let code = workload_run::run_job(
        source,
        &Job::Oom(job),
        args.place.time_limit,
        None,
        &mut reader,
    )?;
    Failure::check_exit_code(code)
}

/// Runs the second process of a demo in this process. The kernel kills this process when its parent
/// ends, even if the driver hangs.
fn run_as_second_process(uuid: &str) -> Result {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| anyhow!("cannot watch the parent process: {error}"))?;
    oom::second_process::serve_requests(uuid).map_err(|error| anyhow!(error).into())
}

enum OutputFormat {
    Person(Page),
    Program,
}

impl RunView for OutputFormat {
    fn on_line(&mut self, raw: &str, line: ReportLine) -> Result {
        match self {
            Self::Person(page) => Ok(page.print_report(line)?),
            Self::Program => print_raw(&format!("{raw}\n")),
        }
    }
}

/// The accepted durations for which memory is held. The maximum is ten minutes, because others may
/// be waiting for the GPU.
const ACCEPTED_HOLD_TIMES: AcceptedAmounts<Duration> = AcceptedAmounts::accept_durations(
    Duration::from_millis(10),
    Duration::from_mins(10),
    "a time from 10ms to 10m, such as 500ms, 3s or 2m",
);

/// Returns the values that the argument [`OomArgs::scenario`] accepts.
pub(crate) fn list_accepted_scenarios() -> Vec<&'static str> {
    let ids = oom::list_scenarios().iter().map(|scenario| scenario.id);
    std::iter::once(LIST_VALUE).chain(ids).collect()
}

const MAX_BAR_WIDTH: usize = 40;

/// Returns a bar that shows the memory in use, with its numbers. The bar is at most `columns` wide.
fn format_memory_bar(level: &MemoryLevel, columns: usize, glyphs: Glyphs) -> String {
    let short = format!(
        "{:.1}/{:.1} GiB",
        to_gib(level.used_bytes),
        to_gib(level.total_bytes)
    );
    let text = [level.to_string(), short]
        .into_iter()
        .find(|text| text.len() + 12 <= columns);
    let text = text.map(|text| format!("  {text}")).unwrap_or_default();
    let length = columns.saturating_sub(text.len()).min(MAX_BAR_WIDTH);
    let (used, rest) = glyphs.draw_bar(level.used_share(), length);
    let rest: Vec<char> = rest.chars().collect();
    let reserve = (level.reserve_bytes as f64 / level.total_bytes.max(1) as f64 * length as f64)
        .ceil() as usize;
    let free = rest.len().saturating_sub(reserve);
    let reserved = if glyphs == Glyphs::Braille {
        "┄"
    } else {
        "|"
    }
    .repeat(rest.len() - free);
    let is_theirs = level.total_bytes.saturating_sub(level.used_bytes) < level.reserve_bytes;
    let style = if is_theirs { ALARM } else { MEMORY };
    let free: String = rest[..free].iter().collect();
    format!(
        "{}{}{}{text}",
        paint(style, &used),
        paint(DIM, &free),
        paint(NOTICE, &reserved)
    )
}

fn to_gib(bytes: u64) -> f64 {
    bytes as f64 / (1_u64 << 30) as f64
}

/// The maximum width of a line, chosen so that text remains readable.
const MAX_LINE_WIDTH: usize = 100;
/// The width of the left margin, which contains a sentence's time or topic.
const MARGIN_WIDTH: usize = 13;

struct Page {
    /// Whether standard output is a terminal in which a line can be rewritten.
    is_live: bool,
    begun_ms: u64,
    /// The topic of the previous sentence. If the next sentence has another topic, an empty line is
    /// added between them.
    topic: Option<Topic>,
    level: Option<MemoryLevel>,
}

impl Page {
    fn new() -> Self {
        Self {
            is_live: io::stdout().is_terminal() && !is_dumb_terminal(),
            begun_ms: 0,
            topic: None,
            level: None,
        }
    }

    fn print_report(&mut self, ReportLine { at_ms, report }: ReportLine) -> io::Result<()> {
        match report {
            Report::Begun { title, devices, .. } => {
                self.begun_ms = at_ms;
                let on = devices
                    .iter()
                    .map(describe::label_device)
                    .collect::<Vec<_>>()
                    .join(", ");
                self.write(&format!(
                    "{}\n{}\n\n",
                    paint(STRONG, &describe::capitalize(&title)),
                    paint(DIM, &on)
                ))
            }
            Report::Progress { memory, .. } => {
                self.level = memory;
                self.write("")
            }
            Report::Said { topic, text } => {
                let text = self.format_sentence(topic, &text, at_ms);
                self.write(&text)
            }
            Report::Failed { error, .. } => {
                self.clear_bar()?;
                print_message(&error);
                Ok(())
            }
            Report::Ended { code } => {
                self.clear_bar()?;
                if code == EXIT_INTERRUPTED {
                    print_message("interrupted: all memory was freed");
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Formats a sentence with its time or topic in the margin. An empty line separates topics.
    fn format_sentence(&mut self, topic: Topic, text: &str, at_ms: u64) -> String {
        let is_next = self.topic != Some(topic);
        let is_apart = is_next && self.topic.is_some();
        self.topic = Some(topic);
        let seconds = at_ms.saturating_sub(self.begun_ms) as f64 / 1e3;
        let (style, head) = match topic {
            Topic::Step => (DIM, format!("{seconds:5.1} s")),
            Topic::Cause => (NOTICE, "Cause".to_owned()),
            Topic::Fix => (HEALTHY, "Fix".to_owned()),
            Topic::Lesson => (STRONG, "Takeaway".to_owned()),
            Topic::Proof => (DIM, "Verification".to_owned()),
            Topic::Other => (DIM, String::new()),
        };
        let head = if is_next || topic == Topic::Step {
            head
        } else {
            String::new()
        };
        let head = paint(style, &format!("{head:MARGIN_WIDTH$}"));
        let lines = wrap(
            text,
            find_line_width()
                .min(MAX_LINE_WIDTH)
                .saturating_sub(MARGIN_WIDTH),
        );
        let space = if is_apart { "\n" } else { "" };
        format!(
            "{space}{head}{}\n",
            lines.join(&format!("\n{:MARGIN_WIDTH$}", ""))
        )
    }

    /// Writes `text` above the bar, and then draws the bar again.
    fn write(&self, text: &str) -> io::Result<()> {
        let mut out = anstream::stdout().lock();
        match self.level.filter(|_| self.is_live) {
            // The bar leaves the last column empty, because a full line would wrap.
            Some(level) => {
                let bar = format_memory_bar(
                    &level,
                    find_line_width().saturating_sub(1),
                    Glyphs::from_terminal(),
                );
                write!(out, "\r\x1b[K{text}{bar}")?;
            }
            None => write!(out, "{text}")?,
        }
        out.flush()
    }

    fn clear_bar(&mut self) -> io::Result<()> {
        let had_bar = self.level.take().is_some() && self.is_live;
        self.write(if had_bar { "\r\x1b[K" } else { "" })
    }
}

/// Returns the width of the terminal, or a readable width if the output is not a terminal.
fn find_line_width() -> usize {
    rustix::termios::tcgetwinsize(io::stdout())
        .map_or(MAX_LINE_WIDTH, |size| usize::from(size.ws_col))
        .max(MARGIN_WIDTH + 1)
}

#[cfg(test)]
mod tests {
    use crate::terminal::line::strip_styles;

    use super::*;

    #[test]
    fn hold_time_requires_unit_and_is_limited() {
        for (text, seconds) in [("500ms", 0.5), ("3s", 3.0), ("0.5s", 0.5), ("10m", 600.0)] {
            assert_eq!(
                ACCEPTED_HOLD_TIMES.parse(text),
                Ok(Duration::from_secs_f64(seconds)),
                "{text}"
            );
        }
        for text in [
            "", "3", "s", "0s", "-1s", "11m", "1h", "1ms", "nans", "infs", "3 apples",
        ] {
            assert!(
                ACCEPTED_HOLD_TIMES
                    .parse(text)
                    .unwrap_err()
                    .contains("10ms to 10m"),
                "{text}"
            );
        }
    }

    #[test]
    fn bar_distinguishes_used_free_and_reserved_memory() {
        let plain =
            |level, columns| strip_styles(&format_memory_bar(&level, columns, Glyphs::Ascii));
        let half = MemoryLevel {
            used_bytes: 4 << 30,
            total_bytes: 8 << 30,
            reserve_bytes: 1 << 29,
        };
        let long = plain(half, 100);
        assert_eq!(
            long,
            format!("{}{}|||  {half}", "#".repeat(20), ".".repeat(17))
        );
        assert_eq!(plain(half, 30), "#########......||  4.0/8.0 GiB");
        for columns in [0, 1, 5, 12, 25, 79] {
            assert!(plain(half, columns).len() <= columns, "{columns}");
        }
        let full = MemoryLevel {
            used_bytes: 8 << 30,
            ..half
        };
        assert_eq!(plain(full, 100), format!("{}  {full}", "#".repeat(40)));
    }

    #[test]
    fn output_sentences_are_grouped_by_topic() {
        let mut page = Page {
            is_live: false,
            begun_ms: 1_000,
            topic: None,
            level: None,
        };
        let said = [
            (Topic::Step, "It begins.", 1_200),
            (Topic::Step, "It goes on.", 13_500),
            (Topic::Fix, "Do this.", 14_000),
            (Topic::Fix, "Or that.", 14_000),
        ];
        let text: String = said
            .into_iter()
            .map(|(topic, text, at_ms)| page.format_sentence(topic, text, at_ms))
            .collect();
        let text = strip_styles(&text);
        assert_eq!(
            text,
            "  0.2 s      It begins.\n 12.5 s      It goes on.\n\nFix          Do this.\n\
             \x20            Or that.\n"
        );
    }
}
