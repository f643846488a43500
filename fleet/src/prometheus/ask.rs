//! Queries to Prometheus, whose answers are parsed off the event loop.

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;

use super::{
    answer::{self, Answer, MOST_SERIES},
    client::{Client, QueryError},
    promql::{is_label_name, quoted},
    settings::{Settings, SettingsError},
};

/// The maximum size of an answer in bytes, enough for a hundred thousand series.
const MOST_BYTES: usize = 48 << 20;

/// A Prometheus, and the selection of series to read.
pub(super) struct Source {
    client: Client,
    pub(super) settings: Settings,
    /// The matchers of all series, such as `cluster="a"`.
    pub(super) matchers: String,
    /// The size of answers that have been freed, in KiB.
    released_kib: AtomicUsize,
}

/// The times of a range query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Steps {
    /// The start in seconds since 1970. It is usually a multiple of `step_s`, so that all viewers
    /// get the same answer.
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) step_s: u32,
}

/// The parsed answer, with the warnings of its source.
#[derive(Debug)]
pub(super) struct Asked<T> {
    pub(super) value: T,
    pub(super) warnings: Vec<String>,
}

impl Source {
    /// Creates a source from settings.
    ///
    /// # Errors
    /// Returns the problem of the settings and its remedy.
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
                    "'{name}' is no name of a label; use letters, digits and underscores"
                )));
            }
        }
        let matchers: Vec<_> = settings
            .labels
            .iter()
            .map(|(name, value)| format!("{name}={}", quoted(value)))
            .collect();
        Ok(Self {
            client: Client::new(&settings)?,
            matchers: matchers.join(","),
            settings,
            released_kib: AtomicUsize::new(0),
        })
    }

    /// Returns how many KiB of answers have been freed since the last call.
    pub(super) fn released_kib(&self) -> usize {
        self.released_kib.swap(0, Relaxed)
    }

    /// Returns the address for display.
    pub(super) fn address(&self) -> &str {
        self.client.address()
    }

    /// Returns the matchers of all series, combined with further ones.
    pub(super) fn matchers_and(&self, further: &str) -> String {
        match (self.matchers.as_str(), further) {
            ("", further) => further.to_owned(),
            (all, "") => all.to_owned(),
            (all, further) => format!("{all},{further}"),
        }
    }

    /// Sends a query, and parses the answer with `read`.
    ///
    /// # Errors
    /// Returns the reason why there is no answer.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        expression: &str,
        steps: Option<Steps>,
        read: impl FnOnce(&Answer<'_>) -> T + Send + 'static,
    ) -> Result<Asked<T>, QueryError> {
        let answered = match steps {
            None => {
                self.client
                    .get("query", &[("query", expression)], MOST_BYTES)
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
                    .get("query_range", &parameters, MOST_BYTES)
                    .await
            }
        };
        let size = match &answered {
            Ok(bytes) => bytes.len(),
            Err(QueryError::TooLarge { most, .. }) => *most,
            Err(_) => 0,
        };
        let asked = match answered {
            Ok(bytes) => self.parsed(bytes, read).await,
            Err(error) => Err(error),
        };
        self.released_kib.fetch_add(size / 1024, Relaxed);
        asked
    }

    async fn parsed<T: Send + 'static>(
        &self,
        bytes: Bytes,
        read: impl FnOnce(&Answer<'_>) -> T + Send + 'static,
    ) -> Result<Asked<T>, QueryError> {
        let parsed = tokio::task::spawn_blocking(move || {
            let mut answer = answer::parse(&bytes)?;
            if answer.is_cut {
                answer.warnings.push(format!(
                    "it has more than {MOST_SERIES} series, and the others are left out"
                ));
            }
            let value = read(&answer);
            Ok(Asked {
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
    /// Returns the steps of this many seconds until now.
    pub(super) fn until_now(range_s: u32, step_s: u32) -> Self {
        let step = u64::from(step_s.max(1));
        let to = now_ms() / 1000 / step * step;
        Self {
            from: to.saturating_sub(u64::from(range_s) / step * step),
            to,
            step_s: step_s.max(1),
        }
    }

    /// Returns the same steps until the current minute, so that recent events are visible before
    /// the next multiple of a long step.
    pub(super) fn until_this_minute(range_s: u32, step_s: u32) -> Self {
        let even = Self::until_now(range_s, step_s);
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
