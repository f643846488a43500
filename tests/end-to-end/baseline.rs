//! Baselines of GPUs: `gpumon bench --save-baseline` and `--baseline`, and the warnings for a GPU
//! that is below its baseline.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use crate::support::{
    FakeCuda, FakeNvml, Server, assert_refused, assert_refused_with, run_json_lines, stderr_text,
    stdout_text, wait_for_condition,
};

/// Returns `gpumon bench` with these arguments and this data directory.
fn bench_command(cuda: &FakeCuda, folder: &Path, words: &str) -> Command {
    let mut command =
        cuda.gpumon_command(&["bench", "--quick", "--data-dir", folder.to_str().unwrap()]);
    command.args(words.split_whitespace());
    command
}

fn read_stored_baselines(folder: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join("benchmarks.json")).unwrap()).unwrap()
}

/// Sets the time of every stored baseline, because real times depend on the load of this machine.
fn set_stored_times(folder: &Path, median_us: f64) {
    let mut content = read_stored_baselines(folder);
    for gpu in content["gpus"].as_object_mut().unwrap().values_mut() {
        for baseline in gpu["baseline"].as_array_mut().unwrap() {
            baseline["time"] =
                json!({ "median_us": median_us, "low_us": median_us, "high_us": median_us });
        }
    }
    fs::write(folder.join("benchmarks.json"), content.to_string()).unwrap();
}

#[test]
fn gpu_is_compared_with_baseline_and_sibling_gpus() {
    let cuda = FakeCuda::new("devices = 2\nkernel_ms = 1");
    let data = cuda.folder().join("new").join("data");
    for (words, said) in [
        (
            "copy scale --save-baseline --size 1000 --device all",
            "stored 2 results as the baseline of GPU 1: ",
        ),
        (
            "copy --dtype fp64 --save-baseline --size 3000",
            "stored 1 result as the baseline of GPU 0: ",
        ),
    ] {
        let output = bench_command(&cuda, &data, words).output().unwrap();
        assert!(
            output.status.success() && stderr_text(&output).contains(said),
            "{}",
            stderr_text(&output)
        );
    }
    set_stored_times(&data, 100.0);
    let (code, lines, said) = run_json_lines(bench_command(
        &cuda,
        &data,
        "--baseline --json --device all",
    ));
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let works: Vec<_> = lines
        .iter()
        .map(|line| {
            (
                &line["device"]["index"],
                &line["id"],
                &line["dtype"],
                &line["n"],
            )
        })
        .collect();
    let work =
        |gpu: u32, id: &str, dtype: &str, n: u32| [gpu.into(), id.into(), dtype.into(), n.into()];
    let expected: [[Value; 4]; 5] = [
        work(0, "copy", "fp32", 1000),
        work(0, "scale", "fp32", 1000),
        work(0, "copy", "fp64", 3000),
        work(1, "copy", "fp32", 1000),
        work(1, "scale", "fp32", 1000),
    ];
    assert!(
        works.iter().eq(expected
            .iter()
            .map(|[gpu, id, dtype, n]| (gpu, id, dtype, n))
            .collect::<Vec<_>>()
            .iter()),
        "{works:?}"
    );
    for line in &lines {
        let compared = &line["compared"];
        let ratio = |key: &str| compared[key].as_f64();
        assert!(
            ratio("ratio") < Some(0.5) && compared["is_slower"] == true,
            "{line}"
        );
        // The other GPU has a stored result only for fp32, so the comparison with it is only
        // possible for this type.
        assert!(ratio("siblings").is_none_or(|ratio| ratio < 0.5), "{line}");
        assert_eq!(
            ratio("siblings").is_some(),
            line["dtype"] == "fp32",
            "{line}"
        );
        assert!(
            ratio("before_us") == Some(100.0) && compared["before_ms"].as_u64().is_some(),
            "{line}"
        );
    }

    let output = bench_command(
        &cuda,
        &data,
        "copy --dtype fp32 --baseline --fail-below 0.9",
    )
    .output()
    .unwrap();
    let text = stdout_text(&output);
    assert_eq!(output.status.code(), Some(4), "{text}");
    for words in [
        " vs base siblings ",
        "Below 0.9 times the baseline speed:",
        ": copy (fp32) takes ",
        "--save-baseline",
        "Below 90.0 %",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(text.matches(" verified").count(), 1, "{text}");
    set_stored_times(&data, 1e9);
    let output = bench_command(&cuda, &data, "--baseline --fail-below 0.9")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stdout_text(&output));
    assert!(
        !stdout_text(&output).contains("Below"),
        "{}",
        stdout_text(&output)
    );
}

#[test]
fn unverified_or_unrelated_result_does_not_become_baseline() {
    let fault = "[[fault]]\nkind = \"flip\"\nafter_kernels = 0\nkernel = \"stream_triad_fp32\"";
    let cuda = FakeCuda::new(&format!("devices = 2\n{fault}"));
    let data = cuda.folder().join("data");
    let output = bench_command(
        &cuda,
        &data,
        "copy triad peer --size 100003 --backend both --save-baseline",
    )
    .output()
    .unwrap();
    let said = stderr_text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for words in [
        "not stored (not verified): triad\n",
        "not stored (ran between two GPUs): peer to 1\n",
        "not stored (ran on the CPU): copy, triad",
        "stored 1 result as the baseline of GPU 0: ",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let gpus = read_stored_baselines(&data)["gpus"]
        .as_object()
        .unwrap()
        .clone();
    let [gpu] = &gpus.values().collect::<Vec<_>>()[..] else {
        panic!("{gpus:?}")
    };
    assert_eq!(
        (
            &gpu["baseline"][0]["workload"],
            gpu["baseline"].as_array().unwrap().len()
        ),
        (&"copy".into(), 1)
    );
    for (words, reason) in [
        (
            "copy --backend cpu --size 1000",
            "not stored (ran on the CPU): copy",
        ),
        (
            "launch-latency",
            "not stored (limited by driver and CPU): launch-latency",
        ),
    ] {
        let output = bench_command(&cuda, &data, &format!("{words} --save-baseline"))
            .output()
            .unwrap();
        let said = stderr_text(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(reason), "{said}");
        assert!(
            said.ends_with("no baseline was stored: the run has no verified GPU result\n"),
            "{said}"
        );
    }
}

#[test]
fn invalid_input_is_refused_with_cause_and_remedy() {
    let cuda = FakeCuda::new("devices = 2");
    let data = cuda.folder().join("data");
    assert_refused_with(
        bench_command(&cuda, &data, "--baseline"),
        2,
        &["no baseline is stored in ", "--save-baseline"],
    );
    assert!(!data.exists(), "a comparison must not create the folder");
    let save = bench_command(&cuda, &data, "copy --save-baseline --size 1000")
        .output()
        .unwrap();
    assert!(save.status.success(), "{}", stderr_text(&save));
    for (words, code, said) in [
        ("traid --baseline", 2, "no baseline of 'traid' is stored"),
        (
            "copy --dtype fp64 --baseline",
            2,
            "no baseline in fp64 is stored",
        ),
        (
            "--baseline --device 1",
            2,
            "no matching baseline of GPU 1: ",
        ),
        ("--baseline --device 7", 3, "no GPU '7'"),
        ("--baseline --size 5", 2, "cannot be used with '--size"),
        (
            "--baseline --backend cpu",
            2,
            "cannot be used with '--backend",
        ),
        ("--baseline --save-baseline", 2, "cannot be used with"),
        (
            "--save-baseline --engine cublas",
            2,
            "cannot be used with '--engine",
        ),
        ("--save-baseline --pairs", 2, "cannot be used with '--pairs"),
        (
            "--baseline --compare x",
            2,
            "cannot be used with '--compare",
        ),
    ] {
        assert_refused(bench_command(&cuda, &data, words), code, said);
    }
    assert_refused(
        bench_command(&cuda, Path::new("none"), "--baseline"),
        2,
        "give one with --data-dir",
    );
    // The GPU without a baseline is reported, and the other one is measured.
    let (code, lines, said) = run_json_lines(bench_command(
        &cuda,
        &data,
        "--baseline --device all --json",
    ));
    assert_eq!((code, lines.len()), (Some(0), 1), "{said}");
    assert!(
        said.contains("no matching baseline of GPU 1: ")
            && said.contains("--save-baseline --device 1"),
        "{said}"
    );
    for bad in [
        "",
        "{\"version\":1,\"gpus\":{\"GPU-",
        "{\"version\":2,\"gpus\":[]}",
    ] {
        fs::write(data.join("benchmarks.json"), bad).unwrap();
        for words in ["copy --save-baseline", "--baseline"] {
            let cure = [
                "cannot read ",
                "benchmarks.json: ",
                "--data-dir, or move the file away",
            ];
            assert_refused_with(bench_command(&cuda, &data, words), 2, &cure);
        }
        assert_eq!(
            fs::read_to_string(data.join("benchmarks.json")).unwrap(),
            bad,
            "the invalid file is kept"
        );
    }
    let file = cuda.folder().join("file");
    fs::write(&file, "").unwrap();
    assert_refused(
        bench_command(&cuda, &file, "copy --save-baseline"),
        2,
        "file/benchmarks.json: Not a directory",
    );
}

#[test]
fn doctor_and_server_report_gpu_below_baseline() {
    let nvml = FakeNvml::new(
        "[[gpu]]\nindex = 0\nprofile = \"idle\"\n[[gpu]]\nindex = 1\nprofile = \"idle\"",
    );
    let inventory = nvml.read_json();
    let uuids: Vec<_> = inventory["inventory"]["gpus"]
        .as_array()
        .unwrap()
        .iter()
        .map(|gpu| gpu["uuid"].clone())
        .collect();
    let cuda = FakeCuda::new(&format!(
        "devices = 2\nuuids = {}\nkernel_ms = 1",
        Value::from(uuids)
    ));
    let data = nvml.path("data");
    let run = |words: &str| {
        let output = bench_command(&cuda, &data, words).output().unwrap();
        assert!(output.status.success(), "{}", stderr_text(&output));
    };
    let folder = data.to_str().unwrap();
    // `warnings` returns the warnings of `doctor`. `conditions` returns the conditions
    // `below_baseline` of all GPUs, as the server reports them.
    let warnings = || {
        let output = nvml
            .gpumon_command(&["doctor", "--json", "--data-dir", folder])
            .output()
            .unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let warnings = report["checks"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|found| found["verdict"] == "warning");
        warnings
            .map(|found| format!("{}: {}", found["check"], found["finding"]))
            .collect::<Vec<_>>()
    };
    let conditions = || {
        let mut server =
            Server::start_with_fake(&nvml, &["--interval-ms", "100", "--data-dir", folder]);
        let mut gpus = Value::Null;
        wait_for_condition("two samples have arrived", || {
            let snapshot = server.get("/api/v1/snapshot").json();
            gpus = snapshot["sample"]["gpus"].clone();
            snapshot["sample"]["seq"].as_u64() >= Some(2)
        });
        server.terminate();
        let of_all = gpus
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|gpu| gpu["conditions"].as_array().unwrap().clone());
        of_all
            .filter(|condition| condition["condition"] == "below_baseline")
            .collect::<Vec<_>>()
    };
    assert_eq!(
        warnings(),
        [""; 0],
        "there is no warning without a baseline"
    );
    run("copy --save-baseline --size 1000 --device all");
    set_stored_times(&data, 10.0);
    assert_eq!((warnings().len(), conditions()), (0, Vec::new()));

    run("--baseline");
    let reported = warnings();
    assert!(
        reported.len() == 1
            && reported[0].contains("gpu 0")
            && reported[0].contains("slower than its baseline: copy (fp32)"),
        "{reported:?}"
    );
    let [condition] = &conditions()[..] else {
        panic!("exactly one GPU must have a condition")
    };
    assert_eq!(
        (&condition["severity"], &condition["workload"]),
        (&"warning".into(), &"copy".into())
    );
    let us = |key: &str| condition[key].as_f64().unwrap();
    assert!(
        us("median_us") > 1_000.0 && us("baseline_us") < 11.0,
        "{condition}"
    );

    run("copy --save-baseline --size 1000");
    let reported = warnings();
    assert!(
        reported.len() == 1 && reported[0].contains("slower than GPUs of the same model"),
        "{reported:?}"
    );
    assert_eq!(
        conditions(),
        Vec::<Value>::new(),
        "there is no condition after the change was saved as the baseline"
    );

    fs::write(data.join("benchmarks.json"), "broken").unwrap();
    assert!(
        warnings()[0].contains("benchmarks.json cannot be read"),
        "{:?}",
        warnings()
    );
    assert_eq!(conditions(), Vec::<Value>::new());
}
