//! Modules and kernels, which are code on a device, and the arguments of kernels.

use std::{
    borrow::Cow,
    ffi::{CString, c_void},
    io::Read,
    marker::PhantomData,
    ptr,
    rc::Rc,
};

use flate2::read::GzDecoder;

use super::{
    api::{Handle, TensorMapBytes},
    device::{Attribute, Context},
    driver::CudaError,
    memory::{DeviceMemory, PinnedMemory},
    queue::PROGRAMMATIC_SINCE,
};
use crate::protocol::{Dtype, KernelUse};

/// The `CUjit_option` that passes the buffer for the compiler's errors. `JIT_ERROR_LOG_BYTES` is
/// the option for its size.
const JIT_ERROR_LOG: i32 = 5;
const JIT_ERROR_LOG_BYTES: i32 = 6;
/// The size of the buffer for the compiler's errors, in bytes.
const LOG_BYTES: usize = 8192;

/// Values of `CUfunction_attribute`. The first is the shared memory that a block's code declares.
/// The others are a thread's memory in addition to its registers, a thread's registers, and the
/// architecture of the machine code, such as 90 for `sm_90`.
const SHARED_SIZE_BYTES: i32 = 1;
const LOCAL_SIZE_BYTES: i32 = 3;
const NUM_REGS: i32 = 4;
const BINARY_VERSION: i32 = 6;
/// The value of `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
const MAX_DYNAMIC_SHARED_BYTES: i32 = 8;

/// The number of architectures for which `tools/kernels.py` lists register counts.
const LISTED_ARCHITECTURES: usize = 5;

pub(crate) struct Module {
    context: Rc<Context>,
    handle: Handle,
    /// A text from which the parameters of each kernel are read: the PTX itself or, for machine
    /// code, the listing.
    listing: Cow<'static, str>,
}

/// Code for a device. `build.rs` compresses it to a seventh of its size.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Code {
    /// PTX code, which the driver compiles.
    Ptx(&'static [u8]),
    /// Machine code for one architecture, and the listing with the parameters of each kernel.
    Cubin(&'static [u8], &'static str),
}

pub(crate) struct Kernel {
    pub(super) handle: Handle,
    pub(super) name: String,
    /// The dynamic shared memory of a block in bytes, which is added to the shared memory declared
    /// in the code.
    pub(super) shared_bytes: u32,
    /// Whether the kernel uses programmatic dependent launch.
    pub(super) is_programmatic: bool,
    /// The types of the kernel's parameters, as named in PTX.
    parameters: Vec<String>,
    /// The module of the kernel, which keeps the code loaded.
    module: Rc<Module>,
}

pub(crate) enum Argument<'scope> {
    In(&'scope DeviceMemory),
    Out(&'scope DeviceMemory),
    /// A matrix that the copy engine reads for the kernel, tile by tile.
    Tiles(&'scope TensorMap<'scope>),
    /// Device memory, starting at this offset in bytes.
    At(&'scope DeviceMemory, u64),
    /// Host memory that the kernel writes to. Pinned memory has the same address on the device.
    Pinned(&'scope mut PinnedMemory),
    U64(u64),
    F32(f32),
    F64(f64),
}

impl Module {
    pub(crate) fn load(context: &Rc<Context>, code: Code) -> Result<Rc<Self>, CudaError> {
        let driver = context.driver();
        let image = code.decompress();
        let mut log = vec![0_u8; LOG_BYTES];
        let mut options = [JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES];
        // The second option's value is a number. The driver expects this number in place of a
        // pointer.
        let mut values = [
            log.as_mut_ptr().cast::<c_void>(),
            ptr::without_provenance_mut(LOG_BYTES),
        ];
        let mut handle = ptr::null_mut();
        // SAFETY: PTX ends with a NUL character, and machine code contains its own length. There
        // are two options with two values, and the log has the stated size.
        let result = unsafe {
            (driver.api.cuModuleLoadDataEx)(
                &raw mut handle,
                image.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        let done = driver.check_result(
            result,
            format!("compile the kernels for GPU {}", context.device.index),
        );
        done.map_err(|error| add_compiler_log(error, &log))?;
        let listing = match code {
            Code::Ptx(_) => Cow::Owned(String::from_utf8(image).expect("PTX is ASCII")),
            Code::Cubin(_, listing) => Cow::Borrowed(listing),
        };
        Ok(Rc::new(Self {
            context: Rc::clone(context),
            handle,
            listing,
        }))
    }

    pub(crate) fn find_kernel(self: &Rc<Self>, name: &str) -> Result<Kernel, CudaError> {
        let driver = self.context.driver();
        let symbol = CString::new(name).unwrap_or_default();
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer outlives the call, and the name ends with a NUL.
        let code = unsafe {
            (driver.api.cuModuleGetFunction)(&raw mut handle, self.handle, symbol.as_ptr())
        };
        driver.check_result(code, format!("find the kernel {name}"))?;
        let parameters = match &self.listing {
            Cow::Owned(ptx) => parse_parameter_types(ptx, name),
            Cow::Borrowed(listing) => listed_parameter_types(listing, name),
        };
        Ok(Kernel {
            handle,
            name: name.to_owned(),
            shared_bytes: 0,
            is_programmatic: false,
            parameters,
            module: Rc::clone(self),
        })
    }
}

impl Code {
    /// Returns the decompressed code, followed by the NUL character that PTX must end with.
    pub(crate) fn decompress(self) -> Vec<u8> {
        let (Self::Ptx(packed) | Self::Cubin(packed, _)) = self;
        let mut image = Vec::new();
        GzDecoder::new(packed)
            .read_to_end(&mut image)
            .expect("the build compressed the code");
        image.push(0);
        image
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: the driver created the handle. It is released only here, after all of its kernels
        // have ended.
        unsafe { (self.context.driver().api.cuModuleUnload)(self.handle) };
    }
}

impl Kernel {
    /// Gives each block dynamic shared memory, in addition to the shared memory declared in the
    /// code.
    pub(crate) fn with_shared_memory(mut self, bytes: u32) -> Result<Self, CudaError> {
        let driver = self.module.context.driver();
        // SAFETY: the driver created the handle.
        let code = unsafe {
            (driver.api.cuFuncSetAttribute)(
                self.handle,
                MAX_DYNAMIC_SHARED_BYTES,
                bytes.cast_signed(),
            )
        };
        driver.check_result(
            code,
            format!(
                "give {bytes} bytes of shared memory to the kernel {}",
                self.name
            ),
        )?;
        self.shared_bytes = bytes;
        Ok(self)
    }

    /// Enables programmatic dependent launch if the driver supports it. The kernel's code must
    /// execute `griddepcontrol.wait` before it accesses memory.
    pub(crate) fn with_programmatic_launch(self) -> Self {
        let driver = self.module.context.driver();
        let is_programmatic =
            driver.version >= PROGRAMMATIC_SINCE && driver.api.cuLaunchKernelEx.is_some();
        Self {
            is_programmatic,
            ..self
        }
    }

    /// Returns the kernel's use of a multiprocessor's resources with blocks of this many threads,
    /// as reported by the driver.
    pub(crate) fn read_resource_use(&self, threads: u32) -> Result<KernelUse, CudaError> {
        let driver = self.module.context.driver();
        let number = |attribute| {
            let mut value = 0;
            // SAFETY: the variable outlives the call, and the driver created the handle.
            let code =
                unsafe { (driver.api.cuFuncGetAttribute)(&raw mut value, attribute, self.handle) };
            driver
                .check_result(
                    code,
                    format!("read the resources of the kernel {}", self.name),
                )
                .map(|()| value.max(0).cast_unsigned())
        };
        let mut blocks = 0;
        // SAFETY: the variable outlives the call, and the driver created the handle.
        let code = unsafe {
            (driver.api.cuOccupancyMaxActiveBlocksPerMultiprocessor)(
                &raw mut blocks,
                self.handle,
                threads.cast_signed(),
                self.shared_bytes as usize,
            )
        };
        driver.check_result(
            code,
            format!("read how many blocks of the kernel {} fit", self.name),
        )?;
        let blocks = blocks.max(0).cast_unsigned();
        let most = self
            .module
            .context
            .device
            .attribute(Attribute::MaxThreadsPerMultiprocessor)?
            .max(1);
        Ok(KernelUse {
            name: self.name.clone().into(),
            architecture: format!("sm_{}", number(BINARY_VERSION)?),
            registers: number(NUM_REGS)?,
            spilled_bytes: number(LOCAL_SIZE_BYTES)?,
            shared_bytes: number(SHARED_SIZE_BYTES)? + self.shared_bytes,
            threads,
            blocks,
            occupancy_percent: f64::from(100 * blocks * threads) / f64::from(most),
        })
    }

    /// Checks that the arguments have the right types, because the driver does not.
    pub(super) fn check_arguments(&self, arguments: &[Argument<'_>]) {
        let given: Vec<_> = arguments.iter().map(Argument::ptx_type).collect();
        assert_eq!(
            given, self.parameters,
            "the arguments must match the parameters of {}",
            self.name
        );
    }
}

impl Argument<'_> {
    fn ptx_type(&self) -> &'static str {
        match self {
            Self::In(_) | Self::Out(_) | Self::At(..) | Self::Pinned(_) | Self::U64(_) => "u64",
            Self::F32(_) => "f32",
            Self::F64(_) => "f64",
            Self::Tiles(_) => "b8[128]",
        }
    }

    /// Returns the bits of the argument. If the kernel's parameter has fewer than 64 bits, the
    /// driver reads only the lowest bits. Arguments with more than 64 bits are passed by address,
    /// so this method does not apply to them.
    pub(super) fn bits(&self) -> u64 {
        match self {
            Self::In(memory) | Self::Out(memory) => memory.address,
            Self::At(memory, offset_bytes) => memory.address + offset_bytes,
            Self::Pinned(memory) => memory.address(),
            Self::U64(number) => *number,
            Self::F32(number) => u64::from(number.to_bits()),
            Self::F64(number) => number.to_bits(),
            Self::Tiles(_) => 0,
        }
    }
}

/// Returns the types of a kernel's parameters, as declared in PTX. The declaration of each is a
/// line such as `.param .u64 name_param_0` before the kernel's body.
fn parse_parameter_types(ptx: &str, kernel: &str) -> Vec<String> {
    let head = ptx
        .split_once(&format!(".entry {kernel}("))
        .map_or("", |(_, rest)| rest);
    let head = head.split_once(')').map_or(head, |(head, _)| head);
    let types = head
        .split(".param .")
        .skip(1)
        .filter_map(|rest| rest.split_whitespace().next());
    types.map(str::to_owned).collect()
}

/// Returns the types of a kernel's parameters from the listing, in which they follow the kernel's
/// name, shared memory and registers.
fn listed_parameter_types(listing: &str, kernel: &str) -> Vec<String> {
    let mut rows = listing.lines().map(|line| line.split_whitespace());
    let row = rows.find_map(|mut words| (words.next() == Some(kernel)).then_some(words));
    row.into_iter()
        .flat_map(|words| words.skip(1 + LISTED_ARCHITECTURES))
        .map(str::to_owned)
        .collect()
}

/// Adds the compiler's messages to the error, joined into one line.
fn add_compiler_log(mut error: CudaError, log: &[u8]) -> CudaError {
    let said = String::from_utf8_lossy(log.split(|byte| *byte == 0).next().unwrap_or_default())
        .into_owned();
    let said: Vec<_> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if !said.is_empty() {
        error.text = said.join("; ");
    }
    error
}

/// The value of `CU_TENSOR_MAP_SWIZZLE_128B`: packs of 16 bytes are permuted within the 128 bytes
/// of a row, so that different rows use different banks.
const SWIZZLE_128_BYTES: i32 = 3;
/// The value of `CU_TENSOR_MAP_L2_PROMOTION_L2_128B`.
const PROMOTION_128_BYTES: i32 = 2;
/// The size of a tile's row in bytes.
const TILE_ROW_BYTES: u32 = 128;

/// A description of a matrix for the copy engine of Hopper and later GPUs, which reads the matrix
/// in tiles with rows of 128 bytes.
pub(crate) struct TensorMap<'memory> {
    pub(super) bytes: TensorMapBytes,
    /// Ties the description to the lifetime of the memory, because it contains the memory's
    /// address.
    memory: PhantomData<&'memory DeviceMemory>,
}

/// Returns the `CUtensorMapDataType` of a number type.
fn data_type_code(dtype: Dtype) -> i32 {
    match dtype {
        // All 8-bit types are described as unsigned integers.
        Dtype::Fp8 | Dtype::Int8 | Dtype::Bytes => 0,
        Dtype::Fp16 => 6,
        Dtype::Fp32 | Dtype::Tf32 => 7,
        Dtype::Fp64 => 8,
        Dtype::Bf16 => 9,
    }
}

impl<'memory> TensorMap<'memory> {
    /// Describes a matrix without gaps between rows. `rows_of_tile` is the number of rows per tile.
    pub(crate) fn new(
        memory: &'memory DeviceMemory,
        dtype: Dtype,
        (rows, row): (u64, u64),
        rows_of_tile: u32,
    ) -> Result<Self, CudaError> {
        let row_bytes = row * dtype.bytes();
        assert!(
            row_bytes * rows <= memory.bytes(),
            "the memory has room for the matrix"
        );
        let driver = memory.driver();
        let doing = "describe a matrix to the GPU's copy engine";
        let encode = driver
            .api
            .cuTensorMapEncodeTiled
            .ok_or_else(|| driver.make_error(CudaError::NOT_SUPPORTED, doing))?;
        let (extents, strides) = ([row, rows], [row_bytes]);
        let (tile, steps) = (
            [TILE_ROW_BYTES / dtype.bytes() as u32, rows_of_tile],
            [1, 1],
        );
        let mut bytes = TensorMapBytes([0; 16]);
        // SAFETY: the arrays have one element per dimension, or one less for the strides, and all
        // outlive the call. The description does not outlive the memory.
        let code = unsafe {
            encode(
                &raw mut bytes,
                data_type_code(dtype),
                extents.len() as u32,
                memory.address,
                extents.as_ptr(),
                strides.as_ptr(),
                tile.as_ptr(),
                steps.as_ptr(),
                0,
                SWIZZLE_128_BYTES,
                PROMOTION_128_BYTES,
                0,
            )
        };
        driver.check_result(code, doing)?;
        Ok(Self {
            bytes,
            memory: PhantomData,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_parameters_are_parsed() {
        let ptx = ".visible .entry copy_f32(\n\t.param .u64 copy_f32_param_0,\n\t.param .f32 \
                   copy_f32_param_1\n)\n{ }\n.visible .entry empty()\n{ }";
        assert_eq!(parse_parameter_types(ptx, "copy_f32"), ["u64", "f32"]);
        assert_eq!(parse_parameter_types(ptx, "empty"), [""; 0]);
        let listing = "kernel shared sm_80 sm_89 sm_90a sm_100a sm_120  takes\nproduct 0 - - 168 \
                       - -  u64 b8[128]\nempty 0 4 4 4 4 4";
        assert_eq!(
            listed_parameter_types(listing, "product"),
            ["u64", "b8[128]"]
        );
        assert_eq!(listed_parameter_types(listing, "empty"), [""; 0]);
    }

    #[test]
    fn compiler_message_fits_on_one_line() {
        let error = CudaError {
            doing: "x".into(),
            code: 218,
            name: "INVALID_PTX".into(),
            text: "invalid".into(),
        };
        let mut log = b"ptxas line 3: error\n  unknown opcode\n\0rest".to_vec();
        assert_eq!(
            add_compiler_log(error.clone(), &log).text,
            "ptxas line 3: error; unknown opcode"
        );
        log[0] = 0;
        assert_eq!(add_compiler_log(error, &log).text, "invalid");
    }
}
