//! Replacement of names that identify people, machines or their work. The same name gets the same
//! placeholder in all files.
//!
//! The scrubber works in two passes. The first pass replaces and remembers strings that are names
//! according to their JSON key ([`TextRole`]). The second pass searches all other text for these
//! names, and for names that can be recognized by their format ([`patterns`]).

mod patterns;

use std::{cmp::Reverse, collections::BTreeMap};

use serde_json::Value;

pub(super) use self::patterns::path_length;
use crate::json_text::{NameKind, TextRole};

/// The minimum number of digits of a numeric name. Shorter numbers would match unrelated numbers.
const MIN_NUMBER_DIGITS: usize = 5;
/// The maximum length in bytes of a process name in the kernel.
const MAX_COMM_BYTES: usize = 15;

/// Programs with public names, without trailing version numbers.
const PUBLIC_PROGRAMS: &str = "\
    <unknown> Xorg bash containerd-shim gnome-shell gpumon ir java julia jupyter-lab \
    jupyter-labhub jupyter-noteboo nvidia-smi python sh slurmstepd sshd systemd";

/// Returns the word used in placeholders for this kind of name, and the kind's name in the list of
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
        // An ID such as `pci-…`, used for GPUs without a UUID, contains only the PCI address.
        NameKind::Id => name.starts_with("pci-"),
        NameKind::Path => {
            ["libcublas.so", "libcuda.so", "libnvidia-ml.so"].contains(&versionless())
        }
        _ => false,
    }
}

#[derive(Debug, Default)]
pub(super) struct Scrubber {
    /// The number used in each name's placeholder.
    numbers: BTreeMap<NameKind, BTreeMap<String, usize>>,
    /// The strings to search for, longest first. The value is the kind and the name to which the
    /// string belongs.
    known: BTreeMap<(Reverse<usize>, String), (NameKind, String)>,
}

impl Scrubber {
    /// Adds a name to replace in text.
    pub(super) fn add_name(&mut self, kind: NameKind, original: &str) {
        let (_, original, _) = split_name(kind, original);
        if original.is_empty() || is_public(kind, &original) {
            return;
        }
        for form in list_variants(kind, &original) {
            let is_number = form.bytes().all(|byte| byte.is_ascii_digit());
            if !(is_number && form.len() < MIN_NUMBER_DIGITS) {
                self.known
                    .entry((Reverse(form.len()), form))
                    .or_insert_with(|| (kind, original.clone()));
            }
        }
    }

    /// Returns the placeholder for a name.
    pub(super) fn assign_placeholder(&mut self, kind: NameKind, original: &str) -> String {
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

    /// Replaces and remembers the strings that are names according to their keys, and then replaces
    /// the remembered names in all other strings.
    pub(super) fn scrub_json(&mut self, values: &mut [Value]) {
        for value in &mut *values {
            visit_strings(value, TextRole::Text, &mut |role, text| match role {
                TextRole::Name(kind) => {
                    self.add_name(kind, text);
                    *text = self.assign_placeholder(kind, text);
                }
                TextRole::Word => {}
                TextRole::Text => self.add_names_in_message(text),
            });
        }
        for value in values {
            visit_strings(value, TextRole::Text, &mut |role, text| {
                if role == TextRole::Text {
                    *text = self.scrub_text(text);
                }
            });
        }
    }

    /// Returns the number of distinct names of each kind that were replaced.
    pub(super) fn count_replaced(&self) -> BTreeMap<NameKind, usize> {
        self.numbers
            .iter()
            .map(|(kind, numbers)| (*kind, numbers.len()))
            .collect()
    }

    /// Adds the names of processes and the serial numbers of boards in a driver's message.
    pub(super) fn add_names_in_message(&mut self, message: &str) {
        if let Some((_, name)) = message.split_once("name=") {
            // A process name may itself contain commas.
            let ends = name.match_indices(", ").map(|(at, _)| at);
            let end = ends
                .take_while(|at| *at <= MAX_COMM_BYTES)
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
                name.len() <= MAX_COMM_BYTES
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
    pub(super) fn scrub_text(&mut self, text: &str) -> String {
        let (mut clean, mut rest, mut before) = (String::with_capacity(text.len()), text, None);
        while let Some(letter) = rest.chars().next() {
            let found = [
                self.find_added_name(rest, before),
                patterns::find_name(rest, before),
            ];
            let longest = found
                .into_iter()
                .flatten()
                .max_by_key(|(length, ..)| *length);
            let length = if let Some((length, kind, original)) = longest {
                clean += &self.assign_placeholder(kind, &original);
                length
            } else if let Some(length) = escape_sequence_length(rest) {
                clean.push(' ');
                length
            } else {
                clean.push(letter);
                letter.len_utf8()
            };
            // The last letter of an escape sequence is not part of the word after the sequence.
            before = if letter == '\u{1b}' {
                None
            } else {
                rest[..length].chars().next_back()
            };
            rest = &rest[length..];
        }
        clean
    }

    /// Returns the longest known name at the start of `rest` that is a whole word. `before` is the
    /// character before `rest`.
    fn find_added_name(
        &self,
        rest: &str,
        before: Option<char>,
    ) -> Option<(usize, NameKind, String)> {
        let first = rest.chars().next()?;
        let is_whole = |form: &str| {
            let (last, next) = (form.chars().next_back(), rest[form.len()..].chars().next());
            !(are_in_same_word(before, Some(first)) || are_in_same_word(last, next))
        };
        let ((_, form), (kind, original)) = self
            .known
            .iter()
            .find(|((_, form), _)| rest.starts_with(form) && is_whole(form))?;
        match &rest[form.len()..] {
            // A path that contains spaces continues after the known directory name.
            behind if *kind == NameKind::Path && behind.starts_with('/') => {
                let length = form.len() + patterns::path_length(behind);
                Some((length, *kind, rest[..length].to_owned()))
            }
            _ => Some((form.len(), *kind, original.clone())),
        }
    }
}

/// Calls `visit` with every string and its role.
fn visit_strings(value: &mut Value, role: TextRole, visit: &mut impl FnMut(TextRole, &mut String)) {
    match value {
        Value::String(text) => visit(role, text),
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| visit_strings(item, role, visit)),
        Value::Object(object) => {
            let roles: Vec<_> = object
                .keys()
                .map(|key| TextRole::new(key, role, object))
                .collect();
            for (value, role) in object.values_mut().zip(roles) {
                visit_strings(value, role, visit);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns `true` if two neighboring characters belong to the same word.
fn are_in_same_word(left: Option<char>, right: Option<char>) -> bool {
    [left, right]
        .iter()
        .all(|letter| letter.is_some_and(char::is_alphanumeric))
}

/// Returns the length of the ANSI escape sequence at the start of `text`, or `None` if there is
/// none.
fn escape_sequence_length(text: &str) -> Option<usize> {
    let sequence = text.strip_prefix("\u{1b}[")?;
    let last = sequence.find(|letter: char| !(letter.is_ascii_digit() || letter == ';'))?;
    sequence[last..]
        .starts_with(|letter: char| letter.is_ascii_alphabetic())
        .then_some("\u{1b}[".len() + last + 1)
}

/// Splits an ID into a prefix such as `GPU-`, the identifying part in lowercase, and a suffix such
/// as `.1` for a partition of a GPU. Other names are not split.
fn split_name(kind: NameKind, name: &str) -> (&str, String, &str) {
    if kind != NameKind::Id {
        return ("", name.to_owned(), "");
    }
    let (prefix, rest) = name.split_at(uuid_prefix_length(name));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let end = rest
        .rfind('.')
        .filter(|end| prefix == "GPU-" && is_number(&rest[end + 1..]));
    let (core, suffix) = rest.split_at(end.unwrap_or(rest.len()));
    (prefix, core.to_ascii_lowercase(), suffix)
}

/// Returns the length of the prefix, such as `GPU-`, at the start of a UUID.
fn uuid_prefix_length(text: &str) -> usize {
    text.len()
        - text
            .trim_start_matches("MIG-")
            .trim_start_matches("GPU-")
            .len()
}

/// Returns the variants of a name that may appear in text.
fn list_variants(kind: NameKind, original: &str) -> Vec<String> {
    let printed: String = original
        .chars()
        .filter(|letter| !letter.is_control())
        .collect();
    let mut forms = vec![original.to_owned(), printed.clone()];
    match kind {
        // A single word is too ambiguous to search for. The program in a command line is added
        // separately.
        NameKind::Command | NameKind::Text => {
            forms.retain(|form| form.contains(char::is_whitespace));
        }
        // Some views shorten a notebook's path to the last parts that make it unique.
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
