//! Known loads, with the readings of the probe for comparison. The probe is the same as in a
//! server, but runs in this process.

use std::{thread, time::Duration};

use gpumon_probe::{model::now_ms, vendor::ReadDepth};

use super::{
    Context, JobFailure, Reporter, failure::code_of, placement::Placement, readings::Readings,
    worse,
};
use crate::{
    cuda::Device,
    error::RunError,
    gpu::Gpu,
    protocol::{
        Backend, BackendChoice, Check, Phase, Report, SelftestJob, Topic, Verdict, Where,
        exit_code::{FAILED, INTERRUPTED},
    },
    selftest::{
        ALL, Expectation, KnownLoad, LoadContext, Made, SampleWindow, Whose, check_expectation,
    },
};

/// The number of GPUs for the loads that use several.
const GPUS: usize = 2;
/// The pause between two loads, in which the readings before a load are taken.
const PAUSE: Duration = Duration::from_millis(700);

#[derive(Clone, Copy)]
struct Times {
    load: Duration,
    /// The time until readings show the load, because the driver averages over up to a second.
    settling: Duration,
}

const USUAL: Times = Times {
    load: Duration::from_secs(5),
    settling: Duration::from_millis(1200),
};
const QUICK: Times = Times {
    load: Duration::from_millis(1500),
    settling: Duration::from_millis(600),
};

pub(super) fn run(
    job: &SelftestJob,
    context: &Context<'_>,
    report: &mut Reporter<'_>,
) -> Result<u8, JobFailure> {
    if job.place.share {
        let error =
            "readings count what others do, too: a self-test needs the GPU alone, without --share";
        return Err(JobFailure::usage(error));
    }
    if job.place.backend == BackendChoice::Cpu {
        return Err(JobFailure::usage(
            "a self-test is of GPUs: leave out --backend",
        ));
    }
    let place = Where {
        backend: BackendChoice::Cuda,
        ..job.place.clone()
    };
    let mut placement = Placement::take(&place, true, context.driver)?;
    let (gpus, alone) = match placement.add_neighbors(GPUS, &place, context.driver) {
        Ok(gpus) => (gpus, None),
        Err(refusal) => (1, Some(refusal.message)),
    };
    let devices = all(&placement)?;
    let readings = Readings::start(
        context.driver,
        devices.iter().map(|device| device.uuid.clone()).collect(),
        ReadDepth::Full,
    );
    let steps = ALL.len() * placement.gpus.len();
    placement.begin("selftest".to_owned(), steps, report);
    if let Some(why) = alone {
        report(Report::Said {
            topic: Topic::Step,
            text: format!("links between GPUs are left out: {why}"),
        });
    }
    let times = if job.quick { QUICK } else { USUAL };
    let mut run = Test {
        placement: &placement,
        readings,
        devices,
        gpus,
        times,
        context,
        report,
        step: 0,
        worst: 0,
    };
    for held in &placement.gpus {
        if run.readings.samples(&held.device.uuid).is_empty() {
            let index = held.device.index;
            return Err(JobFailure::failed(format!(
                "NVML reads nothing of GPU {index}: run `gpumon doctor`"
            )));
        }
        let gpu = held.open()?;
        let verified = run.gpu(&gpu)?;
        if context.is_interrupted() {
            // A wrong reading is worse than an interruption.
            return Ok(if run.worst == FAILED {
                FAILED
            } else {
                INTERRUPTED
            });
        }
        if verified == 0 {
            let text = format!(
                "no reading of GPU {} could be compared with what was made",
                held.device.index
            );
            run.failed("selftest", text, FAILED);
        }
    }
    Ok(run.worst)
}

fn all(placement: &Placement) -> Result<Vec<Device>, JobFailure> {
    let Some(first) = placement.gpus.first() else {
        return Ok(Vec::new());
    };
    first.device.driver().devices().map_err(JobFailure::no_gpu)
}

/// Replaces the remedy of an error, because users do not choose the size of a load.
fn without_size(mut error: RunError) -> RunError {
    if let RunError::TooLarge { fix, .. } = &mut error {
        *fix = "end what holds it (`gpumon` shows who)";
    }
    error
}

struct Test<'a> {
    placement: &'a Placement,
    readings: Readings,
    devices: Vec<Device>,
    /// The number of GPUs that a load can use.
    gpus: usize,
    times: Times,
    context: &'a Context<'a>,
    report: &'a mut Reporter<'a>,
    step: usize,
    worst: u8,
}

impl Test<'_> {
    /// Puts all loads on a GPU, and returns the number of verified readings.
    fn gpu(&mut self, gpu: &Gpu) -> Result<usize, JobFailure> {
        let mut verified = 0;
        for load in &ALL {
            if self.context.is_interrupted() {
                return Ok(verified);
            }
            match self.load(load, gpu) {
                Ok(checks) => verified += self.report(checks),
                Err(error @ RunError::Cuda(_)) => return Err(JobFailure::failed(error)),
                Err(error) => {
                    let code = code_of(&error);
                    self.failed(load.id, without_size(error).to_string(), code);
                }
            }
            self.step += 1;
        }
        Ok(verified)
    }

    fn load(&mut self, load: &KnownLoad, gpu: &Gpu) -> Result<Vec<Check>, RunError> {
        if load.gpus() > self.gpus {
            // If there is a second GPU, the reason why it is not used has been reported.
            if self.devices.len() < 2 {
                self.leave_out(load, "it needs a second GPU");
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
        thread::sleep(PAUSE);
        let rested_ms = now_ms();
        (self.report)(Report::Phase {
            step: self.step,
            id,
            backend,
            phase: Phase::Measuring,
        });
        let (
            Times {
                load: time,
                settling,
            },
            interrupted,
        ) = (self.times, self.context.interrupted);
        let made = load.put_on(&LoadContext {
            gpu,
            time,
            settling,
            interrupted,
        })?;
        let Some(made) = made else {
            self.leave_out(load, "this GPU does not have it");
            return Ok(Vec::new());
        };
        // The pause lets the last readings arrive. A load that was interrupted is not compared.
        thread::sleep(PAUSE);
        if self.context.is_interrupted() {
            return Ok(Vec::new());
        }
        Ok(self.compare(load, gpu.device(), &made, rested_ms))
    }

    fn compare(&self, load: &KnownLoad, this: &Device, made: &Made, rested_ms: u64) -> Vec<Check> {
        let next = &self.devices[(this.index as usize + 1) % self.devices.len()];
        let check = |expectation: &Expectation| {
            let device = match expectation.whose {
                Whose::This => this,
                Whose::Next => next,
            };
            let (samples, metered) = (
                self.readings.samples(&device.uuid),
                self.placement.readings.samples(&device.uuid),
            );
            let from_ms = made.from_ms + self.times.settling.as_millis() as u64;
            let during = SampleWindow::new(&samples, &metered, from_ms, made.to_ms);
            let before = SampleWindow::new(
                &samples,
                &metered,
                rested_ms - PAUSE.as_millis() as u64,
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

    /// Reports checks, and returns the number of verified ones.
    fn report(&mut self, checks: Vec<Check>) -> usize {
        let verified = checks
            .iter()
            .filter(|check| check.verdict == Verdict::Verified)
            .count();
        if checks
            .iter()
            .any(|check| check.verdict == Verdict::Mismatch)
        {
            self.worst = FAILED;
        }
        for check in checks {
            (self.report)(Report::Check {
                check: Box::new(check),
            });
        }
        verified
    }

    fn leave_out(&mut self, load: &KnownLoad, why: &str) {
        let text = format!("left out, since {why}: {}", load.does);
        (self.report)(Report::Said {
            topic: Topic::Step,
            text,
        });
    }

    fn failed(&mut self, id: &str, error: String, code: u8) {
        self.worst = worse(self.worst, code);
        (self.report)(Report::Failed {
            id: id.to_owned(),
            backend: Backend::Cuda,
            gpu: None,
            error,
            code,
        });
    }
}
