//! The `dmon` subcommand, which prints a row for each GPU in each round, in columns or as CSV.

mod columns;

use std::io::Write;

use gpumon_probe::vendor::nvml::query::{Query, QueryBackend, Subject};

use self::columns::{Column, ColumnReader, MetricLevels, Violations};
use crate::{
    Context, Refusal,
    monitor::{self, TimestampColumns},
    release::Release,
    subcommand::{AllowedValues, SubcommandError, SubcommandSyntax, Switches},
};

pub(super) static SYNTAX: SubcommandSyntax = SubcommandSyntax {
    name: "dmon",
    about: include_str!("about.txt"),
    usage: include_str!("usage.txt"),
    takes: &["-i", "-d", "-c"],
    values: &[
        ("-s", AllowedValues::Letters(columns::COLUMN_GROUPS)),
        (
            "--gpm-metrics",
            AllowedValues::Commas(columns::list_metrics),
        ),
        ("--gpm-options", AllowedValues::One(MetricLevels::WORDS)),
        ("-o", AllowedValues::Letters(monitor::TIMESTAMP_LETTERS)),
        ("-f", AllowedValues::File),
        ("--format", AllowedValues::Commas(list_format_words)),
    ],
    ..SubcommandSyntax::EMPTY
};

/// The maximum number of GPUs, and the maximum interval between two rounds in seconds.
const LIMITS: (usize, u64) = (16, 600);

pub(super) fn run(
    arguments: &[String],
    driver: &dyn QueryBackend,
    output: &mut dyn Write,
) -> Result<u8, SubcommandError> {
    let switches = SYNTAX.parse(arguments)?;
    if switches
        .value("-s")
        .is_some_and(|letters| letters.contains('n'))
        && Release::from_driver(driver) >= Release(610, 0)
    {
        return Err(Refusal::new_nvidia_only("dmon -s n").into());
    }
    let shown = Selection::parse(&switches)?;
    let rounds = monitor::parse_rounds(&switches, driver, LIMITS, SYNTAX.usage)?;
    let heading = shown.layout.format_heading(
        rounds.timestamp,
        &shown.columns,
        &shown.metrics,
        shown.levels,
    );
    let mut before = vec![None; rounds.gpus.len()];
    rounds.write_rounds(driver, output, heading, |context| {
        shown.read_rows(context, rounds.timestamp, &mut before)
    })
}

/// The columns, metrics, and layout that the switches select.
struct Selection {
    columns: Vec<&'static Column>,
    /// Whether any column needs the violation counters.
    violations: bool,
    metrics: Vec<u32>,
    levels: MetricLevels,
    layout: Layout,
}

impl Selection {
    fn parse(switches: &Switches<'_>) -> Result<Self, Refusal> {
        let groups = monitor::parse_groups(
            switches.value("-s").unwrap_or("puc"),
            columns::COLUMN_GROUPS,
        )?;
        let metrics = switches
            .value("--gpm-metrics")
            .map(columns::parse_metrics)
            .transpose()?
            .unwrap_or_default();
        let levels = match switches.value("--gpm-options") {
            Some(text) => MetricLevels::parse(text).ok_or_else(|| Refusal::new(0, SYNTAX.usage))?,
            None => MetricLevels::default(),
        };
        let layout = Layout::parse(switches.value("--format").unwrap_or(""))?;
        // Without metrics, the levels have no effect. With metrics, the columns of the whole GPU
        // are hidden if only the MIG level is selected.
        let levels = if metrics.is_empty() {
            MetricLevels::default()
        } else {
            levels
        };
        let groups = if levels.gpu { groups } else { Vec::new() };
        let columns = groups
            .iter()
            .flat_map(|group| columns::find_columns(*group))
            .collect();
        Ok(Self {
            columns,
            violations: groups.contains(&'v'),
            metrics,
            levels,
            layout,
        })
    }

    /// Returns a round's rows. `before` contains each GPU's counters from the previous round, and
    /// is updated with this round's counters.
    fn read_rows(
        &self,
        context: &Context<'_>,
        timestamp: TimestampColumns,
        before: &mut Vec<Option<Violations>>,
    ) -> Vec<String> {
        let read = monitor::read_each_gpu(context, before, |gpu, before| {
            let violations = self.violations.then(|| Violations::read(context, gpu));
            let reader = ColumnReader {
                context,
                gpu,
                violations,
                before,
            };
            (self.read_cells(&reader), violations)
        });
        let mut rows = Vec::new();
        for (cells, gpu) in read.iter().zip(context.gpus) {
            let timestamp = timestamp.format_words(&context.now, *gpu);
            let row = |cells| {
                self.layout
                    .format_row(&timestamp, cells, &self.metrics, self.levels)
            };
            rows.extend(cells.iter().map(row));
        }
        rows
    }

    /// Returns the cells for all of a GPU's rows: one row for the GPU itself, and one for each MIG
    /// device.
    fn read_cells(&self, reader: &ColumnReader<'_>) -> Vec<RowCells> {
        let (context, gpu) = (reader.context, reader.gpu);
        let devices = if self.levels.mig {
            context
                .run_query(gpu, Query::MigDevices)
                .map_or_else(|_| Vec::new(), |answer| answer.numbers().to_vec())
        } else {
            Vec::new()
        };
        let own = || RowCells {
            columns: self
                .columns
                .iter()
                .map(|column| (column.read)(reader))
                .collect(),
            instance: [None; 3],
            metrics: if self.levels.gpu {
                columns::read_metrics(context.driver, Subject::from_gpu(gpu), &self.metrics)
            } else {
                vec![None; self.metrics.len()]
            },
        };
        let mut rows = Vec::new();
        if self.levels.gpu || devices.is_empty() {
            rows.push(own());
        }
        rows.extend(devices.iter().map(|device| {
            let subject = Subject::from_mig(gpu, *device as u32);
            let ids = context
                .driver
                .answer_query(subject, Query::MigInstance)
                .ok();
            RowCells {
                columns: vec![None; self.columns.len()],
                instance: [
                    Some(*device),
                    ids.as_ref().and_then(|ids| ids.number_at(0)),
                    ids.and_then(|ids| ids.number_at(1)),
                ],
                metrics: columns::read_metrics(context.driver, subject, &self.metrics),
            }
        }));
        rows
    }
}

// The layout of heading lines and rows.

/// The layout that `--format` selects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Layout {
    csv: bool,
    no_units: bool,
    no_names: bool,
}

/// The numbers in a row. `None` stands for an unavailable number.
struct RowCells {
    columns: Vec<Option<i128>>,
    /// The indices of the MIG device, GPU instance, and compute instance.
    instance: [Option<i128>; 3],
    metrics: Vec<Option<i128>>,
}

/// The width of a GPU reading's column. The constant below is the width of a column with a MIG
/// device's ID.
const READING_WIDTH: usize = 6;
const INSTANCE_WIDTH: usize = 10;

/// The text of a cell, its width, and the gap after it.
struct Cell {
    text: String,
    width: usize,
    gap: &'static str,
}

impl Cell {
    fn new(text: impl Into<String>, width: usize) -> Self {
        Self {
            text: text.into(),
            width,
            gap: " ",
        }
    }
}

/// A function that changes the layout according to a word in `--format`.
type ApplyWord = fn(&mut Layout);

/// The words that `--format` accepts, and their effects.
const FORMAT_WORDS: [(&str, ApplyWord); 3] = [
    ("csv", |layout| layout.csv = true),
    ("nounit", |layout| layout.no_units = true),
    ("noheader", |layout| layout.no_names = true),
];

/// Returns the words that `--format` accepts.
fn list_format_words() -> Vec<String> {
    FORMAT_WORDS
        .iter()
        .map(|(word, _)| (*word).to_owned())
        .collect()
}

impl Layout {
    /// Parses the comma-separated words given with `--format`.
    fn parse(text: &str) -> Result<Self, Refusal> {
        let mut layout = Self::default();
        for typed in text.split(',').filter(|word| !word.is_empty()) {
            let (_, set) = FORMAT_WORDS
                .iter()
                .find(|(word, _)| *word == typed)
                .ok_or_else(|| {
                    monitor::make_value_refusal(&format!(
                        "{typed} is not a recognized format option\nError parsing format options\n"
                    ))
                })?;
            set(&mut layout);
        }
        Ok(layout)
    }

    /// Returns the two heading lines, which contain names and units.
    fn format_heading(
        self,
        timestamp: TimestampColumns,
        columns: &[&'static Column],
        metrics: &[u32],
        levels: MetricLevels,
    ) -> String {
        let ids = ["mig_id", "gi_id", "ci_id"];
        let ids = ids.iter().filter(|_| levels.mig);
        let metrics: Vec<_> = metrics
            .iter()
            .map(|metric| columns::describe_metric_column(*metric))
            .collect();
        let names = columns
            .iter()
            .map(|column| Cell::new(column.name, READING_WIDTH))
            .chain(ids.clone().map(|id| Cell::new(*id, INSTANCE_WIDTH)))
            .chain(
                metrics
                    .iter()
                    .map(|(name, _, width)| Cell::new(name, *width)),
            );
        let units = columns
            .iter()
            .map(|column| Cell::new(column.unit, READING_WIDTH))
            .chain(ids.map(|_| Cell::new("Idx", INSTANCE_WIDTH)))
            .chain(
                metrics
                    .iter()
                    .map(|(_, unit, width)| Cell::new(*unit, *width)),
            );
        let line = |front: &[&str], cells: Vec<Cell>| self.format_line('#', front, &cells) + "\n";
        let mut heading = String::new();
        if !self.no_names {
            heading += &line(&timestamp.names(), names.collect());
        }
        if !self.no_units {
            heading += &line(&timestamp.units(), units.collect());
        }
        heading
    }

    fn format_row(
        self,
        timestamp: &[String],
        cells: &RowCells,
        metrics: &[u32],
        levels: MetricLevels,
    ) -> String {
        let word = |number: &Option<i128>| monitor::format_cell(*number);
        let own = cells
            .columns
            .iter()
            .map(|number| Cell::new(word(number), READING_WIDTH));
        let ids = cells
            .instance
            .iter()
            .filter(|_| levels.mig)
            .map(|number| Cell::new(word(number), INSTANCE_WIDTH));
        let metrics = cells.metrics.iter().zip(metrics).map(|(number, metric)| {
            let cell = Cell::new(word(number), columns::describe_metric_column(*metric).2);
            if number.is_some() && columns::counts_elapsed_cycles(*metric) {
                Cell { gap: "", ..cell }
            } else {
                cell
            }
        });
        self.format_line(
            ' ',
            timestamp,
            &own.chain(ids).chain(metrics).collect::<Vec<_>>(),
        )
    }

    /// Returns a line that consists of the first character, the leading words, and the cells.
    fn format_line<T: AsRef<str>>(self, first: char, front: &[T], cells: &[Cell]) -> String {
        if self.csv {
            let words = front
                .iter()
                .map(AsRef::as_ref)
                .chain(cells.iter().map(|cell| cell.text.as_str()));
            return format!("{first}{}", words.collect::<Vec<_>>().join(", "));
        }
        let cells: Vec<String> = cells
            .iter()
            .map(|Cell { text, width, gap }| format!("{text:>width$}{gap}"))
            .collect();
        format!(
            "{first}{} {}",
            monitor::format_columns(front),
            cells.concat()
        )
    }
}

#[cfg(test)]
mod tests;
