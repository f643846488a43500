//! A machine with GPUs of NVIDIA, AMD and Intel.

use std::{fs, process::Output};

use fake_drm::{Tree, scenario};
use serde_json::Value;

use crate::support::{Fake, Server, eventually, stderr};

/// The MI300X.
const UUID: &str = "GPU-aaaaaaa000083000";

/// Files below `/sys` of an Instinct MI300X that this test's own process computes on, and of GPUs
/// of Intel that nobody uses.
fn make_tree() -> Tree {
    let tree = Tree::new();
    let package = scenario::add_mixed(&tree);
    tree.add_compute(std::process::id(), package.gpu_id(0), 8 << 30, Some(152));
    tree
}

/// Runs gpumon without the variables of a scheduler.
fn run_with(fake: &Fake, tree: &Tree, arguments: &[&str]) -> Output {
    let mut command = fake.gpumon(arguments);
    for variable in [
        "CUDA_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "ZE_AFFINITY_MASK",
    ] {
        command.env_remove(variable);
    }
    command.env("GPUMON_SYSFS", tree.sys()).output().unwrap()
}

fn print_with(fake: &Fake, tree: &Tree, arguments: &[&str]) -> String {
    let output = run_with(fake, tree, arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn gpus_of_all_vendors_are_listed() {
    let (fake, tree) = (Fake::new("gpus = 1\n"), make_tree());
    let answer: Value = serde_json::from_str(&print_with(&fake, &tree, &["--json"])).unwrap();
    let gpus = answer["inventory"]["gpus"].as_array().unwrap();
    let vendors: Vec<_> = gpus
        .iter()
        .map(|gpu| gpu["vendor"].as_str().unwrap())
        .collect();
    assert_eq!(vendors, ["nvidia", "amd", "intel", "intel"]);
    assert_eq!(gpus[1]["name"], "AMD Instinct MI300X OAM");
    assert_eq!(gpus[1]["uuid"], UUID);
    assert_eq!(
        (&gpus[1]["index"], &gpus[1]["vendor_index"]),
        (&1.into(), &0.into())
    );
    assert_eq!(gpus[1]["board"]["architecture"], "gfx942");
    let drivers = answer["inventory"]["platform"]["drivers"]
        .as_array()
        .unwrap();
    assert_eq!(drivers.len(), 3);
    assert_eq!(
        answer["sample"]["gpus"][3]["temperature"]["gpu_celsius"],
        44.0
    );
    let sample = &answer["sample"]["gpus"][1];
    for (path, expected) in [
        ("/utilization/gpu_percent", 87.0),
        ("/memory/used_bytes", 103_079_215_104.0),
        ("/temperature/gpu_celsius", 58.0),
        ("/temperature/memory_celsius", 51.0),
        ("/power/draw_watts", 640.0),
        ("/clocks/sm_mhz", 2100.0),
        ("/pcie/generation", 5.0),
    ] {
        assert_eq!(
            sample.pointer(path).and_then(Value::as_f64),
            Some(expected),
            "{path}"
        );
    }
    let [process] = &sample["processes"].as_array().unwrap()[..] else {
        panic!("{sample}")
    };
    assert_eq!(process["pid"], std::process::id());
    assert_eq!(process["memory_bytes"], 8_u64 << 30);
    assert_eq!(process["sm_percent"], 50.0);
    assert!(
        process["name"].is_string() && process["user"].is_string(),
        "{process}"
    );
}

#[test]
fn table_and_metrics_have_all_vendors() {
    let (fake, tree) = (Fake::new("gpus = 1\n"), make_tree());
    let table = print_with(&fake, &tree, &[]);
    assert!(
        table.contains("Instinct MI300X") && table.contains("H200"),
        "{table}"
    );
    let server = Server::over(&fake, &["--sysfs", tree.sys().to_str().unwrap()]);
    let line = format!("gpumon_gpu_temperature_celsius{{gpu=\"1\",uuid=\"{UUID}\"}} 58");
    eventually("the metrics have the GPU of AMD", || {
        server.get("/metrics").body.lines().any(|own| own == line)
    });
    let text = server.get("/metrics").body;
    assert!(
        text.contains("gpumon_gpu_junction_temperature_celsius{gpu=\"1\""),
        "{text}"
    );
    assert!(
        text.contains("vendor=\"AMD\"") || text.contains("AMD Instinct MI300X"),
        "{text}"
    );
}

#[test]
fn machine_without_nvidia_driver_shows_others() {
    let (fake, tree) = (Fake::new("gpus = 1\n"), make_tree());
    let mut command = fake.gpumon(&["--json"]);
    command.env("GPUMON_NVML_LIB", "/nowhere/libnvidia-ml.so.1");
    let output = command.env("GPUMON_SYSFS", tree.sys()).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["inventory"]["gpus"].as_array().unwrap().len(), 3);
    assert_eq!(
        answer["sample"]["gpus"][0]["utilization"]["gpu_percent"],
        87.0
    );
    let only = print_with(&fake, &tree, &["--source", "amd", "--json"]);
    let only: Value = serde_json::from_str(&only).unwrap();
    assert_eq!(only["inventory"]["gpus"][0]["vendor"], "amd");
    let only = print_with(&fake, &tree, &["--source", "intel", "--json"]);
    let only: Value = serde_json::from_str(&only).unwrap();
    assert_eq!(only["inventory"]["gpus"][1]["uuid"], "PCI-0000:84:00.0");
}

/// A node of MI300X in partitions, with programs in a procfs of its own.
#[test]
fn partitions_have_use_processes_and_owners() {
    let (fake, tree) = (Fake::new("gpus = 1\n"), Tree::new());
    scenario::add_mi300x_in_cpx(&tree);
    let print = |arguments: &[&str]| {
        let mut command = fake.gpumon(&[&["--source", "amd"], arguments].concat());
        command
            .env("GPUMON_SYSFS", tree.sys())
            .env("GPUMON_PROCFS", tree.proc());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let answer: Value = serde_json::from_str(&print(&["--json"])).unwrap();
    let gpus = answer["inventory"]["gpus"].as_array().unwrap();
    let parts: Vec<_> = gpus
        .iter()
        .map(|gpu| gpu["mig_devices"].as_array().unwrap().len())
        .collect();
    assert_eq!(parts, [8, 8]);
    let process = &answer["sample"]["gpus"][0]["processes"][2];
    assert_eq!(process["pid"], 4102);
    assert_eq!(process["name"], "python3");
    assert_eq!(process["user"], "root");
    assert_eq!(process["mig"]["gpu_instance"], 5);
    let table = print(&[]);
    let first = table.lines().find(|line| line.contains("0:0 CPX/NPS1"));
    assert!(first.is_some_and(|line| line.contains("91 %")), "{table}");
}

#[test]
fn gpus_are_selected_by_vendor() {
    let (fake, tree) = (Fake::new("gpus = 2\n"), make_tree());
    for (name, index) in [
        ("nvidia:1", 1),
        ("AMD:0", 2),
        (UUID, 2),
        ("83:00.0", 2),
        ("intel:0", 3),
        ("PCI-0000:84:00.0", 4),
    ] {
        let answer = print_with(&fake, &tree, &["-i", name, "--json"]);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let [gpu] = &answer["sample"]["gpus"].as_array().unwrap()[..] else {
            panic!("{name}: {answer}")
        };
        assert_eq!(gpu["index"], index, "{name}");
    }
    let refused = run_with(&fake, &tree, &["-i", "amd:1"]);
    assert_eq!(refused.status.code(), Some(6));
    let said = stderr(&refused);
    assert!(
        said.contains("no GPU 'amd:1': there is only amd:0"),
        "{said}"
    );
}

#[test]
fn sleeping_card_is_selected_by_vendor() {
    let (fake, tree) = (Fake::new("gpus = 1\n"), make_tree());
    let power = tree.sys().join("class/drm/card1/device/power");
    fs::create_dir_all(&power).unwrap();
    fs::write(power.join("runtime_status"), "suspended\n").unwrap();
    let answer = print_with(&fake, &tree, &["-i", "amd:0", "--json"]);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["sample"]["gpus"][0]["health"]["state"], "asleep");
    let gpu = &answer["inventory"]["gpus"][0];
    assert_eq!(
        (&gpu["vendor"], &gpu["uuid"]),
        (&"amd".into(), &UUID.into())
    );
}

#[test]
fn command_gets_variables_of_selected_vendor() {
    let (fake, tree) = (Fake::new("gpus = 1\n"), make_tree());
    let locks = tempfile::tempdir().unwrap();
    let script = "echo $ROCR_VISIBLE_DEVICES/$HIP_VISIBLE_DEVICES/$CUDA_VISIBLE_DEVICES";
    let wait = |id: &[&str]| {
        let folder = locks.path().to_str().unwrap();
        let command = ["--", "sh", "-c", script];
        let options = [
            "wait", "--quiet", "--now", "--free", "10GiB", "--locks", folder,
        ];
        print_with(&fake, &tree, &[&options, id, &command].concat())
    };
    assert_eq!(wait(&["-i", "amd:0"]).trim(), format!("{UUID}/0/"));
    let first_vendor = wait(&[]);
    assert!(first_vendor.starts_with("//GPU-"), "{first_vendor}");
}

#[test]
fn workloads_refuse_gpus_of_other_vendors() {
    let (fake, tree) = (Fake::new("gpus = 1\n"), make_tree());
    for (name, what) in [
        ("amd:0", "'amd:0' is a GPU of AMD"),
        ("GPU-aaaa", "'GPU-aaaa' is AMD Instinct MI300X"),
        ("84:00.0", "'84:00.0' is Intel"),
    ] {
        let refused = run_with(&fake, &tree, &["bench", "copy", "--device", name]);
        assert_eq!(refused.status.code(), Some(3), "{name}");
        let said = stderr(&refused);
        assert!(
            said.contains(what) && said.contains("--backend cpu"),
            "{said}"
        );
    }
}
