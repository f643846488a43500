//! The web configuration (`--web-config`): the file with TLS settings and passwords that
//! Prometheus' exporters use.
//!
//! [`file`] contains the file format, and [`tls`] and [`client_certificates`] the settings for
//! connections.
//!
//! Settings that would have no effect here are refused, except `http2`.

mod client_certificates;
mod file;
mod tls;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use axum::http::{HeaderName, HeaderValue};
use gpumon_probe::{
    private_file::{PrivateFile, Secrecy},
    units::parse_duration,
};

use self::file::{RateSection, WebConfigFile};
pub(crate) use self::tls::Tls;
use crate::auth::{Rate, Users};

/// The valid costs of bcrypt. A check takes a tenth of a second at cost 10, and twice as long for
/// each further step.
const BCRYPT_COST_LIMITS: std::ops::RangeInclusive<u32> = 4..=16;

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
        let parsed = file::parse(file.text())?;
        let has_key = parsed
            .tls_server_config
            .as_ref()
            .is_some_and(|tls| tls.key.is_some());
        if has_key || !parsed.basic_auth_users.is_empty() {
            file.check_secret().map_err(|error| error.to_string())?;
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
    let read = file::parse(text)
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
