//! `gpumon bench --beside`, with stub modules instead of frameworks.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use serde_json::Value;

use crate::support::{FakeCuda, gpumon, lines_of, refused, refused_with, stderr, stdout};

/// A Python environment that only has its standard library and, if requested, the stub frameworks.
struct Python {
    folder: tempfile::TempDir,
    has_frameworks: bool,
}

impl Python {
    fn new(has_frameworks: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bin/python3");
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(&path, "#!/bin/sh\nexec python3 -S \"$@\"\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self {
            folder,
            has_frameworks,
        }
    }

    /// Returns the command in this environment.
    fn active(&self, mut command: Command) -> Command {
        let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end-to-end/frameworks");
        command
            .env("VIRTUAL_ENV", self.folder.path())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env_remove("PYTHONPATH");
        if self.has_frameworks {
            command.env("PYTHONPATH", modules);
        }
        command
    }
}

fn without_gpu(arguments: &[&str]) -> Command {
    let mut command = gpumon(arguments);
    command.env("GPUMON_LIBCUDA", "/nowhere/libcuda.so.1");
    command
}

/// Returns the results of frameworks, for each line that has some.
fn beside(lines: &[Value]) -> Vec<&Value> {
    lines
        .iter()
        .filter_map(|line| line["beside"].as_array())
        .flatten()
        .collect()
}

#[test]
fn a_framework_runs_the_same_cases_on_the_cpu_and_is_verified_and_compared() {
    let python = Python::new(true);
    let arguments = [
        "tutorials",
        "a",
        "c",
        "f",
        "g",
        "i",
        "j",
        "--quick",
        "--backend",
        "cpu",
        "--beside",
        "--json",
    ];
    let (code, lines, said) = lines_of(python.active(without_gpu(&arguments)));
    assert_eq!(code, Some(0), "{said}");
    let without: Vec<_> = lines
        .iter()
        .filter(|line| line["beside"].is_null())
        .collect();
    assert!(
        without.iter().all(|line| line["row"] == "j"),
        "that is no framework's: {without:?}"
    );
    let runs = beside(&lines);
    assert_eq!(runs.len(), 2 * (lines.len() - without.len()), "{lines:?}");
    assert!(
        runs.chunks(2)
            .all(|runs| runs[0]["name"] == "NumPy" && runs[1]["name"] == "PyTorch"),
        "{runs:?}"
    );
    let each = lines.iter().flat_map(|line| {
        line["beside"]
            .as_array()
            .into_iter()
            .flatten()
            .map(move |run| (line, run))
    });
    for (line, run) in each {
        assert!(
            run["version"].as_str().unwrap().starts_with("0.stub"),
            "{run}"
        );
        assert_eq!(run["verify"]["ok"], true, "{run}");
        assert!(
            run["verify"]["checked"].as_u64() > Some(1000)
                && run["host_time"]["n"].as_u64() >= Some(10),
            "{run}"
        );
        let ratio = run["host_time"]["median_us"].as_f64().unwrap()
            / line["outcome"]["host_time"]["median_us"].as_f64().unwrap();
        assert!(
            (run["ratio"].as_f64().unwrap() / ratio - 1.0).abs() < 1e-9,
            "{line}"
        );
    }
    // Python must not import modules from the working directory.
    fs::write(
        python.folder.path().join("json.py"),
        "raise SystemExit('not this')",
    )
    .unwrap();
    let mut command = python.active(without_gpu(&["tutorials", "i", "--quick", "--beside"]));
    let output = command.current_dir(python.folder.path()).output().unwrap();
    let (text, said) = (stdout(&output), stderr(&output));
    assert!(
        said.contains(&format!(
            "{}/bin/python3: NumPy, CuPy, PyTorch",
            python.folder.path().display()
        )),
        "{said}"
    );
    let below: Vec<_> = text
        .split_once("   CPU one pass ")
        .unwrap()
        .1
        .lines()
        .skip(1)
        .collect();
    for (line, name) in below.iter().zip(["NumPy", "PyTorch"]) {
        assert!(
            line.starts_with(&format!("      {name} 0.stub "))
                && line.contains(" verified  gpumon is "),
            "{text}"
        );
    }
}

#[test]
fn a_framework_of_the_gpu_gets_the_same_gpu_and_the_copies_where_they_belong_to_it() {
    let (python, cuda) = (Python::new(true), FakeCuda::new(""));
    let arguments = [
        "tutorials",
        "a",
        "c",
        "f",
        "h",
        "i",
        "--quick",
        "--backend",
        "cuda",
        "--beside",
        "--json",
    ];
    let (code, lines, said) = lines_of(python.active(cuda.gpumon(&arguments)));
    assert_eq!(code, Some(0), "{said}");
    for line in &lines {
        let runs = line["beside"].as_array().unwrap();
        assert!(runs.iter().all(|run| run["verify"]["ok"] == true), "{line}");
        let names: Vec<_> = runs
            .iter()
            .map(|run| run["name"].as_str().unwrap())
            .collect();
        let has_tf32 = line["outcome"]["dtype"] == "tf32";
        assert_eq!(
            names,
            if has_tf32 {
                &["PyTorch"][..]
            } else {
                &["CuPy", "PyTorch"]
            },
            "{line}"
        );
    }
    assert!(beside(&lines).len() > 8, "{lines:?}");
    let output = python
        .active(cuda.gpumon(&["bench", "triad", "--quick", "--beside", "--size", "10007"]))
        .output();
    let text = stdout(&output.unwrap());
    let line = text
        .lines()
        .find(|line| line.starts_with("  CuPy 0.stub "))
        .unwrap_or_else(|| panic!("{text}"));
    assert!(
        line.contains(" fp32 ") && line.contains(" verified  gpumon is "),
        "{text}"
    );
    cuda.counters_at_rest();
}

#[test]
fn what_goes_wrong_in_a_framework_is_told_in_its_row_and_the_run_goes_on() {
    let python = Python::new(true);
    for (fault, words, rows) in [
        ("wrong", "mismatch: ", 4),
        ("raise", "failed: MemoryError: 12 GiB", 4),
        ("crash", "failed: the process ended: signal: 11", 4),
        (
            "import",
            "failed: the process ended: ImportError: libstub.so.1: cannot open shared object file",
            2,
        ),
    ] {
        let run = |last: &[&str]| {
            let arguments = [
                &["tutorials", "f", "--quick", "--backend", "cpu", "--beside"],
                last,
            ]
            .concat();
            let mut command = python.active(without_gpu(&arguments));
            command.env("STUB_FAULT", fault);
            command
        };
        let (code, lines, said) = lines_of(run(&["--json"]));
        assert_eq!((code, lines.len()), (Some(0), 2), "{fault}: {said}");
        assert!(
            lines
                .iter()
                .all(|line| line["outcome"]["verify"]["ok"] == true),
            "{fault}: {lines:?}"
        );
        let runs = beside(&lines);
        assert_eq!(runs.len(), rows, "{fault}: {runs:?}");
        assert!(
            runs.iter().all(|run| run["ratio"].is_null()),
            "what is not right is not compared: {runs:?}"
        );
        let text = stdout(&run(&[]).output().unwrap());
        assert_eq!(text.matches(words).count(), rows, "{fault}: {text}");
    }
}

#[test]
fn what_is_to_be_installed_or_named_is_said() {
    let python = Python::new(false);
    let arguments = [
        "bench",
        "triad",
        "--quick",
        "--backend",
        "cpu",
        "--size",
        "10007",
        "--beside",
    ];
    let output = python.active(without_gpu(&arguments)).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("install one of numpy, numba, cupy-cuda13x, torch, jax"),
        "{said}"
    );
    let several = [
        "bench",
        "copy",
        "triad",
        "--quick",
        "--backend",
        "cpu",
        "--beside",
    ];
    let tutorials = ["tutorials", "--quick", "--backend", "cpu", "--beside"];
    for (program, words) in [
        ("/nowhere/python3", "it does not start: No such file"),
        ("/bin/true", "the process ended"),
    ] {
        for arguments in [&arguments[..], &several, &tutorials] {
            let command = without_gpu(&[arguments, &["--python", program]].concat());
            assert_eq!(
                refused_with(command, 2, &[words, program, "with --python"]),
                ""
            );
        }
    }
    refused(
        without_gpu(&["tutorials", "a", "--python", "python3"]),
        2,
        "--beside",
    );
}
