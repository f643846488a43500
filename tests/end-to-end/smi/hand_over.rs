//! Commands that gpumon does not support are passed to NVIDIA's nvidia-smi, here a script that
//! prints its arguments.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::Write,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{PermissionsExt, symlink},
        process::ExitStatusExt,
    },
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::support::{Fake, copy_program, eventually, stderr, stdout};

const GPUMON: &str = env!("CARGO_BIN_EXE_gpumon");

/// Returns a folder for a file `nvidia-smi`.
fn folder(fake: &Fake, name: &str) -> PathBuf {
    let folder = fake.path(name);
    fs::create_dir(&folder).unwrap();
    folder.join("nvidia-smi")
}

fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn linked(fake: &Fake) -> PathBuf {
    let link = folder(fake, "linked");
    symlink(GPUMON, &link).unwrap();
    link
}

/// Creates a tool that prints its arguments, each after a zero byte, and exits with 7.
fn real(fake: &Fake) -> PathBuf {
    let real = folder(fake, "real");
    script(&real, r#"printf '\0%s' "$@"; exit 7"#);
    real
}

fn path(programs: &[&Path]) -> OsString {
    std::env::join_paths(programs.iter().map(|program| program.parent().unwrap())).unwrap()
}

/// Returns this program over the fake library, with these folders in `PATH`.
fn over(fake: &Fake, program: &Path, arguments: &[&OsStr], programs: &[&Path]) -> Command {
    let mut command = Command::new(program);
    let given = fake.gpumon(&[]);
    command.args(arguments).envs(
        given
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    command
        .env("PATH", path(programs))
        .env_remove("GPUMON_SMI_TRIED")
        .env_remove("GPUMON_SOURCE");
    command
}

#[track_caller]
fn assert_reached(output: &Output, arguments: &[&OsStr]) {
    let expected: Vec<u8> = arguments
        .iter()
        .flat_map(|word| [&b"\0"[..], word.as_bytes()].concat())
        .collect();
    assert_eq!(
        (&output.stdout, output.status.code()),
        (&expected, Some(7)),
        "{}",
        stderr(output)
    );
    assert_eq!(stderr(output), "");
}

fn words(line: &str) -> Vec<&OsStr> {
    line.split_whitespace().map(OsStr::new).collect()
}

/// Command lines that gpumon passes on: changes, data that NVML does not provide, unknown options,
/// and unsupported features.
const LEFT: [&str; 56] = [
    "-pm 1",
    "-lgc",
    "-lgc 1500,1500 -i 0",
    "--gpu-reset -i 9",
    "-r",
    "-q -pl 300",
    "mig -cgi 9,9 -C",
    "mig -dgi -gi 1",
    "nvlink -re",
    "drain -p 0000:01:00.0 -m 1",
    "drain -p 0000:01:00.0 -m",
    "conf-compute -srs 1",
    "vgpu -shm 1",
    "nvlink -ec",
    "base-clocks",
    "boost-slider -l",
    "c2c -s",
    "clocks -h",
    "compute-policy -l",
    "conf-compute -f",
    "drain -q -p 0000:01:00.0",
    "encodersessions -c 1",
    "fbcsessions",
    "gpm -g",
    "mig -lgi",
    "mig -h -cgi 9",
    "pci -gErrCnt",
    "power-profiles -l",
    "power-smoothing",
    "prm -l",
    "power-hint -l",
    "vgpu",
    "daemon",
    "replay -f /nowhere",
    "-B",
    "-q -u",
    "-col 2",
    "--get-hostname",
    "--debug=/nowhere",
    "--bogus",
    "tomorrows-command --set x",
    "-q --tomorrow=1",
    "topo --bogus",
    "dmon --bogus",
    // These options exist in drivers 590 to 610.
    "-svfd -30",
    "-gvfd",
    "-lmci -i 0",
    "--show-all-processes",
    "-q --show-all-processes",
    "rusd -h",
    "soc -h",
    "event-log",
    "cper",
    "topo -cpu",
    "nvlink --dataRate",
    "prm -c 1",
];

#[test]
fn what_gpumon_does_not_do_reaches_the_real_tool_byte_for_byte() {
    let fake = Fake::new("gpus = 2");
    let (linked, real) = (linked(&fake), real(&fake));
    for line in LEFT {
        let by_name = over(&fake, &linked, &words(line), &[&linked, &real])
            .output()
            .unwrap();
        assert_reached(&by_name, &words(line));
        let named = format!("smi {line}");
        assert_reached(
            &over(&fake, Path::new(GPUMON), &words(&named), &[&linked, &real])
                .output()
                .unwrap(),
            &words(line),
        );
    }
    let bytes = OsString::from_vec(b"\xff \xc3\n$x".to_vec());
    let odd = [OsStr::new("--set-hostname"), &bytes, OsStr::new("")];
    assert_reached(
        &over(&fake, &linked, &odd, &[&linked, &real])
            .output()
            .unwrap(),
        &odd,
    );
    let own = [&["smi", "--no-daemon"].map(OsStr::new)[..], &odd].concat();
    assert_reached(
        &over(&fake, Path::new(GPUMON), &own, &[&linked, &real])
            .output()
            .unwrap(),
        &odd,
    );
}

#[test]
fn what_gpumon_does_and_what_is_typed_wrong_stays_with_gpumon() {
    let fake = Fake::new("gpus = 1");
    let (linked, real) = (linked(&fake), real(&fake));
    for (line, code) in [
        ("-L", 0),
        ("-h -pm 1", 0),
        ("nvlink -h -re", 0),
        ("-i 9", 6),
        ("-q -d BOGUS", 2),
        ("-L -i 7", 2),
        ("-q -d", 255),
        ("--query-gpu=bogus --format=csv", 2),
        ("--format=csv", 255),
        ("nvlink -s -l", 2),
        ("nvlink -s -l x", 2),
        ("pmon -c 1 -s z", 255),
    ] {
        let alone = over(&fake, &linked, &words(line), &[&linked])
            .output()
            .unwrap();
        let beside = over(&fake, &linked, &words(line), &[&linked, &real])
            .output()
            .unwrap();
        assert_eq!(
            (beside.status.code(), alone.status.code()),
            (Some(code), Some(code)),
            "{line}"
        );
        let shown = |output| super::snapshots::without_time(&stdout(output));
        assert_eq!(shown(&beside), shown(&alone), "{line}");
    }
}

#[test]
fn where_there_is_none_it_is_refused() {
    let fake = Fake::new("gpus = 1");
    let linked = linked(&fake);
    let again = folder(&fake, "again");
    symlink(&linked, &again).unwrap();
    let hard = folder(&fake, "hard");
    // If the build is on another file system, a hard link is not possible.
    let _ = fs::hard_link(GPUMON, &hard);
    let dangling = folder(&fake, "dangling");
    symlink("/nowhere/nvidia-smi", &dangling).unwrap();
    let inert = folder(&fake, "inert");
    fs::write(&inert, "#!/bin/sh\nexit 7\n").unwrap();
    let directory = folder(&fake, "directory");
    fs::create_dir(&directory).unwrap();
    let empty = folder(&fake, "empty");
    let none = [
        &linked, &linked, &again, &hard, &dangling, &inert, &directory, &empty,
    ]
    .map(PathBuf::as_path);
    for (line, code, text) in [
        (
            "-pm 1",
            3,
            "gpumon: '-pm' changes the GPU, which gpumon never does; use NVIDIA's own nvidia-smi for it\n",
        ),
        (
            "nvlink -ec",
            3,
            "gpumon: 'nvlink -ec' is not part of gpumon; use NVIDIA's own nvidia-smi for it\n",
        ),
        (
            "mig -lgi",
            3,
            "gpumon: 'mig' is not part of gpumon; use NVIDIA's own nvidia-smi for it\n",
        ),
        (
            "-q -u",
            3,
            "gpumon: '-u' is not part of gpumon; use NVIDIA's own nvidia-smi for it\n",
        ),
        (
            "--bogus",
            255,
            "ERROR: Option --bogus is not recognized. Please run 'nvidia-smi -h'.\n\n",
        ),
        ("topo --bogus", 2, "Option \"--bogus\" is not recognized.\n"),
    ] {
        let refused = over(&fake, &linked, &words(line), &none).output().unwrap();
        assert_eq!(
            (stdout(&refused).as_str(), refused.status.code()),
            (text, Some(code)),
            "{line}"
        );
        assert_eq!(stderr(&refused), "");
        let nowhere = over(&fake, &linked, &words(line), &none)
            .env_remove("PATH")
            .output()
            .unwrap();
        assert_eq!(
            (stdout(&nowhere).as_str(), nowhere.status.code()),
            (text, Some(code)),
            "{line}"
        );
    }
    // The real tool is found after all of these.
    let real = real(&fake);
    let all = [&none[..], &[&real]].concat();
    assert_reached(
        &over(&fake, &linked, &words("-pm 1"), &all)
            .output()
            .unwrap(),
        &words("-pm 1"),
    );
}

#[test]
fn copies_and_scripts_that_start_gpumon_do_not_run_each_other_for_ever() {
    let fake = Fake::new("gpus = 1");
    let copies = ["one", "two"].map(|name| folder(&fake, name));
    for copy in &copies {
        copy_program(GPUMON, copy);
    }
    let wrapper = folder(&fake, "wrapper");
    script(&wrapper, &format!("exec '{GPUMON}' smi \"$@\""));
    let all = [&copies[0], &wrapper, &copies[1]].map(PathBuf::as_path);
    let refused = over(&fake, &copies[0], &words("-pm 1"), &all)
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(3), "{}", stderr(&refused));
    assert!(
        stdout(&refused).starts_with("gpumon: '-pm' changes the GPU"),
        "{}",
        stdout(&refused)
    );
    let real = real(&fake);
    for first in all {
        let reached = over(
            &fake,
            first,
            &words("-pm 1"),
            &[&all[..], &[&real]].concat(),
        )
        .output()
        .unwrap();
        assert_reached(&reached, &words("-pm 1"));
    }
}

#[test]
fn a_tool_that_cannot_run_is_told_and_the_next_one_runs() {
    let fake = Fake::new("gpus = 1");
    let (linked, broken) = (linked(&fake), folder(&fake, "broken"));
    fs::write(&broken, "#!/nowhere/sh\n").unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    let refused = over(&fake, &linked, &words("-pm 1"), &[&linked, &broken])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(3));
    let said = stderr(&refused);
    assert!(
        said.starts_with(&format!("gpumon: cannot run {}: ", broken.display())),
        "{said}"
    );
    assert!(
        said.ends_with("; repair it, or remove it from PATH\n"),
        "{said}"
    );
    let real = real(&fake);
    let reached = over(&fake, &linked, &words("-pm 1"), &[&linked, &broken, &real])
        .output()
        .unwrap();
    assert_eq!(
        (reached.status.code(), stdout(&reached).as_str()),
        (Some(7), "\0-pm\x001")
    );
}

#[test]
fn signals_input_and_process_are_its_own() {
    let fake = Fake::new("gpus = 1");
    let (linked, real) = (linked(&fake), folder(&fake, "real"));
    let pid = fake.path("pid");
    script(
        &real,
        &format!(
            "read word; echo \"$word\"; echo $$ > '{}'; kill -TERM $$",
            pid.display()
        ),
    );
    let mut command = over(&fake, &linked, &words("-pm 1"), &[&linked, &real]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"yes\n").unwrap();
    eventually("it has told who it is", || {
        fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n'))
    });
    assert_eq!(
        fs::read_to_string(&pid).unwrap().trim(),
        child.id().to_string(),
        "it is the same process"
    );
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.signal(), stdout(&output).as_str()),
        (Some(15), "yes\n")
    );
}

#[test]
fn neither_simulated_gpus_nor_plain_gpumon_reach_it() {
    let fake = Fake::new("gpus = 1");
    let (linked, real) = (linked(&fake), real(&fake));
    let refused = |command: &mut Command| {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{command:?}");
        assert!(
            stdout(&output).starts_with("gpumon: '-pm' changes the GPU"),
            "{}",
            stdout(&output)
        );
    };
    refused(over(&fake, &linked, &words("-pm 1"), &[&linked, &real]).env("GPUMON_SOURCE", "sim:1"));
    for line in ["smi --source sim:1 -pm 1", "-pm 1"] {
        refused(&mut over(
            &fake,
            Path::new(GPUMON),
            &words(line),
            &[&linked, &real],
        ));
    }
}

/// The real tool is called without waiting for a driver that is missing or hangs.
#[test]
fn a_change_needs_no_driver_of_gpumons() {
    let fake = Fake::new("gpus = 1\ninit_error = { code = 9 }");
    let (linked, real) = (linked(&fake), real(&fake));
    for line in ["mig -cgi 9", "drain -p 0000:01:00.0 -m 1", "topo --bogus"] {
        assert_reached(
            &over(&fake, &linked, &words(line), &[&linked, &real])
                .output()
                .unwrap(),
            &words(line),
        );
    }
}
