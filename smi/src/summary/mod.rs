//! The summary, which consists of tables for GPUs, MIG devices (if any), and processes.

mod gpus;

use std::{collections::HashMap, fmt::Write};

use gpumon_probe::vendor::nvml::query::{Answer, Code, SystemQuery};
use gpus::{Process, Row};

use super::{Context, list::tool_version, release::VERSIONS_RENAMED};

const WIDTH: usize = 89;

/// Returns the complete text of one summary.
pub(crate) fn render_summary(context: &Context<'_>) -> String {
    let rows = context.map_gpus(|gpu| Row::read(context, gpu));
    let mut out = render_head(context);
    for row in &rows {
        out.push_str(&row.text);
    }
    out.push_str(&gpus::render_mig_table(&rows));
    out.push_str(&render_process_table(context, &rows));
    for row in rows.iter().filter(|row| row.inforom_is_corrupt) {
        let _ = writeln!(
            out,
            "WARNING: infoROM is corrupted at gpu {}",
            shorten_bus_id(&row.bus_id)
        );
    }
    out
}

fn render_head(context: &Context<'_>) -> String {
    let text = |query| {
        context
            .run_system_query(query)
            .ok()
            .and_then(|value| value.text().map(str::to_owned))
    };
    let driver = text(SystemQuery::DriverVersion).unwrap_or_else(|| "N/A".to_owned());
    let tool = tool_version(context).unwrap_or_else(|| driver.clone());
    let cuda = context.cuda_version().unwrap_or_else(|_| "N/A".to_owned());
    let date = context.now.strftime("%a %b %e %H:%M:%S %Y");
    let line = "-".repeat(WIDTH);
    let versions = if context.release() < VERSIONS_RENAMED {
        format!("{tool:<22} Driver Version: {driver:<14} CUDA Version: {cuda:<8}")
    } else {
        format!("{tool:<22} KMD Version: {driver:<13} CUDA UMD Version: {cuda:<8}")
    };
    format!(
        "{date}       \n+{line}+\n| NVIDIA-SMI {versions} |\n{border}| GPU  Name                 \
         Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n| Fan  Temp   \
         Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. \
         |\n|                                         |                        |               MIG \
         M. \
         |\n|=========================================+========================+======================|\n",
        border = gpus::border_line(),
    )
}

// Cells of the summary: text truncated to a width, and words for missing values.

/// Converts bytes to MiB, rounded up.
pub(crate) fn to_mib(bytes: i128) -> i128 {
    (bytes + 1024 * 1024 - 1) / (1024 * 1024)
}

/// Returns the word that replaces a missing value in a narrow cell.
pub(crate) fn find_replacement_word(code: Code) -> &'static str {
    if code == Code::NOT_SUPPORTED {
        "N/A"
    } else {
        "ERR!"
    }
}

pub(crate) fn format_number(
    answer: &Answer,
    place: usize,
    show: impl FnOnce(i128) -> String,
) -> String {
    match answer {
        Ok(value) => value
            .number_at(place)
            .map_or_else(|| "N/A".to_owned(), show),
        Err(code) => find_replacement_word(*code).to_owned(),
    }
}

/// Truncates text to `width` by replacing its end with dots.
pub(crate) fn cut_end(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 3).chain("...".chars()).collect()
}

/// Truncates text to `width` by replacing its start with dots.
pub(crate) fn cut_start(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    "..."
        .chars()
        .chain(text.chars().skip(count - (width - 3)))
        .collect()
}

/// Shortens a bus ID's domain from eight to four digits, if the first four digits are zeros.
pub(crate) fn shorten_bus_id(bus_id: &str) -> &str {
    bus_id
        .strip_prefix("0000")
        .filter(|rest| rest.starts_with(|c: char| c != ':'))
        .unwrap_or(bus_id)
}

// The summary's table of processes.

fn render_process_table(context: &Context<'_>, rows: &[Row]) -> String {
    let line = "-".repeat(WIDTH);
    let mut out = format!(
        "\n+{line}+\n| \
         Processes:                                                                              \
         |\n|  GPU   GI   CI              PID   Type   Process name                        GPU \
         Memory |\n|        ID   ID                                                               \
         Usage      |\n|{}|\n",
        "=".repeat(WIDTH)
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
        name = cut_start(name, 32),
    )
}

/// Returns a process's name for display. The user who started the process chooses its name, so
/// control characters are removed before they reach the terminal.
fn format_name(context: &Context<'_>, pid: u32) -> String {
    match context.run_system_query(SystemQuery::ProcessName(pid)) {
        Ok(value) => value.text().unwrap_or("-").replace(char::is_control, "?"),
        Err(code) => super::error_messages::format_bracketed(code),
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod text_tests {
    use super::*;

    #[test]
    fn long_text_is_cut_with_dots() {
        assert_eq!(
            cut_end("NVIDIA RTX PRO 6000 Blackwell Server Edition", 27),
            "NVIDIA RTX PRO 6000 Blac..."
        );
        assert_eq!(cut_end("NVIDIA H200", 27), "NVIDIA H200");
        assert_eq!(
            cut_start("/home/ana/micromamba/envs/sam6d/bin/python", 32),
            "...romamba/envs/sam6d/bin/python"
        );
        assert_eq!(
            cut_start("/usr/libexec/gnome-initial-setup", 32),
            "/usr/libexec/gnome-initial-setup"
        );
        assert_eq!(shorten_bus_id("00000000:65:00.0"), "0000:65:00.0");
    }
}
