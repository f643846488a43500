//! Retired pages of bad memory, with their times.

use std::ffi::{c_uint, c_ulonglong};

use gpumon_probe::vendor::nvml::query::Query;
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlPageRetirementCause_t, nvmlReturn_t};

use crate::{answers, call::device, code::Code, out::put_list};

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetRetiredPages_v2(
    handle: nvmlDevice_t,
    cause: nvmlPageRetirementCause_t,
    count: *mut c_uint,
    pages: *mut c_ulonglong,
    stamps: *mut c_ulonglong,
) -> nvmlReturn_t {
    device("nvmlDeviceGetRetiredPages_v2", handle, |gpu| {
        let answer = answers::answer_gpu_or_mig(gpu, Query::RetiredPages(cause));
        let pairs = answer.map_err(|own| Code(own.0))?;
        let pairs = pairs.numbers().as_chunks().0.iter();
        let retired: Vec<_> = pairs.map(|[_, page]| *page as c_ulonglong).collect();
        // All pages were retired at the start of the timeline.
        let at_s = gpu.machine().timeline.unix_ms(0.0) / 1000;
        let (known, when) = (retired.len(), vec![at_s; retired.len()]);
        // SAFETY: by NVML's contract, `count` may be read and written, and `pages` is null or has
        // room for `*count` items.
        unsafe { put_list(pages, count, retired) }?;
        let mut room = known as c_uint;
        // SAFETY: by NVML's contract, `stamps` has room for as many items as `pages`, which had
        // enough room.
        unsafe { put_list(stamps, &raw mut room, when) }
    })
}
