//! The lines above a table: where it was read, and what all GPUs come to.

use gpumon_fleet::model::{FleetSourceKind, FleetState, NodeHealth};
use gpumon_probe::untrusted::escaped;
use unicode_width::UnicodeWidthStr;

use crate::{
    fleet::{
        nodes::{Sort, nodes},
        rows::Rows,
        text::{bytes, watts},
    },
    run::columns::Columns,
    table::{
        style::{ALARM, DIM, NOTICE, STRONG, paint},
        units::clock,
    },
};

/// What all that is shown comes to.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) nodes: usize,
    pub(crate) nodes_away: usize,
    pub(crate) gpus: u32,
    pub(crate) busy: u32,
    pub(crate) idle: u32,
    pub(crate) free: u32,
    pub(crate) lost: u32,
    pub(crate) unknown: u32,
    /// Weighted by GPUs, in percent.
    pub(crate) utilization: Option<f64>,
    pub(crate) memory_used: f64,
    pub(crate) memory_total: f64,
    pub(crate) power: f64,
}

impl Totals {
    pub(crate) fn new(rows: &Rows<'_>, shown: Option<&[bool]>) -> Self {
        let mut totals = Self::default();
        let (mut load, mut known) = (0.0, 0.0);
        for sum in nodes(rows, shown, Sort::Name) {
            totals.nodes += 1;
            totals.nodes_away += usize::from(rows.fleet.nodes.health.get(sum.node) != Some(&NodeHealth::Up));
            totals.gpus += sum.gpus;
            totals.busy += sum.busy;
            totals.idle += sum.idle;
            totals.free += sum.free;
            totals.lost += sum.lost;
            if let Some(utilization) = sum.utilization {
                load += utilization * f64::from(sum.gpus);
                known += f64::from(sum.gpus);
            }
            totals.memory_used += sum.memory_used.unwrap_or(0.0);
            totals.memory_total += sum.memory_total.unwrap_or(0.0);
            totals.power += sum.power.unwrap_or(0.0);
        }
        totals.unknown = totals.gpus - totals.busy - totals.idle - totals.free - totals.lost;
        totals.utilization = (known > 0.0).then(|| load / known);
        totals
    }

    /// `6,120 busy`, `310 idle` and so on, without what there is none of.
    pub(crate) fn uses(&self) -> Vec<String> {
        let uses = [
            (self.busy, "busy"),
            (self.idle, "idle but held"),
            (self.free, "free"),
            (self.lost, "not responding"),
            (self.unknown, "unknown"),
        ];
        uses.into_iter().filter(|(many, _)| *many > 0).map(|(many, what)| format!("{many} {what}")).collect()
    }

    /// What all readings come to.
    pub(crate) fn readings(&self) -> Vec<String> {
        let memory = format!("{} of {}", bytes(self.memory_used), bytes(self.memory_total));
        [
            self.utilization.map(|percent| format!("{percent:.0} % utilization")),
            (self.memory_total > 0.0).then_some(memory),
            (self.power > 0.0).then(|| watts(self.power)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// `1000 nodes (3 away)  8000 GPUs`.
    pub(crate) fn sizes(&self) -> String {
        let (nodes, gpus) = (plural(self.nodes as u64, "node"), plural(self.gpus.into(), "GPU"));
        let away = if self.nodes_away > 0 { format!(" ({} without readings)", self.nodes_away) } else { String::new() };
        format!("{nodes}{away}  {gpus}")
    }
}

fn plural(many: u64, what: &str) -> String {
    format!("{many} {what}{}", if many == 1 { "" } else { "s" })
}

/// Two lines and one that is empty.
pub(super) fn lines(rows: &Rows<'_>, shown: Option<&[bool]>, terminal: Option<usize>) -> String {
    let totals = Totals::new(rows, shown);
    let fleet = rows.fleet;
    let time = clock(fleet.at_ms, gpumon_probe::model::now_ms());
    let source = match fleet.source.kind {
        FleetSourceKind::Prometheus => escaped(&fleet.source.name),
        FleetSourceKind::Hosts => format!("{} over ssh", escaped(&fleet.source.name)),
    };
    let state = match fleet.state {
        FleetState::Partial => format!("  {}", paint(NOTICE, "incomplete")),
        _ => String::new(),
    };
    let sizes = totals.sizes();
    let place = format!("{source}  {time}");
    let begin = format!("{}  {sizes}", paint(STRONG, "fleet"));
    let first = Columns::new(&[], terminal).behind(&(begin + &state), 0, &paint(DIM, &place));
    let mut parts = totals.uses();
    parts.extend(totals.readings());
    let style = if totals.lost > 0 { ALARM } else { DIM };
    let mut second = String::new();
    for part in parts {
        let style = if part.ends_with("not responding") { style } else { crate::table::style::PLAIN };
        let is_room = terminal.is_none_or(|room| last_width(&second) + 2 + part.width() <= room);
        let gap = if second.is_empty() {
            ""
        } else if is_room {
            "  "
        } else {
            "\n"
        };
        second = second + gap + &paint(style, &part);
    }
    format!("{first}\n{second}\n\n")
}

fn last_width(text: &str) -> usize {
    crate::table::style::plain(text.rsplit('\n').next().unwrap_or_default()).width()
}
