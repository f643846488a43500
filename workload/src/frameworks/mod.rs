//! Other frameworks that run the same operation on the same data, for comparison. Each framework
//! has a separate Python process, which runs the operation after gpumon has measured it. Its
//! results are verified in the same way.
//!
//! [`shared_data`] provides an operation's data to a [`process`], which runs `frameworks.py`.

mod process;
mod shared_data;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::Duration,
};

use serde::Deserialize;

use self::{
    process::{FrameworkProcess, FrameworkRequest, ReadyMessage},
    shared_data::{SharedData, SharedMemory},
};
use crate::{
    catalogue,
    gpu::Gpu,
    measure::{MeasureLimits, summarize_times},
    memory_budget::MemoryBudget,
    numbers::Real,
    protocol::{Backend, FrameworkRun, Report, RunOutcome, Topic},
    workload::{Size, Workload},
};

pub(crate) use self::{
    process::FrameworkError,
    shared_data::{Operation, OperationData, SharedOperation, from_bytes, to_bytes},
};

/// The time limit for a response. The time for measuring is added to it. Within this limit, the
/// framework must be imported and must compile the operation.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(2);
/// The memory that a framework needs, as a multiple of the size of the arrays. It includes memory
/// that the framework keeps between operations.
const MEMORY_FACTOR: u64 = 3;

/// A framework as listed by `frameworks.py`.
#[derive(Debug, Deserialize)]
struct Framework {
    name: String,
    backends: Vec<Backend>,
    /// The name of the framework's pip package.
    package: String,
    is_installed: bool,
}

/// The frameworks that a Python interpreter can import, with their processes.
pub(crate) struct Frameworks<'a> {
    python: PathBuf,
    all: Vec<Framework>,
    /// The processes by framework and GPU UUID. `None` marks a framework that is not started again,
    /// because its error was already reported.
    processes: HashMap<(String, Option<String>), Option<FrameworkProcess>>,
    patience: Duration,
    interrupted: &'a AtomicBool,
}

impl<'a> Frameworks<'a> {
    /// Lists the frameworks that the Python interpreter can import.
    pub(crate) fn detect_with_python(
        python: &Path,
        interrupted: &'a AtomicBool,
    ) -> Result<Self, FrameworkError> {
        let mut process = FrameworkProcess::start(python, &["find"], [])?;
        let all = process.receive(RESPONSE_TIMEOUT, interrupted)?;
        Ok(Self {
            python: python.to_owned(),
            all,
            processes: HashMap::new(),
            patience: RESPONSE_TIMEOUT,
            interrupted,
        })
    }

    /// Returns a report that lists the installed frameworks.
    pub(crate) fn installed_report(&self) -> Report {
        let python = self.python.display();
        let found: Vec<_> = self
            .installed_frameworks()
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
                "{python} has no framework for comparison: install one of {packages}, or choose \
                 another Python interpreter with --python"
            )
        } else {
            format!("Frameworks of {python}: {}", found.join(", "))
        };
        Report::Said {
            topic: Topic::Step,
            text,
        }
    }

    fn installed_frameworks(&self) -> impl Iterator<Item = &Framework> {
        self.all.iter().filter(|framework| framework.is_installed)
    }

    /// Runs the operation of an outcome in each framework: on `gpu` if the outcome was measured on
    /// a GPU, and otherwise on the CPU. Returns an empty list if no framework has the operation.
    /// `tell` receives the name of each framework before it runs.
    pub(crate) fn run_frameworks(
        &mut self,
        outcome: &RunOutcome,
        gpu: Option<&Gpu>,
        limits: &MeasureLimits,
        tell: &mut dyn FnMut(&str),
    ) -> Vec<FrameworkRun> {
        let Some(workload) = catalogue::find_workload(&outcome.id) else {
            return Vec::new();
        };
        let size = Size {
            n: outcome.n,
            dtype: outcome.dtype,
        };
        let keys = self.list_process_keys(outcome);
        let Some(shared) = workload
            .program
            .operation_for_frameworks(size)
            .filter(|_| !keys.is_empty())
        else {
            return Vec::new();
        };
        let failed = |name, error: &FrameworkError| FrameworkRun {
            error: Some(error.to_string()),
            ..FrameworkRun::new(name)
        };
        let room = check_enough_memory(
            workload,
            size,
            gpu.filter(|_| outcome.backend == Backend::Cuda),
        );
        let work = match room.and_then(|()| Ok(shared.store_in_shared_memory()?)) {
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
            match self.run_framework(&key, outcome, &work, limits) {
                Ok(Some(run)) => runs.push(run),
                Ok(None) => {}
                Err(FrameworkError::Interrupted) => break,
                Err(error) => runs.push(failed(key.0, &error)),
            }
        }
        runs
    }

    /// Returns the keys of [`Self::processes`] for all frameworks that support the outcome's
    /// backend.
    fn list_process_keys(&self, outcome: &RunOutcome) -> Vec<(String, Option<String>)> {
        let there = self
            .installed_frameworks()
            .filter(|framework| framework.backends.contains(&outcome.backend));
        let keys = there.map(|framework| (framework.name.clone(), outcome.device.uuid.clone()));
        keys.filter(|key| !matches!(self.processes.get(key), Some(None)))
            .collect()
    }

    /// Runs the operation in one framework. Returns `None` if the framework does not have the
    /// operation.
    fn run_framework(
        &mut self,
        key: &(String, Option<String>),
        outcome: &RunOutcome,
        work: &SharedData,
        limits: &MeasureLimits,
    ) -> Result<Option<FrameworkRun>, FrameworkError> {
        let process = self.processes.entry(key.clone()).or_default();
        let process = match process {
            Some(process) => process,
            none => none.insert(start_framework(
                &self.python,
                &key.0,
                outcome,
                self.patience,
                self.interrupted,
            )?),
        };
        let version = process.version.clone();
        let (out, times) = (SharedMemory::new(&[])?, SharedMemory::new(&[])?);
        let request = FrameworkRequest::new(work, &out, &times, limits);
        let answer = process.send_request(
            &request,
            self.patience + limits.warm_up + limits.time,
            self.interrupted,
        );
        match &answer {
            Ok(_) | Err(FrameworkError::Told(_)) => {}
            Err(FrameworkError::Hung(_)) => drop(self.processes.insert(key.clone(), None)),
            // The next operation starts a new process.
            Err(_) => drop(self.processes.remove(key)),
        }
        if !answer? {
            return Ok(None);
        }
        let verify = (work.check)(&out.read()?);
        let host_time = summarize_times(
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

/// Starts a framework's process. It sees only the outcome's GPU, and does not preallocate memory.
fn start_framework(
    python: &Path,
    name: &str,
    outcome: &RunOutcome,
    patience: Duration,
    interrupted: &AtomicBool,
) -> Result<FrameworkProcess, FrameworkError> {
    let device = outcome.backend.to_string();
    let uuid = outcome.device.uuid.as_deref().unwrap_or_default();
    let variables = [
        ("CUDA_VISIBLE_DEVICES", uuid.as_ref()),
        ("JAX_PLATFORMS", device.as_ref()),
        ("XLA_PYTHON_CLIENT_PREALLOCATE", "false".as_ref()),
    ];
    let mut process = FrameworkProcess::start(python, &[name, &device], variables)?;
    process.version = process
        .receive::<ReadyMessage>(patience, interrupted)?
        .version;
    Ok(process)
}

/// Checks that a framework will have enough memory on the GPU and also on the host, where the data
/// is generated.
fn check_enough_memory(
    workload: &Workload,
    size: Size,
    gpu: Option<&Gpu>,
) -> Result<(), FrameworkError> {
    let bytes = workload
        .program
        .cost_of(size)
        .memory_bytes
        .saturating_mul(MEMORY_FACTOR);
    let id = workload.about.id;
    if let Some(gpu) = gpu {
        gpu.memory_budget()
            .map_err(crate::error::RunError::from)?
            .check_bytes_fit(id, bytes)?;
    }
    Ok(MemoryBudget::for_host(0).check_bytes_fit(id, bytes)?)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::{
        bench::{self, ExecutionPlace, WorkloadRequest},
        info::Cpu,
        protocol::{Amount, Engine},
    };

    const BRIEF_LIMITS: MeasureLimits = MeasureLimits {
        warm_up: Duration::ZERO,
        least: Duration::ZERO,
        time: Duration::ZERO,
    };

    fn run_triad() -> RunOutcome {
        let cpu = Cpu::read();
        let request = WorkloadRequest {
            dtype: None,
            amount: Some(Amount::Count(100)),
            engine: Engine::Own,
            limits: BRIEF_LIMITS,
        };
        let workload = catalogue::find_workload("triad").unwrap();
        bench::run_workload(
            workload,
            &ExecutionPlace::Cpu(&cpu),
            &cpu,
            &request,
            &AtomicBool::new(false),
            &mut |_| {},
        )
        .unwrap()
    }

    /// Runs a fake framework twice, and returns its results. `script` is executed instead of the
    /// Python interpreter.
    fn run_script(
        script: &str,
        patience: Duration,
        is_interrupted: bool,
    ) -> [Vec<FrameworkRun>; 2] {
        let folder = tempfile::tempdir().unwrap();
        let python = folder.path().join("python3");
        // An executable cannot be started while any process has it open for writing, and the child
        // process of another test may have inherited such a file. So the script itself is not
        // executed: the executable only calls it.
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
        let outcome = run_triad();
        [(); 2].map(|()| {
            let mut reported = 0;
            let runs =
                frameworks.run_frameworks(&outcome, None, &BRIEF_LIMITS, &mut |_| reported += 1);
            assert!(
                reported == runs.len() || is_interrupted,
                "what is not tried is not told of"
            );
            runs
        })
    }

    #[test]
    fn unsupported_operation_is_not_reported_as_memory_shortage() {
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
            patience: RESPONSE_TIMEOUT,
            interrupted: &interrupted,
        };
        let mut beside = |id: &str, backend| {
            let of_more_than_there_is = RunOutcome {
                id: id.to_owned().into(),
                backend,
                n: 1 << 50,
                ..run_triad()
            };
            frameworks.run_frameworks(&of_more_than_there_is, None, &BRIEF_LIMITS, &mut |_| {})
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
    fn silent_framework_is_reported_once() {
        for script in ["exec sleep 60", r#"echo '{"version":"1"}'; exec sleep 60"#] {
            let [first, second] = run_script(script, Duration::from_secs(1), false);
            assert_eq!(
                first[0].error.as_deref(),
                Some("no response after 1 s"),
                "{script}: {first:?}"
            );
            assert_eq!(second, [], "{script}");
        }
    }

    #[test]
    fn ended_framework_is_reported_with_error_and_retried() {
        let [first, second] = run_script(
            "echo >&2 'ImportError: no libcublas'; exit 1",
            RESPONSE_TIMEOUT,
            false,
        );
        assert_eq!(
            first[0].error.as_deref(),
            Some("the process ended: ImportError: no libcublas"),
            "{first:?}"
        );
        assert_eq!(second, []);
        let rounds = run_script(
            r#"echo '{"version":"1"}'; read line; kill -SEGV $$"#,
            RESPONSE_TIMEOUT,
            false,
        );
        for round in rounds {
            assert!(
                round[0].error.as_ref().unwrap().contains("signal: 11"),
                "{round:?}"
            );
        }
        let [first, _] = run_script("echo hello; exec sleep 60", RESPONSE_TIMEOUT, false);
        assert!(
            first[0]
                .error
                .as_ref()
                .unwrap()
                .starts_with("the response cannot be parsed"),
            "{first:?}"
        );
    }

    #[test]
    fn interrupted_framework_is_not_reported() {
        assert_eq!(
            run_script("exec sleep 600", RESPONSE_TIMEOUT, true),
            [[], []]
        );
    }
}
