//! Tests of the queries that are run, their number, and their order.

use std::{
    collections::HashSet,
    sync::{
        Condvar, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query, QueryBackend, Subject, SystemQuery};

use super::{
    boards::{add_hopper, driver_580},
    make_context,
};
use crate::{
    log::{parse_sections, render_text_log, render_xml_log},
    tests::scripted::ScriptedBackend,
};

/// A backend that records the queries it receives.
struct QueryLog {
    script: ScriptedBackend,
    queries: Mutex<Vec<Query>>,
}

impl QueryLog {
    fn new() -> Self {
        Self {
            script: add_hopper(driver_580(), 0),
            queries: Mutex::default(),
        }
    }

    fn into_queries(self) -> Vec<Query> {
        self.queries.into_inner().unwrap()
    }
}

impl QueryBackend for QueryLog {
    fn answer_system(&self, query: SystemQuery) -> Answer {
        QueryBackend::answer_system(&self.script, query)
    }

    fn answer_query(&self, subject: Subject, query: Query) -> Answer {
        self.queries.lock().unwrap().push(query);
        self.script.answer_query(subject, query)
    }

    fn answer_gpm(&self, _subject: Subject, _metrics: &[u32]) -> Answer {
        Err(Code::NOT_SUPPORTED)
    }
}

#[test]
fn log_queries_only_values_it_shows() {
    let log = QueryLog::new();
    render_text_log(
        &make_context(&log, &[0]),
        Some(&parse_sections("COMPUTE").unwrap()),
    );
    let queries: HashSet<_> = log.into_queries().into_iter().collect();
    assert_eq!(
        queries,
        HashSet::from([Query::VirtualizationMode, Query::ComputeMode, Query::BusId])
    );

    let log = QueryLog::new();
    render_text_log(&make_context(&log, &[0]), None);
    let queries = log.into_queries();
    assert!(
        !queries.contains(&Query::SupportedMemoryClocks)
            && !queries.contains(&Query::Samples(0, 0))
    );
}

#[test]
fn log_of_one_gpu_does_not_repeat_queries() {
    let log = QueryLog::new();
    render_xml_log(&make_context(&log, &[0]), false);
    let queries = log.into_queries();
    assert!(queries.len() > 100, "{}", queries.len());
    let mut once = HashSet::new();
    let twice: Vec<_> = queries
        .iter()
        .filter(|query| !once.insert(**query))
        .collect();
    // The virtualization mode is queried twice: for the GPU itself, and for the lines before the
    // first GPU.
    assert_eq!(twice, [&Query::VirtualizationMode]);
}

/// A backend that answers the traffic queries only after all others, and fails if two traffic
/// queries run at the same time.
struct SlowBackend {
    script: ScriptedBackend,
    rest_is_asked: Mutex<bool>,
    arrived: Condvar,
    in_flight: AtomicBool,
}

impl QueryBackend for SlowBackend {
    fn answer_system(&self, query: SystemQuery) -> Answer {
        QueryBackend::answer_system(&self.script, query)
    }

    fn answer_query(&self, subject: Subject, query: Query) -> Answer {
        if query == Query::FabricInfo {
            *self.rest_is_asked.lock().unwrap() = true;
            self.arrived.notify_all();
        }
        if matches!(query, Query::PcieThroughput(_)) {
            if self.in_flight.swap(true, Relaxed) {
                return Err(Code::UNKNOWN);
            }
            let asked = self.rest_is_asked.lock().unwrap();
            let waited = self
                .arrived
                .wait_timeout_while(asked, Duration::from_mins(1), |asked| !*asked);
            self.in_flight.store(false, Relaxed);
            if waited.unwrap().1.timed_out() {
                return Err(Code::UNKNOWN);
            }
        }
        self.script.answer_query(subject, query)
    }

    fn answer_gpm(&self, _subject: Subject, _metrics: &[u32]) -> Answer {
        Err(Code::NOT_SUPPORTED)
    }
}

#[test]
fn slow_queries_run_early_but_one_by_one() {
    let slow = SlowBackend {
        script: add_hopper(driver_580(), 0),
        rest_is_asked: Mutex::new(false),
        arrived: Condvar::new(),
        in_flight: AtomicBool::new(false),
    };
    let log = render_text_log(&make_context(&slow, &[0]), None);
    assert!(
        log.contains("        Tx Throughput                                  : 1067 KB/s\n"),
        "{log}"
    );
    assert!(
        log.contains("        Rx Throughput                                  : 633 KB/s\n"),
        "{log}"
    );
}
