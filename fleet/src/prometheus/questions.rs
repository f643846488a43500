//! The queries about the current state of a fleet, and how often they are sent.
//!
//! `docs/reference/fleet-queries.md` is generated from this table.

use std::collections::BTreeSet;

use super::{
    metrics::{self, Families, Family},
    promql::{any_of, series},
};
use crate::model::Resolution;

/// A query, and the use of its series.
pub(super) struct Question {
    pub(super) name: QuestionName,
    /// The purpose of the query.
    pub(super) help: &'static str,
    /// The number of readings from one query to the next.
    pub(super) every: u32,
    /// The resolutions in which the query is used.
    pub(super) of: &'static [Resolution],
    /// The range and the step of a range query in seconds, or `None` for a query about the current
    /// time.
    pub(super) range: Option<(u32, u32)>,
    /// Returns the query, or `None` if no metric can answer it.
    pub(super) expression: fn(&Scope<'_>) -> Option<String>,
}

/// The name of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum QuestionName {
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

/// The series that queries select.
pub(super) struct Scope<'a> {
    /// The matchers of all series, such as `cluster="a"`.
    pub(super) matchers: &'a str,
    /// The families that are read.
    pub(super) families: Families,
    /// The families that exist, including those that add nothing.
    pub(super) present: Families,
    /// The Prometheus jobs whose targets have GPUs.
    pub(super) jobs: &'a BTreeSet<String>,
}

/// The rules of `deploy/prometheus/fleet.yml` for each node, each with its reading and a factor.
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

/// The number of readings between queries for data that rarely changes, which is about five
/// minutes.
const SLOW: u32 = 20;

const GPU: &[Resolution] = &[Resolution::Gpu];
const NODE: &[Resolution] = &[Resolution::Node];
const BOTH: &[Resolution] = &[Resolution::Gpu, Resolution::Node];

/// How far back the idle time of GPUs with memory in use is determined, and at which step, in
/// seconds.
const HELD_IDLE_S: u32 = 12 * 3600;
pub(super) const HELD_IDLE_STEP_S: u32 = 900;

/// The time without a sample after which a node has no readings, in seconds.
pub(super) const STUCK_S: u32 = 60;

/// All queries of the current state.
pub(super) const QUESTIONS: [Question; 20] = [
    Question {
        name: QuestionName::Utilization,
        help: "Utilization of each GPU; of dcgm-exporter also which pod holds it",
        every: 1,
        of: GPU,
        range: None,
        expression: |scope| scope.readings(&[metrics::UTILIZATION]),
    },
    Question {
        name: QuestionName::MemoryUsed,
        help: "Memory in use on each GPU",
        every: 1,
        of: GPU,
        range: None,
        expression: |scope| scope.readings(&[metrics::MEMORY_USED]),
    },
    Question {
        name: QuestionName::Power,
        help: "Power draw of each GPU",
        every: 1,
        of: GPU,
        range: None,
        expression: |scope| scope.readings(&[metrics::POWER]),
    },
    Question {
        name: QuestionName::Temperature,
        help: "Temperature of each GPU",
        every: 1,
        of: GPU,
        range: None,
        expression: |scope| scope.readings(&[metrics::TEMPERATURE]),
    },
    Question {
        name: QuestionName::Down,
        help: "GPUs that do not respond",
        every: 1,
        of: GPU,
        range: None,
        expression: |scope| Some(format!("{} == 0", scope.own("gpumon_gpu_up")?)),
    },
    Question {
        name: QuestionName::States,
        help: "State of each node's collector, and nodes without a new sample",
        every: 1,
        of: BOTH,
        range: None,
        expression: |scope| {
            let (state, age) = (
                scope.own("gpumon_collector_state")?,
                scope.own("gpumon_sample_age_seconds")?,
            );
            Some(format!("{state} == 1 or {age} > {STUCK_S}"))
        },
    },
    Question {
        name: QuestionName::Conditions,
        help: "Conditions that last, with their severity, and Xids that do",
        every: 1,
        of: GPU,
        range: None,
        expression: |scope| {
            let (severity, xid) = (
                scope.own("gpumon_condition_severity")?,
                scope.own("gpumon_gpu_xid")?,
            );
            Some(format!("{severity} or {xid} == 1"))
        },
    },
    Question {
        name: QuestionName::Xids,
        help: "The newest Xid of each GPU, by dcgm-exporter",
        every: 1,
        of: GPU,
        range: None,
        expression: |scope| {
            Some(format!(
                "{} > 0",
                scope.dcgm(["DCGM_FI_DEV_XID_ERROR", "DCGM_FI_DEV_XID_ERRORS"])?
            ))
        },
    },
    Question {
        name: QuestionName::Holders,
        help: "Users, jobs, pods and notebooks on each GPU",
        every: 2,
        of: GPU,
        range: None,
        expression: |scope| scope.own("gpumon_gpu_job_info"),
    },
    Question {
        name: QuestionName::Processes,
        help: "Number of processes on each GPU",
        every: 4,
        of: GPU,
        range: None,
        expression: |scope| scope.own("gpumon_gpu_processes"),
    },
    Question {
        name: QuestionName::Roster,
        help: "GPUs of the last hour with their names, also those that are gone",
        every: SLOW,
        of: GPU,
        range: None,
        expression: |scope| {
            Some(format!(
                "last_over_time({}[1h])",
                scope.own("gpumon_gpu_info")?
            ))
        },
    },
    Question {
        name: QuestionName::MemoryTotal,
        help: "Memory of each GPU, or what it adds up from; dcgm-exporter's GPUs with their names",
        every: SLOW,
        of: GPU,
        range: None,
        expression: |scope| {
            let mut names = metrics::names(&[metrics::MEMORY_TOTAL], scope.present);
            let parts = [
                metrics::MEMORY_USED,
                metrics::MEMORY_FREE,
                metrics::MEMORY_RESERVED,
            ];
            names.extend(metrics::names(
                &parts,
                Families {
                    own: false,
                    ..scope.present
                },
            ));
            series(&names, scope.matchers)
        },
    },
    Question {
        name: QuestionName::PowerLimit,
        help: "Power limit of each GPU",
        every: SLOW,
        of: GPU,
        range: None,
        expression: |scope| scope.readings(&[metrics::POWER_LIMIT]),
    },
    Question {
        name: QuestionName::IdleDcgm,
        help: "GPUs on which nothing ran for half an hour, by dcgm-exporter",
        every: SLOW,
        of: GPU,
        range: None,
        expression: |scope| {
            let families = Families {
                own: false,
                ..scope.families
            };
            let names = metrics::names(&[metrics::UTILIZATION], families);
            Some(format!(
                "max_over_time({}[30m]) == 0",
                series(&names, scope.matchers)?
            ))
        },
    },
    Question {
        name: QuestionName::HeldIdle,
        help: "Since when memory has been held idle",
        every: SLOW,
        of: GPU,
        range: Some((HELD_IDLE_S, HELD_IDLE_STEP_S)),
        expression: |scope| {
            let held = "condition=\"held_idle\"";
            let matchers = if scope.matchers.is_empty() {
                held.to_owned()
            } else {
                format!("{held},{}", scope.matchers)
            };
            scope
                .families
                .has(Family::Own)
                .then(|| series(&["gpumon_condition_severity"], &matchers))
                .flatten()
        },
    },
    Question {
        name: QuestionName::ByNode,
        help: "Recorded sums and averages of each node",
        every: 2,
        of: NODE,
        range: None,
        expression: |scope| series(&NODE_RULES.map(|(name, ..)| name), scope.matchers),
    },
    Question {
        name: QuestionName::ConditionsByNode,
        help: "Conditions that last, the worst of each node",
        every: 2,
        of: NODE,
        range: None,
        expression: |scope| {
            Some(format!(
                "max by (cluster, job, instance, condition) ({})",
                scope.own("gpumon_condition_severity")?
            ))
        },
    },
    Question {
        name: QuestionName::HoldersByNode,
        help: "Recorded users, jobs, pods and notebooks of each node",
        every: 4,
        of: NODE,
        range: None,
        expression: |scope| scope.own("instance:gpumon_gpu_job_info:count"),
    },
    Question {
        name: QuestionName::ModelsByNode,
        help: "Recorded names of the GPUs of each node",
        every: SLOW,
        of: NODE,
        range: None,
        expression: |scope| scope.own("instance:gpumon_gpu_info:count"),
    },
    Question {
        name: QuestionName::Up,
        help: "Whether each node could be scraped",
        every: 1,
        of: BOTH,
        range: None,
        expression: up,
    },
];

impl QuestionName {
    /// Returns the purpose of the query.
    pub(super) fn help(self) -> &'static str {
        QUESTIONS
            .iter()
            .find(|question| question.name == self)
            .map_or("", |question| question.help)
    }

    /// Returns `true` if an answer may be so old that its subject no longer exists.
    pub(super) fn is_slow(self) -> bool {
        QUESTIONS
            .iter()
            .any(|question| question.name == self && question.every >= SLOW)
    }
}

impl Scope<'_> {
    fn readings(&self, ids: &[&str]) -> Option<String> {
        series(&metrics::names(ids, self.families), self.matchers)
    }

    /// Returns the selector of a metric that only gpumon has.
    fn own(&self, name: &str) -> Option<String> {
        self.families
            .has(Family::Own)
            .then(|| series(&[name], self.matchers))
            .flatten()
    }

    /// Returns the selector of a metric of dcgm-exporter by its new and its old name.
    fn dcgm(&self, [renamed, old]: [&str; 2]) -> Option<String> {
        let both = [(Family::Renamed, renamed), (Family::Old, old)].into_iter();
        let names: Vec<_> = both
            .filter(|(of, _)| self.families.has(*of))
            .map(|(_, name)| name)
            .collect();
        series(&names, self.matchers)
    }
}

/// Returns the query for whether targets with GPUs could be scraped. It includes jobs whose names
/// suggest GPUs, because a target that has never been scraped is not in a known job.
pub(super) fn up(scope: &Scope<'_>) -> Option<String> {
    let mut pattern = any_of(scope.jobs.iter().map(String::as_str));
    // The pattern ends with a quote, which is added again below.
    pattern.pop();
    let separator = if scope.jobs.is_empty() { "" } else { "|" };
    let jobs = format!("job=~{pattern}{separator}.*gpumon.*|.*dcgm.*\"");
    let matchers = if scope.matchers.is_empty() {
        jobs
    } else {
        format!("{jobs},{}", scope.matchers)
    };
    series(&["up"], &matchers)
}

/// Returns the query for the number of gpumon's GPUs in the largest job, as counted by a recording
/// rule.
pub(super) fn recorded_census(matchers: &str) -> Option<String> {
    Some(format!(
        "max({})",
        series(&["job:gpumon_gpus:count"], matchers)?
    ))
}

/// Returns the query for the number of GPUs by metric name, with or without gpumon's. The result
/// determines the other queries.
pub(super) fn census(matchers: &str, with_own: bool) -> Option<String> {
    let mut names = if with_own { vec![UP] } else { Vec::new() };
    names.extend(metrics::names(
        &CENSUS,
        Families {
            own: false,
            ..Families::ALL
        },
    ));
    Some(format!(
        "count by (__name__) ({})",
        series(&names, matchers)?
    ))
}

/// The number of readings from one count to the next.
pub(super) const CENSUS_EVERY: u32 = SLOW;

/// A metric that gpumon exports for every GPU, whatever its state.
pub(super) const UP: &str = "gpumon_gpu_up";

/// The readings that reveal a dcgm-exporter, because every one exports at least one of them.
pub(super) const CENSUS: [&str; 3] = [
    metrics::UTILIZATION,
    metrics::TEMPERATURE,
    metrics::MEMORY_USED,
];
