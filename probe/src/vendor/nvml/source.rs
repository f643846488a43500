//! The implementation of `--source nvml`.

use std::{path::Path, sync::Arc};

use super::{
    backend::{Backend, NvmlBackend},
    device::NvmlDevice,
    error::{self, to_absence},
    query::{SystemQuery, Value},
    to_model::and_then,
    topology,
    xid::XidLog,
};
use crate::{
    model::{Absence, Driver, GpuLink, Platform, Reading, Vendor},
    vendor::{Device, DeviceError, ErrorLog, Reporter, Roots, Source, SourceError, kernel_log},
};

/// The GPUs that NVML reports, or the GPUs of a simulation that answers the same queries.
pub struct NvmlSource(Arc<dyn Backend>);

impl NvmlSource {
    /// Loads the library that `roots` names, or the `libnvidia-ml.so.1` that the loader finds.
    ///
    /// # Errors
    /// Returns a [`SourceError`] that distinguishes a missing library, a missing driver, and a
    /// version mismatch between the two.
    pub fn open(roots: &Roots) -> Result<Self, SourceError> {
        let backend = NvmlBackend::open(roots.nvml_lib.clone())?;
        Ok(Self::new(backend.with_roots(roots)))
    }

    pub(crate) fn new(backend: impl Backend + 'static) -> Self {
        Self(Arc::new(backend))
    }
}

/// The maximum number of GPUs. No machine has more, and each GPU needs a thread.
const MAX_GPUS: u32 = 1024;

impl Source for NvmlSource {
    fn platform(&self) -> Platform {
        let read = |query| Reading::from(self.0.query_system(query).map_err(to_absence));
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
            let version = value.number_at(0).ok_or(Absence::Unknown)?;
            Ok(format!("{}.{}", version / 1000, version % 1000 / 10))
        };
        Platform {
            is_simulated: self.0.is_simulated(),
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
        match self.0.query_system(SystemQuery::DeviceCount) {
            Ok(count) if count.number_at(0) == Some(0) => Err(error::no_device_error()),
            Ok(count) => match count.number_at(0).map(u32::try_from) {
                Some(Ok(count @ ..=MAX_GPUS)) => Ok(count),
                _ => Err(error::absurd_count_error(&count)),
            },
            Err(code) => Err(self.0.explain_count_error(code)),
        }
    }

    fn open(&self, index: u32) -> Result<Box<dyn Device>, DeviceError> {
        Ok(Box::new(NvmlDevice::open(Arc::clone(&self.0), index)?))
    }

    fn is_asleep(&self, index: u32, sys_root: &Path) -> bool {
        self.0.is_asleep(index, sys_root)
    }

    fn reporter(&self) -> Option<Box<dyn Reporter>> {
        self.0.reporter()
    }

    fn error_logs(&self, path: &Path) -> Vec<Box<dyn ErrorLog>> {
        kernel_log::open_error_log(path, XidLog)
    }

    fn find_links(&self, gpus: &[u32]) -> Vec<GpuLink> {
        topology::read(&*self.0, gpus)
    }
}
