//! Answers to queries from NVML. Each query is one call, and nothing else is called.
//!
//! The library is loaded and initialized once, and never closed. The first thread that asks about a
//! GPU opens it, which takes 6 ms. Other threads can open other GPUs meanwhile. Answers that can
//! never change are remembered.

mod gpm;
mod gpu;
mod pcie_port;
#[allow(unsafe_code)]
pub(super) mod raw;
mod subject;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

pub(in crate::vendor) use self::gpm::Activity;
pub use self::raw::FUNCTIONS;
use self::{
    gpu::Gpu,
    raw::function::nvmlDeviceGetCount_v2,
    subject::{Target, answer_system},
};
use super::{
    events::EventReporter,
    lanes::is_constant,
    runtime_pm,
    start::{LIBRARY, incomplete_library, not_loaded, source_error},
};
use crate::{
    model::Process,
    vendor::nvml::query::{Answer, Code, Query, QueryBackend, Subject, SystemQuery, Value},
    vendor::{MachineMemory, Reporter, Roots, SourceError},
};

/// A driver that answers queries: NVML or a simulation.
pub(in crate::vendor) trait Backend: Send + Sync {
    /// Returns `true` if the answers are simulated.
    fn is_simulated(&self) -> bool;

    /// Returns the answer to a query about the machine.
    fn ask_system(&self, query: SystemQuery) -> Answer;

    /// Returns the answers to queries about a GPU or a MIG device, in the order of the queries.
    fn ask_each(&self, subject: Subject, queries: &[Query]) -> Vec<Answer>;

    /// Returns the answer to a query about a GPU or a MIG device.
    fn ask(&self, subject: Subject, query: Query) -> Answer {
        self.ask_each(subject, &[query])
            .pop()
            .unwrap_or(Err(Code::UNKNOWN))
    }

    /// Opens a GPU, even if it is open already. With NVML, this takes 6 ms unless another program
    /// has the GPU open.
    ///
    /// # Errors
    /// Returns the `nvmlReturn_t` of the call.
    fn open_gpu(&self, index: u32) -> Result<(), Code>;

    /// Returns GPM's metrics since the last call, each with its own result.
    ///
    /// # Errors
    /// Returns the `nvmlReturn_t` of the call.
    fn read_activity(&self, subject: Subject, metrics: &[u32]) -> Result<Activity, Code>;

    /// Returns `true` if queries are answered from memory.
    fn is_quick(&self) -> bool {
        false
    }

    /// Returns a reporter of events, or `None` if there are no events.
    fn reporter(&self) -> Option<Box<dyn Reporter>>;

    /// Explains an error of counting the GPUs.
    fn count_error(&self, code: Code) -> SourceError {
        source_error(code.0)
    }

    /// Returns `true` if the system has powered this GPU down.
    fn is_asleep(&self, _index: u32, _sys_root: &Path) -> bool {
        false
    }

    /// Forgets the MIG devices of a GPU, so that the next query looks them up again.
    fn forget_mig_devices(&self, _index: u32) {}

    /// Returns the path of `/sys`, which is a different one in tests.
    fn sys_root(&self) -> &Path {
        Path::new("/sys")
    }

    /// Reads the memory of the GPU's machine. Returns `None` if it cannot be read.
    fn machine_memory(&self, index: u32) -> Option<MachineMemory>;

    /// Fills in readings of simulated processes that the system provides for real ones.
    fn describe(&self, _index: u32, _processes: &mut [Process]) {}
}

/// NVIDIA's driver, which any thread can query.
pub struct NvmlBackend {
    library: &'static raw::Library,
    /// The file name of the library, for messages.
    name: String,
    gpus: Vec<Gpu>,
    sys_root: PathBuf,
    proc_root: PathBuf,
}

impl NvmlBackend {
    /// Loads the library from `path`, or else the `libnvidia-ml.so.1` that the loader finds, and
    /// initializes it.
    ///
    /// # Errors
    /// Returns a [`SourceError`] that distinguishes a missing library, a missing driver and
    /// different versions of the two. A machine without GPUs is no error:
    /// [`SystemQuery::DeviceCount`] then answers 0.
    pub fn open(path: Option<OsString>) -> Result<Self, SourceError> {
        let path = path.unwrap_or_else(|| LIBRARY.into());
        let name = path.to_string_lossy().into_owned();
        let library = raw::Library::open(&path).map_err(|error| not_loaded(&name, &error))?;
        if !library.can_initialize() {
            return Err(incomplete_library(&name));
        }
        library
            .initialize()
            .map_err(|Code(code)| source_error(code))?;
        let gpus = (0..library
            .get_system(&nvmlDeviceGetCount_v2, &[])
            .map_or(0, |[count]| count))
            .map(Gpu::new)
            .collect();
        Ok(Self {
            library: Box::leak(Box::new(library)),
            name,
            gpus,
            sys_root: "/sys".into(),
            proc_root: "/proc".into(),
        })
    }

    /// Sets the locations of the system's files.
    #[must_use]
    pub fn with_roots(self, roots: &Roots) -> Self {
        Self {
            sys_root: roots.sys.clone(),
            proc_root: roots.proc.clone(),
            ..self
        }
    }

    /// Forgets all handles, so that GPUs are looked up again: a lost GPU may be back, and a MIG
    /// device may have been replaced by another with the same index. Constant answers about GPUs
    /// and GPM's last samples are kept. Programs that repeat their queries call this between two
    /// rounds.
    pub fn forget(&self) {
        for gpu in &self.gpus {
            gpu.forget();
        }
    }

    /// Forgets the constant answers, so that the next queries call the driver again.
    pub fn forget_answers(&self) {
        self.gpus.iter().for_each(Gpu::forget_answers);
    }

    fn gpu(&self, index: u32) -> Result<&Gpu, Code> {
        self.gpus.get(index as usize).ok_or(Code::INVALID_ARGUMENT)
    }

    fn device(&self, subject: Subject) -> Result<raw::Device, Code> {
        self.gpu(subject.gpu)?.device(self.library, subject.mig)
    }
}

impl QueryBackend for NvmlBackend {
    fn system(&self, query: SystemQuery) -> Answer {
        answer_system(self.library, query)
    }

    fn about(&self, subject: Subject, query: Query) -> Answer {
        let gpu = self.gpu(subject.gpu)?;
        let ask = || {
            Target {
                backend: self,
                subject,
                device: self.device(subject)?,
            }
            .answer(query)
        };
        if is_constant(query) {
            gpu.remember((subject.mig, query), ask)
        } else {
            ask()
        }
    }

    /// Answers several queries. All fields are read in one call.
    fn each(&self, subject: Subject, queries: &[Query]) -> Vec<Answer> {
        let field = |query: &Query| match *query {
            Query::Field(id, scope) => Some(raw::Field { id, scope }),
            _ => None,
        };
        let fields: Vec<_> = queries.iter().filter_map(field).collect();
        let mut values = match self.device(subject) {
            Ok(device) if fields.len() > 1 => Target {
                backend: self,
                subject,
                device,
            }
            .fields(&fields),
            _ => Vec::new(),
        }
        .into_iter();
        let answer = |query: &Query| match field(query) {
            Some(_) => values.next().unwrap_or_else(|| self.about(subject, *query)),
            None => self.about(subject, *query),
        };
        queries.iter().map(answer).collect()
    }

    fn gpm(&self, subject: Subject, metrics: &[u32]) -> Answer {
        match gpm::metrics(self, subject, metrics)? {
            Activity::Counted(values) => Ok(Value::Reals(
                values
                    .into_iter()
                    .map(|value| value.unwrap_or(f64::NAN))
                    .collect(),
            )),
            Activity::NotYet => Err(Code::NOT_READY),
            Activity::Busy => Err(Code::TIMEOUT),
        }
    }

    fn forget(&self) {
        Self::forget(self);
    }
}

impl Backend for NvmlBackend {
    fn is_simulated(&self) -> bool {
        false
    }

    fn ask_system(&self, query: SystemQuery) -> Answer {
        self.system(query)
    }

    fn ask_each(&self, subject: Subject, queries: &[Query]) -> Vec<Answer> {
        self.each(subject, queries)
    }

    fn open_gpu(&self, index: u32) -> Result<(), Code> {
        self.gpu(index)?.forget();
        self.device(Subject::gpu(index)).map(drop)
    }

    fn read_activity(&self, subject: Subject, metrics: &[u32]) -> Result<Activity, Code> {
        gpm::metrics(self, subject, metrics)
    }

    fn reporter(&self) -> Option<Box<dyn Reporter>> {
        let reporter = EventReporter::new(self.library).ok()?;
        Some(Box::new(reporter))
    }

    fn count_error(&self, code: Code) -> SourceError {
        if self.library.find(&nvmlDeviceGetCount_v2).is_ok() {
            source_error(code.0)
        } else {
            incomplete_library(&self.name)
        }
    }

    fn is_asleep(&self, index: u32, sys_root: &Path) -> bool {
        runtime_pm::is_asleep(sys_root, index, self.gpus.len() as u32)
    }

    fn forget_mig_devices(&self, index: u32) {
        if let Ok(gpu) = self.gpu(index) {
            gpu.forget_mig_devices();
        }
    }

    fn sys_root(&self) -> &Path {
        &self.sys_root
    }

    fn machine_memory(&self, _index: u32) -> Option<MachineMemory> {
        MachineMemory::read(&self.proc_root)
    }
}
