//! The `dmon` subcommand, which prints a row for each GPU in each round.

mod columns;
mod gpm;
mod layout;
mod violations;

use std::io::Write;

use gpumon_probe::vendor::nvml::query::{Query, QueryBackend, Subject};

use self::{columns::Column, gpm::Levels, layout::Layout, violations::Violations};
use super::{
    Context, Refusal,
    form::SubcommandSyntax,
    monitor,
    release::Release,
    subcommand::SubcommandError,
    switches::{AllowedValues, Switches},
    timestamp::{self, TimestampColumns},
};

pub(super) static SYNTAX: SubcommandSyntax = SubcommandSyntax {
    name: "dmon",
    about: include_str!("about.txt"),
    usage: include_str!("usage.txt"),
    takes: &["-i", "-d", "-c"],
    values: &[
        ("-s", AllowedValues::Letters(columns::GROUPS)),
        ("--gpm-metrics", AllowedValues::Commas(gpm::list_metrics)),
        ("--gpm-options", AllowedValues::One(Levels::WORDS)),
        ("-o", AllowedValues::Letters(timestamp::LETTERS)),
        ("-f", AllowedValues::File),
        ("--format", AllowedValues::Commas(layout::list_format_words)),
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
        return Err(Refusal::new_handed_over("dmon -s n").into());
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

struct Selection {
    columns: Vec<&'static Column>,
    /// Whether any column needs the violation counters.
    violations: bool,
    metrics: Vec<u32>,
    levels: Levels,
    layout: Layout,
}

impl Selection {
    fn parse(switches: &Switches<'_>) -> Result<Self, Refusal> {
        let groups = monitor::parse_groups(switches.value("-s").unwrap_or("puc"), columns::GROUPS)?;
        let metrics = switches
            .value("--gpm-metrics")
            .map(gpm::parse)
            .transpose()?
            .unwrap_or_default();
        let levels = match switches.value("--gpm-options") {
            Some(text) => Levels::parse(text).ok_or_else(|| Refusal::new(0, SYNTAX.usage))?,
            None => Levels::default(),
        };
        let layout = Layout::parse(switches.value("--format").unwrap_or(""))?;
        // The levels apply only if metrics are selected. In that case, the MIG level without the
        // GPU level hides the columns of the whole GPU.
        let levels = if metrics.is_empty() {
            Levels::default()
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
            let reader = columns::ColumnReader {
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
    fn read_cells(&self, reader: &columns::ColumnReader<'_>) -> Vec<layout::RowCells> {
        let (context, gpu) = (reader.context, reader.gpu);
        let devices = if self.levels.mig {
            context
                .run_query(gpu, Query::MigDevices)
                .map_or_else(|_| Vec::new(), |answer| answer.numbers().to_vec())
        } else {
            Vec::new()
        };
        let own = || layout::RowCells {
            columns: self
                .columns
                .iter()
                .map(|column| (column.read)(reader))
                .collect(),
            instance: [None; 3],
            metrics: if self.levels.gpu {
                gpm::read_metrics(context.driver, Subject::from_gpu(gpu), &self.metrics)
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
            layout::RowCells {
                columns: vec![None; self.columns.len()],
                instance: [
                    Some(*device),
                    ids.as_ref().and_then(|ids| ids.number_at(0)),
                    ids.and_then(|ids| ids.number_at(1)),
                ],
                metrics: gpm::read_metrics(context.driver, subject, &self.metrics),
            }
        }));
        rows
    }
}

#[cfg(test)]
mod tests;
