//! `gpumon doctor --bundle`: an archive of diagnostics without personal data.

use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::support::{
    FakeNvml, Server, Tty, assert_refused, copy_program, gpumon_command, stderr_text, stdout_text,
    wait_for_condition,
};

/// Returns the bytes of the archive, and its files by name.
fn unpack_bundle(path: &Path) -> (Vec<u8>, BTreeMap<String, String>) {
    let mut bytes = Vec::new();
    GzDecoder::new(fs::File::open(path).unwrap())
        .read_to_end(&mut bytes)
        .unwrap();
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(bytes.as_slice()).entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry
            .path()
            .unwrap()
            .strip_prefix("gpumon-bundle")
            .unwrap()
            .display()
            .to_string();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        files.insert(name, text);
    }
    (bytes, files)
}

/// Runs the command. Returns its output, and the bytes and files of the archive.
fn create_bundle(
    command: &mut Command,
    path: &Path,
) -> (String, Vec<u8>, BTreeMap<String, String>) {
    let output = command
        .arg("--bundle")
        .arg(path)
        .arg("--yes")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    let (bytes, files) = unpack_bundle(path);
    (stdout_text(&output), bytes, files)
}

#[track_caller]
fn assert_has_none_of(bytes: &[u8], originals: &[&str]) {
    for original in originals {
        let at = bytes
            .windows(original.len())
            .position(|window| window.eq_ignore_ascii_case(original.as_bytes()));
        if let Some(at) = at {
            let around =
                String::from_utf8_lossy(&bytes[at.saturating_sub(80)..bytes.len().min(at + 80)]);
            panic!("{original:?} was not removed from {around:?}");
        }
    }
}

/// Returns all strings that are stored under `key`.
fn find_strings_by_key<'a>(value: &'a Value, key: &str) -> Vec<&'a str> {
    match value {
        Value::Object(object) => {
            let own = object.get(key).and_then(Value::as_str);
            own.into_iter()
                .chain(
                    object
                        .values()
                        .flat_map(|value| find_strings_by_key(value, key)),
                )
                .collect()
        }
        Value::Array(items) => items
            .iter()
            .flat_map(|item| find_strings_by_key(item, key))
            .collect(),
        _ => Vec::new(),
    }
}

#[test]
fn bundle_of_running_server_has_no_personal_data() {
    let fake = FakeNvml::new("");
    let folder = fake.path("home of zoe/top secret");
    fs::create_dir_all(folder.join("gpumon")).unwrap();
    let settings = "# hunter2\n[serve]\nalerts = \"hunter3\"\n[top]\ntheme = \"light\"\nhunter3 = \
                    \"hunter4\"\n";
    fs::write(folder.join("gpumon/config.toml"), settings).unwrap();
    let program = folder.join("se[cr]et+x");
    copy_program("/bin/sleep", &program);
    let mut process = Command::new(&program)
        .args(["600", "0.001"])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let scenario = format!(
        "gpus = 2\n[[gpu]]\nindex = 0\nprofile = \"idle\"\n\
         [[process]]\ngpu = 1\npid = {}\nmemory = \"1 GiB\"\n",
        process.id()
    );
    fs::write(fake.path("scenario.toml"), scenario).unwrap();
    let server = Server::start_with_fake(&fake, &["--interval-ms", "200"]);
    wait_for_condition("the server is ready", || {
        server.get("/readyz").status == 200
    });
    assert!(
        fake.gpumon_command(&["mark", "hunter5 begins"])
            .status()
            .unwrap()
            .success()
    );
    let real = fake.read_json();
    let processes = &real["sample"]["gpus"][1]["processes"];
    assert_eq!(processes[0]["name"], "se[cr]et+x");

    let mut command = fake.gpumon_command(&["doctor"]);
    command
        .env("HOME", &folder)
        .env("XDG_CONFIG_HOME", &folder)
        .env("USER", "memory")
        .env("NVIDIA_API_KEY", "hunter6")
        .env("GPUMON_TOKEN", "hunter7")
        .env("HF_TOKEN", "hunter8")
        .env("LD_LIBRARY_PATH", "/opt/hunter9 libs:/opt/hunter9")
        .env(
            "CUDA_VISIBLE_DEVICES",
            real["inventory"]["gpus"][1]["uuid"].as_str().unwrap(),
        );
    let path = fake.path("zoe.tar.gz");
    let (list, bytes, files) = create_bundle(&mut command, &path);
    process.kill().unwrap();
    process.wait().unwrap();

    let own = fake.path("");
    let own = own.file_name().unwrap().to_str().unwrap();
    let mut originals = vec!["hunter", "zoe", "top secret", "se[cr]et", "0.001", own];
    originals.extend(
        find_strings_by_key(&real, "uuid")
            .iter()
            .map(|uuid| uuid.trim_start_matches("GPU-")),
    );
    originals.extend(find_strings_by_key(&real, "serial"));
    assert_has_none_of(&bytes, &originals);

    let json = |name: &str| serde_json::from_str::<Value>(&files[name]).unwrap();
    let (sample, server) = (json("sample.json"), json("server.json"));
    let of = |snapshot: &Value| snapshot["sample"]["gpus"][1]["processes"][0].clone();
    assert_eq!(
        (&of(&sample)["name"], &of(&sample)["command"]),
        (&"program-1".into(), &"command-1".into())
    );
    assert_eq!(
        of(&server["snapshot"])["name"],
        "program-1",
        "the replacement is the same in every file"
    );
    assert!(
        sample["sample"]["gpus"][1]["memory"]["total_bytes"].is_u64(),
        "a key that is also a user's name must be kept"
    );
    assert_eq!(server["snapshot"]["collector"]["state"], "running");
    assert_eq!(
        find_strings_by_key(&server["snapshot"]["events"], "text"),
        ["text-1"]
    );
    let uuid = sample["inventory"]["gpus"][1]["uuid"].as_str().unwrap();
    assert!(uuid.starts_with("GPU-id-"), "{uuid}");
    let environment = &files["environment.txt"];
    assert!(
        environment.contains(&format!("CUDA_VISIBLE_DEVICES={uuid}\n")),
        "{environment}"
    );
    assert!(
        environment.contains("NVIDIA_API_KEY is set\n"),
        "{environment}"
    );
    assert!(
        environment.contains("LD_LIBRARY_PATH=path-"),
        "{environment}"
    );
    let settings = &files["config.toml"];
    assert!(
        settings.contains("top.theme = \"light\"\n# ")
            || settings.ends_with("top.theme = \"light\"\n"),
        "{settings}"
    );
    assert!(settings.contains("# serve.alerts is set\n"), "{settings}");
    assert!(
        settings.lines().next().unwrap().ends_with(": 1"),
        "{settings}"
    );
    assert!(
        files["doctor.txt"].contains("settings") && files["doctor.txt"].contains("has 1 mistake")
    );
    assert_eq!(json("versions.json")["gpumon"], env!("CARGO_PKG_VERSION"));
    assert!(
        json("versions.json")["libc"]
            .as_str()
            .unwrap()
            .starts_with("glibc 2.")
    );
    assert!(json("doctor.json")["checks"].as_array().unwrap().len() > 5);
    assert!(
        files["doctor.txt"].contains("ok       library       NVML"),
        "{}",
        files["doctor.txt"]
    );

    // The list names all files in advance.
    assert!(files.keys().all(|name| list.contains(name)), "{list}");
    let counted = |label: &str, count: u32| list.contains(&format!("\n  {label:16} {count:>9}\n"));
    assert!(
        counted("UUIDs and IDs", 2) && counted("command lines", 1) && counted("host names", 1),
        "{list}"
    );
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn bundle_replaces_names_with_special_characters() {
    let fake = FakeNvml::new("");
    let process = |gpu: u32, user: &str, name: &str, command: &str| {
        format!(
            "[[process]]\ngpu = {gpu}\npid = {gpu}\nuser = '{user}'\nname = '{name}'\ncommand = \
             '{command}'\n"
        )
    };
    let scenario = [
        process(0, "state", "na.*me", "./na.*me --token tok3n"),
        process(1, "a.*b(", "(x|", "python /home/a.*b(/x y/z.py"),
        process(2, "state", "größe", "größe"),
        process(3, "root", "python3.12", "python3.12"),
    ];
    fs::write(
        fake.path("scenario.toml"),
        format!("gpus = 4\n{}", scenario.concat()),
    )
    .unwrap();
    let source = format!("sim:{}", fake.path("scenario.toml").display());
    let (_, bytes, files) = create_bundle(
        &mut gpumon_command(&["--source", &source, "doctor", "--control", "/nowhere/x"]),
        &fake.path("b"),
    );
    assert_has_none_of(
        &bytes,
        &[
            "na.*me", "a.*b(", "(x|", "größe", "tok3n", "z.py", "nowhere",
        ],
    );
    let sample: Value = serde_json::from_str(&files["sample.json"]).unwrap();
    let users =
        [0, 1, 2, 3].map(|gpu| sample["sample"]["gpus"][gpu]["processes"][0]["user"].clone());
    assert_eq!(users, ["user-1", "user-2", "user-1", "root"], "{sample:#}");
    assert_eq!(
        sample["sample"]["gpus"][3]["processes"][0]["name"],
        "python3.12"
    );
    assert_eq!(sample["sample"]["gpus"][0]["health"]["state"], "ok");
}

#[test]
fn missing_sample_is_listed_with_reason() {
    let fake = FakeNvml::new("init_error = { code = 9 }");
    let mut nowhere = gpumon_command(&[
        "--nvml-lib",
        "my libs/hunter1.so",
        "doctor",
        "--control=hunter2.sock",
    ]);
    let nowhere = nowhere
        .current_dir(fake.path(""))
        .env("GPUMON_LIBCUDA", "hunter3/a b")
        .env("GPUMON_LIBCUBLAS", "hunter4.so");
    let (_, bytes, files) = create_bundle(nowhere, &fake.path("a.tar.gz"));
    assert_has_none_of(&bytes, &["hunter", "my libs", "a b"]);
    assert!(
        files["doctor.txt"].contains("problem  library") && files["doctor.txt"].contains("path-")
    );

    let (_, _, files) = create_bundle(
        &mut fake.gpumon_command(&["doctor"]),
        &fake.path("b.tar.gz"),
    );
    let sample: Value = serde_json::from_str(&files["sample.json"]).unwrap();
    assert!(
        sample["error"].as_str().unwrap().contains("driver"),
        "{sample}"
    );
    assert!(
        files["doctor.txt"].contains("problem  driver"),
        "{}",
        files["doctor.txt"]
    );
    let server: Value = serde_json::from_str(&files["server.json"]).unwrap();
    assert!(
        server["error"].as_str().unwrap().contains("gpumon serve"),
        "{server}"
    );
}

#[test]
fn bundle_needs_confirmation_and_never_overwrites_files() {
    let fake = FakeNvml::new("gpus = 1");
    let path = fake.path("b.tar.gz");
    let typed = path.to_str().unwrap();
    let list = assert_refused(
        fake.gpumon_command(&["doctor", "--bundle", typed]),
        2,
        "--yes",
    );
    assert!(list.contains("sample.json") && !path.exists(), "{list}");

    let mut unread = fake.gpumon_command(&["doctor", "--yes", "--bundle", typed]);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let unread = unread.stdout(full).stderr(Stdio::null()).status().unwrap();
    assert_eq!((unread.code(), path.exists()), (Some(1), false));

    let doctor = fake.gpumon_command(&["doctor", "--bundle", typed]);
    for (answer, code) in [("\r", 1), ("no\r", 1), ("y\r", 0)] {
        let mut terminal = Tty::start(&doctor, 80, 24);
        terminal.wait_for_text("[y/N]");
        assert!(!path.exists());
        terminal.press(answer);
        assert_eq!(
            (terminal.wait_for_end().code(), path.exists()),
            (Some(code), code == 0)
        );
    }
    let before = fs::read(&path).unwrap();
    assert_refused(
        fake.gpumon_command(&["doctor", "--yes", "--bundle", typed]),
        2,
        "choose another file",
    );
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_refused(
        fake.gpumon_command(&["doctor", "--yes", "--bundle", "/nowhere/b"]),
        1,
        "choose another file",
    );
    assert_refused(fake.gpumon_command(&["doctor", "--yes"]), 2, "--bundle");

    // By default, the file goes into the working directory, with the date in its name and no other
    // file next to it.
    let folder = fake.path("here");
    fs::create_dir(&folder).unwrap();
    let mut command = fake.gpumon_command(&["doctor", "--bundle", "--yes"]);
    assert!(
        command
            .current_dir(&folder)
            .output()
            .unwrap()
            .status
            .success()
    );
    let names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    let name = names[0].to_str().unwrap();
    assert!(
        names.len() == 1 && name.starts_with("gpumon-bundle-2") && name.ends_with(".tar.gz"),
        "{names:?}"
    );
}
