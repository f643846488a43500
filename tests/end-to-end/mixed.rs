//! A machine with GPUs of NVIDIA, AMD and Intel.

use std::{
    fs::{self, File},
    path::Path,
    process::Output,
};

use fake_drm::{MetricsTable, Tree, scenario};
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::support::{FakeNvml, Server, stderr_text, stdout_text, wait_for_condition};

const MI300X_UUID: &str = "GPU-aaaaaaa000083000";

/// Creates files below `/sys` for an Instinct MI300X that this test's process uses, and for idle
/// GPUs of Intel.
fn make_tree() -> Tree {
    let tree = Tree::new();
    let package = scenario::add_gpus_of_several_vendors(&tree);
    tree.add_compute_usage(std::process::id(), package.gpu_id(0), 8 << 30, Some(152));
    tree
}

/// Runs gpumon without the environment variables of a scheduler.
fn run_gpumon(fake: &FakeNvml, tree: &Tree, arguments: &[&str]) -> Output {
    let mut command = fake.gpumon_command(arguments);
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

fn gpumon_output(fake: &FakeNvml, tree: &Tree, arguments: &[&str]) -> String {
    let output = run_gpumon(fake, tree, arguments);
    assert!(output.status.success(), "{}", stderr_text(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the JSON of all GPUs. On a busy machine, a GPU may not answer in time, so the command is
/// repeated.
fn read_complete_json(fake: &FakeNvml, tree: &Tree) -> Value {
    let mut answer = Value::Null;
    wait_for_condition("all GPUs respond", || {
        answer = serde_json::from_str(&gpumon_output(fake, tree, &["--json"])).unwrap();
        !answer["inventory"].to_string().contains("no_answer")
    });
    answer
}

#[test]
fn gpus_of_all_vendors_are_listed() {
    let (fake, tree) = (FakeNvml::new("gpus = 1\n"), make_tree());
    let answer = read_complete_json(&fake, &tree);
    let gpus = answer["inventory"]["gpus"].as_array().unwrap();
    let vendors: Vec<_> = gpus
        .iter()
        .map(|gpu| gpu["vendor"].as_str().unwrap())
        .collect();
    assert_eq!(vendors, ["nvidia", "amd", "intel", "intel"]);
    assert_eq!(gpus[1]["name"], "AMD Instinct MI300X OAM");
    assert_eq!(gpus[1]["uuid"], MI300X_UUID);
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
    let (fake, tree) = (FakeNvml::new("gpus = 1\n"), make_tree());
    let table = gpumon_output(&fake, &tree, &[]);
    assert!(
        table.contains("Instinct MI300X") && table.contains("H200"),
        "{table}"
    );
    let server = Server::start_with_fake(&fake, &["--sysfs", tree.sys().to_str().unwrap()]);
    let line = format!("gpumon_gpu_temperature_celsius{{gpu=\"1\",uuid=\"{MI300X_UUID}\"}} 58");
    wait_for_condition("the metrics contain the AMD GPU", || {
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
fn machine_without_nvidia_driver_shows_other_gpus() {
    let (fake, tree) = (FakeNvml::new("gpus = 1\n"), make_tree());
    let mut command = fake.gpumon_command(&["--json"]);
    command.env("GPUMON_NVML_LIB", "/nowhere/libnvidia-ml.so.1");
    let output = command.env("GPUMON_SYSFS", tree.sys()).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["inventory"]["gpus"].as_array().unwrap().len(), 3);
    assert_eq!(
        answer["sample"]["gpus"][0]["utilization"]["gpu_percent"],
        87.0
    );
    let only = gpumon_output(&fake, &tree, &["--source", "amd", "--json"]);
    let only: Value = serde_json::from_str(&only).unwrap();
    assert_eq!(only["inventory"]["gpus"][0]["vendor"], "amd");
    let only = gpumon_output(&fake, &tree, &["--source", "intel", "--json"]);
    let only: Value = serde_json::from_str(&only).unwrap();
    assert_eq!(only["inventory"]["gpus"][1]["uuid"], "PCI-0000:84:00.0");
}

/// A node with a partitioned MI300X, whose programs are in a fake procfs.
#[test]
fn partitions_have_utilization_processes_and_owners() {
    let (fake, tree) = (FakeNvml::new("gpus = 1\n"), Tree::new());
    scenario::add_mi300x_in_cpx(&tree);
    let print = |arguments: &[&str]| {
        let mut command = fake.gpumon_command(&[&["--source", "amd"], arguments].concat());
        command
            .env("GPUMON_SYSFS", tree.sys())
            .env("GPUMON_PROCFS", tree.proc());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", stderr_text(&output));
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
    let (fake, tree) = (FakeNvml::new("gpus = 2\n"), make_tree());
    for (name, index) in [
        ("nvidia:1", 1),
        ("AMD:0", 2),
        (MI300X_UUID, 2),
        ("83:00.0", 2),
        ("intel:0", 3),
        ("PCI-0000:84:00.0", 4),
    ] {
        let answer = gpumon_output(&fake, &tree, &["-i", name, "--json"]);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let [gpu] = &answer["sample"]["gpus"].as_array().unwrap()[..] else {
            panic!("{name}: {answer}")
        };
        assert_eq!(gpu["index"], index, "{name}");
    }
    let refused = run_gpumon(&fake, &tree, &["-i", "amd:1"]);
    assert_eq!(refused.status.code(), Some(6));
    let said = stderr_text(&refused);
    assert!(
        said.contains("there is no GPU 'amd:1': only amd:0 is available"),
        "{said}"
    );
}

#[test]
fn sleeping_card_is_selected_by_vendor() {
    let (fake, tree) = (FakeNvml::new("gpus = 1\n"), make_tree());
    let power = tree.sys().join("class/drm/card1/device/power");
    fs::create_dir_all(&power).unwrap();
    fs::write(power.join("runtime_status"), "suspended\n").unwrap();
    let answer = gpumon_output(&fake, &tree, &["-i", "amd:0", "--json"]);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["sample"]["gpus"][0]["health"]["state"], "asleep");
    let gpu = &answer["inventory"]["gpus"][0];
    assert_eq!(
        (&gpu["vendor"], &gpu["uuid"]),
        (&"amd".into(), &MI300X_UUID.into())
    );
}

#[test]
fn hanging_card_is_selected_by_vendor() {
    let (fake, tree) = (FakeNvml::new("gpus = 1\n"), make_tree());
    tree.block_reads(&tree.sys().join("class/drm/card1/device/gpu_metrics"));
    let answer = gpumon_output(&fake, &tree, &["-i", "amd:0", "--json"]);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let gpu = &answer["inventory"]["gpus"][0];
    assert_eq!(
        (&gpu["vendor"], &gpu["uuid"]),
        (&"amd".into(), &MI300X_UUID.into())
    );
}

#[test]
fn command_gets_environment_variables_of_selected_vendor() {
    let (fake, tree) = (FakeNvml::new("gpus = 1\n"), make_tree());
    let locks = tempfile::tempdir().unwrap();
    let script = "echo $ROCR_VISIBLE_DEVICES/$HIP_VISIBLE_DEVICES/$CUDA_VISIBLE_DEVICES";
    let wait = |id: &[&str]| {
        let folder = locks.path().to_str().unwrap();
        let command = ["--", "sh", "-c", script];
        let options = [
            "wait", "--quiet", "--now", "--free", "10GiB", "--locks", folder,
        ];
        gpumon_output(&fake, &tree, &[&options, id, &command].concat())
    };
    assert_eq!(wait(&["-i", "amd:0"]).trim(), format!("{MI300X_UUID}/0/"));
    let first_vendor = wait(&[]);
    assert!(first_vendor.starts_with("//GPU-"), "{first_vendor}");
}

#[test]
fn workloads_refuse_gpus_of_other_vendors() {
    let (fake, tree) = (FakeNvml::new("gpus = 1\n"), make_tree());
    for (name, what) in [
        ("amd:0", "'amd:0' is a GPU of AMD"),
        ("GPU-aaaa", "'GPU-aaaa' is AMD Instinct MI300X"),
        ("84:00.0", "'84:00.0' is Intel"),
    ] {
        let refused = run_gpumon(&fake, &tree, &["bench", "copy", "--device", name]);
        assert_eq!(refused.status.code(), Some(3), "{name}");
        let said = stderr_text(&refused);
        assert!(
            said.contains(what) && said.contains("--backend cpu"),
            "{said}"
        );
    }
}

/// Returns the findings of a check, each with its verdict.
fn list_findings(report: &Value, check: &str) -> Vec<String> {
    let checks = report["checks"].as_array().unwrap().iter();
    let own = checks.filter(|found| found["check"] == check);
    own.map(|found| format!("{}: {}", found["verdict"], found["finding"]))
        .collect()
}

#[test]
fn doctor_checks_drivers_of_all_vendors() {
    let (fake, tree) = (FakeNvml::new("gpus = 1\n"), make_tree());
    let unbound = tree.sys().join("bus/pci/devices/0000:85:00.0");
    fs::create_dir_all(&unbound).unwrap();
    fs::write(unbound.join("vendor"), "0x1002\n").unwrap();
    fs::write(unbound.join("class"), "0x030000\n").unwrap();
    let mut table = MetricsTable::new(1, 8).bytes();
    table[3] = 42;
    let file = tree.sys().join("class/drm/card1/device/gpu_metrics");
    fs::write(file, table).unwrap();
    let output = run_gpumon(&fake, &tree, &["doctor", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr_text(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let drivers = list_findings(&report, "driver").join("\n");
    for words in [
        "\"warning\": \"the AMD GPU at 0000:85:00.0 is not shown, because it has no kernel driver \
         (expected: amdgpu)",
        "\"note\": \"gpumon was tested with recorded data from AMD GPUs, but not yet on real \
         hardware",
        "recorded data from Intel GPUs",
    ] {
        assert!(drivers.contains(words), "{drivers}");
    }
    let metrics = list_findings(&report, "gpu_metrics").join("\n");
    assert!(
        metrics.contains("0000:83:00.0: gpu_metrics v1.42 with"),
        "{metrics}"
    );
    let files = list_findings(&report, "device files").join("\n");
    assert!(files.contains("/dev/dri/renderD129"), "{files}");
    let gpu = list_findings(&report, "gpu 1").join("\n");
    assert!(gpu.contains("AMD Instinct MI300X"), "{gpu}");
}

/// Returns the boards, samples and details of a source, without times and IDs.
fn read_gpus(fake: &FakeNvml, sysfs: &Path, source: &str) -> Value {
    let mut command = fake.gpumon_command(&["--source", source, "--json"]);
    let output = command.env("GPUMON_SYSFS", sysfs).output().unwrap();
    let mut answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut parts = Vec::new();
    for place in ["/inventory/gpus", "/sample/gpus", "/details"] {
        let gpus = answer.pointer_mut(place).unwrap().as_array_mut().unwrap();
        for gpu in gpus {
            for key in ["at_ms", "uuid"] {
                gpu[key].take();
            }
            if gpu["board"].is_object() {
                gpu["board"]["serial"].take();
            }
            // The free memory of the machine changes all the time, so it is not compared.
            if gpu["memory_kind"] == "unified" {
                gpu["memory"]["free_bytes"].take();
            }
            // The host memory of the running process changes all the time, so it is not compared.
            let processes = gpu.get_mut("processes").and_then(Value::as_array_mut);
            for process in processes.into_iter().flatten() {
                process["host_memory_bytes"].take();
            }
            parts.push(gpu.take());
        }
    }
    Value::from(parts)
}

#[test]
fn bundle_has_same_readings_as_machine() {
    let (fake, tree) = (FakeNvml::new("gpus = 1\n"), make_tree());
    let id = MI300X_UUID.strip_prefix("GPU-").unwrap();
    let number = u64::from_str_radix(id, 16).unwrap();
    let node = "class/kfd/kfd/topology/nodes/2/properties";
    let properties = fs::read_to_string(tree.sys().join(node)).unwrap();
    let lines = properties.lines().map(|line| match line.split_once(' ') {
        Some(("unique_id", _)) => format!("unique_id {number}\n"),
        _ => format!("{line}\n"),
    });
    fs::write(tree.sys().join(node), lines.collect::<String>()).unwrap();
    let archive = fake.path("bundle.tar.gz");
    let arguments = ["doctor", "--yes", "--bundle", archive.to_str().unwrap()];
    let output = run_gpumon(&fake, &tree, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    let list = stdout_text(&output);
    assert!(list.contains("sysfs/") && list.contains(" files"), "{list}");
    let folder = tempfile::tempdir().unwrap();
    let open = || tar::Archive::new(GzDecoder::new(File::open(&archive).unwrap()));
    open().unpack(folder.path()).unwrap();
    let copy = folder.path().join("gpumon-bundle/sysfs");
    for source in ["amd", "intel"] {
        let original = read_gpus(&fake, &tree.sys(), source);
        assert_eq!(read_gpus(&fake, &copy, source), original, "{source}");
    }
    // IDs are replaced by placeholders. An ID that is in several files of the bundle must have the
    // same placeholder everywhere.
    let read = |name: &str| fs::read_to_string(copy.join(name)).unwrap();
    let placeholder = read("class/drm/card1/device/unique_id");
    assert!(read(node).contains(&format!("unique_id {placeholder}")));
    let sample = fs::read_to_string(folder.path().join("gpumon-bundle/sample.json")).unwrap();
    let sample: Value = serde_json::from_str(&sample).unwrap();
    let uuid = format!("GPU-{}", placeholder.trim());
    assert_eq!(sample["inventory"]["gpus"][1]["uuid"], uuid);
    for entry in open().entries().unwrap() {
        let mut text = Vec::new();
        std::io::copy(&mut entry.unwrap(), &mut text).unwrap();
        let text = String::from_utf8_lossy(&text).to_lowercase();
        for secret in [id, &number.to_string(), "6921000083000"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
}
