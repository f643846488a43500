//! The driver's own buffers of samples.

use nvml_wrapper::{
    Device,
    error::{NvmlError, nvml_sym, nvml_try},
};
use nvml_wrapper_sys::bindings::{
    nvmlSample_t, nvmlSamplingType_enum_NVML_GPU_UTILIZATION_SAMPLES as GPU_UTILIZATION,
    nvmlSamplingType_enum_NVML_MEMORY_UTILIZATION_SAMPLES as MEMORY_UTILIZATION,
    nvmlSamplingType_enum_NVML_TOTAL_POWER_SAMPLES as TOTAL_POWER, nvmlSamplingType_t, nvmlValue_t,
};

use super::fields::number;

/// As many samples as any driver keeps of anything; one that keeps more says so.
const ROOM: usize = 256;

/// Which buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Buffer {
    /// The board's draw, in milliwatts.
    Power,
    /// Time in which a kernel ran, in percent.
    GpuUtilization,
    /// Time in which device memory was used, in percent.
    MemoryUtilization,
}

impl Buffer {
    fn kind(self) -> nvmlSamplingType_t {
        match self {
            Self::Power => TOTAL_POWER,
            Self::GpuUtilization => GPU_UTILIZATION,
            Self::MemoryUtilization => MEMORY_UTILIZATION,
        }
    }
}

/// `nvmlDeviceGetSamples`: what the driver recorded after `last_seen_us` (microseconds since the epoch), as pairs of
/// time and value, in its order. Empty where there is nothing new.
pub(in super::super) fn samples(
    device: &Device<'_>,
    buffer: Buffer,
    last_seen_us: u64,
) -> Result<Vec<(u64, f64)>, NvmlError> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetSamples.as_ref())?;
    let empty = nvmlSample_t { timeStamp: 0, sampleValue: nvmlValue_t { ullVal: 0 } };
    let mut room = vec![empty; ROOM];
    loop {
        let (mut kind, mut count) = (0, room.len() as u32);
        // SAFETY: the handle is valid while `device` lives, `count` says how many samples there is room for, and the
        // driver writes no more than that.
        let result = nvml_try(unsafe {
            call(device.handle(), buffer.kind(), last_seen_us, &raw mut kind, &raw mut count, room.as_mut_ptr())
        });
        match result {
            Ok(()) => {
                room.truncate(count as usize);
                return room.iter().map(|sample| Ok((sample.timeStamp, number(kind, sample.sampleValue)?))).collect();
            }
            Err(NvmlError::InsufficientSize(_)) if count as usize > room.len() => room.resize(count as usize, empty),
            Err(NvmlError::NotFound) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
    }
}
