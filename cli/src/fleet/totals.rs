//! What all GPUs of a fleet come to.

use gpumon_fleet::model::NodeHealth;

use super::{
    nodes::{Sort, nodes},
    rows::Rows,
    text::{at_least, bytes, watts},
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
    /// The mean of the GPUs that report it, in percent.
    pub(crate) utilization: Option<f64>,
    pub(crate) memory_used: f64,
    pub(crate) memory_total: f64,
    pub(crate) power: f64,
    /// Whether these sums lack GPUs that do not report their values.
    pub(crate) is_memory_partial: bool,
    pub(crate) is_power_partial: bool,
}

impl Totals {
    pub(crate) fn new(rows: &Rows<'_>, shown: Option<&[bool]>) -> Self {
        let mut totals = Self::default();
        let (mut load, mut reporting) = (0.0, 0);
        for sum in nodes(rows, shown, Sort::Name) {
            totals.nodes += 1;
            totals.nodes_away +=
                usize::from(rows.fleet.nodes.health.get(sum.node) != Some(&NodeHealth::Up));
            totals.gpus += sum.gpus;
            totals.busy += sum.busy;
            totals.idle += sum.idle;
            totals.free += sum.free;
            totals.lost += sum.lost;
            load += sum.load.unwrap_or(0.0);
            reporting += sum.reporting;
            let unlisted = if sum.rows.is_empty() { sum.gpus } else { 0 };
            totals.is_memory_partial |= sum.without_memory + unlisted > 0;
            totals.is_power_partial |= sum.without_power + unlisted > 0;
            totals.memory_used += sum.memory_used.unwrap_or(0.0);
            totals.memory_total += sum.memory_total.unwrap_or(0.0);
            totals.power += sum.power.unwrap_or(0.0);
        }
        totals.unknown = totals.gpus - totals.busy - totals.idle - totals.free - totals.lost;
        totals.utilization = (reporting > 0).then(|| load / f64::from(reporting));
        totals
    }

    /// `6,120 busy`, `310 idle` and so on, without what there is none of.
    pub(crate) fn uses(&self) -> Vec<String> {
        let uses = [
            (self.busy, "busy"),
            (self.idle, "idle but held"),
            (self.free, "free"),
            (self.lost, "lost"),
            (self.unknown, "unknown"),
        ];
        uses.into_iter()
            .filter(|(many, _)| *many > 0)
            .map(|(many, what)| format!("{many} {what}"))
            .collect()
    }

    /// What all readings come to.
    pub(crate) fn readings(&self) -> Vec<String> {
        let used = at_least(bytes(self.memory_used), self.is_memory_partial);
        let memory = format!("{used} of {}", bytes(self.memory_total));
        [
            self.utilization
                .map(|percent| format!("{percent:.0} % utilization")),
            (self.memory_total > 0.0).then_some(memory),
            (self.power > 0.0).then(|| at_least(watts(self.power), self.is_power_partial)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// `1000 nodes (3 away)  8000 GPUs`.
    pub(crate) fn sizes(&self) -> String {
        let (nodes, gpus) = (
            plural(self.nodes as u64, "node"),
            plural(self.gpus.into(), "GPU"),
        );
        let away = if self.nodes_away > 0 {
            format!(" ({} without readings)", self.nodes_away)
        } else {
            String::new()
        };
        format!("{nodes}{away}  {gpus}")
    }
}

fn plural(many: u64, what: &str) -> String {
    format!("{many} {what}{}", if many == 1 { "" } else { "s" })
}
