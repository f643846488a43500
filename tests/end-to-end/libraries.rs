//! Invalid libraries: each has an error with its remedy, and a server waits for a valid one.

use std::fs;

use crate::support::{Fake, Server, gpumon, refused_with};

/// The ELF header of a 64-bit shared library for this machine: 62 is x86-64, 183 is ARM.
fn elf(machine: u16) -> Vec<u8> {
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
fn a_library_for_another_machine_or_cut_off_is_no_library() {
    let other = if cfg!(target_arch = "x86_64") {
        183
    } else {
        62
    };
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("other", elf(other)),
        ("cut", elf(other)[..20].to_vec()),
        ("empty", Vec::new()),
    ] {
        let library = folder.path().join(name);
        fs::write(&library, bytes).unwrap();
        let library = library.to_str().unwrap();
        assert_eq!(
            refused_with(
                gpumon(&["--json", "--nvml-lib", library]),
                12,
                &[library, "--nvml-lib"]
            ),
            ""
        );
    }
}

#[test]
fn a_library_of_long_ago_gives_what_it_has() {
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
    let (old, new) = (Fake::without("gpus = 2", &hidden), Fake::new("gpus = 2"));
    let (old, new) = (
        old.collect(&["--count", "2", "--interval-ms", "200"]),
        new.json(),
    );
    for gpu in 0..2 {
        assert_eq!(
            old.last("inventory")["gpus"][gpu]["uuid"],
            new["inventory"]["gpus"][gpu]["uuid"]
        );
        let (present, absent) = old.readings(gpu);
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
        // The system provides the values that this driver lacks.
        assert!(
            others
                .iter()
                .all(|(path, _)| *path == "gpu.board.numa_node"),
            "{others:?}"
        );
    }
}

/// The server searches for a library every fifteen seconds.
pub(crate) async fn a_server_over_a_library_that_is_missing_takes_the_one_that_is_installed() {
    let fake = Fake::new("gpus = 2");
    let library = fake.path("libnvidia-ml.so.1");
    let elsewhere = fake.path("kept-for-later");
    fs::rename(&library, &elsewhere).unwrap();
    let server = Server::over(&fake, &["--interval-ms", "250"]);
    let mut stream = server.stream().await;
    let told = stream.until(|frame| frame["state"] == "unavailable").await;
    assert!(
        told["message"]
            .as_str()
            .unwrap()
            .contains("libnvidia-ml.so.1"),
        "{told}"
    );
    assert_eq!(
        (server.get("/healthz").status, server.get("/readyz").status),
        (200, 503)
    );
    fs::rename(&elsewhere, &library).unwrap();
    let sample = stream.next_of("sample").await;
    assert_eq!(sample["gpus"].as_array().unwrap().len(), 2);
}
