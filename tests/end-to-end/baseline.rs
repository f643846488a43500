//! Baselines of GPUs: `gpumon bench --save-baseline` and `--baseline`, and who tells a GPU that is below its own.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

use crate::support::{Fake, FakeCuda, Server, eventually, lines_of, refused, refused_with, stderr, stdout};

/// Two GPUs whose kernels take so many milliseconds each.
fn gpus(kernel_ms: u32) -> FakeCuda {
    FakeCuda::new(&format!("devices = 2\nkernel_ms = {kernel_ms}"))
}

/// `gpumon bench` with what these words say, in this data directory.
fn bench(cuda: &FakeCuda, folder: &Path, words: &str) -> Command {
    let mut command = cuda.gpumon(&["bench", "--quick", "--data-dir", folder.to_str().unwrap()]);
    command.args(words.split_whitespace());
    command
}

fn stored(folder: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join("benchmarks.json")).unwrap()).unwrap()
}

#[test]
fn a_gpu_is_held_against_its_baseline_and_its_siblings_in_exactly_the_same_work() {
    let (usual, slow) = (gpus(2), gpus(8));
    let data = usual.folder().join("new").join("data");
    for (words, said) in [
        ("copy scale --save-baseline --size 1000 --device all", "stored 2 results as the baseline of GPU 1: "),
        ("copy --dtype fp64 --save-baseline --size 3000", "stored 1 result as the baseline of GPU 0: "),
    ] {
        let output = bench(&usual, &data, words).output().unwrap();
        assert!(output.status.success() && stderr(&output).contains(said), "{}", stderr(&output));
    }
    let (code, lines, said) = lines_of(bench(&slow, &data, "--baseline --json --device all"));
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let works: Vec<_> =
        lines.iter().map(|line| (&line["device"]["index"], &line["id"], &line["dtype"], &line["n"])).collect();
    let work = |gpu: u32, id: &str, dtype: &str, n: u32| [gpu.into(), id.into(), dtype.into(), n.into()];
    let expected: [[Value; 4]; 5] = [
        work(0, "copy", "fp32", 1000),
        work(0, "scale", "fp32", 1000),
        work(0, "copy", "fp64", 3000),
        work(1, "copy", "fp32", 1000),
        work(1, "scale", "fp32", 1000),
    ];
    assert!(
        works.iter().eq(expected.iter().map(|[gpu, id, dtype, n]| (gpu, id, dtype, n)).collect::<Vec<_>>().iter()),
        "{works:?}"
    );
    for line in &lines {
        let compared = &line["compared"];
        let ratio = |key: &str| compared[key].as_f64();
        assert!(ratio("ratio") < Some(0.5) && compared["is_slower"] == true, "{line}");
        // Another GPU has no such result.
        assert_eq!(ratio("siblings").is_none_or(|ratio| ratio < 0.5), true, "{line}");
        assert_eq!(ratio("siblings").is_some(), line["dtype"] == "fp32", "{line}");
        assert!(ratio("before_us") > Some(1_900.0) && compared["before_ms"].as_u64().is_some(), "{line}");
    }

    let output = bench(&slow, &data, "copy --dtype fp32 --baseline --fail-below 0.9").output().unwrap();
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(4), "{text}");
    for words in
        [" vs base siblings ", "Below 0.9 of the baseline:", ": copy (fp32) takes ", "--save-baseline", "Below 90.0 %"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(text.matches(" verified").count(), 1, "{text}");
    let output = bench(&usual, &data, "--baseline --fail-below 0.5").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(!stdout(&output).contains("Below"), "{}", stdout(&output));
}

#[test]
fn what_is_not_verified_or_says_nothing_about_the_gpu_is_not_stored() {
    let fault = "[[fault]]\nkind = \"flip\"\nafter_kernels = 1\nkernel = \"stream_triad_fp32\"";
    let cuda = FakeCuda::new(&format!("devices = 2\n{fault}"));
    let data = cuda.folder().join("data");
    let output = bench(&cuda, &data, "copy triad peer launch-latency --backend both --save-baseline").output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for words in [
        "not stored, because not verified: triad\n",
        "not stored, because they run between two GPUs: peer to 1\n",
        "not stored, because they measure driver and CPU: launch-latency\n",
        "not stored, because the CPU has no baseline: copy, triad",
        "stored 1 result as the baseline of GPU 0: ",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let gpus = stored(&data)["gpus"].as_object().unwrap().clone();
    let [gpu] = &gpus.values().collect::<Vec<_>>()[..] else { panic!("{gpus:?}") };
    assert_eq!((&gpu["baseline"][0]["workload"], gpu["baseline"].as_array().unwrap().len()), (&"copy".into(), 1));
    refused_only_last(&bench(&cuda, &data, "copy --backend cpu --save-baseline --size 1000").output().unwrap());
}

/// What has run has printed its results, and what is not stored is said before.
fn refused_only_last(output: &std::process::Output) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.ends_with("no baseline was stored: there is no verified result of a GPU\n"), "{said}");
}

#[test]
fn every_bad_input_has_its_cause_and_its_cure() {
    let cuda = gpus(0);
    let data = cuda.folder().join("data");
    refused_with(bench(&cuda, &data, "--baseline"), 2, &["no baseline is stored in ", "--save-baseline"]);
    assert!(!data.exists(), "nothing is made for a question");
    let save = bench(&cuda, &data, "copy --save-baseline --size 1000").output().unwrap();
    assert!(save.status.success(), "{}", stderr(&save));
    for (words, code, said) in [
        ("traid --baseline", 2, "no baseline of 'traid' is stored"),
        ("copy --dtype fp64 --baseline", 2, "no baseline in fp64 is stored"),
        ("--baseline --device 1", 2, "no such baseline of GPU 1: "),
        ("--baseline --device 7", 2, "no GPU '7'"),
        ("--baseline --size 5", 2, "cannot be used with '--size"),
        ("--baseline --backend cpu", 2, "cannot be used with '--backend"),
        ("--baseline --save-baseline", 2, "cannot be used with"),
        ("--save-baseline --engine cublas", 2, "cannot be used with '--engine"),
        ("--save-baseline --pairs", 2, "cannot be used with '--pairs"),
        ("--baseline --compare x", 2, "cannot be used with '--compare"),
        ("--baseline --data-dir none", 2, "name one with --data-dir"),
    ] {
        refused(bench(&cuda, &data, words), code, said);
    }
    // One of two has none: the other is measured nevertheless.
    let (code, lines, said) = lines_of(bench(&cuda, &data, "--baseline --device all --json"));
    assert_eq!((code, lines.len()), (Some(0), 1), "{said}");
    assert!(said.contains("no such baseline of GPU 1: ") && said.contains("--save-baseline --device 1"), "{said}");
    for bad in ["", "{\"version\":1,\"gpus\":{\"GPU-", "{\"version\":2,\"gpus\":[]}"] {
        fs::write(data.join("benchmarks.json"), bad).unwrap();
        for words in ["copy --save-baseline", "--baseline"] {
            let cure = ["cannot read ", "benchmarks.json: ", "--data-dir, or move the file away"];
            refused_with(bench(&cuda, &data, words), 2, &cure);
        }
        assert_eq!(fs::read_to_string(data.join("benchmarks.json")).unwrap(), bad, "nothing is lost");
    }
    let file = cuda.folder().join("file");
    fs::write(&file, "").unwrap();
    refused(bench(&cuda, &file, "copy --save-baseline"), 2, "file/benchmarks.json: Not a directory");
}

#[test]
fn a_gpu_below_its_baseline_is_told_by_doctor_and_by_the_server_until_the_change_is_intended() {
    let nvml = Fake::new("[[gpu]]\nindex = 0\nprofile = \"idle\"\n[[gpu]]\nindex = 1\nprofile = \"idle\"");
    let inventory = nvml.json();
    let uuids: Vec<_> =
        inventory["inventory"]["gpus"].as_array().unwrap().iter().map(|gpu| gpu["uuid"].clone()).collect();
    let over = |kernel_ms: u32| {
        FakeCuda::new(&format!("devices = 2\nuuids = {}\nkernel_ms = {kernel_ms}", Value::from(uuids.clone())))
    };
    let (usual, slow) = (over(2), over(8));
    let data = nvml.path("data");
    let run = |cuda: &FakeCuda, words: &str| {
        let output = bench(cuda, &data, words).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    };
    let folder = data.to_str().unwrap();
    // What `doctor` warns of, and what the server says of the first GPU.
    let warnings = || {
        let output = nvml.gpumon(&["doctor", "--json", "--data-dir", folder]).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let warnings = report["checks"].as_array().unwrap().iter().filter(|found| found["verdict"] == "warning");
        warnings.map(|found| format!("{}: {}", found["check"], found["finding"])).collect::<Vec<_>>()
    };
    let conditions = || {
        let mut server = Server::over(&nvml, &["--interval-ms", "100", "--data-dir", folder]);
        let mut gpus = Value::Null;
        eventually("two samples have come", || {
            let snapshot = server.get("/api/v1/snapshot").json();
            gpus = snapshot["sample"]["gpus"].clone();
            snapshot["sample"]["seq"].as_u64() >= Some(2)
        });
        server.terminate();
        let of_all = gpus.as_array().unwrap().iter().flat_map(|gpu| gpu["conditions"].as_array().unwrap().clone());
        of_all.filter(|condition| condition["condition"] == "below_baseline").collect::<Vec<_>>()
    };
    assert_eq!(warnings(), [""; 0], "no baseline is no finding");
    run(&usual, "copy --save-baseline --size 1000 --device all");
    assert_eq!((warnings().len(), conditions()), (0, Vec::new()));

    run(&slow, "--baseline");
    let told = warnings();
    assert!(
        told.len() == 1 && told[0].contains("gpu 0") && told[0].contains("below its baseline: copy (fp32)"),
        "{told:?}"
    );
    let [condition] = &conditions()[..] else { panic!("of one GPU") };
    assert_eq!((&condition["severity"], &condition["workload"]), (&"warning".into(), &"copy".into()));
    let us = |key: &str| condition[key].as_f64().unwrap();
    assert!(us("median_us") > 2.0 * us("baseline_us"), "{condition}");

    run(&slow, "copy --save-baseline --size 1000");
    let told = warnings();
    assert!(told.len() == 1 && told[0].contains("slower than GPUs of the same model"), "{told:?}");
    assert_eq!(conditions(), Vec::<Value>::new(), "the change is intended");

    fs::write(data.join("benchmarks.json"), "broken").unwrap();
    assert!(warnings()[0].contains("benchmarks.json cannot be read"), "{:?}", warnings());
    assert_eq!(conditions(), Vec::<Value>::new());
}
