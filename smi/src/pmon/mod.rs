//! The `pmon` subcommand, which prints a row for each process and GPU in each round.

mod processes;

use std::io::Write;

use gpumon_probe::vendor::nvml::query::QueryBackend;

use self::processes::Process;
use super::{
    form::Form,
    monitor,
    subcommand::Stop,
    switches::Values,
    timestamp::{self, TimestampColumns},
};

/// The letters of all groups of columns.
const GROUPS: &str = "um";

pub(super) static FORM: Form = Form {
    name: "pmon",
    about: include_str!("about.txt"),
    usage: include_str!("usage.txt"),
    takes: &["-i", "-d", "-c"],
    values: &[
        ("-s", Values::Letters(GROUPS)),
        ("-o", Values::Letters(timestamp::LETTERS)),
        ("-f", Values::File),
    ],
    ..Form::EMPTY
};

/// The maximum number of GPUs, and the maximum number of seconds between two rounds.
const MOST: (usize, u64) = (4, 10);

pub(super) fn run(
    arguments: &[String],
    driver: &dyn QueryBackend,
    output: &mut dyn Write,
) -> Result<u8, Stop> {
    let switches = FORM.parse(arguments)?;
    let groups = monitor::groups(switches.value("-s").unwrap_or("u"), GROUPS)?;
    let rounds = monitor::rounds(&switches, driver, MOST, FORM.usage)?;
    let columns: Vec<&Column> = groups.iter().flat_map(|group| of(*group)).collect();
    let wants = processes::Wants {
        utilization: groups.contains(&'u'),
        protected: groups.contains(&'m'),
    };
    let mut seen = vec![0; rounds.gpus.len()];
    let heading = heading(rounds.timestamp, &columns);
    rounds.scroll(driver, output, heading, |context| {
        let read = |gpu, since| processes::of(context, gpu, wants, since);
        let processes = monitor::read_each(context, &mut seen, read);
        let rows = processes.iter().zip(context.gpus).map(|(processes, gpu)| {
            let front = rounds.timestamp.words(&context.now, *gpu);
            rows(processes, &front, &columns)
        });
        rows.flatten().collect()
    })
}

/// A column about a process: its heading, and the function that reads its value, `None` if
/// unavailable.
struct Column {
    name: &'static str,
    unit: &'static str,
    read: fn(&Process) -> Option<i128>,
}

const fn column(
    name: &'static str,
    unit: &'static str,
    read: fn(&Process) -> Option<i128>,
) -> Column {
    Column { name, unit, read }
}

static UTILIZATION: [Column; 6] = [
    column("sm", "%", |process| share_of(process, 0)),
    column("mem", "%", |process| share_of(process, 1)),
    column("enc", "%", |process| share_of_engine(process, 2)),
    column("dec", "%", |process| share_of_engine(process, 3)),
    column("jpg", "%", |process| share_of_engine(process, 4)),
    column("ofa", "%", |process| share_of_engine(process, 5)),
];

static MEMORY: [Column; 2] = [
    column("fb", "MB", |process| process.memory_mib),
    column("ccpm", "MB", |process| process.protected_mib),
];

fn share_of(process: &Process, place: usize) -> Option<i128> {
    process.shares.map(|shares| shares[place])
}

/// Returns a process's share of an engine, or `None` if the process does not use the engine.
fn share_of_engine(process: &Process, place: usize) -> Option<i128> {
    share_of(process, place).filter(|share| *share > 0)
}

fn of(group: char) -> &'static [Column] {
    if group == 'u' { &UTILIZATION } else { &MEMORY }
}

fn heading(timestamp: TimestampColumns, columns: &[&Column]) -> String {
    let names = columns.iter().map(|column| column.name);
    let units = columns.iter().map(|column| column.unit);
    format!(
        "{}command \n{}name \n",
        line('#', &timestamp.names(), HEADING, "pid", "type", names),
        line('#', &timestamp.units(), HEADING, "#", "C/G", units),
    )
}

/// Returns the rows of a GPU, one for each process.
fn rows(processes: &[Process], front: &[String], columns: &[&Column]) -> Vec<String> {
    let row = |pid: &str, kind: &str, cells: Vec<String>, command: &str| {
        let line = line(' ', front, ROW, pid, kind, cells.iter().map(String::as_str));
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

/// The widths of the PID and type columns, which are wider in the heading than in the rows.
type Widths = (usize, usize);

const HEADING: Widths = (11, 6);
const ROW: Widths = (10, 5);

/// Formats a line without the command at its end.
fn line<'a, T: AsRef<str>>(
    first: char,
    front: &[T],
    (pid_width, kind_width): Widths,
    pid: &str,
    kind: &str,
    cells: impl Iterator<Item = &'a str>,
) -> String {
    let cells: Vec<_> = cells.map(|cell| format!(" {cell:>6}")).collect();
    format!(
        "{first}{} {pid:>pid_width$} {kind:>kind_width$}{}    ",
        timestamp::columns(front),
        cells.concat()
    )
}

#[cfg(test)]
mod tests;
