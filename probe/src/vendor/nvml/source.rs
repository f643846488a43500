//! The source behind `--source nvml`.

use std::{ffi::OsString, path::Path, sync::Arc};

use super::{
    backend::NvmlBackend,
    cached::and_then,
    device::NvmlDevice,
    error::absence,
    events::EventReporter,
    kernel_log::KernelLog,
    runtime_pm,
    start::{self, LIBRARY},
    topology,
};
use crate::{
    model::{Absence, Driver, GpuLink, Platform, Reading, Vendor},
    vendor::nvml::query::{Code, QueryBackend, SystemQuery, Value},
    vendor::{Device, DeviceError, ErrorLog, Reporter, Source, SourceError},
};

/// NVML, loaded and initialized.
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
        Ok(Self {
            answers,
            library: library.to_string_lossy().into_owned(),
        })
    }
}

/// No machine has more; each has a thread of its own.
const MOST_GPUS: u32 = 1024;

impl Source for NvmlSource {
    fn platform(&self) -> Platform {
        let read = |query| Reading::from(self.answers.system(query).map_err(absence));
        let text = |query| {
            and_then(read(query), |value| {
                value
                    .text()
                    .map(str::to_owned)
                    .ok_or(Absence::Unknown)
                    .into()
            })
        };
        let cuda_version = |value: Value| {
            let version = value.at(0).ok_or(Absence::Unknown)?;
            Ok(format!("{}.{}", version / 1000, version % 1000 / 10))
        };
        Platform {
            is_simulated: false,
            drivers: vec![Driver {
                vendor: Vendor::Nvidia,
                version: text(SystemQuery::DriverVersion),
                library_version: text(SystemQuery::NvmlVersion),
                cuda_version: and_then(read(SystemQuery::CudaVersion), |value| {
                    cuda_version(value).into()
                }),
            }],
        }
    }

    fn device_count(&self) -> Result<u32, SourceError> {
        match self.answers.system(SystemQuery::DeviceCount) {
            Ok(count) if count.at(0) == Some(0) => Err(start::no_device()),
            Ok(count) => match count.at(0).map(u32::try_from) {
                Some(Ok(count @ ..=MOST_GPUS)) => Ok(count),
                _ => Err(start::absurd_count(&count)),
            },
            Err(_) if !self.answers.can_count() => Err(start::incomplete_library(&self.library)),
            Err(Code(code)) => Err(start::source_error(code)),
        }
    }

    fn open(&self, index: u32) -> Result<Box<dyn Device>, DeviceError> {
        Ok(Box::new(NvmlDevice::open(
            Arc::clone(&self.answers),
            index,
        )?))
    }

    fn is_asleep(&self, index: u32, sys_root: &Path) -> bool {
        self.device_count()
            .is_ok_and(|count| runtime_pm::is_asleep(sys_root, index, count))
    }

    fn reporter(&self) -> Option<Box<dyn Reporter>> {
        EventReporter::new(self.answers.library)
            .ok()
            .map(|reporter| Box::new(reporter) as _)
    }

    fn error_logs(&self, path: &Path) -> Vec<Box<dyn ErrorLog>> {
        let log = KernelLog::open(path).ok();
        log.into_iter().map(|log| Box::new(log) as _).collect()
    }

    fn links(&self, gpus: &[u32]) -> Vec<GpuLink> {
        topology::read(&*self.answers, gpus)
    }
}
