//! The execution of one workload, from checking that there is enough memory to returning the
//! outcome.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use gpumon_probe::model::{Absence, Reading, now_ms};

use crate::{
    error::RunError,
    gpu::Gpu,
    info::{
        Cpu, peak_compute_rate, peak_memory_bandwidth,
        peaks::{RatedPeak, compute_roofline},
    },
    measure::{MeasureLimits, MeasureProgress, measure_runs, summarize_times},
    memory_budget::MemoryBudget,
    numbers::SEED_TEXT,
    protocol::{
        Amount, Backend, Cost, DeviceName, Dtype, Engine, Environment, LimitingResource,
        MeasureEnd, Phase, RunOutcome, Throughput, Verification,
    },
    workload::{Prepared, PreparedResult, Size, Workload},
};

pub(crate) enum ExecutionPlace<'a> {
    Cuda(&'a Gpu),
    Cpu(&'a Cpu),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkloadRequest {
    /// The type of the elements, or `None` for the workload's usual type.
    pub dtype: Option<Dtype>,
    /// The size, or `None` for the workload's usual size. It is ignored by workloads that it does
    /// not apply to.
    pub amount: Option<Amount>,
    pub engine: Engine,
    pub limits: MeasureLimits,
}

/// Runs a workload, and reports its progress to `tell`. If `interrupted` is set, the measurements
/// so far are returned. All memory is released before this function returns.
pub(crate) fn run_workload(
    workload: &Workload,
    place: &ExecutionPlace<'_>,
    cpu: &Cpu,
    request: &WorkloadRequest,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(MeasureProgress),
) -> Result<RunOutcome, RunError> {
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
        .and_then(|amount| amount.to_size(about.extent, dtype));
    let n = asked.unwrap_or_else(|| workload.usual_size(backend, dtype, &budget));
    let size = Size { n: n.max(1), dtype };
    let memory_bytes = match place {
        ExecutionPlace::Cuda(_) => workload.program.cost_of(size).memory_bytes,
        ExecutionPlace::Cpu(_) => workload.program.cpu_bytes(size),
    };
    let cost = Cost {
        memory_bytes,
        ..workload.program.cost_of(size)
    };
    budget.check_bytes_fit(about.id, cost.memory_bytes)?;
    if let ExecutionPlace::Cuda(_) = place {
        MemoryBudget::for_host(0).check_bytes_fit(about.id, cost.host_bytes)?;
    }
    tell(MeasureProgress::Phase(Phase::Preparing));
    let mut work =
        place
            .prepare_work(workload, size, request.engine)
            .map_err(|error| match error {
                // Enough memory was free when it was checked, so another process must have
                // allocated some since then.
                RunError::Cuda(error) if error.is_out_of_memory() => {
                    budget.too_large_error(about.id, cost.memory_bytes)
                }
                error => error,
            })?;
    let to = match place {
        ExecutionPlace::Cuda(gpu) if workload.program.gpu_count() > 1 => {
            gpu.find_neighbor()?.map(|other| other.device().into())
        }
        _ => None,
    };
    let kernel = work.kernel()?;
    let MeasuredRun {
        samples,
        stopped,
        verify,
        from_ms,
        to_ms,
    } = MeasuredRun::measure_work(work.as_mut(), &request.limits, interrupted, tell)?;
    tell(MeasureProgress::Phase(Phase::GivingBack));
    drop(work);

    let device_time = summarize_times(samples.iter().filter_map(|sample| sample.device_us));
    let host_time = summarize_times(samples.iter().map(|sample| sample.host_us));
    let rate = Throughput::from_cost(
        cost,
        device_time
            .as_ref()
            .or(host_time.as_ref())
            .map(|times| times.median_us),
    );
    let roofline = compute_roofline(about.bound, &rate, place.rated_peak(about.bound, dtype));
    Ok(RunOutcome {
        id: about.id.into(),
        seed: SEED_TEXT.into(),
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
        partial: stopped == MeasureEnd::Interrupted,
        rate,
        roofline,
        verify,
        environment: place.environment(cpu, from_ms, to_ms),
    })
}

struct MeasuredRun {
    samples: Vec<crate::workload::TimedRun>,
    stopped: MeasureEnd,
    verify: Verification,
    from_ms: u64,
    to_ms: u64,
}

impl MeasuredRun {
    /// Measures a workload, and verifies its first and its last result. The first result shows
    /// whether the poison in memory was replaced. The last result shows whether the workload also
    /// computes correctly under load. It is not verified if the measurement was interrupted.
    fn measure_work(
        work: &mut dyn Prepared,
        limits: &MeasureLimits,
        interrupted: &AtomicBool,
        tell: &mut dyn FnMut(MeasureProgress),
    ) -> Result<Self, RunError> {
        if interrupted.load(Relaxed) {
            let (samples, verify, now_ms) = (Vec::new(), Verification::empty(), now_ms());
            return Ok(Self {
                samples,
                stopped: MeasureEnd::Interrupted,
                verify,
                from_ms: now_ms,
                to_ms: now_ms,
            });
        }
        tell(MeasureProgress::Phase(Phase::Checking));
        work.run()?;
        let first = work.verify()?;
        let from_ms = now_ms();
        let (samples, stopped) = measure_runs(work, limits, interrupted, tell)?;
        let to_ms = now_ms();
        let verify = if stopped == MeasureEnd::Interrupted {
            first
        } else {
            tell(MeasureProgress::Phase(Phase::Verifying));
            first.merge(work.verify()?)
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

impl ExecutionPlace<'_> {
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

    fn prepare_work<'a>(
        &'a self,
        workload: &Workload,
        size: Size,
        engine: Engine,
    ) -> PreparedResult<'a> {
        let program = workload.program;
        match self {
            Self::Cuda(gpu) if engine == Engine::Cublas => program
                .prepare_cublas_run(gpu, size)
                .ok_or(RunError::NotInCublas {
                    id: workload.about.id,
                    dtype: size.dtype,
                })?,
            Self::Cuda(gpu) => program.prepare_cuda_run(gpu, size),
            Self::Cpu(_) => program.prepare_cpu_run(size),
        }
    }

    /// Returns the peak rate of the resource that limits a workload, and the clock at which the GPU
    /// would reach this rate.
    pub(crate) fn rated_peak(&self, bound: LimitingResource, dtype: Dtype) -> Reading<RatedPeak> {
        match (bound, self) {
            (LimitingResource::Memory, Self::Cuda(gpu)) => {
                peak_memory_bandwidth(gpu.device()).map(RatedPeak::new_independent_of_clock)
            }
            (LimitingResource::Compute, Self::Cuda(gpu)) => peak_compute_rate(gpu.device(), dtype),
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

    const BRIEF_LIMITS: MeasureLimits = MeasureLimits {
        warm_up: Duration::ZERO,
        least: Duration::ZERO,
        time: Duration::ZERO,
    };

    fn run_on_cpu(
        id: &str,
        request: WorkloadRequest,
        interrupted: bool,
    ) -> Result<RunOutcome, RunError> {
        let cpu = Cpu::read();
        let flag = AtomicBool::new(interrupted);
        run_workload(
            catalogue::find_workload(id).unwrap(),
            &ExecutionPlace::Cpu(&cpu),
            &cpu,
            &request,
            &flag,
            &mut |_| {},
        )
    }

    #[test]
    fn outcome_describes_verified_measurement() {
        let request = WorkloadRequest {
            dtype: Some(Dtype::Fp64),
            amount: Some(Amount::Bytes(80_000)),
            engine: Engine::Own,
            limits: BRIEF_LIMITS,
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
    fn unsupported_type_is_refused_with_message() {
        let request = WorkloadRequest {
            dtype: Some(Dtype::Bytes),
            amount: None,
            engine: Engine::Own,
            limits: BRIEF_LIMITS,
        };
        let error = run_on_cpu("copy", request, false).unwrap_err();
        assert!(
            error.to_string().ends_with("use one of fp32, fp64"),
            "{error}"
        );
    }

    #[test]
    fn interruption_before_first_check_is_failure() {
        let request = WorkloadRequest {
            dtype: None,
            amount: Some(Amount::Count(100)),
            engine: Engine::Own,
            limits: BRIEF_LIMITS,
        };
        let outcome = run_on_cpu("copy", request, true).unwrap();
        assert!(outcome.partial && !outcome.verify.ok, "{outcome:?}");
        assert_eq!(
            (outcome.host_time, outcome.rate),
            (None, Throughput::default())
        );
    }
}
