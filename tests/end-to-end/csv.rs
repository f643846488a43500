//! The options `--csv`, `--short` and `-i`.

use std::collections::BTreeMap;

use crate::support::{FakeNvml, assert_refused, stderr_text, stdout_text};

/// Returns the rows as fields by column name. Fields of these tests contain no commas.
fn read_rows(fake: &FakeNvml, arguments: &[&str]) -> Vec<BTreeMap<String, String>> {
    let output = fake
        .gpumon_command(&[&["--csv"], arguments].concat())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr_text(&output));
    let text = stdout_text(&output);
    let mut lines = text.lines();
    let header: Vec<String> = lines
        .next()
        .unwrap()
        .split(',')
        .map(str::to_owned)
        .collect();
    let row = |line: &str| {
        let fields: Vec<String> = line.split(',').map(str::to_owned).collect();
        assert_eq!(fields.len(), header.len(), "{line}");
        header.iter().cloned().zip(fields).collect()
    };
    lines.map(row).collect()
}

#[test]
fn csv_columns_keep_names_and_order() {
    let fake = FakeNvml::new("gpus = 1");
    let header = |arguments: &[&str]| {
        stdout_text(&fake.gpumon_command(arguments).output().unwrap())
            .lines()
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        header(&["--csv"]),
        "time,index,uuid,name,state,utilization_gpu_percent,memory_used_bytes,memory_total_bytes,\
         temperature_gpu_celsius,power_draw_watts,power_limit_watts,throttle_reasons,process_count"
    );
    assert_eq!(
        header(&["--csv", "--processes"]),
        "time,gpu_index,pid,user,memory_bytes,sm_percent,running_seconds,name,notebook,slurm_job,container,command"
    );
}

#[test]
fn csv_limits_are_empty_until_window_ends() {
    let fake = FakeNvml::new("gpus = 1");
    let columns = "index,limits_idle_percent,limits_unknown_percent";
    let rows = read_rows(&fake, &["--columns", columns]);
    assert!(
        rows[0].values().map(String::as_str).eq(["0", "", ""]),
        "{rows:?}"
    );
}

#[test]
fn csv_numbers_lack_units_absent_readings_are_empty() {
    let fake = FakeNvml::new(
        "gpus = 2\n[[gpu]]\nindex = 0\nutilization_percent = 42\nmemory_used = \"12 GiB\"\n\
         power_limit_watts = 300\ntemperature_celsius = 61\n[[fault]]\nkind = \"lost\"\ngpu = 1\n",
    );
    let rows = read_rows(&fake, &["--columns", "all"]);
    let of = |gpu: usize, column: &str| rows[gpu][column].as_str();
    assert_eq!(of(0, "state"), "ok");
    assert_eq!(of(0, "utilization_gpu_percent"), "42");
    assert_eq!(of(0, "memory_used_bytes"), (12_u64 << 30).to_string());
    assert_eq!(
        (of(0, "power_limit_watts"), of(0, "temperature_gpu_celsius")),
        ("300", "61")
    );
    assert_eq!(
        of(0, "fan_percent"),
        "",
        "a board without fans has an empty cell"
    );
    assert_eq!((of(1, "index"), of(1, "state")), ("1", "lost"));
    for column in [
        "utilization_gpu_percent",
        "memory_used_bytes",
        "power_draw_watts",
        "throttle_reasons",
    ] {
        assert_eq!(of(1, column), "", "{column}");
    }
}

#[test]
fn process_has_row_for_each_gpu() {
    let pid = std::process::id();
    let on = |gpu: u32| {
        format!("[[process]]\ngpu = {gpu}\npid = {pid}\nmemory = \"2 GiB\"\nsm_percent = 7\n")
    };
    let fake = FakeNvml::new(&format!("gpus = 2\n{}{}", on(0), on(1)));
    let rows = read_rows(
        &fake,
        &[
            "--processes",
            "--columns",
            "gpu_index,pid,memory,user,kind,running_seconds",
        ],
    );
    assert_eq!(rows.len(), 2);
    for (gpu, row) in rows.iter().enumerate() {
        assert_eq!(
            (row["gpu_index"].as_str(), row["pid"].as_str()),
            (&*gpu.to_string(), &*pid.to_string())
        );
        assert_eq!(
            (row["memory_bytes"].as_str(), row["kind"].as_str()),
            ("2147483648", "compute")
        );
        assert!(
            !row["user"].is_empty() && row["running_seconds"].parse::<f64>().unwrap() >= 0.0,
            "{row:?}"
        );
    }
}

#[test]
fn unknown_column_is_refused_with_similar_name() {
    let fake = FakeNvml::new("gpus = 1");
    let words = "unknown column 'memroy': did you mean 'memory'?";
    assert_refused(
        fake.gpumon_command(&["--csv", "--columns", "index,memroy"]),
        2,
        words,
    );
    let help = stdout_text(
        &fake
            .gpumon_command(&["--csv", "--columns", "help"])
            .output()
            .unwrap(),
    );
    assert!(
        help.lines()
            .any(|line| line.starts_with("* memory_used_bytes ")),
        "{help}"
    );
    for arguments in [
        &["--columns", "index"][..],
        &["--processes"],
        &["--csv", "--json"],
        &["--short", "--csv"],
    ] {
        assert_refused(fake.gpumon_command(arguments), 2, "");
    }
}

#[test]
fn gpus_are_selected_by_index_or_ids() {
    let fake = FakeNvml::new("gpus = 4");
    let json = fake.read_json();
    let gpu = &json["inventory"]["gpus"][2];
    let (uuid, bus_id) = (
        gpu["uuid"].as_str().unwrap(),
        gpu["pci_bus_id"].as_str().unwrap(),
    );
    let short = bus_id.split_once(':').unwrap().1.to_lowercase();
    for id in ["2", uuid, bus_id, &short] {
        let chosen = read_rows(&fake, &["-i", id, "--columns", "index"]);
        assert_eq!(
            chosen
                .iter()
                .map(|row| row["index"].as_str())
                .collect::<Vec<_>>(),
            ["2"],
            "{id}"
        );
    }
    let two = read_rows(&fake, &["--id", &format!("3,{uuid}"), "--columns", "index"]);
    assert_eq!(
        two.iter()
            .map(|row| row["index"].as_str())
            .collect::<Vec<_>>(),
        ["2", "3"]
    );
    let table = stdout_text(&fake.gpumon_command(&["-i", "1"]).output().unwrap());
    assert!(
        table.contains("1 x H200") && !table.contains(" 2 H200"),
        "{table}"
    );
    for id in ["4", "GPU-00000000", "00:00.0", "-1"] {
        assert_refused(
            fake.gpumon_command(&[&format!("--id={id}")]),
            6,
            &format!("there is no GPU '{id}': 0 to 3 are available"),
        );
    }
}

#[test]
fn short_option_adds_users_and_their_memory() {
    let pid = std::process::id();
    let fake = FakeNvml::new(&format!(
        "gpus = 2\n[[gpu]]\nindex = 0\nutilization_percent = 96\ntemperature_celsius = \
         64\nmemory_used = \"6000 MiB\"\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"6000 MiB\"\n"
    ));
    let user = fake.read_json()["sample"]["gpus"][0]["processes"][0]["user"]
        .as_str()
        .unwrap()
        .to_owned();
    let text = stdout_text(&fake.gpumon_command(&["--short"]).output().unwrap());
    let line = text.lines().nth(1).unwrap();
    assert!(line.starts_with("[0] NVIDIA H200 | 64'C,"), "{text}");
    assert!(
        line.contains("/ 143771 MB |") && line.ends_with(&format!("| {user}(6000M)")),
        "{text}"
    );
    let text = stdout_text(
        &fake
            .gpumon_command(&["--short=command,pid,power,fan"])
            .output()
            .unwrap(),
    );
    let line = text.lines().nth(1).unwrap();
    // The line has `-` instead of a fan speed, because an H200 has no fan.
    assert!(
        line.starts_with("[0] NVIDIA H200 | 64'C,   - %,  96 %,") && line.contains(" /  700 W |"),
        "{text}"
    );
    assert!(
        line.contains(&format!("| {user}:")) && line.ends_with(&format!("/{pid}(6000M)")),
        "{text}"
    );
    for form in [
        &["--total"][..],
        &["--short", "--total"],
        &["--short", "--total", "-i", "0"],
    ] {
        let text = stdout_text(&fake.gpumon_command(form).output().unwrap());
        let total = text
            .lines()
            .find(|line| line.starts_with("Total, "))
            .unwrap();
        assert!(
            total.contains(" % mean, ") && total.ends_with("Wh since driver load"),
            "{text}"
        );
        assert_eq!(
            total.starts_with("Total, 1 GPU: 96 % mean, "),
            form.contains(&"-i"),
            "{text}"
        );
    }
    assert_refused(
        fake.gpumon_command(&["--json", "--total"]),
        2,
        "cannot be used with",
    );
    assert_refused(
        fake.gpumon_command(&["--short=memory"]),
        2,
        "[possible values: command, pid, power, fan, codec]",
    );
}
