use super::*;
use crate::{
    derive::examples::{process, sample},
    model::{Absence, Mark, Reading, TraceMetric},
};

const GIB: u64 = 1 << 30;
const OWN: u32 = 7;
const OTHER: u32 = 8;

type At = (u64, Vec<GpuSample>);

fn at(at_ms: u64, gpus: Vec<GpuSample>) -> At {
    (at_ms, gpus)
}

fn push(meter: &mut CostMeter, (at_ms, gpus): &At) {
    meter.push_gpus(*at_ms as f64, 100, gpus, &mut own);
}

/// Returns a GPU with this power draw, on which the kernels of the processes run for half of the
/// time.
fn gpu(at_ms: u64, watts: f64, holders: &[(u32, u64)]) -> GpuSample {
    let mut gpu = sample(at_ms);
    gpu.power.instant_watts = Reading::Now(watts);
    gpu.utilization.gpu_percent = Reading::Now(50.0);
    gpu.pcie.rx_bytes_per_second = Reading::Now(1e9);
    let processes = holders.iter().map(|(pid, bytes)| {
        let mut process = process(*pid, *bytes);
        process.sm_percent = Reading::Now(50.0 / holders.len() as f64);
        process
    });
    gpu.processes = Reading::Now(processes.collect());
    gpu
}

fn own(process: &Process) -> bool {
    process.pid == OWN
}

fn measured(from_ms: f64, to_ms: f64, samples: impl IntoIterator<Item = At>) -> Cost {
    let mut meter = CostMeter::new(None, from_ms);
    meter.end(to_ms);
    samples
        .into_iter()
        .for_each(|sample| push(&mut meter, &sample));
    meter.cost(to_ms, &[])
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-6
}

#[test]
fn what_is_held_alone_is_exact_also_between_samples() {
    let samples =
        (0..=20).map(|tenth| at(tenth * 100, vec![gpu(tenth * 100, 300.0, &[(OWN, GIB)])]));
    let cost = measured(250.0, 1250.0, samples);
    let joules = cost.energy_joules.unwrap();
    assert!(
        near(joules.least, 300.0) && near(joules.most, 300.0) && near(joules.estimate, 300.0),
        "{joules:?}"
    );
    assert!(
        near(cost.duration_s, 1.0) && near(cost.gpu_s.unwrap(), 0.5),
        "{cost:?}"
    );
    let [gpu] = &cost.gpus[..] else {
        panic!("{cost:?}")
    };
    assert!(
        near(gpu.held_s, 1.0) && gpu.pcie_rx_bytes == Some(1_000_000_000),
        "{gpu:?}"
    );
    assert!(near(gpu.sm_percent.unwrap().mean, 60.0), "{gpu:?}");
    assert_eq!(
        (cost.peak_memory_bytes, cost.memory_change_bytes),
        (Some(GIB), Some(0))
    );
    assert!(!cost.shared && cost.lost.is_empty(), "{cost:?}");
}

#[test]
fn the_peak_is_over_all_gpus_at_one_time_and_the_change_from_before_to_after() {
    let held = |at_ms: u64, first: u64, second: u64| {
        let mut other = gpu(at_ms, 100.0, &[(OWN, second)]);
        other.index = 1;
        at(at_ms, vec![gpu(at_ms, 100.0, &[(OWN, first)]), other])
    };
    let cost = measured(
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
fn what_is_shared_is_a_range() {
    let samples = (0..=10).map(|tenth| {
        at(
            tenth * 100,
            vec![gpu(tenth * 100, 300.0, &[(OWN, GIB), (OTHER, GIB)])],
        )
    });
    let cost = measured(0.0, 1000.0, samples);
    let joules = cost.energy_joules.unwrap();
    assert!(
        near(joules.most, 300.0) && near(joules.estimate, 150.0) && near(joules.least, 0.0),
        "{joules:?}"
    );
    assert!(cost.shared && near(cost.gpu_s.unwrap(), 0.25), "{cost:?}");
}

#[test]
fn whoever_holds_no_gpu_takes_nothing() {
    let samples =
        (0..=10).map(|tenth| at(tenth * 100, vec![gpu(tenth * 100, 300.0, &[(OTHER, GIB)])]));
    let cost = measured(0.0, 1000.0, samples);
    assert!(
        cost.gpus.is_empty() && cost.energy_joules.is_none() && cost.lost.is_empty(),
        "{cost:?}"
    );
    assert_eq!(cost.peak_memory_bytes, None);
}

#[test]
fn the_drivers_own_records_tell_more_than_samples() {
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
            &at(
                second * 1000,
                vec![gpu(second * 1000, 100.0, &[(OWN, GIB)])],
            ),
        );
    }
    meter.end(2000.0);
    assert!(!meter.is_final(), "records are still to come");
    meter.push_trace(&trace(TraceMetric::PowerWatts, 100, vec![400.0; 20]));
    meter.push_trace(&trace(TraceMetric::GpuPercent, 200, vec![80.0; 10]));
    assert!(meter.is_final());
    let cost = meter.cost(5000.0, &[]);
    assert!(
        near(cost.energy_joules.unwrap().estimate, 400.0) && near(cost.gpu_s.unwrap(), 0.8),
        "{cost:?}"
    );
    assert_eq!((cost.started_ms, cost.ended_ms), (1000, 2000));
}

#[test]
fn of_what_ends_before_the_next_sample_the_last_is_extended() {
    let mut meter = CostMeter::new(Some("train".to_owned()), 0.0);
    for tenth in 0..=5 {
        push(
            &mut meter,
            &at(tenth * 100, vec![gpu(tenth * 100, 200.0, &[(OWN, GIB)])]),
        );
    }
    meter.end(580.0);
    let cost = meter.into_cost(&[]);
    assert!(
        near(cost.energy_joules.unwrap().estimate, 0.58 * 200.0),
        "{cost:?}"
    );
    assert_eq!(cost.name.as_deref(), Some("train"));
}

#[test]
fn what_comes_to_a_gpu_after_the_last_sample_is_seen_in_the_next() {
    let mut meter = CostMeter::new(None, 0.0);
    push(&mut meter, &at(100, vec![gpu(100, 300.0, &[])]));
    meter.end(150.0);
    assert!(!meter.is_final());
    push(&mut meter, &at(200, vec![gpu(200, 300.0, &[(OWN, GIB)])]));
    assert_eq!(meter.into_cost(&[]).peak_memory_bytes, Some(GIB));
}

#[test]
fn what_is_not_known_is_said() {
    let samples =
        [0, 100, 9_100, 9_200].map(|at_ms| at(at_ms, vec![gpu(at_ms, 100.0, &[(OWN, GIB)])]));
    let cost = measured(0.0, 9_200.0, samples);
    assert_eq!(
        cost.lost,
        ["GPU 0: no readings for 9.00 s; the numbers are of the rest of the time"]
    );
    assert!(near(cost.energy_joules.unwrap().estimate, 20.0));
    let mut meter = CostMeter::new(None, 0.0);
    push(&mut meter, &at(0, vec![gpu(0, 100.0, &[(OWN, GIB)])]));
    meter.end(60_000.0);
    assert_eq!(
        meter.into_cost(&[]).lost,
        ["GPU 0: no readings for 60.0 s; the numbers are of the rest of the time"]
    );
    let untold = [0, 100].map(|at_ms| {
        let mut gpu = gpu(at_ms, 100.0, &[]);
        gpu.processes = Reading::Absent(Absence::NotSupported);
        at(at_ms, vec![gpu])
    });
    let cost = measured(0.0, 100.0, untold);
    assert_eq!(
        cost.lost,
        ["GPU 0: it is not known which processes hold it: not on this board or driver"]
    );
    assert_eq!(
        measured(0.0, 10.0, []).lost,
        ["it was over before the first reading of the GPUs"]
    );
}

#[test]
fn a_mark_that_two_tell_of_is_one() {
    let mut meter = CostMeter::new(None, 100.5);
    let mark = Mark {
        text: "epoch 1".to_owned(),
        user: None,
    };
    meter.add_mark(CostMark::new(100, &mark));
    let event = Event {
        at_ms: 100,
        gpu: None,
        what: EventKind::Mark(mark.clone()),
    };
    meter.push(&Record::Event(event), &mut own);
    meter.add_mark(CostMark::new(99, &mark));
    assert_eq!(meter.cost(200.0, &[]).marks, [CostMark::new(100, &mark)]);
}
