//! Runs what was planned, and says what came of each.

use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use gpumon_workload::{
    Backend, Environment, Limits, Outcome, RunError, Workload,
    bench::{self, Place, Request},
    info::Cpu,
};
use serde::Serialize;
use serde_json::json;
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag,
};

use super::{
    BenchArgs,
    plan::Plan,
    table::Table,
    watch::{Load, Watch},
};
use crate::{
    exit::{Failure, say},
    options::SourceArgs,
};

/// A result is wrong, or could not be had.
const FAILED: u8 = 1;
/// Refused, for the sake of whoever else uses the machine.
const REFUSED: u8 = 5;
/// As shells count it.
const INTERRUPTED: u8 = 130;

/// Runs all of it. What fails does not keep the rest from running, but for a driver that fails.
pub(super) fn all(source: &SourceArgs, args: &BenchArgs, plan: &Plan) -> Result<(), Failure> {
    let interrupted = heed_signals()?;
    let cpu = Cpu::this();
    let watch = plan.gpu.as_ref().map(|gpu| Watch::start(source, &gpu.device().uuid));
    let mut said = Said { json: args.json, table: Table::new(), watch, worst: 0 };
    for (workload, backend) in plan.steps() {
        let place = match (&plan.gpu, backend) {
            (Some(gpu), Backend::Cuda) => Place::Cuda(gpu),
            _ => Place::Cpu(&cpu),
        };
        match bench::run(workload, &place, &cpu, &request(args, workload), &interrupted) {
            Ok(outcome) => said.outcome(&outcome)?,
            Err(error) => {
                said.error(workload, backend, &error)?;
                if let RunError::Cuda(_) = error {
                    return Err(Failure::told(FAILED));
                }
            }
        }
        if interrupted.load(Relaxed) {
            return Err(Failure::told(INTERRUPTED));
        }
    }
    if said.worst == 0 { Ok(()) } else { Err(Failure::told(said.worst)) }
}

/// A type or size that was asked of everything is asked of what has it.
fn request(args: &BenchArgs, workload: &dyn Workload) -> Request {
    let dtype = args.dtype().filter(|dtype| workload.about().dtypes.contains(dtype));
    Request {
        dtype,
        amount: args.size,
        engine: args.engine(),
        limits: if args.quick { Limits::QUICK } else { Limits::FULL },
    }
}

/// Whoever asks twice to stop is obeyed at once.
fn heed_signals() -> io::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&asked))?;
        flag::register(signal, Arc::clone(&asked))?;
    }
    Ok(asked)
}

/// An outcome for programs.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    outcome: &'a Outcome,
    /// What NVML read while it was timed; `null` where it read nothing.
    load: Option<Load>,
}

/// What is said, and how bad the worst of it is.
struct Said {
    json: bool,
    table: Table,
    watch: Option<Watch>,
    worst: u8,
}

impl Said {
    fn outcome(&mut self, outcome: &Outcome) -> Result<(), Failure> {
        // What was interrupted before anything was checked is not wrong.
        if outcome.verify.wrong > 0 || !outcome.verify.ok && !outcome.partial {
            self.worst = FAILED;
        }
        let mut out = anstream::stdout();
        if self.json {
            serde_json::to_writer(&mut out, &self.told(outcome)).map_err(io::Error::from)?;
            writeln!(out)?;
        } else {
            out.write_all(self.table.lines(outcome).as_bytes())?;
        }
        out.flush()?;
        Ok(())
    }

    fn told<'a>(&self, outcome: &'a Outcome) -> Told<'a> {
        let watch = self.watch.as_ref().filter(|_| outcome.backend == Backend::Cuda);
        let Environment { from_ms, to_ms, .. } = outcome.environment;
        Told { outcome, load: watch.and_then(|watch| watch.between(from_ms, to_ms)) }
    }

    fn error(&mut self, workload: &dyn Workload, backend: Backend, error: &RunError) -> Result<(), Failure> {
        let code = if matches!(error, RunError::TooLarge { .. }) { REFUSED } else { FAILED };
        if self.worst != FAILED {
            self.worst = code;
        }
        say(&error.to_string());
        if self.json {
            let id = workload.about().id;
            let object = json!({
                "id": id, "backend": backend, "error": error.to_string(), "verify": { "ok": false, "checked": 0 }
            });
            writeln!(io::stdout(), "{object}")?;
        }
        Ok(())
    }
}
