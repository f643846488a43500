//! Execution of queries with NVML. Each query makes exactly one NVML call.
//!
//! The library is loaded and initialized once, and never unloaded. The first thread that queries a
//! GPU opens it, which takes 6 ms. Meanwhile, other threads can open other GPUs. Responses that can
//! never change are remembered.

#[allow(unsafe_code)]
pub(super) mod ffi;
pub(crate) mod gpu;
mod query_calls;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use ffi::function::nvmlDeviceGetCount_v2;
use gpu::OpenedGpu;
use query_calls::{Target, answer_system};

use super::{
    error::{LIBRARY_NAME, incomplete_library_error, load_error, to_source_error},
    schedule::is_constant,
    sysfs,
};
use crate::{
    cpu_use::ProcessUse,
    model::Process,
    vendor::{
        MachineMemory, Notice, Reporter, Roots, SourceError,
        nvml::query::{Answer, Code, Query, QueryBackend, Subject, SystemQuery, Value},
    },
};

pub use ffi::FUNCTIONS;
pub(crate) use gpu::GpmResult;

/// A driver that executes queries: NVML or a simulation.
pub(crate) trait Backend: Send + Sync {
    /// Returns `true` if the responses are simulated.
    fn is_simulated(&self) -> bool;

    /// Executes a query about the machine and returns the response.
    fn query_system(&self, query: SystemQuery) -> Answer;

    /// Executes queries about a GPU or MIG device and returns the responses in the same order.
    fn run_queries(&self, subject: Subject, queries: &[Query]) -> Vec<Answer>;

    /// Executes a query about a GPU or MIG device and returns the response.
    fn run_query(&self, subject: Subject, query: Query) -> Answer {
        self.run_queries(subject, &[query])
            .pop()
            .unwrap_or(Err(Code::UNKNOWN))
    }

    /// Opens a GPU, even if it is already open. With NVML, this takes 6 ms unless another program
    /// has the GPU open.
    ///
    /// # Errors
    /// Returns the call's `nvmlReturn_t`.
    fn open_gpu(&self, index: u32) -> Result<(), Code>;

    /// Returns the GPM metrics for the time since the last call. Each metric has its own result.
    ///
    /// # Errors
    /// Returns the call's `nvmlReturn_t`.
    fn read_gpm_metrics(&self, subject: Subject, metrics: &[u32]) -> Result<GpmResult, Code>;

    /// Returns `true` if this backend executes queries from memory, without calling a driver.
    fn answers_from_memory(&self) -> bool {
        false
    }

    /// Returns a reporter for events, or `None` if this driver has no events.
    fn reporter(&self) -> Option<Box<dyn Reporter>>;

    /// Explains an error code that the query for the number of GPUs has returned.
    fn explain_count_error(&self, code: Code) -> SourceError {
        to_source_error(code.0)
    }

    /// Returns `true` if the system has powered the GPU down.
    fn is_asleep(&self, _index: u32, _sys_root: &Path) -> bool {
        false
    }

    /// Forgets a GPU's MIG devices, so that the next query looks them up again.
    fn forget_mig_devices(&self, _index: u32) {}

    /// Returns the path of `/sys`, which is replaced in tests.
    fn sys_root(&self) -> &Path {
        Path::new("/sys")
    }

    /// Returns the memory of the machine that contains the GPU, or `None` if it cannot be read.
    fn read_machine_memory(&self, index: u32) -> Option<MachineMemory>;

    /// Fills in those readings of simulated processes that the operating system provides for real
    /// processes.
    fn fill_simulated_process_details(&self, _index: u32, _processes: &mut [Process]) {}

    /// Returns the CPU use of the GPU's processes if they are simulated.
    fn simulated_cpu_use(&self, _index: u32) -> Vec<ProcessUse> {
        Vec::new()
    }
}

/// NVIDIA's driver, accessed through NVML. Any thread can query it.
pub struct NvmlBackend {
    library: &'static ffi::Library,
    /// The library's file name, for use in messages.
    name: String,
    gpus: Vec<OpenedGpu>,
    sys_root: PathBuf,
    proc_root: PathBuf,
}

impl NvmlBackend {
    /// Loads the library from `path`, or the `libnvidia-ml.so.1` that the loader finds, and
    /// initializes it.
    ///
    /// # Errors
    /// Returns a [`SourceError`] that distinguishes a missing library, a missing driver, and a
    /// version mismatch between the two. A machine without GPUs is not an error:
    /// [`SystemQuery::DeviceCount`] then returns 0.
    pub fn open(path: Option<OsString>) -> Result<Self, SourceError> {
        let path = path.unwrap_or_else(|| LIBRARY_NAME.into());
        let name = path.to_string_lossy().into_owned();
        let library = ffi::Library::open(&path).map_err(|error| load_error(&name, &error))?;
        if !library.can_initialize() {
            return Err(incomplete_library_error(&name));
        }
        library
            .initialize()
            .map_err(|Code(code)| to_source_error(code))?;
        let gpus = (0..library
            .get_system(&nvmlDeviceGetCount_v2, &[])
            .map_or(0, |[count]| count))
            .map(OpenedGpu::new)
            .collect();
        Ok(Self {
            library: Box::leak(Box::new(library)),
            name,
            gpus,
            sys_root: "/sys".into(),
            proc_root: "/proc".into(),
        })
    }

    /// Sets the root folders of the system's files.
    #[must_use]
    pub fn with_roots(self, roots: &Roots) -> Self {
        Self {
            sys_root: roots.sys.clone(),
            proc_root: roots.proc.clone(),
            ..self
        }
    }

    /// Forgets all handles, so that GPUs are looked up again. This is needed because a lost GPU may
    /// have returned, and a MIG device may have been replaced by another with the same index.
    /// Constant responses about GPUs and the last GPM samples are kept. Programs that repeat their
    /// queries call this function between rounds.
    pub fn forget_handles(&self) {
        for gpu in &self.gpus {
            gpu.forget_handles();
        }
    }

    /// Forgets all constant responses, so that the next queries call the driver again.
    pub fn forget_answers(&self) {
        self.gpus.iter().for_each(OpenedGpu::forget_answers);
    }

    fn find_gpu(&self, index: u32) -> Result<&OpenedGpu, Code> {
        self.gpus.get(index as usize).ok_or(Code::INVALID_ARGUMENT)
    }

    fn find_device(&self, subject: Subject) -> Result<ffi::Device, Code> {
        self.find_gpu(subject.gpu)?
            .open_device(self.library, subject.mig)
    }
}

impl QueryBackend for NvmlBackend {
    fn answer_system(&self, query: SystemQuery) -> Answer {
        answer_system(self.library, query)
    }

    fn answer_query(&self, subject: Subject, query: Query) -> Answer {
        let gpu = self.find_gpu(subject.gpu)?;
        let ask = || {
            Target {
                backend: self,
                subject,
                device: self.find_device(subject)?,
            }
            .answer(query)
        };
        if is_constant(query) {
            gpu.get_or_query((subject.mig, query), ask)
        } else {
            ask()
        }
    }

    /// Executes several queries. All queries for NVML fields are combined into a single call.
    fn answer_queries(&self, subject: Subject, queries: &[Query]) -> Vec<Answer> {
        let field = |query: &Query| match *query {
            Query::Field(id, scope) => Some(ffi::Field { id, scope }),
            _ => None,
        };
        let fields: Vec<_> = queries.iter().filter_map(field).collect();
        let mut values = match self.find_device(subject) {
            Ok(device) if fields.len() > 1 => Target {
                backend: self,
                subject,
                device,
            }
            .read_fields(&fields),
            _ => Vec::new(),
        }
        .into_iter();
        let answer = |query: &Query| match field(query) {
            Some(_) => values
                .next()
                .unwrap_or_else(|| self.answer_query(subject, *query)),
            None => self.answer_query(subject, *query),
        };
        queries.iter().map(answer).collect()
    }

    fn answer_gpm(&self, subject: Subject, metrics: &[u32]) -> Answer {
        match gpu::read_gpm_metrics(self, subject, metrics)? {
            GpmResult::Counted(values) => Ok(Value::Reals(
                values
                    .into_iter()
                    .map(|value| value.unwrap_or(f64::NAN))
                    .collect(),
            )),
            GpmResult::NotYet => Err(Code::NOT_READY),
            GpmResult::Busy => Err(Code::TIMEOUT),
        }
    }

    fn forget_outdated_answers(&self) {
        Self::forget_handles(self);
    }
}

impl Backend for NvmlBackend {
    fn is_simulated(&self) -> bool {
        false
    }

    fn query_system(&self, query: SystemQuery) -> Answer {
        self.answer_system(query)
    }

    fn run_queries(&self, subject: Subject, queries: &[Query]) -> Vec<Answer> {
        self.answer_queries(subject, queries)
    }

    fn open_gpu(&self, index: u32) -> Result<(), Code> {
        self.find_gpu(index)?.forget_handles();
        self.find_device(Subject::from_gpu(index)).map(drop)
    }

    fn read_gpm_metrics(&self, subject: Subject, metrics: &[u32]) -> Result<GpmResult, Code> {
        gpu::read_gpm_metrics(self, subject, metrics)
    }

    fn reporter(&self) -> Option<Box<dyn Reporter>> {
        let reporter = EventReporter::new(self.library).ok()?;
        Some(Box::new(reporter))
    }

    fn explain_count_error(&self, code: Code) -> SourceError {
        if self.library.find_function(&nvmlDeviceGetCount_v2).is_ok() {
            to_source_error(code.0)
        } else {
            incomplete_library_error(&self.name)
        }
    }

    fn is_asleep(&self, index: u32, sys_root: &Path) -> bool {
        sysfs::is_asleep(sys_root, index, self.gpus.len() as u32)
    }

    fn forget_mig_devices(&self, index: u32) {
        if let Ok(gpu) = self.find_gpu(index) {
            gpu.forget_mig_devices();
        }
    }

    fn sys_root(&self) -> &Path {
        &self.sys_root
    }

    fn read_machine_memory(&self, _index: u32) -> Option<MachineMemory> {
        MachineMemory::read(&self.proc_root)
    }
}

/// The maximum duration of a single wait for events. Newly opened GPUs are added only between
/// waits. Each wait costs 70 µs.
const MAX_EVENT_WAIT: Duration = Duration::from_secs(1);

/// A receiver for the events of all GPUs.
///
/// All GPUs share one event set and one thread: while `nvmlEventSetWait_v2` waits, it holds a lock
/// in the library, and no function for events can run meanwhile, even for other sets (driver 580).
struct EventReporter {
    library: &'static ffi::Library,
    set: ffi::EventSet,
}

impl EventReporter {
    fn new(library: &'static ffi::Library) -> Result<Self, Code> {
        Ok(Self {
            library,
            set: ffi::EventSet::create(library)?,
        })
    }

    /// Replaces the event set with a new one, because a lost GPU makes every wait fail, even for
    /// other GPUs.
    fn recreate_set(&mut self) {
        let Ok(mut set) = ffi::EventSet::create(self.library) else {
            return;
        };
        for gpu in self.set.gpu_indices() {
            // A GPU that cannot be registered is added again the next time it is opened.
            let _ = set.register_gpu(gpu);
        }
        self.set = set;
    }
}

impl Reporter for EventReporter {
    fn add(&mut self, gpu: u32) {
        // If the GPU cannot be registered, no events are reported for it, but its samples are still
        // read.
        let _ = self.set.register_gpu(gpu);
    }

    fn wait_for_event(&mut self) -> Option<(u32, Notice)> {
        if let Ok(event) = self.set.wait_for_event(MAX_EVENT_WAIT.as_millis() as u32) {
            event
        } else {
            thread::sleep(MAX_EVENT_WAIT);
            self.recreate_set();
            None
        }
    }
}
