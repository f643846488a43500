//! What was shown once and found right, kept beside the tests. `GPUMON_UPDATE_SNAPSHOTS=1` writes it anew.

use std::{env, fs, path::PathBuf};

use crate::support::{Fake, stderr, stdout};

/// Compares all forms over this scenario with the file of this name.
#[track_caller]
pub(super) fn check(name: &str, scenario: &str, forms: &[&str]) {
    let fake = Fake::new(scenario);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../tests/end-to-end/snapshots/{name}.txt"));
    if env::var_os("GPUMON_UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, take(&fake, forms)).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    // Some counters move a tenth of a second after the start, before which only a busy machine is not done.
    let mut shown = take(&fake, forms);
    for _ in 1..5 {
        if shown == kept {
            break;
        }
        shown = take(&fake, forms);
    }
    assert_same(&kept, &shown);
}

/// Everything that these forms show, with their exit codes.
pub(super) fn take(fake: &Fake, forms: &[&str]) -> String {
    forms.iter().map(|form| one(fake, form)).collect()
}

fn one(fake: &Fake, form: &str) -> String {
    let words: Vec<String> = form.split_whitespace().map(|word| with_every_field(fake, word)).collect();
    let behind: Vec<&str> = ["smi"].into_iter().chain(words.iter().map(String::as_str)).collect();
    let output = fake.gpumon(&behind).output().unwrap();
    let code = output.status.code().unwrap();
    let errors = stderr(&output).lines().map(|line| format!("stderr: {line}\n")).collect::<Vec<_>>().concat();
    without_time(&format!("##### nvidia-smi {form} [exit {code}]\n{}{errors}", stdout(&output)))
}

/// `--query-gpu=EVERY` with every field that the help lists, by its first name.
fn with_every_field(fake: &Fake, word: &str) -> String {
    let Some(query) = word.strip_prefix("--query-").and_then(|word| word.strip_suffix("=EVERY")) else {
        return word.to_owned();
    };
    let help = stdout(&fake.gpumon(&["smi", &format!("--help-query-{query}")]).output().unwrap());
    let names: Vec<&str> =
        help.lines().filter(|line| line.starts_with('"')).filter_map(|line| line.split('"').nth(1)).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| *name != "timestamp").collect();
    assert!(!names.is_empty(), "{help}");
    format!("--query-{query}={}", names.join(","))
}

/// The text without what changes with the clock.
pub(super) fn without_time(text: &str) -> String {
    text.lines().map(|line| masked(line) + "\n").collect()
}

/// A line that tells the time tells none: the summary's first, time stamps, and counters that run with the clock.
fn masked(line: &str) -> String {
    const DAYS: [&str; 7] = ["Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "];
    const CLOCKS: [&str; 2] = ["Timestamp  ", "<timestamp>"];
    if DAYS.iter().any(|day| line.starts_with(day)) || CLOCKS.iter().any(|word| line.contains(word)) {
        return format!("{}TIME", line.split(char::is_alphanumeric).next().unwrap_or_default());
    }
    line.to_owned()
}

/// Line by line, so that a difference is seen.
#[track_caller]
pub(super) fn assert_same(expected: &str, shown: &str) {
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
        assert_eq!(line, kept, "line {number}, in {form}; GPUMON_UPDATE_SNAPSHOTS=1 writes what is shown now");
    }
}

/// Whether a server's records are all that is needed: without a library there is nobody else to ask.
pub(super) fn answers_without_the_driver(fake: &Fake) -> bool {
    let mut look = fake.gpumon(&["smi", "-q"]);
    let output = look.env("GPUMON_NVML_LIB", "/nonexistent/library.so").output().unwrap();
    output.status.success() && !stdout(&output).contains("Unknown Error")
}
