//! The order of calls: GPUs do not block each other, constant values are queried once, and only one
//! thread at a time uses GPM.

#![allow(
    clippy::unnecessary_wraps,
    reason = "expected answers have the same type as answers"
)]

use std::{collections::BTreeMap, fs, path::Path, thread, time::Duration};

use crate::common::{run_with_library, wait_until};
use gpumon_probe::{
    vendor::nvml::query::{
        Answer, Code, Query as Q, QueryBackend, Subject, SystemQuery as S, Value,
    },
    vendor::{SourceError, nvml::NvmlBackend},
};

/// A GPU, a consumer GPU, and a GPU with MIG devices.
const SCENARIO: &str = r#"
    [[gpu]]
    index = 0
    utilization_percent = 50
    [[gpu]]
    index = 1
    name = "NVIDIA GeForce RTX 4090"
    [[gpu]]
    index = 2
    mig = [{ profile = "3g.71gb", gpu_instance = 2 }, { profile = "1g.18gb", gpu_instance = 7 }]
    [[process]]
    gpu = 2
    pid = 77
    gpu_instance = 2
    sm_percent = 10
"#;

const H200: Subject = Subject::from_gpu(0);
const GEFORCE: Subject = Subject::from_gpu(1);
const MIG_GPU: Subject = Subject::from_gpu(2);
const MIG_DEVICE: Subject = Subject::from_mig(2, 0);

fn open_library(library: &Path) -> NvmlBackend {
    NvmlBackend::open(Some(library.into())).unwrap()
}

fn number_answer(numbers: &[i128]) -> Answer {
    Ok(Value::Numbers(numbers.to_vec()))
}

fn text_answer(text: &str) -> Answer {
    Ok(Value::Text(text.to_owned()))
}

#[test]
fn lost_gpu_is_reported_without_affecting_others() {
    let scenario = r#"
        gpus = 2
        [[fault]]
        kind = "lost"
        gpu = 0
        [[fault]]
        kind = "returns"
        gpu = 1
        call = "nvmlDeviceGetHandleByIndex_v2"
        code = 999
        to_s = 1.5
    "#;
    run_with_library(
        "asking::lost_gpu_is_reported_without_affecting_others",
        scenario,
        &[],
        |library| {
            let answers = open_library(library);
            assert_eq!(answers.answer_system(S::DeviceCount), number_answer(&[2]));
            let (lost, other, beyond) = (
                Subject::from_gpu(0),
                Subject::from_gpu(1),
                Subject::from_gpu(2),
            );
            assert_eq!(answers.answer_query(lost, Q::Name), Err(Code::GPU_IS_LOST));
            assert_eq!(answers.answer_gpm(lost, &[1]), Err(Code::GPU_IS_LOST));
            assert_eq!(
                answers.answer_query(beyond, Q::Name),
                Err(Code::INVALID_ARGUMENT)
            );
            assert_eq!(
                answers.answer_query(other, Q::Name),
                Err(Code::UNKNOWN),
                "the GPU cannot be opened"
            );
            wait_until("the GPU can be opened again in the next round", || {
                answers.forget_handles();
                answers.answer_query(other, Q::Name) == text_answer("NVIDIA H200")
            });
            assert_eq!(
                answers.answer_query(other, Q::CommonAncestor(0)),
                Err(Code::GPU_IS_LOST)
            );
            assert_eq!(answers.answer_query(lost, Q::Name), Err(Code::GPU_IS_LOST));
        },
    );
}

#[test]
fn slow_gpu_does_not_block_others() {
    let scenario = r#"
        gpus = 2
        [[fault]]
        kind = "hang"
        gpu = 0
        call = "nvmlDeviceGetHandleByIndex_v2"
        to_s = 3
    "#;
    run_with_library(
        "asking::slow_gpu_does_not_block_others",
        scenario,
        &[],
        |library| {
            let answers = open_library(library);
            thread::scope(|scope| {
                let slow = scope.spawn(|| answers.answer_query(Subject::from_gpu(0), Q::Name));
                // After this time, the first GPU's call is running in the driver.
                thread::sleep(Duration::from_millis(300));
                assert_eq!(
                    answers.answer_query(Subject::from_gpu(1), Q::Name),
                    text_answer("NVIDIA H200")
                );
                assert!(
                    !slow.is_finished(),
                    "the call for the first GPU must still be running"
                );
                assert_eq!(slow.join().unwrap(), text_answer("NVIDIA H200"));
            });
        },
    );
}

#[test]
fn constant_values_are_queried_once() {
    run_with_library(
        "asking::constant_values_are_queried_once",
        SCENARIO,
        &[],
        |library| {
            let answers = open_library(library);
            for _ in 0..3 {
                for query in [Q::Name, Q::MaxClock(0), Q::RemappedRows, Q::PowerUsage] {
                    assert!(answers.answer_query(H200, query).is_ok(), "{query:?}");
                }
                // An unsupported value is also queried only once.
                assert_eq!(
                    answers.answer_query(GEFORCE, Q::Serial),
                    Err(Code::NOT_SUPPORTED)
                );
                assert_eq!(
                    answers.answer_query(MIG_DEVICE, Q::Name),
                    text_answer("NVIDIA H200 MIG 3g.71gb")
                );
                answers.forget_handles();
            }
            // The counts are only written during a call, and at most once a second.
            thread::sleep(Duration::from_millis(1100));
            assert!(answers.answer_system(S::DriverVersion).is_ok());
            let text = fs::read_to_string(library.with_file_name("counts.json")).unwrap();
            let counts: BTreeMap<String, BTreeMap<String, u64>> =
                serde_json::from_str(&text).unwrap();
            let calls = |function: &str, gpu: &str| counts[function].get(gpu).copied();
            assert_eq!(calls("nvmlDeviceGetName", "0"), Some(1));
            assert_eq!(calls("nvmlDeviceGetMaxClockInfo", "0"), Some(1));
            assert_eq!(calls("nvmlDeviceGetSerial", "1"), Some(1));
            assert_eq!(calls("nvmlDeviceGetPowerUsage", "0"), Some(3));
            assert_eq!(calls("nvmlDeviceGetRemappedRows", "0"), Some(3));
            assert_eq!(
                calls("nvmlDeviceGetName", "2"),
                Some(3),
                "the name is queried again, because another MIG device may have this handle"
            );
            assert_eq!(
                calls("nvmlDeviceGetHandleByIndex_v2", "3"),
                None,
                "no query needs the handle of this GPU"
            );
            assert!(!counts.contains_key("nvmlDeviceGetUUID"));
        },
    );
}

#[test]
fn concurrent_gpm_queries_cover_time_since_last_query() {
    let test = "asking::concurrent_gpm_queries_cover_time_since_last_query";
    run_with_library(test, SCENARIO, &[], |library| {
        let answers = open_library(library);
        let metrics = [2, 3, 7777];
        let together = || {
            thread::scope(|scope| {
                let (answers, metrics) = (&answers, &metrics);
                let ask = |subject| scope.spawn(move || answers.answer_gpm(subject, metrics));
                [H200, MIG_DEVICE, MIG_GPU]
                    .map(ask)
                    .map(|asked| asked.join().unwrap())
            })
        };
        assert_eq!(together(), [const { Err(Code::NOT_READY) }; 3]);
        assert_eq!(
            answers.answer_gpm(H200, &metrics),
            Err(Code::NOT_READY),
            "too little time has passed since the last query"
        );
        assert_eq!(
            answers.answer_gpm(GEFORCE, &metrics),
            Err(Code::NOT_SUPPORTED)
        );
        thread::sleep(Duration::from_millis(150));
        let [whole, part, _] = together().map(|answer| match answer {
            Ok(Value::Reals(values)) => values,
            other => panic!("{other:?}"),
        });
        assert_eq!((whole[0], whole[1], whole[2].is_nan()), (48.0, 11.0, true));
        assert_eq!(
            (part[0], part[2].is_nan()),
            (9.6, true),
            "the utilization is that of the device's own processes"
        );
    });
}

#[test]
fn library_start_failure_gives_reason() {
    let scenario = "gpus = 1\n[returns]\nnvmlInit_v2 = 18\n";
    run_with_library(
        "asking::library_start_failure_gives_reason",
        scenario,
        &[],
        |library| {
            let refused = |path: &Path| NvmlBackend::open(Some(path.into())).err().unwrap();
            assert!(matches!(refused(library), SourceError::VersionMismatch(_)));
            let nowhere = refused(Path::new("/nowhere/libnvidia-ml.so.1"));
            assert!(
                matches!(&nowhere, SourceError::NoLibrary(message) if message.contains(" /nowhere/"))
            );
            let other = tempfile::tempdir().unwrap();
            let without = fake_nvml::install(other.path(), &["nvmlInit_v2"]);
            assert!(
                refused(&without).to_string().contains("too old"),
                "{}",
                refused(&without)
            );
        },
    );
}
