//! NVML reports the activity of a load that uses CUDA, and no activity after its end.

use serde_json::Value;

use crate::support::{
    FakeMachine, SMALL_BUS_BITS, SMALL_MULTIPROCESSORS, SMALL_SM_MHZ, run_json_lines,
};

/// Two linked GPUs without other processes. Only the first has activity counters.
const LINKED_GPUS: &str = "[[gpu]]\nindex = 0\nprofile = \"idle\"\nnvlinks = 18\n\
                    [[gpu]]\nindex = 1\nprofile = \"idle\"\nnvlinks = 18\ngpm = false\n";

/// Runs loads. Returns their results, and the samples of a collector that runs before, during and
/// after the loads.
fn run_observed_loads(machine: &FakeMachine, loads: &[&[&str]]) -> (Vec<Value>, Vec<Value>) {
    let result = |load: &&[&str]| {
        let bench = [&["bench", "--json", "--backend", "cuda"], *load].concat();
        let (code, lines, said) =
            run_json_lines(machine.set_state_folder(machine.cuda.gpumon_command(&bench)));
        assert_eq!(code, Some(0), "{load:?}: {said}");
        lines
    };
    machine.sample_during(|| loads.iter().flat_map(result).collect())
}

/// Returns a reading if it was read between two moments. The reading covers a time window that
/// ended at the moment of reading.
fn value_if_read_between(reading: &Value, gpu: &Value, [from_ms, to_ms]: [f64; 2]) -> Option<f64> {
    let (value, at_ms) = match reading {
        Value::Object(_) => (&reading["value"], &reading["at_ms"]),
        _ => (reading, &gpu["at_ms"]),
    };
    let at_ms = at_ms.as_f64()?;
    value
        .as_f64()
        .filter(|_| from_ms <= at_ms && at_ms <= to_ms)
}

/// Returns the mean of a GPU's readings during a load. Readings whose window starts before the load
/// are left out.
#[track_caller]
fn mean_reading_during_load(samples: &[Value], load: &Value, gpu: usize, path: &str) -> f64 {
    let times = &load["environment"];
    let span = [
        times["from_ms"].as_f64().unwrap() + 250.0,
        times["to_ms"].as_f64().unwrap(),
    ];
    let gpus = samples.iter().map(|sample| &sample["gpus"][gpu]);
    let values: Vec<f64> = gpus
        .filter_map(|own| value_if_read_between(own.pointer(path)?, own, span))
        .collect();
    assert!(
        !values.is_empty(),
        "no values of {path} of GPU {gpu}: {}",
        samples[samples.len() / 2]
    );
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns two rates of a load, computed from its counter `what`, per second. The first is the mean
/// over the whole time, and the second is the rate of its fastest runs.
///
/// On a machine with other work, the load waits for a CPU. Readings are then between the two rates.
fn compute_rates(load: &Value, what: &str) -> [f64; 2] {
    let number = |pointer: &str| load.pointer(pointer).and_then(Value::as_f64).unwrap();
    let seconds = (number("/environment/to_ms") - number("/environment/from_ms")) / 1e3;
    let amount = load[what].as_f64().unwrap();
    [
        amount * number("/device_time/n") / seconds,
        amount / number("/device_time/p5_us") * 1e6,
    ]
}

/// Checks that a reading is near a multiple of the rates from [`compute_rates`].
#[track_caller]
fn assert_reading_matches_rates(what: &str, value: f64, times: f64, [slow, fast]: [f64; 2]) {
    assert!(
        (0.6 * times * slow..1.4 * times * fast).contains(&value),
        "{what} is {value}, but {times} times {slow} to {fast} was computed"
    );
}

const UTILIZATION: &str = "/utilization/gpu_percent";
const PCIE_RX: &str = "/pcie/rx_bytes_per_second";
const NVLINK_TX: &str = "/nvlink/tx_bytes_per_second";
const NVLINK_RX: &str = "/nvlink/rx_bytes_per_second";
const TENSOR: &str = "/activity/tensor_percent";
const DRAM: &str = "/activity/dram_bandwidth_percent";
const SM: &str = "/activity/sm_percent";
const ALL_READINGS: [&str; 9] = [
    UTILIZATION,
    PCIE_RX,
    "/pcie/tx_bytes_per_second",
    NVLINK_TX,
    NVLINK_RX,
    TENSOR,
    DRAM,
    SM,
    "/activity/occupancy_percent",
];

#[test]
fn collector_reports_exactly_the_activity_of_load() {
    let loads: [&[&str]; 4] = [
        &["h2d-pinned", "--size", "16MiB"],
        &["h2d-pinned", "--size", "16MiB", "--device", "1"],
        &["peer", "read", "--size", "16MiB"],
        &["matmul", "--dtype", "bf16", "--size", "128"],
    ];
    let (results, samples) = run_observed_loads(&FakeMachine::new(LINKED_GPUS), &loads);
    let [copy, copy_without_gpm, peer, reading, product] = &results[..] else {
        panic!("{results:?}")
    };
    for (load, gpu) in [(copy, 0), (copy_without_gpm, 1)] {
        // The load is the only work on this GPU.
        let busy = mean_reading_during_load(&samples, load, gpu, UTILIZATION);
        assert!(
            (40.0..=100.0).contains(&busy),
            "GPU {gpu} was busy for {busy} % of the time"
        );
        assert_reading_matches_rates(
            "PCIe",
            mean_reading_during_load(&samples, load, gpu, PCIE_RX),
            1.09,
            compute_rates(load, "moved_bytes"),
        );
        for path in [NVLINK_TX, NVLINK_RX] {
            assert!(
                mean_reading_during_load(&samples, load, gpu, path).abs() < 1.0,
                "{path}"
            );
        }
        assert!(
            mean_reading_during_load(&samples, load, 1 - gpu, UTILIZATION).abs() < 1.0,
            "the other GPU is idle"
        );
    }
    assert_reading_matches_rates(
        "sent",
        mean_reading_during_load(&samples, peer, 0, NVLINK_TX),
        1.025,
        compute_rates(peer, "moved_bytes"),
    );
    // Without GPM, the counter is read only once a second, so the measured interval may begin
    // before the load or end after it. If the load pauses less than usual in this interval, the
    // measured rate is above the load's mean rate.
    let received = samples.iter().filter_map(|sample| {
        let gpu = &sample["gpus"][1];
        value_if_read_between(gpu.pointer(NVLINK_RX)?, gpu, [0.0, f64::MAX])
    });
    let most = received.fold(0.0, f64::max);
    let [sent, fastest] = compute_rates(peer, "moved_bytes");
    assert!(
        (0.1 * sent..1.7 * fastest).contains(&most),
        "the maximum is {most}, but {sent} to {fastest} was sent"
    );
    // The peak bandwidth at 3201 MHz with two transfers per clock.
    let peak = f64::from(SMALL_BUS_BITS) / 8.0 * 3201e6 * 2.0;
    assert_reading_matches_rates(
        "read",
        mean_reading_during_load(&samples, reading, 0, DRAM),
        100.0 / peak,
        compute_rates(reading, "moved_bytes"),
    );
    let (sm, busy) = (
        mean_reading_during_load(&samples, reading, 0, SM),
        mean_reading_during_load(&samples, reading, 0, UTILIZATION),
    );
    assert!(
        sm > 0.6 * busy && sm < 1.4 * busy,
        "all multiprocessors read memory, but were active for {sm} % instead of {busy} %"
    );
    assert!(mean_reading_during_load(&samples, reading, 0, TENSOR).abs() < 0.01);
    let peak = 4096.0 * f64::from(SMALL_MULTIPROCESSORS * SMALL_SM_MHZ) * 1e6;
    assert_reading_matches_rates(
        "tensor",
        mean_reading_during_load(&samples, product, 0, TENSOR),
        100.0 / peak,
        compute_rates(product, "operations"),
    );
    let (sm, busy) = (
        mean_reading_during_load(&samples, product, 0, SM),
        mean_reading_during_load(&samples, product, 0, UTILIZATION),
    );
    assert!(
        sm < 0.6 * busy,
        "a kernel with few blocks was active on {sm} % of the multiprocessors, busy {busy} %"
    );
    // The load's process has a share of the GPU's time.
    let processes = samples.iter().flat_map(|sample| {
        sample["gpus"][0]["processes"]
            .as_array()
            .into_iter()
            .flatten()
    });
    let shares =
        processes.filter_map(|own| value_if_read_between(&own["sm_percent"], own, [0.0, f64::MAX]));
    assert!(shares.fold(0.0, f64::max) > 50.0);
    let last = samples.last().unwrap();
    for path in ALL_READINGS {
        for (gpu, own) in last["gpus"].as_array().unwrap().iter().enumerate() {
            let value = own
                .pointer(path)
                .and_then(|reading| value_if_read_between(reading, own, [0.0, f64::MAX]));
            assert!(
                value.is_none_or(|value| value.abs() < 0.01),
                "{path} of GPU {gpu} is {value:?} at the end"
            );
        }
    }
}
