//! Tests that make each query of an output fail with each return code. The failed query's readings
//! must be replaced by nvidia-smi's words, and nothing else may change.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query, QueryBackend, Subject, SystemQuery};

use super::{
    difference::{Difference, Layout},
    machines, views,
};
use crate::error_messages::{describe_code, describe_code_in_brackets};

/// A query that the backend receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Call {
    System(SystemQuery),
    About(Subject, Query),
    Gpm(Subject),
}

/// A backend that passes queries on to another backend, records them, and can make one of them
/// fail.
struct FailingBackend<'a> {
    inner: &'a dyn QueryBackend,
    fails: Option<(Call, Code)>,
    calls: Mutex<BTreeSet<Call>>,
}

impl<'a> FailingBackend<'a> {
    fn new(inner: &'a dyn QueryBackend, fails: Option<(Call, Code)>) -> Self {
        Self {
            inner,
            fails,
            calls: Mutex::default(),
        }
    }

    fn answer_or_fail(&self, call: Call, answer: impl FnOnce() -> Answer) -> Answer {
        match self.fails {
            Some((failing, code)) if failing == call => Err(code),
            Some(_) => answer(),
            None => {
                self.calls.lock().unwrap().insert(call);
                answer()
            }
        }
    }
}

impl QueryBackend for FailingBackend<'_> {
    fn answer_system(&self, query: SystemQuery) -> Answer {
        self.answer_or_fail(Call::System(query), || self.inner.answer_system(query))
    }

    fn answer_query(&self, subject: Subject, query: Query) -> Answer {
        self.answer_or_fail(Call::About(subject, query), || {
            self.inner.answer_query(subject, query)
        })
    }

    fn answer_gpm(&self, subject: Subject, metrics: &[u32]) -> Answer {
        self.answer_or_fail(Call::Gpm(subject), || {
            self.inner.answer_gpm(subject, metrics)
        })
    }

    fn answers_from_memory(&self) -> bool {
        true
    }
}

/// Returns the return codes with which a query fails: one code of each kind, and further codes for
/// the machine `h200`. In `make test-full`, these are all other codes; otherwise, they are every
/// eighth code, starting at a code that depends on the query's position `number`. XML output is
/// tested without further codes, because it has the same values as text.
fn choose_failure_codes(machine: &str, layout: Layout, number: usize) -> Vec<Code> {
    const KINDS: [u32; 9] = [2, 3, 4, 6, 13, 15, 16, 26, 999];
    let has_all = std::env::var_os("GPUMON_TEST_FULL").is_some();
    let others = (1..=30).filter(|code| {
        !KINDS.contains(code) && (has_all || (*code as usize + number).is_multiple_of(8))
    });
    let others = others.filter(|_| machine == "h200" && layout != Layout::Xml);
    KINDS.into_iter().chain(others).map(Code).collect()
}

/// Returns `true` if `value` may replace a reading whose query returns `code`.
fn is_valid_replacement(value: &str, code: Code) -> bool {
    const ABSENT: [&str; 7] = ["N/A", "[N/A]", "None", "", "-", "Unknown", "Unknown Error"];
    ABSENT.contains(&value)
        || value.contains(describe_code(code))
        || value == describe_code_in_brackets(code)
}

/// Returns `true` if the failure of `call` may change other readings. There are three cases. First,
/// one of these is unknown: the driver's version, or the board's generation, limits, or supported
/// reasons for reduced clocks. Second, a process is missing from one of two lists. Third, `code`
/// means that the InfoROM is corrupted, which is shown as a reading of its own.
fn may_change_other_readings(call: Call, code: Code) -> bool {
    let Call::About(_, query) = call else {
        return call == Call::System(SystemQuery::DriverVersion);
    };
    match query {
        Query::Architecture
        | Query::Field(193, 0)
        | Query::SupportedThrottleReasons
        | Query::ComputeProcesses
        | Query::GraphicsProcesses => true,
        Query::InforomIsValid => code == Code::CORRUPTED_INFOROM,
        _ => false,
    }
}

/// Tries all failures for a command line. Returns their number, and descriptions of incorrect
/// outputs.
fn check_command_line(
    machine: &str,
    line: &str,
    backend: &dyn QueryBackend,
) -> (usize, Vec<String>) {
    let recorder = FailingBackend::new(backend, None);
    let layout = Layout::from_line(line);
    let before = views::render_command_line(line, &recorder);
    let calls = recorder.calls.into_inner().unwrap();
    let (mut count, mut complaints) = (0, Vec::new());
    let calls = calls
        .into_iter()
        .filter(|call| !is_about_second_gpu(*call) && is_answered(backend, *call));
    for (number, call) in calls.enumerate() {
        let mut complain =
            |what: String| complaints.push(format!("{machine}, {line:.40}: {call:?} {what}"));
        // All return codes of the same kind must remove the same readings.
        let mut losses: BTreeMap<Vec<String>, Vec<u32>> = BTreeMap::new();
        for code in choose_failure_codes(machine, layout, number) {
            count += 1;
            let show = || {
                views::render_command_line(line, &FailingBackend::new(backend, Some((call, code))))
            };
            let Ok(after) = catch_unwind(AssertUnwindSafe(show)) else {
                complain(format!("returns {}: it panics", code.0));
                continue;
            };
            let Difference { gone, new } = Difference::new(layout, &before, &after);
            let is_wrong = |value: &str| {
                !is_valid_replacement(value, code) && !may_change_other_readings(call, code)
            };
            for piece in new
                .iter()
                .filter(|piece| layout.value(piece).is_some_and(is_wrong))
            {
                complain(format!("returns {}: {}", code.0, piece.trim()));
            }
            if layout == Layout::Csv
                && gone.iter().any(|piece| piece.starts_with("1/"))
                && matches!(call, Call::About(..))
            {
                complain(format!(
                    "returns {}, and the other GPU's row changes",
                    code.0
                ));
            }
            if describe_code(code) == describe_code(Code::UNKNOWN)
                && !(code == Code::INVALID_ARGUMENT || may_change_other_readings(call, code))
            {
                losses.entry(gone).or_default().push(code.0);
            }
        }
        if losses.len() > 1 && layout != Layout::Table {
            complain(format!(
                "takes other readings away with each of {:?}",
                losses.values().collect::<Vec<_>>()
            ));
        }
    }
    (count, complaints)
}

/// Returns `true` if `call` queries the second GPU, whose readings must not change.
fn is_about_second_gpu(call: Call) -> bool {
    matches!(
        call,
        Call::About(Subject { gpu: 1, .. }, _) | Call::Gpm(Subject { gpu: 1, .. })
    )
}

fn is_answered(backend: &dyn QueryBackend, call: Call) -> bool {
    match call {
        Call::System(query) => backend.answer_system(query).is_ok(),
        Call::About(subject, query) => backend.answer_query(subject, query).is_ok(),
        Call::Gpm(_) => true,
    }
}

#[test]
fn failing_query_affects_only_its_readings() {
    let machines = machines::list_machines();
    let forms = views::list_command_lines();
    let work: Vec<_> = machines
        .iter()
        .flat_map(|machine| forms.iter().map(move |form| (machine, form)))
        .collect();
    let (next, cells, complaints) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        Mutex::new(Vec::new()),
    );
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(((machine, backend), form)) = work.get(next.fetch_add(1, Relaxed)) {
                    let (count, wrong) = check_command_line(machine, form, backend);
                    cells.fetch_add(count, Relaxed);
                    complaints.lock().unwrap().extend(wrong);
                }
            });
        }
    });
    let complaints = complaints.into_inner().unwrap();
    assert!(
        complaints.is_empty(),
        "{}: {complaints:#?}",
        complaints.len()
    );
    let cells = cells.into_inner();
    assert!(cells > 10_000, "{cells} cells are not the whole matrix");
}
