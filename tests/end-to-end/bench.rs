//! `gpumon bench` on the CPU, and with a driver that runs kernels on the CPU. Correct results pass,
//! wrong results fail.

use serde_json::{Value, json};

use crate::support::{
    Fake, FakeCuda, FakeMachine, Terminal, eventually, gpumon, json_lines, lines_of, refused,
    signal, started, stderr, stdout,
};

/// A small size for speed, which is not a multiple of a block or vector size.
const SIZE: &str = "100003";

#[test]
fn everything_is_right_on_both_and_tells_what_it_measured() {
    let cuda = FakeCuda::new("devices = 2");
    // Repeated operations are tested with small sizes by the tests of `gpumon tutorials`.
    let listed = lines_of(gpumon(&["bench", "list", "--json"])).1;
    let sized: Vec<_> = listed
        .iter()
        .filter(|about| about["extent"] == "elements")
        .collect();
    let mut command = cuda.gpumon(&[
        "bench",
        "--backend",
        "both",
        "--quick",
        "--json",
        "--size",
        SIZE,
    ]);
    command.args(sized.iter().map(|about| about["id"].as_str().unwrap()));
    let (code, lines, said) = lines_of(command);
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
    cuda.counters_at_rest();
}

#[test]
fn pageable_memory_is_copied_whole_through_buffers_that_are_used_again() {
    let cuda = FakeCuda::new("");
    for size in ["8", "16MiB", "37000008"] {
        let (code, lines, said) = lines_of(cuda.gpumon(&[
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
    cuda.counters_at_rest();
}

#[test]
fn a_product_of_any_shape_is_right_by_every_kernel_and_tells_its_shape() {
    for capability in ["[9, 0]", "[8, 9]", "[6, 0]"] {
        let cuda = FakeCuda::new(&format!("capability = {capability}"));
        for shape in ["70x300x13", "300x1x70", "1x260x600"] {
            let command = ["bench", "matmul", "--shape", shape, "--quick", "--json"];
            let (code, lines, said) = lines_of(cuda.gpumon(&command));
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
                // The result is checked before and after the measurement.
                assert_eq!(line["verify"]["checked"], 2 * sides[0] * sides[1], "{line}");
            }
        }
        let shown = cuda.gpumon(&[
            "bench",
            "matmul",
            "--shape",
            "70x300x13",
            "--quick",
            "--dtype",
            "fp32",
        ]);
        assert!(stdout(&{ shown }.output().unwrap()).contains("70x300x13"));
    }
    for (arguments, words) in [
        (
            &["matmul", "--shape", "70x300"][..],
            "give rows, columns and depth, as 5000x3000x7000",
        ),
        (
            &["matmul", "--shape", "0x1x1"],
            "give rows, columns and depth",
        ),
        (
            &["matmul", "--shape", "1x1x1", "--size", "5"],
            "cannot be used with",
        ),
        (&["triad", "--shape", "1x1x1"], "--shape is of matmul alone"),
        (
            &["matmul", "--shape", "1x1x1", "--backend", "cpu"],
            "does not run on cpu",
        ),
        (
            &["matmul", "--shape", "1x1x1", "--backend", "both"],
            "runs on a GPU alone",
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
        refused(
            FakeCuda::new("").gpumon(&[&["bench"], arguments].concat()),
            code,
            words,
        );
    }
}

#[test]
fn what_has_one_size_is_right_and_what_is_done_over_and_over_has_none_either() {
    let cuda = FakeCuda::new("");
    let (code, lines, said) = lines_of(cuda.gpumon(&[
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
    refused(
        cuda.gpumon(&["bench", "train", "--size", "5"]),
        2,
        "'train' has no size: leave out --size",
    );
}

#[test]
fn what_needs_two_gpus_runs_on_two_and_says_so_on_one() {
    let (code, lines, said) =
        lines_of(FakeCuda::new("").gpumon(&["bench", "peer", "--quick", "--json"]));
    assert_eq!(
        (code, &lines[0]["verify"]["ok"]),
        (Some(1), &false.into()),
        "{said}"
    );
    assert!(
        said.contains("'peer' needs 2 GPUs, and there are 1"),
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
            SIZE,
        ];
        let (code, lines, said) = lines_of(cuda.gpumon(&command));
        assert_eq!((code, lines.len()), (Some(0), 2), "{said}");
        cuda.counters_at_rest();
    }
}

#[test]
fn every_ordered_pair_of_gpus_is_measured_and_checked() {
    let cuda = FakeCuda::new("devices = 3");
    let (code, lines, said) =
        lines_of(cuda.gpumon(&["bench", "--pairs", "--quick", "--json", "--size", SIZE]));
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
    cuda.counters_at_rest();

    // The fault is in the input of the third pair, from GPU 1 to GPU 0.
    let cuda = FakeCuda::new(
        "devices = 3\n[[fault]]\nkind = \"flip\"\nafter_kernels = 2\nkernel = \"random_u64\"",
    );
    let output = cuda
        .gpumon(&["bench", "peer", "--pairs", "--quick", "--size", SIZE])
        .output()
        .unwrap();
    let text = stdout(&output);
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
fn pairs_are_asked_of_what_copies_between_gpus_and_of_all_of_them() {
    for (devices, arguments, code, words) in [
        (1, &[][..], 1, "'peer' needs 2 GPUs, and there are 1"),
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
        refused(
            cuda.gpumon(&[&["bench", "--pairs"], arguments].concat()),
            code,
            words,
        );
    }
}

/// The two libraries number GPUs differently, so GPUs are matched by UUID.
#[test]
fn what_nvml_says_of_the_same_gpu_stands_beside_the_times() {
    let nvml = Fake::new(
        "[[gpu]]\nindex = 1\nprofile = \"idle\"\npower_watts = 600\n[[gpu]]\nindex = 0\npower_watts = 100",
    );
    let told = nvml.json();
    let uuid = told["inventory"]["gpus"][1]["uuid"].as_str().unwrap();
    let cuda = FakeCuda::new(&format!("uuids = [\"{uuid}\"]\nkernel_ms = 60"));
    let command = cuda.gpumon_with(
        &nvml,
        &["bench", "copy", "--quick", "--json", "--size", SIZE],
    );
    let (code, lines, said) = lines_of(command);
    assert_eq!(code, Some(0), "{said}");
    let load = &lines[0]["load"];
    assert!(load["samples"].as_u64() > Some(1), "{}", lines[0]);
    let watts = |end: &str| load["watts"][end].as_f64().unwrap();
    assert!(
        watts("min") > 500.0 && watts("max") < 700.0 && watts("min") <= watts("max"),
        "{load}"
    );
    assert!(load["sm_mhz"]["max"].as_f64() > Some(100.0), "{load}");
    // A GPU that NVML does not list has no readings.
    let other = FakeCuda::new("kernel_ms = 20");
    let command = other.gpumon_with(
        &nvml,
        &["bench", "copy", "--quick", "--json", "--size", SIZE],
    );
    assert!(lines_of(command).1[0]["load"].is_null());
}

#[test]
fn types_and_sizes_are_those_that_were_asked_for() {
    let cuda = FakeCuda::new("");
    let (code, lines, _) = lines_of(cuda.gpumon(&[
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
fn a_flipped_bit_is_found_and_ends_with_1() {
    for (kernel, id) in [
        ("stream_triad_fp32", "triad"),
        ("stream_read_fp32", "read"),
        ("trig_fp32", "trig"),
    ] {
        // Both the first and the last result are checked.
        let fault = format!("[[fault]]\nkind = \"flip\"\nafter_kernels = 0\nkernel = \"{kernel}\"");
        let cuda = FakeCuda::new(&fault);
        let (code, lines, _) =
            lines_of(cuda.gpumon(&["bench", id, "copy", "--quick", "--json", "--size", SIZE]));
        assert_eq!(code, Some(1), "{id}");
        assert_eq!(
            (&lines[0]["verify"]["ok"], &lines[1]["verify"]["ok"]),
            (&false.into(), &true.into()),
            "{lines:?}"
        );
        let table = cuda
            .gpumon(&["bench", id, "--quick", "--size", SIZE])
            .output()
            .unwrap();
        assert_eq!(table.status.code(), Some(1));
        assert!(stdout(&table).contains("mismatch: "), "{}", stdout(&table));
    }
}

/// The result is checked again after the measurement.
#[test]
fn a_gpu_that_begins_to_err_after_the_first_look_is_found_by_the_last() {
    let fault = "[[fault]]\nkind = \"flip\"\nafter_kernels = 1\nkernel = \"stream_add_fp64\"\nlasting = true";
    let cuda = FakeCuda::new(fault);
    let (code, lines, _) = lines_of(cuda.gpumon(&[
        "bench", "add", "--dtype", "fp64", "--quick", "--json", "--size", SIZE,
    ]));
    let verify = &lines[0]["verify"];
    assert_eq!(
        (code, &verify["wrong"], &verify["checked"]),
        (Some(1), &1.into(), &200_006.into()),
        "{verify}"
    );
}

#[test]
fn what_a_kernel_has_not_written_is_no_result() {
    let cuda = FakeCuda::new(
        "[[fault]]\nkind = \"skip\"\nafter_kernels = 0\nkernel = \"stream_copy_fp32\"",
    );
    let (code, lines, _) =
        lines_of(cuda.gpumon(&["bench", "copy", "--quick", "--json", "--size", SIZE]));
    // The first check only sees the poison value. The last check sees what the other runs have
    // written.
    assert_eq!(
        (code, lines[0]["verify"]["wrong"].as_u64()),
        (Some(1), Some(100_003))
    );
}

#[test]
fn what_would_not_fit_is_refused_with_what_there_is() {
    let cuda = FakeCuda::new("memory_mib = 2048");
    for size in ["512Mi", "1e15"] {
        let (code, lines, said) =
            lines_of(cuda.gpumon(&["bench", "copy", "--size", size, "--json"]));
        assert_eq!(code, Some(5), "{said}");
        for words in [
            "copy needs",
            "GPU 0",
            "2.0 GiB of 2.0 GiB are free",
            "512 MiB stay free",
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
    assert_eq!(cuda.counters()["most_bytes"], 0, "nothing was tried");
    // Another process may take memory after the free memory was queried.
    let cuda = FakeCuda::new("[[fault]]\nkind = \"out_of_memory\"\nafter_kernels = 0");
    let (code, _, said) = lines_of(cuda.gpumon(&["bench", "copy", "--size", SIZE]));
    assert!(
        code == Some(5) && said.contains("copy needs 1 MiB"),
        "{code:?} {said}"
    );
    refused(
        gpumon(&["bench", "copy", "--backend", "cpu", "--size", "1e15"]),
        5,
        "host's memory",
    );
}

#[test]
fn what_fails_among_others_is_a_line_of_the_table_with_its_reason() {
    let cuda = FakeCuda::new("devices = 2\nmemory_mib = 2048");
    let output = cuda
        .gpumon(&[
            "bench", "copy", "triad", "--device", "all", "--size", "512Mi",
        ])
        .output()
        .unwrap();
    let text = stdout(&output);
    assert_eq!(
        (output.status.code(), &*stderr(&output)),
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
fn a_device_that_is_lost_ends_it_with_the_drivers_words() {
    let cuda = FakeCuda::new("[[fault]]\nkind = \"lost\"\nafter_kernels = 30");
    let (code, lines, said) =
        lines_of(cuda.gpumon(&["bench", "--quick", "--json", "--size", SIZE]));
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
fn who_interrupts_gets_what_there_is_and_the_memory_back() {
    let cuda = FakeCuda::new("kernel_ms = 150");
    let child = started(cuda.gpumon(&["bench", "copy", "scale", "--json", "--size", SIZE]));
    // More than seven kernels: two create the input, one is checked, one warms up, and the rest are
    // measured.
    eventually("some runs were measured", || {
        cuda.counters()["kernels"].as_u64() > Some(7)
    });
    signal("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let lines = json_lines(&stdout(&output));
    assert_eq!(lines.len(), 1, "nothing runs after it: {lines:?}");
    assert_eq!(
        (&lines[0]["partial"], &lines[0]["stopped"]),
        (&true.into(), &"interrupted".into())
    );
    assert!(
        (1..10).contains(&lines[0]["device_time"]["n"].as_u64().unwrap()),
        "{}",
        lines[0]
    );
    let counters = cuda.counters_at_rest();
    assert!(
        counters["most_bytes"].as_u64() > Some(800_000),
        "{counters}"
    );
}

#[test]
fn words_that_name_nothing_are_answered_with_what_there_is() {
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
            refused(cuda.gpumon(&[&["bench"], arguments].concat()), 2, words),
            "",
            "{arguments:?}"
        );
    }
}

#[test]
fn missing_device_is_error() {
    let commands: [&[&str]; 5] = [
        &["bench", "copy"],
        &["burn"],
        &["oom", "fill"],
        &["selftest"],
        &["tutorials", "a"],
    ];
    let without_driver = |arguments: &[&str]| {
        let mut command = gpumon(arguments);
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
                refused(without_driver(&arguments), 3, "/nowhere/libcuda.so.1");
                refused(FakeCuda::new("devices = 0").gpumon(&arguments), 3, "");
            }
        }
        for (device, words) in [
            ("7", "no GPU '7': there are 0 to 1"),
            ("GPU-ffff", "no GPU 'GPU-ffff'"),
        ] {
            let arguments = [command, &["--device", device]].concat();
            refused(FakeCuda::new("devices = 2").gpumon(&arguments), 3, words);
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
        lines_of(machine.gpumon(&arguments))
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
fn the_list_has_every_name_and_what_it_teaches() {
    let text = stdout(&gpumon(&["bench", "list"]).output().unwrap());
    let (code, lines, _) = lines_of(gpumon(&["bench", "list", "--json"]));
    assert!(code == Some(0) && lines.len() > 30, "{lines:?}");
    for line in lines {
        for key in ["id", "teaches"] {
            assert!(text.contains(line[key].as_str().unwrap()), "{line}");
        }
    }
}

/// Returns the output of `gpumon bench --json` with all times multiplied by a factor.
fn as_if(lines: &[Value], factor: f64) -> String {
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
fn earlier_results_say_what_has_become_slower_and_a_threshold_ends_with_4() {
    let cuda = FakeCuda::new("");
    let run = |more: &[&str]| {
        let command = ["bench", "copy", "scale", "--quick", "--size", "1000"];
        cuda.gpumon(&[&command[..], more].concat())
            .output()
            .unwrap()
    };
    let output = run(&["--json"]);
    let lines = json_lines(&stdout(&output));
    assert_eq!(lines.len(), 2);
    let file = |name: &str, text: String| {
        let path = cuda.folder().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (was_fast, was_slow) = (
        file("fast", as_if(&lines, 0.0001)),
        file("slow", as_if(&lines, 10_000.0)),
    );
    let slower = run(&["--compare", &was_fast]);
    let text = stdout(&slower);
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
        below.status.code() == Some(4) && stdout(&below).contains("Below 90.0 %: copy "),
        "{}",
        stdout(&below)
    );
    let above = run(&["--compare", &was_slow, "--fail-below", "0.9"]);
    assert!(
        above.status.code() == Some(0)
            && stdout(&above).contains("No result is significantly slower"),
        "{}",
        stdout(&above)
    );
    let (code, lines, _) = lines_of(cuda.gpumon(&[
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
    // Without earlier results, the threshold applies to rated performance, which a launch does not
    // have.
    let rated = run(&["--fail-below", "0.9"]);
    assert!(rated.status.code() == Some(4), "{}", stdout(&rated));
    let none = cuda
        .gpumon(&["bench", "launch-latency", "--quick", "--fail-below", "0.1"])
        .output()
        .unwrap();
    assert!(
        none.status.code() == Some(4) && stderr(&none).contains("--fail-below compared nothing"),
        "{}",
        stderr(&none)
    );
    for bad in [file("empty", String::new()), "/nowhere/old.json".to_owned()] {
        refused(gpumon(&["bench", "copy", "--compare", &bad]), 2, &bad);
    }
}

#[test]
fn on_a_terminal_one_line_says_how_far_it_is_and_goes_before_anything_is_printed() {
    let cuda = FakeCuda::new("kernel_ms = 40");
    let run = ["bench", "copy", "add", "--quick", "--size", "1000"];
    let mut terminal = Terminal::with(cuda.gpumon(&run), 120, 50);
    terminal.until(|text| {
        text.contains("copy: measuring") && text.contains("1/2") && text.contains("[#")
    });
    let (text, code) = terminal.finish();
    assert_eq!(code, Some(0), "{text}");
    let erased = "\r\u{1b}[K";
    let parts: Vec<_> = text.split(erased).collect();
    let rows: Vec<_> = parts.iter().filter(|part| part.contains('\n')).collect();
    assert_eq!(
        rows.len(),
        2,
        "a result each, both in an empty line: {text:?}"
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
    let mut dumb = cuda.gpumon(&run);
    dumb.env("TERM", "dumb");
    let (text, code) = Terminal::with(dumb, 120, 50).finish();
    assert!(
        code == Some(0) && !text.contains("measuring") && !text.contains('\u{1b}'),
        "{text:?}"
    );
}
