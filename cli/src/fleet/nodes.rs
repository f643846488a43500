//! The nodes of a fleet, summed up, the worst first.

use std::{cmp::Ordering, collections::BTreeSet};

use gpumon_fleet::model::NodeHealth;

use super::rows::{Measured, Rows, Use};

/// What the GPUs of a node that are shown come to.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeSum {
    /// Its place in the fleet.
    pub(crate) node: usize,
    /// Of the GPUs that are shown, by index.
    pub(crate) rows: Vec<usize>,
    pub(crate) gpus: u32,
    pub(crate) busy: u32,
    pub(crate) idle: u32,
    pub(crate) free: u32,
    pub(crate) lost: u32,
    /// Of the worst GPU: the lower, the worse.
    pub(crate) rank: u8,
    /// The mean of the GPUs that report it, in percent.
    pub(crate) utilization: Option<f64>,
    /// The sum of utilization over the GPUs that report it, and the number of these GPUs.
    pub(super) load: Option<f64>,
    pub(super) reporting: u32,
    /// The numbers of GPUs that do not report memory and power.
    pub(super) without_memory: u32,
    pub(super) without_power: u32,
    /// Sums.
    pub(crate) memory_used: Option<f64>,
    pub(crate) memory_total: Option<f64>,
    pub(crate) power: Option<f64>,
    /// The highest.
    pub(crate) temperature: Option<f64>,
    pub(crate) idle_s: Option<f64>,
}

/// By what nodes and GPUs are sorted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sort {
    /// What is lost or in trouble first
    #[default]
    Worst,
    /// By name
    Name,
    /// The busiest first
    Utilization,
    /// The fullest first
    Memory,
    /// What draws most first
    Power,
    /// The hottest first
    Temperature,
    /// What has been idle longest first
    Idle,
}

impl Sort {
    pub(crate) const ALL: [Self; 7] = [
        Self::Worst,
        Self::Name,
        Self::Utilization,
        Self::Memory,
        Self::Power,
        Self::Temperature,
        Self::Idle,
    ];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Worst => "worst",
            Self::Name => "name",
            Self::Utilization => "utilization",
            Self::Memory => "memory",
            Self::Power => "power",
            Self::Temperature => "temperature",
            Self::Idle => "idle time",
        }
    }
}

/// The nodes that have a GPU that is shown, and those of which nothing is known where all are.
pub(crate) fn nodes(rows: &Rows<'_>, shown: Option<&[bool]>, sort: Sort) -> Vec<NodeSum> {
    let many = rows.fleet.nodes.name.len();
    let mut sums: Vec<NodeSum> = (0..many)
        .map(|node| NodeSum {
            node,
            rank: u8::MAX,
            ..NodeSum::default()
        })
        .collect();
    for row in (0..rows.count()).filter(|row| shown.is_none_or(|shown| shown[*row])) {
        let Some(sum) = sums.get_mut(rows.node(row)) else {
            continue;
        };
        if rows.is_listed(row) {
            sum.add(rows, row);
        } else if rows
            .fleet
            .nodes
            .health
            .get(sum.node)
            .is_some_and(|health| *health != NodeHealth::Up)
        {
            (sum.rank, sum.gpus) = (1, sum.gpus + rows.gpus(row));
        }
    }
    for sum in &mut sums {
        sum.rows.sort_by_key(|row| rows.fleet.gpus.index[*row]);
        sum.utilization = sum.load.map(|load| load / f64::from(sum.reporting));
    }
    sums.retain(|sum| sum.rank != u8::MAX);
    let places = places(&rows.fleet.nodes.name);
    sums.sort_by(|a, b| {
        sort.compare_nodes(a, b)
            .then(places[a.node].cmp(&places[b.node]))
    });
    sums
}

/// The GPUs that are shown, in order.
pub(crate) fn gpus(rows: &Rows<'_>, shown: Option<&[bool]>, sort: Sort) -> Vec<usize> {
    let places = places(&rows.fleet.nodes.name);
    let mut order: Vec<usize> = (0..rows.count())
        .filter(|row| shown.is_none_or(|shown| shown[*row]))
        .collect();
    order.retain(|row| rows.is_listed(*row));
    let of = |measured| move |row: usize| rows.reading(measured, row);
    order.sort_by(|a, b| {
        let by = |value: &dyn Fn(usize) -> Option<f64>| highest_first(value(*a), value(*b));
        let sorted = match sort {
            Sort::Worst => rows.rank(*a).cmp(&rows.rank(*b)).then_with(|| {
                load_first(
                    rows.reading(Measured::Utilization, *a),
                    rows.reading(Measured::Utilization, *b),
                )
            }),
            Sort::Name => Ordering::Equal,
            Sort::Utilization => by(&of(Measured::Utilization)),
            Sort::Memory => by(&of(Measured::MemoryUsed)),
            Sort::Power => by(&of(Measured::Power)),
            Sort::Temperature => by(&of(Measured::Temperature)),
            Sort::Idle => by(&|row| rows.idle_s(row)),
        };
        let place = |row: &usize| (places.get(rows.node(*row)), rows.fleet.gpus.index[*row]);
        sorted.then_with(|| place(a).cmp(&place(b)))
    });
    order
}

impl NodeSum {
    fn add(&mut self, rows: &Rows<'_>, row: usize) {
        let many = rows.gpus(row);
        self.rows.push(row);
        self.gpus += many;
        match rows.use_of(row) {
            Use::Busy => self.busy += many,
            Use::Idle => self.idle += many,
            Use::Free => self.free += many,
            Use::Lost => self.lost += many,
            Use::Unknown => {}
        }
        self.rank = self.rank.min(rows.rank(row));
        // Returns the number of GPUs that do not report it.
        let add = |sum: &mut Option<f64>, measured| {
            let Some(value) = rows.reading(measured, row) else {
                return many;
            };
            *sum = Some(sum.unwrap_or(0.0) + value);
            0
        };
        self.without_memory += add(&mut self.memory_used, Measured::MemoryUsed);
        self.without_power += add(&mut self.power, Measured::Power);
        add(&mut self.memory_total, Measured::MemoryTotal);
        if let Some(percent) = rows.reading(Measured::Utilization, row) {
            // A row that stands for a node has the mean of its GPUs.
            self.load = Some(self.load.unwrap_or(0.0) + percent * f64::from(many));
            self.reporting += many;
        }
        let most = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).max_by(f64::total_cmp);
        self.temperature = most(self.temperature, rows.reading(Measured::Temperature, row));
        self.idle_s = most(self.idle_s, rows.idle_s(row));
    }

    /// Who holds some of them, each once.
    pub(crate) fn users<'a>(&self, rows: &Rows<'a>) -> BTreeSet<&'a str> {
        self.rows
            .iter()
            .flat_map(|row| rows.owners(*row))
            .map(|owner| owner.user.as_deref().unwrap_or(&owner.id))
            .collect()
    }
}

impl Sort {
    fn compare_nodes(self, a: &NodeSum, b: &NodeSum) -> Ordering {
        match self {
            Self::Worst => a
                .rank
                .cmp(&b.rank)
                .then_with(|| load_first(a.utilization, b.utilization)),
            Self::Name => Ordering::Equal,
            Self::Utilization => highest_first(a.utilization, b.utilization),
            Self::Memory => highest_first(a.memory_used, b.memory_used),
            Self::Power => highest_first(a.power, b.power),
            Self::Temperature => highest_first(a.temperature, b.temperature),
            Self::Idle => highest_first(a.idle_s, b.idle_s),
        }
    }
}

/// What has no value comes last.
fn highest_first(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

/// What is not known is no load.
fn load_first(a: Option<f64>, b: Option<f64>) -> Ordering {
    b.unwrap_or(0.0).total_cmp(&a.unwrap_or(0.0))
}

/// The places of names in their order, numbers in them counted as such: `node2` before `node10`.
fn places(names: &[String]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_cached_key(|place| natural(&names[*place]));
    let mut places = vec![0; names.len()];
    for (at, place) in order.into_iter().enumerate() {
        places[place] = at;
    }
    places
}

/// A part of a name: numbers come before letters, and in the order of what they count.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Text(String),
}

fn natural(name: &str) -> Vec<Part> {
    let bytes = name.as_bytes();
    let parts = bytes.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit());
    let part = |part: &[u8]| {
        let text = String::from_utf8_lossy(part).to_lowercase();
        text.parse().map_or(Part::Text(text), Part::Number)
    };
    parts.map(part).collect()
}

#[cfg(test)]
mod tests {
    use gpumon_fleet::model::GpuHealth;

    use super::*;
    use crate::fleet::testing::{Example, busy, fleet};

    #[test]
    fn what_is_lost_comes_first_and_names_are_counted() {
        let lost = Example {
            health: GpuHealth::NotResponding,
            ..Example::default()
        };
        let idle = Example {
            idle_s: Some(900.0),
            ..busy("bob", 0.0)
        };
        let fleet = fleet(&[
            ("node10", &[busy("ana", 90.0), busy("ana", 70.0)]),
            ("node9", &[busy("ana", 20.0), idle]),
            ("node2", &[]),
            ("node1", &[lost, busy("ana", 1.0)]),
            (
                "node3",
                &[Example {
                    condition: Some(("throttled", 2)),
                    ..busy("eve", 99.0)
                }],
            ),
        ]);
        let rows = Rows::new(&fleet);
        let names = |sort| {
            let sums = nodes(&rows, None, sort);
            sums.iter()
                .map(|sum| fleet.nodes.name[sum.node].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(Sort::Worst),
            ["node1", "node2", "node3", "node9", "node10"]
        );
        assert_eq!(
            names(Sort::Name),
            ["node1", "node2", "node3", "node9", "node10"]
        );
        assert_eq!(
            names(Sort::Utilization),
            ["node3", "node10", "node9", "node1", "node2"]
        );
        assert_eq!(names(Sort::Idle)[0], "node9");
        let sums = nodes(&rows, None, Sort::Name);
        assert_eq!(
            (sums[4].utilization, sums[4].busy, sums[4].power),
            (Some(80.0), 2, Some(1300.0))
        );
        assert_eq!(
            (sums[3].busy, sums[3].idle, sums[3].users(&rows)),
            (1, 1, ["ana", "bob"].into())
        );
        assert_eq!((sums[0].lost, sums[1].rows.len()), (1, 0));
        let shown: Vec<bool> = (0..rows.count())
            .map(|row| rows.node_name(row) == "node9")
            .collect();
        assert_eq!(
            nodes(&rows, Some(&shown), Sort::Worst).len(),
            1,
            "what nothing is known of is not what is looked for"
        );
        assert_eq!(gpus(&rows, None, Sort::Worst).len(), 7);
        assert_eq!(gpus(&rows, Some(&shown), Sort::Idle), [3, 2]);
    }
}
