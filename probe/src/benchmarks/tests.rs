use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use super::*;

fn make_result(workload: &str, n: u64, median_us: f64) -> Measurement {
    Measurement {
        workload: workload.to_owned(),
        dtype: "fp32".to_owned(),
        n,
        at_ms: 1_700_000_000_000,
        time: Interval {
            median_us,
            low_us: median_us * 0.99,
            high_us: median_us * 1.01,
        },
        gpumon: "0.2.0".to_owned(),
        cuda: Some("13.0".to_owned()),
        limit_watts: Some(700.0),
        sm_mhz: None,
    }
}

fn make_benchmarks(gpus: &[(&str, f64)]) -> Benchmarks {
    let mut benchmarks = Benchmarks::default();
    for (uuid, median_us) in gpus {
        benchmarks.save_baseline(
            uuid,
            "NVIDIA H200",
            vec![make_result("copy", 8, *median_us)],
        );
    }
    benchmarks
}

#[test]
fn result_replaces_only_result_of_same_workload() {
    let mut benchmarks = make_benchmarks(&[("GPU-a", 100.0)]);
    benchmarks.save_baseline(
        "GPU-a",
        "NVIDIA H200",
        vec![make_result("triad", 8, 7.0), make_result("copy", 9, 8.0)],
    );
    benchmarks.save_baseline("GPU-a", "NVIDIA H200", vec![make_result("copy", 8, 90.0)]);
    let times: Vec<_> = benchmarks
        .baseline_results("GPU-a")
        .iter()
        .map(|result| result.time.median_us)
        .collect();
    assert_eq!(times, [7.0, 8.0, 90.0]);
    assert!(benchmarks.baseline_results("GPU-b").is_empty());
}

#[test]
fn slow_result_is_reported_until_improved_or_rebaselined() {
    let mut benchmarks = make_benchmarks(&[("GPU-a", 100.0)]);
    let below = |benchmarks: &Benchmarks| {
        benchmarks
            .find_worst_below_baseline("GPU-a")
            .map(|below| below.ratio)
    };
    for (median_us, ratio) in [
        (111.0, None),
        (112.0, Some(100.0 / 112.0)),
        (300.0, Some(100.0 / 300.0)),
        (90.0, None),
    ] {
        benchmarks.save_latest("GPU-a", vec![make_result("copy", 8, median_us)]);
        assert_eq!(below(&benchmarks), ratio, "{median_us}");
    }
    let uncertain = Interval {
        median_us: 200.0,
        low_us: 100.5,
        high_us: 300.0,
    };
    benchmarks.save_latest(
        "GPU-a",
        vec![Measurement {
            time: uncertain,
            ..make_result("copy", 8, 200.0)
        }],
    );
    assert_eq!(below(&benchmarks), None, "the intervals meet");
    benchmarks.save_baseline("GPU-a", "NVIDIA H200", vec![make_result("triad", 8, 10.0)]);
    benchmarks.save_latest(
        "GPU-a",
        vec![make_result("copy", 8, 200.0), make_result("triad", 8, 40.0)],
    );
    assert_eq!(below(&benchmarks), Some(0.25), "the worst");
    benchmarks.save_latest("GPU-a", vec![make_result("sum", 8, 1e6)]);
    benchmarks.save_latest("GPU-b", vec![make_result("copy", 8, 1e6)]);
    assert_eq!(
        benchmarks.find_gpus_below_baseline().len(),
        1,
        "what has no baseline is not kept"
    );
    benchmarks.save_baseline(
        "GPU-a",
        "NVIDIA H200",
        vec![make_result("copy", 8, 200.0), make_result("triad", 8, 40.0)],
    );
    assert_eq!(below(&benchmarks), None, "the change is intended");
}

#[test]
fn sibling_results_have_same_model_and_workload_size() {
    let mut benchmarks = make_benchmarks(&[("GPU-a", 118.0), ("GPU-b", 100.0)]);
    let siblings = |benchmarks: &Benchmarks, uuid, n| {
        benchmarks.find_siblings(uuid, &make_result("copy", n, 1.0))
    };
    assert_eq!(
        siblings(&benchmarks, "GPU-a", 8),
        Some(Siblings {
            median_us: 100.0,
            count: 1
        })
    );
    assert_eq!(
        (
            siblings(&benchmarks, "GPU-a", 9),
            siblings(&benchmarks, "GPU-c", 8)
        ),
        (None, None)
    );
    assert_eq!(
        benchmarks
            .find_worst_below_siblings("GPU-a")
            .map(|below| below.ratio),
        Some(100.0 / 118.0)
    );
    assert_eq!(benchmarks.find_worst_below_siblings("GPU-b"), None);
    benchmarks.save_baseline("GPU-c", "NVIDIA L4", vec![make_result("copy", 8, 1.0)]);
    assert_eq!(siblings(&benchmarks, "GPU-c", 8), None, "another model");
    benchmarks.save_baseline("GPU-d", "NVIDIA H200", vec![make_result("copy", 8, 120.0)]);
    assert_eq!(
        siblings(&benchmarks, "GPU-a", 8),
        Some(Siblings {
            median_us: 110.0,
            count: 2
        })
    );
    assert_eq!(benchmarks.find_worst_below_siblings("GPU-a"), None);
}

#[test]
fn stored_file_is_private_and_readable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new").join(FILE_NAME);
    assert_eq!(
        read(&path).unwrap(),
        Benchmarks::default(),
        "there need be none"
    );
    update_file(&path, |benchmarks| {
        *benchmarks = make_benchmarks(&[("GPU-a", 100.0)]);
    })
    .unwrap();
    update_file(&path, |benchmarks| {
        benchmarks.save_latest("GPU-a", vec![make_result("copy", 8, 300.0)]);
    })
    .unwrap();
    let again = read(&path).unwrap();
    assert_eq!(
        (
            again.baseline_results("GPU-a").len(),
            again.find_worst_below_baseline("GPU-a").is_some()
        ),
        (1, true)
    );
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn invalid_file_is_refused_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE_NAME);
    update_file(&path, |benchmarks| {
        *benchmarks = make_benchmarks(&[("GPU-a", 100.0)]);
    })
    .unwrap();
    let good = fs::read_to_string(&path).unwrap();
    for (bad, cause) in [
        ("", "EOF"),
        ("[]", "invalid length"),
        (&good[..good.len() - 5], "EOF"),
        (
            "{\"version\":2,\"other\":[]}",
            "the file has format version 2, but this gpumon supports version 1",
        ),
        (
            &good.replace("\"low_us\":99.0", "\"low_us\":-1.0"),
            "the file contains an impossible result for copy",
        ),
        (
            &good.replace("\"copy\"", "\"co\\u001bpy\""),
            "the file contains an impossible result for co",
        ),
        (
            &good.replace("\"low_us\":99.0", "\"low_us\":101.0"),
            "the file contains an impossible result for copy",
        ),
    ] {
        fs::write(&path, bad).unwrap();
        let error = update_file(&path, |_| panic!("nothing is known of it"))
            .unwrap_err()
            .to_string();
        assert!(error.contains(cause), "{bad}: {error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), bad);
    }
    fs::write(&path, " ".repeat((16 << 20) + 1)).unwrap();
    assert!(
        read(&path)
            .unwrap_err()
            .to_string()
            .contains("more than 16777216 bytes")
    );
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(read(&path).unwrap_err().to_string(), "not a regular file");
}

#[test]
fn results_and_gpus_are_limited() {
    let mut benchmarks = Benchmarks::default();
    let many = |from: u64| {
        (from..from + 600)
            .map(|n| make_result("copy", n, 1.0))
            .collect()
    };
    benchmarks.save_baseline("GPU-a", "NVIDIA H200", many(0));
    assert_eq!(
        benchmarks
            .baseline_results("GPU-a")
            .first()
            .map(|result| result.n),
        Some(600 - MAX_RESULTS as u64)
    );
    for gpu in 0..=MAX_GPUS as u64 {
        let newer = Measurement {
            at_ms: 1_800_000_000_000 + gpu,
            ..make_result("copy", 8, 1.0)
        };
        benchmarks.save_baseline(&format!("GPU-{gpu}"), "NVIDIA H200", vec![newer]);
    }
    assert_eq!(
        (
            benchmarks.gpus.len(),
            benchmarks.baseline_results("GPU-a").len()
        ),
        (MAX_GPUS, 0),
        "the oldest is forgotten"
    );
}

#[test]
fn changed_file_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE_NAME);
    let (watched, mut seen) = (BelowBaselines::default(), None);
    watched.update_from_file(&path, &mut seen).unwrap();
    assert!(watched.gpus_by_uuid().is_empty(), "there need be none");
    update_file(&path, |benchmarks| {
        *benchmarks = make_benchmarks(&[("GPU-a", 100.0)]);
        benchmarks.save_latest("GPU-a", vec![make_result("copy", 8, 300.0)]);
    })
    .unwrap();
    watched.update_from_file(&path, &mut seen).unwrap();
    assert_eq!(watched.gpus_by_uuid().keys().collect::<Vec<_>>(), ["GPU-a"]);
    fs::write(&path, "broken").unwrap();
    assert!(watched.update_from_file(&path, &mut seen).is_err());
    assert!(watched.gpus_by_uuid().is_empty());
    watched.update_from_file(&path, &mut seen).unwrap();
    fs::remove_file(&path).unwrap();
    watched.update_from_file(&path, &mut seen).unwrap();
    assert!(watched.gpus_by_uuid().is_empty());
}
