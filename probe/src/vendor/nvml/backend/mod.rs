//! NVML as it answers queries: one query, one call, nothing that was not asked for.
//!
//! The library is opened and initialized once and never closed. A GPU is opened, which takes 6 ms, by the first thread
//! that asks about it, while others open other GPUs. What can never change about a GPU is remembered.

mod fixed;
mod gpm;
mod gpu;
mod instances;
mod links;
mod pcie_port;
mod processes;
#[allow(unsafe_code)]
pub(super) mod raw;
mod subject;
mod system;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

pub use self::raw::FUNCTIONS;
pub(super) use self::{fixed::has_constant_answer, gpm::Activity};
use self::{gpu::Gpu, raw::function::DEVICE_COUNT, subject::Target};
use super::start::{LIBRARY, incomplete_library, not_loaded, source_error};
use crate::{
    vendor::SourceError,
    vendor::nvml::query::{Answer, Code, Query, QueryBackend, Subject, SystemQuery, Value},
};

/// The driver, ready to be asked by any thread.
pub struct NvmlBackend {
    pub(super) library: &'static raw::Library,
    gpus: Vec<Gpu>,
    sys_root: PathBuf,
}

impl NvmlBackend {
    /// Loads the library from `path`, or from where the loader finds `libnvidia-ml.so.1`, and initializes it.
    ///
    /// # Errors
    /// [`SourceError`] tells a missing library, a missing driver and a mismatch of the two apart. No GPU at all is no
    /// error here: [`SystemQuery::DeviceCount`] says so.
    pub fn open(path: Option<OsString>) -> Result<Self, SourceError> {
        let path = path.unwrap_or_else(|| LIBRARY.into());
        let name = path.to_string_lossy();
        let library = raw::Library::open(&path).map_err(|error| not_loaded(&name, &error))?;
        if !library.can_initialize() {
            return Err(incomplete_library(&name));
        }
        library
            .initialize()
            .map_err(|Code(code)| source_error(code))?;
        let gpus = (0..library.system(&DEVICE_COUNT).unwrap_or(0))
            .map(Gpu::new)
            .collect();
        Ok(Self {
            library: Box::leak(Box::new(library)),
            gpus,
            sys_root: "/sys".into(),
        })
    }

    /// Whether the library has the function that counts GPUs.
    pub(super) fn can_count(&self) -> bool {
        self.library.find(&DEVICE_COUNT).is_ok()
    }

    /// What is told only by the system stands below it.
    pub(super) fn sys_root(&self) -> &Path {
        &self.sys_root
    }

    /// Opens a GPU, which takes 6 ms where no other program has; anew where it was open.
    pub(super) fn open_gpu(&self, index: u32) -> Result<(), Code> {
        self.gpu(index)?.forget();
        self.device(Subject::gpu(index)).map(drop)
    }

    pub(super) fn forget_mig_devices(&self, index: u32) {
        if let Ok(gpu) = self.gpu(index) {
            gpu.forget_mig_devices();
        }
    }

    /// What the driver keeps of this `nvmlSamplingType_t` from after this time on (us since the epoch).
    pub(super) fn samples(&self, subject: Subject, kind: u32, since_us: u64) -> Answer {
        Target {
            backend: self,
            subject,
            device: self.device(subject)?,
        }
        .samples(kind, since_us)
    }

    /// What GPM counted since the last time, metric by metric.
    pub(super) fn gpm_metrics(&self, subject: Subject, metrics: &[u32]) -> Result<Activity, Code> {
        gpm::metrics(self, subject, metrics)
    }

    /// Has what only the system tells read elsewhere than below `/sys`, as tests do.
    #[must_use]
    pub fn with_sys_root(self, sys_root: PathBuf) -> Self {
        Self { sys_root, ..self }
    }

    /// To be called between two rounds of a loop: GPUs are looked for anew, since one that was lost may be back and
    /// another MIG device may stand at the same place. What a GPU can never change stays remembered, as does GPM's last
    /// sample.
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
        system::answer(self.library, query)
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
        if has_constant_answer(query) {
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
        match self.gpm_metrics(subject, metrics)? {
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
