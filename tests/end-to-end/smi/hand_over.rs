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

use crate::support::{FakeNvml, copy_program, stderr_text, stdout_text, wait_for_condition};

const GPUMON: &str = env!("CARGO_BIN_EXE_gpumon");

/// Returns a folder for a file `nvidia-smi`.
fn create_tool_folder(fake: &FakeNvml, name: &str) -> PathBuf {
    let folder = fake.path(name);
    fs::create_dir(&folder).unwrap();
    folder.join("nvidia-smi")
}

fn write_script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn link_gpumon(fake: &FakeNvml) -> PathBuf {
    let link = create_tool_folder(fake, "linked");
    symlink(GPUMON, &link).unwrap();
    link
}

/// Creates a tool that prints its arguments, each after a zero byte, and exits with 7.
fn create_fake_nvidia_smi(fake: &FakeNvml) -> PathBuf {
    let real = create_tool_folder(fake, "real");
    write_script(&real, r#"printf '\0%s' "$@"; exit 7"#);
    real
}

fn make_path_variable(programs: &[&Path]) -> OsString {
    std::env::join_paths(programs.iter().map(|program| program.parent().unwrap())).unwrap()
}

/// Returns this program with the fake NVML library, and with these folders in `PATH`.
fn make_command(
    fake: &FakeNvml,
    program: &Path,
    arguments: &[&OsStr],
    programs: &[&Path],
) -> Command {
    let mut command = Command::new(program);
    let given = fake.gpumon_command(&[]);
    command.args(arguments).envs(
        given
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    command
        .env("PATH", make_path_variable(programs))
        .env_remove("GPUMON_SMI_TRIED")
        .env_remove("GPUMON_SOURCE");
    command
}

#[track_caller]
fn assert_nvidia_smi_was_reached(output: &Output, arguments: &[&OsStr]) {
    let expected: Vec<u8> = arguments
        .iter()
        .flat_map(|word| [&b"\0"[..], word.as_bytes()].concat())
        .collect();
    assert_eq!(
        (&output.stdout, output.status.code()),
        (&expected, Some(7)),
        "{}",
        stderr_text(output)
    );
    assert_eq!(stderr_text(output), "");
}

fn split_into_os_strings(line: &str) -> Vec<&OsStr> {
    line.split_whitespace().map(OsStr::new).collect()
}

/// Command lines that gpumon passes on: changes, data that NVML does not provide, unknown options,
/// and unsupported features.
const FORWARDED_COMMANDS: [&str; 56] = [
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
    // Only drivers 590 to 610 have these options.
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
fn unsupported_commands_reach_real_nvidia_smi_unchanged() {
    let fake = FakeNvml::new("gpus = 2");
    let (linked, real) = (link_gpumon(&fake), create_fake_nvidia_smi(&fake));
    for line in FORWARDED_COMMANDS {
        let by_name = make_command(
            &fake,
            &linked,
            &split_into_os_strings(line),
            &[&linked, &real],
        )
        .output()
        .unwrap();
        assert_nvidia_smi_was_reached(&by_name, &split_into_os_strings(line));
        let named = format!("smi {line}");
        assert_nvidia_smi_was_reached(
            &make_command(
                &fake,
                Path::new(GPUMON),
                &split_into_os_strings(&named),
                &[&linked, &real],
            )
            .output()
            .unwrap(),
            &split_into_os_strings(line),
        );
    }
    let bytes = OsString::from_vec(b"\xff \xc3\n$x".to_vec());
    let odd = [OsStr::new("--set-hostname"), &bytes, OsStr::new("")];
    assert_nvidia_smi_was_reached(
        &make_command(&fake, &linked, &odd, &[&linked, &real])
            .output()
            .unwrap(),
        &odd,
    );
    let own = [&["smi", "--no-daemon"].map(OsStr::new)[..], &odd].concat();
    assert_nvidia_smi_was_reached(
        &make_command(&fake, Path::new(GPUMON), &own, &[&linked, &real])
            .output()
            .unwrap(),
        &odd,
    );
}

#[test]
fn supported_and_invalid_commands_stay_with_gpumon() {
    let fake = FakeNvml::new("gpus = 1");
    let (linked, real) = (link_gpumon(&fake), create_fake_nvidia_smi(&fake));
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
        let alone = make_command(&fake, &linked, &split_into_os_strings(line), &[&linked])
            .output()
            .unwrap();
        let linked_output = make_command(
            &fake,
            &linked,
            &split_into_os_strings(line),
            &[&linked, &real],
        )
        .output()
        .unwrap();
        assert_eq!(
            (linked_output.status.code(), alone.status.code()),
            (Some(code), Some(code)),
            "{line}"
        );
        let shown = |output| super::snapshots::mask_times(&stdout_text(output));
        assert_eq!(shown(&linked_output), shown(&alone), "{line}");
    }
}

#[test]
fn command_is_refused_without_real_nvidia_smi() {
    let fake = FakeNvml::new("gpus = 1");
    let linked = link_gpumon(&fake);
    let again = create_tool_folder(&fake, "again");
    symlink(&linked, &again).unwrap();
    let hard = create_tool_folder(&fake, "hard");
    // A hard link is not possible if the build is on another file system.
    let _ = fs::hard_link(GPUMON, &hard);
    let dangling = create_tool_folder(&fake, "dangling");
    symlink("/nowhere/nvidia-smi", &dangling).unwrap();
    let inert = create_tool_folder(&fake, "inert");
    fs::write(&inert, "#!/bin/sh\nexit 7\n").unwrap();
    let directory = create_tool_folder(&fake, "directory");
    fs::create_dir(&directory).unwrap();
    let empty = create_tool_folder(&fake, "empty");
    let none = [
        &linked, &linked, &again, &hard, &dangling, &inert, &directory, &empty,
    ]
    .map(PathBuf::as_path);
    for (line, code, text) in [
        (
            "-pm 1",
            3,
            "gpumon: '-pm' changes the GPU, which gpumon never does; use NVIDIA's own nvidia-smi \
             for it\n",
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
        let refused = make_command(&fake, &linked, &split_into_os_strings(line), &none)
            .output()
            .unwrap();
        assert_eq!(
            (stdout_text(&refused).as_str(), refused.status.code()),
            (text, Some(code)),
            "{line}"
        );
        assert_eq!(stderr_text(&refused), "");
        let nowhere = make_command(&fake, &linked, &split_into_os_strings(line), &none)
            .env_remove("PATH")
            .output()
            .unwrap();
        assert_eq!(
            (stdout_text(&nowhere).as_str(), nowhere.status.code()),
            (text, Some(code)),
            "{line}"
        );
    }
    // gpumon finds the real tool, although all of these folders come before it in `PATH`.
    let real = create_fake_nvidia_smi(&fake);
    let all = [&none[..], &[&real]].concat();
    assert_nvidia_smi_was_reached(
        &make_command(&fake, &linked, &split_into_os_strings("-pm 1"), &all)
            .output()
            .unwrap(),
        &split_into_os_strings("-pm 1"),
    );
}

#[test]
fn gpumon_copies_and_wrapper_scripts_cause_no_loop() {
    let fake = FakeNvml::new("gpus = 1");
    let copies = ["one", "two"].map(|name| create_tool_folder(&fake, name));
    for copy in &copies {
        copy_program(GPUMON, copy);
    }
    let wrapper = create_tool_folder(&fake, "wrapper");
    write_script(&wrapper, &format!("exec '{GPUMON}' smi \"$@\""));
    let all = [&copies[0], &wrapper, &copies[1]].map(PathBuf::as_path);
    let refused = make_command(&fake, &copies[0], &split_into_os_strings("-pm 1"), &all)
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(3), "{}", stderr_text(&refused));
    assert!(
        stdout_text(&refused).starts_with("gpumon: '-pm' changes the GPU"),
        "{}",
        stdout_text(&refused)
    );
    let real = create_fake_nvidia_smi(&fake);
    for first in all {
        let reached = make_command(
            &fake,
            first,
            &split_into_os_strings("-pm 1"),
            &[&all[..], &[&real]].concat(),
        )
        .output()
        .unwrap();
        assert_nvidia_smi_was_reached(&reached, &split_into_os_strings("-pm 1"));
    }
}

#[test]
fn unusable_nvidia_smi_is_skipped_with_message() {
    let fake = FakeNvml::new("gpus = 1");
    let (linked, broken) = (link_gpumon(&fake), create_tool_folder(&fake, "broken"));
    fs::write(&broken, "#!/nowhere/sh\n").unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    let refused = make_command(
        &fake,
        &linked,
        &split_into_os_strings("-pm 1"),
        &[&linked, &broken],
    )
    .output()
    .unwrap();
    assert_eq!(refused.status.code(), Some(3));
    let said = stderr_text(&refused);
    assert!(
        said.starts_with(&format!("gpumon: cannot run {}: ", broken.display())),
        "{said}"
    );
    assert!(
        said.ends_with("; repair it, or remove it from PATH\n"),
        "{said}"
    );
    let real = create_fake_nvidia_smi(&fake);
    let reached = make_command(
        &fake,
        &linked,
        &split_into_os_strings("-pm 1"),
        &[&linked, &broken, &real],
    )
    .output()
    .unwrap();
    assert_eq!(
        (reached.status.code(), stdout_text(&reached).as_str()),
        (Some(7), "\0-pm\x001")
    );
}

#[test]
fn real_nvidia_smi_receives_signals_and_input_directly() {
    let fake = FakeNvml::new("gpus = 1");
    let (linked, real) = (link_gpumon(&fake), create_tool_folder(&fake, "real"));
    let pid = fake.path("pid");
    write_script(
        &real,
        &format!(
            "read word; echo \"$word\"; echo $$ > '{}'; kill -TERM $$",
            pid.display()
        ),
    );
    let mut command = make_command(
        &fake,
        &linked,
        &split_into_os_strings("-pm 1"),
        &[&linked, &real],
    );
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"yes\n").unwrap();
    wait_for_condition("the real tool has written its PID", || {
        fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n'))
    });
    assert_eq!(
        fs::read_to_string(&pid).unwrap().trim(),
        child.id().to_string(),
        "the real tool must have the same PID"
    );
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.signal(), stdout_text(&output).as_str()),
        (Some(15), "yes\n")
    );
}

#[test]
fn simulated_gpus_and_other_commands_avoid_nvidia_smi() {
    let fake = FakeNvml::new("gpus = 1");
    let (linked, real) = (link_gpumon(&fake), create_fake_nvidia_smi(&fake));
    let refused = |command: &mut Command| {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{command:?}");
        assert!(
            stdout_text(&output).starts_with("gpumon: '-pm' changes the GPU"),
            "{}",
            stdout_text(&output)
        );
    };
    refused(
        make_command(
            &fake,
            &linked,
            &split_into_os_strings("-pm 1"),
            &[&linked, &real],
        )
        .env("GPUMON_SOURCE", "sim:1"),
    );
    for line in ["smi --source sim:1 -pm 1", "-pm 1"] {
        refused(&mut make_command(
            &fake,
            Path::new(GPUMON),
            &split_into_os_strings(line),
            &[&linked, &real],
        ));
    }
}

/// gpumon calls the real tool immediately, and does not wait for a driver that is missing or hangs.
#[test]
fn gpu_changing_command_reaches_nvidia_smi_without_driver() {
    let fake = FakeNvml::new("gpus = 1\ninit_error = { code = 9 }");
    let (linked, real) = (link_gpumon(&fake), create_fake_nvidia_smi(&fake));
    for line in ["mig -cgi 9", "drain -p 0000:01:00.0 -m 1", "topo --bogus"] {
        assert_nvidia_smi_was_reached(
            &make_command(
                &fake,
                &linked,
                &split_into_os_strings(line),
                &[&linked, &real],
            )
            .output()
            .unwrap(),
            &split_into_os_strings(line),
        );
    }
}
