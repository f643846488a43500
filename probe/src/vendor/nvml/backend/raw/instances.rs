//! The instances that MIG makes of a GPU, and their profiles.

use std::{ffi::c_uint, ptr};

use nvml_wrapper_sys::bindings::{
    NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED as SHARED, nvmlComputeInstance_t, nvmlComputeInstanceProfileInfo_t,
    nvmlComputeInstanceProfileInfo_v2_t, nvmlGpuInstance_t, nvmlReturn_t,
};

use super::{
    function::{self, Listed},
    library::{Device, Function, Library, Plain, done},
};
use crate::vendor::nvml::query::Code;

/// More instances than any GPU has.
const INSTANCES: usize = 64;

/// An instance: its id, where it begins and how much it takes.
pub(in super::super) type Placed = [u32; 3];

/// A place: where it begins and how much it takes.
pub(in super::super) type Place = [u32; 2];

/// A GPU instance. It stays on the thread that asked for it.
#[derive(Clone, Copy)]
pub(in super::super) struct GpuInstance(nvmlGpuInstance_t);

impl Library {
    /// `nvmlDeviceGetGpuInstancePossiblePlacements_v2`.
    pub(in super::super) fn gpu_instance_places(&self, device: Device, profile: u32) -> Result<Vec<Place>, Code> {
        // SAFETY: the handle is the library's.
        let places = unsafe { self.places(&function::GPU_INSTANCE_PLACEMENTS, device.0, profile) }?;
        Ok(places.iter().map(|place| [place.start, place.size]).collect())
    }

    /// `nvmlDeviceGetGpuInstances`, with `nvmlGpuInstanceGetInfo` of each.
    pub(in super::super) fn gpu_instances(&self, device: Device, profile: u32) -> Result<Vec<Placed>, Code> {
        let tell = self.find(&function::GPU_INSTANCE_INFO)?;
        // SAFETY: the handle is the library's.
        let instances = unsafe { self.instances(&function::GPU_INSTANCES, device.0, profile) }?;
        let placed = |instance: nvmlGpuInstance_t| {
            // SAFETY: the library gave this instance; the structure outlives the call.
            let info = filled(|info| unsafe { tell(instance, info) })?;
            Ok([info.id, info.placement.start, info.placement.size])
        };
        instances.into_iter().map(placed).collect()
    }

    /// `nvmlDeviceGetGpuInstanceById`.
    pub(in super::super) fn gpu_instance(&self, device: Device, id: u32) -> Result<GpuInstance, Code> {
        self.of(&function::GPU_INSTANCE_BY_ID, device, id).map(GpuInstance)
    }

    /// `nvmlGpuInstanceGetComputeInstanceProfileInfoV`, with engines that are shared.
    pub(in super::super) fn compute_instance_profile(
        &self,
        instance: GpuInstance,
        profile: u32,
    ) -> Result<nvmlComputeInstanceProfileInfo_v2_t, Code> {
        let call = self.find(&function::COMPUTE_INSTANCE_PROFILE)?;
        // SAFETY: the library gave this instance; the structure outlives the call.
        filled(|info| unsafe { call(instance.0, profile, SHARED, info) })
    }

    /// `nvmlGpuInstanceGetComputeInstanceProfileInfo`, likewise.
    pub(in super::super) fn compute_instance_profile_v1(
        &self,
        instance: GpuInstance,
        profile: u32,
    ) -> Result<nvmlComputeInstanceProfileInfo_t, Code> {
        let call = self.find(&function::COMPUTE_INSTANCE_PROFILE_V1)?;
        // SAFETY: the library gave this instance; the structure outlives the call.
        filled(|info| unsafe { call(instance.0, profile, SHARED, info) })
    }

    /// `nvmlGpuInstanceGetComputeInstanceRemainingCapacity`.
    pub(in super::super) fn compute_instance_capacity(&self, instance: GpuInstance, profile: u32) -> Result<u32, Code> {
        let call = self.find(&function::COMPUTE_INSTANCE_CAPACITY)?;
        // SAFETY: the library gave this instance; the number outlives the call.
        filled(|count| unsafe { call(instance.0, profile, count) })
    }

    /// `nvmlGpuInstanceGetComputeInstancePossiblePlacements`.
    pub(in super::super) fn compute_instance_places(
        &self,
        instance: GpuInstance,
        profile: u32,
    ) -> Result<Vec<Place>, Code> {
        // SAFETY: the library gave this instance.
        let places = unsafe { self.places(&function::COMPUTE_INSTANCE_PLACEMENTS, instance.0, profile) }?;
        Ok(places.iter().map(|place| [place.start, place.size]).collect())
    }

    /// `nvmlGpuInstanceGetComputeInstances`, with `nvmlComputeInstanceGetInfo_v2` of each.
    pub(in super::super) fn compute_instances(&self, instance: GpuInstance, profile: u32) -> Result<Vec<Placed>, Code> {
        let tell = self.find(&function::COMPUTE_INSTANCE_INFO)?;
        // SAFETY: the library gave this instance.
        let instances = unsafe { self.instances(&function::COMPUTE_INSTANCES, instance.0, profile) }?;
        let placed = |instance: nvmlComputeInstance_t| {
            // SAFETY: the library gave this instance; the structure outlives the call.
            let info = filled(|info| unsafe { tell(instance, info) })?;
            Ok([info.id, info.placement.start, info.placement.size])
        };
        instances.into_iter().map(placed).collect()
    }

    /// A list of places, which is asked for its length first.
    ///
    /// # Safety
    /// `of` is a handle of the library's.
    unsafe fn places<A: Copy, T: Plain>(
        &self,
        function: &Function<Listed<A, T>>,
        of: A,
        profile: u32,
    ) -> Result<Vec<T>, Code> {
        let call = self.find(function)?;
        let mut count = 0;
        // SAFETY: by this function's own condition; without room, nothing is written but the length.
        done(unsafe { call(of, profile, ptr::null_mut(), &raw mut count) })?;
        let mut places = vec![T::blank(); count as usize];
        if count > 0 {
            // SAFETY: by this function's own condition; there is as much room as the library said.
            done(unsafe { call(of, profile, places.as_mut_ptr(), &raw mut count) })?;
            places.truncate(count as usize);
        }
        Ok(places)
    }

    /// A list of instances, which are never more than there is room for.
    ///
    /// # Safety
    /// `of` is a handle of the library's.
    unsafe fn instances<A: Copy, T: Plain>(
        &self,
        function: &Function<Listed<A, T>>,
        of: A,
        profile: u32,
    ) -> Result<Vec<T>, Code> {
        let call = self.find(function)?;
        let (mut count, mut instances) = (INSTANCES as c_uint, vec![T::blank(); INSTANCES]);
        // SAFETY: by this function's own condition; a GPU has fewer instances than there is room for.
        done(unsafe { call(of, profile, instances.as_mut_ptr(), &raw mut count) })?;
        instances.truncate(count as usize);
        Ok(instances)
    }
}

/// What a call fills in.
fn filled<T: Plain>(call: impl FnOnce(*mut T) -> nvmlReturn_t) -> Result<T, Code> {
    let mut value = T::blank();
    done(call(&raw mut value))?;
    Ok(value)
}
