//! A GPU in MIG mode has devices with their own handles.

#![allow(unsafe_code, reason = "what is tested is a C interface")]

use std::{
    ffi::{CStr, c_char},
    mem::zeroed,
    ptr,
};

use crate::common::{
    fails_with, initialize_and_open_gpu, initialize_nvml, load_world, open_library,
    run_with_library, struct_version, wait_until,
};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper_sys::bindings::{
    NvmlLib, nvmlDevice_t, nvmlDeviceAttributes_t, nvmlGpmMetricsGet_t, nvmlMemory_v2_t,
};

const INVALID_ARGUMENT: u32 = 2;
const NOT_SUPPORTED: u32 = 3;
const NOT_FOUND: u32 = 6;

const MIG_SCENARIO: &str = "gpus = 2\n[[gpu]]\nindex = 0\nmig = [[0, [{ profile = \"2g.35gb\", \
                            gpu_instance = 3 }, { profile = \"1g.18gb\", gpu_instance = 7, \
                            compute_instance = 1 }]], [2, []]]\n[[process]]\ngpu = 0\npid = \
                            5\nmemory = \"1 GiB\"\nsm_percent = 50\ngpu_instance = \
                            7\ncompute_instance = 1\n[[process]]\ngpu = 0\npid = 6\nmemory = \"2 \
                            GiB\"\nsm_percent = 90\ngpu_instance = 3\n";

fn mig_device_at(lib: &NvmlLib, device: nvmlDevice_t, index: u32) -> Result<nvmlDevice_t, u32> {
    let mut handle = ptr::null_mut();
    // SAFETY: the handle comes from the library, and the pointer outlives the call.
    let code = unsafe { lib.nvmlDeviceGetMigDeviceHandleByIndex(device, index, &raw mut handle) };
    if code == 0 { Ok(handle) } else { Err(code) }
}

fn read_text(get: impl FnOnce(*mut c_char, u32) -> u32) -> String {
    let mut text = [0; 96];
    assert_eq!(get(text.as_mut_ptr(), 96), 0);
    // SAFETY: the library has written a NUL at the end of the text.
    unsafe { CStr::from_ptr(text.as_ptr()) }
        .to_str()
        .unwrap()
        .to_owned()
}

/// Returns the SM activity of a GPU instance, or of the whole GPU, in percent.
fn sm_percent(lib: &NvmlLib, device: nvmlDevice_t, instance: Option<u32>) -> f64 {
    // SAFETY: the library allocates the samples, and all zeros are a valid request.
    unsafe {
        let mut request: Box<nvmlGpmMetricsGet_t> = Box::new(zeroed());
        (
            request.version,
            request.numMetrics,
            request.metrics[0].metricId,
        ) = (1, 1, 2);
        for sample in [&raw mut request.sample1, &raw mut request.sample2] {
            assert_eq!(lib.nvmlGpmSampleAlloc(sample), 0);
            let taken = match instance {
                Some(instance) => lib.nvmlGpmMigSampleGet(device, instance, *sample),
                None => lib.nvmlGpmSampleGet(device, *sample),
            };
            assert_eq!(taken, 0);
            std::thread::sleep(std::time::Duration::from_millis(110));
        }
        assert_eq!(lib.nvmlGpmMetricsGet(&raw mut *request), 0);
        request.metrics[0].value
    }
}

#[test]
fn mig_devices_of_gpu_are_reported() {
    run_with_library(
        "mig::mig_devices_of_gpu_are_reported",
        MIG_SCENARIO,
        &[],
        |library| {
            let lib = open_library(library);
            let (device, whole) = (
                initialize_and_open_gpu(&lib, 0),
                initialize_and_open_gpu(&lib, 1),
            );
            let (two, one) = (
                mig_device_at(&lib, device, 0).unwrap(),
                mig_device_at(&lib, device, 1).unwrap(),
            );
            assert_eq!(mig_device_at(&lib, device, 2), Err(NOT_FOUND));
            assert_eq!(mig_device_at(&lib, device, 7), Err(INVALID_ARGUMENT));
            assert_eq!(mig_device_at(&lib, whole, 0), Err(NOT_FOUND));

            let expected = load_world(MIG_SCENARIO).state(0, 0).mig;
            // SAFETY: the handles come from the library, and every pointer outlives its call.
            unsafe {
                for (handle, own) in [(two, &expected[0]), (one, &expected[1])] {
                    assert_eq!(
                        read_text(|to, room| lib.nvmlDeviceGetUUID(handle, to, room)),
                        own.uuid
                    );
                    assert_eq!(
                        read_text(|to, room| lib.nvmlDeviceGetName(handle, to, room)),
                        own.name
                    );
                    let (mut gi, mut ci, mut is_mig, mut back) = (99, 99, 99, ptr::null_mut());
                    assert_eq!(lib.nvmlDeviceGetGpuInstanceId(handle, &raw mut gi), 0);
                    assert_eq!(lib.nvmlDeviceGetComputeInstanceId(handle, &raw mut ci), 0);
                    assert_eq!(
                        (gi, ci),
                        (own.instance.gpu_instance, own.instance.compute_instance)
                    );
                    assert_eq!(lib.nvmlDeviceIsMigDeviceHandle(handle, &raw mut is_mig), 0);
                    assert_eq!(is_mig, 1);
                    assert_eq!(
                        lib.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle, &raw mut back),
                        0
                    );
                    assert_eq!(back, device);
                    let mut attributes = zeroed();
                    assert_eq!(
                        lib.nvmlDeviceGetAttributes_v2(handle, &raw mut attributes),
                        0
                    );
                    assert_eq!(attributes.multiprocessorCount, own.slices * 16);
                }
                assert_eq!(expected[1].name, "NVIDIA H200 MIG 1g.18gb");
                let mut memory: nvmlMemory_v2_t = zeroed();
                memory.version = struct_version(&memory, 2);
                assert_eq!(lib.nvmlDeviceGetMemoryInfo_v2(one, &raw mut memory), 0);
                assert_eq!((memory.used, memory.total >> 30), (1 << 30, 16));
                let (mut count, mut processes) = (4, [zeroed(); 4]);
                assert_eq!(
                    lib.nvmlDeviceGetComputeRunningProcesses_v3(
                        one,
                        &raw mut count,
                        processes.as_mut_ptr()
                    ),
                    0
                );
                assert_eq!(
                    (count, processes[0].pid, processes[0].gpuInstanceId),
                    (1, 5, 7)
                );
                count = 4;
                assert_eq!(
                    lib.nvmlDeviceGetComputeRunningProcesses_v3(
                        device,
                        &raw mut count,
                        processes.as_mut_ptr()
                    ),
                    0
                );
                assert_eq!(
                    (count, processes[1].pid, processes[1].gpuInstanceId),
                    (2, 6, 3)
                );

                let mut number = 0;
                assert_eq!(
                    lib.nvmlDeviceGetPowerUsage(one, &raw mut number),
                    NOT_SUPPORTED
                );
                assert_eq!(
                    lib.nvmlDeviceGetUtilizationRates(
                        device,
                        zeroed::<[u32; 2]>().as_mut_ptr().cast()
                    ),
                    NOT_SUPPORTED
                );
                assert_eq!(
                    lib.nvmlDeviceGetEncoderUtilization(device, &raw mut number, &raw mut number),
                    NOT_SUPPORTED
                );
                assert_eq!(lib.nvmlDeviceGetPowerUsage(device, &raw mut number), 0);
                assert_eq!(
                    lib.nvmlDeviceGetMaxMigDeviceCount(device, &raw mut number),
                    0
                );
                assert_eq!(number, 7);
            }
            let near = |percent: f64, expected: f64| (percent - expected).abs() < 0.01;
            assert!(near(sm_percent(&lib, device, Some(7)), 48.0));
            assert!(near(sm_percent(&lib, device, Some(3)), 86.4));
            assert!(near(
                sm_percent(&lib, device, None),
                (50.0 + 2.0 * 90.0) / 7.0 * 0.96
            ));
        },
    );
}

#[test]
fn compute_instances_share_gpu_instance_memory() {
    const SHARED: &str = "[[gpu]]\nindex = 0\nmig = [{ profile = \"1c.3g.71gb\", gpu_instance = 1 \
                          }, { profile = \"2c.3g.71gb\", gpu_instance = 1, compute_instance = 1 }, \
                          { profile = \"4g.71gb\", gpu_instance = 2 }]\n[[process]]\ngpu = 0\npid \
                          = 5\nmemory = \"1 GiB\"\nsm_percent = 50\ngpu_instance = \
                          1\ncompute_instance = 1\n";
    run_with_library(
        "mig::compute_instances_share_gpu_instance_memory",
        SHARED,
        &[],
        |library| {
            let lib = open_library(library);
            let device = initialize_and_open_gpu(&lib, 0);
            let parts = [0, 1, 2].map(|index| mig_device_at(&lib, device, index).unwrap());
            // SAFETY: the handles come from the library, and every pointer outlives its call.
            unsafe {
                let names = parts
                    .map(|handle| read_text(|to, room| lib.nvmlDeviceGetName(handle, to, room)));
                assert_eq!(
                    names,
                    ["1c.3g.71gb", "2c.3g.71gb", "4g.71gb"]
                        .map(|name| format!("NVIDIA H200 MIG {name}"))
                );
                let shares = parts.map(|handle| {
                    let (mut attributes, mut memory): (nvmlDeviceAttributes_t, nvmlMemory_v2_t) =
                        (zeroed(), zeroed());
                    memory.version = struct_version(&memory, 2);
                    assert_eq!(
                        lib.nvmlDeviceGetAttributes_v2(handle, &raw mut attributes),
                        0
                    );
                    assert_eq!(lib.nvmlDeviceGetMemoryInfo_v2(handle, &raw mut memory), 0);
                    let slices = (
                        attributes.gpuInstanceSliceCount,
                        attributes.computeInstanceSliceCount,
                    );
                    (slices, attributes.multiprocessorCount, memory.used >> 30)
                });
                assert_eq!(shares, [((3, 1), 20, 1), ((3, 2), 40, 1), ((4, 4), 64, 0)]);
                let mut count = 4;
                let mut processes = [zeroed(); 4];
                for (handle, inside) in parts.into_iter().zip([0, 1, 0]) {
                    assert_eq!(
                        lib.nvmlDeviceGetComputeRunningProcesses_v3(
                            handle,
                            &raw mut count,
                            processes.as_mut_ptr()
                        ),
                        0
                    );
                    assert_eq!(count, inside);
                    count = 4;
                }
            }
            // Two of seven slices are busy half of the time.
            let whole = sm_percent(&lib, device, None);
            assert!((whole - 50.0 * 2.0 / 7.0 * 0.96).abs() < 0.01, "{whole}");
        },
    );
}

#[test]
fn disabling_mig_removes_mig_devices() {
    run_with_library(
        "mig::disabling_mig_removes_mig_devices",
        MIG_SCENARIO,
        &[],
        |library| {
            let (nvml, lib) = (initialize_nvml(library), open_library(library));
            let device = nvml.device_by_index(0).unwrap();
            let handle = mig_device_at(&lib, initialize_and_open_gpu(&lib, 0), 0).unwrap();
            assert_eq!(device.mig_mode().unwrap().current, 1);
            fails_with!(device.utilization_rates(), NvmlError::NotSupported);
            fails_with!(
                device.process_utilization_stats(None),
                NvmlError::NotSupported
            );
            wait_until("the change of the MIG mode", || {
                device.mig_mode().unwrap().current == 0
            });
            assert!(device.utilization_rates().is_ok());
            let mut id = 0;
            // SAFETY: the pointer outlives the call.
            unsafe {
                assert_eq!(
                    lib.nvmlDeviceGetGpuInstanceId(handle, &raw mut id),
                    INVALID_ARGUMENT
                );
                assert_eq!(
                    lib.nvmlDeviceIsMigDeviceHandle(handle, &raw mut id),
                    INVALID_ARGUMENT
                );
                assert_eq!(
                    lib.nvmlDeviceGetPowerUsage(handle, &raw mut id),
                    INVALID_ARGUMENT
                );
            }
        },
    );
}
