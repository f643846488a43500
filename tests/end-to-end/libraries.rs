//! Invalid libraries: each has an error with its remedy, and a server waits for a valid one.

use std::fs;

use crate::support::{FakeNvml, Server, assert_refused_with, gpumon_command};

/// Returns the ELF header of a 64-bit shared library for a machine: 62 is x86-64, 183 is ARM.
fn make_elf_header(machine: u16) -> Vec<u8> {
    let mut header = vec![
        0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0,
    ];
    header.extend(machine.to_le_bytes());
    header.extend([1, 0, 0, 0]);
    header.resize(52, 0);
    // The sizes of the header and of the entries of its tables.
    header.extend([64, 0, 56, 0, 0, 0, 64, 0, 0, 0, 0, 0]);
    header
}

#[test]
fn foreign_or_truncated_library_is_refused() {
    let other = if cfg!(target_arch = "x86_64") {
        183
    } else {
        62
    };
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("other", make_elf_header(other)),
        ("cut", make_elf_header(other)[..20].to_vec()),
        ("empty", Vec::new()),
    ] {
        let library = folder.path().join(name);
        fs::write(&library, bytes).unwrap();
        let library = library.to_str().unwrap();
        assert_eq!(
            assert_refused_with(
                gpumon_command(&["--json", "--nvml-lib", library]),
                12,
                &[library, "--nvml-lib"]
            ),
            ""
        );
    }
}

#[test]
fn old_library_provides_available_readings() {
    let has = [
        "nvmlInit_v2",
        "nvmlInitWithFlags",
        "nvmlShutdown",
        "nvmlDeviceGetCount_v2",
        "nvmlDeviceGetHandleByIndex_v2",
        "nvmlDeviceGetName",
        "nvmlDeviceGetUUID",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetTemperature",
    ];
    let hidden: Vec<_> = gpumon_probe::vendor::sim::FUNCTIONS
        .iter()
        .copied()
        .filter(|function| !has.contains(function))
        .collect();
    let (old, new) = (
        FakeNvml::without_functions("gpus = 2", &hidden),
        FakeNvml::new("gpus = 2"),
    );
    let (old, new) = (
        old.collect(&["--count", "2", "--interval-ms", "200"]),
        new.read_json(),
    );
    for gpu in 0..2 {
        assert_eq!(
            old.last_record_of_type("inventory")["gpus"][gpu]["uuid"],
            new["inventory"]["gpus"][gpu]["uuid"]
        );
        let (present, absent) = old.classify_readings(gpu);
        let readings: Vec<_> = present
            .keys()
            .filter(|path| path.starts_with("sample.") && path.matches('.').count() > 1)
            .collect();
        assert_eq!(
            readings,
            [
                "sample.health.state",
                "sample.memory.free_bytes",
                "sample.memory.total_bytes",
                "sample.memory.used_bytes",
                "sample.temperature.gpu_celsius"
            ]
        );
        let others: Vec<_> = absent
            .iter()
            .filter(|(_, reason)| *reason != "not_supported")
            .collect();
        // This driver does not report these values, so they come from the operating system.
        assert!(
            others
                .iter()
                .all(|(path, _)| *path == "gpu.board.numa_node"),
            "{others:?}"
        );
    }
}

/// The server searches for a library every fifteen seconds.
pub(crate) async fn server_uses_library_installed_after_start() {
    let fake = FakeNvml::new("gpus = 2");
    let library = fake.path("libnvidia-ml.so.1");
    let elsewhere = fake.path("kept-for-later");
    fs::rename(&library, &elsewhere).unwrap();
    let server = Server::start_with_fake(&fake, &["--interval-ms", "250"]);
    let mut stream = server.open_stream().await;
    let reported = stream
        .read_until(|frame| frame["state"] == "unavailable")
        .await;
    assert!(
        reported["message"]
            .as_str()
            .unwrap()
            .contains("libnvidia-ml.so.1"),
        "{reported}"
    );
    assert_eq!(
        (server.get("/healthz").status, server.get("/readyz").status),
        (200, 503)
    );
    fs::rename(&elsewhere, &library).unwrap();
    let sample = stream.next_frame_of_type("sample").await;
    assert_eq!(sample["gpus"].as_array().unwrap().len(), 2);
}
