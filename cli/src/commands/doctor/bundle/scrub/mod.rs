//! Replacement of names that identify people, machines or their work. The same name gets the same
//! placeholder in all files.
//!
//! The scrubber works in two passes. First, strings whose JSON key marks a name ([`TextRole`]) are
//! replaced and remembered. Then, all other texts are searched for these names, and for names that
//! their form reveals ([`patterns`]).

mod patterns;

use std::{cmp::Reverse, collections::BTreeMap};

use serde_json::Value;

pub(super) use self::patterns::path_end;
use crate::json_text::{NameKind, TextRole};

/// The minimum number of digits for a name that is a number. Shorter numbers would match unrelated
/// ones.
const SHORTEST_NUMBER: usize = 5;
/// The maximum length of a process name in the kernel, in bytes.
const LONGEST_COMM: usize = 15;

/// Programs whose names are public, without trailing version numbers.
const PUBLIC_PROGRAMS: &str = "\
    <unknown> Xorg bash containerd-shim gnome-shell gpumon ir java julia jupyter-lab \
    jupyter-labhub jupyter-noteboo nvidia-smi python sh slurmstepd sshd systemd";

/// Returns the word for placeholders of a kind, and the name of the kind in the list of
/// replacements.
pub(super) fn label_kind(kind: NameKind) -> (&'static str, &'static str) {
    match kind {
        NameKind::User => ("user", "user names"),
        NameKind::Host => ("host", "host names"),
        NameKind::Id => ("id", "UUIDs and IDs"),
        NameKind::Serial => ("serial", "serial numbers"),
        NameKind::Program => ("program", "program names"),
        NameKind::Command => ("command", "command lines"),
        NameKind::Notebook => ("notebook", "notebooks"),
        NameKind::Path => ("path", "paths"),
        NameKind::Job => ("job", "batch jobs"),
        NameKind::Unit => ("unit", "systemd units"),
        NameKind::Address => ("address", "addresses"),
        NameKind::Text => ("text", "texts"),
    }
}

/// Returns `true` if the name is the same on many machines and identifies nobody.
fn is_public(kind: NameKind, name: &str) -> bool {
    let versionless =
        || name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    match kind {
        NameKind::User => ["root", "nobody"].contains(&name),
        NameKind::Host => name == "localhost",
        NameKind::Program => PUBLIC_PROGRAMS
            .split(' ')
            .any(|program| program == versionless()),
        // A GPU without a UUID is identified by its PCI slot.
        NameKind::Id => name.starts_with("pci-"),
        NameKind::Path => {
            ["libcublas.so", "libcuda.so", "libnvidia-ml.so"].contains(&versionless())
        }
        _ => false,
    }
}

#[derive(Debug, Default)]
pub(super) struct Scrubber {
    /// The number in the placeholder of each name.
    numbers: BTreeMap<NameKind, BTreeMap<String, usize>>,
    /// The texts to search for, longest first, each with the name that it stands for.
    known: BTreeMap<(Reverse<usize>, String), (NameKind, String)>,
}

impl Scrubber {
    /// Adds a name that is to be replaced in texts.
    pub(super) fn add_name(&mut self, kind: NameKind, original: &str) {
        let (_, original, _) = split_name(kind, original);
        if original.is_empty() || is_public(kind, &original) {
            return;
        }
        for form in list_forms(kind, &original) {
            let is_number = form.bytes().all(|byte| byte.is_ascii_digit());
            if !(is_number && form.len() < SHORTEST_NUMBER) {
                self.known
                    .entry((Reverse(form.len()), form))
                    .or_insert_with(|| (kind, original.clone()));
            }
        }
    }

    /// Returns the placeholder of a name.
    pub(super) fn name(&mut self, kind: NameKind, original: &str) -> String {
        let whole = original;
        let (prefix, original, suffix) = split_name(kind, whole);
        if original.is_empty() || is_public(kind, &original) {
            return whole.to_owned();
        }
        let numbers = self.numbers.entry(kind).or_default();
        let next = numbers.len() + 1;
        let number = numbers.entry(original).or_insert(next);
        format!("{prefix}{}-{number}{suffix}", label_kind(kind).0)
    }

    /// Replaces names by their keys and remembers them, and then replaces remembered names in all
    /// other texts.
    pub(super) fn scrub_json(&mut self, values: &mut [Value]) {
        for value in &mut *values {
            walk(value, TextRole::Text, &mut |role, text| match role {
                TextRole::Name(kind) => {
                    self.add_name(kind, text);
                    *text = self.name(kind, text);
                }
                TextRole::Word => {}
                TextRole::Text => self.learn_from(text),
            });
        }
        for value in values {
            walk(value, TextRole::Text, &mut |role, text| {
                if role == TextRole::Text {
                    *text = self.text(text);
                }
            });
        }
    }

    /// Returns the number of distinct names of each kind that were replaced.
    pub(super) fn counts(&self) -> BTreeMap<NameKind, usize> {
        self.numbers
            .iter()
            .map(|(kind, numbers)| (*kind, numbers.len()))
            .collect()
    }

    /// Adds the names of processes and boards in a message of a driver.
    pub(super) fn learn_from(&mut self, message: &str) {
        if let Some((_, name)) = message.split_once("name=") {
            // A process name may itself contain commas.
            let ends = name.match_indices(", ").map(|(at, _)| at);
            let end = ends
                .take_while(|at| *at <= LONGEST_COMM)
                .last()
                .unwrap_or(name.len());
            self.add_name(NameKind::Program, &name[..end]);
        }
        let client = message
            .split_once("the client '")
            .and_then(|(_, name)| name.rsplit_once("' (pid "));
        self.add_name(NameKind::Program, client.unwrap_or_default().0);
        // AMD's driver writes `process X pid N thread Y pid N`, and Intel's driver writes `in X
        // [N]`.
        for (before, behind) in [("process ", " pid "), (" thread ", " pid "), (" in ", " [")] {
            let name = message.split_once(before).map(|(_, rest)| rest);
            let name = name.and_then(|rest| rest.split_once(behind));
            let name = name.filter(|(name, rest)| {
                name.len() <= LONGEST_COMM
                    && rest.starts_with(|letter: char| letter.is_ascii_digit())
            });
            self.add_name(NameKind::Program, name.unwrap_or_default().0);
        }
        let serial = message
            .split_once("Serial Number:")
            .and_then(|(_, behind)| behind.split_whitespace().next());
        self.add_name(NameKind::Serial, serial.unwrap_or_default());
    }

    /// Replaces all known and recognizable names in a text.
    pub(super) fn text(&mut self, text: &str) -> String {
        let (mut clean, mut rest, mut before) = (String::with_capacity(text.len()), text, None);
        while let Some(letter) = rest.chars().next() {
            let found = [self.known_at(rest, before), patterns::find_at(rest, before)];
            let longest = found
                .into_iter()
                .flatten()
                .max_by_key(|(length, ..)| *length);
            let length = if let Some((length, kind, original)) = longest {
                clean += &self.name(kind, &original);
                length
            } else if let Some(length) = escape_sequence(rest) {
                clean.push(' ');
                length
            } else {
                clean.push(letter);
                letter.len_utf8()
            };
            // The last letter of an escape sequence does not belong to the following word.
            before = if letter == '\u{1b}' {
                None
            } else {
                rest[..length].chars().next_back()
            };
            rest = &rest[length..];
        }
        clean
    }

    /// Returns the longest known name at the start of `rest` that is a whole word.
    fn known_at(&self, rest: &str, before: Option<char>) -> Option<(usize, NameKind, String)> {
        let first = rest.chars().next()?;
        let is_whole = |form: &str| {
            let (last, next) = (form.chars().next_back(), rest[form.len()..].chars().next());
            !(joined(before, Some(first)) || joined(last, next))
        };
        let ((_, form), (kind, original)) = self
            .known
            .iter()
            .find(|((_, form), _)| rest.starts_with(form) && is_whole(form))?;
        match &rest[form.len()..] {
            // If the name of a directory contains spaces, the rest of the path follows it.
            behind if *kind == NameKind::Path && behind.starts_with('/') => {
                let length = form.len() + patterns::path_end(behind);
                Some((length, *kind, rest[..length].to_owned()))
            }
            _ => Some((form.len(), *kind, original.clone())),
        }
    }
}

/// Calls `visit` with every string and its role.
fn walk(value: &mut Value, role: TextRole, visit: &mut impl FnMut(TextRole, &mut String)) {
    match value {
        Value::String(text) => visit(role, text),
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, role, visit)),
        Value::Object(object) => {
            let roles: Vec<_> = object
                .keys()
                .map(|key| TextRole::new(key, role, object))
                .collect();
            for (value, role) in object.values_mut().zip(roles) {
                walk(value, role, visit);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns `true` if two neighboring letters belong to the same word.
fn joined(left: Option<char>, right: Option<char>) -> bool {
    [left, right]
        .iter()
        .all(|letter| letter.is_some_and(char::is_alphanumeric))
}

/// Returns the length of an ANSI escape sequence at the start of the text.
fn escape_sequence(text: &str) -> Option<usize> {
    let sequence = text.strip_prefix("\u{1b}[")?;
    let last = sequence.find(|letter: char| !(letter.is_ascii_digit() || letter == ';'))?;
    sequence[last..]
        .starts_with(|letter: char| letter.is_ascii_alphabetic())
        .then_some("\u{1b}[".len() + last + 1)
}

/// Splits a name into its prefix, such as `GPU-`, the secret part in the form that is compared, and
/// a suffix such as `.1` for a partition of a GPU.
fn split_name(kind: NameKind, name: &str) -> (&str, String, &str) {
    if kind != NameKind::Id {
        return ("", name.to_owned(), "");
    }
    let (prefix, rest) = name.split_at(uuid_prefix(name));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let end = rest
        .rfind('.')
        .filter(|end| prefix == "GPU-" && is_number(&rest[end + 1..]));
    let (core, suffix) = rest.split_at(end.unwrap_or(rest.len()));
    (prefix, core.to_ascii_lowercase(), suffix)
}

/// Returns the length of the prefix of a UUID that shows its kind.
fn uuid_prefix(text: &str) -> usize {
    text.len()
        - text
            .trim_start_matches("MIG-")
            .trim_start_matches("GPU-")
            .len()
}

/// Returns the forms in which a name may appear in texts.
fn list_forms(kind: NameKind, original: &str) -> Vec<String> {
    let printed: String = original
        .chars()
        .filter(|letter| !letter.is_control())
        .collect();
    let mut forms = vec![original.to_owned(), printed.clone()];
    match kind {
        // A single word is too ambiguous to search for. The program of a command is known as a name
        // of its own.
        NameKind::Command | NameKind::Text => {
            forms.retain(|form| form.contains(char::is_whitespace));
        }
        // Views shorten the path of a notebook to the last parts that make it unique.
        NameKind::Notebook => {
            let ends = printed
                .match_indices('/')
                .map(|(at, _)| printed[at + 1..].to_owned());
            forms.extend(ends.filter(|end| !end.is_empty()));
        }
        NameKind::Host => forms.extend(original.split_once('.').map(|(short, _)| short.to_owned())),
        _ => {}
    }
    forms
}

#[cfg(test)]
mod tests;
