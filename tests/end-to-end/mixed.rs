//! A machine with GPUs of NVIDIA, AMD and Intel.

use std::{fs, path::PathBuf, process::Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Fake, Server, eventually, stderr};

/// Files below `/sys` of an Instinct MI210 that this test's own process computes on, and of an
/// Arc B580.
fn sysfs_files() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, content: &str| {
        let file = root.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("{content}\n")).unwrap();
    };
    let device = "class/drm/card1/device";
    let hwmon = format!("{device}/hwmon/hwmon5");
    for (name, content) in [
        (
            "uevent",
            "DRIVER=amdgpu\nPCI_ID=1002:740F\nPCI_SLOT_NAME=0000:83:00.0",
        ),
        ("unique_id", "a1b2c3d4e5f60718"),
        ("product_name", "AMD Instinct MI210"),
        ("serial_number", "PCB123"),
        ("gpu_busy_percent", "83"),
        ("mem_busy_percent", "40"),
        ("mem_info_vram_total", "68702699520"),
        ("mem_info_vram_used", "12884901888"),
        ("current_link_speed", "16.0 GT/s PCIe"),
        ("current_link_width", "16"),
        ("numa_node", "1"),
        ("ras/umc_err_count", "ue: 0\nce: 3"),
    ] {
        write(&format!("{device}/{name}"), content);
    }
    for (name, content) in [
        ("name", "amdgpu"),
        ("temp1_label", "edge"),
        ("temp1_input", "51000"),
        ("temp2_label", "junction"),
        ("temp2_input", "58000"),
        ("temp2_crit", "100000"),
        ("temp3_label", "mem"),
        ("temp3_input", "60000"),
        ("power1_average", "201000000"),
        ("power1_cap", "300000000"),
        ("freq1_label", "sclk"),
        ("freq1_input", "1700000000"),
    ] {
        write(&format!("{hwmon}/{name}"), content);
    }
    let pid = std::process::id();
    for (path, content) in [
        ("topology/generation_id".to_owned(), "1"),
        ("topology/nodes/2/gpu_id".to_owned(), "4711"),
        (
            "topology/nodes/2/properties".to_owned(),
            "simd_count 416\nsimd_per_cu 4\nlocation_id 33536\ndomain 0\n\
             gfx_target_version 90010\ndrm_render_minor 129",
        ),
        (format!("proc/{pid}/vram_4711"), "8589934592"),
        (format!("proc/{pid}/stats_4711/cu_occupancy"), "52"),
    ] {
        write(&format!("class/kfd/kfd/{path}"), content);
    }
    // A card of Intel that nobody uses.
    let device = "class/drm/card2/device";
    for (name, content) in [
        (
            "uevent",
            "DRIVER=xe\nPCI_ID=8086:E20B\nPCI_SLOT_NAME=0000:84:00.0",
        ),
        ("tile0/gt0/freq0/act_freq", "2400"),
        ("hwmon/hwmon6/name", "xe"),
        ("hwmon/hwmon6/temp2_label", "pkg"),
        ("hwmon/hwmon6/temp2_input", "44000"),
    ] {
        write(&format!("{device}/{name}"), content);
    }
    root
}

/// Runs gpumon without the variables of a scheduler.
fn run_with(fake: &Fake, sysfs: &TempDir, arguments: &[&str]) -> Output {
    let mut command = fake.gpumon(arguments);
    for variable in [
        "CUDA_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "ZE_AFFINITY_MASK",
    ] {
        command.env_remove(variable);
    }
    command.env("GPUMON_SYSFS", sysfs.path()).output().unwrap()
}

fn print_with(fake: &Fake, sysfs: &TempDir, arguments: &[&str]) -> String {
    let output = run_with(fake, sysfs, arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn gpus_of_all_vendors_are_listed() {
    let (fake, sysfs) = (Fake::new("gpus = 1\n"), sysfs_files());
    let answer: Value = serde_json::from_str(&print_with(&fake, &sysfs, &["--json"])).unwrap();
    let gpus = answer["inventory"]["gpus"].as_array().unwrap();
    let vendors: Vec<_> = gpus
        .iter()
        .map(|gpu| gpu["vendor"].as_str().unwrap())
        .collect();
    assert_eq!(vendors, ["nvidia", "amd", "intel"]);
    assert_eq!(gpus[1]["name"], "AMD Instinct MI210");
    assert_eq!(gpus[1]["uuid"], "GPU-a1b2c3d4e5f60718");
    assert_eq!(
        (&gpus[1]["index"], &gpus[1]["vendor_index"]),
        (&1.into(), &0.into())
    );
    assert_eq!(gpus[1]["board"]["architecture"], "gfx90a");
    let drivers = answer["inventory"]["platform"]["drivers"]
        .as_array()
        .unwrap();
    assert_eq!(drivers.len(), 3);
    assert_eq!(
        answer["sample"]["gpus"][2]["temperature"]["gpu_celsius"],
        44.0
    );
    let sample = &answer["sample"]["gpus"][1];
    for (path, expected) in [
        ("/utilization/gpu_percent", 83.0),
        ("/memory/used_bytes", 12_884_901_888.0),
        ("/temperature/gpu_celsius", 51.0),
        ("/temperature/junction_celsius", 58.0),
        ("/power/draw_watts", 201.0),
        ("/clocks/sm_mhz", 1700.0),
        ("/pcie/generation", 4.0),
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
    let (fake, sysfs) = (Fake::new("gpus = 1\n"), sysfs_files());
    let table = print_with(&fake, &sysfs, &[]);
    assert!(
        table.contains("Instinct MI210") && table.contains("H200"),
        "{table}"
    );
    let folder: PathBuf = sysfs.path().to_owned();
    let server = Server::over(&fake, &["--sysfs", folder.to_str().unwrap()]);
    let line = "gpumon_gpu_temperature_celsius{gpu=\"1\",uuid=\"GPU-a1b2c3d4e5f60718\"} 51";
    eventually("the metrics have the GPU of AMD", || {
        server.get("/metrics").body.lines().any(|own| own == line)
    });
    let text = server.get("/metrics").body;
    assert!(
        text.contains("gpumon_gpu_junction_temperature_celsius{gpu=\"1\""),
        "{text}"
    );
    assert!(
        text.contains("vendor=\"AMD\"") || text.contains("AMD Instinct MI210"),
        "{text}"
    );
}

#[test]
fn machine_without_nvidia_driver_shows_others() {
    let (fake, sysfs) = (Fake::new("gpus = 1\n"), sysfs_files());
    let mut command = fake.gpumon(&["--json"]);
    command.env("GPUMON_NVML_LIB", "/nowhere/libnvidia-ml.so.1");
    let output = command.env("GPUMON_SYSFS", sysfs.path()).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["inventory"]["gpus"].as_array().unwrap().len(), 2);
    assert_eq!(
        answer["sample"]["gpus"][0]["utilization"]["gpu_percent"],
        83.0
    );
    let only = print_with(&fake, &sysfs, &["--source", "amd", "--json"]);
    let only: Value = serde_json::from_str(&only).unwrap();
    assert_eq!(only["inventory"]["gpus"][0]["vendor"], "amd");
    let only = print_with(&fake, &sysfs, &["--source", "intel", "--json"]);
    let only: Value = serde_json::from_str(&only).unwrap();
    assert_eq!(only["inventory"]["gpus"][0]["uuid"], "PCI-0000:84:00.0");
}

#[test]
fn gpus_are_selected_by_vendor() {
    let (fake, sysfs) = (Fake::new("gpus = 2\n"), sysfs_files());
    for (name, index) in [
        ("nvidia:1", 1),
        ("AMD:0", 2),
        ("GPU-a1b2c3d4e5f60718", 2),
        ("83:00.0", 2),
        ("intel:0", 3),
        ("PCI-0000:84:00.0", 3),
    ] {
        let answer = print_with(&fake, &sysfs, &["-i", name, "--json"]);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let [gpu] = &answer["sample"]["gpus"].as_array().unwrap()[..] else {
            panic!("{name}: {answer}")
        };
        assert_eq!(gpu["index"], index, "{name}");
    }
    let refused = run_with(&fake, &sysfs, &["-i", "amd:1"]);
    assert_eq!(refused.status.code(), Some(6));
    let said = stderr(&refused);
    assert!(
        said.contains("no GPU 'amd:1': there is only amd:0"),
        "{said}"
    );
}

#[test]
fn sleeping_card_is_selected_by_vendor() {
    let (fake, sysfs) = (Fake::new("gpus = 1\n"), sysfs_files());
    let power = sysfs.path().join("class/drm/card1/device/power");
    fs::create_dir(&power).unwrap();
    fs::write(power.join("runtime_status"), "suspended\n").unwrap();
    let answer = print_with(&fake, &sysfs, &["-i", "amd:0", "--json"]);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["sample"]["gpus"][0]["health"]["state"], "asleep");
    let gpu = &answer["inventory"]["gpus"][0];
    assert_eq!(
        (&gpu["vendor"], &gpu["uuid"]),
        (&"amd".into(), &"GPU-a1b2c3d4e5f60718".into())
    );
}

#[test]
fn command_gets_variables_of_selected_vendor() {
    let (fake, sysfs) = (Fake::new("gpus = 1\n"), sysfs_files());
    let locks = tempfile::tempdir().unwrap();
    let script = "echo $ROCR_VISIBLE_DEVICES/$HIP_VISIBLE_DEVICES/$CUDA_VISIBLE_DEVICES";
    let wait = |id: &[&str]| {
        let folder = locks.path().to_str().unwrap();
        let command = ["--", "sh", "-c", script];
        let options = [
            "wait", "--quiet", "--now", "--free", "10GiB", "--locks", folder,
        ];
        print_with(&fake, &sysfs, &[&options, id, &command].concat())
    };
    assert_eq!(wait(&["-i", "amd:0"]).trim(), "GPU-a1b2c3d4e5f60718/0/");
    let first_vendor = wait(&[]);
    assert!(first_vendor.starts_with("//GPU-"), "{first_vendor}");
}

#[test]
fn workloads_refuse_gpus_of_other_vendors() {
    let (fake, sysfs) = (Fake::new("gpus = 1\n"), sysfs_files());
    for (name, what) in [
        ("amd:0", "'amd:0' is a GPU of AMD"),
        ("GPU-a1b2", "'GPU-a1b2' is AMD Instinct MI210"),
        ("84:00.0", "'84:00.0' is Intel"),
    ] {
        let refused = run_with(&fake, &sysfs, &["bench", "copy", "--device", name]);
        assert_eq!(refused.status.code(), Some(3), "{name}");
        let said = stderr(&refused);
        assert!(
            said.contains(what) && said.contains("--backend cpu"),
            "{said}"
        );
    }
}
