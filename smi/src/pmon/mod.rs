//! `pmon`: a row per process, GPU and round.

mod help;
mod processes;

use std::{io::Write, sync::Mutex};

use gpumon_probe::vendor::nvml::query::QueryBackend;

use self::processes::Process;
use super::{
    Context,
    form::Form,
    monitor,
    subcommand::Stop,
    switches::Values,
    timestamp::{self, TimestampColumns},
};

/// The letters of all groups.
const GROUPS: &str = "um";

pub(super) static FORM: Form = Form {
    name: "pmon",
    about: help::ABOUT,
    usage: help::USAGE,
    takes: &["-i", "-d", "-c"],
    values: &[
        ("-s", Values::Letters(GROUPS)),
        ("-o", Values::Letters(timestamp::LETTERS)),
        ("-f", Values::File),
    ],
    ..Form::EMPTY
};

/// The most GPUs, and the most seconds between two rounds.
const MOST: (usize, u64) = (4, 10);

pub(super) fn run(
    arguments: &[String],
    driver: &dyn QueryBackend,
    output: &mut dyn Write,
) -> Result<u8, Stop> {
    let switches = FORM.parse(arguments)?;
    let groups = monitor::groups(switches.value("-s").unwrap_or("u"), GROUPS)?;
    let rounds = monitor::rounds(&switches, driver, MOST, help::USAGE)?;
    let columns: Vec<&Column> = groups.iter().flat_map(|group| of(*group)).collect();
    let wants = processes::Wants {
        utilization: groups.contains(&'u'),
        protected: groups.contains(&'m'),
    };
    let seen = Mutex::new(vec![0; rounds.gpus.len()]);
    rounds.scroll(
        driver,
        output,
        heading(rounds.timestamp, &columns),
        |context| rows(context, rounds.timestamp, &columns, wants, &seen),
    )
}

/// A column of a process: its heading, and what stands in it; `None` where that is not to be had.
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
    column("sm", "%", |process| process.used.map(|used| used.sm)),
    column("mem", "%", |process| process.used.map(|used| used.memory)),
    // An engine that a process leaves alone is one that it has no share in.
    column("enc", "%", |process| {
        process
            .used
            .map(|used| used.encoder)
            .filter(|share| *share > 0)
    }),
    column("dec", "%", |process| {
        process
            .used
            .map(|used| used.decoder)
            .filter(|share| *share > 0)
    }),
    column("jpg", "%", |process| {
        process
            .used
            .map(|used| used.jpeg)
            .filter(|share| *share > 0)
    }),
    column("ofa", "%", |process| {
        process.used.map(|used| used.ofa).filter(|share| *share > 0)
    }),
];

static MEMORY: [Column; 2] = [
    column("fb", "MB", |process| process.memory_mib),
    column("ccpm", "MB", |process| process.protected_mib),
];

fn of(group: char) -> &'static [Column] {
    if group == 'u' { &UTILIZATION } else { &MEMORY }
}

fn heading(timestamp: TimestampColumns, columns: &[&Column]) -> String {
    let names: Vec<_> = columns
        .iter()
        .map(|column| column.name.to_owned())
        .collect();
    let units: Vec<_> = columns
        .iter()
        .map(|column| column.unit.to_owned())
        .collect();
    format!(
        "{}command \n{}name \n",
        line('#', &timestamp.names(), HEADING, "pid", "type", &names),
        line('#', &timestamp.units(), HEADING, "#", "C/G", &units),
    )
}

/// The rows of a round; until when each GPU's samples have been seen is kept for the next.
fn rows(
    context: &Context<'_>,
    timestamp: TimestampColumns,
    columns: &[&Column],
    wants: processes::Wants,
    seen: &Mutex<Vec<u64>>,
) -> Vec<String> {
    let since = seen
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .clone();
    let read = context.each(|gpu| {
        let place = context.gpus.iter().position(|selected| *selected == gpu);
        processes::of(context, gpu, wants, place.map_or(0, |place| since[place]))
    });
    let mut rows = Vec::new();
    for (place, ((processes, newest), gpu)) in read.into_iter().zip(context.gpus).enumerate() {
        seen.lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)[place] = newest;
        let front = timestamp.words(&context.now, *gpu);
        if processes.is_empty() {
            let none = vec!["-".to_owned(); columns.len()];
            rows.push(line(' ', &front, ROW, "-", "-", &none) + &command("-"));
        }
        for process in &processes {
            let cells: Vec<_> = columns
                .iter()
                .map(|column| {
                    (column.read)(process)
                        .map_or_else(|| "-".to_owned(), |number| number.to_string())
                })
                .collect();
            let pid = process.pid.to_string();
            rows.push(
                line(' ', &front, ROW, &pid, process.kind, &cells) + &command(&process.command),
            );
        }
    }
    rows
}

fn command(name: &str) -> String {
    format!("{name:<15}")
}

/// How wide PID and type are: a heading's columns are wider than those below it.
#[derive(Clone, Copy)]
struct Widths {
    pid: usize,
    kind: usize,
}

const HEADING: Widths = Widths { pid: 11, kind: 6 };
const ROW: Widths = Widths { pid: 10, kind: 5 };

/// A line without its command.
fn line<T: AsRef<str>>(
    first: char,
    front: &[T],
    widths: Widths,
    pid: &str,
    kind: &str,
    cells: &[String],
) -> String {
    let cells = cells
        .iter()
        .map(|cell| format!(" {cell:>6}"))
        .collect::<Vec<_>>()
        .concat();
    let Widths {
        pid: pid_width,
        kind: kind_width,
    } = widths;
    format!(
        "{first}{} {pid:>pid_width$} {kind:>kind_width$}{cells}    ",
        timestamp::columns(front)
    )
}

#[cfg(test)]
mod tests;
