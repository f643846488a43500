//! The stress test on all requested GPUs and the CPU at the same time, each on its own thread.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use gpumon_probe::units::three_digits;

use super::{
    Context, JobFailure, Reporter,
    bench::load,
    failure::code_of,
    placement::{Placement, ReservedGpu},
    worse,
};
use crate::{
    bench::Place,
    burn::{self, BurnRequest, Burning},
    error::RunError,
    measure::Now,
    protocol::{
        Backend, BurnJob, Dtype, Outcome, Report,
        exit_code::{FAILED, INTERRUPTED},
    },
};

/// The maximum duration of a stress test: one week.
const LONGEST_SECONDS: f64 = 7.0 * 86_400.0;

/// The time without any progress after which results no longer wait for those of earlier devices.
/// Each device reports progress once a second. A canceled process is killed after ten seconds.
const PATIENCE: Duration = Duration::from_secs(3);

enum Progress {
    Burning(Burning),
    Done(Box<Result<Outcome, RunError>>),
}

#[derive(Debug, Clone, Copy, Default)]
struct Gauge {
    operations_per_second: f64,
    wrong: u64,
}

pub(super) fn run(
    job: &BurnJob,
    context: &Context<'_>,
    report: &mut Reporter<'_>,
) -> Result<u8, JobFailure> {
    if !(job.seconds > 0.0 && job.seconds <= LONGEST_SECONDS) {
        return Err(JobFailure::usage(format!(
            "cannot burn for {} s: give a time up to 7d",
            job.seconds
        )));
    }
    if !(job.memory > 0.0 && job.memory <= 1.0) {
        return Err(JobFailure::usage(format!(
            "cannot fill {} of the memory: give a share up to 100%",
            job.memory
        )));
    }
    let placement = Placement::take(&job.place, false, context.driver)?;
    let places = placement
        .gpus
        .iter()
        .map(|held| Some(&held.device))
        .chain(placement.runs_on_cpu.then_some(None));
    for device in places {
        burn::dtype_on(device, job.dtype).map_err(JobFailure::usage)?;
    }
    placement.begin(burn::ID.to_owned(), placement.names().len(), report);
    let request = BurnRequest {
        time: Duration::from_secs_f64(job.seconds),
        memory: job.memory,
        dtype: job.dtype,
    };
    Ok(all(&placement, &request, context, report))
}

fn all(
    placement: &Placement,
    request: &BurnRequest,
    context: &Context<'_>,
    report: &mut Reporter<'_>,
) -> u8 {
    let (sender, progress) = mpsc::channel();
    let mut gauges = vec![Gauge::default(); placement.names().len()];
    let mut worst = 0;
    let mut count = |code| worst = worse(worst, code);
    thread::scope(|scope| {
        let gpus = placement.gpus.iter().map(Some);
        let places = gpus.chain(placement.runs_on_cpu.then_some(None));
        for (step, held) in places.enumerate() {
            let sender = sender.clone();
            scope.spawn(move || {
                let one = |place: &Place<'_>| {
                    burn::run(
                        place,
                        &placement.cpu,
                        request,
                        context.interrupted,
                        &mut |burning| {
                            // The receiver listens until the last place has ended.
                            let _ = sender.send((step, Progress::Burning(burning)));
                        },
                    )
                };
                let outcome = match held.map(ReservedGpu::open).transpose() {
                    Ok(Some(gpu)) => one(&Place::Cuda(&gpu)),
                    Ok(None) => one(&Place::Cpu(&placement.cpu)),
                    Err(error) => Err(error.into()),
                };
                let _ = sender.send((step, Progress::Done(Box::new(outcome))));
            });
        }
        drop(sender);
        let mut last = None;
        let mut open: BTreeSet<_> = (0..gauges.len()).collect();
        let mut ended = BTreeMap::new();
        loop {
            let (news, is_stuck) = match progress.recv_timeout(PATIENCE) {
                Ok(news) => (Some(news), false),
                Err(RecvTimeoutError::Timeout) => (None, true),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if let Some((step, progress)) = news {
                let backend = if step < placement.gpus.len() {
                    Backend::Cuda
                } else {
                    Backend::Cpu
                };
                match progress {
                    Progress::Burning(Burning::Phase(phase)) => {
                        report(Now::Phase(phase).into_report(step, burn::ID, backend));
                    }
                    Progress::Burning(Burning::Progress {
                        share,
                        operations_per_second,
                        wrong,
                    }) => {
                        gauges[step] = Gauge {
                            operations_per_second,
                            wrong,
                        };
                        // Only one of several devices triggers the report for all of them.
                        if *last.get_or_insert(step) == step {
                            report(Report::Progress {
                                share,
                                text: text(placement, request.dtype, &gauges),
                                memory: None,
                            });
                        }
                    }
                    Progress::Done(outcome) => {
                        last = last.filter(|last| *last != step);
                        open.remove(&step);
                        match *outcome {
                            Ok(outcome) => drop(ended.insert(step, outcome)),
                            Err(error) => {
                                count(fail(&error, backend, placement.gpus.get(step), report));
                            }
                        }
                    }
                }
            }
            // Results are reported in the order of the devices, whichever ends first. A device that
            // is stuck in its driver is not waited for.
            while let Some(first) = ended.first_entry()
                && (is_stuck || open.first().is_none_or(|open| open > first.key()))
            {
                count(tell(first.remove(), placement, report));
            }
        }
    });
    worst
}

/// Reports the result of one device, and returns its exit code.
fn tell(outcome: Outcome, placement: &Placement, report: &mut Reporter<'_>) -> u8 {
    let (code, load) = (code(&outcome), load(placement, &outcome));
    report(Report::Result {
        outcome: Box::new(outcome),
        load,
        beside: Vec::new(),
    });
    code
}

/// Reports the failure of one device, and returns its exit code.
fn fail(
    error: &RunError,
    backend: Backend,
    gpu: Option<&ReservedGpu>,
    report: &mut Reporter<'_>,
) -> u8 {
    let (code, id, gpu) = (
        code_of(error),
        burn::ID.to_owned(),
        gpu.map(|held| held.device.index),
    );
    report(Report::Failed {
        id,
        backend,
        gpu,
        error: error.to_string(),
        code,
    });
    code
}

fn code(outcome: &Outcome) -> u8 {
    match &outcome.verify {
        verify if verify.wrong > 0 => FAILED,
        _ if outcome.partial => INTERRUPTED,
        verify if verify.ok => 0,
        _ => FAILED,
    }
}

/// Returns a text such as `41.2 TFLOP/s, 0 errors, 640 W, 61 °C`, with the totals of all devices
/// and the highest temperature.
fn text(placement: &Placement, dtype: Option<Dtype>, gauges: &[Gauge]) -> String {
    let rate: f64 = gauges.iter().map(|gauge| gauge.operations_per_second).sum();
    let wrong: u64 = gauges.iter().map(|gauge| gauge.wrong).sum();
    let readings: Vec<_> = placement
        .gpus
        .iter()
        .map(|held| placement.readings.last(&held.device.uuid))
        .collect();
    let watts: f64 = readings.iter().filter_map(|(watts, _)| *watts).sum();
    let celsius = readings
        .iter()
        .filter_map(|(_, celsius)| *celsius)
        .reduce(f64::max);
    let (size, prefix) = if rate >= 1e12 {
        (1e12, "T")
    } else {
        (1e9, "G")
    };
    let unit = if dtype == Some(Dtype::Int8) {
        "OP/s"
    } else {
        "FLOP/s"
    };
    let mut parts = vec![
        format!("{} {prefix}{unit}", three_digits(rate / size)),
        format!("{wrong} errors"),
    ];
    parts.extend((watts > 0.0).then(|| format!("{watts:.0} W")));
    parts.extend(celsius.map(|celsius| format!("{celsius:.0} °C")));
    parts.join(", ")
}
