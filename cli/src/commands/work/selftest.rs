//! Known loads, and what the probe reported of them: the same probe that a server has, in this process.

use std::{thread, time::Duration};

use anyhow::anyhow;
use gpumon_probe::model::now_ms;
use gpumon_workload::{
    Backend, Gpu, RunError,
    cuda::Device,
    job::{BackendChoice, SelftestJob, Where},
    report::{Phase, Topic},
    selftest::{ALL, Check, Expectation, Ground, KnownLoad, Made, Stretch, Verdict, Whose},
};

use super::{Around, FAILED, INTERRUPTED, NO_GPU, REFUSED, Report, floor::Floor, watch::Watch};
use crate::exit::Failure;

/// As many GPUs as the loads with several of them have.
const GPUS: usize = 2;
/// Between two loads, so that what was before a load is read, too.
const PAUSE: Duration = Duration::from_millis(700);

/// How long loads last.
#[derive(Clone, Copy)]
struct Times {
    load: Duration,
    /// Until readings have come to what the load makes: the driver averages over up to a second.
    settling: Duration,
}

const USUAL: Times = Times { load: Duration::from_secs(5), settling: Duration::from_millis(1200) };
const QUICK: Times = Times { load: Duration::from_millis(1500), settling: Duration::from_millis(600) };

pub(super) fn run(job: &SelftestJob, around: &Around<'_>, say: &mut dyn FnMut(Report)) -> Result<u8, Failure> {
    if job.place.share {
        let error = anyhow!("readings count what others do, too: a self-test needs the GPU alone, without --share");
        return Err(Failure::usage(error));
    }
    if job.place.backend == BackendChoice::Cpu {
        return Err(Failure::usage(anyhow!("a self-test is of GPUs: leave out --backend")));
    }
    let place = Where { backend: BackendChoice::Cuda, ..job.place.clone() };
    let mut floor = Floor::take(&place, true, around.source)?;
    let (gpus, alone) = match floor.widen(GPUS, &place, around.source) {
        Ok(gpus) => (gpus, None),
        Err(refusal) => (1, refusal.message()),
    };
    let devices = all(&floor)?;
    let watch = Watch::whole(around.source, devices.iter().map(|device| device.uuid.clone()).collect());
    let steps = ALL.len() * floor.gpus.len();
    say(Report::Begun { title: "selftest".to_owned(), devices: floor.names(), steps });
    if let Some(why) = alone {
        say(Report::Said { topic: Topic::Step, text: format!("links between GPUs are left out: {why}") });
    }
    let times = if job.quick { QUICK } else { USUAL };
    let mut run = Test { floor: &floor, watch, devices, gpus, times, around, say, step: 0, worst: 0 };
    for held in &floor.gpus {
        if run.watch.samples(&held.device.uuid).is_empty() {
            return Err(anyhow!("NVML reads nothing of GPU {}: look with `gpumon doctor`", held.device.index).into());
        }
        let gpu = held.open().map_err(|error| Failure::with_code(error, NO_GPU))?;
        let agreed = run.gpu(&gpu)?;
        if around.is_interrupted() {
            // What is wrong counts more.
            return Ok(if run.worst == FAILED { FAILED } else { INTERRUPTED });
        }
        if agreed == 0 {
            let text = format!("no reading of GPU {} could be compared with what was made", held.device.index);
            run.failed("selftest", text, FAILED);
        }
    }
    Ok(run.worst)
}

/// All GPUs that CUDA shows.
fn all(floor: &Floor) -> Result<Vec<Device>, Failure> {
    let Some(first) = floor.gpus.first() else { return Ok(Vec::new()) };
    first.device.driver().devices().map_err(|error| Failure::with_code(RunError::from(error), NO_GPU))
}

/// A self-test as far as it has come.
struct Test<'a> {
    floor: &'a Floor,
    /// Reads all that there is to read.
    watch: Watch,
    devices: Vec<Device>,
    /// How many GPUs a load may take.
    gpus: usize,
    times: Times,
    around: &'a Around<'a>,
    say: &'a mut dyn FnMut(Report),
    step: usize,
    worst: u8,
}

impl Test<'_> {
    /// Puts all loads on a GPU, and says how many readings agreed.
    fn gpu(&mut self, gpu: &Gpu) -> Result<usize, Failure> {
        let mut agreed = 0;
        for load in ALL {
            if self.around.is_interrupted() {
                return Ok(agreed);
            }
            match self.load(load, gpu) {
                Ok(checks) => agreed += self.tell(checks),
                Err(error @ RunError::Cuda(_)) => return Err(Failure::with_code(error, FAILED)),
                Err(error) => {
                    let code = if matches!(error, RunError::TooLarge { .. }) { REFUSED } else { FAILED };
                    // A load has no size that anybody could choose.
                    let text =
                        error.to_string().replace("give a smaller --size", "end what holds it (`gpumon` shows who)");
                    self.failed(load.id(), text, code);
                }
            }
            self.step += 1;
        }
        Ok(agreed)
    }

    fn load(&mut self, load: &dyn KnownLoad, gpu: &Gpu) -> Result<Vec<Check>, RunError> {
        if load.gpus() > self.gpus {
            // Where there is a second one, it was said why that is left alone.
            if self.devices.len() < 2 {
                self.leave_out(load, "it needs a second GPU");
            }
            return Ok(Vec::new());
        }
        let (id, backend) = (load.id().to_owned(), Backend::Cuda);
        (self.say)(Report::Phase { step: self.step, id: id.clone(), backend, phase: Phase::Preparing });
        thread::sleep(PAUSE);
        let rested_ms = now_ms();
        (self.say)(Report::Phase { step: self.step, id, backend, phase: Phase::Measuring });
        let (Times { load: time, settling }, interrupted) = (self.times, self.around.interrupted);
        let made = load.put_on(&Ground { gpu, time, settling, interrupted })?;
        let Some(made) = made else {
            self.leave_out(load, "this GPU does not have it");
            return Ok(Vec::new());
        };
        // The last of the readings may still be under way; what was cut short is not compared.
        thread::sleep(PAUSE);
        if self.around.is_interrupted() {
            return Ok(Vec::new());
        }
        Ok(self.compare(load, gpu.device(), &made, rested_ms))
    }

    fn compare(&self, load: &dyn KnownLoad, this: &Device, made: &Made, rested_ms: u64) -> Vec<Check> {
        let next = &self.devices[(this.index as usize + 1) % self.devices.len()];
        let check = |expectation: &Expectation| {
            let device = match expectation.whose {
                Whose::This => this,
                Whose::Next => next,
            };
            let (samples, metered) = (self.watch.samples(&device.uuid), self.floor.watch.samples(&device.uuid));
            let from_ms = made.from_ms + self.times.settling.as_millis() as u64;
            let during = Stretch::of(&samples, &metered, from_ms, made.to_ms);
            let before = Stretch::of(&samples, &metered, rested_ms - PAUSE.as_millis() as u64, rested_ms);
            Check::of((load.id(), load.does()), device.index, expectation, &during, &before)
        };
        made.expectations.iter().map(check).collect()
    }

    /// Says how many agreed.
    fn tell(&mut self, checks: Vec<Check>) -> usize {
        let agreed = checks.iter().filter(|check| check.verdict == Verdict::Agrees).count();
        if checks.iter().any(|check| check.verdict == Verdict::Differs) {
            self.worst = FAILED;
        }
        for check in checks {
            (self.say)(Report::Check { check: Box::new(check) });
        }
        agreed
    }

    fn leave_out(&mut self, load: &dyn KnownLoad, why: &str) {
        let text = format!("left out, since {why}: {}", load.does());
        (self.say)(Report::Said { topic: Topic::Step, text });
    }

    fn failed(&mut self, id: &str, error: String, code: u8) {
        if self.worst != FAILED {
            self.worst = code;
        }
        (self.say)(Report::Failed { id: id.to_owned(), backend: Backend::Cuda, error, code });
    }
}
