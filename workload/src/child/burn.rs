//! The stress test. All requested GPUs and the CPU are tested at the same time, each on a separate
//! thread.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use gpumon_probe::units::format_three_digits;

use super::{
    JobContext, JobFailure, Reporter,
    bench::gpu_load_during_run,
    exit_code_of,
    placement::{Placement, ReservedGpu},
    worse_code,
};
use crate::{
    bench::ExecutionPlace,
    burn::{self, BurnProgress, BurnRequest},
    error::RunError,
    measure::MeasureProgress,
    protocol::{
        Backend, BurnJob, Dtype, Report, RunOutcome,
        report::{EXIT_FAILED, EXIT_INTERRUPTED},
    },
};

/// The maximum duration of a stress test: one week.
const MAX_SECONDS: f64 = 7.0 * 86_400.0;

/// Each device reports progress once a second. If no device has reported progress for this time,
/// the results so far are reported, and devices without a result are considered stuck. The timeout
/// is shorter than the ten seconds after which a canceled process is killed.
const STUCK_TIMEOUT: Duration = Duration::from_secs(3);

enum DeviceMessage {
    Burning(BurnProgress),
    Done(Box<Result<RunOutcome, RunError>>),
}

#[derive(Debug, Clone, Copy, Default)]
struct DeviceProgress {
    operations_per_second: f64,
    wrong: u64,
}

pub(super) fn run_burn(
    job: &BurnJob,
    context: &JobContext<'_>,
    report: &mut Reporter<'_>,
) -> Result<u8, JobFailure> {
    if !(job.seconds > 0.0 && job.seconds <= MAX_SECONDS) {
        return Err(JobFailure::usage_error(format!(
            "cannot burn for {} s: use a time up to 7d",
            job.seconds
        )));
    }
    if !(job.memory > 0.0 && job.memory <= 1.0) {
        return Err(JobFailure::usage_error(format!(
            "cannot fill a share of {} of the memory: use a share above 0 and up to 1 (100%)",
            job.memory
        )));
    }
    let placement = Placement::reserve_gpus(&job.place, false, context.driver)?;
    let places = placement
        .gpus
        .iter()
        .map(|held| Some(&held.device))
        .chain(placement.runs_on_cpu.then_some(None));
    for device in places {
        burn::choose_dtype(device, job.dtype).map_err(JobFailure::usage_error)?;
    }
    placement.report_start(burn::ID.to_owned(), placement.device_names().len(), report);
    let request = BurnRequest {
        time: Duration::from_secs_f64(job.seconds),
        memory: job.memory,
        dtype: job.dtype,
    };
    Ok(run_on_all_devices(&placement, &request, context, report))
}

fn run_on_all_devices(
    placement: &Placement,
    request: &BurnRequest,
    context: &JobContext<'_>,
    report: &mut Reporter<'_>,
) -> u8 {
    let (sender, progress) = mpsc::channel();
    let mut gauges = vec![DeviceProgress::default(); placement.device_names().len()];
    let mut worst = 0;
    let mut count = |code| worst = worse_code(worst, code);
    thread::scope(|scope| {
        let gpus = placement.gpus.iter().map(Some);
        let places = gpus.chain(placement.runs_on_cpu.then_some(None));
        for (step, held) in places.enumerate() {
            let sender = sender.clone();
            scope.spawn(move || {
                let one = |place: &ExecutionPlace<'_>| {
                    burn::run_burn(
                        place,
                        &placement.cpu,
                        request,
                        context.interrupted,
                        &mut |burning| {
                            // Sending cannot fail, because the receiver waits until all devices
                            // have finished.
                            let _ = sender.send((step, DeviceMessage::Burning(burning)));
                        },
                    )
                };
                let outcome = match held.map(ReservedGpu::open).transpose() {
                    Ok(Some(gpu)) => one(&ExecutionPlace::Cuda(&gpu)),
                    Ok(None) => one(&ExecutionPlace::Cpu(&placement.cpu)),
                    Err(error) => Err(error.into()),
                };
                let _ = sender.send((step, DeviceMessage::Done(Box::new(outcome))));
            });
        }
        drop(sender);
        let mut last = None;
        let mut open: BTreeSet<_> = (0..gauges.len()).collect();
        let mut ended = BTreeMap::new();
        loop {
            let (news, is_stuck) = match progress.recv_timeout(STUCK_TIMEOUT) {
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
                    DeviceMessage::Burning(BurnProgress::Phase(phase)) => {
                        report(MeasureProgress::Phase(phase).into_report(step, burn::ID, backend));
                    }
                    DeviceMessage::Burning(BurnProgress::Progress {
                        share,
                        operations_per_second,
                        wrong,
                    }) => {
                        gauges[step] = DeviceProgress {
                            operations_per_second,
                            wrong,
                        };
                        // One report covers all devices. To avoid a report for every device's
                        // progress, only the progress of one device triggers a report.
                        if *last.get_or_insert(step) == step {
                            report(Report::Progress {
                                share,
                                text: progress_text(placement, request.dtype, &gauges),
                                memory: None,
                            });
                        }
                    }
                    DeviceMessage::Done(outcome) => {
                        last = last.filter(|last| *last != step);
                        open.remove(&step);
                        match *outcome {
                            Ok(outcome) => drop(ended.insert(step, outcome)),
                            Err(error) => {
                                count(report_failure(
                                    &error,
                                    backend,
                                    placement.gpus.get(step),
                                    report,
                                ));
                            }
                        }
                    }
                }
            }
            // Results are reported in the order of the devices, and not in the order in which they
            // finish. A device that is stuck in the driver is not waited for.
            while let Some(first) = ended.first_entry()
                && (is_stuck || open.first().is_none_or(|open| open > first.key()))
            {
                count(report_outcome(first.remove(), placement, report));
            }
        }
    });
    worst
}

/// Reports the result of one device, and returns its exit code.
fn report_outcome(outcome: RunOutcome, placement: &Placement, report: &mut Reporter<'_>) -> u8 {
    let (code, load) = (
        exit_code_of_outcome(&outcome),
        gpu_load_during_run(placement, &outcome),
    );
    report(Report::Result {
        outcome: Box::new(outcome),
        load,
        beside: Vec::new(),
    });
    code
}

/// Reports the failure of one device, and returns its exit code.
fn report_failure(
    error: &RunError,
    backend: Backend,
    gpu: Option<&ReservedGpu>,
    report: &mut Reporter<'_>,
) -> u8 {
    let (code, id, gpu) = (
        exit_code_of(error),
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

fn exit_code_of_outcome(outcome: &RunOutcome) -> u8 {
    match &outcome.verify {
        verify if verify.wrong > 0 => EXIT_FAILED,
        _ if outcome.partial => EXIT_INTERRUPTED,
        verify if verify.ok => 0,
        _ => EXIT_FAILED,
    }
}

/// Returns a text such as `41.2 TFLOP/s, 0 errors, 640 W, 61 °C`, with the sums over all devices
/// and the highest temperature.
fn progress_text(placement: &Placement, dtype: Option<Dtype>, gauges: &[DeviceProgress]) -> String {
    let rate: f64 = gauges.iter().map(|gauge| gauge.operations_per_second).sum();
    let wrong: u64 = gauges.iter().map(|gauge| gauge.wrong).sum();
    let readings: Vec<_> = placement
        .gpus
        .iter()
        .map(|held| placement.readings.last_watts_and_celsius(&held.device.uuid))
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
        format!("{} {prefix}{unit}", format_three_digits(rate / size)),
        format!("{wrong} errors"),
    ];
    parts.extend((watts > 0.0).then(|| format!("{watts:.0} W")));
    parts.extend(celsius.map(|celsius| format!("{celsius:.0} °C")));
    parts.join(", ")
}
