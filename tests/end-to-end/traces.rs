//! Traces: readings that the driver records on its own, read in parts.

use gpumon_probe::model::now_ms;

use crate::support::{FakeNvml, Records};

/// The buffer of utilization is read every ten seconds.
pub(crate) fn driver_buffers_are_read_without_gaps_or_duplicates() {
    let fake = FakeNvml::new(&format!("gpus = 2\nstart_ms = {}\n", now_ms() - 60_000));
    let collect = || fake.collect(&["--count", "52", "--interval-ms", "250"]);
    // A busy machine may delay a run until the driver's buffer has overflowed.
    let has_gap = |records: &Records| {
        records
            .records_of_type("trace")
            .any(|trace| trace["gap"] == true)
    };
    let records = (0..5)
        .map(|_| collect())
        .find(|records| !has_gap(records))
        .expect("one of five runs must have no gap");
    for (gpu, metric, spacing_us, least_us) in [
        (0, "power_watts", 20_000, 10_000_000),
        (1, "power_watts", 20_000, 10_000_000),
        (0, "gpu_percent", 200_000, 20_000_000),
        (0, "memory_percent", 200_000, 20_000_000),
    ] {
        let traces: Vec<_> = records
            .records_of_type("trace")
            .filter(|trace| trace["index"] == gpu && trace["metric"] == metric)
            .collect();
        assert!(
            traces.len() >= 2,
            "{metric}: there are fewer than two traces"
        );
        let mut times = Vec::new();
        for trace in &traces {
            let start_us = trace["start_us"].as_u64().unwrap();
            let offsets = trace["offsets_us"]
                .as_array()
                .unwrap()
                .iter()
                .map(|offset| offset.as_u64().unwrap());
            assert_eq!(offsets.len(), trace["values"].as_array().unwrap().len());
            times.extend(offsets.map(|offset| start_us + offset));
        }
        for pair in times.windows(2) {
            let apart_us = pair[1].saturating_sub(pair[0]);
            assert!(
                apart_us.abs_diff(spacing_us) <= 1000,
                "{metric} of {gpu}: samples are {apart_us} us apart at {}",
                pair[0]
            );
        }
        let long_us = times[times.len() - 1] - times[0];
        assert!(
            long_us >= least_us,
            "{metric} of {gpu}: the samples only cover {long_us} us"
        );
    }
}
