//! Readings of a fleet or a node over time, up to now.

use std::{sync::Arc, time::Duration};

use super::{REPLICAS, SpanReader, list_base_unit_expressions, to_fresh_value};
use crate::{
    model::{FleetHistory, FleetSeries, FleetState},
    prometheus::{
        answer::Answer,
        cached::FreshValue,
        client::QueryError,
        current_fleet::FleetContext,
        metrics::{self, Families},
        query::{Source, Steps, build_metric_selector, build_selector},
    },
    source::Range,
};

/// The maximum number of points in a series.
const MAX_STEPS: u32 = 120;

/// The maximum number of values that Prometheus has to add up for one series. Each point needs one
/// value per GPU.
const MAX_VALUES: u32 = 500_000;

/// The number of GPUs above which the history is read less often.
const MAX_FREQUENT_GPUS: u32 = 1000;

/// The id of the series with the number of GPUs. The first constant below is the id of the series
/// with the number of GPUs in use. The second one contains the ids of all series.
const GPUS: &str = "gpus";
const GPUS_HELD: &str = "gpus_held";
const IDS: [&str; 6] = [
    metrics::UTILIZATION,
    metrics::MEMORY_USED,
    metrics::MEMORY_TOTAL,
    metrics::POWER,
    GPUS,
    GPUS_HELD,
];

/// Recording rules for sums over all GPUs of a job.
const SUM_RULES: [&str; 6] = [
    "job:gpumon_gpu_utilization_ratio:sum",
    "job:gpumon_gpu_memory_used_bytes:sum",
    "job:gpumon_gpu_memory_total_bytes:sum",
    "job:gpumon_gpu_power_watts:sum",
    "job:gpumon_gpus:count",
    "job:gpumon_gpus_held:sum",
];

/// The recording rule for the number of GPUs that report their utilization. Older versions of
/// `deploy/prometheus/fleet.yml` do not contain it.
const REPORTING_RULE: &str = "job:gpumon_gpu_utilization_ratio:count";

pub(in crate::prometheus) async fn read_history(
    source: Arc<Source>,
    told: FleetContext,
    (range, node): (Range, Option<(String, String)>),
    before: Option<Arc<FleetHistory>>,
) -> FreshValue<FleetHistory> {
    let reader = SpanReader::new(source, told, range);
    // Adding up so many GPUs takes Prometheus about a second per query. The history is therefore
    // read less often.
    let least = if node.is_none() && reader.told.gpus > MAX_FREQUENT_GPUS {
        120
    } else {
        0
    };
    let period = Duration::from_secs(u64::from(choose_step(range, MAX_STEPS).max(least)));
    let empty = empty_history(node.as_ref().map(|(name, _)| name.clone()));
    to_fresh_value(reader.query_history(node).await, before, empty, period)
}

/// Returns the history before anything has been read.
pub(in crate::prometheus) fn empty_history(node: Option<String>) -> FleetHistory {
    FleetHistory {
        node,
        state: FleetState::Loading,
        problems: Vec::new(),
        at_ms: Vec::new(),
        series: Vec::new(),
    }
}

impl SpanReader {
    /// Reads the history of the fleet, or of one node if its name and matchers are given.
    async fn query_history(
        mut self,
        node: Option<(String, String)>,
    ) -> Result<FleetHistory, QueryError> {
        let (name, matchers) = node.unzip();
        let steps = Steps::new_until_now(self.range.seconds(), choose_step(self.range, MAX_STEPS));
        let recorded = if matchers.is_none() && self.told.families.own && !self.told.is_doubled {
            let sum = |rule| {
                format!(
                    "sum(max without (replica, prometheus_replica) ({}))",
                    self.build_metric_selector(rule, "")
                )
            };
            let [utilization, used, total, power, gpus, held] = SUM_RULES.map(sum);
            let mean = format!("{utilization} / ({} or {gpus})", sum(REPORTING_RULE));
            self.query_columns([mean, used, total, power, gpus, held].map(Some), steps)
                .await?
        } else {
            Vec::new()
        };
        let (steps, columns) = if is_mostly_recorded(&recorded) {
            (steps, recorded)
        } else {
            let gpus = if matchers.is_some() {
                1
            } else {
                self.told.gpus.max(1)
            };
            let moments = (MAX_VALUES / gpus).clamp(12, MAX_STEPS);
            if moments < MAX_STEPS {
                let cure = self.explain_missing_rules().await?;
                self.add_problem(format!(
                    "Only {moments} points are shown, because the fleet has many GPUs. {cure}"
                ));
            }
            let steps =
                Steps::new_until_now(self.range.seconds(), choose_step(self.range, moments));
            let expressions = self.build_queries(matchers.as_deref().unwrap_or_default());
            (steps, self.query_columns(expressions, steps).await?)
        };
        self.check_any_query_answered()?;
        Ok(build_history(
            name,
            steps,
            columns,
            self.state(),
            self.problems,
        ))
    }

    /// Returns the queries that add up individual GPUs, for use without recording rules.
    fn build_queries(&self, matchers: &str) -> [Option<String>; 6] {
        let families = self.told.families;
        // If several families contain the same values, only the first of them is used.
        let families = Families {
            renamed: families.renamed && !families.own,
            old: families.old && !families.own,
            ..families
        };
        let matchers = self.source.combine_matchers(matchers);
        let once = |of: String| {
            if self.told.is_doubled {
                format!("max without ({REPLICAS}) ({of})")
            } else {
                of
            }
        };
        let aggregated = |id: &str| {
            let names = list_base_unit_expressions(id, families, &matchers);
            // The fleet's utilization is the mean over the GPUs that report a utilization.
            let function = if id == metrics::UTILIZATION {
                "avg"
            } else {
                "sum"
            };
            (!names.is_empty()).then(|| format!("{function}({})", once(names.join(" or "))))
        };
        let own = |name: &str| {
            families
                .own
                .then(|| once(build_metric_selector(name, &matchers)))
        };
        let dcgm = || {
            Some(once(build_selector(
                &metrics::list_metric_names_of_readings(&[metrics::TEMPERATURE], families),
                &matchers,
            )?))
        };
        let gpus = own("gpumon_gpu_up")
            .or_else(dcgm)
            .map(|up| format!("count({up})"));
        let held =
            own("gpumon_gpu_processes").map(|processes| format!("sum({processes} > bool 0)"));
        let [utilization, used, total, power] = [IDS[0], IDS[1], IDS[2], IDS[3]].map(aggregated);
        [utilization, used, total, power, gpus, held]
    }

    async fn query_columns(
        &mut self,
        expressions: [Option<String>; 6],
        steps: Steps,
    ) -> Result<Vec<Vec<Option<f64>>>, QueryError> {
        let mut all = Vec::new();
        for expression in expressions {
            let read = move |answer: &Answer<'_>| Some(read_column(answer, steps));
            let column = match expression {
                Some(expression) => self.send_query(&expression, Some(steps), read).await?,
                None => None,
            };
            all.push(column.unwrap_or_else(|| vec![None; count_steps(steps)]));
        }
        Ok(all)
    }
}

fn build_history(
    node: Option<String>,
    steps: Steps,
    columns: Vec<Vec<Option<f64>>>,
    state: FleetState,
    problems: Vec<String>,
) -> FleetHistory {
    let series = IDS.into_iter().zip(columns).map(|(id, mut values)| {
        if id == metrics::UTILIZATION {
            // The recording rule contains ratios, which are converted to percent.
            values = values
                .into_iter()
                .map(|value| value.map(|share| (share * 100.0).min(100.0)))
                .collect();
        }
        FleetSeries {
            id: id.to_owned(),
            values,
        }
    });
    let at_ms = (0..count_steps(steps))
        .map(|at| (steps.from + at as u64 * u64::from(steps.step_s)) * 1000)
        .collect();
    FleetHistory {
        node,
        state,
        problems,
        at_ms,
        series: series.collect(),
    }
}

/// Returns `true` if recording rules cover most of the time range.
fn is_mostly_recorded(columns: &[Vec<Option<f64>>]) -> bool {
    let count = |column: &Vec<Option<f64>>| column.iter().filter(|value| value.is_some()).count();
    columns
        .get(4)
        .is_some_and(|gpus| count(gpus) * 2 > gpus.len())
}

fn read_column(answer: &Answer<'_>, steps: Steps) -> Vec<Option<f64>> {
    let mut values = vec![None; count_steps(steps)];
    for (at, value) in answer
        .rows
        .first()
        .map(|row| row.samples.as_slice())
        .unwrap_or_default()
    {
        let place = (at - steps.from as f64) / f64::from(steps.step_s);
        if let Some(slot) = values
            .get_mut(place.round().max(0.0) as usize)
            .filter(|_| value.is_finite())
        {
            *slot = Some(*value);
        }
    }
    values
}

fn count_steps(steps: Steps) -> usize {
    (steps.to.saturating_sub(steps.from) / u64::from(steps.step_s)) as usize + 1
}

/// Returns the step for a range query with at most about `moments` points, in seconds. The step is
/// a multiple of 15.
fn choose_step(range: Range, moments: u32) -> u32 {
    range.seconds().div_ceil(moments).next_multiple_of(15)
}
