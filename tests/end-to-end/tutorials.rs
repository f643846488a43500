//! `gpumon tutorials` on the CPU, and with a driver that runs kernels on the CPU.

use serde_json::Value;

use crate::support::{
    FakeCuda, assert_refused, gpumon_command, run_json_lines, stderr_text, stdout_text,
};

#[test]
fn all_variants_pass_on_cpu_and_two_gpus() {
    let cuda = FakeCuda::new("devices = 2");
    let (code, lines, said) =
        run_json_lines(cuda.gpumon_command(&["tutorials", "--quick", "--json"]));
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let mut cases: Vec<_> = lines
        .iter()
        .map(|line| line["row"].as_str().unwrap())
        .collect();
    cases.dedup();
    assert_eq!(
        cases,
        [
            "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k1", "k2", "k3", "k4", "k5"
        ]
    );
    for line in &lines {
        match line["found"].as_str().unwrap() {
            "measured" => {
                let outcome = &line["outcome"];
                assert_eq!(
                    (&outcome["verify"]["ok"], &outcome["backend"]),
                    (&true.into(), &line["backend"]),
                    "{line}"
                );
                assert!(outcome["host_time"]["n"].as_u64() >= Some(10), "{line}");
                assert_eq!(
                    outcome["device_time"].is_object(),
                    line["backend"] == "cuda",
                    "{line}"
                );
            }
            "shown" => assert_eq!(line["ok"], true, "{line}"),
            // The catalog has no workload for these cases.
            "skipped" => assert!(
                line["reason"]
                    .as_str()
                    .unwrap()
                    .starts_with("there is no workload"),
                "{line}"
            ),
            found => panic!("{found}: {line}"),
        }
        assert!(
            line["share_of_framework"].is_null(),
            "small sizes are not compared: {line}"
        );
    }
    let shown = |case: &str, at: usize| -> &Value {
        lines
            .iter()
            .filter(|line| line["row"] == case)
            .nth(at)
            .unwrap()
    };
    assert!(
        shown("e", 1)["text"]
            .as_str()
            .unwrap()
            .contains("CUDA_ERROR_OUT_OF_MEMORY caught"),
        "{}",
        shown("e", 1)
    );
    assert!(
        shown("k5", 0)["text"]
            .as_str()
            .unwrap()
            .contains("times as fast"),
        "{}",
        shown("k5", 0)
    );
    assert_eq!(
        shown("b", 0)["outcome"]["n"],
        10,
        "a quick run takes few steps"
    );
    cuda.assert_resources_released();
}

#[test]
fn single_gpu_variants_pass_on_one_gpu() {
    let (code, lines, said) = run_json_lines(FakeCuda::new("").gpumon_command(&[
        "tutorials",
        "k2",
        "k5",
        "--quick",
        "--json",
    ]));
    assert_eq!((code, lines.len()), (Some(0), 5), "{said}");
    let skipped = lines
        .iter()
        .filter(|line| line["found"] == "skipped")
        .collect::<Vec<_>>();
    assert_eq!(skipped.len(), 4, "{lines:?}");
    assert!(
        skipped
            .iter()
            .all(|line| line["reason"].as_str().unwrap().contains("needs 2 GPUs")),
        "{lines:?}"
    );
}

#[test]
fn wrong_variant_is_reported_with_exit_code_1() {
    for (kind, kernel, case, variant) in [
        ("flip", "square_fp64", "c", "kernel alone"),
        ("flip", "op_select", "i", "the same kernels in one graph"),
        ("skip", "matvec", "j", "batched"),
        ("flip", "train_fused", "b", "one kernel for all steps"),
        ("flip", "train_adam", "b", "a graph for each step"),
        ("skip", "matmul_tf32_128x64", "h", "tf32, pinned copies"),
        ("skip", "gram_tiles", "k4", "log on the GPU"),
        ("skip", "gram_tiles", "k4", "each trace to the host"),
        ("flip", "trace", "k4", "one batch"),
        ("flip", "vector_add_fp32", "d", "4096 elements, 32 x 128"),
    ] {
        let fault = format!(
            "[[fault]]\nkind = \"{kind}\"\nafter_kernels = 0\nkernel = \"{kernel}\"\nlasting = true"
        );
        let cuda = FakeCuda::new(&fault);
        let (code, lines, said) = run_json_lines(cuda.gpumon_command(&[
            "tutorials",
            case,
            "--quick",
            "--json",
            "--backend",
            "cuda",
        ]));
        assert_eq!(code, Some(1), "{kernel}: {said}");
        let line = lines
            .iter()
            .find(|line| line["variant"] == variant)
            .unwrap();
        assert_eq!(line["outcome"]["verify"]["ok"], false, "{kernel}: {line}");
        let text = stdout_text(
            &cuda
                .gpumon_command(&["tutorials", case, "--quick", "--backend", "cuda"])
                .output()
                .unwrap(),
        );
        assert!(text.contains("mismatch: "), "{kernel}: {text}");
    }
}

#[test]
fn cpu_variants_run_without_gpu() {
    let run = |arguments: &[&str]| {
        gpumon_command(arguments)
            .env("GPUMON_LIBCUDA", "/nowhere/libcuda.so.1")
            .output()
            .unwrap()
    };
    let output = run(&["tutorials", "c", "--quick"]);
    let text = stdout_text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("CPU one thread") && !text.contains("   GPU "),
        "{text}"
    );
    assert!(
        text.starts_with("Quick run: ") && text.matches("host us").count() == 1,
        "{text}"
    );
    assert_eq!(
        text.matches("  10007  ").count(),
        2,
        "the size of the run is shown: {text}"
    );
    assert!(
        text.trim_end()
            .ends_with("is slower than a CPU that already has the data."),
        "{text}"
    );
    assert!(
        stderr_text(&output).contains("/nowhere/libcuda.so.1"),
        "{}",
        stderr_text(&output)
    );
    assert_eq!(
        run(&["tutorials", "c", "--backend", "cuda"]).status.code(),
        Some(3)
    );
}

#[test]
fn unknown_cases_are_refused_with_available_cases() {
    for (case, words) in [
        ("k6", "did you mean 'k"),
        ("frobnicate", "use one of a, b, c"),
    ] {
        assert_refused(gpumon_command(&["tutorials", case]), 2, words);
    }
}

#[test]
fn lost_gpu_ends_tutorials() {
    let cuda = FakeCuda::new("[[fault]]\nkind = \"lost\"\nafter_kernels = 40");
    let (code, lines, _) =
        run_json_lines(cuda.gpumon_command(&["tutorials", "d", "i", "--quick", "--json"]));
    let last = lines.last().unwrap();
    assert_eq!(
        (code, &last["found"]),
        (Some(1), &"failed".into()),
        "{last}"
    );
    assert!(
        last["error"]
            .as_str()
            .unwrap()
            .contains("CUDA_ERROR_DEVICE_UNAVAILABLE"),
        "{last}"
    );
}

/// The devices of the fake driver have the name H200.
#[test]
fn framework_time_is_compared_only_on_same_device() {
    let text = |name: &str| {
        let cuda = FakeCuda::new(&format!("name = {name:?}"));
        stdout_text(
            &cuda
                .gpumon_command(&["tutorials", "d", "--backend", "cuda"])
                .output()
                .unwrap(),
        )
    };
    let same = text("NVIDIA H200");
    assert!(
        same.contains("er than Numba (30.0 us on an H200, measured 2026-"),
        "{same}"
    );
    let other = text("NVIDIA L40S");
    assert!(
        other.contains("verified  Numba: 30.0 us on an H200, measured 2026-")
            && !other.contains("er than"),
        "{other}"
    );
}
