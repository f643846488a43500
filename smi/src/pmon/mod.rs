//! The `pmon` subcommand, which prints a row for each process on each GPU in each round.

mod processes;

use std::io::Write;

use gpumon_probe::vendor::nvml::query::QueryBackend;

use self::processes::Process;
use super::{
    form::SubcommandSyntax,
    monitor,
    subcommand::SubcommandError,
    switches::AllowedValues,
    timestamp::{self, TimestampColumns},
};

/// The letters of all column groups.
const GROUPS: &str = "um";

pub(super) static SYNTAX: SubcommandSyntax = SubcommandSyntax {
    name: "pmon",
    about: include_str!("about.txt"),
    usage: include_str!("usage.txt"),
    takes: &["-i", "-d", "-c"],
    values: &[
        ("-s", AllowedValues::Letters(GROUPS)),
        ("-o", AllowedValues::Letters(timestamp::LETTERS)),
        ("-f", AllowedValues::File),
    ],
    ..SubcommandSyntax::EMPTY
};

/// The maximum number of GPUs, and the maximum interval between two rounds in seconds.
const LIMITS: (usize, u64) = (4, 10);

pub(super) fn run(
    arguments: &[String],
    driver: &dyn QueryBackend,
    output: &mut dyn Write,
) -> Result<u8, SubcommandError> {
    let switches = SYNTAX.parse(arguments)?;
    let groups = monitor::parse_groups(switches.value("-s").unwrap_or("u"), GROUPS)?;
    let rounds = monitor::parse_rounds(&switches, driver, LIMITS, SYNTAX.usage)?;
    let columns: Vec<&Column> = groups
        .iter()
        .flat_map(|group| find_columns(*group))
        .collect();
    let wants = processes::RequestedReadings {
        utilization: groups.contains(&'u'),
        protected: groups.contains(&'m'),
    };
    let mut seen = vec![0; rounds.gpus.len()];
    let heading = format_heading(rounds.timestamp, &columns);
    rounds.write_rounds(driver, output, heading, |context| {
        let read = |gpu, since| processes::read_processes(context, gpu, wants, since);
        let processes = monitor::read_each_gpu(context, &mut seen, read);
        let rows = processes.iter().zip(context.gpus).map(|(processes, gpu)| {
            let front = rounds.timestamp.format_words(&context.now, *gpu);
            format_rows(processes, &front, &columns)
        });
        rows.flatten().collect()
    })
}

/// A column for processes: its heading, and a function that returns the value, or `None` if the
/// value is unavailable.
struct Column {
    name: &'static str,
    unit: &'static str,
    read: fn(&Process) -> Option<i128>,
}

const fn new_column(
    name: &'static str,
    unit: &'static str,
    read: fn(&Process) -> Option<i128>,
) -> Column {
    Column { name, unit, read }
}

static UTILIZATION: [Column; 6] = [
    new_column("sm", "%", |process| find_share(process, 0)),
    new_column("mem", "%", |process| find_share(process, 1)),
    new_column("enc", "%", |process| find_engine_share(process, 2)),
    new_column("dec", "%", |process| find_engine_share(process, 3)),
    new_column("jpg", "%", |process| find_engine_share(process, 4)),
    new_column("ofa", "%", |process| find_engine_share(process, 5)),
];

static MEMORY: [Column; 2] = [
    new_column("fb", "MB", |process| process.memory_mib),
    new_column("ccpm", "MB", |process| process.protected_mib),
];

fn find_share(process: &Process, place: usize) -> Option<i128> {
    process.shares.map(|shares| shares[place])
}

/// Returns the share of an engine that a process uses, or `None` if the process does not use the
/// engine.
fn find_engine_share(process: &Process, place: usize) -> Option<i128> {
    find_share(process, place).filter(|share| *share > 0)
}

fn find_columns(group: char) -> &'static [Column] {
    if group == 'u' { &UTILIZATION } else { &MEMORY }
}

fn format_heading(timestamp: TimestampColumns, columns: &[&Column]) -> String {
    let names = columns.iter().map(|column| column.name);
    let units = columns.iter().map(|column| column.unit);
    format!(
        "{}command \n{}name \n",
        format_line(
            '#',
            &timestamp.names(),
            HEADING_WIDTHS,
            "pid",
            "type",
            names
        ),
        format_line('#', &timestamp.units(), HEADING_WIDTHS, "#", "C/G", units),
    )
}

/// Returns a GPU's rows, one for each process.
fn format_rows(processes: &[Process], front: &[String], columns: &[&Column]) -> Vec<String> {
    let row = |pid: &str, kind: &str, cells: Vec<String>, command: &str| {
        let line = format_line(
            ' ',
            front,
            ROW_WIDTHS,
            pid,
            kind,
            cells.iter().map(String::as_str),
        );
        format!("{line}{command:<15}")
    };
    if processes.is_empty() {
        return vec![row("-", "-", vec!["-".to_owned(); columns.len()], "-")];
    }
    let of_process = |process: &Process| {
        let cells = columns.iter().map(|column| (column.read)(process));
        let cells = cells.map(monitor::format_cell).collect();
        row(
            &process.pid.to_string(),
            process.kind,
            cells,
            &process.command,
        )
    };
    processes.iter().map(of_process).collect()
}

/// The widths of the PID and type columns. In the heading, these columns are wider than in the
/// rows.
type ColumnWidths = (usize, usize);

const HEADING_WIDTHS: ColumnWidths = (11, 6);
const ROW_WIDTHS: ColumnWidths = (10, 5);

/// Formats a line, except for the command at its end.
fn format_line<'a, T: AsRef<str>>(
    first: char,
    front: &[T],
    (pid_width, kind_width): ColumnWidths,
    pid: &str,
    kind: &str,
    cells: impl Iterator<Item = &'a str>,
) -> String {
    let cells: Vec<_> = cells.map(|cell| format!(" {cell:>6}")).collect();
    format!(
        "{first}{} {pid:>pid_width$} {kind:>kind_width$}{}    ",
        timestamp::format_columns(front),
        cells.concat()
    )
}

#[cfg(test)]
mod tests;
