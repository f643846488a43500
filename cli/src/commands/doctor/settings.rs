//! The settings files that are in use. Neither their values nor their mistakes are reported, which
//! can be anything.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use super::finding::Finding;
use crate::{
    config::{self, Parsed, Unreadable, Wanted},
    terminal::units::format_count,
};

pub(super) struct Settings {
    files: Vec<(PathBuf, Parsed)>,
    unreadable: Vec<Unreadable>,
}

impl Settings {
    pub(super) fn read(named: Option<&Path>) -> Self {
        let (files, unreadable) = config::read(named);
        Self { files, unreadable }
    }

    /// Reports each file, with the number of its mistakes.
    pub(super) fn check(&self) -> impl Iterator<Item = Finding> {
        let warning = |text| Finding::warning("settings", text, "run `gpumon config check`");
        let unreadable = self
            .unreadable
            .iter()
            .map(move |file| warning(format!("a settings file cannot be read: {file}")));
        let read = self.files.iter().map(move |(path, parsed)| {
            let path = path.display();
            match parsed.mistakes.len() {
                0 => Finding::ok(
                    "settings",
                    format!(
                        "{path} sets {}",
                        format_count(parsed.entries.len() as u64, "key")
                    ),
                ),
                mistakes => warning(format!(
                    "{path} has {}",
                    format_count(mistakes as u64, "mistake")
                )),
            }
        });
        unreadable.chain(read)
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.files.iter().map(|(path, _)| path.clone())
    }

    /// Returns the data directory that the files name.
    pub(super) fn data_dir(&self) -> Option<PathBuf> {
        let mut entries = self.files.iter().flat_map(|(_, parsed)| &parsed.entries);
        let named = entries.rfind(|entry| entry.key.full_name() == "serve.data-dir")?;
        Some(named.texts.concat().into())
    }

    /// Returns what the files set, if there are any: of texts that somebody chose, only that they
    /// are set.
    pub(super) fn effective(&self) -> Option<String> {
        let mut text = String::new();
        for ((_, parsed), number) in self.files.iter().zip(1..) {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "# file {number}; mistakes that have no effect: {}",
                parsed.mistakes.len()
            );
            for entry in &parsed.entries {
                let is_word = !entry.key.arg.get_possible_values().is_empty();
                let is_shown =
                    is_word || !matches!(entry.key.wanted(), Wanted::Text | Wanted::List);
                let name = entry.key.full_name();
                let _ = if is_shown {
                    writeln!(text, "{name} = {}", entry.key.written(&entry.texts))
                } else {
                    writeln!(text, "# {name} is set")
                };
            }
        }
        (!self.files.is_empty()).then_some(text)
    }
}
