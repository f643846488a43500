//! Lists of hosts, from the command line or a file, and the expansion and order of the names in
//! them.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashSet},
};

use thiserror::Error;

/// The maximum number of hosts. Each host needs a process on this machine and one on the host.
pub const MOST_HOSTS: usize = 64;

/// The maximum length of a host, in bytes. This leaves room for the longest DNS name, the longest
/// Linux user name, and a port.
const MAX_HOST_LENGTH: usize = 300;

/// The factor by which the hosts in a file may exceed the maximum number of distinct hosts, because
/// a file may contain duplicates.
const MAX_REPETITIONS: usize = 64;

/// Characters that no host or user name contains and that ssh also rejects. ssh's configuration can
/// insert names into shell commands, where these characters would be interpreted. A slash would
/// also change the path of a URL.
const FORBIDDEN_CHARACTERS: &str = "'`\"$\\;&<>|(){}[],/*?!#";

/// A host that is read over ssh.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Host {
    /// The host's name in the list. It includes the user and port only if another host in the list
    /// has the same name.
    pub name: String,
    /// The destination argument for ssh: a host name or an IP address, preceded by `user@` if a
    /// user was given.
    pub destination: String,
    /// The port, if given.
    pub port: Option<u16>,
}

impl Host {
    /// Returns the host name or IP address, without the user.
    pub fn address(&self) -> &str {
        strip_user(&self.destination)
    }
}

/// The hosts in the order of the list, without duplicates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostList {
    hosts: Vec<Host>,
}

/// The reasons why a list of hosts is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HostListError {
    /// The list has too many hosts.
    #[error(
        "the list has more than {0} hosts, and each host needs its own connection; use fewer \
         hosts, or use Prometheus for more than {MOST_HOSTS} (`gpumon fleet --prometheus URL`)"
    )]
    TooMany(usize),
    /// The list contains no hosts.
    #[error("the list contains no host; write names separated by commas, such as a,b,node[01-08]")]
    None,
    /// A list in brackets is invalid.
    #[error(transparent)]
    Names(NamesError),
    /// A name is invalid.
    #[error(
        "'{name}' is not a valid host: {reason}; use host, user@host, host:port or \
         ssh://user@host:port"
    )]
    Name {
        /// The name, with unprintable characters escaped.
        name: String,
        /// The reason why the name is invalid.
        reason: &'static str,
    },
    /// A line of a file is invalid.
    #[error("line {line}: {error}")]
    Line {
        /// The line number, starting at 1.
        line: usize,
        /// The problem with the line.
        error: Box<Self>,
    },
}

impl From<NamesError> for HostListError {
    fn from(error: NamesError) -> Self {
        if let NamesError::TooMany(most) = error {
            Self::TooMany(most)
        } else {
            Self::Names(error)
        }
    }
}

impl HostList {
    /// Parses a list such as `a,b,node[01-08]`, with at most `most` hosts.
    ///
    /// # Errors
    /// Returns a [`HostListError`] if the list is invalid.
    pub fn parse(list: &str, most: usize) -> Result<Self, HostListError> {
        Self::new(parse_hosts(list, most)?, most)
    }

    /// Parses a file that contains a list of hosts on each line. `#` starts a comment.
    ///
    /// # Errors
    /// Returns a [`HostListError`] with the line number if a list is invalid.
    pub fn parse_file(text: &str, most: usize) -> Result<Self, HostListError> {
        let mut hosts = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let list = line.split_once('#').map_or(line, |(list, _)| list);
            let at = |error| HostListError::Line {
                line: number,
                error: Box::new(error),
            };
            hosts.extend(parse_hosts(list, most).map_err(at)?);
            // This limit is higher than the limit for distinct hosts, because a file may list a
            // host several times.
            if hosts.len() > most.saturating_mul(MAX_REPETITIONS) {
                return Err(HostListError::TooMany(most));
            }
        }
        Self::new(hosts, most)
    }

    /// Returns the hosts of both lists.
    ///
    /// # Errors
    /// Returns [`HostListError::TooMany`] if there are more than `most`.
    pub fn merge(self, others: Self, most: usize) -> Result<Self, HostListError> {
        let plain = |host: Host| Host {
            name: strip_user(&host.destination).to_owned(),
            ..host
        };
        Self::new(
            self.hosts
                .into_iter()
                .chain(others.hosts)
                .map(plain)
                .collect(),
            most,
        )
    }

    fn new(mut hosts: Vec<Host>, most: usize) -> Result<Self, HostListError> {
        let mut seen = HashSet::new();
        hosts.retain(|host| seen.insert(host.clone()));
        match hosts.len() {
            0 => return Err(HostListError::None),
            count if count > most => return Err(HostListError::TooMany(most)),
            _ => {}
        }
        let mut called: BTreeMap<String, usize> = BTreeMap::new();
        for host in &hosts {
            *called.entry(host.name.clone()).or_default() += 1;
        }
        for host in &mut hosts {
            if called.get(&host.name).is_some_and(|count| *count > 1) {
                let port = host.port.map(|port| format!(":{port}")).unwrap_or_default();
                host.name = format!("{}{port}", host.destination);
            }
        }
        Ok(Self { hosts })
    }

    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }
}

fn parse_hosts(list: &str, most: usize) -> Result<Vec<Host>, HostListError> {
    expand_names(list, most)?
        .iter()
        .map(|name| parse_host(name))
        .collect()
}

fn parse_host(typed: &str) -> Result<Host, HostListError> {
    let refuse = |reason| HostListError::Name {
        name: typed.escape_debug().to_string(),
        reason,
    };
    if typed.len() > MAX_HOST_LENGTH {
        let start = typed
            .chars()
            .take(40)
            .collect::<String>()
            .escape_debug()
            .to_string();
        return Err(HostListError::Name {
            name: start + "…",
            reason: "the name is too long",
        });
    }
    let url = typed.strip_prefix("ssh://");
    let rest = url.map_or(typed, |rest| rest.strip_suffix('/').unwrap_or(rest));
    let (user, place) = rest
        .rsplit_once('@')
        .map_or((None, rest), |(user, place)| (Some(user), place));
    let (name, port) =
        split_port(place).ok_or_else(|| refuse("the port is not a number from 1 to 65535"))?;
    for part in user.into_iter().chain([name]) {
        if part.is_empty() {
            return Err(refuse("the user or the host name is empty"));
        }
        if part.starts_with('-') {
            return Err(refuse(
                "a part begins with a hyphen, which ssh would read as an option",
            ));
        }
        if part
            .chars()
            .any(|character| character.is_control() || character.is_whitespace())
        {
            return Err(refuse("the name contains a space or a control character"));
        }
        if part.contains(|character| FORBIDDEN_CHARACTERS.contains(character))
            || part == "."
            || part == ".."
        {
            return Err(refuse(
                "the name contains a character that is not allowed in host names",
            ));
        }
    }
    let destination = user.map_or_else(|| name.to_owned(), |user| format!("{user}@{name}"));
    Ok(Host {
        name: name.to_owned(),
        destination,
        port,
    })
}

/// Splits a name or an IP address from its port. Returns `None` if the port is invalid.
fn split_port(place: &str) -> Option<(&str, Option<u16>)> {
    let port = |text: &str| text.parse().ok().filter(|port| *port > 0);
    if let Some((address, after)) = place
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        return match after.strip_prefix(':') {
            Some(text) => Some((address, Some(port(text)?))),
            None => after.is_empty().then_some((address, None)),
        };
    }
    match place.split_once(':') {
        // An address with several colons is an IPv6 address without a port.
        Some((name, text)) if !text.contains(':') => Some((name, Some(port(text)?))),
        _ => Some((place, None)),
    }
}

/// Removes the user from an ssh destination or from the authority of a URL.
pub(crate) fn strip_user(destination: &str) -> &str {
    destination
        .rsplit_once('@')
        .map_or(destination, |(_, name)| name)
}

// Comma-separated lists of names in Slurm's format, such as `node[01-64,70]` or
// `rack[1-2]node[1-8]`.

/// The reasons why a list of names is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NamesError {
    /// A bracket is unmatched or nested.
    #[error("'{0}' has an unmatched or nested bracket; write ranges as node[01-64,70]")]
    Bracket(String),
    /// The text in brackets is not a valid range.
    #[error(
        "'{range}' in '{name}' is not a range; write two numbers, the lower one first, such as \
         [01-64,70]"
    )]
    Range {
        /// The text in brackets.
        range: String,
        /// The name that contains the brackets.
        name: String,
    },
    /// The list has too many names.
    #[error("the list has more than {0} names")]
    TooMany(usize),
}

/// Expands the bracketed ranges in a list and returns the names in order, at most `most` of them.
/// Brackets that contain a colon belong to an IPv6 address and are kept.
///
/// # Errors
/// Returns a [`NamesError`] if the list is invalid.
pub fn expand_names(list: &str, most: usize) -> Result<Vec<String>, NamesError> {
    let mut names = Vec::new();
    for word in split_name_list(list)? {
        let mut expanded = vec![String::new()];
        let mut rest = word;
        while let Some((before, range, after)) = split_at_brackets(rest) {
            let numbers = if range.contains(':') {
                vec![format!("[{range}]")]
            } else {
                expand_ranges(range, word, most)?
            };
            if expanded.len() * numbers.len() > most {
                return Err(NamesError::TooMany(most));
            }
            let append = |start: &String| {
                numbers
                    .iter()
                    .map(|number| format!("{start}{before}{number}"))
                    .collect::<Vec<_>>()
            };
            expanded = expanded.iter().flat_map(append).collect();
            rest = after;
        }
        names.extend(expanded.into_iter().map(|start| start + rest));
        if names.len() > most {
            return Err(NamesError::TooMany(most));
        }
    }
    Ok(names)
}

/// Splits a list at the commas and spaces outside brackets.
fn split_name_list(list: &str) -> Result<Vec<&str>, NamesError> {
    let mut is_inside = false;
    for character in list.chars() {
        match character {
            '[' if is_inside => return Err(NamesError::Bracket(list.to_owned())),
            ']' if !is_inside => return Err(NamesError::Bracket(list.to_owned())),
            '[' | ']' => is_inside = !is_inside,
            _ => {}
        }
    }
    if is_inside {
        return Err(NamesError::Bracket(list.to_owned()));
    }
    let separates = |character: char| {
        match character {
            '[' => is_inside = true,
            ']' => is_inside = false,
            _ => {}
        }
        !is_inside && (character == ',' || character.is_whitespace())
    };
    Ok(list
        .split(separates)
        .filter(|word| !word.is_empty())
        .collect())
}

/// Splits a word into the text before, inside, and after its first pair of brackets.
fn split_at_brackets(word: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = word.split_once('[')?;
    let (range, after) = rest.split_once(']')?;
    Some((before, range, after))
}

/// Returns the numbers in ranges such as `01-64,70`. Each number keeps the leading zeros of its
/// range's lower end.
fn expand_ranges(ranges: &str, name: &str, most: usize) -> Result<Vec<String>, NamesError> {
    let mut numbers = Vec::new();
    for range in ranges.split(',').map(str::trim) {
        let bad = || NamesError::Range {
            range: range.to_owned(),
            name: name.to_owned(),
        };
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number
                .then(|| text.parse::<u64>().ok())
                .flatten()
                .ok_or_else(bad)
        };
        let (first, last) = (number(low)?, number(high)?);
        if last < first {
            return Err(bad());
        }
        if last - first >= most as u64 || numbers.len() > most {
            return Err(NamesError::TooMany(most));
        }
        let width = low.len();
        numbers.extend((first..=last).map(|number| format!("{number:0width$}")));
    }
    Ok(numbers)
}

/// Compares two names in natural order: numbers are compared by value, so `node2` comes before
/// `node10`. Names that differ only in case are sorted next to each other.
pub fn compare_names(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (mine, theirs) = (split_at_first_number(left), split_at_first_number(right));
        let letters = |text: &str| text.to_lowercase();
        let order = letters(mine.text)
            .cmp(&letters(theirs.text))
            .then(mine.digits.len().cmp(&theirs.digits.len()))
            .then(mine.digits.cmp(theirs.digits));
        if order != Ordering::Equal {
            return order;
        }
        if mine.rest.is_empty() || theirs.rest.is_empty() {
            return mine.rest.len().cmp(&theirs.rest.len()).then(a.cmp(b));
        }
        (left, right) = (mine.rest, theirs.rest);
    }
}

/// The first part of a name: the text before the first digit, and the digits that follow, without
/// leading zeros.
struct NamePart<'a> {
    text: &'a str,
    digits: &'a str,
    rest: &'a str,
}

fn split_at_first_number(text: &str) -> NamePart<'_> {
    let number = text
        .find(|it: char| it.is_ascii_digit())
        .unwrap_or(text.len());
    let (before, behind) = text.split_at(number);
    let end = behind
        .find(|it: char| !it.is_ascii_digit())
        .unwrap_or(behind.len());
    let (digits, rest) = behind.split_at(end);
    NamePart {
        text: before,
        digits: digits.trim_start_matches('0'),
        rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_hosts(list: &str) -> Vec<(String, String, Option<u16>)> {
        let hosts = HostList::parse(list, MOST_HOSTS).unwrap().hosts;
        hosts
            .into_iter()
            .map(|host| (host.name, host.destination, host.port))
            .collect()
    }

    fn expected_host(
        name: &str,
        destination: &str,
        port: impl Into<Option<u16>>,
    ) -> (String, String, Option<u16>) {
        (name.to_owned(), destination.to_owned(), port.into())
    }

    #[test]
    fn hosts_accept_ssh_formats() {
        assert_eq!(
            list_hosts("a,ana@b,c:2222,ssh://bob@d:22/,ssh://e,[::1]:2200,fe80::1%eth0,ana@[::2]"),
            [
                expected_host("a", "a", None),
                expected_host("b", "ana@b", None),
                expected_host("c", "c", 2222),
                expected_host("d", "bob@d", 22),
                expected_host("e", "e", None),
                expected_host("::1", "::1", 2200),
                expected_host("fe80::1%eth0", "fe80::1%eth0", None),
                expected_host("::2", "ana@::2", None),
            ]
        );
        assert_eq!(
            list_hosts("ana@n[1-2]:22"),
            [
                expected_host("n1", "ana@n1", 22),
                expected_host("n2", "ana@n2", 22)
            ]
        );
    }

    #[test]
    fn hosts_are_unique_and_have_distinct_names() {
        assert_eq!(list_hosts("a,n[1-2],n[2-3],a").len(), 4);
        assert_eq!(
            list_hosts("a,ana@a:7,b"),
            [
                expected_host("a", "a", None),
                expected_host("ana@a:7", "ana@a", 7),
                expected_host("b", "b", None)
            ]
        );
        let both = HostList::parse("a,b", MOST_HOSTS)
            .unwrap()
            .merge(
                HostList::parse_file("root@a\nb", MOST_HOSTS).unwrap(),
                MOST_HOSTS,
            )
            .unwrap();
        assert_eq!(
            both.hosts
                .iter()
                .map(|host| host.name.as_str())
                .collect::<Vec<_>>(),
            ["a", "b", "root@a"]
        );
    }

    #[test]
    fn host_file_allows_comments_and_reports_line_numbers() {
        let hosts =
            HostList::parse_file("# lab\n\nbox1 # ana's\n  node[1-2] , root@x\n", MOST_HOSTS)
                .unwrap()
                .hosts;
        let names: Vec<_> = hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["box1", "node1", "node2", "x"]);
        let error = HostList::parse_file("a\n-b", MOST_HOSTS)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("line 2: '-b' is not a valid host: a part begins with a hyphen"),
            "{error}"
        );
        assert_eq!(
            HostList::parse_file("# none\n", MOST_HOSTS),
            Err(HostListError::None)
        );
    }

    #[test]
    fn unsafe_host_names_are_refused_with_remedy() {
        for name in [
            "-oProxyCommand=x",
            "a@-b",
            "-a@b",
            "a@",
            "@b",
            "ssh://",
            "a:0",
            "a:65536",
            "a:ssh",
            "a\u{7}b",
            "..",
            "a;b",
            "$(x)",
            "a`b`",
            "a/b",
            "ssh://-x",
            "[::1]x",
            "a:",
            "[::1]:",
        ] {
            let error = HostList::parse(name, MOST_HOSTS).unwrap_err();
            assert!(
                matches!(error, HostListError::Name { .. }),
                "{name}: {error:?}"
            );
            assert!(
                error.to_string().contains("use host, user@host, host:port"),
                "{error}"
            );
        }
        let error = HostList::parse("a\u{1b}[1-2]", MOST_HOSTS)
            .unwrap_err()
            .to_string();
        assert!(!error.contains('\u{1b}'), "{error:?}");
        assert!(
            HostList::parse(&"x".repeat(10_000), MOST_HOSTS)
                .unwrap_err()
                .to_string()
                .len()
                < 300
        );
    }

    #[test]
    fn too_many_hosts_are_refused_with_remedy() {
        assert_eq!(
            HostList::parse("n[1-64]", MOST_HOSTS).unwrap().hosts.len(),
            MOST_HOSTS
        );
        for list in ["n[1-65]", "n[1-64],m"] {
            let error = HostList::parse(list, MOST_HOSTS).unwrap_err();
            assert_eq!(error, HostListError::TooMany(MOST_HOSTS));
            assert!(error.to_string().contains("--prometheus URL"));
        }
        let one_more = HostList::parse_file("n[1-64]\nm", MOST_HOSTS);
        assert_eq!(one_more, Err(HostListError::TooMany(MOST_HOSTS)));
        assert_eq!(HostList::parse("", MOST_HOSTS), Err(HostListError::None));
    }
}

#[cfg(test)]
mod names_tests {
    use super::*;

    fn expand_list(list: &str) -> Vec<String> {
        expand_names(list, 100).unwrap()
    }

    #[test]
    fn ranges_expand_in_slurm_format() {
        assert_eq!(
            expand_list("node[08-11,70]"),
            ["node08", "node09", "node10", "node11", "node70"]
        );
        assert_eq!(
            expand_list("node[8-11]"),
            ["node8", "node9", "node10", "node11"]
        );
        assert_eq!(
            expand_list("node[098-101].example"),
            [98, 99, 100, 101].map(|it| format!("node{it:03}.example"))
        );
        assert_eq!(
            expand_list("r[1-2]n[01-02]"),
            ["r1n01", "r1n02", "r2n01", "r2n02"]
        );
        assert_eq!(expand_list("a, b\tc[1,3] ,"), ["a", "b", "c1", "c3"]);
        assert_eq!(
            expand_list("login,gpu[1-2],big"),
            ["login", "gpu1", "gpu2", "big"]
        );
        assert_eq!(expand_list("[1-3]"), ["1", "2", "3"]);
        assert_eq!(expand_list(" , ,"), Vec::<String>::new());
    }

    #[test]
    fn brackets_of_ipv6_address_are_kept() {
        assert_eq!(
            expand_list("root@[fe80::1]:22,[::1]"),
            ["root@[fe80::1]:22", "[::1]"]
        );
    }

    #[test]
    fn invalid_host_range_is_refused() {
        for list in ["node[1-2", "node1-2]", "node[1-[2]]", "]["] {
            assert!(
                matches!(expand_names(list, 9), Err(NamesError::Bracket(_))),
                "{list}"
            );
        }
        for list in [
            "n[]",
            "n[a]",
            "n[2-1]",
            "n[1-]",
            "n[-1]",
            "n[1,,2]",
            "n[+1-2]",
            "n[99999999999999999999]",
        ] {
            assert!(
                matches!(expand_names(list, 9), Err(NamesError::Range { .. })),
                "{list}"
            );
        }
    }

    #[test]
    fn huge_list_is_refused_before_expansion() {
        for list in [
            "n[1-9999999999]",
            "n[1-9]m[1-9]",
            "n[1-9],m",
            "n[1-9]m[1-9]o[1-9]p[1-9]q[1-9]r[1-9]s[1-9]",
        ] {
            assert_eq!(expand_names(list, 9), Err(NamesError::TooMany(9)), "{list}");
        }
        let many = format!("n[{}]", vec!["1-9"; 100_000].join(","));
        assert_eq!(expand_names(&many, 9), Err(NamesError::TooMany(9)));
        assert_eq!(expand_names("n[1-9]", 9).unwrap().len(), 9);
    }
}

#[cfg(test)]
mod order_tests {
    use super::*;

    #[test]
    fn host_names_are_sorted_by_numeric_parts() {
        let mut names = [
            "n10", "n2", "n1-b", "N3", "n1", "n02", "m3", "n1-a10", "n1-a9",
        ];
        names.sort_by(|a, b| compare_names(a, b));
        assert_eq!(
            names,
            [
                "m3", "n1", "n1-a9", "n1-a10", "n1-b", "n02", "n2", "N3", "n10"
            ]
        );
    }
}
