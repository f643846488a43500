//! `gpumon bench` on the CPU, and with a driver that runs kernels on the CPU. Correct results pass,
//! wrong results fail.

use serde_json::{Value, json};

use crate::support::{
    FakeCuda, FakeMachine, FakeNvml, Terminal, assert_refused, gpumon_command, parse_json_lines,
    run_json_lines, send_signal, start_command, stderr_text, stdout_text, wait_for_condition,
};

/// A small size for speed, which is not a multiple of a block or vector size.
const ODD_SIZE: &str = "100003";

#[test]
fn all_benchmarks_pass_on_cpu_and_gpu() {
    let cuda = FakeCuda::new("devices = 2");
    // Workloads that repeat an operation are left out here: the tests of `gpumon tutorials` run
    // them with small sizes.
    let listed = run_json_lines(gpumon_command(&["bench", "list", "--json"])).1;
    let sized: Vec<_> = listed
        .iter()
        .filter(|about| about["extent"] == "elements")
        .collect();
    let mut command = cuda.gpumon_command(&[
        "bench",
        "--backend",
        "both",
        "--quick",
        "--json",
        "--size",
        ODD_SIZE,
    ]);
    command.args(sized.iter().map(|about| about["id"].as_str().unwrap()));
    let (code, lines, said) = run_json_lines(command);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let on = |backend: &str| {
        lines
            .iter()
            .filter(|line| line["backend"] == backend)
            .collect::<Vec<_>>()
    };
    for backend in ["cuda", "cpu"] {
        let runs = |about: &&&Value| {
            about["backends"]
                .as_array()
                .unwrap()
                .contains(&backend.into())
        };
        assert_eq!(
            on(backend).len(),
            sized.iter().filter(runs).count(),
            "{backend}"
        );
    }
    for line in &lines {
        assert_eq!(
            (&line["verify"]["ok"], &line["partial"]),
            (&true.into(), &false.into()),
            "{line}"
        );
        assert!(line["verify"]["checked"].as_u64().unwrap() > 0, "{line}");
        let host = &line["host_time"];
        let number = |key: &str| host[key].as_f64().unwrap();
        assert!(number("n") >= 10.0 && number("min_us") > 0.0, "{line}");
        assert!(
            number("low_us") <= number("median_us") && number("median_us") <= number("high_us"),
            "{line}"
        );
        assert_eq!(
            line["device_time"].is_object(),
            line["backend"] == "cuda",
            "{line}"
        );
        assert_eq!(
            line["environment"]["cuda"].is_string(),
            line["backend"] == "cuda",
            "{line}"
        );
    }
    let triad = on("cuda")
        .into_iter()
        .find(|line| line["id"] == "triad")
        .unwrap();
    assert_eq!(
        (&triad["n"], &triad["moved_bytes"]),
        (&100_003.into(), &(3 * 4 * 100_003).into())
    );
    let rate = triad["rate"]["bytes_per_second"].as_f64().unwrap();
    let share = rate / triad["roofline"]["rated_per_second"].as_f64().unwrap();
    assert!(
        (triad["roofline"]["share"].as_f64().unwrap() - share).abs() < 1e-9,
        "{triad}"
    );
    let link = on("cuda")
        .into_iter()
        .find(|line| line["id"] == "h2d-pinned")
        .unwrap();
    assert_eq!(link["roofline"]["share"]["absent"], "unknown");
    cuda.assert_resources_released();
}

#[test]
fn pageable_memory_is_copied_completely_through_reused_buffers() {
    let cuda = FakeCuda::new("");
    for size in ["8", "16MiB", "37000008"] {
        let (code, lines, said) = run_json_lines(cuda.gpumon_command(&[
            "bench",
            "h2d-pageable",
            "d2h-pageable",
            "--quick",
            "--json",
            "--size",
            size,
        ]));
        assert_eq!((code, lines.len()), (Some(0), 2), "{said}");
    }
    cuda.assert_resources_released();
}

#[test]
fn matmul_is_correct_for_all_shapes_and_kernels() {
    for capability in ["[9, 0]", "[8, 9]", "[6, 0]"] {
        let cuda = FakeCuda::new(&format!("capability = {capability}"));
        for shape in ["70x300x13", "300x1x70", "1x260x600"] {
            let command = ["bench", "matmul", "--shape", shape, "--quick", "--json"];
            let (code, lines, said) = run_json_lines(cuda.gpumon_command(&command));
            assert_eq!(code, Some(0), "{shape} on {capability}: {said}");
            for line in lines {
                let sides: Vec<_> = shape
                    .split('x')
                    .map(|side| side.parse::<u64>().unwrap())
                    .collect();
                assert_eq!(
                    line["shape"],
                    json!({ "rows": sides[0], "columns": sides[1], "depth": sides[2] })
                );
                assert_eq!(line["operations"], 2 * sides.iter().product::<u64>());
                // The result has this number of elements, and each is checked twice: once before
                // the measurement and once after it.
                assert_eq!(line["verify"]["checked"], 2 * sides[0] * sides[1], "{line}");
            }
        }
        let shown = cuda.gpumon_command(&[
            "bench",
            "matmul",
            "--shape",
            "70x300x13",
            "--quick",
            "--dtype",
            "fp32",
        ]);
        assert!(stdout_text(&{ shown }.output().unwrap()).contains("70x300x13"));
    }
    for (arguments, words) in [
        (
            &["matmul", "--shape", "70x300"][..],
            "expected rows, columns and depth, such as 5000x3000x7000",
        ),
        (
            &["matmul", "--shape", "0x1x1"],
            "expected rows, columns and depth",
        ),
        (
            &["matmul", "--shape", "1x1x1", "--size", "5"],
            "cannot be used with",
        ),
        (
            &["triad", "--shape", "1x1x1"],
            "--shape is available only for matmul",
        ),
        (
            &["matmul", "--shape", "1x1x1", "--backend", "cpu"],
            "does not run on cpu",
        ),
        (
            &["matmul", "--shape", "1x1x1", "--backend", "both"],
            "runs only on a GPU",
        ),
        (
            &[
                "matmul",
                "--shape",
                "2147483000x2147483000x1",
                "--dtype",
                "fp32",
            ],
            "needs",
        ),
    ] {
        let code = if words == "needs" { 5 } else { 2 };
        assert_refused(
            FakeCuda::new("").gpumon_command(&[&["bench"], arguments].concat()),
            code,
            words,
        );
    }
}

#[test]
fn fixed_size_benchmarks_pass_and_refuse_size_option() {
    let cuda = FakeCuda::new("");
    let (code, lines, said) = run_json_lines(cuda.gpumon_command(&[
        "bench",
        "launch-latency",
        "vector-add-32x128",
        "matvec-graph",
        "--quick",
        "--json",
    ]));
    assert_eq!((code, lines.len()), (Some(0), 3), "{said}");
    assert!(
        lines.iter().all(|line| line["verify"]["ok"] == true),
        "{lines:?}"
    );
    assert_eq!(
        (&lines[2]["n"], &lines[2]["extent"]),
        (&10.into(), &"times".into())
    );
    assert_refused(
        cuda.gpumon_command(&["bench", "train", "--size", "5"]),
        2,
        "'train' has no adjustable size: leave out --size",
    );
}

#[test]
fn peer_benchmarks_need_two_gpus() {
    let (code, lines, said) =
        run_json_lines(FakeCuda::new("").gpumon_command(&["bench", "peer", "--quick", "--json"]));
    assert_eq!(
        (code, &lines[0]["verify"]["ok"]),
        (Some(1), &false.into()),
        "{said}"
    );
    assert!(
        said.contains("'peer' needs 2 GPUs (found: 1): use a machine with more"),
        "{said}"
    );
    for device in ["0", "1"] {
        let cuda = FakeCuda::new("devices = 2");
        let command = [
            "bench",
            "peer",
            "peer-both",
            "--quick",
            "--json",
            "--device",
            device,
            "--size",
            ODD_SIZE,
        ];
        let (code, lines, said) = run_json_lines(cuda.gpumon_command(&command));
        assert_eq!((code, lines.len()), (Some(0), 2), "{said}");
        cuda.assert_resources_released();
    }
}

#[test]
fn every_ordered_gpu_pair_is_measured_and_verified() {
    let cuda = FakeCuda::new("devices = 3");
    let (code, lines, said) = run_json_lines(
        cuda.gpumon_command(&["bench", "--pairs", "--quick", "--json", "--size", ODD_SIZE]),
    );
    assert_eq!((code, said.as_str(), lines.len()), (Some(0), "", 18));
    for id in ["peer", "peer-both", "peer-latency"] {
        let of_it = lines
            .iter()
            .filter(|line| line["id"] == id && line["verify"]["ok"] == true);
        let ends =
            |line: &Value| [&line["device"], &line["to"]].map(|gpu| gpu["index"].as_u64().unwrap());
        let pairs: Vec<_> = of_it.map(ends).collect();
        assert_eq!(
            pairs,
            [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]],
            "{id}"
        );
    }
    cuda.assert_resources_released();

    // The fault corrupts the source buffer of the third transfer, from GPU 1 to GPU 0.
    let cuda = FakeCuda::new(
        "devices = 3\n[[fault]]\nkind = \"flip\"\nafter_kernels = 2\nkernel = \"random_u64\"",
    );
    let output = cuda
        .gpumon_command(&["bench", "peer", "--pairs", "--quick", "--size", ODD_SIZE])
        .output()
        .unwrap();
    let text = stdout_text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let matrix: Vec<_> = text
        .lines()
        .skip_while(|line| !line.starts_with("peer, GB/s"))
        .collect();
    let words = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (matrix.len(), words(matrix[0])),
        (4, words("peer, GB/s to 0 to 1 to 2")),
        "{text}"
    );
    for (from, line) in matrix[1..].iter().enumerate() {
        for (to, cell) in words(line)[3..].iter().enumerate() {
            match (from, to) {
                (1, 0) => assert_eq!(cell, "mismatch", "{text}"),
                _ if from == to => assert_eq!(cell, "-", "{text}"),
                _ => assert!(cell.parse::<f64>().unwrap() > 0.0, "{text}"),
            }
        }
    }
}

#[test]
fn pairs_option_is_refused_for_other_benchmarks() {
    for (devices, arguments, code, words) in [
        (
            1,
            &[][..],
            1,
            "'peer' needs 2 GPUs (found: 1): use a machine with more",
        ),
        (
            2,
            &["peer", "copy"],
            2,
            "'copy' runs on one GPU and not between two: leave out --pairs",
        ),
        (2, &["--device", "1"], 2, "--pairs"),
        (2, &["--backend", "cpu"], 2, "does not run on cpu"),
    ] {
        let cuda = FakeCuda::new(&format!("devices = {devices}"));
        assert_refused(
            cuda.gpumon_command(&[&["bench", "--pairs"], arguments].concat()),
            code,
            words,
        );
    }
}

/// The two libraries number GPUs differently, so GPUs are matched by UUID.
#[test]
fn results_contain_nvml_readings_of_same_gpu() {
    let nvml = FakeNvml::new(
        "[[gpu]]\nindex = 1\nprofile = \"idle\"\npower_watts = 600\n[[gpu]]\nindex = \
         0\npower_watts = 100",
    );
    let reported = nvml.read_json();
    let uuid = reported["inventory"]["gpus"][1]["uuid"].as_str().unwrap();
    let cuda = FakeCuda::new(&format!("uuids = [\"{uuid}\"]\nkernel_ms = 60"));
    let command = cuda.gpumon_command_with(
        &nvml,
        &["bench", "copy", "--quick", "--json", "--size", ODD_SIZE],
    );
    let (code, lines, said) = run_json_lines(command);
    assert_eq!(code, Some(0), "{said}");
    let load = &lines[0]["load"];
    assert!(load["samples"].as_u64() > Some(1), "{}", lines[0]);
    let watts = |end: &str| load["watts"][end].as_f64().unwrap();
    assert!(
        watts("min") > 500.0 && watts("max") < 700.0 && watts("min") <= watts("max"),
        "{load}"
    );
    assert!(load["sm_mhz"]["max"].as_f64() > Some(100.0), "{load}");
    // NVML does not list the GPU of this CUDA driver, so the result has no readings.
    let other = FakeCuda::new("kernel_ms = 20");
    let command = other.gpumon_command_with(
        &nvml,
        &["bench", "copy", "--quick", "--json", "--size", ODD_SIZE],
    );
    assert!(run_json_lines(command).1[0]["load"].is_null());
}

#[test]
fn types_and_sizes_are_selected_by_options() {
    let cuda = FakeCuda::new("");
    let (code, lines, _) = run_json_lines(cuda.gpumon_command(&[
        "bench", "read", "scale", "--dtype", "fp64", "--size", "64KiB", "--quick", "--json",
    ]));
    assert_eq!((code, lines.len()), (Some(0), 2));
    for line in lines {
        assert_eq!(
            (&line["dtype"], &line["n"]),
            (&"fp64".into(), &8192.into()),
            "{line}"
        );
    }
}

#[test]
fn flipped_bit_in_result_causes_exit_code_1() {
    for (kernel, id) in [
        ("stream_triad_fp32", "triad"),
        ("stream_read_fp32", "read"),
        ("trig_fp32", "trig"),
    ] {
        // Both the first and the last result are checked.
        let fault = format!("[[fault]]\nkind = \"flip\"\nafter_kernels = 0\nkernel = \"{kernel}\"");
        let cuda = FakeCuda::new(&fault);
        let (code, lines, _) = run_json_lines(
            cuda.gpumon_command(&["bench", id, "copy", "--quick", "--json", "--size", ODD_SIZE]),
        );
        assert_eq!(code, Some(1), "{id}");
        assert_eq!(
            (&lines[0]["verify"]["ok"], &lines[1]["verify"]["ok"]),
            (&false.into(), &true.into()),
            "{lines:?}"
        );
        let table = cuda
            .gpumon_command(&["bench", id, "--quick", "--size", ODD_SIZE])
            .output()
            .unwrap();
        assert_eq!(table.status.code(), Some(1));
        assert!(
            stdout_text(&table).contains("mismatch: "),
            "{}",
            stdout_text(&table)
        );
    }
}

/// The check after the measurement must find errors that occur after the first check.
#[test]
fn error_after_first_verification_fails_last_verification() {
    let fault = "[[fault]]\nkind = \"flip\"\nafter_kernels = 1\nkernel = \
                 \"stream_add_fp64\"\nlasting = true";
    let cuda = FakeCuda::new(fault);
    let (code, lines, _) = run_json_lines(cuda.gpumon_command(&[
        "bench", "add", "--dtype", "fp64", "--quick", "--json", "--size", ODD_SIZE,
    ]));
    let verify = &lines[0]["verify"];
    assert_eq!(
        (code, &verify["wrong"], &verify["checked"]),
        (Some(1), &1.into(), &200_006.into()),
        "{verify}"
    );
}

#[test]
fn result_that_kernel_does_not_write_fails_verification() {
    let cuda = FakeCuda::new(
        "[[fault]]\nkind = \"skip\"\nafter_kernels = 0\nkernel = \"stream_copy_fp32\"",
    );
    let (code, lines, _) = run_json_lines(
        cuda.gpumon_command(&["bench", "copy", "--quick", "--json", "--size", ODD_SIZE]),
    );
    // The fault skips the first run. So all elements are wrong in the first check, which only sees
    // the poison, and right in the last check.
    assert_eq!(
        (code, lines[0]["verify"]["wrong"].as_u64()),
        (Some(1), Some(100_003))
    );
}

#[test]
fn too_large_size_is_refused_with_free_memory() {
    let cuda = FakeCuda::new("memory_mib = 2048");
    for size in ["512Mi", "1e15"] {
        let (code, lines, said) =
            run_json_lines(cuda.gpumon_command(&["bench", "copy", "--size", size, "--json"]));
        assert_eq!(code, Some(5), "{said}");
        for words in [
            "copy needs",
            "GPU 0",
            "2.0 GiB of 2.0 GiB are free",
            "512 MiB must stay free",
            "--size",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert_eq!(
            (said.lines().count(), &lines[0]["verify"]["ok"]),
            (1, &false.into()),
            "{said}"
        );
        assert!(
            said.contains(if size == "512Mi" { "4.0 GiB" } else { "GiB" }),
            "{said}"
        );
    }
    assert_eq!(
        cuda.read_counters()["most_bytes"],
        0,
        "no memory was allocated"
    );
    // The fault simulates another process that takes memory after gpumon has queried the free
    // memory.
    let cuda = FakeCuda::new("[[fault]]\nkind = \"out_of_memory\"\nafter_kernels = 0");
    let (code, _, said) =
        run_json_lines(cuda.gpumon_command(&["bench", "copy", "--size", ODD_SIZE]));
    assert!(
        code == Some(5) && said.contains("copy needs 1 MiB"),
        "{code:?} {said}"
    );
    assert_refused(
        gpumon_command(&["bench", "copy", "--backend", "cpu", "--size", "1e15"]),
        5,
        "host's memory",
    );
}

#[test]
fn failed_benchmark_has_table_row_with_reason() {
    let cuda = FakeCuda::new("devices = 2\nmemory_mib = 2048");
    let output = cuda
        .gpumon_command(&[
            "bench", "copy", "triad", "--device", "all", "--size", "512Mi",
        ])
        .output()
        .unwrap();
    let text = stdout_text(&output);
    assert_eq!(
        (output.status.code(), &*stderr_text(&output)),
        (Some(5), ""),
        "{text}"
    );
    let starts: Vec<_> = text
        .lines()
        .map(|line| {
            line.split_whitespace()
                .take(2)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    let group = |at| {
        [
            format!("GPU {at}:"),
            "copy failed:".to_owned(),
            "triad failed:".to_owned(),
        ]
    };
    assert_eq!(
        starts,
        [
            vec!["workload type".to_owned()],
            group(0).into(),
            group(1).into()
        ]
        .concat(),
        "{text}"
    );
    assert!(
        text.contains("triad             failed: triad needs 6.0 GiB on GPU 1"),
        "{text}"
    );
}

#[test]
fn lost_device_ends_bench_with_driver_message() {
    let cuda = FakeCuda::new("[[fault]]\nkind = \"lost\"\nafter_kernels = 30");
    let (code, lines, said) =
        run_json_lines(cuda.gpumon_command(&["bench", "--quick", "--json", "--size", ODD_SIZE]));
    assert_eq!((code, said.lines().count()), (Some(1), 1), "{said}");
    assert!(
        said.contains("CUDA_ERROR_DEVICE_UNAVAILABLE") && said.contains("cannot start "),
        "{said}"
    );
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["verify"]["ok"], last["error"].is_string()),
        (&false.into(), true),
        "{last}"
    );
}

#[test]
fn interrupted_bench_prints_results_and_frees_memory() {
    let cuda = FakeCuda::new("kernel_ms = 150");
    let child = start_command(
        cuda.gpumon_command(&["bench", "copy", "scale", "--json", "--size", ODD_SIZE]),
    );
    // The first kernels are not measured: two create the input, one computes the result for the
    // check, and one warms up. After more than seven kernels, some runs were measured.
    wait_for_condition("some runs were measured", || {
        cuda.read_counters()["kernels"].as_u64() > Some(7)
    });
    send_signal("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr_text(&output));
    let lines = parse_json_lines(&stdout_text(&output));
    assert_eq!(
        lines.len(),
        1,
        "nothing may run after the interruption: {lines:?}"
    );
    assert_eq!(
        (&lines[0]["partial"], &lines[0]["stopped"]),
        (&true.into(), &"interrupted".into())
    );
    assert!(
        (1..10).contains(&lines[0]["device_time"]["n"].as_u64().unwrap()),
        "{}",
        lines[0]
    );
    let counters = cuda.assert_resources_released();
    assert!(
        counters["most_bytes"].as_u64() > Some(800_000),
        "{counters}"
    );
}

#[test]
fn unknown_names_are_refused_with_available_names() {
    for (arguments, words) in [
        (
            &["traid"][..],
            "unknown workload 'traid': did you mean 'triad'?",
        ),
        (&["frobnicate"], "gpumon bench list"),
        (&["copy", "--size", "lots"], "256MiB"),
        (&["copy", "--dtype", "fp65"], "possible values: fp64, fp32"),
        (&["h2d-pinned", "--dtype", "fp64"], "leave out --dtype"),
        (&["launch-latency", "--size", "5"], "leave out --size"),
        (&["copy", "--backend", "gpu"], "cpu"),
        (
            &["launch-latency", "--backend", "cpu"],
            "does not run on cpu",
        ),
    ] {
        let cuda = FakeCuda::new("devices = 2");
        assert_eq!(
            assert_refused(
                cuda.gpumon_command(&[&["bench"], arguments].concat()),
                2,
                words
            ),
            "",
            "{arguments:?}"
        );
    }
}

#[test]
fn missing_device_is_reported_as_error() {
    let commands: [&[&str]; 5] = [
        &["bench", "copy"],
        &["burn"],
        &["oom", "fill"],
        &["selftest"],
        &["tutorials", "a"],
    ];
    let without_driver = |arguments: &[&str]| {
        let mut command = gpumon_command(arguments);
        command.env("GPUMON_LIBCUDA", "/nowhere/libcuda.so.1");
        command
    };
    for command in commands {
        for device in ["0", "7", "all", "GPU-ffff"] {
            for backend in [&[][..], &["--backend", "both"]] {
                let backend = if command[0] == "selftest" {
                    &[]
                } else {
                    backend
                };
                let arguments = [command, &["--device", device], backend].concat();
                assert_refused(without_driver(&arguments), 3, "/nowhere/libcuda.so.1");
                assert_refused(
                    FakeCuda::new("devices = 0").gpumon_command(&arguments),
                    3,
                    "",
                );
            }
        }
        for (device, words) in [
            (
                "7",
                "there is no GPU '7': 0 to 1 are available; see `gpumon info`",
            ),
            ("GPU-ffff", "there is no GPU 'GPU-ffff'"),
        ] {
            let arguments = [command, &["--device", device]].concat();
            assert_refused(
                FakeCuda::new("devices = 2").gpumon_command(&arguments),
                3,
                words,
            );
        }
    }
}

#[test]
fn gpu_is_chosen_by_each_of_its_names() {
    let idle = |index| format!("[[gpu]]\nindex = {index}\nprofile = \"idle\"\n");
    let machine = FakeMachine::new(&(idle(0) + &idle(1)));
    let bench = |name: &str| {
        let options = ["--json", "--quick", "--size", "1"];
        let arguments = [&["bench", "copy", "--device", name], &options[..]].concat();
        run_json_lines(machine.gpumon_command(&arguments))
    };
    let (_, lines, said) = bench("1");
    let uuid = lines[0]["device"]["uuid"].as_str().expect(&said).to_owned();
    for name in ["1", &uuid.to_uppercase()[..10], "1b:00.0", "nvidia:1"] {
        let (code, lines, said) = bench(name);
        assert_eq!(
            (code, &lines[0]["device"]["index"]),
            (Some(0), &1.into()),
            "{said}"
        );
    }
}

#[test]
fn list_has_every_benchmark_with_description() {
    let text = stdout_text(&gpumon_command(&["bench", "list"]).output().unwrap());
    let (code, lines, _) = run_json_lines(gpumon_command(&["bench", "list", "--json"]));
    assert!(code == Some(0) && lines.len() > 30, "{lines:?}");
    for line in lines {
        for key in ["id", "teaches"] {
            assert!(text.contains(line[key].as_str().unwrap()), "{line}");
        }
    }
}

/// Returns the output of `gpumon bench --json` with all times multiplied by a factor.
fn scale_times(lines: &[Value], factor: f64) -> String {
    let mut lines = lines.to_vec();
    for line in &mut lines {
        for times in ["device_time", "host_time"] {
            for time in line[times].as_object_mut().unwrap().values_mut() {
                *time = time
                    .as_u64()
                    .map_or_else(|| (time.as_f64().unwrap() * factor).into(), Value::from);
            }
        }
    }
    lines
        .iter()
        .map(Value::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn results_below_threshold_exit_with_code_4() {
    let cuda = FakeCuda::new("");
    let run = |more: &[&str]| {
        let command = ["bench", "copy", "scale", "--quick", "--size", "1000"];
        cuda.gpumon_command(&[&command[..], more].concat())
            .output()
            .unwrap()
    };
    let output = run(&["--json"]);
    let lines = parse_json_lines(&stdout_text(&output));
    assert_eq!(lines.len(), 2);
    let file = |name: &str, text: String| {
        let path = cuda.folder().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (was_fast, was_slow) = (
        file("fast", scale_times(&lines, 0.0001)),
        file("slow", scale_times(&lines, 10_000.0)),
    );
    let slower = run(&["--compare", &was_fast]);
    let text = stdout_text(&slower);
    assert_eq!(slower.status.code(), Some(0), "{text}");
    for words in [
        "vs old",
        "Significantly slower than before: copy 0.0",
        ", scale 0.0",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let below = run(&["--compare", &was_fast, "--fail-below", "90%"]);
    assert!(
        below.status.code() == Some(4) && stdout_text(&below).contains("Below 90.0 %: copy "),
        "{}",
        stdout_text(&below)
    );
    let above = run(&["--compare", &was_slow, "--fail-below", "0.9"]);
    assert!(
        above.status.code() == Some(0)
            && stdout_text(&above).contains("No result is significantly slower"),
        "{}",
        stdout_text(&above)
    );
    let (code, lines, _) = run_json_lines(cuda.gpumon_command(&[
        "bench",
        "copy",
        "--quick",
        "--json",
        "--size",
        "1000",
        "--compare",
        &was_slow,
    ]));
    let compared = &lines[0]["compared"];
    assert_eq!(
        (code, &compared["is_slower"]),
        (Some(0), &false.into()),
        "{}",
        lines[0]
    );
    assert!(
        compared["ratio"].as_f64() > Some(10.0) && lines[0]["verify"]["ok"] == true,
        "{}",
        lines[0]
    );
    // Without earlier results, `--fail-below` refers to the rated performance of the GPU. The
    // workload `launch-latency` has no rated performance.
    let rated = run(&["--fail-below", "0.9"]);
    assert!(rated.status.code() == Some(4), "{}", stdout_text(&rated));
    let none = cuda
        .gpumon_command(&["bench", "launch-latency", "--quick", "--fail-below", "0.1"])
        .output()
        .unwrap();
    assert!(
        none.status.code() == Some(4)
            && stderr_text(&none)
                .contains("--fail-below was not applied: no workload has an earlier result"),
        "{}",
        stderr_text(&none)
    );
    for bad in [file("empty", String::new()), "/nowhere/old.json".to_owned()] {
        assert_refused(
            gpumon_command(&["bench", "copy", "--compare", &bad]),
            2,
            &bad,
        );
    }
}

#[test]
fn progress_line_is_removed_before_output() {
    let cuda = FakeCuda::new("kernel_ms = 40");
    let run = ["bench", "copy", "add", "--quick", "--size", "1000"];
    let mut terminal = Terminal::start(cuda.gpumon_command(&run), 120, 50);
    terminal.wait_until(|text| {
        text.contains("copy: measuring") && text.contains("1/2") && text.contains("[#")
    });
    let (text, code) = terminal.wait_for_end();
    assert_eq!(code, Some(0), "{text}");
    let erased = "\r\u{1b}[K";
    let parts: Vec<_> = text.split(erased).collect();
    let rows: Vec<_> = parts.iter().filter(|part| part.contains('\n')).collect();
    assert_eq!(
        rows.len(),
        2,
        "each of the two results starts in an empty line: {text:?}"
    );
    assert!(
        rows[0].contains("GPU 0") && rows[1].starts_with("add "),
        "{text:?}"
    );
    assert!(
        parts.last().unwrap().ends_with('\n') || parts.last().unwrap().is_empty(),
        "{text:?}"
    );
    // A terminal that cannot rewrite a line shows no progress.
    let mut dumb = cuda.gpumon_command(&run);
    dumb.env("TERM", "dumb");
    let (text, code) = Terminal::start(dumb, 120, 50).wait_for_end();
    assert!(
        code == Some(0) && !text.contains("measuring") && !text.contains('\u{1b}'),
        "{text:?}"
    );
}
