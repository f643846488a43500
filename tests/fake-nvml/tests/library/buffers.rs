//! The driver's buffers can be read in several parts.

#![allow(unsafe_code, reason = "what is tested is a C interface")]

use std::{mem::zeroed, ptr, thread, time::Duration};

use crate::common::{initialize_and_open_gpu, open_library, run_with_library};
use nvml_wrapper_sys::bindings::{NvmlLib, nvmlDevice_t, nvmlSample_t};

const INVALID_ARGUMENT: u32 = 2;
const NOT_FOUND: u32 = 6;
const POWER: u32 = 0;
const GPU_UTILIZATION: u32 = 1;

/// Returns the samples after the time stamp `seen_us`, each as a time stamp and a value, or the
/// return code.
fn read_buffer(
    lib: &NvmlLib,
    device: nvmlDevice_t,
    kind: u32,
    seen_us: u64,
    room: u32,
) -> Result<Vec<(u64, u32)>, u32> {
    // SAFETY: all zeros are a valid sample.
    let (mut samples, mut kind_of_value, mut count) =
        (vec![unsafe { zeroed::<nvmlSample_t>() }; 200], 9, room);
    let to = samples.as_mut_ptr();
    // SAFETY: there is room for 200 samples, and no larger count is passed.
    let code = unsafe {
        lib.nvmlDeviceGetSamples(
            device,
            kind,
            seen_us,
            &raw mut kind_of_value,
            &raw mut count,
            to,
        )
    };
    if code != 0 {
        return Err(code);
    }
    assert_eq!(kind_of_value, 1);
    samples.truncate(count as usize);
    // SAFETY: the value type is that of unsigned integers.
    Ok(samples
        .iter()
        .map(|sample| (sample.timeStamp, unsafe { sample.sampleValue.uiVal }))
        .collect())
}

#[test]
fn consecutive_buffer_reads_have_no_gaps_or_duplicates() {
    let scenario = "start_ms = 1_700_000_000_000\n[[gpu]]\nindex = 0\npower_watts = \
                    321.5\nutilization_percent = 40";
    run_with_library(
        "buffers::consecutive_buffer_reads_have_no_gaps_or_duplicates",
        scenario,
        &[],
        |library| {
            let lib = open_library(library);
            let device = initialize_and_open_gpu(&lib, 0);
            let (mut kind, mut count) = (0, 0);
            // SAFETY: without a list, only the count and the type are written.
            let size = |count: *mut u32, kind: *mut u32| unsafe {
                lib.nvmlDeviceGetSamples(device, POWER, 0, kind, count, ptr::null_mut())
            };
            assert_eq!(
                (size(&raw mut count, &raw mut kind), count, kind),
                (0, 119, 1)
            );

            let first = read_buffer(&lib, device, POWER, 0, 200).unwrap();
            assert_eq!(first.len(), 119);
            let seen = first[118].0;
            thread::sleep(Duration::from_millis(300));
            // A list that is too short receives the oldest samples. The next call can then continue
            // after them.
            let second = read_buffer(&lib, device, POWER, seen, 4).unwrap();
            let third = read_buffer(&lib, device, POWER, second[3].0, 200).unwrap();
            assert_eq!((second.len(), second[0].0), (4, seen + 20_000));
            let all: Vec<_> = [first, second, third].concat();
            assert!(
                all.windows(2).all(|pair| pair[1].0 == pair[0].0 + 20_000),
                "{all:?}"
            );
            assert!(all.iter().all(|(_, milliwatts)| *milliwatts == 321_500));

            let utilization = read_buffer(&lib, device, GPU_UTILIZATION, 0, 200).unwrap();
            assert_eq!((utilization.len(), utilization[70].1), (71, 40));
            assert!(
                utilization
                    .windows(2)
                    .all(|pair| pair[1].0 == pair[0].0 + 200_000)
            );
            assert_eq!(
                read_buffer(&lib, device, GPU_UTILIZATION, u64::MAX, 200),
                Err(NOT_FOUND)
            );
            assert_eq!(read_buffer(&lib, device, 5, 0, 200), Err(NOT_FOUND));
            assert_eq!(read_buffer(&lib, device, 10, 0, 200), Err(INVALID_ARGUMENT));
            assert_eq!(
                read_buffer(&lib, device, POWER, 0, 0),
                Err(INVALID_ARGUMENT)
            );
        },
    );
}
