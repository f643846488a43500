//! NVML as it answers queries: one query, one call, nothing that was not asked for.
//!
//! The library is opened and initialized once and never closed. A GPU is opened, which takes 6 ms,
//! by the first thread that asks about it, while others open other GPUs. What can never change
//! about a GPU is remembered.

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

/// The driver that a source of GPUs asks: NVML, or a simulation in its place.
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

    /// Opens a GPU, again if it was open. That takes NVML 6 ms if no other program has opened it.
    ///
    /// # Errors
    /// The `nvmlReturn_t` of the call.
    fn open_gpu(&self, index: u32) -> Result<(), Code>;

    /// Reads the metrics that GPM counted since the last call, each with its own outcome.
    ///
    /// # Errors
    /// The `nvmlReturn_t` of the call.
    fn read_activity(&self, subject: Subject, metrics: &[u32]) -> Result<Activity, Code>;

    /// Returns `true` if asking costs nothing.
    fn is_quick(&self) -> bool {
        false
    }

    /// Waits for events; `None` if there are none.
    fn reporter(&self) -> Option<Box<dyn Reporter>>;

    /// Explains why there is no source, if the GPUs cannot be counted.
    fn count_error(&self, code: Code) -> SourceError {
        source_error(code.0)
    }

    /// Returns `true` if the system has switched this GPU off to save power.
    fn is_asleep(&self, _index: u32, _sys_root: &Path) -> bool {
        false
    }

    /// Looks up the MIG devices again at the next query about one.
    fn forget_mig_devices(&self, _index: u32) {}

    /// Returns the folder of the system's own files about devices.
    fn sys_root(&self) -> &Path {
        Path::new("/sys")
    }

    /// Reads the memory of the machine that the GPU is part of; `None` if it cannot be read.
    fn machine_memory(&self, index: u32) -> Option<MachineMemory>;

    /// Fills in the readings of processes that the system has for processes that exist.
    fn describe(&self, _index: u32, _processes: &mut [Process]) {}
}

/// The driver, ready to be asked by any thread.
pub struct NvmlBackend {
    library: &'static raw::Library,
    /// The name of the library, for messages.
    name: String,
    gpus: Vec<Gpu>,
    sys_root: PathBuf,
    proc_root: PathBuf,
}

impl NvmlBackend {
    /// Loads the library from `path`, or from where the loader finds `libnvidia-ml.so.1`, and
    /// initializes it.
    ///
    /// # Errors
    /// [`SourceError`] tells a missing library, a missing driver and a mismatch of the two apart.
    /// No GPU at all is no error here: [`SystemQuery::DeviceCount`] says so.
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

    /// Reads the system's own files below these roots.
    #[must_use]
    pub fn with_roots(self, roots: &Roots) -> Self {
        Self {
            sys_root: roots.sys.clone(),
            proc_root: roots.proc.clone(),
            ..self
        }
    }

    /// To be called between two rounds of a loop: GPUs are looked for anew, since one that was lost
    /// may be back and another MIG device may stand at the same place. What a GPU can never change
    /// stays remembered, as does GPM's last sample.
    pub fn forget(&self) {
        for gpu in &self.gpus {
            gpu.forget();
        }
    }

    /// Forgets what was answered and cannot change, so that the next query about it is a call.
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

    /// Fields are one call.
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
