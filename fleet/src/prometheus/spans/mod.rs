//! Queries about a time range. There are few of them. They use recorded sums if possible, and never
//! read every sample of every GPU.

pub(super) mod events;
pub(super) mod history;
pub(super) mod usage;

use std::{sync::Arc, time::Duration};

use super::{
    answer::Answer,
    ask::{Source, Steps, now_ms},
    cached::Fresh,
    client::QueryError,
    metrics::{self, Families, Reading},
    now::{Told, incomplete},
    promql::series,
    questions::NODE_RULES,
};
use crate::{
    model::{FleetEvents, FleetHistory, FleetState, FleetUsage},
    reader::Range,
};

/// Labels in which replicas of a Prometheus, or several jobs with the same targets, differ.
const REPLICAS: &str = "job, replica, prometheus_replica";

/// A reader of data about a time range.
pub(super) struct SpanReader {
    source: Arc<Source>,
    told: Told,
    range: Range,
    from_ms: u64,
    to_ms: u64,
    problems: Vec<String>,
    /// The error of the last failed query.
    failure: Option<QueryError>,
    is_answered: bool,
}

/// A result with a state and problems.
pub(super) trait Span: Clone + Send + Sync + 'static {
    fn state_and_problems(&mut self) -> (&mut FleetState, &mut Vec<String>);
}

macro_rules! impl_span {
    ($($span:ty),*) => {
        $(impl Span for $span {
            fn state_and_problems(&mut self) -> (&mut FleetState, &mut Vec<String>) {
                (&mut self.state, &mut self.problems)
            }
        })*
    };
}

impl_span!(FleetUsage, FleetEvents, FleetHistory);

/// Returns a result. If reading has failed, it is the previous or the `empty` result, with the
/// error as its problem.
pub(super) fn fresh<T: Span>(
    read: Result<T, QueryError>,
    before: Option<Arc<T>>,
    empty: T,
    period: Duration,
) -> Fresh<T> {
    let is_failure = read.is_err();
    let value = read.unwrap_or_else(|error| {
        let mut value = before.map_or(empty, |before| (*before).clone());
        let (state, problems) = value.state_and_problems();
        if *state != FleetState::Loading {
            *state = FleetState::Outdated;
        }
        *problems = vec![error.to_string()];
        value
    });
    Fresh {
        value: Arc::new(value),
        period,
        is_failure,
    }
}

impl SpanReader {
    pub(super) fn new(source: Arc<Source>, told: Told, range: Range) -> Self {
        let to_ms = now_ms();
        let from_ms = to_ms.saturating_sub(u64::from(range.seconds()) * 1000);
        Self {
            source,
            told,
            range,
            from_ms,
            to_ms,
            problems: Vec::new(),
            failure: None,
            is_answered: false,
        }
    }

    /// Sends a query. Returns `None` if only this query fails, which is reported as a problem.
    ///
    /// # Errors
    /// Returns an error that would affect all further queries.
    async fn ask<T: Send + 'static>(
        &mut self,
        expression: &str,
        steps: Option<Steps>,
        read: impl FnOnce(&Answer<'_>) -> T + Send + 'static,
    ) -> Result<Option<T>, QueryError> {
        match self.source.ask(expression, steps, read).await {
            Ok(asked) => {
                self.is_answered = true;
                for warning in asked.warnings {
                    self.problem(incomplete(&warning));
                }
                Ok(Some(asked.value))
            }
            Err(error) if error.is_of_all() => Err(error),
            Err(error) => {
                self.problem(error.to_string());
                self.failure = Some(error);
                Ok(None)
            }
        }
    }

    /// Returns the value of an expression, or `None` if it has none.
    async fn ask_number(&mut self, expression: &str) -> Result<Option<f64>, QueryError> {
        let read = |answer: &Answer<'_>| answer.rows.first().and_then(super::answer::Row::value);
        Ok(self.ask(expression, None, read).await?.flatten())
    }

    /// Returns the advice to show if `deploy/prometheus/fleet.yml` has not recorded most of the
    /// range.
    async fn unrecorded(&mut self) -> Result<&'static str, QueryError> {
        let rule = self.metric(NODE_RULES[0].0, "");
        let is_loaded = self.ask_number(&format!("count({rule})")).await?.is_some();
        Ok(match (is_loaded, self.told.is_doubled) {
            (false, _) => "Load deploy/prometheus/fleet.yml in Prometheus, which records it",
            (true, false) => {
                "deploy/prometheus/fleet.yml records it, and has not done so for the whole span yet"
            }
            (true, true) => {
                "deploy/prometheus/fleet.yml records it twice, since two jobs scrape the same: keep one of them"
            }
        })
    }

    /// Checks that a query has been answered.
    ///
    /// # Errors
    /// Returns the last error if all queries have failed.
    fn check(&self) -> Result<(), QueryError> {
        match &self.failure {
            Some(failure) if !self.is_answered => Err(failure.clone()),
            _ => Ok(()),
        }
    }

    fn problem(&mut self, problem: String) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn state(&self) -> FleetState {
        if self.problems.is_empty() {
            FleetState::Current
        } else {
            FleetState::Partial
        }
    }

    /// Returns the selector of a metric with the matchers of all series.
    fn metric(&self, name: &str, further: &str) -> String {
        let matchers = self.source.matchers_and(further);
        if matchers.is_empty() {
            name.to_owned()
        } else {
            format!("{name}{{{matchers}}}")
        }
    }
}

/// Returns the expressions of a reading under each of its names, in base units. Percentages are
/// converted to fractions, as in the recording rules.
fn in_base_units(id: &str, families: Families, matchers: &str) -> Vec<String> {
    let Some(reading) = Reading::of(id) else {
        return Vec::new();
    };
    let of = |name: &&str| {
        let (_, factor) = reading.family(name)?;
        let factor = if id == metrics::UTILIZATION {
            factor / 100.0
        } else {
            factor
        };
        let series = series(&[name], matchers)?;
        Some(if (factor - 1.0).abs() < f64::EPSILON {
            series
        } else {
            format!("{series} * {factor}")
        })
    };
    reading.names(families).iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_what_was_read_before_marked_so() {
        let history = |state| FleetHistory {
            node: None,
            state,
            problems: vec![],
            at_ms: vec![7],
            series: vec![],
        };
        let error = || Err(QueryError::Credentials("no token".to_owned()));
        let period = Duration::from_secs(1);
        let before = Some(Arc::new(history(FleetState::Partial)));
        let empty = FleetHistory {
            at_ms: vec![],
            ..history(FleetState::Loading)
        };
        let outdated = fresh(error(), before, empty.clone(), period);
        assert!(outdated.is_failure);
        assert_eq!(
            (outdated.value.state, outdated.value.at_ms.len()),
            (FleetState::Outdated, 1)
        );
        assert_eq!(outdated.value.problems, ["no token"]);
        let nothing = fresh(error(), None, empty, period);
        assert_eq!(
            (nothing.value.state, nothing.value.at_ms.len()),
            (FleetState::Loading, 0)
        );
    }
}
