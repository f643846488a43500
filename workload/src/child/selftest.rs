//! The self-test: known loads, whose effect is compared with gpumon's readings. The readings are
//! taken by the same code as in a server, but in this process.

use std::{thread, time::Duration};

use gpumon_probe::{model::now_ms, vendor::ReadDepth};

use super::{
    JobContext, JobFailure, Reporter, exit_code_of, placement::Placement, readings::GpuReadings,
    worse_code,
};
use crate::{
    cuda::Device,
    error::RunError,
    gpu::Gpu,
    protocol::{
        Backend, BackendChoice, Phase, ReadingCheck, Report, SelftestJob, Topic, Verdict, Where,
        report::{EXIT_FAILED, EXIT_INTERRUPTED},
    },
    selftest::{
        Expectation, KNOWN_LOADS, KnownLoad, LoadContext, LoadResult, SampleWindow, TestedGpu,
        check_expectation,
    },
};

/// The number of GPUs that loads for several GPUs use.
const GPU_COUNT: usize = 2;
/// The pause between two loads. During the pause, readings of the idle GPU are taken for comparison
/// with the next load.
const LOAD_PAUSE: Duration = Duration::from_millis(700);

/// The duration of each load, and its duration in a quick self-test.
const LOAD_TIME: Duration = Duration::from_secs(6);
const QUICK_LOAD_TIME: Duration = Duration::from_secs(3);
/// The time until readings show the load. The driver averages readings over up to a second.
const SETTLING_TIME: Duration = Duration::from_millis(1200);

pub(super) fn run_selftest(
    job: &SelftestJob,
    context: &JobContext<'_>,
    report: &mut Reporter<'_>,
) -> Result<u8, JobFailure> {
    if job.place.share {
        let error = "readings include the work of other programs, so a self-test cannot share the \
                     GPU: leave out --share";
        return Err(JobFailure::usage_error(error));
    }
    if job.place.backend == BackendChoice::Cpu {
        return Err(JobFailure::usage_error(
            "a self-test runs only on GPUs: leave out --backend",
        ));
    }
    let place = Where {
        backend: BackendChoice::Cuda,
        ..job.place.clone()
    };
    let mut placement = Placement::reserve_gpus(&place, true, context.driver)?;
    let (gpus, alone) = match placement.reserve_neighbor_gpus(GPU_COUNT, &place, context.driver) {
        Ok(gpus) => (gpus, None),
        Err(refusal) => (1, Some(refusal.message)),
    };
    let devices = list_devices(&placement)?;
    let readings = GpuReadings::start(
        context.driver,
        devices.iter().map(|device| device.uuid.clone()).collect(),
        ReadDepth::Full,
    );
    let steps = KNOWN_LOADS.len() * placement.gpus.len();
    placement.report_start("selftest".to_owned(), steps, report);
    if let Some(why) = alone {
        report(Report::Said {
            topic: Topic::Step,
            text: format!("links between GPUs are not tested: {why}"),
        });
    }
    let mut run = SelftestRun {
        placement: &placement,
        readings,
        devices,
        gpus,
        load_time: if job.quick {
            QUICK_LOAD_TIME
        } else {
            LOAD_TIME
        },
        context,
        report,
        step: 0,
        worst: 0,
    };
    for held in &placement.gpus {
        if run.readings.samples_of_gpu(&held.device.uuid).is_empty() {
            let index = held.device.index;
            return Err(JobFailure::general_error(format!(
                "NVML returns no readings of GPU {index}: run `gpumon doctor`"
            )));
        }
        let gpu = held.open()?;
        let verified = run.test_gpu(&gpu)?;
        if context.is_interrupted() {
            // A wrong reading takes precedence over an interruption.
            return Ok(if run.worst == EXIT_FAILED {
                EXIT_FAILED
            } else {
                EXIT_INTERRUPTED
            });
        }
        if verified == 0 {
            let text = format!(
                "no reading of GPU {} could be compared with the known load: run `gpumon doctor` \
                 to find the cause",
                held.device.index
            );
            run.report_failure("selftest", text, EXIT_FAILED);
        }
    }
    Ok(run.worst)
}

fn list_devices(placement: &Placement) -> Result<Vec<Device>, JobFailure> {
    let Some(first) = placement.gpus.first() else {
        return Ok(Vec::new());
    };
    first
        .device
        .driver()
        .list_devices()
        .map_err(JobFailure::no_gpu_error)
}

/// Replaces the remedy of an error, because users do not choose the size of a load.
fn replace_remedy(mut error: RunError) -> RunError {
    if let RunError::TooLarge { fix, .. } = &mut error {
        *fix = "stop the processes that use the memory (`gpumon` shows them)";
    }
    error
}

struct SelftestRun<'a> {
    placement: &'a Placement,
    readings: GpuReadings,
    devices: Vec<Device>,
    /// The number of GPUs that a load can use.
    gpus: usize,
    load_time: Duration,
    context: &'a JobContext<'a>,
    report: &'a mut Reporter<'a>,
    step: usize,
    worst: u8,
}

impl SelftestRun<'_> {
    /// Runs all loads on a GPU, and returns the number of verified readings.
    fn test_gpu(&mut self, gpu: &Gpu) -> Result<usize, JobFailure> {
        let mut verified = 0;
        for load in &KNOWN_LOADS {
            if self.context.is_interrupted() {
                return Ok(verified);
            }
            match self.run_load(load, gpu) {
                Ok(checks) => verified += self.report_checks(checks),
                Err(error @ RunError::Cuda(_)) => return Err(JobFailure::general_error(error)),
                Err(error) => {
                    let code = exit_code_of(&error);
                    self.report_failure(load.id, replace_remedy(error).to_string(), code);
                }
            }
            self.step += 1;
        }
        Ok(verified)
    }

    fn run_load(&mut self, load: &KnownLoad, gpu: &Gpu) -> Result<Vec<ReadingCheck>, RunError> {
        if load.gpu_count() > self.gpus {
            // If there is a second GPU, the reason why it is not used was already reported.
            if self.devices.len() < 2 {
                self.report_skipped_load(load, "this load needs a second GPU");
            }
            return Ok(Vec::new());
        }
        let (id, backend) = (load.id.to_owned(), Backend::Cuda);
        (self.report)(Report::Phase {
            step: self.step,
            id: id.clone(),
            backend,
            phase: Phase::Preparing,
        });
        thread::sleep(LOAD_PAUSE);
        let rested_ms = now_ms();
        (self.report)(Report::Phase {
            step: self.step,
            id,
            backend,
            phase: Phase::Measuring,
        });
        let made = load.put_on_gpu(&LoadContext {
            gpu,
            time: self.load_time,
            settling: SETTLING_TIME,
            interrupted: self.context.interrupted,
        })?;
        let Some(made) = made else {
            self.report_skipped_load(load, "this GPU does not support this load");
            return Ok(Vec::new());
        };
        // During the pause, the last readings of the load arrive. They are not compared if the load
        // was interrupted.
        thread::sleep(LOAD_PAUSE);
        if self.context.is_interrupted() {
            return Ok(Vec::new());
        }
        Ok(self.compare_readings(load, gpu.device(), &made, rested_ms))
    }

    fn compare_readings(
        &self,
        load: &KnownLoad,
        this: &Device,
        made: &LoadResult,
        rested_ms: u64,
    ) -> Vec<ReadingCheck> {
        let next = &self.devices[(this.index as usize + 1) % self.devices.len()];
        let check = |expectation: &Expectation| {
            let device = match expectation.whose {
                TestedGpu::This => this,
                TestedGpu::Next => next,
            };
            let (samples, metered) = (
                self.readings.samples_of_gpu(&device.uuid),
                self.placement.readings.samples_of_gpu(&device.uuid),
            );
            let from_ms = made.from_ms + SETTLING_TIME.as_millis() as u64;
            let during = SampleWindow::new(&samples, &metered, from_ms, made.to_ms);
            let before = SampleWindow::new(
                &samples,
                &metered,
                rested_ms - LOAD_PAUSE.as_millis() as u64,
                rested_ms,
            );
            check_expectation(
                (load.id, load.does),
                device.index,
                expectation,
                &during,
                &before,
            )
        };
        made.expectations.iter().map(check).collect()
    }

    /// Reports the checks, and returns the number of verified readings.
    fn report_checks(&mut self, checks: Vec<ReadingCheck>) -> usize {
        let verified = checks
            .iter()
            .filter(|check| check.verdict == Verdict::Verified)
            .count();
        if checks
            .iter()
            .any(|check| check.verdict == Verdict::Mismatch)
        {
            self.worst = EXIT_FAILED;
        }
        for check in checks {
            (self.report)(Report::Check {
                check: Box::new(check),
            });
        }
        verified
    }

    fn report_skipped_load(&mut self, load: &KnownLoad, why: &str) {
        let text = format!("left out, because {why}: {}", load.does);
        (self.report)(Report::Said {
            topic: Topic::Step,
            text,
        });
    }

    fn report_failure(&mut self, id: &str, error: String, code: u8) {
        self.worst = worse_code(self.worst, code);
        (self.report)(Report::Failed {
            id: id.to_owned(),
            backend: Backend::Cuda,
            gpu: None,
            error,
            code,
        });
    }
}
