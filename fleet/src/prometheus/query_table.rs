//! The queries about the current state of a fleet, and how often they are sent.
//!
//! `docs/reference/fleet-queries.md` is generated from this table.

use std::collections::BTreeSet;

use super::{
    metrics::{self, Families, Family},
    query::{build_exact_pattern, build_metric_selector, build_selector, join_matchers},
};
use crate::model::Resolution;

/// A query, how often it is sent, and the resolutions in which it is used.
pub(super) struct Query {
    pub(super) name: QueryName,
    /// The purpose of the query.
    pub(super) help: &'static str,
    /// How often the query is sent: 1 means every time the fleet is read, 20 means every 20th time.
    pub(super) every: u32,
    /// The resolutions in which the query is used.
    pub(super) of: &'static [Resolution],
    /// The time range and the step of a range query, in seconds, or `None` for an instant query.
    pub(super) range: Option<(u32, u32)>,
    /// A function that returns the PromQL expression, or `None` if no existing metric can answer
    /// the query.
    pub(super) expression: fn(&Scope<'_>) -> Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum QueryName {
    Utilization,
    MemoryUsed,
    Power,
    Temperature,
    Processes,
    MemoryTotal,
    PowerLimit,
    Roster,
    Down,
    States,
    Conditions,
    Xids,
    Holders,
    IdleDcgm,
    HeldIdle,
    Up,
    ByNode,
    HoldersByNode,
    ModelsByNode,
    ConditionsByNode,
}

/// The parameters that determine which series the queries select.
pub(super) struct Scope<'a> {
    /// The matchers that are added to every query, such as `cluster="a"`.
    pub(super) matchers: &'a str,
    /// The metric families that are read.
    pub(super) families: Families,
    /// All metric families that exist, even if another family already contains all of their GPUs.
    pub(super) present: Families,
    /// The Prometheus jobs whose targets have GPUs.
    pub(super) jobs: &'a BTreeSet<String>,
}

/// The per-node recording rules in `deploy/prometheus/fleet.yml`. Each comes with the id of its
/// reading and the factor for its values.
pub(super) const NODE_RULES: [(&str, &str, f64); 8] = [
    ("instance:gpumon_gpus:count", "gpus", 1.0),
    ("instance:gpumon_gpus_down:sum", "gpus_down", 1.0),
    (
        "instance:gpumon_gpu_utilization_ratio:avg",
        metrics::UTILIZATION,
        100.0,
    ),
    (
        "instance:gpumon_gpu_memory_used_bytes:sum",
        metrics::MEMORY_USED,
        1.0,
    ),
    (
        "instance:gpumon_gpu_memory_total_bytes:sum",
        metrics::MEMORY_TOTAL,
        1.0,
    ),
    ("instance:gpumon_gpu_power_watts:sum", metrics::POWER, 1.0),
    (
        "instance:gpumon_gpu_power_limit_watts:sum",
        metrics::POWER_LIMIT,
        1.0,
    ),
    (
        "instance:gpumon_gpu_temperature_celsius:avg",
        metrics::TEMPERATURE,
        1.0,
    ),
];

/// The value of `every` for data that rarely changes. With the default period, this is about five
/// minutes.
const SLOW_INTERVAL: u32 = 20;

const GPU: &[Resolution] = &[Resolution::Gpu];
const NODE: &[Resolution] = &[Resolution::Node];
const BOTH: &[Resolution] = &[Resolution::Gpu, Resolution::Node];

/// The time range in which a query measures how long GPUs with memory in use have been idle, in
/// seconds. A longer idle time cannot be measured.
const HELD_IDLE_RANGE_S: u32 = 12 * 3600;
pub(super) const HELD_IDLE_STEP_S: u32 = 900;

/// The maximum age of a node's last sample, in seconds. A node with an older sample counts as
/// having no readings.
pub(super) const STUCK_S: u32 = 60;

/// The new and the old name of dcgm-exporter's metric of the newest Xid.
pub(super) const DCGM_XID_METRICS: [&str; 2] = ["DCGM_FI_DEV_XID_ERROR", "DCGM_FI_DEV_XID_ERRORS"];

/// All queries for a fleet's current state.
pub(super) const QUERIES: [Query; 20] = [
    Query {
        name: QueryName::Utilization,
        help: "Utilization of each GPU; with dcgm-exporter, also the pod to which the GPU is \
               allocated",
        every: 1,
        of: GPU,
        range: None,
        expression: |scope| scope.build_reading_selector(&[metrics::UTILIZATION]),
    },
    Query {
        name: QueryName::MemoryUsed,
        help: "Memory in use on each GPU",
        every: 1,
        of: GPU,
        range: None,
        expression: |scope| scope.build_reading_selector(&[metrics::MEMORY_USED]),
    },
    Query {
        name: QueryName::Power,
        help: "Power draw of each GPU",
        every: 1,
        of: GPU,
        range: None,
        expression: |scope| scope.build_reading_selector(&[metrics::POWER]),
    },
    Query {
        name: QueryName::Temperature,
        help: "Temperature of each GPU",
        every: 1,
        of: GPU,
        range: None,
        expression: |scope| scope.build_reading_selector(&[metrics::TEMPERATURE]),
    },
    Query {
        name: QueryName::Down,
        help: "GPUs that do not respond",
        every: 1,
        of: GPU,
        range: None,
        expression: |scope| {
            Some(format!(
                "{} == 0",
                scope.build_gpumon_selector("gpumon_gpu_up")?
            ))
        },
    },
    Query {
        name: QueryName::States,
        help: "State of each node's collector, and nodes without a new sample",
        every: 1,
        of: BOTH,
        range: None,
        expression: |scope| {
            let (state, age) = (
                scope.build_gpumon_selector("gpumon_collector_state")?,
                scope.build_gpumon_selector("gpumon_sample_age_seconds")?,
            );
            Some(format!("{state} == 1 or {age} > {STUCK_S}"))
        },
    },
    Query {
        name: QueryName::Conditions,
        help: "Current conditions with their severity, and current Xids",
        every: 1,
        of: GPU,
        range: None,
        expression: |scope| {
            let (severity, xid) = (
                scope.build_gpumon_selector("gpumon_condition_severity")?,
                scope.build_gpumon_selector("gpumon_gpu_xid")?,
            );
            Some(format!("{severity} or {xid} == 1"))
        },
    },
    Query {
        name: QueryName::Xids,
        help: "The newest Xid of each GPU, from dcgm-exporter",
        every: 1,
        of: GPU,
        range: None,
        expression: |scope| {
            Some(format!(
                "{} > 0",
                scope.build_dcgm_selector(DCGM_XID_METRICS)?
            ))
        },
    },
    Query {
        name: QueryName::Holders,
        help: "Users, jobs, pods and notebooks on each GPU",
        every: 2,
        of: GPU,
        range: None,
        expression: |scope| scope.build_gpumon_selector("gpumon_gpu_job_info"),
    },
    Query {
        name: QueryName::Processes,
        help: "Number of processes on each GPU",
        every: 4,
        of: GPU,
        range: None,
        expression: |scope| scope.build_gpumon_selector("gpumon_gpu_processes"),
    },
    Query {
        name: QueryName::Roster,
        help: "Names of all GPUs that existed in the last hour, including removed GPUs",
        every: SLOW_INTERVAL,
        of: GPU,
        range: None,
        expression: |scope| {
            Some(format!(
                "last_over_time({}[1h])",
                scope.build_gpumon_selector("gpumon_gpu_info")?
            ))
        },
    },
    Query {
        name: QueryName::MemoryTotal,
        help: "Total memory of each GPU, or the parts that add up to the total; with \
               dcgm-exporter, also the names of the GPUs",
        every: SLOW_INTERVAL,
        of: GPU,
        range: None,
        expression: |scope| {
            let mut names =
                metrics::list_metric_names_of_readings(&[metrics::MEMORY_TOTAL], scope.present);
            let parts = [
                metrics::MEMORY_USED,
                metrics::MEMORY_FREE,
                metrics::MEMORY_RESERVED,
            ];
            names.extend(metrics::list_metric_names_of_readings(
                &parts,
                Families {
                    own: false,
                    ..scope.present
                },
            ));
            build_selector(&names, scope.matchers)
        },
    },
    Query {
        name: QueryName::PowerLimit,
        help: "Power limit of each GPU",
        every: SLOW_INTERVAL,
        of: GPU,
        range: None,
        expression: |scope| scope.build_reading_selector(&[metrics::POWER_LIMIT]),
    },
    Query {
        name: QueryName::IdleDcgm,
        help: "GPUs on which nothing ran for half an hour, from dcgm-exporter",
        every: SLOW_INTERVAL,
        of: GPU,
        range: None,
        expression: |scope| {
            let families = Families {
                own: false,
                ..scope.families
            };
            let names = metrics::list_metric_names_of_readings(&[metrics::UTILIZATION], families);
            Some(format!(
                "max_over_time({}[30m]) == 0",
                build_selector(&names, scope.matchers)?
            ))
        },
    },
    Query {
        name: QueryName::HeldIdle,
        help: "Time at which each GPU became idle while still holding memory",
        every: SLOW_INTERVAL,
        of: GPU,
        range: Some((HELD_IDLE_RANGE_S, HELD_IDLE_STEP_S)),
        expression: |scope| {
            let matchers = join_matchers("condition=\"held_idle\"", scope.matchers);
            scope
                .families
                .own
                .then(|| build_metric_selector("gpumon_condition_severity", &matchers))
        },
    },
    Query {
        name: QueryName::ByNode,
        help: "Recorded sums and averages of each node",
        every: 2,
        of: NODE,
        range: None,
        expression: |scope| build_selector(&NODE_RULES.map(|(name, ..)| name), scope.matchers),
    },
    Query {
        name: QueryName::ConditionsByNode,
        help: "Current conditions of each node, with the highest severity",
        every: 2,
        of: NODE,
        range: None,
        expression: |scope| {
            Some(format!(
                "max by (cluster, job, instance, condition) ({})",
                scope.build_gpumon_selector("gpumon_condition_severity")?
            ))
        },
    },
    Query {
        name: QueryName::HoldersByNode,
        help: "Recorded users, jobs, pods and notebooks of each node",
        every: 4,
        of: NODE,
        range: None,
        expression: |scope| scope.build_gpumon_selector("instance:gpumon_gpu_job_info:count"),
    },
    Query {
        name: QueryName::ModelsByNode,
        help: "Recorded names of the GPUs of each node",
        every: SLOW_INTERVAL,
        of: NODE,
        range: None,
        expression: |scope| scope.build_gpumon_selector("instance:gpumon_gpu_info:count"),
    },
    Query {
        name: QueryName::Up,
        help: "Whether each node could be scraped",
        every: 1,
        of: BOTH,
        range: None,
        expression: |scope| Some(build_up_query(scope)),
    },
];

impl QueryName {
    /// Returns the purpose of the query.
    pub(super) fn help(self) -> &'static str {
        QUERIES
            .iter()
            .find(|question| question.name == self)
            .map_or("", |question| question.help)
    }

    /// Returns `true` if the query is sent so rarely that its results can contain GPUs or nodes
    /// that no longer exist.
    pub(super) fn is_infrequent(self) -> bool {
        QUERIES
            .iter()
            .any(|question| question.name == self && question.every >= SLOW_INTERVAL)
    }
}

impl Scope<'_> {
    fn build_reading_selector(&self, ids: &[&str]) -> Option<String> {
        build_selector(
            &metrics::list_metric_names_of_readings(ids, self.families),
            self.matchers,
        )
    }

    /// Returns a selector for a metric that only gpumon exports.
    fn build_gpumon_selector(&self, name: &str) -> Option<String> {
        self.families
            .own
            .then(|| build_metric_selector(name, self.matchers))
    }

    /// Returns a selector for a dcgm-exporter metric by its new and its old name.
    pub(super) fn build_dcgm_selector(&self, [renamed, old]: [&str; 2]) -> Option<String> {
        let both = [(Family::Renamed, renamed), (Family::Old, old)].into_iter();
        let names: Vec<_> = both
            .filter(|(of, _)| self.families.contains(*of))
            .map(|(_, name)| name)
            .collect();
        build_selector(&names, self.matchers)
    }
}

/// Returns the query that shows whether targets with GPUs could be scraped. It includes jobs whose
/// names suggest GPUs, because a target that has never been scraped belongs to no known job.
pub(super) fn build_up_query(scope: &Scope<'_>) -> String {
    let mut pattern = build_exact_pattern(scope.jobs.iter().map(String::as_str));
    // The closing quote is removed here and added again below.
    pattern.pop();
    let separator = if scope.jobs.is_empty() { "" } else { "|" };
    let jobs = format!("job=~{pattern}{separator}.*gpumon.*|.*dcgm.*\"");
    build_metric_selector("up", &join_matchers(&jobs, scope.matchers))
}

/// Returns the query for the number of GPUs that gpumon exports, as counted by a recording rule. If
/// several Prometheus jobs have GPUs, the largest number is used.
pub(super) fn build_recorded_gpu_count_query(matchers: &str) -> String {
    format!(
        "max({})",
        build_metric_selector("job:gpumon_gpus:count", matchers)
    )
}

/// Returns the query that counts GPUs by metric name. gpumon's own metrics are included only if
/// `with_own` is `true`. The result determines which other queries are sent.
pub(super) fn build_gpu_count_query(matchers: &str, with_own: bool) -> Option<String> {
    let mut names = if with_own {
        vec![GPU_UP_METRIC]
    } else {
        Vec::new()
    };
    names.extend(metrics::list_metric_names_of_readings(
        &CENSUS_READINGS,
        Families {
            own: false,
            ..Families::ALL
        },
    ));
    Some(format!(
        "count by (__name__) ({})",
        build_selector(&names, matchers)?
    ))
}

/// How many times the fleet is read before the GPUs are counted again.
pub(super) const CENSUS_INTERVAL: u32 = SLOW_INTERVAL;

/// A metric that gpumon exports for every GPU, regardless of the GPU's state.
pub(super) const GPU_UP_METRIC: &str = "gpumon_gpu_up";

/// The readings that reveal a dcgm-exporter. Every dcgm-exporter exports at least one of them.
pub(super) const CENSUS_READINGS: [&str; 3] = [
    metrics::UTILIZATION,
    metrics::TEMPERATURE,
    metrics::MEMORY_USED,
];
