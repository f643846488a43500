//! NVIDIA's own matrix products, computed by the library cublasLt if the user has installed it.
//! They only serve for comparison, and nothing else needs the library.

use std::{
    env,
    ffi::{CStr, OsStr, c_char, c_int, c_void},
    fs, mem,
    path::{Path, PathBuf},
    ptr,
};

use libloading::Library;

use super::{
    api::functions, device::Context, driver::CudaError, memory::DeviceMemory, queue::Queue,
};
use crate::protocol::{Dtype, Shape};

/// The environment variable with the library's path, for cases in which the library is not found
/// automatically. The path can also be that of libcublas.so, which loads the library.
const LIBRARY_VARIABLE: &str = "GPUMON_LIBCUBLAS";
/// The names of the library, newest first.
const LIBRARY_NAMES: [&str; 2] = ["libcublasLt.so.13", "libcublasLt.so.12"];
/// The directories of Python packages that contain the library, relative to `site-packages`.
const PACKAGE_FOLDERS: [&str; 3] = ["nvidia/cu13/lib", "nvidia/cublas/lib", "nvidia/cu12/lib"];
/// The directories of CUDA toolkits that contain the library. The last one contains CUDA's name of
/// this architecture, where `sbsa` means an ARM server.
const TOOLKIT_FOLDERS: [&str; 3] = if cfg!(target_arch = "aarch64") {
    ["lib64", "lib", "targets/sbsa-linux/lib"]
} else {
    ["lib64", "lib", "targets/x86_64-linux/lib"]
};

/// The size of the workspace in bytes. NVIDIA recommends this size for Hopper and uses it by
/// default.
const WORKSPACE_BYTES: u64 = 32 << 20;
/// The value of `CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE`, the only scheme that is allowed. Other
/// schemes round the parts of a divided sum to the result's type before adding them, so some errors
/// are larger than a single rounding can explain. This affects one of 65 elements of an fp16
/// product with 4095 rows, and one of 5 elements of a bf16 product with 2500 rows.
const SUM_AS_COMPUTED: u32 = 2;

// The names of the following constants are those of `cublasLt.h`, without the prefixes.
const DESC_TRANSA: c_int = 3;
const DESC_TRANSB: c_int = 4;
const DESC_FAST_ACCUM: c_int = 25;
const PREF_MAX_WORKSPACE_BYTES: c_int = 1;
const PREF_REDUCTION_SCHEME_MASK: c_int = 3;
const NOT_SUPPORTED: Status = 15;

type Status = c_int;
/// An object that the library creates and destroys.
type Opaque = *mut c_void;
/// A function that sets an attribute of an object. Its last argument is the size of the value in
/// bytes.
type SetAttribute = unsafe extern "C" fn(Opaque, c_int, *const c_void, usize) -> Status;
type Destroy = unsafe extern "C" fn(Opaque) -> Status;

/// An algorithm that the library recommends (`cublasLtMatmulHeuristicResult_t`).
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Algorithm {
    data: [u64; 8],
    workspace_bytes: usize,
    state: Status,
    waves: f32,
    reserved: [c_int; 4],
}

functions! {
/// The functions of cublasLt.
#[derive(Clone, Copy)]
Functions {
    cublasLtCreate(*mut Opaque);
    cublasLtDestroy(Opaque);
    cublasLtGetStatusName(Status) -> *const c_char;
    cublasLtGetStatusString(Status) -> *const c_char;
    cublasLtMatmul(
        Opaque, Opaque, *const c_void, u64, Opaque, u64, Opaque, *const c_void, u64, Opaque, u64, Opaque,
        *const [u64; 8], u64, usize, Opaque
    );
    cublasLtMatmulAlgoGetHeuristic(
        Opaque, Opaque, Opaque, Opaque, Opaque, Opaque, Opaque, c_int, *mut Algorithm, *mut c_int
    );
    cublasLtMatmulDescCreate(*mut Opaque, c_int, c_int);
    cublasLtMatmulDescDestroy(Opaque);
    cublasLtMatmulDescSetAttribute(Opaque, c_int, *const c_void, usize);
    cublasLtMatmulPreferenceCreate(*mut Opaque);
    cublasLtMatmulPreferenceDestroy(Opaque);
    cublasLtMatmulPreferenceSetAttribute(Opaque, c_int, *const c_void, usize);
    cublasLtMatrixLayoutCreate(*mut Opaque, c_int, u64, u64, i64);
    cublasLtMatrixLayoutDestroy(Opaque);
}
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CublasError {
    #[error(
        "cuBLAS was not found: install the package nvidia-cublas into the Python environment that \
         you use, or specify libcublasLt.so in {LIBRARY_VARIABLE}"
    )]
    NotFound,
    #[error(
        "cuBLAS cannot multiply {}x{}x{} in this type: leave out --engine, or use sides that are \
         multiples of 16",
        .0.rows, .0.columns, .0.depth
    )]
    NoSuchProduct(Shape),
    #[error(transparent)]
    Failed(#[from] CudaError),
}

/// Returns four codes for the types of a product: the `cudaDataType_t` of the inputs, the
/// `cudaDataType_t` of the result, the `cublasComputeType_t`, and the `cudaDataType_t` of the
/// scaling factor. Narrow types are summed in 32 bits, and e4m3 in the precision of the tensor
/// cores.
fn type_codes(dtype: Dtype) -> [c_int; 4] {
    match dtype {
        Dtype::Fp64 => [1, 1, 70, 1],
        Dtype::Fp32 => [0, 0, 68, 0],
        Dtype::Tf32 => [0, 0, 77, 0],
        Dtype::Fp16 => [2, 2, 68, 0],
        Dtype::Bf16 | Dtype::Bytes => [14, 14, 68, 0],
        Dtype::Fp8 => [28, 14, 68, 0],
        Dtype::Int8 => [3, 10, 72, 10],
    }
}

/// Returns the bits of the number 1 in the type of the factor.
fn factor_one(dtype: Dtype) -> u64 {
    match dtype {
        Dtype::Fp64 => 1.0_f64.to_bits(),
        Dtype::Int8 => 1,
        _ => 1.0_f32.to_bits().into(),
    }
}

/// A product by cublasLt, with the algorithm that the library considers the fastest.
pub(crate) struct Cublas {
    library: Handles,
    dtype: Dtype,
    algorithm: Algorithm,
    workspace: DeviceMemory,
    /// The minimum size in bytes of the result and of both factors.
    needed_bytes: [u64; 3],
}

/// The objects that the library created for a product.
struct Handles {
    functions: Functions,
    /// The objects in the order of their creation, each with the function that destroys it.
    made: Vec<(Opaque, Destroy)>,
}

/// The index of the library's own object in `Handles::made`.
const LIBRARY_INDEX: usize = 0;
const PRODUCT_INDEX: usize = 1;
const LAYOUT_INDICES: [usize; 3] = [2, 3, 4];
const PREFERENCE_INDEX: usize = 5;

impl Cublas {
    /// Prepares a product with the same result as gpumon's own kernels. `pitch` is the distance
    /// between the result's rows. `lead` is the distance between the factors' rows, or between
    /// their steps if `is_step_by_step` is set.
    pub(crate) fn new(
        context: &std::rc::Rc<Context>,
        dtype: Dtype,
        shape: Shape,
        [pitch, lead]: [u64; 2],
        is_step_by_step: bool,
    ) -> Result<Self, CublasError> {
        let library = load().ok_or(CublasError::NotFound)?;
        let functions = Functions::load(library).map_err(|_| CublasError::NotFound)?;
        let [input, output, computation, factor] = type_codes(dtype);
        let Shape {
            rows,
            columns,
            depth,
        } = shape;
        let mut library = Handles {
            functions,
            made: Vec::new(),
        };
        // SAFETY of all calls here: the pointer outlives the call, and a context is current on this
        // thread.
        library.create("start", functions.cublasLtDestroy, |made| unsafe {
            (functions.cublasLtCreate)(made)
        })?;
        library.create(
            "describe a product",
            functions.cublasLtMatmulDescDestroy,
            |made| unsafe { (functions.cublasLtMatmulDescCreate)(made, computation, factor) },
        )?;
        // The library expects matrices in column-major order. A matrix in row-major order is
        // therefore passed as its transpose, and so is the result.
        let across = |lines| {
            if is_step_by_step {
                (lines, depth)
            } else {
                (depth, lines)
            }
        };
        let of_out = (output, (columns, rows), pitch);
        for (code, (rows, columns), lead) in [
            (input, across(columns), lead),
            (input, across(rows), lead),
            of_out,
        ] {
            library.create(
                "describe a matrix",
                functions.cublasLtMatrixLayoutDestroy,
                |made| unsafe {
                    (functions.cublasLtMatrixLayoutCreate)(
                        made,
                        code,
                        rows,
                        columns,
                        lead.cast_signed(),
                    )
                },
            )?;
        }
        library.create(
            "create a preference for an algorithm",
            functions.cublasLtMatmulPreferenceDestroy,
            |made| unsafe { (functions.cublasLtMatmulPreferenceCreate)(made) },
        )?;
        let (of_b, of_a): (i32, i32) = if is_step_by_step { (0, 1) } else { (1, 0) };
        let of_product = functions.cublasLtMatmulDescSetAttribute;
        let of_preference = functions.cublasLtMatmulPreferenceSetAttribute;
        library.set_attribute(of_product, PRODUCT_INDEX, DESC_TRANSA, &of_b.to_ne_bytes())?;
        library.set_attribute(of_product, PRODUCT_INDEX, DESC_TRANSB, &of_a.to_ne_bytes())?;
        if dtype == Dtype::Fp8 {
            library.set_attribute(of_product, PRODUCT_INDEX, DESC_FAST_ACCUM, &[1])?;
        }
        library.set_attribute(
            of_preference,
            PREFERENCE_INDEX,
            PREF_MAX_WORKSPACE_BYTES,
            &WORKSPACE_BYTES.to_ne_bytes(),
        )?;
        library.set_attribute(
            of_preference,
            PREFERENCE_INDEX,
            PREF_REDUCTION_SCHEME_MASK,
            &SUM_AS_COMPUTED.to_ne_bytes(),
        )?;
        let algorithm = library
            .find_fastest()?
            .ok_or(CublasError::NoSuchProduct(shape))?;
        let of_factor = |lines| if is_step_by_step { depth * lead } else { lines * lead } * element_bytes(input);
        assert!(
            pitch >= columns
                && lead
                    >= if is_step_by_step {
                        rows.max(columns)
                    } else {
                        depth
                    },
            "lines do not overlap"
        );
        Ok(Self {
            library,
            dtype,
            algorithm,
            workspace: context.allocate(WORKSPACE_BYTES)?,
            needed_bytes: [
                rows * pitch * element_bytes(output),
                of_factor(rows),
                of_factor(columns),
            ],
        })
    }

    pub(crate) fn multiply<'scope>(
        &'scope self,
        queue: &Queue<'_, 'scope>,
        (out, a, b): (
            &'scope mut DeviceMemory,
            &'scope DeviceMemory,
            &'scope DeviceMemory,
        ),
    ) -> Result<(), CudaError> {
        let there = [out.bytes(), a.bytes(), b.bytes()];
        assert!(
            there
                .iter()
                .zip(self.needed_bytes)
                .all(|(there, needed)| *there >= needed),
            "the memory has room for the matrices"
        );
        let Handles { functions, made } = &self.library;
        let [library, product] = [LIBRARY_INDEX, PRODUCT_INDEX].map(|place| made[place].0);
        let [of_b, of_a, of_out] = LAYOUT_INDICES.map(|place| made[place].0);
        let (one, zero) = (factor_one(self.dtype), 0_u64);
        // SAFETY: the library created all objects. They and the stream are still alive. The
        // matrices have at least the asserted sizes. The factors have the computation's type and
        // outlive the call. The memory stays borrowed until the stream has finished.
        let status = unsafe {
            (functions.cublasLtMatmul)(
                library,
                product,
                ptr::from_ref(&one).cast(),
                b.address,
                of_b,
                a.address,
                of_a,
                ptr::from_ref(&zero).cast(),
                out.address,
                of_out,
                out.address,
                of_out,
                &raw const self.algorithm.data,
                self.workspace.address,
                WORKSPACE_BYTES as usize,
                queue.stream.handle,
            )
        };
        functions.check_status(status, "multiply")
    }
}

impl Handles {
    fn create(
        &mut self,
        doing: &str,
        destroy: Destroy,
        make: impl FnOnce(*mut Opaque) -> Status,
    ) -> Result<(), CudaError> {
        let mut new = ptr::null_mut();
        self.functions.check_status(make(&raw mut new), doing)?;
        self.made.push((new, destroy));
        Ok(())
    }

    fn set_attribute(
        &self,
        set: SetAttribute,
        place: usize,
        attribute: c_int,
        value: &[u8],
    ) -> Result<(), CudaError> {
        // SAFETY: the object is alive. The value outlives the call, and its size is that of the
        // attribute.
        let status = unsafe {
            set(
                self.made[place].0,
                attribute,
                value.as_ptr().cast(),
                value.len(),
            )
        };
        self.functions.check_status(status, "configure the product")
    }

    /// Returns the algorithm that the library considers the fastest, or `None` if the library does
    /// not support such a product.
    fn find_fastest(&self) -> Result<Option<Algorithm>, CudaError> {
        let (mut found, mut count) = (Algorithm::default(), 0);
        let [of_b, of_a, of_out] = LAYOUT_INDICES.map(|place| self.made[place].0);
        let [library, product, preference] =
            [LIBRARY_INDEX, PRODUCT_INDEX, PREFERENCE_INDEX].map(|place| self.made[place].0);
        // SAFETY: the library created all objects, which are still alive. There is space for the
        // single algorithm that is requested.
        let status = unsafe {
            (self.functions.cublasLtMatmulAlgoGetHeuristic)(
                library,
                product,
                of_b,
                of_a,
                of_out,
                of_out,
                preference,
                1,
                &raw mut found,
                &raw mut count,
            )
        };
        if status == NOT_SUPPORTED || status == 0 && (count == 0 || found.state != 0) {
            return Ok(None);
        }
        self.functions
            .check_status(status, "choose an algorithm")
            .map(|()| Some(found))
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        for (made, destroy) in mem::take(&mut self.made).into_iter().rev() {
            // SAFETY: each object is destroyed once, by its own function. The library's own object
            // is destroyed last.
            unsafe { destroy(made) };
        }
    }
}

impl Functions {
    fn check_status(&self, code: Status, doing: &str) -> Result<(), CudaError> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the library returns a constant string for every number.
        let text = |text: *const c_char| {
            unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned()
        };
        // SAFETY: both functions take only a number.
        let (name, words) = unsafe {
            (
                (self.cublasLtGetStatusName)(code),
                (self.cublasLtGetStatusString)(code),
            )
        };
        Err(CudaError {
            doing: format!("{doing} in cuBLAS").into(),
            code,
            name: text(name),
            text: text(words),
        })
    }
}

/// Returns the size in bytes of an element with this `cudaDataType_t`.
fn element_bytes(code: c_int) -> u64 {
    match code {
        1 => 8,
        0 | 10 => 4,
        3 | 28 => 1,
        _ => 2,
    }
}

/// Loads the library. It is never closed, because CUDA's libraries can become unusable after they
/// are closed.
fn load() -> Option<&'static Library> {
    if let Some(path) = env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty()) {
        return open_library(&path).map(|library| &*Box::leak(Box::new(library)));
    }
    LIBRARY_NAMES.into_iter().find_map(|name| {
        let in_folders = list_library_folders()
            .into_iter()
            .map(|folder| folder.join(name))
            .find(|path| path.is_file());
        let library = in_folders
            .and_then(|path| open_library(path.as_os_str()))
            .or_else(|| open_library(OsStr::new(name)));
        library.map(|library| &*Box::leak(Box::new(library)))
    })
}

fn open_library(path: &OsStr) -> Option<Library> {
    // SAFETY: this is NVIDIA's library, whose initializers do not affect this process.
    unsafe { Library::new(path) }.ok()
}

/// Returns the directories that may contain the library: those of the Python packages in use, of
/// Conda's environment, and of CUDA toolkits.
fn list_library_folders() -> Vec<PathBuf> {
    let root = |variable| env::var_os(variable).map(PathBuf::from);
    let python_folders = env::var_os("PATH").into_iter().flat_map(|path| {
        let with_python = env::split_paths(&path).filter(|folder| folder.join("python3").is_file());
        with_python
            .filter_map(|folder| folder.parent().map(Path::to_owned))
            .collect::<Vec<_>>()
    });
    let prefixes: Vec<_> = [root("VIRTUAL_ENV"), root("CONDA_PREFIX")]
        .into_iter()
        .flatten()
        .chain(python_folders)
        .collect();
    let libraries = prefixes
        .iter()
        .flat_map(|prefix| ["lib", "local/lib"].map(|lib| prefix.join(lib)));
    let pythons = libraries
        .flat_map(|lib| fs::read_dir(lib).into_iter().flatten().flatten())
        .map(|entry| entry.path());
    let packages = pythons.flat_map(|python| {
        ["site-packages", "dist-packages"].map(|packages| python.join(packages))
    });
    let in_packages =
        packages.flat_map(|packages| PACKAGE_FOLDERS.map(|place| packages.join(place)));
    let toolkits = [
        root("CONDA_PREFIX"),
        root("CUDA_HOME"),
        Some("/usr/local/cuda".into()),
    ]
    .into_iter()
    .flatten();
    let in_toolkits = toolkits.flat_map(|toolkit| TOOLKIT_FOLDERS.map(|place| toolkit.join(place)));
    in_packages
        .chain(in_toolkits)
        .filter(|folder| folder.is_dir())
        .collect()
}
