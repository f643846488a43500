//! The output of `gpumon fleet` that is printed once: tables or JSON.

mod users;

use anyhow::{Context, anyhow};
use gpumon_fleet::{
    Range, Rows, SharedFleet,
    model::{Fleet, FleetSourceKind, FleetState},
};
use gpumon_probe::untrusted::escaped;
use tokio::{
    runtime::Runtime,
    time::{Duration, Instant, sleep},
};
use unicode_width::UnicodeWidthStr;

use super::OnceArgs;
use crate::{
    exit::{Failure, Result, usage},
    fleet::{
        columns::{format_model, gpu_columns, node_columns},
        filter::Filter,
        free::{FreeNode, WantedGpus, free_nodes},
        nodes::{Totals, list_gpus, list_nodes},
        text::bytes,
    },
    terminal::{
        columns::{Column, Columns, Field, format_table, or_absent, terminal_columns},
        output::{print, print_json},
        style::{ALARM, DIM, NOTICE, PLAIN, STRONG, paint},
        units::clock,
    },
};

/// The time limit for the first readings from Prometheus.
const PATIENCE: Duration = Duration::from_secs(15);
/// The time limit for hosts to answer, which they do one by one. Hosts without an answer are listed
/// as missing.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(100);

/// The length of the usage that is shown, in seconds.
const USAGE_S: u64 = 86_400;

pub(super) fn run(args: &OnceArgs, reader: &SharedFleet) -> Result {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let printed = print_once(args, reader, &runtime);
    runtime.block_on(reader.end());
    printed
}

fn print_once(args: &OnceArgs, reader: &SharedFleet, runtime: &Runtime) -> Result {
    let filter = Filter::parse(&args.words.join(" ")).map_err(|why| usage!(why))?;
    let fleet = runtime.block_on(read(reader));
    if fleet.state == FleetState::Outdated || fleet.state == FleetState::Loading {
        return Err(anyhow!(describe_failure(&fleet)).into());
    }
    for problem in &fleet.problems {
        crate::exit::say(problem);
    }
    let rows = Rows::new(&fleet);
    let shown = filter.shown(&rows);
    let shown = shown.as_deref();
    let terminal = terminal_columns();
    if let Some(gpus) = args.free {
        let wanted = WantedGpus {
            gpus,
            memory_bytes: args.memory.unwrap_or(0),
        };
        let found = free_nodes(&rows, wanted, shown);
        if args.json {
            print_json(&found)?;
        } else {
            print(&free_text(&found, terminal))?;
        }
        return Failure::unless_success(u8::from(found.is_empty()));
    }
    if args.users {
        let range = Range::new(USAGE_S).context("a day")?;
        let usage = runtime.block_on(reader.usage(range));
        let users = users::users(&rows, shown, usage.as_deref().ok());
        let why = match &usage {
            Ok(usage) => usage.problems.clone(),
            Err(why) => vec![why.to_string()],
        };
        if args.json {
            for problem in &why {
                crate::exit::say(problem);
            }
            return print_json(&users);
        }
        let totals = usage
            .as_deref()
            .ok()
            .filter(|_| shown.is_none())
            .map(users::totals)
            .unwrap_or_default();
        return print(&users::text(&users, &totals, &why, terminal));
    }
    if args.json {
        return print_json(&*fleet);
    }
    let head = format_head(&rows, shown, terminal);
    print(&(head + &lines(args, &rows, shown, terminal)))
}

/// Returns a line per node, or per GPU.
fn lines(
    args: &OnceArgs,
    rows: &Rows<'_>,
    shown: Option<&[bool]>,
    terminal: Option<usize>,
) -> String {
    if args.gpus && !rows.is_by_gpu() {
        return "There are too many GPUs to list: nodes alone are read. Use --table, or --json for \
                one node.\n"
            .to_owned();
    }
    let (lines, columns) = if args.gpus {
        (list_gpus(rows, shown, args.sort), gpu_columns())
    } else {
        (list_nodes(rows, shown, args.sort), node_columns())
    };
    if lines.is_empty() {
        return "No GPU matches.\n".to_owned();
    }
    format_table(&columns, &lines, terminal, |columns, line| {
        let troubles = line.troubles();
        if args.gpus || troubles.is_empty() {
            return String::new();
        }
        let style = if line.is_alarming() { ALARM } else { NOTICE };
        columns.format_remark(2, style, &troubles)
    })
}

/// Returns the reason why nothing could be read: for each node if known, or else for the source.
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

fn free_text(found: &[FreeNode], terminal: Option<usize>) -> String {
    if found.is_empty() {
        return "No node has that many free GPUs.\n".to_owned();
    }
    let fields: [Field<FreeNode>; 5] = [
        (Column::align_left("Node", 0), |kind| escaped(&kind.node)),
        (Column::align_left("Free", 0), |kind| {
            format!("{} of {}", kind.free, kind.gpus)
        }),
        (Column::align_left("Model", 2), |kind| {
            format_model(kind.model.as_deref())
        }),
        (Column::align_right("Memory each", 1), |kind| {
            or_absent(kind.memory_bytes, bytes)
        }),
        (Column::align_left("GPU", 3), |kind| {
            let indexes: Vec<String> = kind.indexes.iter().map(u32::to_string).collect();
            indexes.join(",")
        }),
    ];
    format_table(&fields, found, terminal, |_, _| String::new())
}

/// Returns the fleet once any node is known, or at the end of the time limit.
async fn read(reader: &SharedFleet) -> std::sync::Arc<Fleet> {
    let end = Instant::now() + PATIENCE;
    reader.settled(SETTLED_WITHIN).await;
    loop {
        let fleet = reader.now().await;
        if fleet.state != FleetState::Loading || Instant::now() >= end {
            return fleet;
        }
        sleep(AGAIN).await;
    }
}

/// Returns the two heading lines, followed by an empty line.
fn format_head(rows: &Rows<'_>, shown: Option<&[bool]>, terminal: Option<usize>) -> String {
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
    let first = Columns::empty(terminal).append_or_wrap(&(begin + &state), 0, &paint(DIM, &place));
    let mut second = String::new();
    for part in totals.parts() {
        let style = if part.ends_with(" lost") {
            ALARM
        } else {
            PLAIN
        };
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
    crate::terminal::style::plain(text.rsplit('\n').next().unwrap_or_default()).width()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fleet::testing::{Example, busy, fleet},
        terminal::snapshot::compare_report,
    };

    #[test]
    fn tables_match_their_snapshots() {
        let alarming = Example {
            condition: Some(("Xid 79", 3)),
            ..busy("chen", 40.0)
        };
        let fleet = fleet(&[
            ("node1", &[busy("ana", 90.0), Example::default()]),
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
            compare_report(name, |terminal| lines(&args, &rows, None, terminal));
        }
        let wanted = WantedGpus {
            gpus: 1,
            memory_bytes: 0,
        };
        let free = free_nodes(&rows, wanted, None);
        compare_report("fleet_free", |terminal| free_text(&free, terminal));
    }
}
