//! Replacement of names that identify people, machines or their work. The same name gets the same
//! placeholder in all files.
//!
//! The scrubber works in two passes. The first pass replaces and remembers strings that are names
//! according to their JSON key ([`TextRole`]). The second pass searches all other text for these
//! names, and for names that can be recognized by their format.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

use serde_json::Value;

use crate::json_text::{NameKind, TextRole};

/// The minimum number of digits of a numeric name. Shorter numbers would match unrelated numbers.
const MIN_NUMBER_DIGITS: usize = 5;
/// The maximum length in bytes of a process name in the kernel.
const MAX_COMM_BYTES: usize = 15;

/// Well-known programs, whose names identify nobody and are not replaced. Trailing version numbers
/// are omitted from this list.
const PUBLIC_PROGRAMS: &str = "\
    <unknown> Xorg bash containerd-shim gnome-shell gpumon ir java julia jupyter-lab \
    jupyter-labhub jupyter-noteboo nvidia-smi python sh slurmstepd sshd systemd";

/// Returns the word used in placeholders for this kind of name, and the kind's name in the list of
/// replacements.
pub(super) fn name_kind_labels(kind: NameKind) -> (&'static str, &'static str) {
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
    /// The strings to search for, longest first. Each string is a variant of a name, and is mapped
    /// to this name and its kind.
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
        format!("{prefix}{}-{number}{suffix}", name_kind_labels(kind).0)
    }

    /// Replaces and remembers strings whose keys show that they are names. Then replaces the
    /// remembered names in all other strings.
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
    pub(super) fn count_replaced_names(&self) -> BTreeMap<NameKind, usize> {
        self.numbers
            .iter()
            .map(|(kind, numbers)| (*kind, numbers.len()))
            .collect()
    }

    /// Makes the scrubber replace the names of processes and the serial numbers of boards that
    /// occur in a driver's message.
    pub(super) fn add_names_in_message(&mut self, message: &str) {
        if let Some((_, name)) = message.split_once("name=") {
            // The name ends at a comma, but may itself contain commas. The end is therefore the
            // last comma within the maximum length of a name.
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
                self.match_leading_added_name(rest, before),
                match_leading_name(rest, before),
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
            // The last letter of an escape sequence is not part of the word that follows the
            // sequence.
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
    fn match_leading_added_name(
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
            // The known directory, whose name may contain spaces, is only the start of this path.
            // The rest of the path is replaced as well.
            behind if *kind == NameKind::Path && behind.starts_with('/') => {
                let length = form.len() + leading_path_length(behind);
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
        // Some views show only the end of a notebook's path: as many parts as are needed to make it
        // unique.
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

// Detection of names that can be recognized by their format: paths, addresses and UUIDs.

/// Prefixes of public paths, which are the same on many machines.
const PUBLIC_PREFIXES: &str = "/dev/dri/ /dev/dxg /dev/kmsg /dev/nvidia /proc/ /sys/bus/ \
                               /sys/class/ /sys/devices/ /sys/module/ /usr/bin/ /usr/lib/ \
                               /usr/lib64/ /lib/ /lib64/ /run/gpumon/ /run/nvidia/ \
                               /run/nvidia-persistenced/";
/// Path components that may lead out of a public directory, as in `/proc/PID/root`.
const UNSAFE_PARTS: [&str; 3] = ["..", "cwd", "root"];

/// The formats of IDs and addresses, in which `x` is a hexadecimal digit.
const ID_PATTERNS: [(&str, NameKind); 2] = [
    ("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", NameKind::Id),
    ("xx:xx:xx:xx:xx:xx", NameKind::Address),
];
/// The minimum number of digits of a UUID that is replaced. CUDA also accepts only the start of a
/// UUID, but fewer than four digits identify nothing.
const MIN_UUID_DIGITS: usize = 4;
/// The minimum number of hexadecimal digits of a hash or an ID. Shorter digit sequences are treated
/// as numbers.
const MIN_HASH_DIGITS: usize = 32;

/// Returns the length, kind and text of the name at the start of `rest`. `before` is the preceding
/// character.
fn match_leading_name(rest: &str, before: Option<char>) -> Option<(usize, NameKind, String)> {
    if before.is_some_and(char::is_alphanumeric) {
        return None;
    }
    let (length, kind) =
        match_leading_path_or_url(rest).or_else(|| match_leading_identifier(rest))?;
    Some((length, kind, rest[..length].to_owned()))
}

fn match_leading_path_or_url(rest: &str) -> Option<(usize, NameKind)> {
    let found = &rest[..leading_path_length(rest)];
    let is_scheme = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
    };
    if found
        .split_once("://")
        .is_some_and(|(scheme, _)| !scheme.is_empty() && is_scheme(scheme))
    {
        return Some((found.len(), NameKind::Address));
    }
    let is_path = (found.starts_with('/') && found.len() > 1) || found.starts_with("~/");
    let folder = format!("{}/", found.trim_end_matches('/'));
    let leads = |beginning: &str| folder.starts_with(beginning) || beginning.starts_with(&folder);
    let is_public = PUBLIC_PREFIXES.split(' ').any(leads)
        && !found.split('/').any(|part| UNSAFE_PARTS.contains(&part));
    let is_public = is_public || folder == "/usr/local/";
    (is_path && !is_public).then_some((found.len(), NameKind::Path))
}

/// Returns the length of the path at the start of `rest`. The path ends before a space, or before
/// the next path in a list.
pub(super) fn leading_path_length(rest: &str) -> usize {
    let end = rest
        .find(|letter: char| letter.is_whitespace() || "\"'`<>|".contains(letter))
        .unwrap_or(rest.len());
    let mut next = rest[..end].match_indices(":/").map(|(at, _)| at);
    let end = next
        .find(|at| !rest[at + 2..].starts_with('/'))
        .unwrap_or(end);
    rest[..end]
        .trim_end_matches(['.', ',', ';', ':', ')', ']'])
        .len()
}

fn match_leading_identifier(rest: &str) -> Option<(usize, NameKind)> {
    let run = |belongs: &dyn Fn(u8) -> bool| rest.bytes().take_while(|byte| belongs(*byte)).count();
    let whole = |length: usize| !rest[length..].starts_with(char::is_alphanumeric);
    let is_hex = |byte: u8| byte.is_ascii_hexdigit();
    let prefix = uuid_prefix_length(rest);
    let length = prefix
        + rest[prefix..]
            .bytes()
            .take_while(|byte| is_hex(*byte) || *byte == b'-')
            .count();
    if prefix > 0 && length >= prefix + MIN_UUID_DIGITS && whole(length) {
        return Some((length, NameKind::Id));
    }
    for (form, kind) in ID_PATTERNS {
        if starts_with_pattern(rest, form) && whole(form.len()) {
            return Some((form.len(), kind));
        }
    }
    let hex = run(&is_hex);
    if hex >= MIN_HASH_DIGITS && whole(hex) {
        return Some((hex, NameKind::Id));
    }
    let address = run(&|byte| is_hex(byte) || b".:".contains(&byte));
    let number = run(&|byte| byte.is_ascii_digit() || byte == b'.');
    for length in [address, number] {
        let found = rest[..length].trim_end_matches(['.', ':']);
        if is_identifying_ip_address(found) && whole(found.len()) {
            return Some((found.len(), NameKind::Address));
        }
    }
    let token = run(&|byte| byte.is_ascii_alphanumeric() || b"._%+-@".contains(&byte));
    let found = rest[..token].trim_end_matches('.');
    let (user, host) = found.split_once('@')?;
    (!user.is_empty() && !host.is_empty()).then_some((found.len(), NameKind::Address))
}

/// Returns `true` if `text` starts with the format `form`.
fn starts_with_pattern(text: &str, form: &str) -> bool {
    let fits = |(byte, place): (u8, u8)| {
        if place == b'x' {
            byte.is_ascii_hexdigit()
        } else {
            byte == place
        }
    };
    text.len() >= form.len() && text.bytes().zip(form.bytes()).all(fits)
}

/// Returns `true` for an IP address, with or without a port, that is neither loopback nor
/// unspecified.
fn is_identifying_ip_address(text: &str) -> bool {
    let port = || text.parse::<SocketAddr>().map(|socket| socket.ip());
    let address = text.parse::<IpAddr>().or_else(|_| port());
    address.is_ok_and(|address| !address.is_loopback() && !address.is_unspecified())
}

#[cfg(test)]
mod tests;
