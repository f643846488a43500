//! NVIDIA's driver, through NVML.
//!
//! The library is opened at run time, so that gpumon runs (and explains itself) where there is none. A process opens it
//! once and never closes it: closing takes milliseconds, can hang with the driver, and the process ends soon anyway.

mod accounting;
mod answers;
mod ask;
mod details;
mod device;
mod ecc;
mod error;
mod events;
mod fans;
mod fields;
mod gpm;
mod identity;
mod link_rates;
mod links;
mod mig;
mod paced;
mod pcie;
mod processes;
#[allow(unsafe_code)]
mod raw;
mod shares;
mod topology;
mod traces;
mod turn;

use std::{
    ffi::OsString,
    path::Path,
    sync::{Arc, OnceLock},
};

use nvml_wrapper::{Nvml, cuda_driver_version_major, cuda_driver_version_minor, error::NvmlError};

pub use self::answers::NvmlAnswers;
use self::{device::NvmlDevice, error::absence, events::EventReporter};
use super::{Device, DeviceError, Reporter, Source, SourceError, runtime_pm};
use crate::{
    model::{GpuLink, Platform, Reading, SourceKind},
    question::{Answer, Ask, Question, Subject},
};

/// The name by which every NVIDIA driver installs its library.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// NVML, loaded and initialised.
pub struct NvmlSource {
    nvml: &'static Nvml,
    /// What was loaded, to name it.
    library: String,
    /// The same library, asked in its own vocabulary; opened when somebody first does.
    answers: Arc<OnceLock<Option<NvmlAnswers>>>,
}

impl NvmlSource {
    /// Loads the library from `path`, or from where the loader finds `libnvidia-ml.so.1`.
    ///
    /// # Errors
    /// [`SourceError`] tells a missing library, a missing driver and a mismatch of the two apart.
    pub fn open(path: Option<OsString>) -> Result<Self, SourceError> {
        let library = path.unwrap_or_else(|| LIBRARY.into());
        let nvml = Nvml::builder().lib_path(&library).init();
        let library = library.to_string_lossy().into_owned();
        let nvml = nvml.map_err(|error| start_error(&library, &error))?;
        Ok(Self { nvml: Box::leak(Box::new(nvml)), library, answers: Arc::default() })
    }
}

impl Source for NvmlSource {
    fn platform(&self) -> Platform {
        let read = |result: Result<String, NvmlError>| Reading::from(result.map_err(|error| absence(&error)));
        Platform {
            source: SourceKind::Nvml,
            driver_version: read(self.nvml.sys_driver_version()),
            nvml_version: read(self.nvml.sys_nvml_version()),
            cuda_version: read(self.nvml.sys_cuda_driver_version().map(|version| {
                format!("{}.{}", cuda_driver_version_major(version), cuda_driver_version_minor(version))
            })),
        }
    }

    fn device_count(&self) -> Result<u32, SourceError> {
        match self.nvml.device_count() {
            Ok(0) => Err(SourceError::NoDevice),
            Ok(count) => Ok(count),
            Err(error) => Err(start_error(&self.library, &error)),
        }
    }

    fn open(&self, index: u32) -> Result<Box<dyn Device>, DeviceError> {
        // A GPU that is opened again may have been reset, or be another one.
        if let Some(Some(answers)) = self.answers.get() {
            answers.forget();
        }
        let answers = LateAnswers { library: self.library.clone().into(), answers: Arc::clone(&self.answers) };
        Ok(Box::new(NvmlDevice::open(self.nvml, answers, index)?))
    }

    fn is_asleep(&self, index: u32, sys_root: &Path) -> bool {
        self.device_count().is_ok_and(|count| runtime_pm::is_asleep(sys_root, index, count))
    }

    fn reporter(&self) -> Option<Box<dyn Reporter>> {
        EventReporter::new(self.nvml).ok().map(|reporter| Box::new(reporter) as _)
    }

    fn links(&self, gpus: &[u32]) -> Vec<GpuLink> {
        topology::read(self.nvml, gpus)
    }
}

/// The library in its own vocabulary, opened at the first question: most programs ask none.
struct LateAnswers {
    library: OsString,
    answers: Arc<OnceLock<Option<NvmlAnswers>>>,
}

impl LateAnswers {
    /// Asks about one GPU. Where the library cannot be opened once more, nothing is answered.
    fn ask(&self, gpu: u32, questions: &[Question]) -> Vec<(Question, Answer)> {
        let answers = self.answers.get_or_init(|| NvmlAnswers::open(Some(self.library.clone())).ok());
        let Some(answers) = answers else { return Vec::new() };
        questions.iter().map(|question| (*question, answers.about(Subject::gpu(gpu), *question))).collect()
    }
}

fn start_error(library: &str, error: &NvmlError) -> SourceError {
    let no_library = |cause: String| SourceError::NoLibrary { library: library.to_owned(), cause };
    match error {
        NvmlError::LibloadingError(loader) => {
            let cause = std::error::Error::source(loader).map_or_else(|| loader.to_string(), ToString::to_string);
            no_library(format!("{}{}", cause.trim_start_matches(&format!("{library}: ")), driver_hint()))
        }
        NvmlError::FailedToLoadSymbol(_) => {
            let missing = "it lacks nvmlInit_v2 or nvmlDeviceGetCount_v2, so it is not NVIDIA's, or a stub, or too old";
            no_library(missing.to_owned())
        }
        error => driver_error(error),
    }
}

/// Where the kernel driver runs without its library, that is worth knowing: typically a container.
fn driver_hint() -> &'static str {
    if Path::new("/proc/driver/nvidia/version").exists() {
        " (the kernel driver runs; a container needs NVIDIA_DRIVER_CAPABILITIES=utility)"
    } else {
        " (no NVIDIA kernel driver runs either)"
    }
}

fn driver_error(error: &NvmlError) -> SourceError {
    match error {
        NvmlError::DriverNotLoaded => SourceError::NoDriver,
        NvmlError::NoPermission => SourceError::NoPermission,
        NvmlError::LibRmVersionMismatch => SourceError::VersionMismatch,
        NvmlError::NotFound => SourceError::NoDevice,
        error => SourceError::Driver { code: error::code(error) },
    }
}
