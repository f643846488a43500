//! Expected output in files next to the tests. `GPUMON_UPDATE_SNAPSHOTS=1` rewrites them.

use std::{
    env, fs,
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::support::{FakeNvml, stderr_text, stdout_text};

/// Runs all command lines in `forms` with `scenario`, and compares their output with the file
/// `name`. Counts that can grow over time are removed from the output first, even if they are still
/// zero.
#[track_caller]
pub(super) fn check_snapshot(name: &str, scenario: &str, forms: &[&str]) {
    compare_with_file(name, scenario, forms, |fake, forms| {
        remove_counts(&collect_output(fake, forms), |_| true)
    });
}

/// Compares the output for a machine that was started two minutes ago, so that the driver's buffers
/// are full. Counts that can grow over time are removed, unless they are still zero.
#[track_caller]
pub(super) fn check_snapshot_after_two_minutes(name: &str, scenario: &str, forms: &[&str]) {
    let start = SystemTime::now() - Duration::from_mins(2);
    let start_ms = start.duration_since(UNIX_EPOCH).unwrap().as_millis();
    let scenario = format!("start_ms = {start_ms}\n{scenario}");
    compare_with_file(name, &scenario, forms, |fake, forms| {
        remove_counts(&collect_output(fake, forms), |count| count != "0")
    });
}

/// Removes the counts from lines such as `Data Tx: COUNT KiB` and `SW Power Capping : COUNT us`, if
/// `is_removed` returns `true` for them.
fn remove_counts(output: &str, is_removed: fn(&str) -> bool) -> String {
    let remove_count = |line: &str| {
        let (text, unit) = line.rsplit_once(' ')?;
        let (name, count) = text.rsplit_once(' ')?;
        let grows = matches!(unit, "KiB" | "us")
            && count.parse::<u64>().is_ok()
            && ["Data ", "Raw ", "Capping", "Slowdown"]
                .iter()
                .any(|what| name.contains(what));
        (grows && is_removed(count)).then(|| format!("{name} COUNT {unit}"))
    };
    output
        .lines()
        .map(|line| remove_count(line).unwrap_or_else(|| line.to_owned()) + "\n")
        .collect()
}

#[track_caller]
fn compare_with_file(
    name: &str,
    scenario: &str,
    forms: &[&str],
    take: impl Fn(&FakeNvml, &[&str]) -> String,
) {
    let fake = FakeNvml::new(scenario);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/end-to-end/snapshots/{name}.txt"));
    if env::var_os("GPUMON_UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, take(&fake, forms)).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    // Some counters change a tenth of a second after the start. Only on a busy machine do commands
    // take that long. So if the output differs, the commands are run again.
    let mut shown = take(&fake, forms);
    for _ in 1..5 {
        if shown == kept {
            break;
        }
        shown = take(&fake, forms);
    }
    assert_same_lines(&kept, &shown);
}

/// Returns the output of all command lines in `forms`, with their exit codes.
pub(super) fn collect_output(fake: &FakeNvml, forms: &[&str]) -> String {
    forms
        .iter()
        .map(|form| command_output(fake, form))
        .collect()
}

fn command_output(fake: &FakeNvml, form: &str) -> String {
    let words: Vec<String> = form
        .split_whitespace()
        .map(|word| insert_every_field(fake, word))
        .collect();
    let behind: Vec<&str> = ["smi"]
        .into_iter()
        .chain(words.iter().map(String::as_str))
        .collect();
    let output = fake.gpumon_command(&behind).output().unwrap();
    let code = output.status.code().unwrap();
    let errors = stderr_text(&output)
        .lines()
        .map(|line| format!("stderr: {line}\n"))
        .collect::<Vec<_>>()
        .concat();
    let text = if form.starts_with("topo -m") {
        remove_network_cards(&stdout_text(&output))
    } else {
        stdout_text(&output)
    };
    mask_times(&format!(
        "##### nvidia-smi {form} [exit {code}]\n{text}{errors}"
    ))
}

/// Replaces `EVERY` in `--query-gpu=EVERY` with the fields that the help lists. If a field has
/// several names, only the first is used.
fn insert_every_field(fake: &FakeNvml, word: &str) -> String {
    let Some(query) = word
        .strip_prefix("--query-")
        .and_then(|word| word.strip_suffix("=EVERY"))
    else {
        return word.to_owned();
    };
    let help = stdout_text(
        &fake
            .gpumon_command(&["smi", &format!("--help-query-{query}")])
            .output()
            .unwrap(),
    );
    // The help has an empty line before each name, but not before the values of a field.
    let entries = help.split("\n\n").filter(|entry| entry.starts_with('"'));
    let names: Vec<&str> = entries
        .filter_map(|entry| entry.split('"').nth(1))
        .collect();
    let names: Vec<&str> = names
        .into_iter()
        .filter(|name| *name != "timestamp")
        .collect();
    assert!(!names.is_empty(), "{help}");
    format!("--query-{query}={}", names.join(","))
}

/// Removes the parts of a text that depend on the time.
pub(super) fn mask_times(text: &str) -> String {
    text.lines().map(|line| mask_time(line) + "\n").collect()
}

/// Removes this machine's own network cards from a matrix.
pub(super) fn remove_network_cards(text: &str) -> String {
    let heading = text
        .lines()
        .find(|line| line.contains("CPU Affinity"))
        .unwrap_or_default();
    let is_card = |cell: &str| cell.starts_with("NIC");
    let cards: Vec<usize> = heading
        .split('\t')
        .enumerate()
        .filter(|(_, cell)| is_card(cell))
        .map(|(place, _)| place)
        .collect();
    let mut text = text.to_owned();
    if let (false, Some(legend)) = (cards.is_empty(), text.find("\nNIC Legend:")) {
        text.truncate(legend);
    }
    let line = |line: &str| {
        let kept = line
            .split('\t')
            .enumerate()
            .filter(|(place, _)| !cards.contains(place));
        kept.map(|(_, cell)| cell).collect::<Vec<_>>().join("\t") + "\n"
    };
    text.lines()
        .filter(|line| !is_card(line))
        .map(line)
        .collect()
}

/// Replaces lines with times: the first line of the summary, and time stamps.
fn mask_time(line: &str) -> String {
    const DAYS: [&str; 7] = ["Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "];
    const CLOCKS: [&str; 2] = ["Timestamp  ", "<timestamp>"];
    // The time at which pages were retired is in the scenario's year. It can differ by a second.
    const RETIRED_YEAR: &str = " 1970,";
    const RETIRED_TIME: &str = "Thu Jan  1 00:29:55";
    if let Some(end) = line.find(RETIRED_YEAR) {
        let start = end.saturating_sub(RETIRED_TIME.len());
        return format!("{}TIME{}", &line[..start], &line[end..]);
    }
    if DAYS.iter().any(|day| line.starts_with(day)) || CLOCKS.iter().any(|word| line.contains(word))
    {
        return format!(
            "{}TIME",
            line.split(char::is_alphanumeric).next().unwrap_or_default()
        );
    }
    line.to_owned()
}

/// Compares line by line, so that a failure shows the first difference.
#[track_caller]
pub(super) fn assert_same_lines(expected: &str, shown: &str) {
    let (mut ours, mut theirs) = (shown.lines(), expected.lines());
    let mut form = String::new();
    for number in 1.. {
        let (line, kept) = (ours.next(), theirs.next());
        if line.is_none() && kept.is_none() {
            return;
        }
        if let Some(title) = line.filter(|line| line.starts_with("#####")) {
            title.clone_into(&mut form);
        }
        assert_eq!(
            line, kept,
            "line {number} in {form} differs; GPUMON_UPDATE_SNAPSHOTS=1 updates the snapshot"
        );
    }
}

/// Returns whether the server's records are complete enough for `smi -q` to work without NVML.
pub(super) fn server_has_all_records(fake: &FakeNvml) -> bool {
    let mut look = fake.gpumon_command(&["smi", "-q"]);
    let output = look
        .env("GPUMON_NVML_LIB", "/nonexistent/library.so")
        .output()
        .unwrap();
    output.status.success() && !stdout_text(&output).contains("Unknown Error")
}

#[test]
fn network_cards_of_this_machine_are_left_out() {
    let with = "\t\u{1b}[4mGPU0\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA \
                ID\u{1b}[0m\nGPU0\t X \tPIX\tSYS\t0-31\t0\t\tN/A\nNIC0\tPIX\t X \
                \tSYS\t\t\t\t\nNIC1\tSYS\tSYS\t X \t\t\t\t\n\nLegend:\n\n  X    = Self\n\nNIC \
                Legend:\n\n  NIC0: mlx5_0\n\n";
    let without = "\t\u{1b}[4mGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\u{1b}[0m\n\
        GPU0\t X \t0-31\t0\t\tN/A\n\nLegend:\n\n  X    = Self\n";
    assert_eq!(remove_network_cards(with), without);
    assert_eq!(remove_network_cards(without), without);
}
