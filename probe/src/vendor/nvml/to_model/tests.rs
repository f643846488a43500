//! Tests of the conversion of a real board's answers. Each call is made to fail with every return
//! code.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    path::Path,
};

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::{TimedAnswers, fill_details, fill_sample, make_board};
use crate::{
    model::{Absence, GpuDetails, GpuSample, Health},
    vendor::nvml::{
        query::{Answer, CachedAnswers, Code, Query as Q, Value},
        schedule,
    },
};

/// A recording of an idle H200: the answers to a collector's queries (driver 580.159.04), and the
/// records made from them.
const H200: &str = include_str!("h200.json");

#[derive(Deserialize)]
struct Recording {
    answers: CachedAnswers,
    sample: Json,
    details: Json,
    board: Json,
}

fn read_recording() -> Recording {
    serde_json::from_str(H200).unwrap()
}

/// Returns the model made from `answers`, as JSON.
fn make_model(answers: &CachedAnswers) -> Json {
    let answers = TimedAnswers::new(answers, 0);
    let mut made = GpuSample::new_absent(0, None, 0, Health::Ok, &Absence::NoAnswer);
    let mut slow = GpuDetails::new_absent(0, None, 0, &Absence::NoAnswer);
    fill_sample(answers, &mut made);
    fill_details(answers, &Ok(Value::Numbers(vec![0, 0, 0])), &mut slow);
    json!({ "sample": made, "details": slow, "board": make_board(answers, Path::new("/nowhere")) })
}

/// Returns the answers of the H200, extended by fans, a link, accounting and retired pages, so that
/// every reading has a value.
fn complete_answers() -> CachedAnswers {
    let mut answers = read_recording().answers;
    let mut keep = |query, numbers: &[i128]| {
        answers.store_answer(None, query, 1, Ok(Value::Numbers(numbers.into())));
    };
    keep(Q::FanSpeed, &[40]);
    keep(Q::NumFans, &[1]);
    keep(Q::FanSpeedOf(0), &[40]);
    keep(Q::FanSpeedRpm(0), &[2100]);
    keep(Q::NvLinkState(0), &[1]);
    keep(Q::NvLinkVersion(0), &[6]);
    keep(Q::NvLinkRemoteDeviceType(0), &[2]);
    keep(schedule::link_speed_query(0), &[26_562]);
    for (counter, number) in schedule::link_counter_queries(0).into_iter().zip(1..) {
        keep(counter, &[number]);
    }
    keep(Q::AccountingMode, &[1]);
    keep(Q::AccountingPids, &[7]);
    keep(Q::AccountingStats(7), &[50, 20, 1 << 30, 1000, 5, 1]);
    keep(Q::RetiredPages(0), &[0, 1]);
    keep(Q::RetiredPages(1), &[]);
    keep(Q::RetiredPagesPending, &[0]);
    keep(Q::NumaNode, &[0]);
    // Without this error, the older function's answer would be used when the newer function fails.
    answers.store_answer(None, Q::MemoryInfoV1, 1, Err(Code::NOT_SUPPORTED));
    answers.store_answer(
        None,
        Q::NvLinkRemoteBusId(0),
        1,
        Ok(Value::Text("00000000:04:00.0".to_owned())),
    );
    answers
}

/// Returns all readings as JSON text, by path.
fn flatten_readings(json: &Json) -> BTreeMap<String, String> {
    fn collect_readings(path: &str, json: &Json, into: &mut BTreeMap<String, String>) {
        match json {
            Json::Object(parts)
                if !parts.contains_key("absent") && !parts.contains_key("value") =>
            {
                parts
                    .iter()
                    .for_each(|(key, part)| collect_readings(&format!("{path}.{key}"), part, into));
            }
            Json::Array(parts) if parts.iter().any(Json::is_object) => {
                for part in parts {
                    collect_readings(&format!("{path}[]"), part, into);
                }
            }
            reading => {
                drop(into.insert(path.trim_start_matches('.').to_owned(), reading.to_string()));
            }
        }
    }
    let mut into = BTreeMap::new();
    collect_readings("", json, &mut into);
    into
}

/// Returns the readings that have changed, with their new values.
fn find_changes(
    before: &BTreeMap<String, String>,
    answers: &CachedAnswers,
) -> BTreeMap<String, String> {
    let after = flatten_readings(&make_model(answers));
    let gone = before
        .keys()
        .filter(|path| !after.contains_key(*path))
        .map(|path| (path.clone(), String::new()));
    let other = after
        .iter()
        .filter(|(path, reading)| before.get(*path) != Some(reading));
    other
        .map(|(path, reading)| (path.clone(), reading.clone()))
        .chain(gone)
        .collect()
}

fn with_answer(answers: &CachedAnswers, query: Q, answer: Answer) -> CachedAnswers {
    let mut answers = answers.clone();
    answers.store_answer(None, query, 1, answer);
    answers
}

/// Returns the queries whose answer is a value rather than an error.
fn answered_queries(answers: &CachedAnswers) -> Vec<Q> {
    let mut queries: Vec<_> = answers
        .queries()
        .filter(|own| answers.get(None, *own).unwrap().answer.is_ok())
        .collect();
    queries.sort_unstable();
    queries
}

#[test]
fn recorded_answers_yield_recorded_model() {
    let Recording {
        answers,
        sample,
        details,
        board,
    } = read_recording();
    let made = make_model(&answers);
    let reported = json!({ "sample": sample, "details": details, "board": board });
    let (made, reported) = (flatten_readings(&made), flatten_readings(&reported));
    let differing: Vec<_> = reported
        .iter()
        .filter(|(path, reading)| made.get(*path) != Some(reading))
        .collect();
    assert!(differing.is_empty(), "{differing:#?}");
}

/// Returns the JSON of an absent reading's reason for a return code.
fn absence_json(code: u32) -> Json {
    match code {
        3 | 13 => json!({ "absent": "not_supported" }),
        4 => json!({ "absent": "no_permission" }),
        15 => json!({ "absent": "gpu_lost" }),
        21 => json!({ "absent": "unknown" }),
        code => json!({ "absent": "driver_error", "code": code }),
    }
}

#[test]
fn failed_call_removes_only_dependent_readings() {
    /// Returns `true` for queries where the code "invalid argument" means that the board lacks the
    /// item.
    fn is_missing_item(query: Q, code: u32) -> bool {
        code == 2
            && matches!(
                query,
                Q::FanSpeedOf(_) | Q::NvLinkState(_) | Q::MemoryErrors(..)
            )
    }
    let whole = complete_answers();
    let before = flatten_readings(&make_model(&whole));
    for query in answered_queries(&whole) {
        let taken = |code| find_changes(&before, &with_answer(&whole, query, Err(Code(code))));
        let (missing, failed) = (taken(3), taken(999));
        // If a failure changes no reading, the answer is used only for the output of `gpumon smi`.
        if failed.is_empty() {
            assert!(missing.is_empty(), "{query:?}");
            continue;
        }
        for code in (1..=30).chain([999]) {
            let lost = taken(code);
            let absent = [3, 13, 26].contains(&code) || is_missing_item(query, code);
            let alike = if absent { &missing } else { &failed };
            assert_eq!(
                lost.keys().collect::<Vec<_>>(),
                alike.keys().collect::<Vec<_>>(),
                "{query:?} returns {code}"
            );
            let why = absence_json(if absent { 3 } else { code }).to_string();
            // Some failures do not appear as a reason for absence: a missing list becomes an empty
            // list; an account that cannot be read is omitted; a memory location may count only one
            // kind of error; and the sum of link errors uses the remaining counters.
            let other = lost.iter().find(|(path, own)| {
                !["", "[]", "0", "null"].contains(&own.as_str())
                    && **own != why
                    && !path.ends_with("errors_total")
                    && *path != "sample.memory_kind"
            });
            // If the query fails, the NUMA node is read from sysfs. The sysfs that the test uses
            // does not contain this board.
            let of_the_system = query == Q::NumaNode && absent;
            assert!(
                of_the_system || other.is_none(),
                "{query:?} returns {code}: {lost:#?}"
            );
        }
    }
}

#[test]
fn gpu_without_dedicated_memory_has_unified_memory() {
    let whole = complete_answers();
    let kind = |answers: &CachedAnswers| make_model(answers)["sample"]["memory_kind"].clone();
    assert_eq!(kind(&whole), Json::Null);
    let with_code = |code| kind(&with_answer(&whole, Q::MemoryInfo, Err(code)));
    assert_eq!(with_code(Code::NOT_SUPPORTED), json!("unified"));
    assert_eq!(with_code(Code::UNKNOWN), Json::Null);
}

#[test]
fn reading_keeps_time_of_older_answer() {
    let mut answers = read_recording().answers;
    answers.store_answer(None, Q::PowerUsage, 5_000, Ok(Value::from_number(70_000)));
    answers.store_answer(
        None,
        Q::MarginTemperature,
        4_000,
        Ok(Value::from_number(40)),
    );
    let mut made = GpuSample::new_absent(0, None, 0, Health::Ok, &Absence::NoAnswer);
    fill_sample(TimedAnswers::new(&answers, 5_000), &mut made);
    let (power, margin) = (
        json!(made.power.draw_watts),
        json!(made.temperature.margin_celsius),
    );
    assert_eq!(
        (power, margin),
        (json!(70.0), json!({ "value": 40.0, "at_ms": 4_000 }))
    );
}

/// Checks `docs/reference/nvml-calls.md`, which lists the NVML calls that each reading uses. The
/// test determines them by making each call fail.
#[test]
fn reference_page_lists_calls_of_readings() {
    let whole = complete_answers();
    let before = flatten_readings(&make_model(&whole));
    let mut calls: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for query in answered_queries(&whole) {
        let name = match query {
            Q::Field(id, _) => format!("Field({id})"),
            query => format!("{query:?}")
                .split('(')
                .next()
                .unwrap_or_default()
                .to_owned(),
        };
        let lost = find_changes(&before, &with_answer(&whole, query, Err(Code::UNKNOWN)));
        for path in lost.into_keys().filter(|path| before.contains_key(path)) {
            calls.entry(path).or_default().insert(name.clone());
        }
    }
    let mut page = "<!-- Generated by `make types` from the reader of NVML. Do not edit this \
                    file. -->\n# NVML calls\n\nThe NVML calls that each reading is made of. They \
                    are named as in NVML's reference, without `nvmlDeviceGet`; `Field` is \
                    `nvmlDeviceGetFieldValues` with the number of a field. Rates, GPM activity, \
                    processes and MIG devices are computed from two samples or several devices, \
                    and are not listed.\n\n| Reading | Calls |\n|---|---|\n"
        .to_owned();
    for (path, calls) in &calls {
        let calls: Vec<_> = calls.iter().map(String::as_str).collect();
        writeln!(page, "| `{path}` | {} |", calls.join(", ")).unwrap();
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/nvml-calls.md");
    if std::env::var_os("GPUMON_UPDATE_TYPES").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(written, page, "`make types` writes it anew");
}

#[test]
fn absurd_number_from_any_call_does_not_overflow() {
    let whole = complete_answers();
    let wrapped = [u64::MAX.to_string(), u32::MAX.to_string()];
    for query in answered_queries(&whole) {
        let Ok(Value::Numbers(numbers)) = &whole.get(None, query).unwrap().answer else {
            continue;
        };
        for absurd in [-1, i128::MIN, i128::MAX] {
            let answers = with_answer(
                &whole,
                query,
                Ok(Value::Numbers(vec![absurd; numbers.len()])),
            );
            let made = make_model(&answers).to_string();
            assert!(
                !wrapped.iter().any(|wrapped| made.contains(wrapped)),
                "{query:?} {absurd}: {made}"
            );
        }
        // The model keeps impossibly large values. They are compared with the GPU's memory only
        // later, so this test only checks that the conversion does not panic.
        make_model(&with_answer(
            &whole,
            query,
            Ok(Value::Numbers(vec![u64::MAX.into(); numbers.len()])),
        ));
    }
}
