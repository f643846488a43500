//! A driver that returns impossible values: they are not shown, and all other values are correct.

use gpumon_probe::model::now_ms;
use serde_json::Value;

use crate::support::{FakeNvml, Records};

/// Collects all numbers with their paths.
fn collect_numbers(value: &Value, path: &str, found: &mut Vec<(String, f64)>) {
    match value {
        Value::Number(number) => found.push((path.to_owned(), number.as_f64().unwrap())),
        Value::Array(entries) => entries
            .iter()
            .for_each(|entry| collect_numbers(entry, &format!("{path}[]"), found)),
        Value::Object(fields) => match fields.get("value") {
            Some(earlier) => collect_numbers(earlier, path, found),
            None => fields
                .iter()
                .for_each(|(name, field)| collect_numbers(field, &format!("{path}.{name}"), found)),
        },
        _ => {}
    }
}

/// Returns the numbers that are impossible for a GPU.
fn find_impossible_numbers(value: &Value) -> Vec<(String, f64)> {
    let mut found = Vec::new();
    collect_numbers(value, "", &mut found);
    let is_possible = |path: &str, number: f64| match path {
        _ if path.ends_with("_percent") => (0.0..=100.5).contains(&number),
        _ if path.ends_with("_celsius") => (-40.0..=200.0).contains(&number),
        _ if path.ends_with("_watts") => (0.0..=20_000.0).contains(&number),
        _ if path.ends_with("_mhz") => (0.0..=20_000.0).contains(&number),
        // The limit is far above the speed of the fastest links.
        _ if path.ends_with("bytes_per_second") => (0.0..=1e13).contains(&number),
        _ => (0.0..1e19).contains(&number),
    };
    found.retain(|(path, number)| !is_possible(path, *number));
    found
}

fn power_readings(records: &Records, gpu: usize) -> Vec<f64> {
    records
        .records_of_type("sample")
        .filter_map(|sample| sample["gpus"][gpu]["power"]["draw_watts"].as_f64())
        .collect()
}

#[test]
fn impossible_readings_become_unknown_without_affecting_other_readings() {
    let gpu = |index| {
        let pid = std::process::id();
        format!(
            "[[gpu]]\nindex = {index}\nfans = 1\nnvlinks = 2\nutilization_percent = \
             60\npower_watts = 400\n[[process]]\ngpu = {index}\npid = {pid}\nmemory = \"1 \
             GiB\"\nsm_percent = 60\n"
        )
    };
    let gpus = [0, 1].map(gpu).concat();
    let start_ms = now_ms() - 60_000;
    let fake = FakeNvml::new(&format!(
        "start_ms = {start_ms}\n{gpus}[[fault]]\nkind = \"garbage\"\ngpu = 1\n"
    ));
    let records = fake.collect(&["--count", "4", "--interval-ms", "300"]);
    for sample in records.records_of_type("sample") {
        let memory = &sample["gpus"][1]["memory"];
        assert_eq!(find_impossible_numbers(&sample["gpus"]), []);
        let (used, total) = (&memory["used_bytes"], &memory["total_bytes"]);
        assert!(used["absent"] == "unknown" && total.is_u64(), "{memory}");
        assert_eq!(
            memory["free_bytes"]["absent"], "unknown",
            "values that are computed from it are unknown, too"
        );
        let process = &sample["gpus"][1]["processes"][0];
        assert_eq!(
            process["sm_percent"]["absent"], "unknown",
            "the process must not be shown as idle: {process}"
        );
        assert_eq!(sample["gpus"][1]["health"]["state"], "ok");
        assert_eq!(
            sample["gpus"][1]["conditions"],
            serde_json::json!([]),
            "impossible readings must not cause conditions"
        );
    }
    for trace in records.records_of_type("trace") {
        let values = trace["values"]
            .as_array()
            .unwrap()
            .iter()
            .map(|value| value.as_f64().unwrap());
        let most = if trace["metric"] == "power_watts" {
            20_000.0
        } else {
            100.5
        };
        assert!(
            values
                .into_iter()
                .all(|value| (0.0..=most).contains(&value)),
            "{trace}"
        );
    }
    for details in records.records_of_type("details") {
        assert_eq!(find_impossible_numbers(details), []);
    }
    assert!(
        power_readings(&records, 0)
            .iter()
            .all(|watts| (watts - 400.0).abs() < 40.0),
        "{:?}",
        power_readings(&records, 0)
    );
    let share = &records.last_record_of_type("sample")["gpus"][0]["processes"][0]["sm_percent"];
    assert_eq!(*share.get("value").unwrap_or(share), 60.0);
}

#[test]
fn backward_counters_do_not_cause_negative_rates() {
    let start_ms = now_ms() - 60_000;
    let fake = FakeNvml::new(&format!(
        "start_ms = {start_ms}\n[[gpu]]\nindex = 0\nnvlinks = 2\necc_corrected = \
         500\nutilization_percent = 60\n[[gpu]]\nindex = 1\n[[fault]]\nkind = \"backwards\"\ngpu = \
         0\nfrom_s = 62\nto_s = 68\n[[event]]\nkind = \"ecc_corrected\"\ngpu = 0\nat_s = 63\n"
    ));
    // The energy counter runs backwards for some seconds. gpumon reads it every five seconds:
    // before, during and after this time.
    let records = fake.collect(&["--count", "54", "--interval-ms", "300"]);
    let energy: Vec<_> = records
        .records_of_type("sample")
        .map(|sample| {
            assert_eq!(find_impossible_numbers(&sample["gpus"]), []);
            let energy = &sample["gpus"][0]["power"]["energy_joules_total"];
            energy
                .as_f64()
                .or_else(|| energy["value"].as_f64())
                .expect("every sample must have the counter")
        })
        .collect();
    assert!(
        energy.windows(2).any(|pair| pair[1] < pair[0]),
        "the counter must run backwards: {energy:?}"
    );
    let (last, lowest) = (
        energy[energy.len() - 1],
        energy.iter().copied().fold(f64::MAX, f64::min),
    );
    assert!(last > lowest, "the counter must grow again: {energy:?}");
    let errors = |event: &&Value| {
        event["what"] == "ecc_errors" && event["at_ms"].as_u64().unwrap() < start_ms + 68_000
    };
    let reported: Vec<_> = records.records_of_type("event").filter(errors).collect();
    assert!(
        reported.is_empty(),
        "a decrease is not a new error: {reported:?}"
    );
}

#[test]
fn process_utilization_works_with_different_driver_clock() {
    let (pid, start_ms) = (std::process::id(), now_ms() - 60_000);
    let gpu = |(index, by_s): (u32, i32)| {
        format!(
            "[[process]]\ngpu = {index}\npid = {pid}\nmemory = \"1 GiB\"\nsm_percent = 40\n\
             [[fault]]\nkind = \"clock_skew\"\ngpu = {index}\nby_s = {by_s}\n"
        )
    };
    let gpus = [(0, -3600), (1, 3600)].map(gpu).concat();
    let fake = FakeNvml::new(&format!("gpus = 3\nstart_ms = {start_ms}\n{gpus}"));
    let records = fake.collect(&["--count", "16", "--interval-ms", "300"]);
    for gpu in [0, 1] {
        let shares: Vec<_> = records
            .records_of_type("sample")
            .map(|sample| &sample["gpus"][gpu]["processes"][0]["sm_percent"])
            .map(|share| share.get("value").unwrap_or(share))
            .filter(|share| share.is_number())
            // The first readings are 0, because the driver has not yet completed its first period.
            .skip_while(|share| **share == 0.0)
            .collect();
        assert!(
            shares.len() >= 8 && shares.iter().all(|share| **share == 40.0),
            "GPU {gpu}: {shares:?}"
        );
        for metric in ["power_watts", "gpu_percent", "memory_percent"] {
            let of_it = |trace: &&Value| trace["index"] == gpu && trace["metric"] == metric;
            assert!(
                records.records_of_type("trace").any(|trace| of_it(&trace)),
                "there is no trace of {metric} of GPU {gpu}"
            );
        }
    }
}
