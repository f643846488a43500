//! Replaces what identifies people, machines and their work, the same original by the same placeholder everywhere.
//!
//! Two passes: what stands where only a name can ([`keys`]) is replaced and becomes known; then every other text is
//! searched for what is known and for what gives itself away by its form ([`patterns`]).

pub(super) mod keys;
mod kind;
mod patterns;

use std::collections::{BTreeMap, HashMap};

pub(super) use self::{kind::Kind, patterns::path_end};

/// Shorter numbers are looked for nowhere: other numbers would be taken for them.
const SHORTEST_NUMBER: usize = 5;
/// The longest name that the kernel gives a process, in bytes.
const LONGEST_COMM: usize = 15;

#[derive(Debug, Default)]
pub(super) struct Scrubber {
    /// The number of each original that was met.
    numbers: BTreeMap<Kind, BTreeMap<String, usize>>,
    /// What to look for in texts and what it is, by its first letter.
    known: HashMap<char, Vec<(String, Kind, String)>>,
}

impl Scrubber {
    /// Has this looked for in texts.
    pub(super) fn know(&mut self, kind: Kind, original: &str) {
        let (_, original) = parted(kind, original);
        if original.is_empty() || kind.is_public(&original) {
            return;
        }
        for form in forms(kind, &original) {
            let Some(first) = form.chars().next() else {
                continue;
            };
            let number =
                form.len() < SHORTEST_NUMBER && form.bytes().all(|byte| byte.is_ascii_digit());
            let of_letter = self.known.entry(first).or_default();
            if !number && !of_letter.iter().any(|(known, ..)| *known == form) {
                of_letter.push((form, kind, original.clone()));
                of_letter.sort_by_key(|(form, ..)| std::cmp::Reverse(form.len()));
            }
        }
    }

    /// The placeholder of an original.
    pub(super) fn name(&mut self, kind: Kind, original: &str) -> String {
        let (prefix, original) = parted(kind, original);
        if original.is_empty() || kind.is_public(&original) {
            return format!("{prefix}{original}");
        }
        let numbers = self.numbers.entry(kind).or_default();
        let next = numbers.len() + 1;
        let number = numbers.entry(original).or_insert(next);
        format!("{prefix}{}-{number}", kind.labels().0)
    }

    /// How many different originals of each kind were replaced.
    pub(super) fn counts(&self) -> BTreeMap<Kind, usize> {
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
            self.know(Kind::Program, &name[..end]);
        }
        let client = message
            .split_once("the client '")
            .and_then(|(_, name)| name.rsplit_once("' (pid "));
        self.know(Kind::Program, client.unwrap_or_default().0);
        let serial = message
            .split_once("Serial Number:")
            .and_then(|(_, behind)| behind.split_whitespace().next());
        self.know(Kind::Serial, serial.unwrap_or_default());
    }

    /// A text with everything in it replaced that is known or gives itself away.
    pub(super) fn text(&mut self, text: &str) -> String {
        let (mut clean, mut rest, mut before) = (String::with_capacity(text.len()), text, None);
        while let Some(letter) = rest.chars().next() {
            let found = [self.known_at(rest, before), patterns::at(rest, before)];
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
    fn known_at(&self, rest: &str, before: Option<char>) -> Option<(usize, Kind, String)> {
        let first = rest.chars().next()?;
        let is_whole = |form: &str| {
            let (last, next) = (form.chars().next_back(), rest[form.len()..].chars().next());
            !(joined(before, Some(first)) || joined(last, next))
        };
        let found = self
            .known
            .get(&first)?
            .iter()
            .find(|(form, ..)| rest.starts_with(form) && is_whole(form))?;
        let (form, kind, original) = found;
        match &rest[form.len()..] {
            // What lies in a folder whose name has spaces.
            behind if *kind == Kind::Path && behind.starts_with('/') => {
                let length = form.len() + patterns::path_end(behind);
                Some((length, *kind, rest[..length].to_owned()))
            }
            _ => Some((form.len(), *kind, original.clone())),
        }
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

/// What of an original is no part of the secret, and the rest as it is compared: `GPU-` of a UUID tells its kind.
fn parted(kind: Kind, original: &str) -> (&str, String) {
    if kind != Kind::Id {
        return ("", original.to_owned());
    }
    let (prefix, core) = original.split_at(uuid_prefix(original));
    (prefix, core.to_ascii_lowercase())
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
fn forms(kind: Kind, original: &str) -> Vec<String> {
    let printed: String = original
        .chars()
        .filter(|letter| !letter.is_control())
        .collect();
    let mut forms = vec![original.to_owned(), printed.clone()];
    match kind {
        // A single word can stand anywhere: that of a command is a program, which is known as such.
        Kind::Command | Kind::Text => forms.retain(|form| form.contains(char::is_whitespace)),
        // Views shorten a path to the end that distinguishes it from others.
        Kind::Notebook => {
            let ends = printed
                .match_indices('/')
                .map(|(at, _)| printed[at + 1..].to_owned());
            forms.extend(ends.filter(|end| !end.is_empty()));
        }
        Kind::Host => forms.extend(original.split_once('.').map(|(short, _)| short.to_owned())),
        _ => {}
    }
    forms
}

#[cfg(test)]
mod tests;
