//! What was done about bad memory: pages retired, rows replaced.

use std::ffi::{c_uint, c_ulonglong};

use gpumon_probe::{
    model::{RemappedRows, RetiredPages},
    vendor::sim::Architecture,
};
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlEnableState_t, nvmlPageRetirementCause_t, nvmlRepairStatus_t, nvmlReturn_t,
    nvmlRowRemapperHistogramValues_t,
};

use super::exports;
use crate::{
    call::{Gpu, device},
    code::Code,
    given::Filled,
    out::{put, put_list},
};

/// A page of memory.
const PAGE_BYTES: u64 = 4_096;

exports! {
    fn nvmlDeviceGetRetiredPagesPendingStatus(device |gpu|) -> nvmlEnableState_t { Ok(retired(gpu)?.pending.into()) }
    fn nvmlDeviceGetRowRemapperHistogram(device |gpu|) -> nvmlRowRemapperHistogramValues_t {
        let spare = remapped(gpu)?.spare.ok_or(Code::NOT_SUPPORTED)?;
        Ok(nvmlRowRemapperHistogramValues_t {
            max: spare.max,
            high: spare.high,
            partial: spare.partial,
            low: spare.low,
            none: spare.none,
        })
    }
}

/// The structure that the bindings lack.
#[repr(C)]
struct RemappedRowsInfo {
    correctable: c_uint,
    inactive_correctable: c_uint,
    uncorrectable: c_uint,
    inactive_uncorrectable: c_uint,
    pending: c_uint,
    failed: c_uint,
}

// SAFETY: it consists of integers.
unsafe impl Filled for RemappedRowsInfo {}

exports! {
    fn nvmlDeviceGetRemappedRows_v2(device |gpu|) -> RemappedRowsInfo {
        let rows = remapped(gpu)?;
        Ok(RemappedRowsInfo {
            correctable: rows.correctable,
            inactive_correctable: 0,
            uncorrectable: rows.uncorrectable,
            inactive_uncorrectable: 0,
            pending: rows.pending.into(),
            failed: rows.failed.into(),
        })
    }
    // Memory beyond repair is what no spare row was left for.
    fn nvmlDeviceGetUnrepairableMemoryFlag_v1(device |gpu|) -> c_uint { Ok(remapped(gpu)?.failed.into()) }
    fn nvmlDeviceGetRepairStatus(device |gpu|) fills own: nvmlRepairStatus_t, 1 {
        if !gpu.identity().ecc || gpu.identity().architecture < Architecture::Hopper {
            return Err(Code::NOT_SUPPORTED);
        }
        (own.bChannelRepairPending, own.bTpcRepairPending) = (0, 0);
        Ok(())
    }
}

fn retired(gpu: &Gpu) -> Result<RetiredPages, Code> {
    gpu.wear().retired_pages.ok_or(Code::NOT_SUPPORTED)
}

fn remapped(gpu: &Gpu) -> Result<RemappedRows, Code> {
    gpu.wear().remapped_rows.ok_or(Code::NOT_SUPPORTED)
}

/// The addresses of the pages that were retired for one cause.
fn addresses(gpu: &Gpu, cause: nvmlPageRetirementCause_t) -> Result<Vec<c_ulonglong>, Code> {
    let pages = retired(gpu)?;
    let (first, count) = match cause {
        0 => (0x100, pages.single_bit),
        1 => (0x1_0000, pages.double_bit),
        _ => return Err(Code::INVALID_ARGUMENT),
    };
    Ok((0..u64::from(count))
        .map(|number| (first + number) * PAGE_BYTES)
        .collect())
}

exports! {
    fn nvmlDeviceGetRetiredPages(device |gpu|, cause: nvmlPageRetirementCause_t) -> [c_ulonglong] {
        addresses(gpu, cause)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetRetiredPages_v2(
    handle: nvmlDevice_t,
    cause: nvmlPageRetirementCause_t,
    count: *mut c_uint,
    pages: *mut c_ulonglong,
    stamps: *mut c_ulonglong,
) -> nvmlReturn_t {
    device("nvmlDeviceGetRetiredPages_v2", handle, |gpu| {
        let retired = addresses(gpu, cause)?;
        // All at the start of the timeline.
        let at_s = gpu.machine().timeline.unix_ms(0.0) / 1000;
        let (known, when) = (retired.len(), vec![at_s; retired.len()]);
        // SAFETY: NVML's contract: `count` may be read and written, and `pages` is null or has room for so many.
        unsafe { put_list(pages, count, retired) }?;
        let mut room = known as c_uint;
        // SAFETY: NVML's contract: `stamps` has as much room as `pages`, which was enough.
        unsafe { put_list(stamps, &raw mut room, when) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetRemappedRows(
    handle: nvmlDevice_t,
    correctable: *mut c_uint,
    uncorrectable: *mut c_uint,
    pending: *mut c_uint,
    failed: *mut c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetRemappedRows", handle, |gpu| {
        let rows = remapped(gpu)?;
        // SAFETY: NVML's contract: each pointer is null or may be written.
        unsafe {
            put(correctable, rows.correctable)?;
            put(uncorrectable, rows.uncorrectable)?;
            put(pending, rows.pending.into())?;
            put(failed, rows.failed.into())
        }
    })
}
