//! Compares gpumon's output with that of NVIDIA's nvidia-smi on other machines, over the values
//! that their drivers had reported.
//!
//! Each folder of `captures` has a scenario of the fake driver with the values of NVML, and a file
//! for each form. The first line of a file is the command, and the output follows. Values that
//! changed after `-q` are between the two, each as `! FUNCTION = VALUE`. A new form is a new file.
//!
//! The captures come from users of `github.com/utkuozdemir/nvidia_gpu_exporter` (MIT), who masked
//! serials and UUIDs.

mod differences;

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::snapshots;
use crate::support::{Fake, in_parallel, stdout};

/// One file of a capture.
struct Form {
    capture: String,
    name: String,
    scenario: String,
    arguments: Vec<String>,
    printed: String,
}

fn forms(folder: &Path) -> Vec<Form> {
    let scenario = fs::read_to_string(folder.join("scenario.toml")).unwrap();
    let form = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let (command, mut printed) = text.split_once('\n').unwrap();
        let mut scenario = scenario.clone();
        while let Some((moved, rest)) = printed
            .strip_prefix("! ")
            .and_then(|rest| rest.split_once('\n'))
        {
            scenario = replaced(&scenario, moved);
            printed = rest;
        }
        Form {
            capture: name(folder),
            name: name(&path.with_extension("")),
            scenario,
            arguments: command.split(' ').skip(2).map(str::to_owned).collect(),
            printed: printed.to_owned(),
        }
    };
    let texts = paths(folder).filter(|path| path.extension().is_some_and(|kind| kind == "txt"));
    let forms: Vec<_> = texts.map(form).collect();
    assert!(!forms.is_empty(), "nothing in {}", folder.display());
    forms
}

fn paths(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// Returns the scenario with another value of an existing key.
#[track_caller]
fn replaced(scenario: &str, line: &str) -> String {
    let key = line.split(" = ").next().unwrap();
    let is_of_key = |own: &str| {
        own.strip_prefix(key)
            .is_some_and(|rest| rest.starts_with(" = "))
    };
    assert!(scenario.lines().any(is_of_key), "no {key} in the scenario");
    scenario
        .lines()
        .map(|own| if is_of_key(own) { line } else { own }.to_owned() + "\n")
        .collect()
}

/// Converts a table with one row into one line per column, so that differences are easy to find.
fn by_column(csv: &str) -> String {
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

impl Form {
    /// Returns the differences from the real tool's output, except for the listed ones; `None` if
    /// there are none.
    fn complaint(&self) -> Option<String> {
        let fake = Fake::new(&self.scenario);
        let arguments: Vec<&str> = ["smi"]
            .into_iter()
            .chain(self.arguments.iter().map(String::as_str))
            .collect();
        let shown = stdout(&fake.gpumon(&arguments).output().unwrap());
        let comparable = |text: &str| {
            let text = if self.name.starts_with("query-") {
                by_column(text)
            } else {
                text.to_owned()
            };
            let text = if self.name == "topo" {
                snapshots::without_cards(&text)
            } else {
                text
            };
            snapshots::without_time(text.trim_end())
        };
        let expected =
            match differences::applied(&self.capture, &self.name, comparable(&self.printed)) {
                Ok(expected) => expected,
                Err(stale) => return Some(format!("{} of {}: {stale}", self.name, self.capture)),
            };
        let shown = comparable(&shown);
        let apart: Vec<String> = diff(&expected, &shown);
        (!apart.is_empty())
            .then(|| format!("{} of {}:\n{}", self.name, self.capture, apart.join("\n")))
    }
}

/// Returns the lines that are only in one of two texts, in order: `- ` for the first, `+ ` for the
/// second.
fn diff(first: &str, second: &str) -> Vec<String> {
    let (first, second): (Vec<_>, Vec<_>) = (first.lines().collect(), second.lines().collect());
    // The length of the longest common subsequence of the lines from `i` and `j` on.
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
fn every_capture_is_printed_again_but_for_what_is_listed() {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end-to-end/captures");
    let forms: Vec<Form> = paths(&captures).flat_map(|folder| forms(&folder)).collect();
    assert!(!forms.is_empty(), "no captures");
    let complaints = std::sync::Mutex::new(Vec::new());
    in_parallel(2, &forms, |form| {
        complaints.lock().unwrap().extend(form.complaint());
    });
    let mut complaints = complaints.into_inner().unwrap();
    complaints.sort();
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}

#[test]
fn a_line_that_only_one_text_has_is_told() {
    assert_eq!(diff("a\nb\nc", "a\nc\nd"), ["- b", "+ d"]);
    assert!(diff("a\nb", "a\nb").is_empty());
}
