//! The description of a matrix for the copy engine of Hopper and later GPUs. The copy engine reads
//! the matrix tile by tile.

use std::marker::PhantomData;

use super::{api::TensorMapBytes, error::CudaError, memory::DeviceMemory};
use crate::protocol::Dtype;

/// The value of `CU_TENSOR_MAP_SWIZZLE_128B`: packs of 16 bytes are permuted within the 128 bytes
/// of a row, so that different rows use different banks.
const SWIZZLE_128_BYTES: i32 = 3;
/// The value of `CU_TENSOR_MAP_L2_PROMOTION_L2_128B`.
const PROMOTION_128_BYTES: i32 = 2;
/// The size of a tile's row in bytes.
const TILE_ROW_BYTES: u32 = 128;

/// A description of how to read memory in tiles with rows of 128 bytes.
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
