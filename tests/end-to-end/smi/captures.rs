//! Compares gpumon's output with output of NVIDIA's nvidia-smi that was captured on other machines.
//! The fake driver reports the values that the drivers of these machines had reported.
//!
//! Each folder of `captures` has a scenario of the fake driver with the values of NVML, and a file
//! for each command line. The first line of a file is the command, and the output follows. If
//! values changed after `-q` was captured, they are listed between the command and the output, each
//! in a line `! FUNCTION = VALUE`. For a new command line, add a new file.
//!
//! The captures come from users of `github.com/utkuozdemir/nvidia_gpu_exporter` (MIT), who masked
//! serials and UUIDs.

mod differences;

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::snapshots;
use crate::support::{FakeNvml, run_in_parallel, stdout_text};

/// One file of a capture.
struct CapturedOutput {
    capture: String,
    name: String,
    scenario: String,
    arguments: Vec<String>,
    printed: String,
}

fn list_captured_outputs(folder: &Path) -> Vec<CapturedOutput> {
    let scenario = fs::read_to_string(folder.join("scenario.toml")).unwrap();
    let form = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let (command, mut printed) = text.split_once('\n').unwrap();
        let mut scenario = scenario.clone();
        while let Some((moved, rest)) = printed
            .strip_prefix("! ")
            .and_then(|rest| rest.split_once('\n'))
        {
            scenario = replace_value(&scenario, moved);
            printed = rest;
        }
        CapturedOutput {
            capture: stem_text(folder),
            name: stem_text(&path.with_extension("")),
            scenario,
            arguments: command.split(' ').skip(2).map(str::to_owned).collect(),
            printed: printed.to_owned(),
        }
    };
    let texts =
        list_paths(folder).filter(|path| path.extension().is_some_and(|kind| kind == "txt"));
    let forms: Vec<_> = texts.map(form).collect();
    assert!(
        !forms.is_empty(),
        "there are no captures in {}",
        folder.display()
    );
    forms
}

fn list_paths(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
}

fn stem_text(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// Returns the scenario with one value replaced. `line` contains an existing key and its new value.
#[track_caller]
fn replace_value(scenario: &str, line: &str) -> String {
    let key = line.split(" = ").next().unwrap();
    let is_of_key = |own: &str| {
        own.strip_prefix(key)
            .is_some_and(|rest| rest.starts_with(" = "))
    };
    assert!(
        scenario.lines().any(is_of_key),
        "the key {key} is missing in the scenario"
    );
    scenario
        .lines()
        .map(|own| if is_of_key(own) { line } else { own }.to_owned() + "\n")
        .collect()
}

/// Converts a table with one row into one line per column, so that differences are easy to find.
fn split_columns_into_lines(csv: &str) -> String {
    let mut lines = csv.lines().map(|line| line.split(", "));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else {
        return csv.to_owned();
    };
    let line = |(name, value): (&str, &str)| {
        if name == "timestamp" {
            String::new()
        } else {
            format!("{name} : {value}\n")
        }
    };
    names.zip(values).map(line).collect()
}

impl CapturedOutput {
    /// Returns all differences from the real tool's output except the known ones. Returns `None` if
    /// there are no others.
    fn find_differences(&self) -> Option<String> {
        let fake = FakeNvml::new(&self.scenario);
        let arguments: Vec<&str> = ["smi"]
            .into_iter()
            .chain(self.arguments.iter().map(String::as_str))
            .collect();
        let shown = stdout_text(&fake.gpumon_command(&arguments).output().unwrap());
        let comparable = |text: &str| {
            let text = if self.name.starts_with("query-") {
                split_columns_into_lines(text)
            } else {
                text.to_owned()
            };
            let text = if self.name == "topo" {
                snapshots::remove_network_cards(&text)
            } else {
                text
            };
            snapshots::mask_times(text.trim_end())
        };
        let expected = match differences::apply_differences(
            &self.capture,
            &self.name,
            comparable(&self.printed),
        ) {
            Ok(expected) => expected,
            Err(stale) => return Some(format!("{} of {}: {stale}", self.name, self.capture)),
        };
        let shown = comparable(&shown);
        let apart: Vec<String> = diff_lines(&expected, &shown);
        (!apart.is_empty())
            .then(|| format!("{} of {}:\n{}", self.name, self.capture, apart.join("\n")))
    }
}

/// Returns the lines that are only in one of two texts, in order: `- ` for the first, `+ ` for the
/// second.
fn diff_lines(first: &str, second: &str) -> Vec<String> {
    let (first, second): (Vec<_>, Vec<_>) = (first.lines().collect(), second.lines().collect());
    // `common[i][j]` is the length of the longest common subsequence of the lines `first[i..]` and
    // `second[j..]`.
    let mut common = vec![vec![0; second.len() + 1]; first.len() + 1];
    for i in (0..first.len()).rev() {
        for j in (0..second.len()).rev() {
            common[i][j] = if first[i] == second[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut apart) = (0, 0, Vec::new());
    while i < first.len() || j < second.len() {
        if i < first.len() && j < second.len() && first[i] == second[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == second.len() || (i < first.len() && common[i + 1][j] >= common[i][j + 1]) {
            apart.push(format!("- {}", first[i]));
            i += 1;
        } else {
            apart.push(format!("+ {}", second[j]));
            j += 1;
        }
    }
    apart
}

#[test]
fn captured_smi_outputs_match_except_listed_differences() {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end-to-end/captures");
    let forms: Vec<CapturedOutput> = list_paths(&captures)
        .flat_map(|folder| list_captured_outputs(&folder))
        .collect();
    assert!(!forms.is_empty(), "there are no captures");
    let complaints = std::sync::Mutex::new(Vec::new());
    run_in_parallel(2, &forms, |form| {
        complaints.lock().unwrap().extend(form.find_differences());
    });
    let mut complaints = complaints.into_inner().unwrap();
    complaints.sort();
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}

#[test]
fn diff_contains_unmatched_lines() {
    assert_eq!(diff_lines("a\nb\nc", "a\nc\nd"), ["- b", "+ d"]);
    assert!(diff_lines("a\nb", "a\nb").is_empty());
}
