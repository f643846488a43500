//! Patterns of hostnames from the administrator, such as `*.gpus.example.org`.

use std::{fmt, str::FromStr};

/// The maximum number of wildcards in a pattern. Each wildcard makes matching slower.
const MAX_WILDCARDS: usize = 4;

/// A host's name or address, in which `*` matches any characters except dots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern(String);

impl HostPattern {
    /// Returns `true` if the pattern matches the whole name or address. Case is ignored.
    pub(super) fn covers_host(&self, host: &str) -> bool {
        matches_wildcards(
            self.0.as_bytes(),
            host.trim_end_matches('.').to_ascii_lowercase().as_bytes(),
        )
    }
}

fn matches_wildcards(pattern: &[u8], host: &[u8]) -> bool {
    match pattern {
        [] => host.is_empty(),
        [b'*', rest @ ..] => {
            let longest = host
                .iter()
                .position(|byte| *byte == b'.')
                .unwrap_or(host.len());
            (0..=longest).any(|length| matches_wildcards(rest, &host[length..]))
        }
        [first, rest @ ..] => host.first() == Some(first) && matches_wildcards(rest, &host[1..]),
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for HostPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            Err(format!(
                "{why}; use a name or an address, such as *.gpus.example.org or 10.0.7.*"
            ))
        };
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:*".contains(&byte);
        if !text.bytes().all(is_fit) {
            return wrong(
                "a host can contain only letters, digits, '-', '_', '.' and ':', without a scheme \
                 or a path",
            );
        }
        if !text.bytes().any(|byte| byte.is_ascii_alphanumeric()) {
            return wrong("this pattern would match every host of the same form");
        }
        if text.bytes().filter(|byte| *byte == b'*').count() > MAX_WILDCARDS {
            return wrong("a pattern can have at most four wildcards");
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern_covers(pattern: &str, host: &str) -> bool {
        pattern.parse::<HostPattern>().unwrap().covers_host(host)
    }

    #[test]
    fn wildcard_does_not_match_dot() {
        for (pattern, host) in [
            ("node1", "node1"),
            ("*.gpus.example.org", "node1.gpus.example.org"),
            ("gpu-*.Example.org", "GPU-17.example.org."),
            ("10.0.7.*", "10.0.7.31"),
            ("fd00::*", "fd00::7"),
            ("a*b*c", "abbc"),
        ] {
            assert!(pattern_covers(pattern, host), "{pattern} {host}");
        }
        for (pattern, host) in [
            ("node1", "node10"),
            ("node1", "node1.evil.example"),
            ("*.gpus.example.org", "gpus.example.org"),
            ("*.gpus.example.org", "a.b.gpus.example.org"),
            ("*.gpus.example.org", "gpus.example.org.evil.example"),
            ("10.0.7.*", "10.0.7.evil.example"),
            ("*1", "node1.evil.example.1"),
        ] {
            assert!(!pattern_covers(pattern, host), "{pattern} {host}");
        }
    }

    #[test]
    fn pattern_matching_everything_is_refused() {
        for pattern in [
            "*",
            "*.*",
            "",
            ".",
            "https://node1",
            "node1/",
            "a b",
            "*a*b*c*d*e",
        ] {
            let error = pattern.parse::<HostPattern>().unwrap_err();
            assert!(
                error.contains("such as *.gpus.example.org"),
                "{pattern}: {error}"
            );
        }
    }
}
