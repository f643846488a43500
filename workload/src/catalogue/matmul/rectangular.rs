//! `matmul --shape`: a product of matrices that are not square, on a GPU.

use super::{DTYPES, MATMUL, cost, on_cuda::OnCuda};
use crate::{catalogue::prelude::*, protocol::Shape};

static ABOUT: About = About {
    id: "matmul",
    does: "Multiplies two matrices of any shape.",
    teaches: "Matrices that fill no whole tiles, or too few of them, leave a part of the GPU idle.",
    dtypes: DTYPES,
    backends: &[Backend::Cuda],
    bound: Bound::Compute,
    extent: Extent::Side,
};

/// `matmul` of one shape, whatever its size is said to be.
pub(crate) struct Rectangular(pub(crate) Shape);

impl Workload for Rectangular {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn shape(&self) -> Option<Shape> {
        Some(self.0)
    }

    fn every_type(&self) -> bool {
        MATMUL.every_type()
    }

    fn types_on(&self, backend: Backend) -> &'static [Dtype] {
        MATMUL.types_on(backend)
    }

    fn usual_n(&self, _: Backend, _: Dtype, _: &MemoryBudget) -> u64 {
        self.0.rows
    }

    fn cost(&self, size: Size) -> Cost {
        cost(self.0, size.dtype)
    }

    fn check_device(&self, gpu: &Gpu, dtype: Dtype) -> Result<(), RunError> {
        MATMUL.check_device(gpu, dtype)
    }

    fn on_cuda<'gpu>(
        &self,
        gpu: &'gpu Gpu,
        size: Size,
    ) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        self.check_device(gpu, size.dtype)?;
        Ok(Box::new(OnCuda::new(gpu, self.0, size.dtype)?))
    }

    fn on_cublas<'gpu>(
        &self,
        gpu: &'gpu Gpu,
        size: Size,
    ) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        self.check_device(gpu, size.dtype)?;
        Ok(Box::new(OnCuda::new(gpu, self.0, size.dtype)?.by_cublas()?))
    }
}
