//! `gpumon burn` with a driver that runs kernels on the CPU. It ends on time and detects every
//! error.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    time::Instant,
};

use serde_json::Value;

use crate::support::{
    FakeCuda, eventually, gpumon, lines_of, refused, signal, started, stderr, stdout,
};

/// A device with little memory, so that the matrices are small, and the options for it.
const SMALL: &str = "memory_mib = 600";
const MEM: [&str; 4] = ["--mem", "0.5%", "--time", "1s"];
/// The number of elements of a product with this memory.
const ELEMENTS: u64 = 256 * 256;
/// The product is computed twice for timing before results are checked.
const TIMED: u64 = 2;
/// Options for 32-bit products, and the number of products that fit into this memory after the
/// factors and the reference.
const FP32: [&str; 2] = ["--dtype", "fp32"];
const FP32_PRODUCTS: u64 = 8;
const FP32_KERNEL: &str = "matmul_fp32_128x64";

fn burn(scenario: &str, arguments: &[&str]) -> (FakeCuda, Option<i32>, Vec<Value>, String) {
    let cuda = FakeCuda::new(&format!("{SMALL}\n{scenario}"));
    let (code, lines, said) =
        lines_of(cuda.gpumon(&[&["burn", "--json"], &MEM[..], arguments].concat()));
    (cuda, code, lines, said)
}

fn fault(kind: &str, after: u64, kernel: &str) -> String {
    format!("[[fault]]\nkind = \"{kind}\"\nafter_kernels = {after}\nkernel = \"{kernel}\"")
}

#[test]
fn every_type_burns_on_every_gpu_that_has_it() {
    const ALL: &[&str] = &["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8"];
    for (capability, types) in [
        ("[9, 0]", ALL),
        ("[8, 9]", ALL),
        ("[8, 0]", &ALL[2..5]),
        ("[7, 5]", &ALL[..2]),
    ] {
        let scenario = format!("{SMALL}\ncapability = {capability}");
        let started = types.iter().map(|dtype| {
            let cuda = FakeCuda::new(&scenario);
            // With these shares, all types have matrices of the same size.
            let mem = if *dtype == "fp64" { "1%" } else { "0.5%" };
            (
                *dtype,
                started(cuda.gpumon(&[
                    "burn", "--json", "--mem", mem, "--time", "1s", "--dtype", dtype,
                ])),
                cuda,
            )
        });
        // All types run in parallel.
        for (dtype, child, cuda) in started.collect::<Vec<_>>() {
            let output = child.wait_with_output().unwrap();
            assert_eq!(
                (output.status.code(), &*stderr(&output)),
                (Some(0), ""),
                "{dtype} on {capability}"
            );
            let line: Value = serde_json::from_str(stdout(&output).trim()).unwrap();
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
            // The first product is compared by element, the others by 32-bit words.
            let words = match dtype {
                "fp64" => ELEMENTS * 2,
                "fp16" | "bf16" | "fp8" => ELEMENTS / 2,
                _ => ELEMENTS,
            };
            let compared = line["verify"]["checked"].as_u64().unwrap() - ELEMENTS;
            assert!(compared > 0 && compared.is_multiple_of(words), "{line}");
            assert_eq!(cuda.counters()["held_bytes"], 0);
        }
    }
}

#[test]
fn without_a_type_it_is_the_one_that_loads_the_gpu_most() {
    for (capability, dtype) in [("[9, 0]", "bf16"), ("[8, 0]", "bf16"), ("[7, 5]", "fp32")] {
        let (_, code, lines, said) = burn(&format!("capability = {capability}"), &[]);
        assert_eq!(
            (code, &lines[0]["dtype"]),
            (Some(0), &dtype.into()),
            "{said}"
        );
    }
}

#[test]
fn whole_numbers_are_not_told_as_floating_point() {
    let cuda = FakeCuda::new(SMALL);
    for (dtype, unit) in [("int8", " GOP/s, 0 errors"), ("fp16", " GFLOP/s, 0 errors")] {
        let job = format!(r#"{{"kind":"burn","seconds":2,"memory":0.005,"dtype":"{dtype}"}}"#);
        let output = cuda.gpumon(&["work", &job]).output().unwrap();
        assert!(stdout(&output).contains(unit), "{}", stdout(&output));
    }
}

#[test]
fn all_devices_burn_at_once_and_end_on_time() {
    let begun = Instant::now();
    let (cuda, code, lines, said) = burn("devices = 2\nkernel_ms = 5", &["--device", "all"]);
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
        assert!(verify["checked"].as_u64().unwrap() > 2 * ELEMENTS, "{line}");
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
    cuda.counters_at_rest();
}

#[test]
fn a_flipped_bit_makes_it_end_with_1() {
    // The fault affects one of the first products of a block, or the second pass over the block.
    for after in [1, 4, 1 + FP32_PRODUCTS] {
        let (_, code, lines, said) = burn(&fault("flip", TIMED + after, FP32_KERNEL), &FP32);
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
        let (_, code, lines, said) = burn(&fault("flip", TIMED + 1, kernel), &["--dtype", dtype]);
        assert_eq!(
            (code, &lines[0]["verify"]["wrong"]),
            (Some(1), &1.into()),
            "{dtype}: {said}"
        );
    }
}

#[test]
fn a_first_product_that_is_wrong_is_found_by_the_reference_and_by_all_others() {
    let (_, code, lines, said) = burn(&fault("flip", TIMED, FP32_KERNEL), &FP32);
    let verify = &lines[0]["verify"];
    let products = (verify["checked"].as_u64().unwrap() - ELEMENTS) / ELEMENTS;
    assert_eq!(
        (code, verify["wrong"].as_u64()),
        (Some(1), Some(1 + products)),
        "{verify} {said}"
    );
    assert!(products > 0 && verify["first_wrong"].is_u64(), "{verify}");
}

#[test]
fn a_product_that_was_not_written_is_an_error() {
    // In the second pass over a block, the correct result of the first pass must already be
    // overwritten.
    for after in [1, 1 + FP32_PRODUCTS] {
        let (_, code, lines, _) = burn(&fault("skip", TIMED + after, FP32_KERNEL), &FP32);
        assert_eq!(
            (code, &lines[0]["verify"]["wrong"]),
            (Some(1), &ELEMENTS.into()),
            "{after}: {lines:?}"
        );
    }
    let (_, code, lines, _) = burn(&fault("skip", TIMED, FP32_KERNEL), &FP32);
    assert!(
        code == Some(1) && lines[0]["verify"]["wrong"].as_u64() > Some(ELEMENTS),
        "the first: {lines:?}"
    );
}

#[test]
fn who_interrupts_gets_what_there_is_and_the_memory_back() {
    let cuda = FakeCuda::new(&format!("{SMALL}\nkernel_ms = 20"));
    let child = started(cuda.gpumon(&[
        "burn", "--json", "--mem", "0.5%", "--time", "10m", "--dtype", "fp32",
    ]));
    // The count includes the kernels for factors, timing, poison and checks.
    eventually("products are made", || {
        cuda.counters()["kernels"].as_u64() > Some(10 + FP32_PRODUCTS)
    });
    signal("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let line: Value = serde_json::from_str(stdout(&output).trim()).unwrap();
    assert_eq!(
        (&line["partial"], &line["verify"]["ok"]),
        (&true.into(), &true.into()),
        "{line}"
    );
    assert_eq!(cuda.counters()["held_bytes"], 0);
}

#[test]
fn a_gpu_that_fails_or_hangs_keeps_nobody_from_the_result_of_another() {
    let first_line = |fault: &str, is_canceled: bool| {
        let cuda = FakeCuda::new(&format!("{SMALL}\ndevices = 2\n[[fault]]\n{fault}"));
        let mut command = cuda.gpumon(
            &[
                &[
                    "burn", "--json", "--mem", "0.5%", "--time", "1m", "--device", "all",
                ],
                &FP32[..],
            ]
            .concat(),
        );
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        if is_canceled {
            eventually("the other burns", || {
                cuda.counters()["kernels"].as_u64() > Some(10 + FP32_PRODUCTS)
            });
            signal("-INT", child.id());
        }
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        // The worker ends together with this process.
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
fn the_cpu_burns_where_it_is_asked_to() {
    let free = std::fs::read_to_string("/proc/meminfo").unwrap();
    let free = free
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .unwrap();
    let free: f64 = free.trim().trim_end_matches(" kB").parse().unwrap();
    let share = format!("{:.9}", 4096.0 / free);
    let (code, lines, said) = lines_of(gpumon(&[
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
    let table = gpumon(&["burn", "--backend", "cpu", "--time", "1s", "--mem", &share])
        .output()
        .unwrap();
    let text = stdout(&table);
    assert!(
        text.contains("FLOP/s") && text.contains("compute") && text.contains("verified"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_burnt_is_answered_with_what_can() {
    for (arguments, code, words) in [
        (&["--mem", "120%"][..], 2, "90%"),
        (&["--time", "5"], 2, "10m"),
        (
            &["--backend", "cpu", "--dtype", "int8"],
            2,
            "give one of fp32, fp64",
        ),
        (
            &["--dtype", "fp8"],
            2,
            "needs compute capability 8.9, and this GPU has 8.0: give another --dtype",
        ),
        (&["--device", "9"], 3, "there is only 0"),
        (
            &["--mem", "0.001%"],
            5,
            "burn needs 1 MiB on GPU 0 at least, and may take 0 MiB of the 600 MiB",
        ),
        (
            &["--mem", "0.5%", "--dtype", "fp64"],
            5,
            "give a larger --mem",
        ),
    ] {
        let cuda = FakeCuda::new(&format!("{SMALL}\ncapability = [8, 0]"));
        refused(cuda.gpumon(&[&["burn"], arguments].concat()), code, words);
    }
}
