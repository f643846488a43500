//! The instances that MIG makes of a GPU, and their profiles.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    self as sys, NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED as SHARED, nvmlReturn_t,
};

use super::{
    function::{self as f, ComputeProfile, InstanceInfo, Listed},
    library::{Device, Function, Library, Plain, done},
    lists::counted,
    shapes::Raw,
};
use crate::vendor::nvml::query::Code;

/// More instances than any GPU has.
const INSTANCES: usize = 64;

/// A GPU instance. It stays on the thread that asked for it.
#[derive(Clone, Copy)]
pub(crate) struct GpuInstance(sys::nvmlGpuInstance_t);

impl Library {
    /// `nvmlDeviceGetGpuInstances`, with `nvmlGpuInstanceGetInfo` of each.
    pub(crate) fn gpu_instances(
        &self,
        device: Device,
        profile: u32,
    ) -> Result<Vec<sys::nvmlGpuInstanceInfo_t>, Code> {
        // SAFETY: the handle is the library's.
        unsafe {
            self.instances(
                &f::nvmlDeviceGetGpuInstances,
                &f::nvmlGpuInstanceGetInfo,
                device.0,
                profile,
            )
        }
    }

    /// `nvmlDeviceGetGpuInstanceById`.
    pub(crate) fn gpu_instance(&self, device: Device, id: u32) -> Result<GpuInstance, Code> {
        self.get_one(&f::nvmlDeviceGetGpuInstanceById, device, &[id])
            .map(GpuInstance)
    }

    /// `nvmlGpuInstanceGetComputeInstanceProfileInfoV` or its older name, with engines that are shared.
    pub(crate) fn compute_instance_profile<T: Plain>(
        &self,
        function: &Function<Raw<ComputeProfile<T>>>,
        instance: GpuInstance,
        profile: u32,
    ) -> Result<T, Code> {
        // SAFETY: the library gave this instance; the structure outlives the call.
        self.fill_with(function, |call, info| unsafe {
            call(instance.0, profile, SHARED, info)
        })
    }

    /// `nvmlGpuInstanceGetComputeInstanceRemainingCapacity`.
    pub(crate) fn compute_instance_capacity(
        &self,
        instance: GpuInstance,
        profile: u32,
    ) -> Result<u32, Code> {
        // SAFETY: the library gave this instance; the number outlives the call.
        self.fill_with(
            &f::nvmlGpuInstanceGetComputeInstanceRemainingCapacity,
            |call, count| unsafe { call(instance.0, profile, count) },
        )
    }

    /// `nvmlGpuInstanceGetComputeInstancePossiblePlacements`.
    pub(crate) fn compute_instance_places(
        &self,
        instance: GpuInstance,
        profile: u32,
    ) -> Result<Vec<sys::nvmlComputeInstancePlacement_t>, Code> {
        let call = self.find(&f::nvmlGpuInstanceGetComputeInstancePossiblePlacements)?;
        // SAFETY: the library gave this instance; there is as much room as is told.
        counted(|count, places| unsafe { call(instance.0, profile, places, count) })
    }

    /// `nvmlGpuInstanceGetComputeInstances`, with `nvmlComputeInstanceGetInfo_v2` of each.
    pub(crate) fn compute_instances(
        &self,
        instance: GpuInstance,
        profile: u32,
    ) -> Result<Vec<sys::nvmlComputeInstanceInfo_t>, Code> {
        // SAFETY: the library gave this instance.
        unsafe {
            self.instances(
                &f::nvmlGpuInstanceGetComputeInstances,
                &f::nvmlComputeInstanceGetInfo_v2,
                instance.0,
                profile,
            )
        }
    }

    /// What there is to say of each instance of a profile. They are never more than there is room for.
    ///
    /// # Safety
    /// `of` is a handle of the library's.
    unsafe fn instances<A: Copy, T: Plain, I: Plain>(
        &self,
        list: &Function<Raw<Listed<A, T>>>,
        info: &Function<Raw<InstanceInfo<T, I>>>,
        of: A,
        profile: u32,
    ) -> Result<Vec<I>, Code> {
        let call = self.find(list)?;
        let (mut count, mut instances) = (INSTANCES as c_uint, [T::blank(); INSTANCES]);
        // SAFETY: by this function's own condition; a GPU has fewer instances than there is room for.
        done(unsafe { call(of, profile, instances.as_mut_ptr(), &raw mut count) })?;
        // SAFETY: the library gave these instances; the structure outlives the call.
        let info = |instance| {
            self.fill_with(info, |call, info| -> nvmlReturn_t {
                unsafe { call(instance, info) }
            })
        };
        instances
            .into_iter()
            .take(count as usize)
            .map(info)
            .collect()
    }
}
