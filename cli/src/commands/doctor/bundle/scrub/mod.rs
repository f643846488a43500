//! Replaces what identifies people, machines and their work, the same original by the same
//! placeholder everywhere.
//!
//! Two passes: names by their keys ([`TextRole`]) are replaced and become known; then every other
//! text is searched for known names and for what gives itself away by its form ([`patterns`]).

mod patterns;

use std::{cmp::Reverse, collections::BTreeMap};

use serde_json::Value;

pub(super) use self::patterns::path_end;
use crate::json_text::{NameKind, TextRole};

/// Shorter numbers are looked for nowhere: other numbers would be taken for them.
const SHORTEST_NUMBER: usize = 5;
/// The longest name that the kernel gives a process, in bytes.
const LONGEST_COMM: usize = 15;

/// Programs that everybody has, with the digits and dots of their versions taken off.
const PUBLIC_PROGRAMS: &str = "\
    <unknown> Xorg bash containerd-shim gnome-shell gpumon ir java julia jupyter-lab \
    jupyter-labhub jupyter-noteboo nvidia-smi python sh slurmstepd sshd systemd";

/// Returns the word in the placeholders of a kind, and its name in the list of what was replaced.
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

/// Returns `true` if the name is the same on every machine.
fn is_public(kind: NameKind, name: &str) -> bool {
    let versionless =
        || name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    match kind {
        NameKind::User => ["root", "nobody"].contains(&name),
        NameKind::Host => name == "localhost",
        NameKind::Program => PUBLIC_PROGRAMS
            .split(' ')
            .any(|program| program == versionless()),
        // The slot of a GPU without a UUID.
        NameKind::Id => name.starts_with("pci-"),
        NameKind::Path => {
            ["libcublas.so", "libcuda.so", "libnvidia-ml.so"].contains(&versionless())
        }
        _ => false,
    }
}

#[derive(Debug, Default)]
pub(super) struct Scrubber {
    /// The number of each original that was met.
    numbers: BTreeMap<NameKind, BTreeMap<String, usize>>,
    /// The forms that texts are searched for, the longest first, with their originals.
    known: BTreeMap<(Reverse<usize>, String), (NameKind, String)>,
}

impl Scrubber {
    /// Has this looked for in texts.
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

    /// The placeholder of an original.
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

    /// Replaces the names in values, so that they are known, and then known names in all other
    /// texts.
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

    /// How many different originals of each kind were replaced.
    pub(super) fn counts(&self) -> BTreeMap<NameKind, usize> {
        self.numbers
            .iter()
            .map(|(kind, numbers)| (*kind, numbers.len()))
            .collect()
    }

    /// Knows what the driver's messages say of processes and boards.
    pub(super) fn learn_from(&mut self, message: &str) {
        if let Some((_, name)) = message.split_once("name=") {
            // A name can have commas, too.
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
        // AMD names programs in `process X pid N thread Y pid N`, and Intel in `in X [N]`.
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

    /// A text with everything in it replaced that is known or gives itself away.
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
            // The last letter of an escape sequence is none of the word behind it.
            before = if letter == '\u{1b}' {
                None
            } else {
                rest[..length].chars().next_back()
            };
            rest = &rest[length..];
        }
        clean
    }

    /// The longest known one with which the rest begins, as a word of its own.
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
            // What lies in a folder whose name has spaces.
            behind if *kind == NameKind::Path && behind.starts_with('/') => {
                let length = form.len() + patterns::path_end(behind);
                Some((length, *kind, rest[..length].to_owned()))
            }
            _ => Some((form.len(), *kind, original.clone())),
        }
    }
}

/// Visits every string with its role.
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

/// Whether two letters are of one word.
fn joined(left: Option<char>, right: Option<char>) -> bool {
    [left, right]
        .iter()
        .all(|letter| letter.is_some_and(char::is_alphanumeric))
}

/// The length of a color or the like, with which the text begins.
fn escape_sequence(text: &str) -> Option<usize> {
    let sequence = text.strip_prefix("\u{1b}[")?;
    let last = sequence.find(|letter: char| !(letter.is_ascii_digit() || letter == ';'))?;
    sequence[last..]
        .starts_with(|letter: char| letter.is_ascii_alphabetic())
        .then_some("\u{1b}[".len() + last + 1)
}

/// Returns the parts of a name: its kind, such as `GPU-`, the secret part in the form in which it
/// is compared, and a suffix such as `.1`, for a partition of a GPU.
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

/// The length of what in front of a UUID tells whose it is.
fn uuid_prefix(text: &str) -> usize {
    text.len()
        - text
            .trim_start_matches("MIG-")
            .trim_start_matches("GPU-")
            .len()
}

/// In which forms it may stand in a text.
fn list_forms(kind: NameKind, original: &str) -> Vec<String> {
    let printed: String = original
        .chars()
        .filter(|letter| !letter.is_control())
        .collect();
    let mut forms = vec![original.to_owned(), printed.clone()];
    match kind {
        // A single word can stand anywhere: that of a command is a program, which is known as such.
        NameKind::Command | NameKind::Text => {
            forms.retain(|form| form.contains(char::is_whitespace));
        }
        // Views shorten a path to the end that distinguishes it from others.
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
