//! NVIDIA's own products of matrices, where the user has them: a yardstick, which nothing else here needs.

use std::{
    env,
    ffi::{OsStr, c_int, c_void},
    fs,
    path::{Path, PathBuf},
    ptr,
};

use libloading::Library;

use super::{api::Handle, error::CudaError, memory::DeviceMemory, queue::Queue};
use crate::protocol::Shape;

/// Names the library where it is not found by itself.
const VARIABLE: &str = "GPUMON_LIBCUBLAS";
/// The newest first, each with the library that it needs, which has to be loaded before it.
const VERSIONS: [u32; 2] = [13, 12];
/// Where Python's packages have it, below `site-packages`.
const IN_PACKAGES: [&str; 3] = ["nvidia/cu13/lib", "nvidia/cublas/lib", "nvidia/cu12/lib"];
/// The last is what CUDA calls this architecture: `sbsa` is a server with an ARM processor.
const IN_TOOLKITS: [&str; 3] = if cfg!(target_arch = "aarch64") {
    ["lib64", "lib", "targets/sbsa-linux/lib"]
} else {
    ["lib64", "lib", "targets/x86_64-linux/lib"]
};

/// `CUBLAS_GEMM_DEFAULT`.
const DEFAULT_ALGORITHM: c_int = -1;
/// `CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION`. Without it, cuBLAS rounds parts of a sum to the result's type before
/// it adds them up, where it cuts the sum into parts: then one of 65 elements of an fp16 product of 4095 rows is beyond
/// what rounding once explains, and one of 5 of a bf16 product of 2500 rows.
const SUM_IN_SINGLE_PRECISION: c_int = 16;

type Status = c_int;
type Create = unsafe extern "C" fn(*mut Handle) -> Status;
type Destroy = unsafe extern "C" fn(Handle) -> Status;
type SetStream = unsafe extern "C" fn(Handle, Handle) -> Status;
type SetMathMode = unsafe extern "C" fn(Handle, c_int) -> Status;
type Gemm = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const c_void,
    u64,
    c_int,
    c_int,
    u64,
    c_int,
    c_int,
    *const c_void,
    u64,
    c_int,
    c_int,
    c_int,
    c_int,
) -> Status;

pub(crate) struct Cublas {
    gemm: Gemm,
    destroy: Destroy,
    set_stream: SetStream,
    handle: Handle,
}

/// The types of one product: each a `cudaDataType_t`, and a `cublasComputeType_t` for how it is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GemmType {
    Fp64,
    /// 32 bits, by the ordinary units.
    Fp32,
    /// 32 bits, of which tensor cores multiply 19.
    Tf32,
    /// Half precision, summed in single.
    Fp16,
    /// The first half of single precision, summed in single.
    Bf16,
    /// 8 bits, whole numbers, summed in 32.
    Int8,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CublasError {
    #[error(
        "there is no cuBLAS to compare with: install the package nvidia-cublas into the Python that you use, or name \
         libcublas.so in {VARIABLE}"
    )]
    NotFound,
    #[error(transparent)]
    Failed(#[from] CudaError),
}

impl GemmType {
    /// Of the inputs, of the result, and of the computation.
    fn codes(self) -> (c_int, c_int, c_int) {
        match self {
            Self::Fp64 => (1, 1, 70),
            Self::Fp32 => (0, 0, 68),
            Self::Tf32 => (0, 0, 77),
            Self::Fp16 => (2, 2, 68),
            Self::Bf16 => (14, 14, 68),
            Self::Int8 => (3, 10, 72),
        }
    }
}

impl Cublas {
    pub(crate) fn open() -> Result<Self, CublasError> {
        let library = load().ok_or(CublasError::NotFound)?;
        // SAFETY: each name stands beside the type that `cublas_v2.h` gives its function.
        let functions = unsafe {
            (|| {
                let create = *library.get::<Create>(b"cublasCreate_v2\0").ok()?;
                let destroy = *library.get::<Destroy>(b"cublasDestroy_v2\0").ok()?;
                let set_stream = *library.get::<SetStream>(b"cublasSetStream_v2\0").ok()?;
                let set_math_mode = *library.get::<SetMathMode>(b"cublasSetMathMode\0").ok()?;
                let gemm = *library.get::<Gemm>(b"cublasGemmEx\0").ok()?;
                Some((create, destroy, set_stream, set_math_mode, gemm))
            })()
        };
        let (create, destroy, set_stream, set_math_mode, gemm) = functions.ok_or(CublasError::NotFound)?;
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer outlives the call, and a context is current on its thread, which is this one.
        done(unsafe { create(&raw mut handle) }, "start")?;
        let cublas = Self { gemm, destroy, set_stream, handle };
        // SAFETY: the handle is alive.
        done(unsafe { set_math_mode(handle, SUM_IN_SINGLE_PRECISION) }, "sum in single precision")?;
        Ok(cublas)
    }

    /// Puts a product into the stream: what the own kernels compute. The rows of the result lie the first of the pitches
    /// apart, and those of both factors the second, or their steps where that is said.
    pub(crate) fn multiply<'scope>(
        &self,
        queue: &Queue<'_, 'scope>,
        types: GemmType,
        (out, a, b): (&'scope mut DeviceMemory, &'scope DeviceMemory, &'scope DeviceMemory),
        Shape { rows, columns, depth }: Shape,
        [pitch, lead]: [u64; 2],
        is_step_by_step: bool,
    ) -> Result<(), CudaError> {
        let (input, output, computation) = types.codes();
        let bytes_of = |code| match code {
            1 => 8,
            0 | 10 => 4,
            3 => 1,
            _ => 2,
        };
        assert!(out.bytes() >= rows * pitch * bytes_of(output) && pitch >= columns, "the result is there");
        for (memory, lines) in [(a, rows), (b, columns)] {
            let (across, down) = if is_step_by_step { (lines, depth) } else { (depth, lines) };
            assert!(memory.bytes() >= down * lead * bytes_of(input) && lead >= across, "the inputs are there");
        }
        let (one, zero) = match types {
            GemmType::Fp64 => (1.0_f64.to_le_bytes(), 0.0_f64.to_le_bytes()),
            GemmType::Int8 => (1_u64.to_le_bytes(), 0_u64.to_le_bytes()),
            _ => (u64::from(1.0_f32.to_bits()).to_le_bytes(), 0_u64.to_le_bytes()),
        };
        // It counts by columns: what lies there row by row is the other way round for it, and so is the result.
        let (of_b, of_a) = if is_step_by_step { (0, 1) } else { (1, 0) };
        let [rows, columns, depth, pitch, lead] = [rows, columns, depth, pitch, lead].map(|number| number as c_int);
        // SAFETY: both handles are alive, and the stream stays so for as long as anything is in it.
        done(unsafe { (self.set_stream)(self.handle, queue.stream.handle) }, "take a stream")?;
        // SAFETY: the matrices are as large as was asserted; the numbers are of the computation's type and outlive the
        // call. The memory is borrowed until the stream has waited.
        let status = unsafe {
            (self.gemm)(
                self.handle,
                of_b,
                of_a,
                columns,
                rows,
                depth,
                one.as_ptr().cast(),
                b.address,
                input,
                lead,
                a.address,
                input,
                lead,
                zero.as_ptr().cast(),
                out.address,
                output,
                pitch,
                computation,
                DEFAULT_ALGORITHM,
            )
        };
        done(status, "multiply")
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        // SAFETY: the handle is its own, and given back once.
        unsafe { (self.destroy)(self.handle) };
    }
}

fn done(status: Status, doing: &str) -> Result<(), CudaError> {
    let failed = || CudaError {
        doing: format!("{doing} in cuBLAS").into(),
        code: status,
        name: "a cublasStatus_t".to_owned(),
        text: "cuBLAS has no words for it".to_owned(),
    };
    if status == 0 { Ok(()) } else { Err(failed()) }
}

/// The library, which is never closed: CUDA's libraries do not come back from that.
fn load() -> Option<&'static Library> {
    if let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return open(&path).map(|library| &*Box::leak(Box::new(library)));
    }
    VERSIONS.into_iter().find_map(|version| {
        let names = [format!("libcublasLt.so.{version}"), format!("libcublas.so.{version}")];
        let in_folder = |folder: &Path| {
            let [needed, wanted] = names.each_ref().map(|name| folder.join(name));
            wanted.is_file().then(|| (open(needed.as_os_str()), open(wanted.as_os_str())))
        };
        let found = folders().iter().find_map(|folder| in_folder(folder));
        let found = found.unwrap_or_else(|| (open(OsStr::new(&names[0])), open(OsStr::new(&names[1]))));
        let (needed, wanted) = found;
        let forever = |library| &*Box::leak(Box::new(library));
        needed.map(forever);
        wanted.map(forever)
    })
}

fn open(path: &OsStr) -> Option<Library> {
    // SAFETY: it is NVIDIA's library, whose initializers disturb nothing here.
    unsafe { Library::new(path) }.ok()
}

/// Where it may be: in the packages of the Python in use, in Conda's environment, in a toolkit.
fn folders() -> Vec<PathBuf> {
    let root = |variable| env::var_os(variable).map(PathBuf::from);
    let beside_python = env::var_os("PATH").into_iter().flat_map(|path| {
        let with_python = env::split_paths(&path).filter(|folder| folder.join("python3").is_file());
        with_python.filter_map(|folder| folder.parent().map(Path::to_owned)).collect::<Vec<_>>()
    });
    let prefixes: Vec<_> =
        [root("VIRTUAL_ENV"), root("CONDA_PREFIX")].into_iter().flatten().chain(beside_python).collect();
    let libraries = prefixes.iter().flat_map(|prefix| ["lib", "local/lib"].map(|lib| prefix.join(lib)));
    let pythons = libraries.flat_map(|lib| fs::read_dir(lib).into_iter().flatten().flatten()).map(|entry| entry.path());
    let packages = pythons.flat_map(|python| ["site-packages", "dist-packages"].map(|packages| python.join(packages)));
    let in_packages = packages.flat_map(|packages| IN_PACKAGES.map(|place| packages.join(place)));
    let toolkits = [root("CONDA_PREFIX"), root("CUDA_HOME"), Some("/usr/local/cuda".into())].into_iter().flatten();
    let in_toolkits = toolkits.flat_map(|toolkit| IN_TOOLKITS.map(|place| toolkit.join(place)));
    in_packages.chain(in_toolkits).filter(|folder| folder.is_dir()).collect()
}
