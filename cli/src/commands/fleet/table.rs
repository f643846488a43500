//! Tables and JSON for the options of `gpumon fleet` that print the fleet once.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, anyhow};
use gpumon_fleet::{
    Range, Rows, SharedFleet,
    model::{
        Amounts, Fleet, FleetSourceKind, FleetState, FleetUsage, GpuState, UsageGroup, add_amounts,
    },
};
use gpumon_probe::untrusted::escape_untrusted;
use serde::Serialize;
use tokio::{
    runtime::Runtime,
    time::{Duration, Instant, sleep},
};
use unicode_width::UnicodeWidthStr;

use super::OnceArgs;
use crate::{
    exit::{Failure, Result, usage},
    fleet::{
        filter::Filter,
        nodes::{FreeNode, Totals, WantedGpus, find_free_nodes, list_gpus, list_nodes},
        text::{
            build_gpu_columns, build_node_columns, describe_owner, format_bytes, format_model,
            mark_lower_bound,
        },
    },
    terminal::{
        columns::{Column, Columns, Field, format_number, format_table, terminal_columns},
        line::{ALARM, DIM, NOTICE, PLAIN, STRONG, paint},
        output::{print, print_json},
        units::{format_clock, format_energy_with_cost, format_optional},
    },
};

/// The maximum time to wait for the first readings from Prometheus.
const READ_TIMEOUT: Duration = Duration::from_secs(15);
/// The maximum time to wait until all hosts have responded. Hosts that have not responded by then
/// are listed as missing.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The length of the span over which usage is shown, in seconds.
const USAGE_SPAN_S: u64 = 86_400;

pub(super) fn run(args: &OnceArgs, reader: &SharedFleet) -> Result {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let printed = print_once(args, reader, &runtime);
    runtime.block_on(reader.close());
    printed
}

fn print_once(args: &OnceArgs, reader: &SharedFleet, runtime: &Runtime) -> Result {
    let filter = Filter::parse(&args.words.join(" ")).map_err(|why| usage!(why))?;
    let fleet = runtime.block_on(read_fleet(reader));
    if fleet.state == FleetState::Outdated || fleet.state == FleetState::Loading {
        return Err(anyhow!(describe_failure(&fleet)).into());
    }
    for problem in &fleet.problems {
        crate::exit::print_message(problem);
    }
    let rows = Rows::new(&fleet);
    let shown = filter.select_rows(&rows);
    let shown = shown.as_deref();
    let terminal = terminal_columns();
    if let Some(gpus) = args.free {
        let wanted = WantedGpus {
            gpus,
            memory_bytes: args.memory.unwrap_or(0),
        };
        let found = find_free_nodes(&rows, wanted, shown);
        if args.json {
            print_json(&found)?;
        } else {
            print(&format_free_nodes(&found, terminal))?;
        }
        return Failure::check_exit_code(u8::from(found.is_empty()));
    }
    if args.users {
        let range = Range::new(USAGE_SPAN_S).context("a day")?;
        let usage = runtime.block_on(reader.fetch_usage(range));
        let users = sum_users(&rows, shown, usage.as_deref().ok());
        let why = match &usage {
            Ok(usage) => usage.problems.clone(),
            Err(why) => vec![why.to_string()],
        };
        if args.json {
            for problem in &why {
                crate::exit::print_message(problem);
            }
            return print_json(&users);
        }
        let totals = usage
            .as_deref()
            .ok()
            .filter(|_| shown.is_none())
            .map(build_user_totals)
            .unwrap_or_default();
        return print(&format_table_of_users(&users, &totals, &why, terminal));
    }
    if args.json {
        return print_json(&*fleet);
    }
    let head = format_head(&rows, shown, terminal);
    print(&(head + &format_lines(args, &rows, shown, terminal)))
}

/// Returns one line per node or per GPU.
fn format_lines(
    args: &OnceArgs,
    rows: &Rows<'_>,
    shown: Option<&[bool]>,
    terminal: Option<usize>,
) -> String {
    if args.gpus && !rows.has_gpu_rows() {
        return "The fleet has too many GPUs to list, so only the nodes were read. Use --table \
         to print one line per node.\n"
            .to_owned();
    }
    let (lines, columns) = if args.gpus {
        (list_gpus(rows, shown, args.sort), build_gpu_columns())
    } else {
        (list_nodes(rows, shown, args.sort), build_node_columns())
    };
    if lines.is_empty() {
        return "No GPU matches.\n".to_owned();
    }
    format_table(&columns, &lines, terminal, |columns, line| {
        let troubles = line.format_problems();
        if args.gpus || troubles.is_empty() {
            return String::new();
        }
        let style = if line.is_alarming() { ALARM } else { NOTICE };
        columns.format_remark(2, style, &troubles)
    })
}

/// Returns the reason why nothing could be read: the reason for each host if the fleet consists of
/// hosts, otherwise the problems of the whole fleet.
fn describe_failure(fleet: &Fleet) -> String {
    let reasons: Vec<&str> = fleet.nodes.reasons.values().map(String::as_str).collect();
    if fleet.source.kind == FleetSourceKind::Hosts && !reasons.is_empty() {
        return reasons.join("\n");
    }
    if fleet.problems.is_empty() {
        return "no readings arrived in time; try again".to_owned();
    }
    fleet.problems.join("\n")
}

fn format_free_nodes(found: &[FreeNode], terminal: Option<usize>) -> String {
    if found.is_empty() {
        return "No node has the requested number of free GPUs.\n".to_owned();
    }
    let fields: [Field<FreeNode>; 5] = [
        (Column::new_left_aligned("Node", 0), |kind| {
            escape_untrusted(&kind.node)
        }),
        (Column::new_left_aligned("Free", 0), |kind| {
            format!("{} of {}", kind.free, kind.gpus)
        }),
        (Column::new_left_aligned("Model", 2), |kind| {
            format_model(kind.model.as_deref())
        }),
        (Column::new_right_aligned("Memory each", 1), |kind| {
            format_optional(kind.memory_bytes, format_bytes)
        }),
        (Column::new_left_aligned("GPU", 3), |kind| {
            let indexes: Vec<String> = kind.indexes.iter().map(u32::to_string).collect();
            indexes.join(",")
        }),
    ];
    format_table(&fields, found, terminal, |_, _| String::new())
}

/// Returns the fleet once it has been loaded, or in its current state when the time limit is
/// reached.
async fn read_fleet(reader: &SharedFleet) -> std::sync::Arc<Fleet> {
    let end = Instant::now() + READ_TIMEOUT;
    reader.wait_until_settled(SETTLE_TIMEOUT).await;
    loop {
        let fleet = reader.fetch_current_fleet().await;
        if fleet.state != FleetState::Loading || Instant::now() >= end {
            return fleet;
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Returns the two heading lines, followed by an empty line.
fn format_head(rows: &Rows<'_>, shown: Option<&[bool]>, terminal: Option<usize>) -> String {
    let totals = Totals::new(rows, shown);
    let fleet = rows.fleet;
    let time = format_clock(fleet.at_ms, gpumon_probe::model::now_ms());
    let source = match fleet.source.kind {
        FleetSourceKind::Prometheus => escape_untrusted(&fleet.source.name),
        FleetSourceKind::Hosts => format!("{} over ssh", escape_untrusted(&fleet.source.name)),
    };
    let state = match fleet.state {
        FleetState::Partial => format!("  {}", paint(NOTICE, "incomplete")),
        _ => String::new(),
    };
    let sizes = totals.format_node_and_gpu_counts();
    let place = format!("{source}  {time}");
    let begin = format!("{}  {sizes}", paint(STRONG, "fleet"));
    let first = Columns::empty(terminal).append_or_wrap(&(begin + &state), 0, &paint(DIM, &place));
    let mut second = String::new();
    for part in totals.format_states_and_readings() {
        let style = if part.ends_with(" lost") {
            ALARM
        } else {
            PLAIN
        };
        let is_room =
            terminal.is_none_or(|room| last_line_width(&second) + 2 + part.width() <= room);
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

fn last_line_width(text: &str) -> usize {
    crate::terminal::line::strip_styles(text.rsplit('\n').next().unwrap_or_default()).width()
}

// The table of users: their GPUs now, and their use in the last 24 hours.

const SECONDS_PER_HOUR: f64 = 3600.0;

/// The totals for one user, or for an owner whose user is unknown.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
struct UserSum {
    /// The name of the user, or of the owner if the user is unknown.
    user: String,
    /// The number of GPUs that the user currently holds.
    gpus: u32,
    /// The number of idle GPUs, counted among the GPUs that the user holds.
    idle: u32,
    nodes: usize,
    /// GPU time in the last 24 hours, in seconds; `null` if unknown.
    gpu_s: Option<f64>,
    active_gpu_s: Option<f64>,
    energy_joules: Option<f64>,
    /// Whether GPU time and energy are lower bounds, because some usage could not be read.
    is_lower_bound: bool,
    /// Whether this row shows only usage, and not how many GPUs are held or idle.
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
fn sum_users(rows: &Rows<'_>, shown: Option<&[bool]>, usage: Option<&FleetUsage>) -> Vec<UserSum> {
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
            if rows.state(row) == GpuState::Idle {
                sum.idle += rows.count_gpus(row);
            }
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

/// Returns a row with the total of all users. If some owners without a known user are not listed,
/// one row for all of these owners precedes the total.
fn build_user_totals(usage: &FleetUsage) -> Vec<UserSum> {
    let is_lower_bound = usage.state == FleetState::Partial;
    let mut totals = Vec::new();
    if let Some(group) = usage.users.iter().find(|group| group.name.is_none()) {
        let listed = usage.owners.iter();
        let unknown = listed.filter(|used| used.owner.user.is_none());
        let rest = group.subtract_part(&UsageGroup::sum_owners(unknown));
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
fn format_table_of_users(
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
    use super::*;
    use crate::{
        fleet::testing::{ExampleGpu, build_fleet, make_busy_gpu},
        terminal::snapshot::assert_report_matches_snapshot,
    };

    #[test]
    fn tables_match_their_snapshots() {
        let alarming = ExampleGpu {
            condition: Some(("Xid 79", 3)),
            ..make_busy_gpu("chen", 40.0)
        };
        let fleet = build_fleet(&[
            (
                "node1",
                &[make_busy_gpu("ana", 90.0), ExampleGpu::default()],
            ),
            ("node2", &[alarming]),
            ("node3", &[]),
        ]);
        let rows = Rows::new(&fleet);
        for (name, gpus) in [("fleet_nodes", false), ("fleet_gpus", true)] {
            let args = OnceArgs {
                table: !gpus,
                gpus,
                users: false,
                free: None,
                memory: None,
                json: false,
                sort: crate::fleet::nodes::Sort::Worst,
                words: Vec::new(),
            };
            assert_report_matches_snapshot(name, |terminal| {
                format_lines(&args, &rows, None, terminal)
            });
        }
        let wanted = WantedGpus {
            gpus: 1,
            memory_bytes: 0,
        };
        let free = find_free_nodes(&rows, wanted, None);
        assert_report_matches_snapshot("fleet_free", |terminal| format_free_nodes(&free, terminal));
    }
}

#[cfg(test)]
mod users_tests {
    use serde_json::json;

    use super::*;
    use crate::{
        fleet::testing::{build_fleet, make_busy_gpu},
        terminal::snapshot::assert_report_matches_snapshot,
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
        assert_report_matches_snapshot("fleet_users", |terminal| {
            format_table_of_users(&users, &build_user_totals(&partial), &[], terminal)
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
        let sums: Vec<_> = build_user_totals(&usage)
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
        let table = format_table_of_users(&[], &build_user_totals(&usage), &[], None);
        assert!(
            table.contains("6 more") && table.contains("Total"),
            "{table}"
        );
        // Pods with the same shortened name are combined into one row, which contains the sum of
        // their values.
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
