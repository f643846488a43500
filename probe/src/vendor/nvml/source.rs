//! The source behind `--source nvml`.

use std::{ffi::OsString, path::Path, sync::Arc};

use nvml_wrapper::{cuda_driver_version_major, cuda_driver_version_minor, error::NvmlError};

use super::{
    backend::NvmlBackend,
    device::NvmlDevice,
    error::{absence, code},
    events::EventReporter,
    kernel_log::KernelLog,
    runtime_pm,
    start::{self, LIBRARY, start_error},
    topology, xid,
};
use crate::{
    model::{GpuLink, Platform, Reading, SourceKind},
    vendor::nvml::query::Code,
    vendor::{Device, DeviceError, ErrorInfo, ErrorLog, Reporter, Source, SourceError},
};

/// NVML, loaded and initialised.
pub struct NvmlSource {
    answers: Arc<NvmlBackend>,
    /// What was loaded, to name it.
    library: String,
}

impl NvmlSource {
    /// Loads the library from `path`, or from where the loader finds `libnvidia-ml.so.1`.
    ///
    /// # Errors
    /// [`SourceError`] tells a missing library, a missing driver and a mismatch of the two apart.
    pub fn open(path: Option<OsString>) -> Result<Self, SourceError> {
        let library = path.unwrap_or_else(|| LIBRARY.into());
        let answers = Arc::new(NvmlBackend::open(Some(library.clone()))?);
        Ok(Self { answers, library: library.to_string_lossy().into_owned() })
    }
}

impl Source for NvmlSource {
    fn platform(&self) -> Platform {
        let nvml = self.answers.nvml;
        let read =
            |result: Result<String, NvmlError>| Reading::from(result.map_err(|error| absence(Code(code(&error)))));
        Platform {
            source: SourceKind::Nvml,
            driver_version: read(nvml.sys_driver_version()),
            nvml_version: read(nvml.sys_nvml_version()),
            cuda_version: read(nvml.sys_cuda_driver_version().map(|version| {
                format!("{}.{}", cuda_driver_version_major(version), cuda_driver_version_minor(version))
            })),
        }
    }

    fn device_count(&self) -> Result<u32, SourceError> {
        match self.answers.nvml.device_count() {
            Ok(0) => Err(start::no_device()),
            Ok(count) => Ok(count),
            Err(error) => Err(start_error(&self.library, &error)),
        }
    }

    fn open(&self, index: u32) -> Result<Box<dyn Device>, DeviceError> {
        Ok(Box::new(NvmlDevice::open(Arc::clone(&self.answers), index)?))
    }

    fn is_asleep(&self, index: u32, sys_root: &Path) -> bool {
        self.device_count().is_ok_and(|count| runtime_pm::is_asleep(sys_root, index, count))
    }

    fn reporter(&self) -> Option<Box<dyn Reporter>> {
        EventReporter::new(self.answers.nvml).ok().map(|reporter| Box::new(reporter) as _)
    }

    fn error_log(&self, path: &Path) -> Option<Box<dyn ErrorLog>> {
        KernelLog::open(path).ok().map(|log| Box::new(log) as _)
    }

    fn describe_error(&self, code: u32) -> ErrorInfo {
        xid::describe(code)
    }

    fn links(&self, gpus: &[u32]) -> Vec<GpuLink> {
        topology::read(&*self.answers, gpus)
    }
}
