//! Tests of the queries: which ones are asked, how often, and when.

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
    boards::{driver, hopper},
    context,
};
use crate::{
    log::{parse_sections, text, xml},
    tests::scripted::ScriptedBackend,
};

/// A backend that records its queries.
struct QueryLog {
    script: ScriptedBackend,
    queries: Mutex<Vec<Query>>,
}

impl QueryLog {
    fn new() -> Self {
        Self {
            script: hopper(driver(), 0),
            queries: Mutex::default(),
        }
    }

    fn queries(self) -> Vec<Query> {
        self.queries.into_inner().unwrap()
    }
}

impl QueryBackend for QueryLog {
    fn system(&self, query: SystemQuery) -> Answer {
        QueryBackend::system(&self.script, query)
    }

    fn about(&self, subject: Subject, query: Query) -> Answer {
        self.queries.lock().unwrap().push(query);
        self.script.about(subject, query)
    }

    fn gpm(&self, _subject: Subject, _metrics: &[u32]) -> Answer {
        Err(Code::NOT_SUPPORTED)
    }
}

#[test]
fn nothing_is_asked_whose_answer_is_not_shown() {
    let log = QueryLog::new();
    text(
        &context(&log, &[0]),
        Some(&parse_sections("COMPUTE").unwrap()),
    );
    let queries: HashSet<_> = log.queries().into_iter().collect();
    assert_eq!(
        queries,
        HashSet::from([Query::VirtualizationMode, Query::ComputeMode, Query::BusId])
    );

    let log = QueryLog::new();
    text(&context(&log, &[0]), None);
    let queries = log.queries();
    assert!(
        !queries.contains(&Query::SupportedMemoryClocks)
            && !queries.contains(&Query::Samples(0, 0))
    );
}

#[test]
fn nothing_is_asked_twice_within_a_block() {
    let log = QueryLog::new();
    xml(&context(&log, &[0]), false);
    let queries = log.queries();
    assert!(queries.len() > 100, "{}", queries.len());
    let mut once = HashSet::new();
    let twice: Vec<_> = queries
        .iter()
        .filter(|query| !once.insert(**query))
        .collect();
    // The virtualization mode is also needed above the first GPU.
    assert_eq!(twice, [&Query::VirtualizationMode]);
}

/// A backend that answers the traffic queries only after all others, and fails if both are asked at
/// the same time.
struct Slow {
    script: ScriptedBackend,
    rest_is_asked: Mutex<bool>,
    arrived: Condvar,
    in_flight: AtomicBool,
}

impl QueryBackend for Slow {
    fn system(&self, query: SystemQuery) -> Answer {
        QueryBackend::system(&self.script, query)
    }

    fn about(&self, subject: Subject, query: Query) -> Answer {
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
        self.script.about(subject, query)
    }

    fn gpm(&self, _subject: Subject, _metrics: &[u32]) -> Answer {
        Err(Code::NOT_SUPPORTED)
    }
}

#[test]
fn what_waits_is_asked_beside_the_rest_and_one_after_the_other() {
    let slow = Slow {
        script: hopper(driver(), 0),
        rest_is_asked: Mutex::new(false),
        arrived: Condvar::new(),
        in_flight: AtomicBool::new(false),
    };
    let log = text(&context(&slow, &[0]), None);
    assert!(
        log.contains("        Tx Throughput                                  : 1067 KB/s\n"),
        "{log}"
    );
    assert!(
        log.contains("        Rx Throughput                                  : 633 KB/s\n"),
        "{log}"
    );
}
