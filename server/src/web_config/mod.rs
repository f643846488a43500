//! The web configuration (`--web-config`): the file with TLS settings and passwords that
//! Prometheus' exporters use. [`tls`] contains the settings for connections.
//!
//! Settings that would have no effect here are refused, except `http2`.

mod tls;

use std::{
    collections::BTreeMap,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::Duration,
};

use axum::http::{HeaderName, HeaderValue};
use gpumon_probe::{
    private_file::{PrivateFile, Secrecy},
    units::parse_duration,
};
use gpumon_workload::suggest::suggest_word;
use serde::Deserialize;
use serde_saphyr::{Error, MessageFormatter, UserMessageFormatter};

pub(crate) use self::tls::Tls;
use self::tls::shorten_name;
use crate::auth::{Rate, Users};

/// The valid costs of bcrypt. A check takes a tenth of a second at cost 10, and twice as long for
/// each further step.
const BCRYPT_COST_LIMITS: RangeInclusive<u32> = 4..=16;

/// The headers that can be set. If a header has only a few valid values, they are listed.
const ALLOWED_HEADERS: [(&str, &[&str]); 5] = [
    ("Content-Security-Policy", &[]),
    ("Strict-Transport-Security", &[]),
    ("X-Content-Type-Options", &["nosniff"]),
    ("X-Frame-Options", &["deny", "sameorigin"]),
    ("X-XSS-Protection", &[]),
];

/// The settings that were read from a web configuration.
pub(crate) struct WebConfig {
    pub(crate) tls: Option<Tls>,
    pub(crate) users: Users,
    /// The rate limit for each client's requests, if it replaces the default.
    pub(crate) rate: Option<Rate>,
    /// The headers that are added to every response.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
}

impl WebConfig {
    /// Reads the web configuration. Also returns the paths of all files that were read.
    ///
    /// # Errors
    /// Returns the problem and its remedy.
    pub(crate) fn read(path: &Path) -> (Vec<PathBuf>, Result<Self, String>) {
        let mut files = vec![path.to_owned()];
        let read = Self::read_and_list_files(path, &mut files)
            .map_err(|why| format!("{}: {why}", path.display()));
        (files, read)
    }

    fn read_and_list_files(path: &Path, files: &mut Vec<PathBuf>) -> Result<Self, String> {
        let file = PrivateFile::read(path, Secrecy::Public).map_err(|error| error.to_string())?;
        let parsed = parse(file.text())?;
        let has_key = parsed
            .tls_server_config
            .as_ref()
            .is_some_and(|tls| tls.key.is_some());
        if has_key || !parsed.basic_auth_users.is_empty() {
            file.check_not_world_readable()
                .map_err(|error| error.to_string())?;
        }
        let folder = path.parent().unwrap_or(Path::new("."));
        Self::new(parsed, folder, files)
    }

    fn new(file: WebConfigFile, folder: &Path, files: &mut Vec<PathBuf>) -> Result<Self, String> {
        let users = file.basic_auth_users;
        users
            .iter()
            .try_for_each(|(user, hash)| check_hash(user, hash))?;
        let headers = file
            .http_server_config
            .headers
            .iter()
            .filter(|(_, value)| !value.is_empty());
        Ok(Self {
            tls: file
                .tls_server_config
                .map(|section| Tls::new(&section, folder, files))
                .transpose()?,
            users,
            rate: file.rate_limit.as_ref().map(parse_rate).transpose()?,
            headers: headers
                .map(|(name, value)| parse_header(name, value))
                .collect::<Result<_, _>>()?,
        })
    }
}

/// Parses a text as a web configuration.
///
/// # Panics
/// Panics if the text is refused without a message.
#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz_config(text: &str) {
    let mut files = Vec::new();
    let read = parse(text)
        .and_then(|parsed| WebConfig::new(parsed, Path::new("/nonexistent"), &mut files));
    if let Err(why) = read {
        assert!(!why.is_empty());
    }
}

fn check_hash(user: &str, hash: &str) -> Result<(), String> {
    let cure = "create one with `htpasswd -nBC 10 NAME`";
    if user.is_empty() || user.contains(':') || user.chars().any(char::is_control) {
        return Err(
            "basic_auth_users: a name is empty, or contains a colon or a control character"
                .to_owned(),
        );
    }
    let parts: bcrypt::HashParts = hash.parse().map_err(|_| {
        format!("basic_auth_users: the value of {user} is not a bcrypt hash; {cure}")
    })?;
    if !BCRYPT_COST_LIMITS.contains(&parts.get_cost()) {
        let (least, most) = BCRYPT_COST_LIMITS.into_inner();
        let cost = parts.get_cost();
        return Err(format!(
            "basic_auth_users: the hash of {user} has a cost of {cost}, but it must be {least} to \
             {most}; {cure}"
        ));
    }
    Ok(())
}

fn parse_rate(section: &RateSection) -> Result<Rate, String> {
    let interval = match section.interval.as_str() {
        "0" => Some(Duration::ZERO),
        text => parse_duration(text),
    };
    let spacing = interval
        .ok_or("rate_limit: interval must be a time such as 100ms or 1s, or 0 for no limit")?;
    if section.burst == 0 {
        return Err(
            "rate_limit: burst is 0, which would reject all requests; use at least 1".to_owned(),
        );
    }
    Ok(Rate {
        burst: section.burst,
        spacing,
    })
}

fn parse_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let known = ALLOWED_HEADERS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name));
    let names = ALLOWED_HEADERS.map(|(name, _)| name).join(", ");
    let (_, values) = known.ok_or_else(|| {
        format!("http_server_config: this header cannot be set; use one or more of {names}")
    })?;
    let bad = |why: String| format!("http_server_config: {name} {why}");
    if !values.is_empty() && !values.contains(&value) {
        return Err(bad(format!("must be one of {}", values.join(", "))));
    }
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| bad(error.to_string()))?;
    let value = HeaderValue::from_str(value)
        .map_err(|_| bad("has a value with a control character".to_owned()))?;
    Ok((name, value))
}

// The format of a web configuration file, as defined by Prometheus' exporter-toolkit.
//
// The types do not implement `Debug`, because they contain keys and password hashes.

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WebConfigFile {
    tls_server_config: Option<TlsSection>,
    http_server_config: HttpSection,
    basic_auth_users: BTreeMap<String, String>,
    rate_limit: Option<RateSection>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TlsSection {
    cert: Option<String>,
    cert_file: Option<String>,
    key: Option<String>,
    key_file: Option<String>,
    client_ca: Option<String>,
    client_ca_file: Option<String>,
    client_auth_type: Option<String>,
    client_allowed_sans: Vec<String>,
    min_version: Option<String>,
    max_version: Option<String>,
    cipher_suites: Vec<String>,
    prefer_server_cipher_suites: Option<bool>,
    curve_preferences: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HttpSection {
    /// This key is accepted but ignored. gpumon uses HTTP/1.1, which all HTTP/2 clients support.
    #[serde(rename = "http2")]
    _http2: Option<bool>,
    headers: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RateSection {
    interval: String,
    #[serde(default = "default_burst")]
    burst: u32,
}

fn default_burst() -> u32 {
    1
}

/// Parses a web configuration.
///
/// # Errors
/// Returns the problem and its line, without the value, because the value may be a secret.
fn parse(text: &str) -> Result<WebConfigFile, String> {
    // An empty file contains no settings, as in Prometheus. Error messages must not quote the file,
    // because it contains secrets.
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_str_with_options::<Option<WebConfigFile>>(text, options)
        .map(Option::unwrap_or_default)
        .map_err(|error| {
            let place = error
                .location()
                .map_or_else(String::new, |at| format!("line {}: ", at.line()));
            place + &describe_error(&error)
        })
}

/// Returns the error message without values. For an unknown key, the message suggests the most
/// similar known key.
fn describe_error(error: &Error) -> String {
    if let Error::SerdeUnknownField {
        field, expected, ..
    } = error
    {
        let all = format!("use one of {}", expected.join(", "));
        let hint = suggest_word(field, expected.iter().copied(), &all);
        return format!("unknown key '{}'; {hint}", shorten_name(field));
    }
    let message = UserMessageFormatter.format_message(error);
    let message = message.lines().next().unwrap_or_default();
    match message
        .split_once("invalid type: ")
        .or_else(|| message.split_once("invalid value: "))
    {
        Some((_, rest)) => {
            let expected = rest
                .rsplit_once(", expected ")
                .map_or(rest, |(_, expected)| expected);
            format!("the value is not {expected}")
        }
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_error(text: &str) -> String {
        parse(text).err().expect("an error")
    }

    #[test]
    fn unknown_key_is_reported_with_line_and_suggestion() {
        assert_eq!(
            parse_error("tls_server_confg: {}"),
            "line 1: unknown key 'tls_server_confg'; did you mean 'tls_server_config'?"
        );
        let of_tls = parse_error("tls_server_config:\n  cert_file: a\n  keyfile: b\n");
        assert!(
            of_tls.contains("line 3") && of_tls.contains("did you mean 'key_file'?"),
            "{of_tls}"
        );
        assert!(
            parse_error("http_server_config: {h2c: true}").contains("use one of http2, headers")
        );
        assert!(parse_error("rate_limit: {interval: 1s, bust: 3}").contains("'burst'"));
    }

    #[test]
    fn error_does_not_contain_value() {
        for text in [
            "basic_auth_users: 'ana: hunter2'",
            "basic_auth_users: {ana: [hunter2]}",
            "tls_server_config: {key: {hunter2: 1}}",
            "tls_server_config: hunter2",
            "rate_limit: {interval: 1s, burst: hunter2}",
            "basic_auth_users:\n  ana: 'hunter2\n",
            "hunter2",
            "basic_auth_users: {ana: a, ana: hunter2}",
            "? [hunter2]\n: 1",
        ] {
            let error = parse_error(text);
            assert!(
                !error.contains("hunter2") && !error.contains('\n'),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn empty_file_is_valid() {
        for text in ["", "# nothing\n", "---\n", "{}"] {
            assert!(
                parse(text)
                    .ok()
                    .is_some_and(|file| file.basic_auth_users.is_empty()),
                "{text:?}"
            );
        }
    }
}
