//! NVML as it answers questions: one question, one call, nothing that was not asked for.
//!
//! The library is opened and initialised once and never closed. A GPU is opened, which takes 6 ms, by the first thread
//! that asks about it, while others open other GPUs. What can never change about a GPU is remembered.

mod fixed;
mod gpm;
mod gpu;
mod instances;
mod links;
mod numbers;
mod processes;
mod subject;
mod system;

use std::{ffi::OsString, path::PathBuf};

use self::{gpu::Gpu, subject::Asked};
use super::{LIBRARY, raw, start_error};
use crate::{
    question::{Answer, Ask, Code, Question, Subject, SystemQuestion},
    source::SourceError,
};

/// The driver, ready to be asked by any thread.
pub struct NvmlAnswers {
    library: &'static raw::Library,
    gpus: Vec<Gpu>,
    sys_root: PathBuf,
}

impl NvmlAnswers {
    /// Loads the library from `path`, or from where the loader finds `libnvidia-ml.so.1`, and initialises it.
    ///
    /// # Errors
    /// [`SourceError`] tells a missing library, a missing driver and a mismatch of the two apart. No GPU at all is no
    /// error here: [`SystemQuestion::DeviceCount`] says so.
    pub fn open(path: Option<OsString>) -> Result<Self, SourceError> {
        let path = path.unwrap_or_else(|| LIBRARY.into());
        let library = raw::Library::start(&path).map_err(|error| start_error(&path.to_string_lossy(), &error))?;
        let count = library.system(&raw::function::DEVICE_COUNT).unwrap_or(0);
        Ok(Self { library, gpus: (0..count).map(Gpu::new).collect(), sys_root: "/sys".into() })
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

    /// The GPU of this index, opened or not.
    fn gpu(&self, index: u32) -> Result<&Gpu, Code> {
        self.gpus.get(index as usize).ok_or(Code::INVALID_ARGUMENT)
    }

    /// A GPU's or MIG device's handle.
    fn device(&self, subject: Subject) -> Result<raw::Device, Code> {
        self.gpu(subject.gpu)?.device(self.library, subject.mig)
    }
}

impl Ask for NvmlAnswers {
    fn system(&self, question: SystemQuestion) -> Answer {
        system::answer(self.library, question)
    }

    fn about(&self, subject: Subject, question: Question) -> Answer {
        let gpu = self.gpu(subject.gpu)?;
        let ask = || Asked { answers: self, subject, device: self.device(subject)? }.answer(question);
        if fixed::is(question) { gpu.remember((subject.mig, question), ask) } else { ask() }
    }

    fn gpm(&self, subject: Subject, metrics: &[u32]) -> Answer {
        gpm::answer(self, subject, metrics)
    }

    fn forget(&self) {
        Self::forget(self);
    }
}
