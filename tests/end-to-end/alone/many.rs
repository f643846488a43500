//! The minimum and maximum number of GPUs and processes.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::Value;

use crate::support::FakeNvml;

#[test]
fn lists_of_1_and_64_gpus_are_ordered() {
    for count in [1_usize, 64] {
        let fake = FakeNvml::new(&format!("gpus = {count}"));
        let records = fake.collect(&["--count", "3", "--interval-ms", "300"]);
        let (reported, once) = (records.gpu_identities(), fake.read_json());
        assert_eq!(reported.len(), count);
        for sample in records.records_of_type("sample").chain([&once["sample"]]) {
            let gpus = sample["gpus"].as_array().unwrap();
            let named = |gpu: &Value| {
                (
                    gpu["index"].as_u64().unwrap(),
                    gpu["uuid"].as_str().map(str::to_owned),
                )
            };
            assert_eq!(gpus.iter().map(named).collect::<Vec<_>>(), reported);
            assert!(gpus.iter().all(|gpu| gpu["health"]["state"] == "ok"));
        }
        assert_eq!(
            reported
                .iter()
                .map(|(_, uuid)| uuid)
                .collect::<BTreeSet<_>>()
                .len(),
            count,
            "each GPU has its own UUID"
        );
    }
}

/// Returns the anonymous memory of a process in bytes. The program's code is not counted, because a
/// debug build has more code.
fn anonymous_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn many_processes_are_sampled_quickly_with_little_memory() {
    let real = std::process::id();
    // A sample has no room for all of these processes. Their PIDs do not exist, as if the processes
    // had ended after the driver listed them.
    let scenario = format!(
        "gpus = 2\n[[process]]\ngpu = 0\npid = 5000000\ncount = 2000\nmemory = \"8 MiB\"\n\
         [[process]]\ngpu = 0\npid = {real}\nmemory = \"1 GiB\"\n"
    );
    let fake = FakeNvml::new(&scenario);
    let mut child = fake
        .gpumon_command(&["collect", "--interval-ms", "500"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let records = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let mut most_bytes = 0;
    // On a busy machine, some samples have no answer from the GPU.
    let is_answered = |sample: &&Value| sample["gpus"][0]["processes"].is_array();
    let mut samples = Vec::new();
    for sample in records.filter(|record| record["type"] == "sample") {
        most_bytes = most_bytes.max(anonymous_bytes(child.id()));
        samples.push(sample);
        if samples.iter().filter(is_answered).count() == 6 {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for sample in samples.iter().filter(is_answered) {
        let processes = sample["gpus"][0]["processes"].as_array().unwrap();
        let omitted = sample["gpus"][0]["processes_omitted"].as_u64().unwrap() as usize;
        assert_eq!(processes.len() + omitted, 2001);
        assert!(
            processes.len() >= 1000 && sample.to_string().len() < 1 << 20,
            "{}",
            processes.len()
        );
        assert!(sample["gpus"][1]["processes_omitted"].is_null());
        let ended = processes
            .iter()
            .find(|process| process["pid"] == 5_000_000)
            .expect("an ended process must still be listed");
        assert_eq!(
            ended["memory_bytes"],
            8 << 20,
            "the memory that the driver reported is kept"
        );
        assert!(
            ended["name"]["absent"].is_string() && ended["user"]["absent"].is_string(),
            "{ended}"
        );
        let own = processes
            .iter()
            .find(|process| process["pid"] == real)
            .unwrap();
        assert!(own["name"].is_string() && own["user"].is_string(), "{own}");
        assert_eq!(sample["gpus"][1]["health"]["state"], "ok");
    }
    for pair in samples.windows(2) {
        let apart_ms = pair[1]["at_ms"].as_u64().unwrap() - pair[0]["at_ms"].as_u64().unwrap();
        assert!(apart_ms < 1500, "samples are {apart_ms} ms apart");
    }
    assert!(most_bytes < 24 << 20, "{} MiB", most_bytes >> 20);
}
