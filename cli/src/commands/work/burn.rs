//! A burn: all places at once, each on a thread of its own.

use std::{
    sync::mpsc::{self, Sender},
    thread,
    time::Duration,
};

use anyhow::anyhow;
use gpumon_workload::{
    Backend, Dtype, Outcome, RunError,
    bench::Place,
    burn::{self, BurnRequest, Burning},
    job::BurnJob,
};

use super::{Around, FAILED, INTERRUPTED, REFUSED, Report, bench::load, floor::Floor};
use crate::{exit::Failure, table::units::three_digits};

/// As many seconds as a burn may last: a week.
const LONGEST_SECONDS: f64 = 7.0 * 86_400.0;

/// What one place tells.
enum Told {
    Burning(Burning),
    Done(Box<Result<Outcome, RunError>>),
}

/// What is known of a place.
#[derive(Debug, Clone, Copy, Default)]
struct Gauge {
    operations_per_second: f64,
    wrong: u64,
}

pub(super) fn run(job: &BurnJob, around: &Around<'_>, say: &mut dyn FnMut(Report)) -> Result<u8, Failure> {
    if !(job.seconds > 0.0 && job.seconds <= LONGEST_SECONDS) {
        return Err(Failure::usage(anyhow!("cannot burn for {} s: give a time up to 7d", job.seconds)));
    }
    if !(job.memory > 0.0 && job.memory <= 1.0) {
        return Err(Failure::usage(anyhow!("cannot fill {} of the memory: give a share up to 100%", job.memory)));
    }
    let floor = Floor::take(&job.place, false, around.source)?;
    let places = floor.gpus.iter().map(|held| Some(&held.device)).chain(floor.runs_on_cpu.then_some(None));
    for device in places {
        burn::dtype_on(device, job.dtype).map_err(Failure::usage)?;
    }
    let devices = floor.names();
    say(Report::Begun { title: burn::ID.to_owned(), steps: devices.len(), devices });
    if let Some(note) = &floor.note {
        say(Report::Said { topic: gpumon_workload::report::Topic::Step, text: note.clone() });
    }
    let request = BurnRequest { time: Duration::from_secs_f64(job.seconds), memory: job.memory, dtype: job.dtype };
    Ok(all(&floor, &request, around, say))
}

fn all(floor: &Floor, request: &BurnRequest, around: &Around<'_>, say: &mut dyn FnMut(Report)) -> u8 {
    let (tell, told) = mpsc::channel();
    let mut gauges = vec![Gauge::default(); floor.names().len()];
    let mut worst = 0;
    let mut count = |code| worst = if worst == FAILED { FAILED } else { code };
    thread::scope(|scope| {
        for (step, held) in floor.gpus.iter().enumerate() {
            let tell = tell.clone();
            scope.spawn(move || {
                let outcome = held.open().map_err(RunError::from);
                let outcome = outcome.and_then(|gpu| one(&Place::Cuda(&gpu), step, floor, request, around, &tell));
                let _ = tell.send((step, Told::Done(Box::new(outcome))));
            });
        }
        if floor.runs_on_cpu {
            let (tell, step) = (tell.clone(), floor.gpus.len());
            scope.spawn(move || {
                let outcome = one(&Place::Cpu(&floor.cpu), step, floor, request, around, &tell);
                let _ = tell.send((step, Told::Done(Box::new(outcome))));
            });
        }
        drop(tell);
        let mut last = None;
        for (step, told) in told {
            let backend = if step < floor.gpus.len() { Backend::Cuda } else { Backend::Cpu };
            let id = burn::ID.to_owned();
            match told {
                Told::Burning(Burning::Phase(phase)) => say(Report::Phase { step, id, backend, phase }),
                Told::Burning(Burning::Beat { share, operations_per_second, wrong }) => {
                    gauges[step] = Gauge { operations_per_second, wrong };
                    // Of several places, one tells for all of them.
                    if *last.get_or_insert(step) == step {
                        say(Report::Progress { share, text: text(floor, request.dtype, &gauges) });
                    }
                }
                Told::Done(outcome) => {
                    last = last.filter(|last| *last != step);
                    match *outcome {
                        Ok(outcome) => {
                            count(code(&outcome));
                            let load = load(floor, &outcome);
                            say(Report::Result { outcome: Box::new(outcome), load });
                        }
                        Err(error) => {
                            let code = if matches!(error, RunError::TooLittle { .. }) { REFUSED } else { FAILED };
                            count(code);
                            say(Report::Failed { id, backend, error: error.to_string(), code });
                        }
                    }
                }
            }
        }
    });
    worst
}

fn one(
    place: &Place<'_>,
    step: usize,
    floor: &Floor,
    request: &BurnRequest,
    around: &Around<'_>,
    tell: &Sender<(usize, Told)>,
) -> Result<Outcome, RunError> {
    burn::run(place, &floor.cpu, request, around.interrupted, &mut |burning| {
        // Whoever listens does so until the last place has ended.
        let _ = tell.send((step, Told::Burning(burning)));
    })
}

fn code(outcome: &Outcome) -> u8 {
    match &outcome.verify {
        verify if verify.wrong > 0 => FAILED,
        _ if outcome.partial => INTERRUPTED,
        verify if verify.ok => 0,
        _ => FAILED,
    }
}

/// `41.2 TFLOP/s, 0 errors, 640 W, 61 °C`: of all places together, and of the hottest.
fn text(floor: &Floor, dtype: Option<Dtype>, gauges: &[Gauge]) -> String {
    let rate: f64 = gauges.iter().map(|gauge| gauge.operations_per_second).sum();
    let wrong: u64 = gauges.iter().map(|gauge| gauge.wrong).sum();
    let readings: Vec<_> = floor.gpus.iter().map(|held| floor.watch.last(&held.device.uuid)).collect();
    let watts: f64 = readings.iter().filter_map(|(watts, _)| *watts).sum();
    let celsius = readings.iter().filter_map(|(_, celsius)| *celsius).reduce(f64::max);
    let (size, prefix) = if rate >= 1e12 { (1e12, "T") } else { (1e9, "G") };
    let unit = if dtype == Some(Dtype::Int8) { "OP/s" } else { "FLOP/s" };
    let mut parts = vec![format!("{} {prefix}{unit}", three_digits(rate / size)), format!("{wrong} errors")];
    parts.extend((watts > 0.0).then(|| format!("{watts:.0} W")));
    parts.extend(celsius.map(|celsius| format!("{celsius:.0} °C")));
    parts.join(", ")
}
