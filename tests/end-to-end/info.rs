//! `gpumon info` shows GPUs and the CPU. For a driver that cannot be used, it shows a different
//! error for each cause.

use std::{fs, process::Command};

use crate::support::{
    FakeCuda, FakeNvml, gpumon_command, run_json_lines, stderr_text, stdout_text,
};

#[test]
fn every_gpu_is_listed_with_peak_performance() {
    let cuda = FakeCuda::new("devices = 2");
    let (code, lines, said) =
        run_json_lines(cuda.gpumon_command(&["info", "--json", "--nvml-lib", "/nowhere"]));
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
        cuda.read_counters()["contexts"].as_i64().unwrap_or(0),
        0,
        "no CUDA context may be created"
    );

    let text = stdout_text(
        &cuda
            .gpumon_command(&["info", "--nvml-lib", "/nowhere"])
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
fn links_belong_to_gpu_with_same_uuid() {
    let nvml = FakeNvml::new("[[gpu]]\nindex = 1\nnvlinks = 18\nnvlinks_down = [3]");
    let reported = nvml.read_json();
    let uuid = reported["inventory"]["gpus"][1]["uuid"].as_str().unwrap();
    let cuda = FakeCuda::new(&format!("uuids = [\"{uuid}\"]"));
    let (code, lines, said) = run_json_lines(cuda.gpumon_command_with(&nvml, &["info", "--json"]));
    assert_eq!(code, Some(0), "{said}");
    let (board, gpu) = (
        &reported["inventory"]["gpus"][1]["board"],
        &lines[0]["gpus"][0],
    );
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

/// A function that takes arguments and returns the `gpumon` command with these arguments and a
/// certain library.
type CommandBuilder = dyn Fn(&[&str]) -> Command;

/// Each invalid library has its own error and remedy with every command, and nothing panics.
#[test]
fn invalid_libraries_have_different_errors() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("libcuda.so.1");
    fs::write(&text, "no library").unwrap();
    let named = |path: &str| {
        let path = path.to_owned();
        move |arguments: &[&str]| {
            let mut command = gpumon_command(arguments);
            command.env("GPUMON_LIBCUDA", &path);
            command
        }
    };
    let over = |scenario: &str| {
        let cuda = FakeCuda::new(scenario);
        move |arguments: &[&str]| cuda.gpumon_command(arguments)
    };
    let nvml = fake_nvml::install(folder.path(), &[]);
    let bad: [(&str, Box<CommandBuilder>, &[&str]); 6] = [
        (
            "missing",
            Box::new(named("/nowhere/libcuda.so.1")),
            &[
                "cannot load",
                "/nowhere",
                "set GPUMON_LIBCUDA",
                "or unset it",
            ],
        ),
        (
            "no library",
            Box::new(named(text.to_str().unwrap())),
            &["cannot load", "GPUMON_LIBCUDA"],
        ),
        (
            "stub",
            Box::new(over("stub = true")),
            &["is a stub library", "LD_LIBRARY_PATH"],
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
            &["finds no GPU", "CUDA_VISIBLE_DEVICES"],
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
            let said = stderr_text(&output);
            assert_eq!(
                output.status.code(),
                Some(code),
                "{name}, {arguments:?}: {said}"
            );
            assert_eq!(said.lines().count(), 1, "{name}, {arguments:?}: {said}");
            for word in words {
                assert!(
                    said.contains(word),
                    "{name}, {arguments:?}: {word:?} is missing in {said}"
                );
            }
            let on_cpu = stdout_text(&output).contains("CPU: ");
            assert_eq!(
                on_cpu,
                code == 0 || arguments == ["info"],
                "{name}, {arguments:?}: {}",
                stdout_text(&output)
            );
        }
    }
}
