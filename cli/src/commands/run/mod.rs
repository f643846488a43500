//! `gpumon run`: runs a command and reports its use of GPUs.

mod child;

use std::{
    ffi::OsString,
    io::{self, Write},
    path::{Path, PathBuf},
    process,
    sync::mpsc::{self, Receiver},
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow};
use gpumon_probe::{
    model::{Cost, CostMark, Gpu, GpuCost, Record, Vendor},
    safe_file,
    stat::Spread,
    units::format_byte_size,
    untrusted::escape_untrusted,
    usage::{Joules, cost::CostMeter},
};

use self::child::{CommandEnd, MarkPipe, MeasuredCommand};
use crate::{
    child_processes::ProcessTree,
    commands::mark::MarkForwarder,
    describe::{LimitLines, describe_limits},
    exit::{Failure, Result, print_message},
    feed::{Feed, Input},
    local_server::ServerArgs,
    options::SourceArgs,
    terminal::{
        columns::{Column, Columns, terminal_columns},
        line::{DIM, STRONG, paint},
        output::print_json,
        text::cut,
        units::{ABSENT, format_cost, format_elapsed, format_joules, format_joules_with_cost},
    },
    wait,
};

/// Run a command and report its GPU time, memory and energy
///
/// At the end of the command, gpumon reports its duration, the time in which its kernels ran (GPU
/// time), mean and peak of SM active, Tensor active and DRAM bandwidth utilization, the peak
/// memory, the energy, the traffic over PCIe and NVLink, what limited the work, and conditions and
/// driver errors (Xids), for each GPU that the command or a process started by it held. Energy is
/// exact if the command held the GPU alone; otherwise, it is a range with an estimate. Activity,
/// links, limits and conditions are of the whole GPU while the command held it.
///
/// The command has the terminal, standard input and output, and signals as without gpumon; the
/// report is written to standard error. Readings come ten times a second from a running server, or
/// else from the driver. The command starts immediately, and also runs on machines without a GPU.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct RunArgs {
    /// Write the report to this file as JSON instead of printing it; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Name of the measurement in the report [default: the command]
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,

    /// Read marks from a pipe whose path the command finds in `GPUMON_MARKS`, one per line
    ///
    /// The marks are part of the report, and on the charts of a running server.
    #[arg(long)]
    mark: bool,

    #[command(flatten)]
    server: ServerArgs,

    /// Command to run and measure
    #[arg(
        last = true, required = true, value_name = "COMMAND",
        value_hint = clap::ValueHint::CommandWithArguments
    )]
    command: Vec<OsString>,
}

const NOTES: &str = "\
Examples:
  gpumon run -- python train.py
      Print the report at the end.
  gpumon run --json cost.json -- torchrun --nproc-per-node 4 train.py
      Write the report as JSON, for example for a job or a test.
  gpumon run --mark -- sh -c 'for epoch in 1 2 3; do echo epoch $epoch > $GPUMON_MARKS; ./train; done'
      Mark the start of each epoch.

Environment:
  GPUMON_CONTROL  default of --control
  GPUMON_MARKS    set for the command with --mark: path of the pipe

Exit codes: those of the command; if a signal ended the command, gpumon ends with the same signal. 1 report cannot be written, 2 invalid argument, 126 command cannot be started, 127 command not found";

/// The sampling interval, which matches the interval at which the driver updates its readings.
pub(crate) const SAMPLING_INTERVAL: Duration = Duration::from_millis(100);

/// The maximum time for reading the remaining marks after the command has ended, sufficient even on
/// a busy machine. The limit is reached only if a process that the command started is still running
/// and has the pipe open.
const LAST_MARKS_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum number of queued events.
const QUEUE_LENGTH: usize = 256;

/// An event during the run.
enum RunEvent {
    Fed(Input),
    Started(Result<Feed<Self>>),
    Mark(CostMark),
    NoMoreMarks,
    Ended(io::Result<CommandEnd>),
}

impl From<Input> for RunEvent {
    fn from(input: Input) -> Self {
        Self::Fed(input)
    }
}

pub(crate) fn run(source: &SourceArgs, args: &RunArgs) -> Result {
    source.source.check_scenario_file()?;
    wait::check_command_exists(&args.command)?;
    if let Some(path) = args.json.as_ref().filter(|path| path.as_os_str() != "-") {
        // The file is created before the run starts, so that an error is reported immediately
        // rather than after a long run. Existing content is kept until the report is written.
        safe_file::create(path).map_err(|error| make_write_failure(path, &error))?;
    }
    let words: Vec<_> = args
        .command
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    let name = args.name.clone().unwrap_or_else(|| words.join(" "));
    let (happenings, waiting) = mpsc::sync_channel(QUEUE_LENGTH);
    let marks = args
        .mark
        .then(|| MarkPipe::new(happenings.clone()))
        .transpose()?;
    let child = MeasuredCommand::start(&args.command, marks.as_ref().map(MarkPipe::path))?;
    let mut measurement = Measurement {
        meter: CostMeter::new(Some(name), child.started_ms),
        // Orphans of the command become children of this process, so this process is the root of
        // the tree.
        tree: ProcessTree::new(process::id()),
        gpus: Vec::new(),
        feed: None,
        forwarder: MarkForwarder::new(&args.server),
    };
    Feed::start_in_background(
        source,
        &args.server,
        SAMPLING_INTERVAL,
        happenings.clone(),
        RunEvent::Started,
    )?;
    child.wait_in_background(happenings)?;
    let ended = measurement
        .measure_until_end(&waiting)
        .context("cannot wait for the command")?;
    if let Some(pipe) = marks {
        measurement.add_remaining_marks(pipe, &waiting, ended.at_ms as u64);
    }
    measurement.meter.end(ended.at_ms);
    let cost = measurement.meter.into_cost(&measurement.gpus);
    let reported = write_report(args, &cost);
    if let Some(message) = reported.as_ref().err().and_then(Failure::message) {
        print_message(&message);
    }
    // If the command failed, its exit code is returned even if writing the report also failed.
    ended.exit_like_command()?;
    reported.map_err(|_| Failure::from_printed_error(1))
}

struct Measurement {
    meter: CostMeter,
    tree: ProcessTree,
    gpus: Vec<Gpu>,
    feed: Option<Feed<RunEvent>>,
    forwarder: MarkForwarder,
}

impl Measurement {
    /// Measures until the command has ended.
    fn measure_until_end(&mut self, waiting: &Receiver<RunEvent>) -> io::Result<CommandEnd> {
        loop {
            match waiting.recv().map_err(io::Error::other)? {
                RunEvent::Ended(ended) => return ended,
                RunEvent::Mark(mark) => self.add_mark(mark),
                RunEvent::NoMoreMarks => {}
                RunEvent::Started(Ok(feed)) => self.feed = Some(feed),
                RunEvent::Started(Err(failure)) | RunEvent::Fed(Input::Failed(failure)) => {
                    self.record_missing_data(&failure);
                }
                RunEvent::Fed(input) => self.handle_input(input),
            }
        }
    }

    fn add_mark(&mut self, mark: CostMark) {
        self.forwarder.queue_mark(&mark);
        self.meter.add_mark(mark);
    }

    /// Reads the marks that are still in the pipe, up to a time limit. Without the limit, this
    /// could take forever: a process that the command started may still be running and keep the
    /// pipe open.
    fn add_remaining_marks(&mut self, pipe: MarkPipe, waiting: &Receiver<RunEvent>, ended_ms: u64) {
        drop(pipe);
        let until = Instant::now() + LAST_MARKS_TIMEOUT;
        while let Ok(happening) =
            waiting.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            match happening {
                RunEvent::Mark(CostMark { at_ms, text }) => self.add_mark(CostMark {
                    at_ms: at_ms.min(ended_ms),
                    text,
                }),
                RunEvent::NoMoreMarks => break,
                _ => {}
            }
        }
        self.forwarder.wait_for_queued_marks();
    }

    fn handle_input(&mut self, input: Input) {
        match input {
            Input::Record { text, .. } => match Record::decode(&text) {
                Ok(Record::Inventory(inventory)) => self.gpus = inventory.gpus,
                Ok(record) => {
                    self.tree.find_new_members();
                    self.tree.add_to_meter(&mut self.meter, &record);
                }
                Err(_) => {}
            },
            Input::Remark(remark) | Input::NoReadings(remark) => {
                self.meter.add_missing_data_note(&remark);
            }
            Input::ServerEnded => {
                let continued = self
                    .feed
                    .as_mut()
                    .map(|feed| feed.continue_without_server(SAMPLING_INTERVAL));
                if let Some(Err(failure)) = continued {
                    self.record_missing_data(&failure);
                }
            }
            // Missed samples need no handling, because the meter detects gaps from the samples'
            // times.
            Input::Missed(_) | Input::Failed(_) | Input::Stop => {}
        }
    }

    fn record_missing_data(&mut self, failure: &Failure) {
        self.meter
            .add_missing_data_note(&failure.describe_read_failure());
    }
}

fn write_report(args: &RunArgs, cost: &Cost) -> Result {
    let Some(path) = &args.json else {
        // A write error is ignored, because without standard error there is no other place for the
        // report.
        let _ = io::Write::write_all(
            &mut anstream::stderr(),
            format_report(cost, terminal_columns()).as_bytes(),
        );
        return Ok(());
    };
    if path.as_os_str() == "-" {
        return print_json(cost);
    }
    let mut text = serde_json::to_string(cost).map_err(io::Error::from)?;
    text.push('\n');
    safe_file::create_empty(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| {
            print_message(&format_summary(cost));
            make_write_failure(path, &error)
        })
}

fn make_write_failure(path: &Path, error: &io::Error) -> Failure {
    anyhow!(
        "cannot write the report to {}: {error}; choose another file with --json",
        path.display()
    )
    .into()
}

// The cost of a run as text.

/// The maximum displayed width of a command's name, which may be a whole script.
const MAX_COMMAND_WIDTH: usize = 60;

/// The maximum number of marks in the text. The same limit applies to errors and to conditions. The
/// JSON output contains all of them.
const MAX_REMARKS: usize = 8;

const REPORT_COLUMNS: [Column; 11] = [
    Column::new_left_aligned("GPU", 0),
    Column::new_left_aligned("Model", 6),
    Column::new_right_aligned("Held", 5),
    Column::new_right_aligned("GPU time", 0),
    Column::new_right_aligned("SM active", 1),
    Column::new_right_aligned("Tensor active", 3),
    Column::new_right_aligned("DRAM", 4),
    Column::new_right_aligned("Peak memory", 0),
    Column::new_right_aligned("Energy", 0),
    Column::new_right_aligned("PCIe RX/TX", 7).omit_if_absent(),
    Column::new_right_aligned("NVLink RX/TX", 8).omit_if_absent(),
];

fn format_report(cost: &Cost, terminal: Option<usize>) -> String {
    let rows: Vec<_> = cost.gpus.iter().map(format_gpu_cells).collect();
    let columns = Columns::new(&REPORT_COLUMNS, &rows, terminal);
    let mut text = paint(STRONG, &format!("gpumon: {}", format_summary(cost))) + "\n";
    if !rows.is_empty() {
        text += &columns.format_rows(&rows);
    }
    let limits = cost
        .gpus
        .iter()
        .map(|gpu| (format!("GPU {}", gpu.index), gpu.limits.as_ref()));
    for LimitLines { shares, advice } in describe_limits(limits) {
        for line in [Some(shares), advice].into_iter().flatten() {
            text += &(columns.wrap_sentence(0, &line) + "\n");
        }
    }
    let mut remarks: Vec<String> = Vec::new();
    for gpu in &cost.gpus {
        let conditions = gpu.conditions.iter();
        remarks.extend(conditions.map(|condition| {
            let seconds = condition.to_ms.saturating_sub(condition.from_ms) as f64 / 1e3;
            let gpu = if cost.gpus.len() > 1 {
                format!("GPU {}: ", gpu.index)
            } else {
                String::new()
            };
            format!(
                "{gpu}{} (for {})",
                condition.text.trim_end_matches('.'),
                format_elapsed(seconds)
            )
        }));
    }
    remarks.extend(
        cost.xids
            .iter()
            .map(|xid| format!("Xid {}: {}", xid.xid, xid.text)),
    );
    remarks.extend(cost.marks.iter().map(|mark| {
        let seconds = mark.at_ms.saturating_sub(cost.started_ms) as f64 / 1e3;
        format!("{} (mark, after {})", mark.text, format_elapsed(seconds))
    }));
    for remark in remarks.iter().take(MAX_REMARKS).chain(&cost.lost) {
        text += &columns.format_remark(0, DIM, &escape_untrusted(remark));
    }
    if remarks.len() > MAX_REMARKS {
        let more = remarks.len() - MAX_REMARKS;
        let remark = format!("{more} more conditions, errors and marks, shown with --json");
        text += &columns.format_remark(0, DIM, &remark);
    }
    text
}

/// Returns a one-line summary such as `python train.py: 12.4 s, GPU time 9.81 s, peak memory 61.0
/// GiB, 6.12 kJ`.
fn format_summary(cost: &Cost) -> String {
    let short = |name: &str| cut(&escape_untrusted(name), MAX_COMMAND_WIDTH);
    let name = cost
        .name
        .as_deref()
        .map_or_else(String::new, |name| format!("{}: ", short(name)));
    let mut parts = vec![format_elapsed(cost.duration_s)];
    if cost.gpus.is_empty() {
        // If readings were lost, the summary does not claim that no GPU was used.
        parts.extend(cost.lost.is_empty().then(|| "no GPU used".to_owned()));
    }
    parts.extend(
        cost.gpu_s
            .map(|seconds| format!("GPU time {}", format_elapsed(seconds))),
    );
    parts.extend(
        cost.peak_memory_bytes
            .map(|bytes| format!("peak memory {}", format_byte_size(bytes as f64))),
    );
    parts.extend(
        cost.energy_joules
            .map(|joules| format_energy(joules, cost.shared)),
    );
    format!("{name}{}", parts.join(", "))
}

fn format_gpu_cells(gpu: &GpuCost) -> [String; REPORT_COLUMNS.len()] {
    let none = || ABSENT.to_owned();
    let percent = |percent: Option<Spread>| {
        percent.map_or_else(none, |Spread { mean, peak }| {
            format!("{mean:.0} % (peak {peak:.0})")
        })
    };
    let both = |received: Option<u64>, sent: Option<u64>| {
        let size = |bytes: u64| format_byte_size(bytes as f64);
        received
            .zip(sent)
            .map_or_else(none, |(rx, tx)| format!("{} / {}", size(rx), size(tx)))
    };
    [
        gpu.index.to_string(),
        gpu.name
            .as_deref()
            .map_or_else(none, |name| escape_untrusted(Vendor::strip_vendor(name))),
        format_elapsed(gpu.held_s),
        gpu.gpu_s.map_or_else(none, format_elapsed),
        percent(gpu.sm_percent),
        percent(gpu.tensor_percent),
        percent(gpu.dram_percent),
        gpu.peak_memory_bytes
            .map_or_else(none, |bytes| format_byte_size(bytes as f64)),
        gpu.energy_joules
            .map_or_else(none, |joules| format_energy(joules, gpu.shared)),
        both(gpu.pcie_rx_bytes, gpu.pcie_tx_bytes),
        both(gpu.nvlink_rx_bytes, gpu.nvlink_tx_bytes),
    ]
}

fn format_energy(
    Joules {
        least,
        most,
        estimate,
    }: Joules,
    is_shared: bool,
) -> String {
    if !is_shared {
        return format_joules_with_cost(estimate);
    }
    let cost = format_cost(estimate).map_or_else(String::new, |cost| format!(", {cost}"));
    let [estimate, least, most] = [estimate, least, most].map(format_joules);
    format!("~{estimate} ({least} to {most}, shared{cost})")
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{CostCondition, CostXid, LimitClass, LimitEvidence, LimitSummary};

    use super::*;
    use crate::terminal::snapshot::assert_report_matches_snapshot;

    fn make_cost() -> Cost {
        let exact = Joules {
            least: 6120.0,
            most: 6120.0,
            estimate: 6120.0,
        };
        let shares = [(LimitClass::Tensor, 30.2), (LimitClass::Host, 61.8)];
        let limits = LimitSummary::new(10_000, shares, |_| LimitEvidence {
            cpu_percent: Some(100.0),
            ..LimitEvidence::default()
        });
        let gpu = GpuCost {
            index: 3,
            name: Some("NVIDIA H200".to_owned()),
            held_s: 12.1,
            gpu_s: Some(9.81),
            sm_percent: Some(Spread {
                mean: 81.2,
                peak: 99.0,
            }),
            peak_memory_bytes: Some(61 << 30),
            energy_joules: Some(exact),
            pcie_rx_bytes: Some(1 << 30),
            pcie_tx_bytes: Some(1 << 20),
            limits,
            conditions: vec![CostCondition {
                kind: "throttled".to_owned(),
                text: "power-capped at 700 W\x1b[2J".to_owned(),
                from_ms: 0,
                to_ms: 3200,
            }],
            ..GpuCost::default()
        };
        Cost {
            name: Some("python train.py".to_owned()),
            duration_s: 12.4,
            gpu_s: Some(9.81),
            peak_memory_bytes: Some(61 << 30),
            energy_joules: Some(exact),
            gpus: vec![gpu],
            xids: vec![CostXid {
                at_ms: 1,
                gpu: Some(3),
                xid: 31,
                text: "MMU fault.".to_owned(),
            }],
            lost: vec!["the server has ended".to_owned()],
            ..Cost::default()
        }
    }

    #[test]
    fn run_report_has_total_and_each_gpu() {
        assert_report_matches_snapshot("run", |terminal| format_report(&make_cost(), terminal));
    }

    #[test]
    fn run_report_marks_shared_energy_and_missing_readings() {
        let range = Joules {
            least: 0.0,
            most: 900.0,
            estimate: 450.0,
        };
        let shared = Cost {
            energy_joules: Some(range),
            shared: true,
            ..make_cost()
        };
        assert!(
            format_summary(&shared).ends_with("~450 J (0.00 J to 900 J, shared)"),
            "{}",
            format_summary(&shared)
        );
        let none = Cost {
            name: None,
            duration_s: 0.25,
            ..Cost::default()
        };
        assert_eq!(format_summary(&none), "250 ms, no GPU used");
        let unseen = Cost {
            lost: vec!["no driver".to_owned()],
            ..none
        };
        assert_eq!(format_summary(&unseen), "250 ms");
    }
}
