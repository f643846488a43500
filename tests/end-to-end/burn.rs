//! `gpumon burn` with a driver that runs kernels on the CPU. It ends on time and detects every
//! error.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    time::Instant,
};

use serde_json::Value;

use crate::support::{
    FakeCuda, assert_refused, gpumon_command, run_json_lines, send_signal, start_command,
    stderr_text, stdout_text, wait_for_condition,
};

/// A device with little memory, so that the matrices are small. `SMALL_BURN_OPTIONS` contains the
/// options for a test on this device.
const SMALL_DEVICE: &str = "memory_mib = 600";
const SMALL_BURN_OPTIONS: [&str; 4] = ["--mem", "0.5%", "--time", "1s"];
/// On this device, a product has this number of elements.
const PRODUCT_ELEMENTS: u64 = 256 * 256;
/// The number of products that are computed to measure their duration, before any result is
/// checked.
const TIMED_PRODUCTS: u64 = 2;
/// The options for products of 32-bit numbers. Besides the two factors and the reference,
/// `FP32_PRODUCTS` products fit into the memory.
const FP32_OPTIONS: [&str; 2] = ["--dtype", "fp32"];
const FP32_PRODUCTS: u64 = 8;
const FP32_KERNEL: &str = "matmul_fp32_128x64";

fn run_burn(scenario: &str, arguments: &[&str]) -> (FakeCuda, Option<i32>, Vec<Value>, String) {
    let cuda = FakeCuda::new(&format!("{SMALL_DEVICE}\n{scenario}"));
    let (code, lines, said) = run_json_lines(
        cuda.gpumon_command(&[&["burn", "--json"], &SMALL_BURN_OPTIONS[..], arguments].concat()),
    );
    (cuda, code, lines, said)
}

fn make_kernel_fault(kind: &str, after: u64, kernel: &str) -> String {
    format!("[[fault]]\nkind = \"{kind}\"\nafter_kernels = {after}\nkernel = \"{kernel}\"")
}

#[test]
fn burn_runs_every_type_that_gpu_supports() {
    const ALL: &[&str] = &["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8"];
    for (capability, types) in [
        ("[9, 0]", ALL),
        ("[8, 9]", ALL),
        ("[8, 0]", &ALL[2..5]),
        ("[7, 5]", &ALL[..2]),
    ] {
        let scenario = format!("{SMALL_DEVICE}\ncapability = {capability}");
        let started = types.iter().map(|dtype| {
            let cuda = FakeCuda::new(&scenario);
            // fp64 gets a larger part of the memory, so that the matrices of all types have the
            // same size.
            let mem = if *dtype == "fp64" { "1%" } else { "0.5%" };
            (
                *dtype,
                start_command(cuda.gpumon_command(&[
                    "burn", "--json", "--mem", mem, "--time", "1s", "--dtype", dtype,
                ])),
                cuda,
            )
        });
        // All types run in parallel.
        for (dtype, child, cuda) in started.collect::<Vec<_>>() {
            let output = child.wait_with_output().unwrap();
            assert_eq!(
                (output.status.code(), &*stderr_text(&output)),
                (Some(0), ""),
                "{dtype} on {capability}"
            );
            let line: Value = serde_json::from_str(stdout_text(&output).trim()).unwrap();
            assert_eq!(
                (&line["dtype"], &line["n"], &line["verify"]["ok"]),
                (&dtype.into(), &256.into(), &true.into())
            );
            let kernel = &line["kernel"];
            assert!(
                kernel["name"]
                    .as_str()
                    .unwrap()
                    .starts_with(&format!("matmul_{dtype}_")),
                "{kernel}"
            );
            assert!(
                kernel["occupancy_percent"].as_f64().unwrap() > 0.0,
                "{kernel}"
            );
            // The first product is compared element by element, and the others in words of 32 bits.
            let words = match dtype {
                "fp64" => PRODUCT_ELEMENTS * 2,
                "fp16" | "bf16" | "fp8" => PRODUCT_ELEMENTS / 2,
                _ => PRODUCT_ELEMENTS,
            };
            let compared = line["verify"]["checked"].as_u64().unwrap() - PRODUCT_ELEMENTS;
            assert!(compared > 0 && compared.is_multiple_of(words), "{line}");
            assert_eq!(cuda.read_counters()["held_bytes"], 0);
        }
    }
}

#[test]
fn default_type_has_highest_load() {
    for (capability, dtype) in [("[9, 0]", "bf16"), ("[8, 0]", "bf16"), ("[7, 5]", "fp32")] {
        let (_, code, lines, said) = run_burn(&format!("capability = {capability}"), &[]);
        assert_eq!(
            (code, &lines[0]["dtype"]),
            (Some(0), &dtype.into()),
            "{said}"
        );
    }
}

#[test]
fn integer_burn_reports_operations_instead_of_flops() {
    let cuda = FakeCuda::new(SMALL_DEVICE);
    for (dtype, unit) in [("int8", " GOP/s, 0 errors"), ("fp16", " GFLOP/s, 0 errors")] {
        let job = format!(r#"{{"kind":"burn","seconds":2,"memory":0.005,"dtype":"{dtype}"}}"#);
        let output = cuda.gpumon_command(&["work", &job]).output().unwrap();
        assert!(
            stdout_text(&output).contains(unit),
            "{}",
            stdout_text(&output)
        );
    }
}

#[test]
fn gpus_burn_in_parallel_and_end_on_time() {
    let begun = Instant::now();
    let (cuda, code, lines, said) = run_burn("devices = 2\nkernel_ms = 5", &["--device", "all"]);
    assert_eq!(
        (code, said.as_str(), lines.len()),
        (Some(0), "", 2),
        "{lines:?}"
    );
    assert!(begun.elapsed().as_secs() < 15, "{:?}", begun.elapsed());
    for line in &lines {
        let verify = &line["verify"];
        assert_eq!(
            (&verify["ok"], &verify["wrong"], &line["stopped"]),
            (&true.into(), &0.into(), &"time_limit".into())
        );
        assert!(
            verify["checked"].as_u64().unwrap() > 2 * PRODUCT_ELEMENTS,
            "{line}"
        );
        assert!(
            line["rate"]["operations_per_second"].as_f64().unwrap() > 1e6,
            "{line}"
        );
        let took_ms = line["environment"]["to_ms"].as_u64().unwrap()
            - line["environment"]["from_ms"].as_u64().unwrap();
        assert!((1000..8000).contains(&took_ms), "{line}");
    }
    let indices: Vec<_> = lines
        .iter()
        .map(|line| line["device"]["index"].as_u64().unwrap())
        .collect();
    assert_eq!(indices, [0, 1]);
    cuda.assert_resources_released();
}

#[test]
fn flipped_bit_ends_burn_with_exit_code_1() {
    // The faulty kernel computes one of the first products of a block, or a product in the second
    // pass over the block.
    for after in [1, 4, 1 + FP32_PRODUCTS] {
        let (_, code, lines, said) = run_burn(
            &make_kernel_fault("flip", TIMED_PRODUCTS + after, FP32_KERNEL),
            &FP32_OPTIONS,
        );
        let verify = &lines[0]["verify"];
        assert_eq!(
            (code, &verify["ok"], &verify["wrong"]),
            (Some(1), &false.into(), &1.into()),
            "{after}: {said}"
        );
    }
    for (dtype, kernel) in [
        ("bf16", "matmul_bf16_128x64"),
        ("int8", "matmul_int8_128x128"),
    ] {
        let (_, code, lines, said) = run_burn(
            &make_kernel_fault("flip", TIMED_PRODUCTS + 1, kernel),
            &["--dtype", dtype],
        );
        assert_eq!(
            (code, &lines[0]["verify"]["wrong"]),
            (Some(1), &1.into()),
            "{dtype}: {said}"
        );
    }
}

#[test]
fn wrong_reference_product_is_counted_in_every_comparison() {
    let (_, code, lines, said) = run_burn(
        &make_kernel_fault("flip", TIMED_PRODUCTS, FP32_KERNEL),
        &FP32_OPTIONS,
    );
    let verify = &lines[0]["verify"];
    let products = (verify["checked"].as_u64().unwrap() - PRODUCT_ELEMENTS) / PRODUCT_ELEMENTS;
    assert_eq!(
        (code, verify["wrong"].as_u64()),
        (Some(1), Some(1 + products)),
        "{verify} {said}"
    );
    assert!(products > 0 && verify["first_wrong"].is_u64(), "{verify}");
}

#[test]
fn product_that_kernel_skipped_is_reported_as_error() {
    // In the second pass over a block, the correct result of the first pass must already be
    // overwritten.
    for after in [1, 1 + FP32_PRODUCTS] {
        let (_, code, lines, _) = run_burn(
            &make_kernel_fault("skip", TIMED_PRODUCTS + after, FP32_KERNEL),
            &FP32_OPTIONS,
        );
        assert_eq!(
            (code, &lines[0]["verify"]["wrong"]),
            (Some(1), &PRODUCT_ELEMENTS.into()),
            "{after}: {lines:?}"
        );
    }
    let (_, code, lines, _) = run_burn(
        &make_kernel_fault("skip", TIMED_PRODUCTS, FP32_KERNEL),
        &FP32_OPTIONS,
    );
    assert!(
        code == Some(1) && lines[0]["verify"]["wrong"].as_u64() > Some(PRODUCT_ELEMENTS),
        "the error is found in the first product: {lines:?}"
    );
}

#[test]
fn interrupted_burn_prints_results_and_frees_memory() {
    let cuda = FakeCuda::new(&format!("{SMALL_DEVICE}\nkernel_ms = 20"));
    let child = start_command(cuda.gpumon_command(&[
        "burn", "--json", "--mem", "0.5%", "--time", "10m", "--dtype", "fp32",
    ]));
    // The limit also counts the kernels for the factors, the timing, the poison and the checks.
    wait_for_condition("products were computed", || {
        cuda.read_counters()["kernels"].as_u64() > Some(10 + FP32_PRODUCTS)
    });
    send_signal("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr_text(&output));
    let line: Value = serde_json::from_str(stdout_text(&output).trim()).unwrap();
    assert_eq!(
        (&line["partial"], &line["verify"]["ok"]),
        (&true.into(), &true.into()),
        "{line}"
    );
    assert_eq!(cuda.read_counters()["held_bytes"], 0);
}

#[test]
fn failing_gpu_does_not_hide_other_results() {
    let first_line = |fault: &str, is_canceled: bool| {
        let cuda = FakeCuda::new(&format!("{SMALL_DEVICE}\ndevices = 2\n[[fault]]\n{fault}"));
        let mut command = cuda.gpumon_command(
            &[
                &[
                    "burn", "--json", "--mem", "0.5%", "--time", "1m", "--device", "all",
                ],
                &FP32_OPTIONS[..],
            ]
            .concat(),
        );
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        if is_canceled {
            wait_for_condition("the other GPU runs the stress test", || {
                cuda.read_counters()["kernels"].as_u64() > Some(10 + FP32_PRODUCTS)
            });
            send_signal("-INT", child.id());
        }
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        // The worker ends when its parent is killed.
        child.kill().unwrap();
        child.wait().unwrap();
        serde_json::from_str::<Value>(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    let failed = first_line(
        "kind = \"out_of_memory\"\ndevice = 1\nafter_kernels = 0",
        false,
    );
    assert_eq!(
        (&failed["report"], &failed["gpu"]),
        (&"failed".into(), &1.into()),
        "{failed}"
    );
    let canceled = first_line("kind = \"hang\"\ndevice = 0\nafter_kernels = 0", true);
    assert_eq!(
        (&canceled["device"]["index"], &canceled["partial"]),
        (&1.into(), &true.into()),
        "{canceled}"
    );
}

#[test]
fn burn_uses_cpu_if_selected() {
    let free = std::fs::read_to_string("/proc/meminfo").unwrap();
    let free = free
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .unwrap();
    let free: f64 = free.trim().trim_end_matches(" kB").parse().unwrap();
    let share = format!("{:.9}", 4096.0 / free);
    let (code, lines, said) = run_json_lines(gpumon_command(&[
        "burn",
        "--backend",
        "cpu",
        "--time",
        "1s",
        "--mem",
        &share,
        "--json",
    ]));
    assert_eq!(
        (code, &lines[0]["backend"], &lines[0]["verify"]["ok"]),
        (Some(0), &"cpu".into(), &true.into()),
        "{said}"
    );
    let table = gpumon_command(&["burn", "--backend", "cpu", "--time", "1s", "--mem", &share])
        .output()
        .unwrap();
    let text = stdout_text(&table);
    assert!(
        text.contains("FLOP/s") && text.contains("compute") && text.contains("verified"),
        "{text}"
    );
}

#[test]
fn invalid_burn_options_are_refused_with_valid_options() {
    for (arguments, code, words) in [
        (&["--mem", "120%"][..], 2, "90%"),
        (&["--time", "5"], 2, "10m"),
        (
            &["--backend", "cpu", "--dtype", "int8"],
            2,
            "use one of fp32, fp64",
        ),
        (
            &["--dtype", "fp8"],
            2,
            "needs compute capability 8.9, but this GPU has 8.0: use another --dtype",
        ),
        (&["--device", "9"], 3, "only 0 is available"),
        (
            &["--mem", "0.001%"],
            5,
            "burn needs at least 1 MiB on GPU 0, but may use only 0 MiB of the 600 MiB",
        ),
        (
            &["--mem", "0.5%", "--dtype", "fp64"],
            5,
            "use a larger --mem",
        ),
    ] {
        let cuda = FakeCuda::new(&format!("{SMALL_DEVICE}\ncapability = [8, 0]"));
        assert_refused(
            cuda.gpumon_command(&[&["burn"], arguments].concat()),
            code,
            words,
        );
    }
}
