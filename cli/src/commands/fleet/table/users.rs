//! Who holds GPUs now, and used how much.

use std::collections::{BTreeMap, BTreeSet};

use gpumon_fleet::model::FleetUsage;
use gpumon_probe::untrusted::escaped;
use serde::Serialize;

use super::nodes::columns;
use crate::{
    fleet::{
        rows::{Rows, Use},
        text::owner,
    },
    run::columns::{NONE, number},
    table::{
        style::{DIM, paint},
        units::energy,
    },
};

const SECONDS_PER_HOUR: f64 = 3600.0;

const COLUMNS: usize = 7;

/// One user, or what is of nobody that is known.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub(super) struct UserSum {
    /// Empty where it is not told.
    user: String,
    /// GPUs that are held now.
    gpus: u32,
    /// Of these, idle ones.
    idle: u32,
    nodes: usize,
    /// In the last day, in seconds; `null` where it is not told.
    gpu_s: Option<f64>,
    active_gpu_s: Option<f64>,
    energy_joules: Option<f64>,
}

/// Those who hold most GPUs first, and behind them those who used most.
pub(super) fn users(rows: &Rows<'_>, shown: Option<&[bool]>, usage: Option<&FleetUsage>) -> Vec<UserSum> {
    let mut sums: BTreeMap<String, (UserSum, BTreeSet<usize>)> = BTreeMap::new();
    for row in (0..rows.count()).filter(|row| shown.is_none_or(|shown| shown[*row])) {
        // Who holds a GPU by several jobs holds it once.
        let users: BTreeSet<String> =
            rows.owners(row).map(|one| one.user.clone().unwrap_or_else(|| owner(one))).collect();
        for user in users {
            let (sum, nodes) = sums.entry(user).or_default();
            sum.gpus += rows.gpus(row);
            sum.idle += if rows.use_of(row) == Use::Idle { rows.gpus(row) } else { 0 };
            nodes.insert(rows.node(row));
        }
    }
    // What was used tells nothing of some GPUs alone.
    for used in usage.into_iter().filter(|_| shown.is_none()).flat_map(|usage| &usage.owners) {
        let name = used.owner.user.clone().unwrap_or_else(|| owner(&used.owner));
        let (sum, _) = sums.entry(name).or_default();
        let add = |all: &mut Option<f64>, more: Option<f64>| {
            *all = all.iter().copied().chain(more).reduce(|a, b| a + b);
        };
        add(&mut sum.gpu_s, used.gpu_s);
        add(&mut sum.active_gpu_s, used.active_gpu_s);
        add(&mut sum.energy_joules, used.energy_joules);
    }
    let mut users: Vec<UserSum> =
        sums.into_iter().map(|(user, (sum, nodes))| UserSum { user, nodes: nodes.len(), ..sum }).collect();
    let key = |sum: &UserSum| (sum.gpus, sum.gpu_s.unwrap_or(0.0));
    users.sort_by(|a, b| {
        let ((a_now, a_used), (b_now, b_used)) = (key(a), key(b));
        b_now.cmp(&a_now).then(b_used.total_cmp(&a_used))
    });
    users
}

/// With what is wrong with what was used.
pub(super) fn text(users: &[UserSum], problems: &[String], terminal: Option<usize>) -> String {
    if users.is_empty() {
        return "Nobody holds a GPU that is shown.\n".to_owned();
    }
    let hours =
        |seconds: Option<f64>| seconds.map_or_else(|| NONE.to_owned(), |seconds| number(seconds / SECONDS_PER_HOUR, 1));
    let cells: Vec<[String; COLUMNS]> = users
        .iter()
        .map(|sum| {
            [
                escaped(&sum.user),
                sum.gpus.to_string(),
                sum.idle.to_string(),
                sum.nodes.to_string(),
                hours(sum.gpu_s),
                hours(sum.active_gpu_s),
                sum.energy_joules.map_or_else(|| NONE.to_owned(), energy),
            ]
        })
        .collect();
    let headings: [(&str, bool, u8); COLUMNS] = [
        ("User", true, 0),
        ("GPUs", false, 0),
        ("Idle", false, 0),
        ("Nodes", false, 3),
        ("GPU hours, 24 h", false, 1),
        ("Active hours", false, 2),
        ("Energy", false, 1),
    ];
    let columns = columns(&headings, &cells, terminal);
    let lines = cells.iter().map(|cells| columns.line(cells) + "\n");
    let mut text: String = std::iter::once(paint(DIM, &columns.headings()) + "\n").chain(lines).collect();
    for problem in problems {
        text += &columns.remark(0, DIM, &escaped(problem));
    }
    text
}
