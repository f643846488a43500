//! Prometheus queries: their construction in PromQL, and their sending. Responses are parsed
//! outside the event loop.

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;

use super::{
    answer::{self, Answer, MAX_SERIES},
    client::{Client, QueryError},
    settings::{Settings, SettingsError},
};
use crate::discovery::is_label_name;

/// The maximum size of a response, in bytes. This is enough for a hundred thousand series.
const MAX_ANSWER_BYTES: usize = 48 << 20;

/// A Prometheus server, and the matchers that select the series to read.
pub(super) struct Source {
    client: Client,
    pub(super) settings: Settings,
    /// The matchers that are added to every query, such as `cluster="a"`.
    pub(super) matchers: String,
    /// The total size of responses that were freed but not yet reported, in KiB.
    released_kib: AtomicUsize,
}

/// The time range and step of a range query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Steps {
    /// The start in seconds since 1970. It is usually a multiple of `step_s`, so that all viewers
    /// get the same response.
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) step_s: u32,
}

/// The value parsed from a response, and the source's warnings.
#[derive(Debug)]
pub(super) struct ParsedAnswer<T> {
    pub(super) value: T,
    pub(super) warnings: Vec<String>,
}

impl Source {
    /// Creates a source from `settings`.
    ///
    /// # Errors
    /// Returns the problem with the settings and its remedy.
    pub(super) fn new(settings: Settings) -> Result<Self, SettingsError> {
        let named = settings
            .labels
            .iter()
            .map(|(name, _)| name)
            .chain(&settings.node_label);
        for name in named {
            if !is_label_name(name) {
                let name = gpumon_probe::owner::clean_name(name);
                return Err(SettingsError(format!(
                    "'{name}' is not a valid label name; use letters, digits and underscores"
                )));
            }
        }
        let matchers: Vec<_> = settings
            .labels
            .iter()
            .map(|(name, value)| format!("{name}={}", quote_text(value)))
            .collect();
        Ok(Self {
            client: Client::new(&settings)?,
            matchers: matchers.join(","),
            settings,
            released_kib: AtomicUsize::new(0),
        })
    }

    /// Returns the total size of the responses freed since the last call, in KiB.
    pub(super) fn take_released_memory_kib(&self) -> usize {
        self.released_kib.swap(0, Relaxed)
    }

    /// Returns the server's address for display to users.
    pub(super) fn address(&self) -> &str {
        self.client.address()
    }

    /// Returns the matchers of this source combined with `further`.
    pub(super) fn combine_matchers(&self, further: &str) -> String {
        join_matchers(&self.matchers, further)
    }

    /// Returns the error for queries that have not been answered within the time limit.
    pub(super) fn timeout_error(&self) -> QueryError {
        self.client.timeout_error()
    }

    /// Sends a query, and converts the response with `read`.
    ///
    /// # Errors
    /// Returns the reason why there is no valid response.
    pub(super) async fn send_query<T: Send + 'static>(
        &self,
        expression: &str,
        steps: Option<Steps>,
        read: impl FnOnce(&Answer<'_>) -> T + Send + 'static,
    ) -> Result<ParsedAnswer<T>, QueryError> {
        let answered = match steps {
            None => {
                self.client
                    .fetch_endpoint("query", &[("query", expression)], MAX_ANSWER_BYTES)
                    .await
            }
            Some(Steps { from, to, step_s }) => {
                let [from, to, step] =
                    [from, to, u64::from(step_s)].map(|number| number.to_string());
                let parameters = [
                    ("query", expression),
                    ("start", &from),
                    ("end", &to),
                    ("step", &step),
                ];
                self.client
                    .fetch_endpoint("query_range", &parameters, MAX_ANSWER_BYTES)
                    .await
            }
        };
        let size = match &answered {
            Ok(bytes) => bytes.len(),
            Err(QueryError::TooLarge { most, .. }) => *most,
            Err(_) => 0,
        };
        let asked = match answered {
            Ok(bytes) => self.parse_answer(bytes, read).await,
            Err(error) => Err(error),
        };
        self.released_kib.fetch_add(size / 1024, Relaxed);
        asked
    }

    async fn parse_answer<T: Send + 'static>(
        &self,
        bytes: Bytes,
        read: impl FnOnce(&Answer<'_>) -> T + Send + 'static,
    ) -> Result<ParsedAnswer<T>, QueryError> {
        let parsed = tokio::task::spawn_blocking(move || {
            let mut answer = answer::parse_answer(&bytes)?;
            if answer.is_cut {
                answer.warnings.push(format!(
                    "the response has more than {MAX_SERIES} series, and the rest were left out"
                ));
            }
            let value = read(&answer);
            Ok(ParsedAnswer {
                value,
                warnings: answer.warnings,
            })
        });
        let parsed = parsed.await.unwrap_or_else(|error| Err(error.to_string()));
        parsed.map_err(|cause| QueryError::NotPrometheus {
            address: self.address().to_owned(),
            cause,
        })
    }
}

impl Steps {
    /// Returns steps that cover the last `range_s` seconds and are aligned to multiples of
    /// `step_s`.
    pub(super) fn new_until_now(range_s: u32, step_s: u32) -> Self {
        let step = u64::from(step_s.max(1));
        let to = now_ms() / 1000 / step * step;
        Self {
            from: to.saturating_sub(u64::from(range_s) / step * step),
            to,
            step_s: step_s.max(1),
        }
    }

    /// Returns steps that cover the last `range_s` seconds and end at the current minute, so that
    /// recent events are visible before the next multiple of a long step.
    pub(super) fn new_until_this_minute(range_s: u32, step_s: u32) -> Self {
        let even = Self::new_until_now(range_s, step_s);
        let later = (now_ms() / 60_000 * 60).saturating_sub(even.to);
        Self {
            from: even.from + later,
            to: even.to + later,
            ..even
        }
    }
}

/// Returns the current time in milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

// Construction of PromQL queries. Text from labels or settings must always be quoted.

/// Quotes a string for use in a PromQL query.
pub(super) fn quote_text(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns a regular expression that matches exactly the strings in `texts`. Prometheus looks up
/// the strings in its index instead of evaluating the expression.
pub(super) fn build_exact_pattern<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut pattern = String::new();
    for text in texts {
        if !pattern.is_empty() {
            pattern.push('|');
        }
        for character in text.chars() {
            if "\\.+*?()|[]{}^$".contains(character) {
                pattern.push('\\');
            }
            pattern.push(character);
        }
    }
    quote_text(&pattern)
}

/// Combines two lists of matchers. The result selects the series that match both lists.
pub(super) fn join_matchers(one: &str, other: &str) -> String {
    let separator = if one.is_empty() || other.is_empty() {
        ""
    } else {
        ","
    };
    format!("{one}{separator}{other}")
}

/// Returns a selector for the series with the given names and with matchers such as `a="b",c="d"`.
/// Returns `None` if `names` is empty.
pub(super) fn build_selector(names: &[&str], matchers: &str) -> Option<String> {
    match names {
        [] => None,
        [name] => Some(build_metric_selector(name, matchers)),
        names => {
            let pattern = build_exact_pattern(names.iter().copied());
            let matchers = join_matchers(&format!("__name__=~{pattern}"), matchers);
            Some(format!("{{{matchers}}}"))
        }
    }
}

/// Returns a selector for the series of one metric.
pub(super) fn build_metric_selector(name: &str, matchers: &str) -> String {
    if matchers.is_empty() {
        name.to_owned()
    } else {
        format!("{name}{{{matchers}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_in_query_text_are_escaped() {
        assert_eq!(
            quote_text("a\"} or vector(1) # \\ \n"),
            r#""a\"} or vector(1) # \\ \n""#
        );
        assert_eq!(
            build_exact_pattern(["node1.a:9124", "x|y"]),
            r#""node1\\.a:9124|x\\|y""#
        );
    }

    #[test]
    fn selector_accepts_one_metric_name_or_several() {
        assert_eq!(build_selector(&["up"], "").unwrap(), "up");
        assert_eq!(build_selector(&["up"], "a=\"b\"").unwrap(), "up{a=\"b\"}");
        assert_eq!(
            build_selector(&["a", "b"], "c=\"d\"").unwrap(),
            "{__name__=~\"a|b\",c=\"d\"}"
        );
        assert_eq!(build_selector(&[], ""), None);
    }

    #[test]
    fn label_names_may_contain_only_letters_digits_underscores() {
        assert_eq!(
            ["node", "_a1", "1a", "", "a-b", "a\"b"].map(is_label_name),
            [true, true, false, false, false, false]
        );
    }
}
