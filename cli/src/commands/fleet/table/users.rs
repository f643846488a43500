//! Who holds GPUs now, and used how much.

use std::collections::{BTreeMap, BTreeSet};

use gpumon_fleet::model::{FleetState, FleetUsage, OwnerUsage, UsageGroup, sum_known};
use gpumon_probe::untrusted::escaped;
use serde::Serialize;

use super::nodes::columns;
use crate::{
    fleet::{
        rows::{Rows, Use},
        text::{at_least, owner},
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
    /// Whether GPU time and energy are lower bounds because some of them could not be read.
    is_lower_bound: bool,
}

/// Those who hold most GPUs first, and behind them those who used most.
pub(super) fn users(
    rows: &Rows<'_>,
    shown: Option<&[bool]>,
    usage: Option<&FleetUsage>,
) -> Vec<UserSum> {
    let mut sums: BTreeMap<String, (UserSum, BTreeSet<usize>)> = BTreeMap::new();
    for row in (0..rows.count()).filter(|row| shown.is_none_or(|shown| shown[*row])) {
        // Who holds a GPU by several jobs holds it once.
        let users: BTreeSet<String> = rows
            .owners(row)
            .map(|one| one.user.clone().unwrap_or_else(|| owner(one)))
            .collect();
        for user in users {
            let (sum, nodes) = sums.entry(user).or_default();
            sum.gpus += rows.gpus(row);
            sum.idle += if rows.use_of(row) == Use::Idle {
                rows.gpus(row)
            } else {
                0
            };
            nodes.insert(rows.node(row));
        }
    }
    // What was used tells nothing of some GPUs alone.
    if let Some(usage) = usage.filter(|_| shown.is_none()) {
        let mut add = |name: String, used: [Option<f64>; 3]| {
            let (sum, _) = sums.entry(name).or_default();
            for (sum, used) in [
                &mut sum.gpu_s,
                &mut sum.active_gpu_s,
                &mut sum.energy_joules,
            ]
            .into_iter()
            .zip(used)
            {
                *sum = sum_known([*sum, used]);
            }
        };
        // The sums of users are complete even if the list of owners is cut.
        for group in &usage.users {
            if let Some(user) = &group.name {
                add(
                    user.clone(),
                    [group.gpu_s, group.active_gpu_s, group.energy_joules],
                );
            }
        }
        for used in usage.owners.iter().filter(|used| used.owner.user.is_none()) {
            add(
                owner(&used.owner),
                [used.gpu_s, used.active_gpu_s, used.energy_joules],
            );
        }
        for (sum, _) in sums.values_mut() {
            sum.is_lower_bound = usage.state == FleetState::Partial;
        }
    }
    let mut users: Vec<UserSum> = sums
        .into_iter()
        .map(|(user, (sum, nodes))| UserSum {
            user,
            nodes: nodes.len(),
            ..sum
        })
        .collect();
    let key = |sum: &UserSum| (sum.gpus, sum.gpu_s.unwrap_or(0.0));
    users.sort_by(|a, b| {
        let ((a_now, a_used), (b_now, b_used)) = (key(a), key(b));
        b_now.cmp(&a_now).then(b_used.total_cmp(&a_used))
    });
    users
}

/// Returns a row for the unlisted jobs of unknown users, and a row for the total.
pub(super) fn totals(usage: &FleetUsage) -> Vec<UserSum> {
    let is_lower_bound = usage.state == FleetState::Partial;
    let mut totals = Vec::new();
    let unknown = |owner: &&OwnerUsage| owner.owner.user.is_none();
    if let Some(group) = usage.users.iter().find(|group| group.name.is_none()) {
        let listed = usage.owners.iter().filter(unknown);
        let part = listed.fold(UsageGroup::default(), |mut part, owner| {
            part.owners += 1;
            part.gpu_s = sum_known([part.gpu_s, owner.gpu_s]);
            part.active_gpu_s = sum_known([part.active_gpu_s, owner.active_gpu_s]);
            part.energy_joules = sum_known([part.energy_joules, owner.energy_joules]);
            part
        });
        let rest = group.without(&part);
        if rest.owners > 0 {
            totals.push(UserSum {
                user: format!("{} more", rest.owners),
                is_lower_bound,
                ..UserSum::from(&rest)
            });
        }
    }
    let sum = |read: fn(&UsageGroup) -> Option<f64>| sum_known(usage.users.iter().map(read));
    totals.push(UserSum {
        user: "Total".to_owned(),
        gpu_s: sum(|group| group.gpu_s),
        active_gpu_s: sum(|group| group.active_gpu_s),
        energy_joules: sum(|group| group.energy_joules),
        is_lower_bound,
        ..UserSum::default()
    });
    totals
}

impl From<&UsageGroup> for UserSum {
    fn from(group: &UsageGroup) -> Self {
        let UsageGroup {
            gpu_s,
            active_gpu_s,
            energy_joules,
            ..
        } = *group;
        Self {
            gpu_s,
            active_gpu_s,
            energy_joules,
            ..Self::default()
        }
    }
}

/// With what is wrong with what was used.
pub(super) fn text(
    users: &[UserSum],
    totals: &[UserSum],
    problems: &[String],
    terminal: Option<usize>,
) -> String {
    let is_used = totals
        .iter()
        .any(|total| total.gpu_s.is_some_and(|gpu_s| gpu_s > 0.0));
    if users.is_empty() && !is_used {
        return "Nobody holds a GPU that is shown.\n".to_owned();
    }
    let mut cells: Vec<[String; COLUMNS]> = users.iter().map(cells_of).collect();
    cells.extend(totals.iter().map(|sum| {
        let [name, _, _, _, hours, active, energy] = cells_of(sum);
        [
            name,
            String::new(),
            String::new(),
            String::new(),
            hours,
            active,
            energy,
        ]
    }));
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
    let mut text: String = std::iter::once(paint(DIM, &columns.headings()) + "\n")
        .chain(lines)
        .collect();
    for problem in problems {
        text += &columns.remark(0, DIM, &escaped(problem));
    }
    text
}

fn cells_of(sum: &UserSum) -> [String; COLUMNS] {
    let used = |value: Option<f64>, text: fn(f64) -> String| {
        value.map_or_else(
            || NONE.to_owned(),
            |value| at_least(text(value), sum.is_lower_bound),
        )
    };
    let hours =
        |seconds: Option<f64>| used(seconds, |seconds| number(seconds / SECONDS_PER_HOUR, 1));
    [
        escaped(&sum.user),
        sum.gpus.to_string(),
        sum.idle.to_string(),
        sum.nodes.to_string(),
        hours(sum.gpu_s),
        hours(sum.active_gpu_s),
        used(sum.energy_joules, energy),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fleet::testing::{busy, fleet};

    #[test]
    fn cut_job_list_keeps_user_sums() {
        let usage = json!({
            "from_ms": 0, "to_ms": 86_400_000, "state": "current", "problems": [], "owners_total": 900,
            "owners": [{
                "owner": {"user": "ana", "kind": "slurm_job", "id": "1", "namespace": null},
                "gpu_s": 3600.0, "active_gpu_s": 3600.0, "energy_joules": 1e6, "nodes": 1
            }],
            "users": [{"name": "ana", "owners": 900, "gpu_s": 7200.0, "active_gpu_s": 7200.0, "energy_joules": 5e6}],
            "unheld_gpu_s": null, "unheld_energy_joules": null, "energy_joules": null
        });
        let usage: FleetUsage = serde_json::from_value(usage).unwrap();
        let fleet = fleet(&[("node1", &[busy("ana", 90.0)])]);
        let users = users(&Rows::new(&fleet), None, Some(&usage));
        let ana = serde_json::to_value(&users[0]).unwrap();
        assert_eq!(
            (&ana["gpu_s"], &ana["energy_joules"]),
            (&json!(7200.0), &json!(5e6)),
            "{ana}"
        );
        let partial = FleetUsage {
            state: FleetState::Partial,
            ..usage
        };
        let users = super::users(&Rows::new(&fleet), None, Some(&partial));
        let table = text(&users, &totals(&partial), &[], None);
        let words = |line: usize| {
            table
                .lines()
                .nth(line)
                .unwrap()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(words(1), "ana 1 0 1 ≥ 2.0 ≥ 2.0 ≥ 1.39 kWh", "{table}");
        assert_eq!(words(2), "Total ≥ 2.0 ≥ 2.0 ≥ 1.39 kWh", "{table}");
    }

    #[test]
    fn unlisted_jobs_of_unknown_users_are_counted() {
        let pod = |id: &str, gpu_s: f64| {
            json!({"owner": {"user": null, "kind": "pod", "id": id, "namespace": "ml"}, "gpu_s": gpu_s,
                   "active_gpu_s": null, "energy_joules": null, "nodes": 1})
        };
        let usage = json!({
            "from_ms": 0, "to_ms": 1, "state": "current", "problems": [], "owners_total": 7, "owners": [pod("a", 3600.0)],
            "users": [{"name": null, "owners": 7, "gpu_s": 36_000.0, "active_gpu_s": null, "energy_joules": null}],
            "unheld_gpu_s": null, "unheld_energy_joules": null, "energy_joules": null
        });
        let usage: FleetUsage = serde_json::from_value(usage).unwrap();
        let sums: Vec<_> = totals(&usage)
            .into_iter()
            .map(|sum| (sum.user, sum.gpu_s))
            .collect();
        assert_eq!(
            sums,
            [
                ("6 more".to_owned(), Some(32_400.0)),
                ("Total".to_owned(), Some(36_000.0))
            ]
        );
        let table = text(&[], &totals(&usage), &[], None);
        assert!(
            table.contains("6 more") && table.contains("Total"),
            "{table}"
        );
        // Two pods whose names begin alike have one row with the sum.
        let worker = |number: u32| {
            serde_json::from_value(pod(&format!("nccl-test-launcher-worker-{number}"), 1800.0))
        };
        let pods = FleetUsage {
            owners: vec![worker(0).unwrap(), worker(1).unwrap()],
            ..usage
        };
        let fleet = fleet(&[]);
        let sums: Vec<_> = super::users(&Rows::new(&fleet), None, Some(&pods))
            .iter()
            .map(|sum| sum.gpu_s)
            .collect();
        assert_eq!(sums, [Some(3600.0)]);
    }
}
