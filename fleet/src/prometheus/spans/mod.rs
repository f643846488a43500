//! Queries about time ranges. They are sent rarely, use recorded sums where possible, and never
//! read every sample of every GPU.

pub(super) mod events;
pub(super) mod history;
pub(super) mod usage;

use std::{sync::Arc, time::Duration};

use super::{
    answer::Answer,
    cached::FreshValue,
    client::QueryError,
    current_fleet::{FleetContext, describe_warning},
    metrics::{self, Families, Reading},
    query::{Source, Steps, build_metric_selector, now_ms},
    query_table::NODE_RULES,
};
use crate::{
    model::{FleetEvents, FleetHistory, FleetState, FleetUsage},
    source::Range,
};

/// The labels that differ between replicas of a Prometheus server, or between jobs with the same
/// targets.
const REPLICAS: &str = "job, replica, prometheus_replica";

/// A reader for data about one time range.
pub(super) struct SpanReader {
    source: Arc<Source>,
    told: FleetContext,
    range: Range,
    from_ms: u64,
    to_ms: u64,
    problems: Vec<String>,
    /// The error of the newest query that failed.
    failure: Option<QueryError>,
    is_answered: bool,
}

/// The result of a time range query, which has a state and a list of problems.
pub(super) trait TimeRangeResult: Clone + Send + Sync + 'static {
    fn state_and_problems(&mut self) -> (&mut FleetState, &mut Vec<String>);
}

macro_rules! impl_span {
    ($($span:ty),*) => {
        $(impl TimeRangeResult for $span {
            fn state_and_problems(&mut self) -> (&mut FleetState, &mut Vec<String>) {
                (&mut self.state, &mut self.problems)
            }
        })*
    };
}

impl_span!(FleetUsage, FleetEvents, FleetHistory);

/// Converts the result of a read into a value for the cache. After a failure, the value is the
/// previous result, or `empty` if there is none. The error replaces its problems.
pub(super) fn to_fresh_value<T: TimeRangeResult>(
    read: Result<T, QueryError>,
    before: Option<Arc<T>>,
    empty: T,
    period: Duration,
) -> FreshValue<T> {
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
    FreshValue {
        value: Arc::new(value),
        period,
        is_failure,
    }
}

impl SpanReader {
    pub(super) fn new(source: Arc<Source>, told: FleetContext, range: Range) -> Self {
        let to_ms = now_ms();
        Self {
            source,
            told,
            range,
            from_ms: range.start_ms(to_ms),
            to_ms,
            problems: Vec::new(),
            failure: None,
            is_answered: false,
        }
    }

    /// Sends a query. If only this query fails, reports the failure as a problem, and returns the
    /// default value.
    ///
    /// # Errors
    /// Returns an error that would affect all other queries too.
    async fn send_query<T: Default + Send + 'static>(
        &mut self,
        expression: &str,
        steps: Option<Steps>,
        read: impl FnOnce(&Answer<'_>) -> T + Send + 'static,
    ) -> Result<T, QueryError> {
        match self.source.send_query(expression, steps, read).await {
            Ok(asked) => {
                self.is_answered = true;
                for warning in asked.warnings {
                    self.add_problem(describe_warning(&warning));
                }
                Ok(asked.value)
            }
            Err(error) if error.affects_all_queries() => Err(error),
            Err(error) => {
                self.add_problem(error.to_string());
                self.failure = Some(error);
                Ok(T::default())
            }
        }
    }

    /// Returns the value of an expression, or `None` if the expression has no value.
    async fn query_number(&mut self, expression: &str) -> Result<Option<f64>, QueryError> {
        let read = |answer: &Answer<'_>| answer.rows.first().and_then(super::answer::Row::value);
        self.send_query(expression, None, read).await
    }

    /// Returns the advice for users whose Prometheus lacks data for most of the range. The rules in
    /// `deploy/prometheus/fleet.yml` would have recorded this data.
    async fn explain_missing_rules(&mut self) -> Result<&'static str, QueryError> {
        let rule = self.build_metric_selector(NODE_RULES[0].0, "");
        let is_loaded = self
            .query_number(&format!("count({rule})"))
            .await?
            .is_some();
        Ok(match (is_loaded, self.told.is_doubled) {
            (false, _) => "Load deploy/prometheus/fleet.yml in Prometheus to record this data",
            (true, false) => {
                "deploy/prometheus/fleet.yml records this data, but does not cover the whole \
                 time range yet"
            }
            (true, true) => {
                "deploy/prometheus/fleet.yml records this data twice, because two jobs scrape the \
                 same nodes: keep only one of the jobs"
            }
        })
    }

    /// Checks that at least one query has been answered.
    ///
    /// # Errors
    /// Returns the last error if all queries have failed.
    fn check_any_query_answered(&self) -> Result<(), QueryError> {
        match &self.failure {
            Some(failure) if !self.is_answered => Err(failure.clone()),
            _ => Ok(()),
        }
    }

    fn add_problem(&mut self, problem: String) {
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

    /// Returns a selector for a metric that combines the source's matchers with `further`.
    fn build_metric_selector(&self, name: &str, further: &str) -> String {
        let matchers = self.source.combine_matchers(further);
        build_metric_selector(name, &matchers)
    }
}

/// Returns one expression for each metric name of the reading `id`. The values are in base units.
/// Percentages are converted to fractions, as in the recording rules.
fn list_base_unit_expressions(id: &str, families: Families, matchers: &str) -> Vec<String> {
    let Some(reading) = Reading::find(id) else {
        return Vec::new();
    };
    let of = |name: &&str| {
        let (_, factor) = reading.find_family_and_factor(name)?;
        let factor = if id == metrics::UTILIZATION {
            factor / 100.0
        } else {
            factor
        };
        let series = build_metric_selector(name, matchers);
        Some(if (factor - 1.0).abs() < f64::EPSILON {
            series
        } else {
            format!("{series} * {factor}")
        })
    };
    reading
        .list_metric_names(families)
        .iter()
        .filter_map(of)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_reading_keeps_previous_data_as_outdated() {
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
        let outdated = to_fresh_value(error(), before, empty.clone(), period);
        assert!(outdated.is_failure);
        assert_eq!(
            (outdated.value.state, outdated.value.at_ms.len()),
            (FleetState::Outdated, 1)
        );
        assert_eq!(outdated.value.problems, ["no token"]);
        let nothing = to_fresh_value(error(), None, empty, period);
        assert_eq!(
            (nothing.value.state, nothing.value.at_ms.len()),
            (FleetState::Loading, 0)
        );
    }
}
