//! The summary's table of processes.

use std::{collections::HashMap, fmt::Write};

use gpumon_probe::vendor::nvml::query::SystemQuery;

use super::{
    super::Context,
    gpus::{Process, Row},
    text::{self, to_mib},
};

pub(super) fn render_process_table(context: &Context<'_>, rows: &[Row]) -> String {
    let line = "-".repeat(super::WIDTH);
    let mut out = format!(
        "\n+{line}+\n| \
         Processes:                                                                              \
         |\n|  GPU   GI   CI              PID   Type   Process name                        GPU \
         Memory |\n|        ID   ID                                                               \
         Usage      |\n|{}|\n",
        "=".repeat(super::WIDTH)
    );
    let mut names = HashMap::new();
    let mut is_empty = true;
    for row in rows {
        for process in &row.processes {
            let name = names
                .entry(process.pid)
                .or_insert_with(|| format_name(context, process.pid));
            out.push_str(&format_process_line(row.index, process, name));
            is_empty = false;
        }
    }
    if is_empty {
        let _ = writeln!(out, "|  {:<87}|", "No running processes found");
    }
    let _ = writeln!(out, "+{line}+");
    out
}

fn format_process_line(gpu: u32, process: &Process, name: &str) -> String {
    // A number ends one column further left than `N/A`.
    let id = |id: Option<i128>| id.map_or_else(|| "N/A".to_owned(), |id| format!("{id} "));
    let memory = process.memory.map_or_else(
        || "N/A     ".to_owned(),
        |bytes| format!("{}MiB", to_mib(bytes)),
    );
    format!(
        "| {gpu:>4}   {gi:>3}  {ci:>3} {pid:>15} {kind:>6}   {name:<32} {memory:>13} |\n",
        gi = id(process.instance.map(|(gi, _)| gi)),
        ci = id(process.instance.map(|(_, ci)| ci)),
        pid = process.pid,
        kind = process.kind,
        name = text::cut_start(name, 32),
    )
}

/// Returns a process's name for display. The user who started the process chooses its name, so
/// control characters are removed before they reach the terminal.
fn format_name(context: &Context<'_>, pid: u32) -> String {
    match context.run_system_query(SystemQuery::ProcessName(pid)) {
        Ok(value) => value.text().unwrap_or("-").replace(char::is_control, "?"),
        Err(code) => super::super::return_code::format_bracketed(code),
    }
}
