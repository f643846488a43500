//! A product on a GPU, one at a time.

use super::{
    kernel_select::Layout,
    product::{Product, result_bytes},
};
use crate::{
    catalogue::prelude::*,
    cuda::Cublas,
    protocol::{KernelUse, Shape},
};

pub(super) struct OnCuda<'gpu> {
    product: Product<'gpu>,
    out: DeviceMemory,
    /// What multiplies in place of the kernel, as a yardstick.
    cublas: Option<Cublas>,
}

impl<'gpu> OnCuda<'gpu> {
    pub(super) fn new(gpu: &'gpu Gpu, shape: Shape, dtype: Dtype) -> Result<Self, RunError> {
        let product = Product::new(gpu, shape, dtype)?;
        Ok(Self {
            product,
            out: gpu.poisoned(result_bytes(shape, dtype))?,
            cublas: None,
        })
    }

    /// The same, multiplied by cuBLAS.
    pub(super) fn by_cublas(self) -> Result<Self, RunError> {
        let Product {
            gpu,
            shape,
            dtype,
            choice,
            ..
        } = &self.product;
        let is_step_by_step = choice.layout == Layout::StepByStep;
        let cublas = Cublas::new(
            &gpu.context,
            *dtype,
            *shape,
            self.product.pitches(),
            is_step_by_step,
        )?;
        Ok(Self {
            cublas: Some(cublas),
            ..self
        })
    }
}

impl Prepared for OnCuda<'_> {
    fn run(&mut self) -> Result<Sample, RunError> {
        let Self {
            product,
            out,
            cublas,
        } = self;
        let gpu = product.gpu;
        if let Some(cublas) = cublas {
            gpu.time(|queue| cublas.multiply(queue, (out, &product.a, &product.b)))
        } else {
            let ready = product.ready()?;
            gpu.time(|queue| ready.launch(queue, out, 0))
        }
    }

    fn kernel(&self) -> Result<Option<KernelUse>, RunError> {
        Ok(if self.cublas.is_none() {
            Some(self.product.kernel()?)
        } else {
            None
        })
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        Ok(self.product.verify(&self.out)?)
    }
}
