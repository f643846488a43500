//! `gpumon info`: GPUs and CPU, and a specific error for each invalid driver.

use std::{fs, process::Command};

use crate::support::{Fake, FakeCuda, gpumon, lines_of, stderr, stdout};

#[test]
fn every_gpu_is_told_with_what_it_can_do_at_best() {
    let cuda = FakeCuda::new("devices = 2");
    let (code, lines, said) = lines_of(cuda.gpumon(&["info", "--json", "--nvml-lib", "/nowhere"]));
    assert_eq!((code, said.as_str(), lines.len()), (Some(0), "", 1));
    let gpus = lines[0]["gpus"].as_array().unwrap();
    assert_eq!((gpus.len(), &lines[0]["cuda"]), (2, &"13.0".into()));
    let gpu = &gpus[1];
    assert_eq!(
        (&gpu["index"], &gpu["compute_capability"]),
        (&1.into(), &"9.0".into())
    );
    // The bus is 768 bytes wide, with two transfers per clock at 3.201 GHz.
    assert!(
        (gpu["memory_bytes_per_second"].as_f64().unwrap() - 768.0 * 3.201e9 * 2.0).abs() < 1.0,
        "{gpu}"
    );
    let bf16 = gpu["peaks"]["by_type"]
        .as_array()
        .unwrap()
        .iter()
        .find(|peak| peak["dtype"] == "bf16")
        .unwrap();
    assert!(
        (bf16["operations_per_second"].as_f64().unwrap() / 1e12 - 989.4).abs() < 0.1,
        "{bf16}"
    );
    assert_eq!(gpu["links"]["pcie_generation"]["absent"], "unknown");
    assert!(
        lines[0]["cpu"]["threads"].as_u64() > Some(0),
        "{}",
        lines[0]
    );
    assert_eq!(
        cuda.counters()["contexts"].as_i64().unwrap_or(0),
        0,
        "no GPU was started for it"
    );

    let text = stdout(
        &cuda
            .gpumon(&["info", "--nvml-lib", "/nowhere"])
            .output()
            .unwrap(),
    );
    for words in [
        "GPU 1: Fake NVIDIA H200",
        "4.92 TB/s",
        "bf16 989",
        "data sheet",
        "PCIe unknown",
        "CPU: ",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// The two libraries number GPUs differently, so GPUs are matched by UUID.
#[test]
fn links_are_those_of_the_gpu_with_the_same_uuid() {
    let nvml = Fake::new("[[gpu]]\nindex = 1\nnvlinks = 18\nnvlinks_down = [3]");
    let told = nvml.json();
    let uuid = told["inventory"]["gpus"][1]["uuid"].as_str().unwrap();
    let cuda = FakeCuda::new(&format!("uuids = [\"{uuid}\"]"));
    let (code, lines, said) = lines_of(cuda.gpumon_with(&nvml, &["info", "--json"]));
    assert_eq!(code, Some(0), "{said}");
    let (board, gpu) = (&told["inventory"]["gpus"][1]["board"], &lines[0]["gpus"][0]);
    let linked = &gpu["links"];
    assert_eq!(gpu["uuid"], uuid);
    assert!(linked["pcie_generation"].is_u64(), "{linked}");
    assert_eq!(
        (&linked["pcie_generation"], &linked["pcie_width"]),
        (&board["pcie_max_generation"], &board["pcie_max_width"])
    );
    let rate = linked["nvlink_bytes_per_second"].as_f64().unwrap();
    assert!(linked["nvlinks"] == 17 && rate > 17e9, "{linked}");
}

/// A function that returns `gpumon` with these arguments and a certain library.
type Over = dyn Fn(&[&str]) -> Command;

/// Each invalid library has its own error and remedy with every command, and nothing panics.
#[test]
fn bad_libraries_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("libcuda.so.1");
    fs::write(&text, "no library").unwrap();
    let named = |path: &str| {
        let path = path.to_owned();
        move |arguments: &[&str]| {
            let mut command = gpumon(arguments);
            command.env("GPUMON_LIBCUDA", &path);
            command
        }
    };
    let over = |scenario: &str| {
        let cuda = FakeCuda::new(scenario);
        move |arguments: &[&str]| cuda.gpumon(arguments)
    };
    let nvml = fake_nvml::install(folder.path(), &[]);
    let bad: [(&str, Box<Over>, &[&str]); 6] = [
        (
            "missing",
            Box::new(named("/nowhere/libcuda.so.1")),
            &["cannot load", "/nowhere", "or unset GPUMON_LIBCUDA"],
        ),
        (
            "no library",
            Box::new(named(text.to_str().unwrap())),
            &["cannot load", "GPUMON_LIBCUDA"],
        ),
        (
            "stub",
            Box::new(over("stub = true")),
            &["is the stub", "LD_LIBRARY_PATH"],
        ),
        (
            "wrong",
            Box::new(named(nvml.to_str().unwrap())),
            &["is not the CUDA driver", "cuDriverGetVersion"],
        ),
        (
            "too old",
            Box::new(over("version = 10020")),
            &["CUDA 10.2", "11.0", "update"],
        ),
        (
            "no device",
            Box::new(over("devices = 0")),
            &["sees no GPU", "CUDA_VISIBLE_DEVICES"],
        ),
    ];
    for (name, command, words) in bad {
        for (arguments, code) in [
            (&["info"][..], 3),
            (&["bench", "copy", "--backend", "cuda"], 3),
            (&["bench", "launch-latency"], 3),
            (&["bench", "copy", "--quick", "--size", "1000"], 0),
            (
                &[
                    "bench",
                    "copy",
                    "--quick",
                    "--size",
                    "1000",
                    "--backend",
                    "both",
                ],
                0,
            ),
        ] {
            let output = command(arguments).output().unwrap();
            let said = stderr(&output);
            assert_eq!(
                output.status.code(),
                Some(code),
                "{name}, {arguments:?}: {said}"
            );
            assert_eq!(said.lines().count(), 1, "{name}, {arguments:?}: {said}");
            for word in words {
                assert!(
                    said.contains(word),
                    "{name}, {arguments:?}: no {word} in {said}"
                );
            }
            let on_cpu = stdout(&output).contains("CPU: ");
            assert_eq!(
                on_cpu,
                code == 0 || arguments == ["info"],
                "{name}, {arguments:?}: {}",
                stdout(&output)
            );
        }
    }
}
