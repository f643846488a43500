//! The execution of one workload, from the check of its memory to its outcome.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use gpumon_probe::model::{Absence, Reading, now_ms};

use crate::{
    error::RunError,
    gpu::Gpu,
    info::{Cpu, compute_peak, memory_bandwidth},
    measure::{Limits, Now, measure},
    memory_budget::MemoryBudget,
    protocol::{
        Amount, Backend, Bound, Cost, DeviceName, Dtype, Engine, Environment, Outcome, Phase, Rate,
        Stopped, Verification,
    },
    random::SEED,
    roofline::{Rated, roofline},
    statistics::summarize,
    workload::{Prepared, Ready, Size, Workload},
};

pub(crate) enum Place<'a> {
    Cuda(&'a Gpu),
    Cpu(&'a Cpu),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    /// The type of the elements; the workload's usual one if this is `None`.
    pub dtype: Option<Dtype>,
    /// The size; the workload's usual one if this is `None` or does not apply.
    pub amount: Option<Amount>,
    pub engine: Engine,
    pub limits: Limits,
}

/// Runs a workload and reports progress to `tell`. When `interrupted` is set, the measurements so
/// far are returned. All memory is released before this returns.
pub(crate) fn run(
    workload: &Workload,
    place: &Place<'_>,
    cpu: &Cpu,
    request: &Request,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(Now),
) -> Result<Outcome, RunError> {
    let about = &workload.about;
    let backend = place.backend();
    if !about.runs_on(backend) {
        return Err(RunError::NotThere {
            id: about.id,
            backend,
        });
    }
    let dtype = request
        .dtype
        .or(workload.types_on(backend).first().copied())
        .unwrap_or(about.usual_dtype());
    let types = workload.types_on(backend);
    if dtype != about.usual_dtype() && !types.contains(&dtype) {
        return Err(RunError::NoSuchType {
            id: about.id,
            dtype,
            valid: types,
        });
    }
    let budget = place.memory_budget()?;
    let asked = request
        .amount
        .and_then(|amount| amount.n(about.extent, dtype));
    let n = asked.unwrap_or_else(|| workload.usual_n(backend, dtype, &budget));
    let size = Size { n: n.max(1), dtype };
    let memory_bytes = match place {
        Place::Cuda(_) => workload.program.cost_of(size).memory_bytes,
        Place::Cpu(_) => workload.program.cpu_bytes(size),
    };
    let cost = Cost {
        memory_bytes,
        ..workload.program.cost_of(size)
    };
    budget.check(about.id, cost.memory_bytes)?;
    if let Place::Cuda(_) = place {
        MemoryBudget::for_host(0).check(about.id, cost.host_bytes)?;
    }
    tell(Now::Phase(Phase::Preparing));
    let mut work = place
        .prepare(workload, size, request.engine)
        .map_err(|error| match error {
            // Another process has allocated the memory in the meantime.
            RunError::Cuda(error) if error.is_out_of_memory() => {
                budget.too_large(about.id, cost.memory_bytes)
            }
            error => error,
        })?;
    let to = match place {
        Place::Cuda(gpu) if workload.program.gpus() > 1 => {
            gpu.neighbor()?.map(|other| other.device().into())
        }
        _ => None,
    };
    let kernel = work.kernel()?;
    let Run {
        samples,
        stopped,
        verify,
        from_ms,
        to_ms,
    } = Run::new(work.as_mut(), &request.limits, interrupted, tell)?;
    tell(Now::Phase(Phase::GivingBack));
    drop(work);

    let device_time = summarize(samples.iter().filter_map(|sample| sample.device_us));
    let host_time = summarize(samples.iter().map(|sample| sample.host_us));
    let rate = Rate::from_cost(
        cost,
        device_time
            .as_ref()
            .or(host_time.as_ref())
            .map(|times| times.median_us),
    );
    let roofline = roofline(about.bound, &rate, place.rated(about.bound, dtype));
    Ok(Outcome {
        id: about.id.into(),
        seed: SEED.into(),
        backend,
        engine: request.engine,
        device: place.name(),
        to,
        kernel,
        dtype,
        n: size.n,
        extent: about.extent,
        shape: workload.program.shape(),
        cost,
        device_time,
        host_time,
        stopped,
        partial: stopped == Stopped::Interrupted,
        rate,
        roofline,
        verify,
        environment: place.environment(cpu, from_ms, to_ms),
    })
}

struct Run {
    samples: Vec<crate::workload::Sample>,
    stopped: Stopped,
    verify: Verification,
    from_ms: u64,
    to_ms: u64,
}

impl Run {
    /// Measures work, and verifies two results: the first, which replaces poison, and the last,
    /// which is computed under load.
    fn new(
        work: &mut dyn Prepared,
        limits: &Limits,
        interrupted: &AtomicBool,
        tell: &mut dyn FnMut(Now),
    ) -> Result<Self, RunError> {
        if interrupted.load(Relaxed) {
            let (samples, verify, now_ms) = (Vec::new(), Verification::nothing(), now_ms());
            return Ok(Self {
                samples,
                stopped: Stopped::Interrupted,
                verify,
                from_ms: now_ms,
                to_ms: now_ms,
            });
        }
        tell(Now::Phase(Phase::Checking));
        work.run()?;
        let first = work.verify()?;
        let from_ms = now_ms();
        let (samples, stopped) = measure(work, limits, interrupted, tell)?;
        let to_ms = now_ms();
        let verify = if stopped == Stopped::Interrupted {
            first
        } else {
            tell(Now::Phase(Phase::Verifying));
            first.and(work.verify()?)
        };
        Ok(Self {
            samples,
            stopped,
            verify,
            from_ms,
            to_ms,
        })
    }
}

impl Place<'_> {
    pub(crate) fn gpu(&self) -> Option<&Gpu> {
        if let Self::Cuda(gpu) = self {
            Some(gpu)
        } else {
            None
        }
    }

    pub(crate) fn backend(&self) -> Backend {
        match self {
            Self::Cuda(_) => Backend::Cuda,
            Self::Cpu(_) => Backend::Cpu,
        }
    }

    pub(crate) fn memory_budget(&self) -> Result<MemoryBudget, RunError> {
        match self {
            Self::Cuda(gpu) => Ok(gpu.memory_budget()?),
            Self::Cpu(cpu) => Ok(MemoryBudget::for_host(cpu.last_cache_bytes())),
        }
    }

    fn prepare<'a>(&'a self, workload: &Workload, size: Size, engine: Engine) -> Ready<'a> {
        let program = workload.program;
        match self {
            Self::Cuda(gpu) if engine == Engine::Cublas => {
                program.on_cublas(gpu, size).ok_or(RunError::NotInCublas {
                    id: workload.about.id,
                    dtype: size.dtype,
                })?
            }
            Self::Cuda(gpu) => program.on_cuda(gpu, size),
            Self::Cpu(_) => program.on_cpu(size),
        }
    }

    /// Returns the peak rate of the resource that limits a workload, and the clock that the rate is
    /// for.
    pub(crate) fn rated(&self, bound: Bound, dtype: Dtype) -> Reading<Rated> {
        match (bound, self) {
            (Bound::Memory, Self::Cuda(gpu)) => {
                memory_bandwidth(gpu.device()).map(Rated::at_any_clock)
            }
            (Bound::Compute, Self::Cuda(gpu)) => compute_peak(gpu.device(), dtype),
            _ => Reading::Absent(Absence::Unknown),
        }
    }

    pub(crate) fn name(&self) -> DeviceName {
        match self {
            Self::Cuda(gpu) => gpu.device().into(),
            Self::Cpu(cpu) => (*cpu).into(),
        }
    }

    pub(crate) fn environment(&self, cpu: &Cpu, from_ms: u64, to_ms: u64) -> Environment {
        Environment {
            from_ms,
            to_ms,
            gpumon: env!("CARGO_PKG_VERSION").into(),
            cuda: match self {
                Self::Cuda(gpu) => Some(gpu.device().driver().version.to_string()),
                Self::Cpu(_) => None,
            },
            cpu: cpu.name.clone(),
            threads: rayon::current_num_threads(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::catalogue;

    const BRIEF: Limits = Limits {
        warm_up: Duration::ZERO,
        least: Duration::ZERO,
        time: Duration::ZERO,
    };

    fn run_on_cpu(id: &str, request: Request, interrupted: bool) -> Result<Outcome, RunError> {
        let cpu = Cpu::this();
        let flag = AtomicBool::new(interrupted);
        run(
            catalogue::find(id).unwrap(),
            &Place::Cpu(&cpu),
            &cpu,
            &request,
            &flag,
            &mut |_| {},
        )
    }

    #[test]
    fn an_outcome_says_what_was_measured_and_that_it_is_right() {
        let request = Request {
            dtype: Some(Dtype::Fp64),
            amount: Some(Amount::Bytes(80_000)),
            engine: Engine::Own,
            limits: BRIEF,
        };
        let outcome = run_on_cpu("triad", request, false).unwrap();
        assert_eq!(
            (outcome.n, outcome.dtype, outcome.cost.moved_bytes),
            (10_000, Dtype::Fp64, 240_000)
        );
        let times = outcome.host_time.as_ref().unwrap();
        assert!(
            times.n >= 10 && times.min_us > 0.0 && times.low_us <= times.median_us,
            "{times:?}"
        );
        assert_eq!(
            outcome.rate.bytes_per_second,
            Some(240_000.0 / times.median_us * 1e6)
        );
        assert!(
            outcome.verify.ok && outcome.verify.checked == 20_000 && !outcome.partial,
            "{outcome:?}"
        );
        let json = serde_json::to_value(&outcome).unwrap();
        assert_eq!(
            (json["id"].as_str(), json["backend"].as_str()),
            (Some("triad"), Some("cpu"))
        );
        assert_eq!(json["seed"], "0x6770756d6f6e0001");
        assert_eq!(
            (&json["verify"]["ok"], &json["moved_bytes"]),
            (&true.into(), &240_000.into())
        );
        assert_eq!(json["roofline"]["share"]["absent"], "unknown");
    }

    #[test]
    fn a_type_that_it_does_not_have_is_refused_with_words() {
        let request = Request {
            dtype: Some(Dtype::Bytes),
            amount: None,
            engine: Engine::Own,
            limits: BRIEF,
        };
        let error = run_on_cpu("copy", request, false).unwrap_err();
        assert!(
            error.to_string().ends_with("give one of fp32, fp64"),
            "{error}"
        );
    }

    #[test]
    fn who_interrupts_before_anything_was_checked_gets_no_success() {
        let request = Request {
            dtype: None,
            amount: Some(Amount::Count(100)),
            engine: Engine::Own,
            limits: BRIEF,
        };
        let outcome = run_on_cpu("copy", request, true).unwrap();
        assert!(outcome.partial && !outcome.verify.ok, "{outcome:?}");
        assert_eq!((outcome.host_time, outcome.rate), (None, Rate::default()));
    }
}
