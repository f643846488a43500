//! The driver's library, which is found, checked and initialized here, and its errors.

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
};

/// The environment variable with the library's path, for cases in which the loader does not find
/// the library.
const LIBRARY_VARIABLE: &str = "GPUMON_LIBCUDA";
/// The file name of the library. Without the `.1`, it would be the stub in a toolkit.
const LIBRARY_NAME: &str = "libcuda.so.1";
/// A file that exists while the driver's kernel module is loaded, even in containers.
const DRIVER_VERSION_FILE: &str = "/proc/driver/nvidia/version";
/// The oldest CUDA version that gpumon's calls and kernels support.
const OLDEST_VERSION: Version = Version(11_000);

type GetVersion = unsafe extern "C" fn(*mut c_int) -> Code;

/// The driver as loaded in this process. It is never closed, because closing it can hang.
pub struct Driver {
    pub(super) api: Api,
    /// The functions for memory pools; `None` if the driver lacks them. Available since CUDA 11.2.
    pub(super) pools: Option<Pools>,
    /// The functions for virtual memory; `None` if the driver lacks them.
    pub(super) virtual_memory: Option<VirtualMemory>,
    /// The newest CUDA version that the driver supports.
    pub version: Version,
}

/// A CUDA version, as 1000 times the major number plus 10 times the minor number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub i32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 1000, self.0 % 1000 / 10)
    }
}

impl Driver {
    /// Loads and initializes the driver: the library that `GPUMON_LIBCUDA` names, or else the one
    /// that the loader finds.
    ///
    /// # Errors
    /// Returns an error if there is no driver, or if it cannot be used.
    pub fn load() -> Result<&'static Self, DriverUnavailable> {
        let named = env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty());
        Self::load_from(&named.unwrap_or_else(|| LIBRARY_NAME.into()))
    }

    fn load_from(path: &OsStr) -> Result<&'static Self, DriverUnavailable> {
        let shown = path.to_string_lossy().into_owned();
        let wrong = |missing| DriverUnavailable::WrongLibrary {
            path: shown.clone(),
            missing,
        };
        // SAFETY: the driver's library has no initializers that affect this process.
        let library = unsafe { Library::new(path) }.map_err(|error| {
            missing_library_error(
                &shown,
                loader_message(&error, &shown),
                Path::new(DRIVER_VERSION_FILE).exists(),
            )
        })?;
        let library: &'static Library = Box::leak(Box::new(library));
        // The version is checked before other functions are looked up. A very old driver also lacks
        // functions, but its version is the more useful error. SAFETY: the type is the one declared
        // in `cuda.h`.
        let version_of =
            unsafe { api::find_function::<GetVersion>(library, "cuDriverGetVersion\0") };
        let version_of = version_of.ok_or_else(|| wrong("cuDriverGetVersion"))?;
        let mut version = 0;
        // SAFETY: the variable outlives the call.
        match unsafe { version_of(&raw mut version) } {
            0 if Version(version) < OLDEST_VERSION => {
                return Err(DriverUnavailable::TooOld {
                    version: Version(version).to_string(),
                });
            }
            CudaError::STUB_LIBRARY => return Err(DriverUnavailable::Stub { path: shown }),
            // Any other problem is reported when the driver is initialized.
            _ => {}
        }
        let driver = Self {
            api: Api::load(library).map_err(wrong)?,
            pools: Pools::load(library).ok(),
            virtual_memory: VirtualMemory::load(library).ok(),
            version: Version(version),
        };
        // SAFETY: the function only takes flags, which must be 0.
        match unsafe { (driver.api.cuInit)(0) } {
            0 => Ok(Box::leak(Box::new(driver))),
            CudaError::STUB_LIBRARY => Err(DriverUnavailable::Stub { path: shown }),
            CudaError::NO_DEVICE => Err(DriverUnavailable::NoDevice),
            CudaError::SYSTEM_DRIVER_MISMATCH => Err(DriverUnavailable::Mismatch),
            code => {
                let CudaError { name, text, .. } = driver.make_error(code, "");
                Err(DriverUnavailable::NotStarted { name, text })
            }
        }
    }

    /// Returns all GPUs that this process may use, in CUDA's order.
    ///
    /// # Errors
    /// Returns an error if there is no GPU, or if the driver fails.
    pub fn list_devices(&'static self) -> Result<Vec<Device>, DriverUnavailable> {
        let failed = |error: CudaError| DriverUnavailable::NotStarted {
            name: error.name,
            text: error.text,
        };
        let mut count = 0;
        // SAFETY: the variable outlives the call.
        self.check_result(
            unsafe { (self.api.cuDeviceGetCount)(&raw mut count) },
            "count the GPUs",
        )
        .map_err(failed)?;
        if count <= 0 {
            return Err(DriverUnavailable::NoDevice);
        }
        (0..count)
            .map(|index| Device::open(self, index).map_err(failed))
            .collect()
    }

    pub(super) fn check_result(
        &self,
        code: Code,
        doing: impl Into<Cow<'static, str>>,
    ) -> Result<(), CudaError> {
        if code == 0 {
            Ok(())
        } else {
            Err(self.make_error(code, doing))
        }
    }

    /// Returns an error with the driver's name and description of the code.
    pub(super) fn make_error(&self, code: Code, doing: impl Into<Cow<'static, str>>) -> CudaError {
        let (mut name, mut text) = (ptr::null(), ptr::null());
        // SAFETY: the pointers outlive the calls. If the code is unknown, the calls leave them
        // unchanged.
        unsafe {
            (self.api.cuGetErrorName)(code, &raw mut name);
            (self.api.cuGetErrorString)(code, &raw mut text);
        }
        CudaError {
            doing: doing.into(),
            code,
            name: api::copy_text(name).unwrap_or_else(|| "an unknown error".to_owned()),
            text: api::copy_text(text)
                .unwrap_or_else(|| "the driver gives no description".to_owned()),
        }
    }
}

fn missing_library_error(path: &str, reason: String, driver_runs: bool) -> DriverUnavailable {
    let fix = if path != LIBRARY_NAME {
        "set GPUMON_LIBCUDA to the driver's libcuda.so.1, or unset it"
    } else if driver_runs {
        "the driver runs, but this library is missing: in a container, add `compute` to \
         NVIDIA_DRIVER_CAPABILITIES; otherwise install the driver's package with libcuda.so.1 \
         (libcuda1, libnvidia-compute), or set GPUMON_LIBCUDA to its path"
    } else {
        "install NVIDIA's driver, start the container with GPUs, or set GPUMON_LIBCUDA to the \
         path of the library"
    };
    DriverUnavailable::NoLibrary {
        path: path.to_owned(),
        reason,
        fix,
    }
}

/// Returns the loader's message, without the text that the crate adds and without the library's
/// path.
fn loader_message(error: &libloading::Error, path: &str) -> String {
    let said =
        std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    said.strip_prefix(&format!("{path}: "))
        .unwrap_or(&said)
        .to_owned()
}

/// A failed call of the driver: the attempted action, and CUDA's name and description of the error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CudaError {
    /// The action that was attempted, such as `allocate 8.00 GiB on GPU 0`.
    pub doing: Cow<'static, str>,
    /// The `CUresult` of the call.
    pub code: i32,
    pub name: String,
    /// The driver's description, such as `out of memory`, or the compiler's message if code does
    /// not compile.
    pub text: String,
}

impl CudaError {
    pub(super) const OUT_OF_MEMORY: i32 = 2;
    pub(super) const STUB_LIBRARY: i32 = 34;
    pub(super) const NO_DEVICE: i32 = 100;
    pub(super) const NOT_SUPPORTED: i32 = 801;
    pub(super) const SYSTEM_DRIVER_MISMATCH: i32 = 803;

    /// Returns the error for a function that an older driver does not have.
    pub(super) fn from_old_driver(doing: &'static str, needs: &str) -> Self {
        let text = format!(
            "this function needs a driver for CUDA {needs} or newer: update NVIDIA's driver"
        );
        Self {
            doing: doing.into(),
            code: Self::NOT_SUPPORTED,
            name: "CUDA_ERROR_NOT_SUPPORTED".to_owned(),
            text,
        }
    }

    pub fn is_out_of_memory(&self) -> bool {
        self.code == Self::OUT_OF_MEMORY
    }
}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            doing,
            name,
            text,
            code,
        } = self;
        write!(f, "cannot {doing}: {name}, code {code} ({text})")
    }
}

impl std::error::Error for CudaError {}

/// The reason why the driver cannot be used. Every message contains the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriverUnavailable {
    /// The loader did not find the file, or the file is not a library.
    #[error("cannot load the CUDA driver {path}: {reason}; {fix}")]
    NoLibrary {
        /// The path that the loader tried.
        path: String,
        /// The loader's error message.
        reason: String,
        fix: &'static str,
    },
    /// The library is the stub of a CUDA toolkit, which is only meant for linking.
    #[error(
        "{path} is a stub library of the CUDA toolkit, which is only for linking, and not the \
         driver: remove the folder `stubs` from LD_LIBRARY_PATH, or set GPUMON_LIBCUDA to the \
         driver's libcuda.so.1"
    )]
    Stub { path: String },
    /// The library lacks functions that the driver has.
    #[error(
        "{path} is not the CUDA driver: it has no function {missing}; set GPUMON_LIBCUDA to the \
         driver's libcuda.so.1, or unset it"
    )]
    WrongLibrary {
        path: String,
        /// The first function that the library lacks.
        missing: &'static str,
    },
    /// The driver is older than CUDA 11.
    #[error(
        "the driver supports CUDA {version}, but workloads need 11.0: update NVIDIA's driver to \
         450 or newer"
    )]
    TooOld {
        /// The CUDA version that the driver supports, such as `10.2`.
        version: String,
    },
    /// The driver reports no GPU.
    #[error(
        "the CUDA driver finds no GPU: run `gpumon doctor`, and check whether \
         CUDA_VISIBLE_DEVICES hides the GPUs or the container has none"
    )]
    NoDevice,
    /// The library and the kernel module have different versions.
    #[error(
        "the CUDA library and the kernel driver have different versions: reboot the machine, or \
         reload the driver's kernel modules"
    )]
    Mismatch,
    /// Any other error while initializing the driver.
    #[error(
        "the CUDA driver does not start: {name} ({text}); run `gpumon doctor` to find the cause"
    )]
    NotStarted {
        /// The name of the error, such as `CUDA_ERROR_SYSTEM_NOT_READY`.
        name: String,
        /// The driver's description of the error.
        text: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_library_error_has_path_and_remedy() {
        let error = Driver::load_from(OsStr::new("/nowhere/libcuda.so.1"))
            .err()
            .unwrap();
        let message = error.to_string();
        assert!(
            matches!(error, DriverUnavailable::NoLibrary { .. }),
            "{message}"
        );
        assert!(
            message.contains("/nowhere/libcuda.so.1") && message.contains("GPUMON_LIBCUDA"),
            "{message}"
        );
    }

    #[test]
    fn running_driver_is_not_reported_as_missing() {
        let fix = |driver_runs| {
            missing_library_error(LIBRARY_NAME, "no such file".to_owned(), driver_runs).to_string()
        };
        assert!(
            fix(false).contains("install NVIDIA's driver, start the container with GPUs"),
            "{}",
            fix(false)
        );
        assert!(
            fix(true).contains("NVIDIA_DRIVER_CAPABILITIES")
                && !fix(true).contains("install NVIDIA's driver,")
        );
    }

    #[test]
    fn other_library_is_not_accepted_as_driver() {
        let error = Driver::load_from(OsStr::new("libc.so.6")).err().unwrap();
        assert_eq!(
            error,
            DriverUnavailable::WrongLibrary {
                path: "libc.so.6".to_owned(),
                missing: "cuDriverGetVersion"
            }
        );
    }

    #[test]
    fn version_is_displayed_with_major_and_minor() {
        assert_eq!(
            [11_000, 12_040, 13_000].map(|code| Version(code).to_string()),
            ["11.0", "12.4", "13.0"]
        );
        assert!(Version(10_020) < OLDEST_VERSION);
    }
}
