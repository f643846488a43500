//! `gpumon bench --beside`, with stub modules instead of frameworks.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use serde_json::Value;

use crate::support::{
    FakeCuda, assert_refused, assert_refused_with, gpumon_command, run_json_lines, stderr_text,
    stdout_text,
};

/// A Python environment that only has its standard library and, if requested, the stub frameworks.
struct PythonEnvironment {
    folder: tempfile::TempDir,
    has_frameworks: bool,
}

impl PythonEnvironment {
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
    fn add_environment_to_command(&self, mut command: Command) -> Command {
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

fn make_command_without_gpu(arguments: &[&str]) -> Command {
    let mut command = gpumon_command(arguments);
    command.env("GPUMON_LIBCUDA", "/nowhere/libcuda.so.1");
    command
}

/// Returns the results of frameworks, for each line that has some.
fn framework_results(lines: &[Value]) -> Vec<&Value> {
    lines
        .iter()
        .filter_map(|line| line["beside"].as_array())
        .flatten()
        .collect()
}

#[test]
fn framework_on_cpu_is_verified_and_compared() {
    let python = PythonEnvironment::new(true);
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
    let (code, lines, said) =
        run_json_lines(python.add_environment_to_command(make_command_without_gpu(&arguments)));
    assert_eq!(code, Some(0), "{said}");
    let without: Vec<_> = lines
        .iter()
        .filter(|line| line["beside"].is_null())
        .collect();
    assert!(
        without.iter().all(|line| line["row"] == "j"),
        "only row j has no result of a framework: {without:?}"
    );
    let runs = framework_results(&lines);
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
    let mut command = python.add_environment_to_command(make_command_without_gpu(&[
        "tutorials",
        "i",
        "--quick",
        "--beside",
    ]));
    let output = command.current_dir(python.folder.path()).output().unwrap();
    let (text, said) = (stdout_text(&output), stderr_text(&output));
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
fn framework_uses_same_gpu_and_includes_copies() {
    let (python, cuda) = (PythonEnvironment::new(true), FakeCuda::new(""));
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
    let (code, lines, said) =
        run_json_lines(python.add_environment_to_command(cuda.gpumon_command(&arguments)));
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
    assert!(framework_results(&lines).len() > 8, "{lines:?}");
    let output = python
        .add_environment_to_command(
            cuda.gpumon_command(&["bench", "triad", "--quick", "--beside", "--size", "10007"]),
        )
        .output();
    let text = stdout_text(&output.unwrap());
    let line = text
        .lines()
        .find(|line| line.starts_with("  CuPy 0.stub "))
        .unwrap_or_else(|| panic!("{text}"));
    assert!(
        line.contains(" fp32 ") && line.contains(" verified  gpumon is "),
        "{text}"
    );
    cuda.assert_resources_released();
}

#[test]
fn bench_continues_after_error_in_framework() {
    let python = PythonEnvironment::new(true);
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
            let mut command =
                python.add_environment_to_command(make_command_without_gpu(&arguments));
            command.env("STUB_FAULT", fault);
            command
        };
        let (code, lines, said) = run_json_lines(run(&["--json"]));
        assert_eq!((code, lines.len()), (Some(0), 2), "{fault}: {said}");
        assert!(
            lines
                .iter()
                .all(|line| line["outcome"]["verify"]["ok"] == true),
            "{fault}: {lines:?}"
        );
        let runs = framework_results(&lines);
        assert_eq!(runs.len(), rows, "{fault}: {runs:?}");
        assert!(
            runs.iter().all(|run| run["ratio"].is_null()),
            "wrong results are not compared: {runs:?}"
        );
        let text = stdout_text(&run(&[]).output().unwrap());
        assert_eq!(text.matches(words).count(), rows, "{fault}: {text}");
    }
}

#[test]
fn missing_framework_is_refused_with_remedy() {
    let python = PythonEnvironment::new(false);
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
    let output = python
        .add_environment_to_command(make_command_without_gpu(&arguments))
        .output()
        .unwrap();
    let said = stderr_text(&output);
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
        (
            "/nowhere/python3",
            "the process could not be started: No such file",
        ),
        ("/bin/true", "the process ended"),
    ] {
        for arguments in [&arguments[..], &several, &tutorials] {
            let command = make_command_without_gpu(&[arguments, &["--python", program]].concat());
            assert_eq!(
                assert_refused_with(command, 2, &[words, program, "with --python"]),
                ""
            );
        }
    }
    assert_refused(
        make_command_without_gpu(&["tutorials", "a", "--python", "python3"]),
        2,
        "--beside",
    );
}
