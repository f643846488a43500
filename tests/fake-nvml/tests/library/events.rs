//! The driver sends an event once to each event set in which its GPU was registered for this kind
//! of event.

#![allow(unsafe_code, reason = "what is tested is a C interface")]

use std::{
    mem::zeroed,
    ptr, thread,
    time::{Duration, Instant},
};

use crate::common::{initialize_and_open_gpu, open_library, run_with_library};
use nvml_wrapper_sys::bindings::{NvmlLib, nvmlEventSet_t};

const NOT_SUPPORTED: u32 = 3;
const TIMEOUT: u32 = 10;
const GPU_IS_LOST: u32 = 15;
const XID: u64 = 8;
const ECC_UNCORRECTED: u64 = 2;

fn create_set(lib: &NvmlLib) -> nvmlEventSet_t {
    let mut set = ptr::null_mut();
    // SAFETY: the pointer is valid during the call.
    assert_eq!(unsafe { lib.nvmlEventSetCreate(&raw mut set) }, 0);
    set
}

/// Returns type and data of the next event and the handle of its GPU, or the return code.
fn wait_for_event(
    lib: &NvmlLib,
    set: nvmlEventSet_t,
    timeout_ms: u32,
) -> Result<(u64, u64, usize, u32), u32> {
    // SAFETY: all zeros are a valid structure, and it outlives the call.
    let (code, data) = unsafe {
        let mut data = zeroed();
        (
            lib.nvmlEventSetWait_v2(set, &raw mut data, timeout_ms),
            data,
        )
    };
    if code == 0 {
        Ok((
            data.eventType,
            data.eventData,
            data.device.addr(),
            data.gpuInstanceId,
        ))
    } else {
        Err(code)
    }
}

#[test]
fn each_event_set_gets_its_events_once() {
    let scenario = "gpus = 2\n[[event]]\ngpu = 0\nat_s = 0.6\nkind = \"xid\"\ncode = 31\npid = 9\n\
                    [[event]]\ngpu = 0\nat_s = 0.6\nkind = \"ecc_corrected\"\n\
                    [[event]]\ngpu = 1\nat_s = 0.7\nkind = \"ecc_uncorrected\"\n\
                    [[gpu]]\nindex = 0\nmig = [{ profile = \"1g.18gb\", gpu_instance = 7 }]\n\
                    [[process]]\ngpu = 0\npid = 9\ngpu_instance = 7\n";
    run_with_library(
        "events::each_event_set_gets_its_events_once",
        scenario,
        &[],
        |library| {
            let lib = open_library(library);
            let (zero, one) = (
                initialize_and_open_gpu(&lib, 0),
                initialize_and_open_gpu(&lib, 1),
            );
            let (both, only_ecc) = (create_set(&lib), create_set(&lib));
            let mut supported = 0;
            // SAFETY: handles and sets come from the library, and the value outlives the call.
            unsafe {
                assert_eq!(
                    lib.nvmlDeviceGetSupportedEventTypes(zero, &raw mut supported),
                    0
                );
                assert_eq!(supported, 1 | 2 | 8 | 128 | 256);
                assert_eq!(lib.nvmlDeviceRegisterEvents(zero, 4, both), NOT_SUPPORTED);
                assert_eq!(lib.nvmlDeviceRegisterEvents(zero, XID, both), 0);
                assert_eq!(lib.nvmlDeviceRegisterEvents(one, supported, both), 0);
                assert_eq!(
                    lib.nvmlDeviceRegisterEvents(one, ECC_UNCORRECTED, only_ecc),
                    0
                );
            }
            let begun = Instant::now();
            assert_eq!(wait_for_event(&lib, only_ecc, 50), Err(TIMEOUT));
            assert!(begun.elapsed() >= Duration::from_millis(50));
            assert_eq!(
                wait_for_event(&lib, both, 5_000),
                Ok((XID, 31, zero.addr(), 7))
            );
            assert_eq!(
                wait_for_event(&lib, both, 5_000),
                Ok((ECC_UNCORRECTED, 0, one.addr(), u32::MAX))
            );
            assert_eq!(wait_for_event(&lib, both, 20), Err(TIMEOUT));
            assert_eq!(
                wait_for_event(&lib, only_ecc, 0),
                Ok((ECC_UNCORRECTED, 0, one.addr(), u32::MAX))
            );
            // SAFETY: the set comes from the library and is not used again.
            assert_eq!(unsafe { lib.nvmlEventSetFree(only_ecc) }, 0);

            // A set does not receive events from before its registration.
            let late = create_set(&lib);
            // SAFETY: handle and set come from the library.
            assert_eq!(unsafe { lib.nvmlDeviceRegisterEvents(zero, XID, late) }, 0);
            assert_eq!(wait_for_event(&lib, late, 20), Err(TIMEOUT));
        },
    );
}

#[test]
fn wait_ends_when_gpu_is_lost() {
    let scenario = "[[fault]]\ngpu = 0\nkind = \"lost\"\nfrom_s = 1\n";
    run_with_library(
        "events::wait_ends_when_gpu_is_lost",
        scenario,
        &[],
        |library| {
            let lib = open_library(library);
            let device = initialize_and_open_gpu(&lib, 0);
            let waited_on = create_set(&lib);
            // SAFETY: handle and set come from the library.
            assert_eq!(
                unsafe { lib.nvmlDeviceRegisterEvents(device, XID, waited_on) },
                0
            );
            let begun = Instant::now();
            let address = waited_on.expose_provenance();
            thread::scope(|scope| {
                let waiting = scope.spawn(|| {
                    wait_for_event(&lib, ptr::with_exposed_provenance_mut(address), 30_000)
                });
                thread::sleep(Duration::from_millis(100));
                create_set(&lib);
                assert_eq!(waiting.join().unwrap(), Err(GPU_IS_LOST));
            });
            let took = begun.elapsed();
            assert!(
                (Duration::from_millis(500)..Duration::from_secs(10)).contains(&took),
                "{took:?}"
            );
        },
    );
}
