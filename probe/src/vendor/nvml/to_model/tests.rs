//! Tests of the model of a real board, with every call failing with every return code.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    path::Path,
};

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::{super::cached::Answers, board, details, sample};
use crate::{
    model::{Absence, GpuDetails, GpuSample, Health},
    vendor::nvml::lanes,
    vendor::nvml::query::{Answer, CachedAnswers, Code, Query as Q, Value},
};

/// The answers of an idle H200 to a collector (driver 580.159.04), and the resulting records.
const H200: &str = include_str!("h200.json");

#[derive(Deserialize)]
struct Recording {
    answers: CachedAnswers,
    sample: Json,
    details: Json,
    board: Json,
}

fn recording() -> Recording {
    serde_json::from_str(H200).unwrap()
}

/// Returns the model of these answers as JSON.
fn model(answers: &CachedAnswers) -> Json {
    let answers = Answers::new(answers, 0);
    let mut made = GpuSample::absent(0, None, 0, Health::Ok, &Absence::NoAnswer);
    let mut slow = GpuDetails::absent(0, None, 0, &Absence::NoAnswer);
    sample(answers, &mut made);
    details(answers, &Ok(Value::Numbers(vec![0, 0, 0])), &mut slow);
    json!({ "sample": made, "details": slow, "board": board(answers, Path::new("/nowhere")) })
}

/// Returns the answers of the H200 with added fans, a link, accounting and retired pages, so that
/// all readings exist.
fn board_that_has_everything() -> CachedAnswers {
    let mut answers = recording().answers;
    let mut keep =
        |query, numbers: &[i128]| answers.keep(None, query, 1, Ok(Value::Numbers(numbers.into())));
    keep(Q::FanSpeed, &[40]);
    keep(Q::NumFans, &[1]);
    keep(Q::FanSpeedOf(0), &[40]);
    keep(Q::FanSpeedRpm(0), &[2100]);
    keep(Q::NvLinkState(0), &[1]);
    keep(Q::NvLinkVersion(0), &[6]);
    keep(Q::NvLinkRemoteDeviceType(0), &[2]);
    keep(lanes::link_speed(0), &[26_562]);
    for (counter, number) in lanes::link_counters(0).into_iter().zip(1..) {
        keep(counter, &[number]);
    }
    keep(Q::AccountingMode, &[1]);
    keep(Q::AccountingPids, &[7]);
    keep(Q::AccountingStats(7), &[50, 20, 1 << 30, 1000, 5, 1]);
    keep(Q::RetiredPages(0), &[0, 1]);
    keep(Q::RetiredPages(1), &[]);
    keep(Q::RetiredPagesPending, &[0]);
    keep(Q::NumaNode, &[0]);
    // The older function must not replace the newer one in these tests.
    answers.keep(None, Q::MemoryInfoV1, 1, Err(Code::NOT_SUPPORTED));
    answers.keep(
        None,
        Q::NvLinkRemoteBusId(0),
        1,
        Ok(Value::Text("00000000:04:00.0".to_owned())),
    );
    answers
}

/// Returns all readings as JSON texts, by path.
fn readings(json: &Json) -> BTreeMap<String, String> {
    fn walk(path: &str, json: &Json, into: &mut BTreeMap<String, String>) {
        match json {
            Json::Object(parts)
                if !parts.contains_key("absent") && !parts.contains_key("value") =>
            {
                parts
                    .iter()
                    .for_each(|(key, part)| walk(&format!("{path}.{key}"), part, into));
            }
            Json::Array(parts) if parts.iter().any(Json::is_object) => {
                for part in parts {
                    walk(&format!("{path}[]"), part, into);
                }
            }
            reading => {
                drop(into.insert(path.trim_start_matches('.').to_owned(), reading.to_string()));
            }
        }
    }
    let mut into = BTreeMap::new();
    walk("", json, &mut into);
    into
}

/// Returns the readings that differ from those before, with their new values.
fn changed(before: &BTreeMap<String, String>, answers: &CachedAnswers) -> BTreeMap<String, String> {
    let after = readings(&model(answers));
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

fn with(answers: &CachedAnswers, query: Q, answer: Answer) -> CachedAnswers {
    let mut answers = answers.clone();
    answers.keep(None, query, 1, answer);
    answers
}

/// Returns the queries that have a value.
fn answered(answers: &CachedAnswers) -> Vec<Q> {
    let mut queries: Vec<_> = answers
        .queries()
        .filter(|own| answers.get(None, *own).unwrap().answer.is_ok())
        .collect();
    queries.sort_unstable();
    queries
}

#[test]
fn a_real_boards_answers_make_what_its_collector_told() {
    let Recording {
        answers,
        sample,
        details,
        board,
    } = recording();
    let made = model(&answers);
    let told = json!({ "sample": sample, "details": details, "board": board });
    let (made, told) = (readings(&made), readings(&told));
    let differing: Vec<_> = told
        .iter()
        .filter(|(path, reading)| made.get(*path) != Some(reading))
        .collect();
    assert!(differing.is_empty(), "{differing:#?}");
}

/// Returns the JSON reason of an absent reading for a return code.
fn reason(code: u32) -> Json {
    match code {
        3 | 13 => json!({ "absent": "not_supported" }),
        4 => json!({ "absent": "no_permission" }),
        15 => json!({ "absent": "gpu_lost" }),
        21 => json!({ "absent": "unknown" }),
        code => json!({ "absent": "driver_error", "code": code }),
    }
}

#[test]
fn every_return_code_of_every_call_takes_its_own_readings_away_with_the_reason() {
    /// Returns `true` for queries whose "invalid argument" means that the board lacks the item.
    fn is_none(query: Q, code: u32) -> bool {
        code == 2
            && matches!(
                query,
                Q::FanSpeedOf(_) | Q::NvLinkState(_) | Q::MemoryErrors(..)
            )
    }
    let whole = board_that_has_everything();
    let before = readings(&model(&whole));
    for query in answered(&whole) {
        let taken = |code| changed(&before, &with(&whole, query, Err(Code(code))));
        let (missing, failed) = (taken(3), taken(999));
        // Only the output of `gpumon smi` uses this query.
        if failed.is_empty() {
            assert!(missing.is_empty(), "{query:?}");
            continue;
        }
        for code in (1..=30).chain([999]) {
            let lost = taken(code);
            let absent = [3, 13, 26].contains(&code) || is_none(query, code);
            let alike = if absent { &missing } else { &failed };
            assert_eq!(
                lost.keys().collect::<Vec<_>>(),
                alike.keys().collect::<Vec<_>>(),
                "{query:?} returns {code}"
            );
            let why = reason(if absent { 3 } else { code }).to_string();
            // Some failures leave no reason: a missing list is empty, a forgotten account is
            // omitted, a location can count only one kind of error, and the sum of link errors uses
            // the counters that exist.
            let other = lost.iter().find(|(path, own)| {
                !["", "[]", "0", "null"].contains(&own.as_str())
                    && **own != why
                    && !path.ends_with("errors_total")
                    && *path != "sample.memory_kind"
            });
            // The NUMA node is then read from the system, where this board does not exist.
            let of_the_system = query == Q::NumaNode && absent;
            assert!(
                of_the_system || other.is_none(),
                "{query:?} returns {code}: {lost:#?}"
            );
        }
    }
}

#[test]
fn gpu_without_own_memory_has_unified_memory() {
    let whole = board_that_has_everything();
    let kind = |answers: &CachedAnswers| model(answers)["sample"]["memory_kind"].clone();
    assert_eq!(kind(&whole), Json::Null);
    let with_code = |code| kind(&with(&whole, Q::MemoryInfo, Err(code)));
    assert_eq!(with_code(Code::NOT_SUPPORTED), json!("unified"));
    assert_eq!(with_code(Code::UNKNOWN), Json::Null);
}

#[test]
fn a_time_of_its_own_is_told_of_what_was_answered_before() {
    let mut answers = recording().answers;
    answers.keep(None, Q::PowerUsage, 5_000, Ok(Value::number(70_000)));
    answers.keep(None, Q::MarginTemperature, 4_000, Ok(Value::number(40)));
    let mut made = GpuSample::absent(0, None, 0, Health::Ok, &Absence::NoAnswer);
    sample(Answers::new(&answers, 5_000), &mut made);
    let (power, margin) = (
        json!(made.power.draw_watts),
        json!(made.temperature.margin_celsius),
    );
    assert_eq!(
        (power, margin),
        (json!(70.0), json!({ "value": 40.0, "at_ms": 4_000 }))
    );
}

/// Checks `docs/reference/nvml-calls.md`, which lists the calls of each reading. The test finds
/// them by having each call fail.
#[test]
fn the_reference_page_tells_which_calls_each_reading_is_made_of() {
    let whole = board_that_has_everything();
    let before = readings(&model(&whole));
    let mut calls: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for query in answered(&whole) {
        let name = match query {
            Q::Field(id, _) => format!("Field({id})"),
            query => format!("{query:?}")
                .split('(')
                .next()
                .unwrap_or_default()
                .to_owned(),
        };
        let lost = changed(&before, &with(&whole, query, Err(Code::UNKNOWN)));
        for path in lost.into_keys().filter(|path| before.contains_key(path)) {
            calls.entry(path).or_default().insert(name.clone());
        }
    }
    let mut page = "<!-- Generated by `make types` from the reader of NVML. Do not edit this file. -->\n# NVML calls\n\n\
        The NVML calls that each reading is made of. They are named as in NVML's reference, without `nvmlDeviceGet`; \
        `Field` is `nvmlDeviceGetFieldValues` with the number of a field. Rates, GPM activity, processes and MIG devices \
        are computed from two samples or several devices, and are not listed.\n\n\
        | Reading | Calls |\n|---|---|\n"
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
fn absurd_number_of_any_call_does_not_wrap() {
    let whole = board_that_has_everything();
    let wrapped = [u64::MAX.to_string(), u32::MAX.to_string()];
    for query in answered(&whole) {
        let Ok(Value::Numbers(numbers)) = &whole.get(None, query).unwrap().answer else {
            continue;
        };
        for absurd in [-1, i128::MIN, i128::MAX] {
            let answers = with(
                &whole,
                query,
                Ok(Value::Numbers(vec![absurd; numbers.len()])),
            );
            let made = model(&answers).to_string();
            assert!(
                !wrapped.iter().any(|wrapped| made.contains(wrapped)),
                "{query:?} {absurd}: {made}"
            );
        }
        // The model keeps the driver's huge values, because they are compared with the GPU's memory
        // only later. Here, the conversion must not panic.
        model(&with(
            &whole,
            query,
            Ok(Value::Numbers(vec![u64::MAX.into(); numbers.len()])),
        ));
    }
}
