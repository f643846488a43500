//! Tables and JSON for the options of `gpumon fleet` that print the fleet once.

mod users;

use anyhow::{Context, anyhow};
use gpumon_fleet::{
    Range, Rows, SharedFleet,
    model::{Fleet, FleetSourceKind, FleetState},
};
use gpumon_probe::untrusted::escape_untrusted;
use tokio::{
    runtime::Runtime,
    time::{Duration, Instant, sleep},
};
use unicode_width::UnicodeWidthStr;

use super::OnceArgs;
use crate::{
    exit::{Failure, Result, usage},
    fleet::{
        columns::{build_gpu_columns, build_node_columns, format_model},
        filter::Filter,
        free::{FreeNode, WantedGpus, find_free_nodes},
        nodes::{Totals, list_gpus, list_nodes},
        text::format_bytes,
    },
    terminal::{
        columns::{Column, Columns, Field, format_optional, format_table, terminal_columns},
        output::{print, print_json},
        style::{ALARM, DIM, NOTICE, PLAIN, STRONG, paint},
        units::format_clock,
    },
};

/// The maximum time to wait for the first readings from Prometheus.
const READ_TIMEOUT: Duration = Duration::from_secs(15);
/// The maximum time to wait for hosts to respond. Hosts respond one by one; those without a
/// response are listed as missing.
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
        let users = users::sum_users(&rows, shown, usage.as_deref().ok());
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
            .map(users::build_totals)
            .unwrap_or_default();
        return print(&users::format_table_of_users(
            &users, &totals, &why, terminal,
        ));
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
    if args.gpus && !rows.lists_gpus() {
        return "There are too many GPUs to list: only nodes were read. Use --table, or --json for \
                one node.\n"
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

/// Returns why nothing could be read: the reason for each host if known, otherwise the problems of
/// the whole source.
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

/// Returns the fleet as soon as a node is known, or when the time limit is reached.
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
    let sizes = totals.format_sizes();
    let place = format!("{source}  {time}");
    let begin = format!("{}  {sizes}", paint(STRONG, "fleet"));
    let first = Columns::empty(terminal).append_or_wrap(&(begin + &state), 0, &paint(DIM, &place));
    let mut second = String::new();
    for part in totals.format_parts() {
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
    crate::terminal::style::strip_styles(text.rsplit('\n').next().unwrap_or_default()).width()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fleet::testing::{ExampleGpu, build_fleet, make_busy_gpu},
        terminal::snapshot::compare_report,
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
            compare_report(name, |terminal| format_lines(&args, &rows, None, terminal));
        }
        let wanted = WantedGpus {
            gpus: 1,
            memory_bytes: 0,
        };
        let free = find_free_nodes(&rows, wanted, None);
        compare_report("fleet_free", |terminal| format_free_nodes(&free, terminal));
    }
}
