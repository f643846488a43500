//! The output of `gpumon` without a command.

use std::{
    io::{BufRead, BufReader},
    os::unix::ffi::OsStrExt,
    path::Path,
    process,
};

use serde_json::{Value, json};

use crate::support::{
    FakeNvml, Server, assert_refused_with, copy_program, gpumon_command, stderr_text, stdout_text,
};

#[test]
fn eight_gpus_are_in_table_and_json() {
    let fake = FakeNvml::new("gpus = 8");
    let table = stdout_text(&fake.gpumon_command(&[]).output().unwrap());
    let json = fake.read_json();
    let gpus = json["sample"]["gpus"].as_array().unwrap();
    assert_eq!(gpus.len(), 8);
    for (index, gpu) in gpus.iter().enumerate() {
        assert_eq!(gpu["index"], index);
        assert_eq!(gpu["health"]["state"], "ok");
        assert!(gpu["utilization"]["gpu_percent"].is_number(), "{gpu}");
        assert!(
            gpu["memory"]["used_bytes"].is_u64() && gpu["power"]["draw_watts"].is_number(),
            "{gpu}"
        );
        assert!(
            table
                .lines()
                .any(|line| line.trim_start().starts_with(&format!("{index} H200"))),
            "{table}"
        );
    }
    assert_eq!(json["inventory"]["platform"]["source"], "nvml");
    assert!(
        !table.contains("simulated"),
        "the fake library must look like a real driver: {table}"
    );
}

#[test]
fn process_is_listed_with_memory_user_and_command() {
    let mut sleeper = process::Command::new("sleep").arg("600").spawn().unwrap();
    let pid = sleeper.id();
    let fake = FakeNvml::new(&format!(
        "gpus = 1\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"12 GiB\"\nsm_percent = 40\n"
    ));
    let json = fake.read_json();
    let table = stdout_text(&fake.gpumon_command(&[]).output().unwrap());
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let process = &json["sample"]["gpus"][0]["processes"][0];
    assert_eq!(process["pid"], pid);
    assert_eq!(process["memory_bytes"], 12_u64 << 30);
    assert_eq!(process["name"], "sleep");
    assert_eq!(process["command"], "sleep 600");
    assert!(
        process["user"].is_string() && process["started_ms"].is_u64(),
        "{process}"
    );
    assert_eq!(process["owner"]["parents"][0]["pid"], std::process::id());
    let line = table
        .lines()
        .find(|line| line.contains(&pid.to_string()))
        .unwrap();
    assert!(
        line.contains("12.0 GiB") && line.contains("sleep 600"),
        "{line}"
    );
}

#[test]
fn visible_gpus_and_chosen_processes_are_shown() {
    let process = |gpu: u32, pid: u32, kind: &str| {
        format!("[[process]]\ngpu = {gpu}\npid = {pid}\nmemory = \"1 GiB\"\nkind = \"{kind}\"\n")
    };
    let scenario = ["gpus = 3\n".to_owned()]
        .into_iter()
        .chain([
            process(1, 4001, "compute"),
            process(2, 4002, "graphics"),
            process(2, 4003, "compute"),
        ])
        .collect::<String>();
    let fake = FakeNvml::new(&scenario);
    let table = |visible: Option<&str>, arguments: &[&str]| {
        let mut command = fake.gpumon_command(arguments);
        command.env_remove("CUDA_VISIBLE_DEVICES");
        command.envs(visible.map(|gpus| ("CUDA_VISIBLE_DEVICES", gpus)));
        stdout_text(&command.output().unwrap())
    };
    let has = |table: &str, gpus: [bool; 3], processes: [bool; 3]| {
        let is_gpu = |index: usize| table.contains(&format!("\n {index} H200"));
        let is_process = |at: usize| table.contains(&(4001 + at).to_string());
        let found = ([0, 1, 2].map(is_gpu), [0, 1, 2].map(is_process));
        assert_eq!(found, (gpus, processes), "{table}");
    };
    let all = [true; 3];
    has(&table(Some("2"), &[]), all, all);
    has(&table(None, &["--only-visible"]), all, all);
    let only_third = [false, false, true];
    has(
        &table(Some("2"), &["--only-visible"]),
        only_third,
        [false, true, true],
    );
    has(
        &table(Some("1,2"), &["--only-visible", "-i", "0,2"]),
        only_third,
        [false, true, true],
    );
    has(&table(None, &["--compute"]), all, [true, false, true]);
    has(&table(None, &["--graphics"]), all, [false, true, false]);
    has(
        &table(None, &["--pid", "4001,4002"]),
        all,
        [true, true, false],
    );
}

#[test]
fn energy_cost_uses_given_price() {
    let fake = FakeNvml::new("gpus = 1");
    let total = |arguments: &[&str]| {
        let output = fake
            .gpumon_command(&[&["--total"], arguments].concat())
            .output();
        stdout_text(&output.unwrap())
    };
    assert!(
        !total(&[]).contains('('),
        "there must be no cost without a price"
    );
    let table = total(&["--price", "0.30 EUR/kWh"]);
    assert!(table.contains(" EUR) since driver load"), "{table}");
    let refused = fake
        .gpumon_command(&["--energy-price", "0.30"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr_text(&refused).contains("0.30/kWh"),
        "{}",
        stderr_text(&refused)
    );
}

#[tokio::test]
async fn hello_frame_has_energy_price() {
    let fake = FakeNvml::new("gpus = 1");
    let hello = async |arguments: &[&str]| {
        let server = Server::start_with_fake(&fake, arguments);
        server.open_stream().await.next_frame_of_type("hello").await
    };
    let priced = hello(&["--energy-price", "0.30 EUR/kWh"]).await;
    assert_eq!(
        priced["energy_price"],
        json!({"per_kwh": 0.3, "before": "", "after": " EUR"})
    );
    assert_eq!(hello(&[]).await["energy_price"], Value::Null);
}

#[test]
fn help_option_is_short_and_help_command_complete() {
    let help = |arguments: &[&str]| stdout_text(&gpumon_command(arguments).output().unwrap());
    let overview = help(&["--help"]);
    assert_eq!(overview, help(&["-h"]));
    assert!(overview.lines().count() < 24, "{overview}");
    let all = help(&["help"]);
    assert!(
        all.contains("--energy-price") && all.contains("GPUMON_SOURCE"),
        "{all}"
    );
    let check = help(&["help", "alerts", "check"]);
    assert!(check.contains("Usage: gpumon alerts check"), "{check}");
    assert_refused_with(
        gpumon_command(&["help", "alrts"]),
        2,
        &["did you mean 'alerts'?"],
    );
}

#[test]
fn worker_of_kernel_is_named_by_notebook() {
    let folder = tempfile::tempdir().unwrap();
    let connection = folder.path().join("kernel-1b2c-3d4e.json");
    let written = r#"{"kernel_name":"python3","jupyter_session":"/home/ana/train.ipynb"}"#;
    std::fs::write(&connection, written).unwrap();
    // The shell is the kernel, and its arguments name the connection file. Its child is a worker.
    let mut kernel = process::Command::new("sh")
        .args(["-c", "sleep 600 & echo $!; wait", "-f"])
        .arg(&connection)
        .stdout(process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut worker = String::new();
    BufReader::new(kernel.stdout.take().unwrap())
        .read_line(&mut worker)
        .unwrap();
    let scenario = format!(
        "gpus = 1\n[[process]]\ngpu = 0\npid = {}\nmemory = \"1 GiB\"\n",
        worker.trim()
    );
    let fake = FakeNvml::new(&scenario);
    let (json, table) = (
        fake.read_json(),
        stdout_text(&fake.gpumon_command(&[]).output().unwrap()),
    );
    process::Command::new("kill")
        .arg(worker.trim())
        .status()
        .unwrap();
    kernel.wait().unwrap();
    let notebook = &json["sample"]["gpus"][0]["processes"][0]["owner"]["notebook"];
    assert_eq!(notebook["path"], "/home/ana/train.ipynb");
    assert_eq!(
        (&notebook["kernel_id"], &notebook["kernel_name"]),
        (&"1b2c-3d4e".into(), &"python3".into())
    );
    assert_eq!(notebook["kernel_pid"], kernel.id());
    assert!(table.contains("train.ipynb (sleep)"), "{table}");
}

#[test]
fn missing_reading_leaves_other_readings_unchanged() {
    let fake = FakeNvml::without_functions(
        "gpus = 2",
        &[
            "nvmlDeviceGetMemoryInfo_v2",
            "nvmlDeviceGetPowerUsage",
            "nvmlDeviceGetUtilizationRates",
        ],
    );
    let json = fake.read_json();
    for gpu in json["sample"]["gpus"].as_array().unwrap() {
        assert_eq!(gpu["power"]["draw_watts"]["absent"], "not_supported");
        assert_eq!(gpu["utilization"]["gpu_percent"]["absent"], "not_supported");
        assert!(
            gpu["memory"]["used_bytes"].is_u64(),
            "the older function provides the value: {gpu}"
        );
        assert_eq!(gpu["memory"]["reserved_bytes"]["absent"], "not_supported");
        assert!(gpu["temperature"]["gpu_celsius"].is_number());
    }
}

#[test]
fn failed_reading_names_its_error() {
    let fake = FakeNvml::new(
        "gpus = 1\n[returns]\nnvmlDeviceGetTemperatureV = 999\nnvmlDeviceGetPowerUsage = 4\n",
    );
    let gpu = &fake.read_json()["sample"]["gpus"][0];
    assert_eq!(gpu["temperature"]["gpu_celsius"]["absent"], "driver_error");
    assert_eq!(gpu["temperature"]["gpu_celsius"]["code"], 999);
    assert_eq!(gpu["power"]["draw_watts"]["absent"], "no_permission");
}

#[test]
fn table_does_not_make_slow_calls() {
    let calls = [
        "nvmlDeviceGetTotalEnergyConsumption",
        "nvmlDeviceGetMarginTemperature",
        "nvmlGpmSampleGet",
        "nvmlDeviceGetPcieThroughput",
    ];
    let hang = |call| format!("[[fault]]\nkind = \"hang\"\ncall = \"{call}\"\n");
    let fake = FakeNvml::new(&format!(
        "gpus = 1\n[[gpu]]\nindex = 0\nutilization_percent = 37\n{}",
        calls.map(hang).concat()
    ));
    for form in [
        &[][..],
        &["--short"],
        &["--csv", "--columns", "index,utilization_gpu_percent"],
    ] {
        let shown = stdout_text(&fake.gpumon_command(form).output().unwrap());
        assert!(
            shown.contains("37") && !shown.contains("not read yet"),
            "{form:?}: {shown}"
        );
    }
}

#[test]
fn unused_option_before_command_is_refused() {
    let fake = FakeNvml::new("gpus = 4");
    for words in [
        &["-i", "0", "wait", "--free", "1GiB"][..],
        &["--json", "doctor"],
        &["--short", "top"],
        &["-i", "0", "smi"],
        &["--watch", "2", "collect"],
    ] {
        assert_refused_with(
            fake.gpumon_command(words),
            2,
            &[&format!("'{}' before", words[0]), "--help"],
        );
    }
    let output = fake
        .gpumon_command(&["--source", "sim:1", "collect", "--count", "1"])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "--source is valid for all commands"
    );
}

#[test]
fn unreadable_process_list_is_not_shown_as_empty() {
    let fake =
        FakeNvml::new("gpus = 1\n[returns]\nnvmlDeviceGetComputeRunningProcesses_v3 = 999\n");
    assert_eq!(
        fake.read_json()["sample"]["gpus"][0]["processes"]["absent"],
        "driver_error"
    );
    let table = stdout_text(&fake.gpumon_command(&[]).output().unwrap());
    assert!(
        table.contains("processes of GPU 0: driver error 999") && !table.contains("no processes"),
        "{table}"
    );
}

#[test]
fn two_thousand_processes_keep_their_utilization() {
    let process =
        |pid| format!("[[process]]\ngpu = 0\npid = {pid}\nmemory = \"10 MiB\"\nsm_percent = 1\n");
    let processes: Vec<_> = (10_000_000..10_002_000).map(process).collect();
    let json = FakeNvml::new(&("gpus = 1\n".to_owned() + &processes.concat())).read_json();
    let processes = json["sample"]["gpus"][0]["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 2_000);
    for process in processes {
        assert!(process["sm_percent"]["absent"].is_null(), "{process}");
        assert_eq!(
            process["name"]["absent"], "unknown",
            "the process does not exist"
        );
    }
}

#[test]
fn hostile_process_name_is_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder
        .path()
        .join(std::ffi::OsStr::from_bytes(b"\xff\xfebad"));
    copy_program("/bin/sleep", &odd);
    let mut sleeper = process::Command::new(&odd).arg("600").spawn().unwrap();
    let scenario = format!(
        "gpus = 1\n[[process]]\ngpu = 0\npid = {}\nmemory = \"1 GiB\"\n",
        sleeper.id()
    );
    let json = FakeNvml::new(&scenario).read_json();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let process = &json["sample"]["gpus"][0]["processes"][0];
    assert!(
        process["name"]
            .as_str()
            .is_some_and(|name| name.ends_with("bad")),
        "{process}"
    );
    assert!(
        process["user"].is_string() && process["started_ms"].is_u64(),
        "{process}"
    );
}

#[test]
fn simulated_values_are_labeled() {
    let table = stdout_text(&gpumon_command(&["--source", "sim:2"]).output().unwrap());
    assert!(
        table.lines().next().unwrap().contains("simulated"),
        "{table}"
    );
    let json = stdout_text(
        &gpumon_command(&["--source", "sim:2", "--json"])
            .output()
            .unwrap(),
    );
    assert!(json.contains(r#""source":"simulated""#), "{json}");
}

#[test]
fn pipe_receives_plain_text() {
    let table = stdout_text(&gpumon_command(&["--source", "sim:8"]).output().unwrap());
    assert!(table.is_ascii() && !table.contains('\u{1b}'), "{table:?}");
}

/// Returns a command in its own PID namespace, as in a container; `None` if this is not permitted
/// here.
fn command_in_pid_namespace(command: &process::Command) -> Option<process::Command> {
    const OPTIONS: [&str; 3] = ["--pid", "--fork", "--mount-proc"];
    let kinds: [&[&str]; 2] = [&[], &["--user", "--map-root-user"]];
    let is_allowed = |options: &&&[&str]| {
        let tried = process::Command::new("unshare")
            .args(**options)
            .args(OPTIONS)
            .arg("true")
            .output();
        tried.is_ok_and(|output| output.status.success())
    };
    let options = kinds.iter().find(is_allowed)?;
    let mut unshared = process::Command::new("unshare");
    unshared
        .args(*options)
        .args(OPTIONS)
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => unshared.env(name, value),
            None => unshared.env_remove(name),
        };
    }
    Some(unshared)
}

#[test]
fn invisible_processes_are_mentioned() {
    const NOTE: &str = "GPU 0: processes of other namespaces are not visible: 1.10 GiB in use";
    let fake = FakeNvml::new(
        "[[gpu]]\nindex = 0\nprofile = \"idle\"\nutilization_percent = 98\nmemory_used = \"1.1 \
         GiB\"\n",
    );
    let Some(mut table) = command_in_pid_namespace(&fake.gpumon_command(&[])) else {
        eprintln!("skipped: PID namespaces cannot be created here");
        return;
    };
    let run = |arguments: &[&str]| {
        command_in_pid_namespace(&fake.gpumon_command(arguments))
            .unwrap()
            .output()
            .unwrap()
    };
    let table = stdout_text(&table.output().unwrap());
    assert!(
        table.contains(NOTE) && !table.contains("no processes"),
        "{table}"
    );
    assert!(stdout_text(&run(&["--short"])).contains(&NOTE["GPU 0: ".len()..]));
    let json: serde_json::Value = serde_json::from_str(&stdout_text(&run(&["--json"]))).unwrap();
    let bytes = json["sample"]["gpus"][0]["unlisted_memory_bytes"]
        .as_u64()
        .unwrap();
    assert_eq!(bytes >> 20, 1126, "{json}");
    let csv = run(&["--csv", "--columns", "process_count,unlisted_memory_bytes"]);
    assert!(
        stdout_text(&csv).ends_with(&format!("\n,{bytes}\n")),
        "{}",
        stdout_text(&csv)
    );
    assert!(stderr_text(&csv).contains(NOTE), "{}", stderr_text(&csv));
    let of_processes = run(&["--csv", "--processes"]);
    assert!(
        stderr_text(&of_processes).contains(NOTE),
        "{}",
        stderr_text(&of_processes)
    );
    let doctor = stdout_text(&run(&["doctor"]))
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        doctor.contains(NOTE) && doctor.contains("--pid=host"),
        "{doctor}"
    );
    for arguments in [&["smi"][..], &["smi", "-q"]] {
        let without_time = |text: String| {
            text.lines()
                .filter(|line| !line.contains(':'))
                .collect::<Vec<_>>()
                .join("\n")
        };
        let [inside, outside] = [
            run(arguments),
            fake.gpumon_command(arguments).output().unwrap(),
        ];
        assert_eq!(
            without_time(stdout_text(&inside)),
            without_time(stdout_text(&outside))
        );
    }
    // If the test itself runs in a container, it does not see the PIDs of the host, and the output
    // must not claim that there are no processes.
    let is_first =
        std::fs::read_link("/proc/self/ns/pid").unwrap() == Path::new("pid:[4026531836]");
    let outside = stdout_text(&fake.gpumon_command(&[]).output().unwrap());
    assert_eq!(outside.contains("no processes"), is_first, "{outside}");
}
