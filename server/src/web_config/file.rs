//! The format of a web configuration file, as defined by Prometheus' exporter-toolkit.
//!
//! The types do not implement `Debug`, because they contain keys and password hashes.

use std::collections::BTreeMap;

use gpumon_workload::suggest::suggest_word;
use serde::Deserialize;
use serde_saphyr::{Error, MessageFormatter, UserMessageFormatter};

use super::client_certificates::shorten_name;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WebConfigFile {
    pub(super) tls_server_config: Option<TlsSection>,
    pub(super) http_server_config: HttpSection,
    pub(super) basic_auth_users: BTreeMap<String, String>,
    pub(super) rate_limit: Option<RateSection>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TlsSection {
    pub(super) cert: Option<String>,
    pub(super) cert_file: Option<String>,
    pub(super) key: Option<String>,
    pub(super) key_file: Option<String>,
    pub(super) client_ca: Option<String>,
    pub(super) client_ca_file: Option<String>,
    pub(super) client_auth_type: Option<String>,
    pub(super) client_allowed_sans: Vec<String>,
    pub(super) min_version: Option<String>,
    pub(super) max_version: Option<String>,
    pub(super) cipher_suites: Vec<String>,
    pub(super) prefer_server_cipher_suites: Option<bool>,
    pub(super) curve_preferences: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct HttpSection {
    /// This key is accepted but ignored. gpumon uses HTTP/1.1, which all HTTP/2 clients support.
    #[serde(rename = "http2")]
    _http2: Option<bool>,
    pub(super) headers: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RateSection {
    pub(super) interval: String,
    #[serde(default = "one")]
    pub(super) burst: u32,
}

fn one() -> u32 {
    1
}

/// Parses a web configuration.
///
/// # Errors
/// Returns the problem and its line, without the value, because the value may be a secret.
pub(super) fn parse(text: &str) -> Result<WebConfigFile, String> {
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
