//! The order of calls: GPUs do not block each other, constant values are queried once, and only one
//! thread at a time uses GPM.

#![allow(
    clippy::unnecessary_wraps,
    reason = "what is compared with answers is an answer"
)]

use std::{collections::BTreeMap, fs, path::Path, thread, time::Duration};

use crate::common::{until, with_library};
use gpumon_probe::{
    vendor::nvml::query::{
        Answer, Code, Query as Q, QueryBackend, Subject, SystemQuery as S, Value,
    },
    vendor::{SourceError, nvml::NvmlBackend},
};

/// A GPU, a consumer GPU, and a GPU with MIG devices.
const THREE: &str = r#"
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

const H200: Subject = Subject::gpu(0);
const GEFORCE: Subject = Subject::gpu(1);
const DIVIDED: Subject = Subject::gpu(2);
const PART: Subject = Subject::mig(2, 0);

fn open(library: &Path) -> NvmlBackend {
    NvmlBackend::open(Some(library.into())).unwrap()
}

fn n(numbers: &[i128]) -> Answer {
    Ok(Value::Numbers(numbers.to_vec()))
}

fn t(text: &str) -> Answer {
    Ok(Value::Text(text.to_owned()))
}

#[test]
fn a_lost_gpu_says_so_and_takes_no_other_with_it() {
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
    with_library(
        "asking::a_lost_gpu_says_so_and_takes_no_other_with_it",
        scenario,
        &[],
        |library| {
            let answers = open(library);
            assert_eq!(answers.system(S::DeviceCount), n(&[2]));
            let (lost, other, beyond) = (Subject::gpu(0), Subject::gpu(1), Subject::gpu(2));
            assert_eq!(answers.about(lost, Q::Name), Err(Code::GPU_IS_LOST));
            assert_eq!(answers.gpm(lost, &[1]), Err(Code::GPU_IS_LOST));
            assert_eq!(answers.about(beyond, Q::Name), Err(Code::INVALID_ARGUMENT));
            assert_eq!(
                answers.about(other, Q::Name),
                Err(Code::UNKNOWN),
                "it cannot be opened"
            );
            until("it can be opened again, in the next round", || {
                answers.forget();
                answers.about(other, Q::Name) == t("NVIDIA H200")
            });
            assert_eq!(
                answers.about(other, Q::CommonAncestor(0)),
                Err(Code::GPU_IS_LOST)
            );
            assert_eq!(answers.about(lost, Q::Name), Err(Code::GPU_IS_LOST));
        },
    );
}

#[test]
fn no_gpu_waits_until_another_is_open() {
    let scenario = r#"
        gpus = 2
        [[fault]]
        kind = "hang"
        gpu = 0
        call = "nvmlDeviceGetHandleByIndex_v2"
        to_s = 3
    "#;
    with_library(
        "asking::no_gpu_waits_until_another_is_open",
        scenario,
        &[],
        |library| {
            let answers = open(library);
            thread::scope(|scope| {
                let slow = scope.spawn(|| answers.about(Subject::gpu(0), Q::Name));
                // The first query has entered the driver by then.
                thread::sleep(Duration::from_millis(300));
                assert_eq!(answers.about(Subject::gpu(1), Q::Name), t("NVIDIA H200"));
                assert!(!slow.is_finished(), "the first GPU is not open yet");
                assert_eq!(slow.join().unwrap(), t("NVIDIA H200"));
            });
        },
    );
}

#[test]
fn what_never_changes_is_asked_once() {
    with_library(
        "asking::what_never_changes_is_asked_once",
        THREE,
        &[],
        |library| {
            let answers = open(library);
            for _ in 0..3 {
                for query in [Q::Name, Q::MaxClock(0), Q::RemappedRows, Q::PowerUsage] {
                    assert!(answers.about(H200, query).is_ok(), "{query:?}");
                }
                // An unsupported value is also queried only once.
                assert_eq!(answers.about(GEFORCE, Q::Serial), Err(Code::NOT_SUPPORTED));
                assert_eq!(answers.about(PART, Q::Name), t("NVIDIA H200 MIG 3g.71gb"));
                answers.forget();
            }
            // The counts are written once a second, during a call.
            thread::sleep(Duration::from_millis(1100));
            assert!(answers.system(S::DriverVersion).is_ok());
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
                "another MIG device may stand there"
            );
            assert_eq!(
                calls("nvmlDeviceGetHandleByIndex_v2", "3"),
                None,
                "nobody asked about this one"
            );
            assert!(!counts.contains_key("nvmlDeviceGetUUID"));
        },
    );
}

#[test]
fn gpm_tells_what_was_since_the_last_time_and_is_entered_by_one_at_a_time() {
    let test = "asking::gpm_tells_what_was_since_the_last_time_and_is_entered_by_one_at_a_time";
    with_library(test, THREE, &[], |library| {
        let answers = open(library);
        let metrics = [2, 3, 7777];
        let together = || {
            thread::scope(|scope| {
                let (answers, metrics) = (&answers, &metrics);
                let ask = |subject| scope.spawn(move || answers.gpm(subject, metrics));
                [H200, PART, DIVIDED]
                    .map(ask)
                    .map(|asked| asked.join().unwrap())
            })
        };
        assert_eq!(together(), [const { Err(Code::NOT_READY) }; 3]);
        assert_eq!(
            answers.gpm(H200, &metrics),
            Err(Code::NOT_READY),
            "it is too short a while ago"
        );
        assert_eq!(answers.gpm(GEFORCE, &metrics), Err(Code::NOT_SUPPORTED));
        thread::sleep(Duration::from_millis(150));
        let [whole, part, _] = together().map(|answer| match answer {
            Ok(Value::Reals(values)) => values,
            other => panic!("{other:?}"),
        });
        assert_eq!((whole[0], whole[1], whole[2].is_nan()), (48.0, 11.0, true));
        assert_eq!(
            (part[0], part[2].is_nan()),
            (9.6, true),
            "of its own processes"
        );
    });
}

#[test]
fn a_library_that_does_not_start_says_why() {
    let scenario = "gpus = 1\n[returns]\nnvmlInit_v2 = 18\n";
    with_library(
        "asking::a_library_that_does_not_start_says_why",
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
