//! The table of users: their GPUs now, and their use in the last 24 hours.

use std::collections::{BTreeMap, BTreeSet};

use gpumon_fleet::{
    Rows,
    model::{Amounts, FleetState, FleetUsage, GpuState, UsageGroup, add_amounts},
};
use gpumon_probe::untrusted::escape_untrusted;
use serde::Serialize;

use crate::{
    fleet::text::{describe_owner, mark_lower_bound},
    terminal::{
        columns::{Column, Columns, Field, format_number, format_optional, format_table},
        style::DIM,
        units::format_energy_with_cost,
    },
};

const SECONDS_PER_HOUR: f64 = 3600.0;

/// The totals for one user, or for an owner whose user is unknown.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub(super) struct UserSum {
    /// The name of the user, or of the owner if the user is unknown.
    user: String,
    /// The number of GPUs that the user currently holds.
    gpus: u32,
    /// The number of idle GPUs among the GPUs that the user holds.
    idle: u32,
    nodes: usize,
    /// GPU time in the last 24 hours, in seconds; `null` if unknown.
    gpu_s: Option<f64>,
    active_gpu_s: Option<f64>,
    energy_joules: Option<f64>,
    /// Whether GPU time and energy are lower bounds, because some usage could not be read.
    is_lower_bound: bool,
    /// Whether this row contains only usage, and no numbers of GPUs.
    #[serde(skip)]
    is_total: bool,
}

impl UserSum {
    fn add(&mut self, more: Amounts) {
        let before = [self.gpu_s, self.active_gpu_s, self.energy_joules];
        [self.gpu_s, self.active_gpu_s, self.energy_joules] = add_amounts(before, more);
    }

    fn new_total(name: String, amounts: Amounts, is_lower_bound: bool) -> Self {
        let mut total = Self {
            user: name,
            is_lower_bound,
            is_total: true,
            ..Self::default()
        };
        total.add(amounts);
        total
    }
}

/// Returns the totals of all users, sorted by the number of GPUs held and then by GPU time.
pub(super) fn sum_users(
    rows: &Rows<'_>,
    shown: Option<&[bool]>,
    usage: Option<&FleetUsage>,
) -> Vec<UserSum> {
    let mut sums: BTreeMap<String, (UserSum, BTreeSet<usize>)> = BTreeMap::new();
    for row in rows.select_rows(shown) {
        // A GPU is counted once per user, even if several jobs of the user hold it.
        let users: BTreeSet<String> = rows
            .list_owners(row)
            .iter()
            .map(|one| one.user.clone().unwrap_or_else(|| describe_owner(one)))
            .collect();
        for user in users {
            let (sum, nodes) = sums.entry(user).or_default();
            sum.gpus += rows.count_gpus(row);
            sum.idle += if rows.state(row) == GpuState::Idle {
                rows.count_gpus(row)
            } else {
                0
            };
            nodes.insert(rows.node_position(row));
        }
    }
    // Usage covers all GPUs, so it is left out if only some GPUs are selected.
    if let Some(usage) = usage.filter(|_| shown.is_none()) {
        let mut add = |name: String, used| sums.entry(name).or_default().0.add(used);
        // The totals per user are complete even if the list of owners is truncated.
        for group in &usage.users {
            if let Some(user) = &group.name {
                add(user.clone(), group.amounts());
            }
        }
        for used in usage.owners.iter().filter(|used| used.owner.user.is_none()) {
            add(describe_owner(&used.owner), used.amounts());
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

/// Returns a row for unlisted owners without a known user, and a row for the total.
pub(super) fn build_totals(usage: &FleetUsage) -> Vec<UserSum> {
    let is_lower_bound = usage.state == FleetState::Partial;
    let mut totals = Vec::new();
    if let Some(group) = usage.users.iter().find(|group| group.name.is_none()) {
        let listed = usage.owners.iter();
        let unknown = listed.filter(|used| used.owner.user.is_none());
        let rest = group.subtract_part(&UsageGroup::sum(unknown));
        if rest.owners > 0 {
            let name = format!("{} more", rest.owners);
            totals.push(UserSum::new_total(name, rest.amounts(), is_lower_bound));
        }
    }
    let amounts = usage.users.iter().map(UsageGroup::amounts);
    let sum = amounts.fold(Amounts::default(), add_amounts);
    totals.push(UserSum::new_total("Total".to_owned(), sum, is_lower_bound));
    totals
}

/// Returns the table, followed by any errors from reading usage.
pub(super) fn format_table_of_users(
    users: &[UserSum],
    totals: &[UserSum],
    problems: &[String],
    terminal: Option<usize>,
) -> String {
    let is_used = totals
        .iter()
        .any(|total| total.gpu_s.is_some_and(|gpu_s| gpu_s > 0.0));
    if users.is_empty() && !is_used {
        return "No user holds any of the selected GPUs.\n".to_owned();
    }
    let fields: [Field<UserSum>; 7] = [
        (Column::new_left_aligned("User", 0), |sum| {
            escape_untrusted(&sum.user)
        }),
        (Column::new_right_aligned("GPUs", 0), |sum| {
            sum.format_count(sum.gpus as usize)
        }),
        (Column::new_right_aligned("Idle", 0), |sum| {
            sum.format_count(sum.idle as usize)
        }),
        (Column::new_right_aligned("Nodes", 3), |sum| {
            sum.format_count(sum.nodes)
        }),
        (Column::new_right_aligned("GPU hours, 24 h", 1), |sum| {
            sum.format_amount(sum.gpu_s, format_hours)
        }),
        (Column::new_right_aligned("Active hours", 2), |sum| {
            sum.format_amount(sum.active_gpu_s, format_hours)
        }),
        (Column::new_right_aligned("Energy", 1), |sum| {
            sum.format_amount(sum.energy_joules, format_energy_with_cost)
        }),
    ];
    let mut text = format_table(&fields, &[users, totals].concat(), terminal, |_, _| {
        String::new()
    });
    let layout = Columns::empty(terminal);
    for problem in problems {
        text += &layout.format_remark(0, DIM, &escape_untrusted(problem));
    }
    text
}

impl UserSum {
    fn format_count(&self, count: usize) -> String {
        if self.is_total {
            String::new()
        } else {
            count.to_string()
        }
    }

    fn format_amount(&self, value: Option<f64>, format: fn(f64) -> String) -> String {
        mark_lower_bound(format_optional(value, format), self.is_lower_bound)
    }
}

fn format_hours(seconds: f64) -> String {
    format_number(seconds / SECONDS_PER_HOUR, 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        fleet::testing::{build_fleet, make_busy_gpu},
        terminal::snapshot::compare_report,
    };

    #[test]
    fn truncated_job_list_keeps_user_sums() {
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
        let fleet = build_fleet(&[("node1", &[make_busy_gpu("ana", 90.0)])]);
        let users = sum_users(&Rows::new(&fleet), None, Some(&usage));
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
        let users = super::sum_users(&Rows::new(&fleet), None, Some(&partial));
        compare_report("fleet_users", |terminal| {
            format_table_of_users(&users, &build_totals(&partial), &[], terminal)
        });
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
        let sums: Vec<_> = build_totals(&usage)
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
        let table = format_table_of_users(&[], &build_totals(&usage), &[], None);
        assert!(
            table.contains("6 more") && table.contains("Total"),
            "{table}"
        );
        // Pods whose names are cut to the same text share a row, which contains their sum.
        let worker = |number: u32| {
            serde_json::from_value(pod(&format!("nccl-test-launcher-worker-{number}"), 1800.0))
        };
        let pods = FleetUsage {
            owners: vec![worker(0).unwrap(), worker(1).unwrap()],
            ..usage
        };
        let fleet = build_fleet(&[]);
        let sums: Vec<_> = super::sum_users(&Rows::new(&fleet), None, Some(&pods))
            .iter()
            .map(|sum| sum.gpu_s)
            .collect();
        assert_eq!(sums, [Some(3600.0)]);
    }
}
