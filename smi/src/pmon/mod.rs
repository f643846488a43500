//! The `pmon` subcommand, which prints a row for each process on each GPU in each round.

use std::{collections::BTreeMap, io::Write};

use gpumon_probe::vendor::nvml::query::{Query, QueryBackend, SystemQuery};

use crate::{
    Context,
    formats::BYTES_PER_MIB,
    monitor::{self, TimestampColumns},
    running_processes::{COMPUTE, GRAPHICS, MPS_CLIENT, read_running_processes},
    subcommand::{AllowedValues, SubcommandError, SubcommandSyntax},
};

/// The letters of all column groups.
const COLUMN_GROUPS: &str = "um";

pub(super) static SYNTAX: SubcommandSyntax = SubcommandSyntax {
    name: "pmon",
    about: include_str!("about.txt"),
    usage: include_str!("usage.txt"),
    takes: &["-i", "-d", "-c"],
    values: &[
        ("-s", AllowedValues::Letters(COLUMN_GROUPS)),
        ("-o", AllowedValues::Letters(monitor::TIMESTAMP_LETTERS)),
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
    let groups = monitor::parse_groups(switches.value("-s").unwrap_or("u"), COLUMN_GROUPS)?;
    let rounds = monitor::parse_rounds(&switches, driver, LIMITS, SYNTAX.usage)?;
    let columns: Vec<&Column> = groups
        .iter()
        .flat_map(|group| find_columns(*group))
        .collect();
    let wants = RequestedReadings {
        utilization: groups.contains(&'u'),
        protected: groups.contains(&'m'),
    };
    let mut newest_samples = vec![0; rounds.gpus.len()];
    let heading = format_heading(rounds.timestamp, &columns);
    rounds.write_rounds(driver, output, heading, |context| {
        let read = |gpu, since| read_processes(context, gpu, wants, since);
        let processes = monitor::read_each_gpu(context, &mut newest_samples, read);
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
        monitor::format_columns(front),
        cells.concat()
    )
}

// A GPU's processes, and the resources that each process uses.

const COMMAND_WIDTH: usize = 15;

#[derive(Debug, Clone, Copy)]
struct RequestedReadings {
    utilization: bool,
    protected: bool,
}

#[derive(Debug)]
struct Process {
    pid: u32,
    kind: &'static str,
    /// The process's shares of the engines, or `None` if the driver has no new sample.
    shares: Option<EngineShares>,
    /// The process's memory in MiB, or `None` if the driver does not report it.
    memory_mib: Option<i128>,
    protected_mib: Option<i128>,
    command: String,
}

/// The shares of SM, memory, encoder, decoder, JPEG decoder, and OFA in percent. -1 means that the
/// driver does not measure the engine.
type EngineShares = [i128; 6];

/// Returns a GPU's processes, sorted by PID, and the timestamp of the newest sample. Only samples
/// after the timestamp `since` are requested.
fn read_processes(
    context: &Context<'_>,
    gpu: u32,
    wants: RequestedReadings,
    since: u64,
) -> (Vec<Process>, u64) {
    let mut found: BTreeMap<u32, (i128, i128)> = BTreeMap::new();
    let running = read_running_processes(|query| context.run_query(gpu, query)).unwrap_or_default();
    for [_, _, pid, kinds, bytes] in running {
        let entry = found.entry(pid as u32).or_insert((0, bytes));
        *entry = (entry.0 | kinds, entry.1.max(bytes));
    }
    if found.is_empty() {
        return (Vec::new(), since);
    }
    let (shares, newest) = if wants.utilization {
        read_utilization(context, gpu, since)
    } else {
        (BTreeMap::new(), since)
    };
    let protected_mib = if wants.protected {
        read_protected_memory(context, gpu)
    } else {
        None
    };
    let processes = found
        .into_iter()
        .map(|(pid, (kinds, bytes))| Process {
            pid,
            kind: find_type_letters(kinds),
            shares: shares.get(&pid).map(|(_, shares)| *shares),
            memory_mib: (bytes >= 0).then_some(bytes / BYTES_PER_MIB),
            protected_mib,
            command: read_command(context, pid),
        })
        .collect();
    (processes, newest)
}

/// Returns nvidia-smi's letters for the kinds of work that a process does: `C` for compute, `G` for
/// graphics, `M` for MPS clients, `C+G` and `M+C` for both.
fn find_type_letters(kinds: i128) -> &'static str {
    match (
        kinds & MPS_CLIENT != 0,
        kinds & COMPUTE != 0,
        kinds & GRAPHICS != 0,
    ) {
        (true, true, _) => "M+C",
        (true, false, _) => "M",
        (false, true, true) => "C+G",
        (false, false, true) => "G",
        _ => "C",
    }
}

/// Returns each process's newest sample with its timestamp, and the newest timestamp of all
/// samples.
fn read_utilization(
    context: &Context<'_>,
    gpu: u32,
    since: u64,
) -> (BTreeMap<u32, (i128, EngineShares)>, u64) {
    let mut newest_of: BTreeMap<u32, (i128, EngineShares)> = BTreeMap::new();
    let mut newest = since;
    if let Ok(answer) = context.run_query(gpu, Query::ProcessUtilization(since)) {
        for [at, pid, shares @ ..] in answer.numbers().as_chunks::<8>().0 {
            newest = newest.max(*at as u64);
            let entry = newest_of.entry(*pid as u32).or_insert((*at, *shares));
            if entry.0 < *at {
                *entry = (*at, *shares);
            }
        }
    }
    (newest_of, newest)
}

/// Returns 0 if no protected memory of the GPU is in use, because then no process uses any.
/// Otherwise, returns `None`, because the driver does not report protected memory per process.
fn read_protected_memory(context: &Context<'_>, gpu: u32) -> Option<i128> {
    let used = context
        .run_query(gpu, Query::ProtectedMemory)
        .ok()?
        .number_at(2)?;
    (used == 0).then_some(0)
}

/// Returns the file name of a process's program, truncated to the column's width.
fn read_command(context: &Context<'_>, pid: u32) -> String {
    let Ok(answer) = context.run_system_query(SystemQuery::ProcessName(pid)) else {
        return "-".to_owned();
    };
    let line = answer.text().unwrap_or("");
    let program = line.split([' ', '\0']).next().unwrap_or("");
    let directory = program.rfind('/').map_or(0, |slash| slash + 1);
    line[directory..]
        .chars()
        .take_while(|character| *character != '\0')
        .map(|character| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        })
        .take(COMMAND_WIDTH)
        .collect()
}

#[cfg(test)]
mod tests;
