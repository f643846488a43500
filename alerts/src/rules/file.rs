//! The TOML structure of an alert file, and the values in it that are written as text: durations,
//! quiet times, placeholders, and webhook addresses.

use std::{fmt, time::Duration};

use gpumon_probe::{
    model::{GpuName, LimitClass, Severity},
    units::{AcceptedAmounts, Amount},
};
use jiff::{
    Timestamp,
    civil::{DateTime, Time},
    tz::TimeZone,
};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::RateUnit;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AlertFile {
    #[serde(default)]
    pub(super) rule: Vec<RuleTable>,
    #[serde(default)]
    pub(super) webhook: Vec<WebhookTable>,
    #[serde(default)]
    pub(super) command: Vec<CommandTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleTable {
    pub(super) name: Spanned<String>,
    pub(super) field: Option<Spanned<String>>,
    pub(super) condition: Option<Spanned<String>>,
    pub(super) min_severity: Option<Spanned<Severity>>,
    pub(super) limited_by: Option<Spanned<LimitClass>>,
    pub(super) absent: Option<Spanned<bool>>,
    pub(super) above: Option<Spanned<Amount>>,
    pub(super) below: Option<Spanned<Amount>>,
    pub(super) clear_above: Option<Spanned<Amount>>,
    pub(super) clear_below: Option<Spanned<Amount>>,
    pub(super) per: Option<Spanned<RateUnit>>,
    pub(super) over: Option<Spanned<RuleDuration>>,
    #[serde(rename = "for")]
    pub(super) for_time: Option<RuleDuration>,
    pub(super) clear_for: Option<RuleDuration>,
    pub(super) gpus: Option<Spanned<Vec<GpuName>>>,
    pub(super) severity: Option<Severity>,
    pub(super) message: Option<Spanned<String>>,
    pub(super) repeat: Option<Spanned<RuleDuration>>,
    #[serde(default)]
    pub(super) silence: Vec<Spanned<String>>,
    pub(super) notify: Option<Vec<Spanned<String>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WebhookTable {
    pub(super) name: Spanned<String>,
    pub(super) url: Option<Spanned<String>>,
    pub(super) url_file: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) format: WebhookFormat,
    pub(super) timeout: Option<Spanned<RuleDuration>>,
}

/// The format of a webhook's request body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebhookFormat {
    /// The alert's event as JSON, with the name of the machine.
    #[default]
    Json,
    /// A message for incoming webhooks of Slack or Mattermost.
    Slack,
}

impl fmt::Display for WebhookFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "json",
            Self::Slack => "slack",
        })
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommandTable {
    pub(super) name: Spanned<String>,
    pub(super) command: Spanned<Vec<Spanned<String>>>,
    pub(super) timeout: Option<Spanned<RuleDuration>>,
}

/// The accepted durations of a rule. A duration over 30 days must be a mistake.
const ACCEPTED_DURATIONS: AcceptedAmounts<Duration> = AcceptedAmounts::accept_durations(
    Duration::ZERO,
    Duration::from_hours(30 * 24),
    "a duration of up to 30 days with a unit, such as \"30s\", \"2m\" or \"4h\"",
);

/// A duration with a unit, such as `90s`, `2m` or `4h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RuleDuration(pub(super) Duration);

impl RuleDuration {
    pub(super) fn as_millis(self) -> u64 {
        self.0.as_millis() as u64
    }
}

impl<'de> Deserialize<'de> for RuleDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ACCEPTED_DURATIONS.deserialize(deserializer).map(Self)
    }
}

/// A time at which nobody is notified, in the time zone of the machine: hours of the day such as
/// `22:00-07:00`, or a date such as `until 2026-12-24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuietTime {
    /// Every day from the first time until the second, which may be on the next day.
    Daily(Time, Time),
    /// All times before this moment.
    Until(DateTime),
}

/// The accepted formats of a quiet time, for error messages.
pub(super) const EXPECTED_QUIET_TIMES: &str = "hours of the day, such as \"22:00-07:00\", or a date, \
     such as \"until 2026-12-24\" or \"until 2026-12-24T18:00\"";

impl QuietTime {
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Some(until) = text.strip_prefix("until ") {
            return until.trim().parse().ok().map(Self::Until);
        }
        let (from, to) = text.split_once('-')?;
        let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        (from != to).then_some(Self::Daily(from, to))
    }

    /// Returns `true` if the time `at_ms` is in this quiet time. `zone` is the time zone of the
    /// quiet time's hours and dates.
    pub fn contains(&self, at_ms: u64, zone: &TimeZone) -> bool {
        let Ok(at) = Timestamp::from_millisecond(at_ms.cast_signed()) else {
            return false;
        };
        let at = zone.to_datetime(at);
        match *self {
            Self::Until(end) => at < end,
            Self::Daily(from, to) if from < to => (from..to).contains(&at.time()),
            Self::Daily(from, to) => at.time() >= from || at.time() < to,
        }
    }
}

// Placeholders such as `{rule}`, which are replaced by the values of a notification.

/// The names of all placeholders.
pub(crate) const PLACEHOLDER_NAMES: [&str; 8] = [
    "status", "rule", "severity", "text", "gpu", "uuid", "host", "since_ms",
];

/// Returns the first unknown placeholder in `word`. Braces that do not enclose a name are not a
/// placeholder.
pub(crate) fn find_unknown_placeholder(word: &str) -> Option<&str> {
    split_placeholders(word)
        .find_map(|(_, name)| name.filter(|name| !PLACEHOLDER_NAMES.contains(name)))
}

/// The programs that only display their arguments. Other programs, such as shells, interpreters,
/// `ssh` and `find`, can execute their arguments, and a list of those programs could never be
/// complete.
pub(crate) const DISPLAY_PROGRAMS: [&str; 5] =
    ["notify-send", "dunstify", "logger", "zenity", "kdialog"];

/// Returns `true` if the program's file name is one of [`DISPLAY_PROGRAMS`].
pub(crate) fn only_displays_arguments(program: &str) -> bool {
    program
        .rsplit('/')
        .next()
        .is_some_and(|name| DISPLAY_PROGRAMS.contains(&name))
}

/// Returns `true` if the word contains a placeholder.
pub(crate) fn has_placeholder(word: &str) -> bool {
    split_placeholders(word).any(|(_, name)| name.is_some())
}

/// Returns `true` if the word contains `{text}`. Its value can contain names of processes and
/// notebooks, which other users choose. The values of all other placeholders are chosen by the
/// machine's administrators.
pub(crate) fn has_text_placeholder(word: &str) -> bool {
    split_placeholders(word).any(|(_, name)| name == Some("text"))
}

/// Splits a word at its placeholders. Yields each placeholder's name with the text before it, and
/// finally the text after the last placeholder.
pub(crate) fn split_placeholders(word: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut rest = Some(word);
    std::iter::from_fn(move || {
        let text = rest?;
        let found = text.match_indices('{').find_map(|(at, _)| {
            let (name, _) = text[at + 1..].split_once('}')?;
            let is_name =
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
            is_name.then_some((at, name))
        });
        if let Some((at, name)) = found {
            rest = Some(&text[at + name.len() + 2..]);
            Some((&text[..at], Some(name)))
        } else {
            rest = None;
            Some((text, None))
        }
    })
}

/// The example URL in error messages, without its scheme.
const EXAMPLE_URL: &str = "://HOST/PATH";

/// A parsed `http` or `https` URL. It is a secret, because anyone who knows it can send messages,
/// and is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookAddress {
    /// Whether the scheme is `https`.
    pub is_tls: bool,
    /// The name or address of the host. An IPv6 address has no brackets.
    pub host: String,
    pub port: u16,
    /// The path with the query.
    pub target: String,
}

impl WebhookAddress {
    /// Parses a URL.
    ///
    /// # Errors
    /// Returns what is wrong with the URL, without quoting it.
    pub fn parse(url: &str) -> Result<Self, &'static str> {
        const EXPECTED_URL: &str = "the URL of a webhook must have the form \"https://HOST/PATH\"";
        let (scheme, rest) = url.split_once("://").ok_or(EXPECTED_URL)?;
        let is_tls = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(EXPECTED_URL),
        };
        if rest
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || !c.is_ascii())
        {
            return Err(
                "the URL contains spaces or non-ASCII characters; percent-encode them, for example \
                 a space as %20",
            );
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(
                "the URL contains a user name, which is not sent; put the credentials into the \
                 path or the query",
            );
        }
        let usual = if is_tls { 443 } else { 80 };
        let (host, port) = match authority
            .strip_prefix('[')
            .and_then(|inner| inner.split_once(']'))
        {
            Some((host, "")) => (host, Some(usual)),
            Some((host, port)) => (
                host,
                port.strip_prefix(':').and_then(|port| port.parse().ok()),
            ),
            None => match authority.split_once(':') {
                Some((host, port)) => (host, port.parse().ok()),
                None => (authority, Some(usual)),
            },
        };
        let port = port
            .filter(|port| *port != 0)
            .ok_or("the port of the URL must be a number from 1 to 65535")?;
        if host.is_empty() {
            return Err(EXPECTED_URL);
        }
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(Self {
            is_tls,
            host: host.to_owned(),
            port,
            target: format!("{slash}{target}"),
        })
    }

    /// Returns the host and port as written in a URL. A default port is omitted.
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        match (self.is_tls, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

/// Replaces everything in `text` that may be a webhook address, except for the example URL.
pub(super) fn redact_urls(text: &str) -> String {
    let mut hidden = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, address) = rest.split_at(at);
        let end = address
            .find(|c: char| c.is_whitespace() || "\"'`".contains(c))
            .unwrap_or(address.len());
        let (address, behind) = address.split_at(end);
        hidden.extend([
            before,
            if address == EXAMPLE_URL {
                EXAMPLE_URL
            } else {
                "://…"
            },
        ]);
        rest = behind;
    }
    hidden + rest
}

impl fmt::Debug for WebhookAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Address(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_needs_unit_and_is_limited() {
        for (text, seconds) in [("0s", 0), ("90s", 90), ("1h30m", 5400), ("30d", 2_592_000)] {
            assert_eq!(
                ACCEPTED_DURATIONS.parse(text),
                Ok(Duration::from_secs(seconds)),
                "{text}"
            );
        }
        for text in ["", "2", "2 min 3", "-1m", "31d", "m"] {
            assert!(ACCEPTED_DURATIONS.parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_unknown_placeholder_in_braces_is_reported() {
        assert_eq!(
            (
                find_unknown_placeholder("{rule} {txet}"),
                find_unknown_placeholder("{rule} {} {1}")
            ),
            (Some("txet"), None)
        );
    }
}

#[cfg(test)]
mod quiet_time_tests {
    use super::*;

    fn quiet_time_contains(text: &str, at: &str) -> bool {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let at_ms = at
            .parse::<DateTime>()
            .unwrap()
            .to_zoned(zone.clone())
            .unwrap()
            .timestamp()
            .as_millisecond();
        QuietTime::parse(text)
            .unwrap()
            .contains(at_ms as u64, &zone)
    }

    #[test]
    fn silence_hours_can_cross_midnight() {
        for (at, night, noon) in [
            ("2026-03-01T21:59:59", false, false),
            ("2026-03-01T22:00", true, false),
            ("2026-03-02T06:59:59", true, false),
            ("2026-03-02T07:00", false, false),
            ("2026-03-02T12:30", false, true),
        ] {
            assert_eq!(
                (
                    quiet_time_contains("22:00-07:00", at),
                    quiet_time_contains("12:00 - 13:00", at)
                ),
                (night, noon),
                "{at}"
            );
        }
    }

    #[test]
    fn silence_ends_on_given_date() {
        assert!(
            quiet_time_contains("until 2026-12-24", "2026-12-23T23:59:59")
                && !quiet_time_contains("until 2026-12-24", "2026-12-24T00:00")
        );
        assert!(quiet_time_contains(
            "until 2026-12-24T18:00",
            "2026-12-24T17:00"
        ));
        for text in [
            "",
            "22:00",
            "25:00-07:00",
            "07:00-07:00",
            "until tomorrow",
            "until",
        ] {
            assert_eq!(QuietTime::parse(text), None, "{text}");
        }
    }
}

#[cfg(test)]
mod address_tests {
    use super::*;

    #[test]
    fn parsed_url_is_never_displayed() {
        let parts = |url| {
            WebhookAddress::parse(url)
                .map(|it| (it.is_tls, it.host.clone(), it.port, it.target.clone()))
        };
        assert_eq!(
            parts("https://hooks.example.org/services/T0/B0?x=1#y"),
            Ok((
                true,
                "hooks.example.org".into(),
                443,
                "/services/T0/B0?x=1".into()
            ))
        );
        assert_eq!(
            parts("http://127.0.0.1:8080"),
            Ok((false, "127.0.0.1".into(), 8080, "/".into()))
        );
        assert_eq!(
            parts("http://[::1]:81?a"),
            Ok((false, "::1".into(), 81, "/?a".into()))
        );
        assert_eq!(
            WebhookAddress::parse("http://[::1]:81/")
                .unwrap()
                .authority(),
            "[::1]:81"
        );
        for bad in [
            "hooks.example.org",
            "ftp://a/",
            "https:///x",
            "https://u:p@a/",
            "http://a:0/",
            "http://a b/",
        ] {
            let error = WebhookAddress::parse(bad).unwrap_err();
            assert!(!error.contains(bad), "{error}");
        }
        let shown = format!(
            "{:?}",
            WebhookAddress::parse("https://hooks.example.org/secret")
        );
        assert!(!shown.contains("secret"), "{shown}");
    }
}
