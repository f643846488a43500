//! The settings files that are in use. Neither their values nor what is wrong in them is told, which can be anything.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use super::finding::Finding;
use crate::config::{self, Wanted};

/// The files, and what is wrong with them in one line.
pub(super) fn check(named: Option<&Path>) -> Vec<Finding> {
    let (files, unreadable) = config::read(named);
    let unreadable = unreadable.iter().map(|file| {
        Finding::warning(
            "settings",
            format!("a settings file cannot be read: {file}"),
            "run `gpumon config check`",
        )
    });
    let read = files.iter().map(|(path, parsed)| {
        let path = path.display();
        match parsed.mistakes.len() {
            0 => Finding::ok(
                "settings",
                format!("{path} sets {}", counted(parsed.entries.len(), "key")),
            ),
            mistakes => {
                let text = format!("{path} has {}", counted(mistakes, "mistake"));
                Finding::warning("settings", text, "run `gpumon config check`")
            }
        }
    });
    unreadable.chain(read).collect()
}

pub(super) fn paths(named: Option<&Path>) -> Vec<PathBuf> {
    config::find(named)
        .0
        .into_iter()
        .map(|file| file.path)
        .collect()
}

/// The data directory that the files name, where one does.
pub(super) fn data_dir(named: Option<&Path>) -> Option<PathBuf> {
    let (files, _) = config::read(named);
    let entries = files.into_iter().flat_map(|(_, parsed)| parsed.entries);
    let named = entries
        .filter(|entry| entry.key.full_name() == "serve.data-dir")
        .last()?;
    Some(named.texts.concat().into())
}

/// What the files set, where there are any: of texts that somebody made up, only that they are set.
pub(super) fn effective(named: Option<&Path>) -> Option<String> {
    let (files, _) = config::read(named);
    let mut text = String::new();
    for ((_, parsed), number) in files.iter().zip(1..) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "# file {number}; mistakes that have no effect: {}",
            parsed.mistakes.len()
        );
        for entry in &parsed.entries {
            let is_word = !entry.key.arg.get_possible_values().is_empty();
            let is_shown = is_word || !matches!(entry.key.wanted(), Wanted::Text | Wanted::List);
            let name = entry.key.full_name();
            let _ = if is_shown {
                writeln!(text, "{name} = {}", entry.key.written(&entry.texts))
            } else {
                writeln!(text, "# {name} is set")
            };
        }
    }
    (!files.is_empty()).then_some(text)
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
