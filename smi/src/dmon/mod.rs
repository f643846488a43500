//! `dmon`: prints a row per GPU in each round.

mod columns;
mod gpm;
mod layout;
mod violations;

use std::io::Write;

use gpumon_probe::vendor::nvml::query::{Query, QueryBackend, Subject};

use self::{columns::Column, gpm::Levels, layout::Layout, violations::Violations};
use super::{
    Context, Refusal,
    form::Form,
    monitor,
    release::Release,
    subcommand::Stop,
    switches::{Switches, Values},
    timestamp::{self, TimestampColumns},
};

pub(super) static FORM: Form = Form {
    name: "dmon",
    about: include_str!("about.txt"),
    usage: include_str!("usage.txt"),
    takes: &["-i", "-d", "-c"],
    values: &[
        ("-s", Values::Letters(columns::GROUPS)),
        ("--gpm-metrics", Values::Commas(gpm::metrics)),
        ("--gpm-options", Values::One(Levels::WORDS)),
        ("-o", Values::Letters(timestamp::LETTERS)),
        ("-f", Values::File),
        ("--format", Values::Commas(layout::words)),
    ],
    ..Form::EMPTY
};

/// The maximum number of GPUs, and the maximum seconds between two rounds.
const MOST: (usize, u64) = (16, 600);

pub(super) fn run(
    arguments: &[String],
    driver: &dyn QueryBackend,
    output: &mut dyn Write,
) -> Result<u8, Stop> {
    let switches = FORM.parse(arguments)?;
    if switches
        .value("-s")
        .is_some_and(|letters| letters.contains('n'))
        && Release::running(driver) >= Release(610, 0)
    {
        return Err(Refusal::handed_over("dmon -s n").into());
    }
    let shown = Shown::parse(&switches)?;
    let rounds = monitor::rounds(&switches, driver, MOST, FORM.usage)?;
    let heading = shown.layout.heading(
        rounds.timestamp,
        &shown.columns,
        &shown.metrics,
        shown.levels,
    );
    let mut before = vec![None; rounds.gpus.len()];
    rounds.scroll(driver, output, heading, |context| {
        shown.rows(context, rounds.timestamp, &mut before)
    })
}

struct Shown {
    columns: Vec<&'static Column>,
    /// Whether a column needs the violation counters.
    violations: bool,
    metrics: Vec<u32>,
    levels: Levels,
    layout: Layout,
}

impl Shown {
    fn parse(switches: &Switches<'_>) -> Result<Self, Refusal> {
        let groups = monitor::groups(switches.value("-s").unwrap_or("puc"), columns::GROUPS)?;
        let metrics = switches
            .value("--gpm-metrics")
            .map(gpm::parse)
            .transpose()?
            .unwrap_or_default();
        let levels = match switches.value("--gpm-options") {
            Some(text) => Levels::parse(text).ok_or_else(|| Refusal::new(0, FORM.usage))?,
            None => Levels::default(),
        };
        let layout = Layout::parse(switches.value("--format").unwrap_or(""))?;
        // The MIG level alone hides the columns of the whole GPU.
        let levels = if metrics.is_empty() {
            Levels::default()
        } else {
            levels
        };
        let groups = if levels.gpu { groups } else { Vec::new() };
        let columns = groups
            .iter()
            .flat_map(|group| columns::of(*group))
            .collect();
        Ok(Self {
            columns,
            violations: groups.contains(&'v'),
            metrics,
            levels,
            layout,
        })
    }

    /// Returns the rows of a round. `before` has each GPU's counters of the previous round, and
    /// receives those of this round.
    fn rows(
        &self,
        context: &Context<'_>,
        timestamp: TimestampColumns,
        before: &mut Vec<Option<Violations>>,
    ) -> Vec<String> {
        let read = monitor::read_each(context, before, |gpu, before| {
            let violations = self.violations.then(|| Violations::ask(context, gpu));
            let reader = columns::Reader {
                context,
                gpu,
                violations,
                before,
            };
            (self.cells(&reader), violations)
        });
        let mut rows = Vec::new();
        for (cells, gpu) in read.iter().zip(context.gpus) {
            let timestamp = timestamp.words(&context.now, *gpu);
            let row = |cells| {
                self.layout
                    .row(&timestamp, cells, &self.metrics, self.levels)
            };
            rows.extend(cells.iter().map(row));
        }
        rows
    }

    /// Returns the cells of a GPU's rows: one for the GPU itself, and one for each MIG device.
    fn cells(&self, reader: &columns::Reader<'_>) -> Vec<layout::Cells> {
        let (context, gpu) = (reader.context, reader.gpu);
        let devices = if self.levels.mig {
            context
                .ask(gpu, Query::MigDevices)
                .map_or_else(|_| Vec::new(), |answer| answer.numbers().to_vec())
        } else {
            Vec::new()
        };
        let own = || layout::Cells {
            columns: self
                .columns
                .iter()
                .map(|column| (column.read)(reader))
                .collect(),
            instance: [None; 3],
            metrics: if self.levels.gpu {
                gpm::read(context.driver, Subject::gpu(gpu), &self.metrics)
            } else {
                vec![None; self.metrics.len()]
            },
        };
        let mut rows = Vec::new();
        if self.levels.gpu || devices.is_empty() {
            rows.push(own());
        }
        rows.extend(devices.iter().map(|device| {
            let subject = Subject::mig(gpu, *device as u32);
            let ids = context.driver.about(subject, Query::MigInstance).ok();
            layout::Cells {
                columns: vec![None; self.columns.len()],
                instance: [
                    Some(*device),
                    ids.as_ref().and_then(|ids| ids.at(0)),
                    ids.and_then(|ids| ids.at(1)),
                ],
                metrics: gpm::read(context.driver, subject, &self.metrics),
            }
        }));
        rows
    }
}

#[cfg(test)]
mod tests;
