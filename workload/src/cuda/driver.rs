//! The driver's library: finding, checking and initializing it.

use std::{
    borrow::Cow,
    env,
    ffi::{OsStr, c_int},
    fmt,
    path::Path,
    ptr,
};

use libloading::Library;

use super::{
    api::{self, Api, Code, Pools, VirtualMemory},
    device::Device,
    error::CudaError,
    error::Unavailable,
};

/// The environment variable that names the library if the loader does not find it.
const VARIABLE: &str = "GPUMON_LIBCUDA";
/// The name of the library. Without the 1, it is the name of a toolkit's stub.
const NAME: &str = "libcuda.so.1";
/// A file that exists while the driver's module is in the kernel, also in containers.
const DRIVER_RUNS: &str = "/proc/driver/nvidia/version";
/// The oldest version of CUDA that gpumon's calls and kernels support.
const OLDEST: Version = Version(11_000);

type VersionOf = unsafe extern "C" fn(*mut c_int) -> Code;

/// The driver of this process. It is never closed, because closing it can hang.
pub struct Driver {
    pub(super) api: Api,
    /// The functions for memory pools; available since CUDA 11.2.
    pub(super) pools: Option<Pools>,
    /// The functions for virtual memory; `None` if the driver lacks them.
    pub(super) virtual_memory: Option<VirtualMemory>,
    /// The newest version of CUDA that the driver supports.
    pub version: Version,
}

/// A version of CUDA: 1000 times the major number plus 10 times the minor one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub i32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 1000, self.0 % 1000 / 10)
    }
}

impl Driver {
    /// Loads and initializes the driver that `GPUMON_LIBCUDA` names, or that the loader finds.
    ///
    /// # Errors
    /// Returns an error if there is no driver or if it cannot be used.
    pub fn load() -> Result<&'static Self, Unavailable> {
        let named = env::var_os(VARIABLE).filter(|path| !path.is_empty());
        Self::load_from(&named.unwrap_or_else(|| NAME.into()))
    }

    fn load_from(path: &OsStr) -> Result<&'static Self, Unavailable> {
        let shown = path.to_string_lossy().into_owned();
        let wrong = |missing| Unavailable::WrongLibrary {
            path: shown.clone(),
            missing,
        };
        // SAFETY: the driver's library has no initializers that affect this process.
        let library = unsafe { Library::new(path) }.map_err(|error| {
            no_library(
                &shown,
                reason(&error, &shown),
                Path::new(DRIVER_RUNS).exists(),
            )
        })?;
        let library: &'static Library = Box::leak(Box::new(library));
        // A very old driver lacks functions too, and its version is the more useful error. SAFETY:
        // the type is the one in `cuda.h`.
        let version_of = unsafe { api::find::<VersionOf>(library, "cuDriverGetVersion\0") };
        let version_of = version_of.ok_or_else(|| wrong("cuDriverGetVersion"))?;
        let mut version = 0;
        // SAFETY: the number outlives the call.
        match unsafe { version_of(&raw mut version) } {
            0 if Version(version) < OLDEST => {
                return Err(Unavailable::TooOld {
                    version: Version(version).to_string(),
                });
            }
            CudaError::STUB_LIBRARY => return Err(Unavailable::Stub { path: shown }),
            // Initializing the driver reports any other problem.
            _ => {}
        }
        let driver = Self {
            api: Api::load(library).map_err(wrong)?,
            pools: Pools::load(library).ok(),
            virtual_memory: VirtualMemory::load(library).ok(),
            version: Version(version),
        };
        // SAFETY: the function only takes a number, which must be 0.
        match unsafe { (driver.api.cuInit)(0) } {
            0 => Ok(Box::leak(Box::new(driver))),
            CudaError::STUB_LIBRARY => Err(Unavailable::Stub { path: shown }),
            CudaError::NO_DEVICE => Err(Unavailable::NoDevice),
            CudaError::SYSTEM_DRIVER_MISMATCH => Err(Unavailable::Mismatch),
            code => {
                let CudaError { name, text, .. } = driver.error(code, "");
                Err(Unavailable::NotStarted { name, text })
            }
        }
    }

    /// Returns all GPUs that this process may use, in CUDA's order.
    ///
    /// # Errors
    /// Returns an error if there is no GPU or if the driver fails.
    pub fn devices(&'static self) -> Result<Vec<Device>, Unavailable> {
        let failed = |error: CudaError| Unavailable::NotStarted {
            name: error.name,
            text: error.text,
        };
        let mut count = 0;
        // SAFETY: the number outlives the call.
        self.done(
            unsafe { (self.api.cuDeviceGetCount)(&raw mut count) },
            "count the GPUs",
        )
        .map_err(failed)?;
        if count <= 0 {
            return Err(Unavailable::NoDevice);
        }
        (0..count)
            .map(|index| Device::open(self, index).map_err(failed))
            .collect()
    }

    pub(super) fn done(
        &self,
        code: Code,
        doing: impl Into<Cow<'static, str>>,
    ) -> Result<(), CudaError> {
        if code == 0 {
            Ok(())
        } else {
            Err(self.error(code, doing))
        }
    }

    /// Returns an error with the driver's name and description of the code.
    pub(super) fn error(&self, code: Code, doing: impl Into<Cow<'static, str>>) -> CudaError {
        let (mut name, mut text) = (ptr::null(), ptr::null());
        // SAFETY: the pointers outlive the calls, which leave them unchanged if the code is
        // unknown.
        unsafe {
            (self.api.cuGetErrorName)(code, &raw mut name);
            (self.api.cuGetErrorString)(code, &raw mut text);
        }
        CudaError {
            doing: doing.into(),
            code,
            name: api::text(name).unwrap_or_else(|| "an unknown error".to_owned()),
            text: api::text(text).unwrap_or_else(|| "the driver has no words for it".to_owned()),
        }
    }
}

fn no_library(path: &str, reason: String, driver_runs: bool) -> Unavailable {
    let fix = if path != NAME {
        "name the driver's libcuda.so.1, or unset GPUMON_LIBCUDA"
    } else if driver_runs {
        "the driver runs, but this library of it is not here: in a container, add `compute` to \
         NVIDIA_DRIVER_CAPABILITIES; elsewhere install the driver's package with libcuda.so.1 (libcuda1, \
         libnvidia-compute), or name it in GPUMON_LIBCUDA"
    } else {
        "install NVIDIA's driver, give the container its GPUs, or name the library in GPUMON_LIBCUDA"
    };
    Unavailable::NoLibrary {
        path: path.to_owned(),
        reason,
        fix,
    }
}

/// Returns the loader's message, without the text that the crate adds and without the name of the
/// library.
fn reason(error: &libloading::Error, path: &str) -> String {
    let said =
        std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    said.strip_prefix(&format!("{path}: "))
        .unwrap_or(&said)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_told_with_its_name_and_its_cure() {
        let error = Driver::load_from(OsStr::new("/nowhere/libcuda.so.1"))
            .err()
            .unwrap();
        let message = error.to_string();
        assert!(matches!(error, Unavailable::NoLibrary { .. }), "{message}");
        assert!(
            message.contains("/nowhere/libcuda.so.1") && message.contains("GPUMON_LIBCUDA"),
            "{message}"
        );
    }

    #[test]
    fn a_driver_that_runs_is_not_to_be_installed() {
        let fix =
            |driver_runs| no_library(NAME, "no such file".to_owned(), driver_runs).to_string();
        assert!(
            fix(false).contains("install NVIDIA's driver, give"),
            "{}",
            fix(false)
        );
        assert!(
            fix(true).contains("NVIDIA_DRIVER_CAPABILITIES")
                && !fix(true).contains("install NVIDIA's driver,")
        );
    }

    #[test]
    fn a_library_of_something_else_is_no_driver() {
        let error = Driver::load_from(OsStr::new("libc.so.6")).err().unwrap();
        assert_eq!(
            error,
            Unavailable::WrongLibrary {
                path: "libc.so.6".to_owned(),
                missing: "cuDriverGetVersion"
            }
        );
    }

    #[test]
    fn a_version_is_read_as_it_is_said() {
        assert_eq!(
            [11_000, 12_040, 13_000].map(|code| Version(code).to_string()),
            ["11.0", "12.4", "13.0"]
        );
        assert!(Version(10_020) < OLDEST);
    }
}
