//! Functions for clocks by ID, and other functions whose parameters or results do not fit into the
//! table of queries.

use std::ffi::c_uint;

use gpumon_probe::vendor::nvml::query::Query;
use nvml_wrapper_sys::bindings::{
    nvmlClockId_t, nvmlClockType_t, nvmlFanSpeedInfo_t, nvmlMemory_v2_t, nvmlPerfPolicyType_t,
    nvmlViolationTime_t,
};

use super::exports;
use crate::{
    answers::{answer_gpu_or_mig, first_number},
    code::Code,
};

exports! {
    fn nvmlDeviceGetClock(device |gpu|, domain: nvmlClockType_t, id: nvmlClockId_t) -> c_uint {
        let query = match id {
            0 => Query::Clock(domain),
            // The IDs 1 to 3 are the target clock, the default clock and the maximum set by the
            // customer. The simulation returns the board's maximum for all of them.
            1..=3 => Query::MaxClock(domain),
            _ => return Err(Code::INVALID_ARGUMENT),
        };
        Ok(first_number(gpu, query)? as c_uint)
    }
    fn nvmlDeviceGetFanSpeedRPM(device |gpu|) fills info: nvmlFanSpeedInfo_t, 1 {
        info.speed = first_number(gpu, Query::FanSpeedRpm(info.fan))? as c_uint;
        Ok(())
    }
    fn nvmlDeviceGetViolationStatus(
        device |gpu|, policy: nvmlPerfPolicyType_t
    ) -> nvmlViolationTime_t {
        Ok(nvmlViolationTime_t {
            referenceTime: gpu.machine().driver_timestamp_us(gpu.index, gpu.elapsed_ms),
            violationTime: super::fields::throttled_ns(gpu, policy)?,
        })
    }
    fn nvmlDeviceGetMemoryInfo_v2(part |gpu|) fills memory: nvmlMemory_v2_t, 2 {
        let answer = answer_gpu_or_mig(gpu, Query::MemoryInfo).map_err(|own| Code(own.0))?;
        let bytes = |place| answer.number_at(place).and_then(|own| u64::try_from(own).ok()).unwrap_or(0);
        (memory.total, memory.reserved) = (bytes(0), bytes(1));
        (memory.free, memory.used) = (bytes(2), bytes(3));
        Ok(())
    }
}
