use super::*;
use crate::{
    derive::examples::{make_process, make_sample},
    model::{Absence, Mark, Reading, TraceMetric},
};

const GIB: u64 = 1 << 30;
const MEASURED_PID: u32 = 7;
const OTHER_PID: u32 = 8;

type TestSample = (u64, Vec<GpuSample>);

fn make_test_sample(at_ms: u64, gpus: Vec<GpuSample>) -> TestSample {
    (at_ms, gpus)
}

fn push(meter: &mut CostMeter, (at_ms, gpus): &TestSample) {
    meter.push_gpus(*at_ms as f64, 100, gpus, &mut is_measured_process);
}

/// Returns a GPU with the given power draw, on which the processes' kernels run half of the time.
fn make_gpu(at_ms: u64, watts: f64, holders: &[(u32, u64)]) -> GpuSample {
    let mut gpu = make_sample(at_ms);
    gpu.power.instant_watts = Reading::Now(watts);
    gpu.utilization.gpu_percent = Reading::Now(50.0);
    gpu.pcie.rx_bytes_per_second = Reading::Now(1e9);
    let processes = holders.iter().map(|(pid, bytes)| {
        let mut process = make_process(*pid, *bytes);
        process.sm_percent = Reading::Now(50.0 / holders.len() as f64);
        process
    });
    gpu.processes = Reading::Now(processes.collect());
    gpu
}

fn is_measured_process(process: &Process) -> bool {
    process.pid == MEASURED_PID
}

fn measure_cost(from_ms: f64, to_ms: f64, samples: impl IntoIterator<Item = TestSample>) -> Cost {
    let mut meter = CostMeter::new(None, from_ms);
    meter.end(to_ms);
    samples
        .into_iter()
        .for_each(|sample| push(&mut meter, &sample));
    meter.current_cost(to_ms, &[])
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-6
}

#[test]
fn cost_of_sole_use_is_exact() {
    let samples = (0..=20).map(|tenth| {
        make_test_sample(
            tenth * 100,
            vec![make_gpu(tenth * 100, 300.0, &[(MEASURED_PID, GIB)])],
        )
    });
    let cost = measure_cost(250.0, 1250.0, samples);
    let joules = cost.energy_joules.unwrap();
    assert!(
        is_near(joules.least, 300.0)
            && is_near(joules.most, 300.0)
            && is_near(joules.estimate, 300.0),
        "{joules:?}"
    );
    assert!(
        is_near(cost.duration_s, 1.0) && is_near(cost.gpu_s.unwrap(), 0.5),
        "{cost:?}"
    );
    let [gpu] = &cost.gpus[..] else {
        panic!("{cost:?}")
    };
    assert!(
        is_near(gpu.held_s, 1.0) && gpu.pcie_rx_bytes == Some(1_000_000_000),
        "{gpu:?}"
    );
    assert!(is_near(gpu.sm_percent.unwrap().mean, 60.0), "{gpu:?}");
    assert_eq!(
        (cost.peak_memory_bytes, cost.memory_change_bytes),
        (Some(GIB), Some(0))
    );
    assert!(!cost.shared && cost.lost.is_empty(), "{cost:?}");
}

#[test]
fn memory_peak_and_change_cover_all_gpus() {
    let held = |at_ms: u64, first: u64, second: u64| {
        let mut other = make_gpu(at_ms, 100.0, &[(MEASURED_PID, second)]);
        other.index = 1;
        make_test_sample(
            at_ms,
            vec![make_gpu(at_ms, 100.0, &[(MEASURED_PID, first)]), other],
        )
    };
    let cost = measure_cost(
        100.0,
        390.0,
        [
            held(0, GIB, GIB),
            held(200, 4 * GIB, GIB),
            held(300, GIB, 3 * GIB),
            held(400, 2 * GIB, GIB),
            held(500, 9 * GIB, 0),
        ],
    );
    assert_eq!(
        (cost.peak_memory_bytes, cost.memory_change_bytes),
        (Some(5 * GIB), Some(GIB.cast_signed()))
    );
    assert_eq!(
        cost.gpus
            .iter()
            .map(|gpu| gpu.peak_memory_bytes)
            .collect::<Vec<_>>(),
        [Some(4 * GIB), Some(3 * GIB)]
    );
}

#[test]
fn energy_of_shared_use_is_range() {
    let samples = (0..=10).map(|tenth| {
        make_test_sample(
            tenth * 100,
            vec![make_gpu(
                tenth * 100,
                300.0,
                &[(MEASURED_PID, GIB), (OTHER_PID, GIB)],
            )],
        )
    });
    let cost = measure_cost(0.0, 1000.0, samples);
    let joules = cost.energy_joules.unwrap();
    assert!(
        is_near(joules.most, 300.0)
            && is_near(joules.estimate, 150.0)
            && is_near(joules.least, 0.0),
        "{joules:?}"
    );
    assert!(
        cost.shared && is_near(cost.gpu_s.unwrap(), 0.25),
        "{cost:?}"
    );
}

#[test]
fn measurement_without_gpu_is_empty() {
    let samples = (0..=10).map(|tenth| {
        make_test_sample(
            tenth * 100,
            vec![make_gpu(tenth * 100, 300.0, &[(OTHER_PID, GIB)])],
        )
    });
    let cost = measure_cost(0.0, 1000.0, samples);
    assert!(
        cost.gpus.is_empty() && cost.energy_joules.is_none() && cost.lost.is_empty(),
        "{cost:?}"
    );
    assert_eq!(cost.peak_memory_bytes, None);
}

#[test]
fn driver_records_refine_samples() {
    let mut meter = CostMeter::new(None, 1000.0);
    let trace = |metric, step_ms: u32, values: Vec<f64>| Trace {
        index: 0,
        uuid: None,
        metric,
        start_us: 900_000,
        offsets_us: (0..values.len() as u32)
            .map(|place| place * step_ms * 1000)
            .collect(),
        values,
        gap: false,
    };
    for second in 0..=3 {
        push(
            &mut meter,
            &make_test_sample(
                second * 1000,
                vec![make_gpu(second * 1000, 100.0, &[(MEASURED_PID, GIB)])],
            ),
        );
    }
    meter.end(2000.0);
    assert!(!meter.is_final(), "records are still to come");
    meter.push_trace(&trace(TraceMetric::PowerWatts, 100, vec![400.0; 20]));
    meter.push_trace(&trace(TraceMetric::GpuPercent, 200, vec![80.0; 10]));
    assert!(meter.is_final());
    let cost = meter.current_cost(5000.0, &[]);
    assert!(
        is_near(cost.energy_joules.unwrap().estimate, 400.0) && is_near(cost.gpu_s.unwrap(), 0.8),
        "{cost:?}"
    );
    assert_eq!((cost.started_ms, cost.ended_ms), (1000, 2000));
}

#[test]
fn last_sample_is_extended_to_end() {
    let mut meter = CostMeter::new(Some("train".to_owned()), 0.0);
    for tenth in 0..=5 {
        push(
            &mut meter,
            &make_test_sample(
                tenth * 100,
                vec![make_gpu(tenth * 100, 200.0, &[(MEASURED_PID, GIB)])],
            ),
        );
    }
    meter.end(580.0);
    let cost = meter.into_cost(&[]);
    assert!(
        is_near(cost.energy_joules.unwrap().estimate, 0.58 * 200.0),
        "{cost:?}"
    );
    assert_eq!(cost.name.as_deref(), Some("train"));
}

#[test]
fn process_first_sampled_after_end_is_measured() {
    let mut meter = CostMeter::new(None, 0.0);
    push(
        &mut meter,
        &make_test_sample(100, vec![make_gpu(100, 300.0, &[])]),
    );
    meter.end(150.0);
    assert!(!meter.is_final());
    push(
        &mut meter,
        &make_test_sample(200, vec![make_gpu(200, 300.0, &[(MEASURED_PID, GIB)])]),
    );
    assert_eq!(meter.into_cost(&[]).peak_memory_bytes, Some(GIB));
}

#[test]
fn missing_data_is_reported() {
    let samples = [0, 100, 9_100, 9_200]
        .map(|at_ms| make_test_sample(at_ms, vec![make_gpu(at_ms, 100.0, &[(MEASURED_PID, GIB)])]));
    let cost = measure_cost(0.0, 9_200.0, samples);
    assert_eq!(
        cost.lost,
        ["GPU 0: no readings for 9.00 s; the numbers cover only the rest of the time"]
    );
    assert!(is_near(cost.energy_joules.unwrap().estimate, 20.0));
    let mut meter = CostMeter::new(None, 0.0);
    push(
        &mut meter,
        &make_test_sample(0, vec![make_gpu(0, 100.0, &[(MEASURED_PID, GIB)])]),
    );
    meter.end(60_000.0);
    assert_eq!(
        meter.into_cost(&[]).lost,
        ["GPU 0: no readings for 60.0 s; the numbers cover only the rest of the time"]
    );
    let untold = [0, 100].map(|at_ms| {
        let mut gpu = make_gpu(at_ms, 100.0, &[]);
        gpu.processes = Reading::Absent(Absence::NotSupported);
        make_test_sample(at_ms, vec![gpu])
    });
    let cost = measure_cost(0.0, 100.0, untold);
    assert_eq!(
        cost.lost,
        [
            "GPU 0: the processes that use this GPU are not known: not supported by this board or \
             driver"
        ]
    );
    assert_eq!(
        measure_cost(0.0, 10.0, []).lost,
        ["the measurement ended before the first reading of the GPUs"]
    );
}

#[test]
fn mark_received_twice_is_added_once() {
    let mut meter = CostMeter::new(None, 100.5);
    let mark = Mark {
        text: "epoch 1".to_owned(),
        user: None,
    };
    meter.add_mark(CostMark::from_mark(100, &mark));
    let event = Event {
        at_ms: 100,
        gpu: None,
        what: EventKind::Mark(mark.clone()),
    };
    meter.push(&Record::Event(event), &mut is_measured_process);
    meter.add_mark(CostMark::from_mark(99, &mark));
    assert_eq!(
        meter.current_cost(200.0, &[]).marks,
        [CostMark::from_mark(100, &mark)]
    );
}
