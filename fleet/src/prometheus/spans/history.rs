//! Readings of a fleet or a node over time, up to now.

use std::{sync::Arc, time::Duration};

use super::{
    super::{
        answer::Answer,
        ask::{Source, Steps},
        cached::Fresh,
        client::QueryError,
        metrics::{self, Families},
        now::Told,
        promql::series,
    },
    REPLICAS, SpanReader, fresh, in_base_units,
};
use crate::{
    model::{FleetHistory, FleetSeries, FleetState},
    reader::Range,
};

/// The maximum number of times in a series.
const MOMENTS: u32 = 120;

/// The maximum number of values of single GPUs that Prometheus adds up for one series.
const MOST_VALUES: u32 = 500_000;

/// The number of GPUs above which sums are read less often.
const FEW_GPUS: u32 = 1000;

/// The ids of the series.
const GPUS: &str = "gpus";
const HELD: &str = "gpus_held";
const IDS: [&str; 6] = [
    metrics::UTILIZATION,
    metrics::MEMORY_USED,
    metrics::MEMORY_TOTAL,
    metrics::POWER,
    GPUS,
    HELD,
];

/// Recording rules for sums over all GPUs of a job.
const RULES: [&str; 6] = [
    "job:gpumon_gpu_utilization_ratio:sum",
    "job:gpumon_gpu_memory_used_bytes:sum",
    "job:gpumon_gpu_memory_total_bytes:sum",
    "job:gpumon_gpu_power_watts:sum",
    "job:gpumon_gpus:count",
    "job:gpumon_gpus_held:sum",
];

/// The recording rule for the number of GPUs that report their utilization. Older versions of the
/// rules lack it.
const REPORTING_RULE: &str = "job:gpumon_gpu_utilization_ratio:count";

pub(in crate::prometheus) async fn read(
    source: Arc<Source>,
    told: Told,
    (range, node): (Range, Option<(String, String)>),
    before: Option<Arc<FleetHistory>>,
) -> Fresh<FleetHistory> {
    let reader = SpanReader::new(source, told, range);
    // Sums over all GPUs take Prometheus a second.
    let least = if node.is_none() && reader.told.gpus > FEW_GPUS {
        120
    } else {
        0
    };
    let period = Duration::from_secs(u64::from(step(range, MOMENTS).max(least)));
    let empty = nothing(node.as_ref().map(|(name, _)| name.clone()));
    fresh(reader.history(node).await, before, empty, period)
}

/// Returns the history before anything has been read.
pub(in crate::prometheus) fn nothing(node: Option<String>) -> FleetHistory {
    FleetHistory {
        node,
        state: FleetState::Loading,
        problems: Vec::new(),
        at_ms: Vec::new(),
        series: Vec::new(),
    }
}

impl SpanReader {
    /// Reads the history of the fleet, or of a node, given by its name and matchers.
    async fn history(mut self, node: Option<(String, String)>) -> Result<FleetHistory, QueryError> {
        let (name, matchers) = node.unzip();
        let steps = Steps::until_now(self.range.seconds(), step(self.range, MOMENTS));
        let recorded = if matchers.is_none() && self.told.families.own && !self.told.is_doubled {
            let sum = |rule| {
                format!(
                    "sum(max without (replica, prometheus_replica) ({}))",
                    self.metric(rule, "")
                )
            };
            let [utilization, used, total, power, gpus, held] = RULES.map(sum);
            let mean = format!("{utilization} / ({} or {gpus})", sum(REPORTING_RULE));
            self.series([mean, used, total, power, gpus, held].map(Some), steps)
                .await?
        } else {
            Vec::new()
        };
        let (steps, columns) = if is_most(&recorded) {
            (steps, recorded)
        } else {
            let gpus = if matchers.is_some() {
                1
            } else {
                self.told.gpus.max(1)
            };
            let moments = (MOST_VALUES / gpus).clamp(12, MOMENTS);
            if moments < MOMENTS {
                let cure = self.unrecorded().await?;
                self.problem(format!(
                    "Only {moments} moments are read of so many GPUs. {cure}"
                ));
            }
            let steps = Steps::until_now(self.range.seconds(), step(self.range, moments));
            let expressions = self.expressions(matchers.as_deref().unwrap_or_default());
            (steps, self.series(expressions, steps).await?)
        };
        self.check()?;
        Ok(told(name, steps, columns, self.state(), self.problems))
    }

    /// Returns the queries for sums over single GPUs.
    fn expressions(&self, matchers: &str) -> [Option<String>; 6] {
        let families = self.told.families;
        // If several families report the same values, only one is used.
        let families = Families {
            renamed: families.renamed && !families.own,
            old: families.old && !families.own,
            ..families
        };
        let matchers = self.source.matchers_and(matchers);
        let once = |of: String| {
            if self.told.is_doubled {
                format!("max without ({REPLICAS}) ({of})")
            } else {
                of
            }
        };
        let aggregated = |id: &str| {
            let names = in_base_units(id, families, &matchers);
            // The utilization is the mean of the GPUs that report it.
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
                .then(|| series(&[name], &matchers))
                .flatten()
                .map(once)
        };
        let dcgm = || {
            Some(once(series(
                &metrics::names(&[metrics::TEMPERATURE], families),
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

    async fn series(
        &mut self,
        expressions: [Option<String>; 6],
        steps: Steps,
    ) -> Result<Vec<Vec<Option<f64>>>, QueryError> {
        let mut all = Vec::new();
        for expression in expressions {
            let read = move |answer: &Answer<'_>| column(answer, steps);
            let column = match expression {
                Some(expression) => self.ask(&expression, Some(steps), read).await?,
                None => None,
            };
            all.push(column.unwrap_or_else(|| vec![None; moments(steps)]));
        }
        Ok(all)
    }
}

fn told(
    node: Option<String>,
    steps: Steps,
    columns: Vec<Vec<Option<f64>>>,
    state: FleetState,
    problems: Vec<String>,
) -> FleetHistory {
    let series = IDS.into_iter().zip(columns).map(|(id, mut values)| {
        if id == metrics::UTILIZATION {
            // The recorded ratio is converted to percent.
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
    let at_ms = (0..moments(steps))
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

/// Returns `true` if rules have recorded most of the range.
fn is_most(columns: &[Vec<Option<f64>>]) -> bool {
    let count = |column: &Vec<Option<f64>>| column.iter().filter(|value| value.is_some()).count();
    columns
        .get(4)
        .is_some_and(|gpus| count(gpus) * 2 > gpus.len())
}

fn column(answer: &Answer<'_>, steps: Steps) -> Vec<Option<f64>> {
    let mut values = vec![None; moments(steps)];
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

fn moments(steps: Steps) -> usize {
    (steps.to.saturating_sub(steps.from) / u64::from(steps.step_s)) as usize + 1
}

/// Returns a step in seconds, which is a multiple of 15.
fn step(range: Range, moments: u32) -> u32 {
    range.seconds().div_ceil(moments).next_multiple_of(15)
}
