//! Frameworks that run the same operation on the same data, for comparison. Each of them has its
//! own Python process, which runs after each run of the runner. Its results are verified in the
//! same way.
//!
//! [`shared`] has the data of an operation for a [`process`], which runs `frameworks.py`.

mod process;
mod shared;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::Duration,
};

use serde::Deserialize;

pub(crate) use self::{
    process::Failure,
    shared::{Data, Operation, Shared, from_bytes, to_bytes},
};
use self::{
    process::{Process, Ready, Request},
    shared::{HandedOver, Memory},
};
use crate::{
    catalogue,
    gpu::Gpu,
    measure::Limits,
    memory_budget::MemoryBudget,
    protocol::{Backend, FrameworkRun, Outcome, Report, Topic},
    real::Real,
    statistics::summarize,
    workload::{Size, Workload},
};

/// The time limit for an answer, in addition to the measurement. Within this time, the framework is
/// imported and compiles.
const PATIENCE: Duration = Duration::from_mins(2);
/// The memory that a framework needs, as a multiple of the arrays. It includes memory that is kept
/// between operations.
const OF_THE_ARRAYS: u64 = 3;

/// A framework as listed by `frameworks.py`.
#[derive(Debug, Deserialize)]
struct Framework {
    name: String,
    backends: Vec<Backend>,
    /// The name of the package for pip.
    package: String,
    is_installed: bool,
}

/// The frameworks of a Python interpreter.
pub(crate) struct Frameworks<'a> {
    python: PathBuf,
    all: Vec<Framework>,
    /// The processes by framework and UUID of the GPU. `None` marks a framework that is not tried
    /// again, because its error was reported.
    processes: HashMap<(String, Option<String>), Option<Process>>,
    patience: Duration,
    interrupted: &'a AtomicBool,
}

impl<'a> Frameworks<'a> {
    /// Asks the interpreter which frameworks it has.
    pub(crate) fn find(python: &Path, interrupted: &'a AtomicBool) -> Result<Self, Failure> {
        let mut process = Process::start(python, &["find"], [])?;
        let all = process.receive(PATIENCE, interrupted)?;
        Ok(Self {
            python: python.to_owned(),
            all,
            processes: HashMap::new(),
            patience: PATIENCE,
            interrupted,
        })
    }

    /// Returns a report with the installed frameworks.
    pub(crate) fn said(&self) -> Report {
        let python = self.python.display();
        let found: Vec<_> = self
            .installed()
            .map(|framework| framework.name.as_str())
            .collect();
        let text = if found.is_empty() {
            let packages: Vec<_> = self
                .all
                .iter()
                .map(|framework| framework.package.as_str())
                .collect();
            let packages = packages.join(", ");
            format!(
                "{python} has no framework to run beside: install one of {packages}, or name another Python with --python"
            )
        } else {
            format!("Frameworks of {python}: {}", found.join(", "))
        };
        Report::Said {
            topic: Topic::Step,
            text,
        }
    }

    fn installed(&self) -> impl Iterator<Item = &Framework> {
        self.all.iter().filter(|framework| framework.is_installed)
    }

    /// Runs the work of an outcome in each framework, on `gpu` if the outcome was measured there,
    /// and otherwise on the CPU. Returns nothing if no framework has the operation. `tell` gets the
    /// name of each framework before it runs.
    pub(crate) fn run(
        &mut self,
        outcome: &Outcome,
        gpu: Option<&Gpu>,
        limits: &Limits,
        tell: &mut dyn FnMut(&str),
    ) -> Vec<FrameworkRun> {
        let Some(workload) = catalogue::find(&outcome.id) else {
            return Vec::new();
        };
        let size = Size {
            n: outcome.n,
            dtype: outcome.dtype,
        };
        let keys = self.to_try(outcome);
        let Some(shared) = workload
            .program
            .shared_operation(size)
            .filter(|_| !keys.is_empty())
        else {
            return Vec::new();
        };
        let failed = |name, error: &Failure| FrameworkRun {
            error: Some(error.to_string()),
            ..FrameworkRun::new(name)
        };
        let room = has_room(
            workload,
            size,
            gpu.filter(|_| outcome.backend == Backend::Cuda),
        );
        let work = match room.and_then(|()| Ok(shared.hand_over()?)) {
            Ok(work) => work,
            Err(error) => {
                return keys
                    .into_iter()
                    .map(|(name, _)| failed(name, &error))
                    .collect();
            }
        };
        let mut runs = Vec::new();
        for key in keys {
            tell(&key.0);
            match self.one(&key, outcome, &work, limits) {
                Ok(Some(run)) => runs.push(run),
                Ok(None) => {}
                Err(Failure::Interrupted) => break,
                Err(error) => runs.push(failed(key.0, &error)),
            }
        }
        runs
    }

    /// Returns the keys of [`Self::processes`] for all frameworks that support the backend of the
    /// outcome.
    fn to_try(&self, outcome: &Outcome) -> Vec<(String, Option<String>)> {
        let there = self
            .installed()
            .filter(|framework| framework.backends.contains(&outcome.backend));
        let keys = there.map(|framework| (framework.name.clone(), outcome.device.uuid.clone()));
        keys.filter(|key| !matches!(self.processes.get(key), Some(None)))
            .collect()
    }

    /// Runs one framework; returns `None` if it does not have the operation.
    fn one(
        &mut self,
        key: &(String, Option<String>),
        outcome: &Outcome,
        work: &HandedOver,
        limits: &Limits,
    ) -> Result<Option<FrameworkRun>, Failure> {
        let process = self.processes.entry(key.clone()).or_default();
        let process = match process {
            Some(process) => process,
            none => none.insert(start(
                &self.python,
                &key.0,
                outcome,
                self.patience,
                self.interrupted,
            )?),
        };
        let version = process.version.clone();
        let (out, times) = (Memory::new(&[])?, Memory::new(&[])?);
        let request = Request::new(work, &out, &times, limits);
        let answer = process.ask(
            &request,
            self.patience + limits.warm_up + limits.time,
            self.interrupted,
        );
        match &answer {
            Ok(_) | Err(Failure::Told(_)) => {}
            Err(Failure::Hung(_)) => drop(self.processes.insert(key.clone(), None)),
            // The next operation starts a new process.
            Err(_) => drop(self.processes.remove(key)),
        }
        if !answer? {
            return Ok(None);
        }
        let verify = (work.check)(&out.read()?);
        let host_time = summarize(
            times
                .read()?
                .chunks_exact(size_of::<f64>())
                .map(Real::from_le_bytes),
        );
        let ours = outcome
            .host_time
            .as_ref()
            .filter(|_| verify.ok && outcome.verify.ok);
        let ratio = ours
            .zip(host_time.as_ref())
            .map(|(ours, theirs)| theirs.median_us / ours.median_us);
        Ok(Some(FrameworkRun {
            version,
            host_time,
            verify: Some(verify),
            ratio,
            ..FrameworkRun::new(key.0.clone())
        }))
    }
}

/// Starts a framework that sees only the GPU of this outcome, and does not preallocate memory.
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

/// Checks that a framework has enough memory on the GPU, and on the host, where the data is also
/// generated.
fn has_room(workload: &Workload, size: Size, gpu: Option<&Gpu>) -> Result<(), Failure> {
    let bytes = workload
        .program
        .cost_of(size)
        .memory_bytes
        .saturating_mul(OF_THE_ARRAYS);
    let id = workload.about.id;
    if let Some(gpu) = gpu {
        gpu.memory_budget()
            .map_err(crate::error::RunError::from)?
            .check(id, bytes)?;
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

    const BRIEF: Limits = Limits {
        warm_up: Duration::ZERO,
        least: Duration::ZERO,
        time: Duration::ZERO,
    };

    fn outcome() -> Outcome {
        let cpu = Cpu::this();
        let request = Request {
            dtype: None,
            amount: Some(Amount::Count(100)),
            engine: Engine::Own,
            limits: BRIEF,
        };
        let workload = catalogue::find("triad").unwrap();
        bench::run(
            workload,
            &Place::Cpu(&cpu),
            &cpu,
            &request,
            &AtomicBool::new(false),
            &mut |_| {},
        )
        .unwrap()
    }

    /// Returns the runs of a framework in two rounds. Its Python interpreter is replaced by this
    /// script.
    fn beside_script(
        script: &str,
        patience: Duration,
        is_interrupted: bool,
    ) -> [Vec<FrameworkRun>; 2] {
        let folder = tempfile::tempdir().unwrap();
        let python = folder.path().join("python3");
        // An executable cannot be started while it is open for writing, and the child of another
        // test may have inherited it. The executable therefore only calls the script.
        fs::write(folder.path().join("script"), script).unwrap();
        fs::write(&python, "#!/bin/sh\nexec /bin/sh \"${0%/*}/script\"\n").unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
        let interrupted = AtomicBool::new(is_interrupted);
        let numpy =
            r#"[{"name":"NumPy","backends":["cpu"],"package":"numpy","is_installed":true}]"#;
        let (all, processes) = (serde_json::from_str(numpy).unwrap(), HashMap::new());
        let mut frameworks = Frameworks {
            python,
            all,
            processes,
            patience,
            interrupted: &interrupted,
        };
        let outcome = outcome();
        [(); 2].map(|()| {
            let mut told = 0;
            let runs = frameworks.run(&outcome, None, &BRIEF, &mut |_| told += 1);
            assert!(
                told == runs.len() || is_interrupted,
                "what is not tried is not told of"
            );
            runs
        })
    }

    #[test]
    fn what_no_framework_has_is_not_refused_for_lack_of_room() {
        let all = serde_json::from_str(
            r#"[{"name":"JAX","backends":["cpu"],"package":"jax","is_installed":true}]"#,
        )
        .unwrap();
        let interrupted = AtomicBool::new(false);
        let (python, processes) = ("/nowhere/python3".into(), HashMap::new());
        let mut frameworks = Frameworks {
            python,
            all,
            processes,
            patience: PATIENCE,
            interrupted: &interrupted,
        };
        let mut beside = |id: &str, backend| {
            let of_more_than_there_is = Outcome {
                id: id.to_owned().into(),
                backend,
                n: 1 << 50,
                ..outcome()
            };
            frameworks.run(&of_more_than_there_is, None, &BRIEF, &mut |_| {})
        };
        assert!(
            beside("triad", Backend::Cpu)[0]
                .error
                .as_ref()
                .unwrap()
                .starts_with("triad needs ")
        );
        assert_eq!(beside("copy", Backend::Cpu), [], "no framework has it");
        assert_eq!(beside("triad", Backend::Cuda), [], "none runs there");
    }

    #[test]
    fn a_framework_that_does_not_answer_is_told_once_and_not_tried_again() {
        for script in ["exec sleep 60", r#"echo '{"version":"1"}'; exec sleep 60"#] {
            let [first, second] = beside_script(script, Duration::from_secs(1), false);
            assert_eq!(
                first[0].error.as_deref(),
                Some("no answer after 1 s"),
                "{script}: {first:?}"
            );
            assert_eq!(second, [], "{script}");
        }
    }

    #[test]
    fn a_framework_that_ends_is_told_with_its_last_words_and_tried_again_where_it_had_begun() {
        let [first, second] = beside_script(
            "echo >&2 'ImportError: no libcublas'; exit 1",
            PATIENCE,
            false,
        );
        assert_eq!(
            first[0].error.as_deref(),
            Some("the process ended: ImportError: no libcublas"),
            "{first:?}"
        );
        assert_eq!(second, []);
        let rounds = beside_script(
            r#"echo '{"version":"1"}'; read line; kill -SEGV $$"#,
            PATIENCE,
            false,
        );
        for round in rounds {
            assert!(
                round[0].error.as_ref().unwrap().contains("signal: 11"),
                "{round:?}"
            );
        }
        let [first, _] = beside_script("echo hello; exec sleep 60", PATIENCE, false);
        assert!(
            first[0]
                .error
                .as_ref()
                .unwrap()
                .starts_with("its answer is not understood"),
            "{first:?}"
        );
    }

    #[test]
    fn what_is_interrupted_is_not_told() {
        assert_eq!(beside_script("exec sleep 600", PATIENCE, true), [[], []]);
    }
}
