//! Lists of hosts, from the command line or a file.

use std::collections::{BTreeMap, HashSet};

use thiserror::Error;

use super::names::{NamesError, expand};

/// The maximum number of hosts. Each host needs a process of its own, both here and on the host.
pub const MOST_HOSTS: usize = 64;

/// The maximum length of a host: the longest DNS name, the longest Linux user name, and a port.
const LONGEST: usize = 300;

/// The factor by which a file may repeat hosts.
const REPEATED: usize = 64;

/// Characters that no host or user name contains, and that ssh refuses as well. A shell would
/// interpret them where ssh's configuration inserts names into commands, and a slash would change
/// the path of a URL.
const NEVER: &str = "'`\"$\\;&<>|(){}[],/*?!#";

/// A host to read over ssh.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Host {
    /// The name in the list: without user and port, unless other hosts differ only in these.
    pub name: String,
    /// The argument for ssh: a name or an IP address, after `user@` if given.
    pub destination: String,
    /// The port, if given.
    pub port: Option<u16>,
}

impl Host {
    /// Returns the name or IP address without the user.
    pub fn address(&self) -> &str {
        bare(&self.destination)
    }
}

/// Hosts in the order in which they were given, without repetitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostList {
    hosts: Vec<Host>,
}

/// The reasons why a list of hosts is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HostListError {
    /// The list has too many hosts.
    #[error(
        "there are more than {0} hosts; give fewer, or show more than {MOST_HOSTS}, each of which needs a connection of \
         its own, with `gpumon fleet --prometheus URL`"
    )]
    TooMany(usize),
    /// The list has no host.
    #[error("no host is given; write names separated by commas, as in a,b,node[01-08]")]
    None,
    /// A list in brackets is invalid.
    #[error(transparent)]
    Names(NamesError),
    /// A name is invalid.
    #[error(
        "'{name}' is no host: {reason}; write host, user@host, host:port or ssh://user@host:port"
    )]
    Name {
        /// The name, with unprintable characters escaped.
        name: String,
        /// The reason why it is invalid.
        reason: &'static str,
    },
    /// A line of a file is invalid.
    #[error("line {line}: {error}")]
    Line {
        /// The line number, starting at 1.
        line: usize,
        /// The problem of the line.
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
        Self::new(parsed(list, most)?, most)
    }

    /// Parses a file with a list in each line. `#` starts a comment.
    ///
    /// # Errors
    /// Returns a [`HostListError`] with the line if a list is invalid.
    pub fn parse_file(text: &str, most: usize) -> Result<Self, HostListError> {
        let mut hosts = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let list = line.split_once('#').map_or(line, |(list, _)| list);
            let at = |error| HostListError::Line {
                line: number,
                error: Box::new(error),
            };
            hosts.extend(parsed(list, most).map_err(at)?);
            // Hosts may be repeated, so the limit is higher here.
            if hosts.len() > most.saturating_mul(REPEATED) {
                return Err(HostListError::TooMany(most));
            }
        }
        Self::new(hosts, most)
    }

    /// Returns the hosts of both lists.
    ///
    /// # Errors
    /// Returns [`HostListError::TooMany`] if there are more than `most`.
    pub fn with(self, others: Self, most: usize) -> Result<Self, HostListError> {
        let plain = |host: Host| Host {
            name: bare(&host.destination).to_owned(),
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

fn parsed(list: &str, most: usize) -> Result<Vec<Host>, HostListError> {
    expand(list, most)?.iter().map(|name| host(name)).collect()
}

fn host(typed: &str) -> Result<Host, HostListError> {
    let refuse = |reason| HostListError::Name {
        name: typed.escape_debug().to_string(),
        reason,
    };
    if typed.len() > LONGEST {
        let start = typed
            .chars()
            .take(40)
            .collect::<String>()
            .escape_debug()
            .to_string();
        return Err(HostListError::Name {
            name: start + "…",
            reason: "it is too long",
        });
    }
    let url = typed.strip_prefix("ssh://");
    let rest = url.map_or(typed, |rest| rest.strip_suffix('/').unwrap_or(rest));
    let (user, place) = rest
        .rsplit_once('@')
        .map_or((None, rest), |(user, place)| (Some(user), place));
    let (name, port) =
        split_port(place).ok_or_else(|| refuse("its port is no number from 1 to 65535"))?;
    for part in user.into_iter().chain([name]) {
        if part.is_empty() {
            return Err(refuse("a part of it is empty"));
        }
        if part.starts_with('-') {
            return Err(refuse(
                "it begins with a hyphen, which ssh would take for an option",
            ));
        }
        if part
            .chars()
            .any(|character| character.is_control() || character.is_whitespace())
        {
            return Err(refuse("it has a control character"));
        }
        if part.contains(|character| NEVER.contains(character)) || part == "." || part == ".." {
            return Err(refuse("it has a character that no name has"));
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
        // Several colons are part of an IPv6 address.
        Some((name, text)) if !text.contains(':') => Some((name, Some(port(text)?))),
        _ => Some((place, None)),
    }
}

/// Returns the destination without the user.
fn bare(destination: &str) -> &str {
    destination
        .rsplit_once('@')
        .map_or(destination, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(list: &str) -> Vec<(String, String, Option<u16>)> {
        let hosts = HostList::parse(list, MOST_HOSTS).unwrap().hosts;
        hosts
            .into_iter()
            .map(|host| (host.name, host.destination, host.port))
            .collect()
    }

    fn of(
        name: &str,
        destination: &str,
        port: impl Into<Option<u16>>,
    ) -> (String, String, Option<u16>) {
        (name.to_owned(), destination.to_owned(), port.into())
    }

    #[test]
    fn hosts_are_what_ssh_takes() {
        assert_eq!(
            told("a,ana@b,c:2222,ssh://bob@d:22/,ssh://e,[::1]:2200,fe80::1%eth0,ana@[::2]"),
            [
                of("a", "a", None),
                of("b", "ana@b", None),
                of("c", "c", 2222),
                of("d", "bob@d", 22),
                of("e", "e", None),
                of("::1", "::1", 2200),
                of("fe80::1%eth0", "fe80::1%eth0", None),
                of("::2", "ana@::2", None),
            ]
        );
        assert_eq!(
            told("ana@n[1-2]:22"),
            [of("n1", "ana@n1", 22), of("n2", "ana@n2", 22)]
        );
    }

    #[test]
    fn each_host_is_there_once_and_names_tell_them_apart() {
        assert_eq!(told("a,n[1-2],n[2-3],a").len(), 4);
        assert_eq!(
            told("a,ana@a:7,b"),
            [
                of("a", "a", None),
                of("ana@a:7", "ana@a", 7),
                of("b", "b", None)
            ]
        );
        let both = HostList::parse("a,b", MOST_HOSTS)
            .unwrap()
            .with(
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
    fn a_file_has_comments_and_its_errors_have_a_line() {
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
            error.starts_with("line 2: '-b' is no host: it begins with a hyphen"),
            "{error}"
        );
        assert_eq!(
            HostList::parse_file("# none\n", MOST_HOSTS),
            Err(HostListError::None)
        );
    }

    #[test]
    fn what_ssh_would_misunderstand_is_refused_with_the_cure() {
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
                error.to_string().contains("write host, user@host"),
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
    fn more_than_there_can_be_are_refused_with_the_cure() {
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
