//! Frameworks that run the same operation on the same data, where the user has them: each in a Python process of its own,
//! after each of the runner's own runs, and their results verified like those.
//!
//! [`shared`] is what an operation hands over, [`request`] what is asked of the [`process`], and `frameworks.py` what
//! runs there.

mod process;
mod request;
mod shared;

use std::{
    collections::{HashMap, hash_map::Entry},
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::Duration,
};

pub(crate) use self::shared::{Operation, Shared, from_bytes, to_bytes};
use self::{
    process::{Failure, Process, Ready},
    request::Request,
    shared::Memory,
};
use crate::{
    catalogue,
    gpu::Gpu,
    measure::Limits,
    memory_budget::MemoryBudget,
    protocol::{Backend, FrameworkRun, Outcome, Times},
    workload::{Size, Workload},
};

const FRAMEWORKS: [Framework; 5] = [
    Framework { name: "NumPy", backends: &[Backend::Cpu], package: "numpy" },
    Framework { name: "Numba", backends: &[Backend::Cuda, Backend::Cpu], package: "numba" },
    Framework { name: "CuPy", backends: &[Backend::Cuda], package: "cupy-cuda13x" },
    Framework { name: "PyTorch", backends: &[Backend::Cuda, Backend::Cpu], package: "torch" },
    Framework { name: "JAX", backends: &[Backend::Cuda, Backend::Cpu], package: "jax" },
];
/// How long a framework may take beyond what is measured: it is imported and compiles meanwhile.
const PATIENCE: Duration = Duration::from_mins(2);
/// What a framework needs, in sizes of the arrays: those, and what it keeps between operations.
const OF_THE_ARRAYS: u64 = 3;

struct Framework {
    name: &'static str,
    backends: &'static [Backend],
    /// Its name for pip.
    package: &'static str,
}

/// The frameworks of a Python interpreter.
pub(crate) struct Frameworks<'a> {
    python: PathBuf,
    found: Vec<&'static Framework>,
    /// By name and UUID of the GPU; `None` where one is not tried again, of which the reason was reported.
    processes: HashMap<(&'static str, Option<String>), Option<Process>>,
    patience: Duration,
    interrupted: &'a AtomicBool,
}

impl<'a> Frameworks<'a> {
    /// Asks the interpreter which it has.
    pub(crate) fn find(python: &Path, interrupted: &'a AtomicBool) -> Result<Self, Failure> {
        let mut process = Process::start(python, &["find"], [])?;
        let names: Vec<String> = process.receive(PATIENCE, interrupted)?;
        let found = FRAMEWORKS.iter().filter(|framework| names.iter().any(|name| name == framework.name)).collect();
        Ok(Self { python: python.to_owned(), found, processes: HashMap::new(), patience: PATIENCE, interrupted })
    }

    /// Which there are, in a sentence.
    pub(crate) fn sentence(&self) -> String {
        let python = self.python.display();
        let join = |names: Vec<&str>| names.join(", ");
        if self.found.is_empty() {
            let packages = join(FRAMEWORKS.iter().map(|framework| framework.package).collect());
            return format!(
                "{python} has no framework to run beside: install one of {packages}, or name another Python with --python"
            );
        }
        format!("Frameworks of {python}: {}", join(self.found.iter().map(|framework| framework.name).collect()))
    }

    /// What each framework takes for the work of this outcome, which was measured on `gpu` or on the CPU; nothing where
    /// none has such an operation. `tell` gets the name of each that begins.
    pub(crate) fn run(
        &mut self,
        outcome: &Outcome,
        gpu: Option<&Gpu>,
        limits: &Limits,
        tell: &mut dyn FnMut(&'static str),
    ) -> Vec<FrameworkRun> {
        let Some(workload) = catalogue::find(&outcome.id) else { return Vec::new() };
        let size = Size { n: outcome.n, dtype: outcome.dtype };
        let frameworks = self.found.iter().filter(|framework| framework.backends.contains(&outcome.backend));
        let names: Vec<_> = frameworks.map(|framework| framework.name).collect();
        let room = has_room(workload, size, gpu.filter(|_| outcome.backend == Backend::Cuda));
        let shared = match room {
            Ok(()) => workload.shared(size),
            Err(error) => {
                let failed = |name| FrameworkRun { error: Some(error.to_string()), ..FrameworkRun::new(name) };
                return names.into_iter().map(failed).collect();
            }
        };
        let Some(shared) = shared else { return Vec::new() };
        let mut runs = Vec::new();
        for name in names {
            tell(name);
            match self.one(name, outcome, &shared, limits) {
                Ok(Some(run)) => runs.push(run),
                Ok(None) => {}
                Err(Failure::Interrupted) => break,
                Err(error) => runs.push(FrameworkRun { error: Some(error.to_string()), ..FrameworkRun::new(name) }),
            }
        }
        runs
    }

    /// `None` where the framework does not have the operation, or is not tried again.
    fn one(
        &mut self,
        name: &'static str,
        outcome: &Outcome,
        shared: &Shared,
        limits: &Limits,
    ) -> Result<Option<FrameworkRun>, Failure> {
        let key = (name, outcome.device.uuid.clone());
        let process = match self.processes.entry(key.clone()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let process = entry.insert(None);
                *process = Some(start(&self.python, name, outcome, self.patience, self.interrupted)?);
                process
            }
        };
        let Some(process) = process else { return Ok(None) };
        let version = process.version.clone();
        let out = Memory::new(&[])?;
        let inputs = shared.inputs.iter().map(|input| Memory::new(input)).collect::<Result<Vec<_>, _>>()?;
        let request = Request::new(shared, &inputs, &out, limits);
        let answer = process.ask(&request, self.patience + limits.warm_up + limits.time, self.interrupted);
        match &answer {
            Ok(_) | Err(Failure::Told(_)) => {}
            Err(Failure::Hung(_)) => drop(self.processes.insert(key, None)),
            // The next operation gets a new one.
            Err(_) => drop(self.processes.remove(&key)),
        }
        let Some(times_us) = answer?.times_us else { return Ok(None) };
        let verify = (shared.check)(&out.read()?);
        let host_time = Times::new(times_us);
        let ours = outcome.host_time.as_ref().filter(|_| verify.ok && outcome.verify.ok);
        let ratio = ours.zip(host_time.as_ref()).map(|(ours, theirs)| theirs.median_us / ours.median_us);
        Ok(Some(FrameworkRun { version, host_time, verify: Some(verify), ratio, ..FrameworkRun::new(name) }))
    }
}

/// Starts a framework, with the GPU of this outcome as the only one that it sees, and no memory that it does not need.
fn start(
    python: &Path,
    name: &str,
    outcome: &Outcome,
    patience: Duration,
    interrupted: &AtomicBool,
) -> Result<Process, Failure> {
    let device = outcome.backend.to_string();
    let uuid = outcome.device.uuid.as_deref().unwrap_or_default();
    let variables = [
        ("CUDA_VISIBLE_DEVICES", uuid.as_ref()),
        ("JAX_PLATFORMS", device.as_ref()),
        ("XLA_PYTHON_CLIENT_PREALLOCATE", "false".as_ref()),
    ];
    let mut process = Process::start(python, &[name, &device], variables)?;
    process.version = process.receive::<Ready>(patience, interrupted)?.version;
    Ok(process)
}

/// Whether a framework has room for this, on the GPU and in the host's memory, where the data are made, too.
fn has_room(workload: &dyn Workload, size: Size, gpu: Option<&Gpu>) -> Result<(), Failure> {
    let bytes = workload.cost(size).memory_bytes.saturating_mul(OF_THE_ARRAYS);
    let id = workload.about().id;
    if let Some(gpu) = gpu {
        gpu.memory_budget().map_err(crate::error::RunError::from)?.check(id, bytes)?;
    }
    Ok(MemoryBudget::for_host(0).check(id, bytes)?)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::{
        bench::{self, Place, Request},
        info::Cpu,
        protocol::{Amount, Engine},
    };

    const BRIEF: Limits = Limits { warm_up: Duration::ZERO, least: Duration::ZERO, time: Duration::ZERO };

    fn outcome() -> Outcome {
        let cpu = Cpu::this();
        let request = Request { dtype: None, amount: Some(Amount::Count(100)), engine: Engine::Own, limits: BRIEF };
        let workload = catalogue::find("triad").unwrap();
        bench::run(workload, &Place::Cpu(&cpu), &cpu, &request, &AtomicBool::new(false), &mut |_| {}).unwrap()
    }

    /// What a framework did in two rounds, where its interpreter is this script.
    fn beside_script(script: &str, patience: Duration, is_interrupted: bool) -> [Vec<FrameworkRun>; 2] {
        let folder = tempfile::tempdir().unwrap();
        let python = folder.path().join("python3");
        // An executable that somebody may still write to cannot be started, and another test's child may hold it.
        fs::write(folder.path().join("script"), script).unwrap();
        fs::write(&python, "#!/bin/sh\nexec /bin/sh \"${0%/*}/script\"\n").unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
        let interrupted = AtomicBool::new(is_interrupted);
        let (found, processes) = (vec![&FRAMEWORKS[0]], HashMap::new());
        let mut frameworks = Frameworks { python, found, processes, patience, interrupted: &interrupted };
        let outcome = outcome();
        [(); 2].map(|()| frameworks.run(&outcome, None, &BRIEF, &mut |_| {}))
    }

    #[test]
    fn a_framework_that_does_not_answer_is_told_once_and_not_tried_again() {
        for script in ["exec sleep 60", r#"echo '{"version":"1"}'; exec sleep 60"#] {
            let [first, second] = beside_script(script, Duration::from_secs(1), false);
            assert_eq!(first[0].error.as_deref(), Some("no answer after 1 s"), "{script}: {first:?}");
            assert_eq!(second, [], "{script}");
        }
    }

    #[test]
    fn a_framework_that_ends_is_told_with_its_last_words_and_tried_again_where_it_had_begun() {
        let [first, second] = beside_script("echo >&2 'ImportError: no libcublas'; exit 1", PATIENCE, false);
        assert_eq!(first[0].error.as_deref(), Some("the process ended: ImportError: no libcublas"), "{first:?}");
        assert_eq!(second, []);
        let rounds = beside_script(r#"echo '{"version":"1"}'; read line; kill -SEGV $$"#, PATIENCE, false);
        for round in rounds {
            assert!(round[0].error.as_ref().unwrap().contains("signal: 11"), "{round:?}");
        }
        let [first, _] = beside_script("echo hello; exec sleep 60", PATIENCE, false);
        assert!(first[0].error.as_ref().unwrap().starts_with("its answer is not understood"), "{first:?}");
    }

    #[test]
    fn what_is_interrupted_is_not_told() {
        assert_eq!(beside_script("exec sleep 600", PATIENCE, true), [[], []]);
    }
}
