//! Values that change slowly: limits, modes, names and versions.

#![allow(unsafe_code, reason = "what is tested is a C interface")]

use std::{ffi::c_uint, mem::zeroed, ptr};

use crate::common::{
    initialize_and_open_gpu, open_library, run_with_library, struct_version, wait_until,
};
use gpumon_probe::vendor::sim::GpuIdentity;
use nvml_wrapper_sys::bindings::{NvmlLib, nvmlDevice_t, nvmlFieldValue_t, nvmlProcessInfo_v2_t};

const NOT_SUPPORTED: u32 = 3;
const INVALID_ARGUMENT: u32 = 2;
const VERSION_MISMATCH: u32 = 25;

type ListProcesses =
    unsafe extern "C" fn(nvmlDevice_t, *mut c_uint, *mut nvmlProcessInfo_v2_t) -> u32;

/// Queries one value. Returns the code and the value.
macro_rules! get {
    ($lib:expr, $function:ident($($argument:expr),*)) => {{
        // SAFETY: all zeros are valid for every value that NVML writes.
        let mut value = unsafe { zeroed() };
        // SAFETY: the handle comes from the library, and the value outlives the call.
        let code = unsafe { $lib.$function($($argument,)* &raw mut value) };
        (code, value)
    }};
}

fn read_field(lib: &NvmlLib, device: nvmlDevice_t, id: u32, scope: c_uint) -> (u32, u64) {
    // SAFETY: all zeros are a valid field value.
    let mut value: nvmlFieldValue_t = unsafe { zeroed() };
    (value.fieldId, value.scopeId) = (id, scope);
    // SAFETY: the handle comes from the library, and there is one value.
    assert_eq!(
        unsafe { lib.nvmlDeviceGetFieldValues(device, 1, &raw mut value) },
        0
    );
    // SAFETY: these fields are unsigned, and the upper half of a 32-bit value is still zero.
    (value.nvmlReturn, unsafe {
        if value.valueType == 1 {
            value.value.uiVal.into()
        } else {
            value.value.ullVal
        }
    })
}

const FAULTY_GPU: &str = "[[gpu]]\nindex = 0\necc_corrected = 11\necc_uncorrected = 5\npcie_width \
                          = 8\npcie_replays = 7\nremapped_rows = { correctable = 2, uncorrectable \
                          = 1, pending = true, failed = true }\nrecovery_action = \
                          \"drain_p2p\"\nretired_pages = { single_bit = 3, double_bit = 1, pending \
                          = true }\npersistence = false\njpeg_percent = 31\nofa_percent = \
                          32\nencoder_percent = 33\ndecoder_percent = 34\ntemperature_celsius = \
                          70\nfans = 2\n";

#[test]
fn ecc_errors_and_memory_repairs_are_reported() {
    run_with_library(
        "details::ecc_errors_and_memory_repairs_are_reported",
        FAULTY_GPU,
        &[],
        |library| {
            let lib = open_library(library);
            let device = initialize_and_open_gpu(&lib, 0);
            let ecc = |kind, counter| get!(lib, nvmlDeviceGetTotalEccErrors(device, kind, counter));
            assert_eq!(
                [ecc(0, 0), ecc(1, 0), ecc(0, 1), ecc(1, 1)],
                [(0, 11), (0, 5), (0, 13), (0, 6)]
            );
            assert_eq!(ecc(2, 0).0, INVALID_ARGUMENT);
            let at = |place| get!(lib, nvmlDeviceGetMemoryErrorCounter(device, 0, 0, place));
            assert_eq!(
                [at(2), at(7), at(1), at(8)],
                [(0, 9), (0, 2), (NOT_SUPPORTED, 0), (INVALID_ARGUMENT, 0)]
            );

            let mut rows = [9; 4];
            let [correctable, uncorrectable, pending, failed] =
                rows.each_mut().map(|row| &raw mut *row);
            // SAFETY: the handle comes from the library, and the values outlive the call.
            let code = unsafe {
                lib.nvmlDeviceGetRemappedRows(device, correctable, uncorrectable, pending, failed)
            };
            assert_eq!((code, rows), (0, [2, 1, 1, 1]));
            let (code, spare) = get!(lib, nvmlDeviceGetRowRemapperHistogram(device));
            assert_eq!((code, spare.max, spare.high, spare.none), (0, 3_069, 2, 1));

            let (mut count, mut pages) = (0, [0; 4]);
            // SAFETY: the list has room for the count that is passed.
            unsafe {
                let size =
                    lib.nvmlDeviceGetRetiredPages(device, 0, &raw mut count, ptr::null_mut());
                assert_eq!((size, count), (7, 3));
                count = 4;
                assert_eq!(
                    lib.nvmlDeviceGetRetiredPages(device, 1, &raw mut count, pages.as_mut_ptr()),
                    0
                );
                let mut stamps = [0; 4];
                count = 4;
                let (pages, stamps) = (pages.as_mut_ptr(), stamps.as_mut_ptr());
                assert_eq!(
                    lib.nvmlDeviceGetRetiredPages_v2(device, 0, &raw mut count, pages, stamps),
                    0
                );
                assert_eq!((count, *pages % 4_096), (3, 0));
                assert!(*stamps > 1_600_000_000);
            }
            assert_eq!(
                get!(lib, nvmlDeviceGetRetiredPagesPendingStatus(device)),
                (0, 1)
            );
            assert_eq!(read_field(&lib, device, 230, 0), (0, 3));
            assert_eq!(get!(lib, nvmlDeviceGetPcieReplayCounter(device)), (0, 7));
            assert_eq!(get!(lib, nvmlDeviceGetCurrPcieLinkWidth(device)), (0, 8));
            assert_eq!(get!(lib, nvmlDeviceGetMaxPcieLinkWidth(device)), (0, 16));
            assert_eq!(get!(lib, nvmlDeviceGetPersistenceMode(device)), (0, 0));
        },
    );
}

#[test]
fn engine_use_temperature_margin_and_fans_are_reported() {
    run_with_library(
        "details::engine_use_temperature_margin_and_fans_are_reported",
        FAULTY_GPU,
        &[],
        |library| {
            let lib = open_library(library);
            let device = initialize_and_open_gpu(&lib, 0);
            let (mut percents, mut period) = ([0; 4], 0);
            let [jpeg, ofa, encoder, decoder] =
                percents.each_mut().map(|percent| &raw mut *percent);
            // SAFETY: the handle comes from the library, and the values outlive the calls.
            unsafe {
                assert_eq!(
                    lib.nvmlDeviceGetJpgUtilization(device, jpeg, &raw mut period),
                    0
                );
                assert_eq!(
                    lib.nvmlDeviceGetOfaUtilization(device, ofa, &raw mut period),
                    0
                );
                assert_eq!(
                    lib.nvmlDeviceGetEncoderUtilization(device, encoder, &raw mut period),
                    0
                );
                assert_eq!(
                    lib.nvmlDeviceGetDecoderUtilization(device, decoder, &raw mut period),
                    0
                );
            }
            assert_eq!((percents, period), ([31, 32, 33, 34], 166_666));
            // SAFETY: all zeros are valid structures, and they outlive the calls.
            unsafe {
                let mut margin = zeroed();
                assert_eq!(
                    lib.nvmlDeviceGetMarginTemperature(device, &raw mut margin),
                    VERSION_MISMATCH
                );
                margin.version = struct_version(&margin, 1);
                assert_eq!(
                    lib.nvmlDeviceGetMarginTemperature(device, &raw mut margin),
                    0
                );
                assert_eq!(margin.marginTemperature, 17);
                let mut fan = zeroed();
                assert_eq!(
                    lib.nvmlDeviceGetFanSpeedRPM(device, &raw mut fan),
                    VERSION_MISMATCH
                );
                (fan.version, fan.fan) = (struct_version(&fan, 1), 1);
                assert_eq!(
                    (
                        lib.nvmlDeviceGetFanSpeedRPM(device, &raw mut fan),
                        fan.speed
                    ),
                    (0, 78 * 34)
                );
                fan.fan = 2;
                assert_eq!(
                    lib.nvmlDeviceGetFanSpeedRPM(device, &raw mut fan),
                    INVALID_ARGUMENT
                );
            }
            assert_eq!(get!(lib, nvmlDeviceGetNumFans(device)), (0, 2));
            assert_eq!(get!(lib, nvmlDeviceGetFanSpeed_v2(device, 1)), (0, 78));
        },
    );
}

#[test]
fn nvlink_total_is_sum_of_links() {
    let scenario = "gpus = 6\n[[gpu]]\nindex = 0\nutilization_percent = 80\nnvlinks = \
                    18\nnvlinks_down = [3]\n";
    run_with_library(
        "details::nvlink_total_is_sum_of_links",
        scenario,
        &[],
        |library| {
            let lib = open_library(library);
            let (device, bare, far) = (
                initialize_and_open_gpu(&lib, 0),
                initialize_and_open_gpu(&lib, 1),
                initialize_and_open_gpu(&lib, 5),
            );
            wait_until("traffic", || read_field(&lib, device, 138, u32::MAX).1 > 0);
            for id in [138, 139] {
                let all = read_field(&lib, device, id, u32::MAX).1;
                let sum: u64 = (0..18)
                    .map(|link| read_field(&lib, device, id, link).1)
                    .sum();
                let after = read_field(&lib, device, id, u32::MAX).1;
                assert!(
                    (all..=after).contains(&sum),
                    "the sum {sum} is not between {all} and {after}"
                );
            }
            assert_eq!(read_field(&lib, device, 138, 3), (0, 0));
            assert_eq!(read_field(&lib, device, 138, 18).0, INVALID_ARGUMENT);
            assert_eq!(
                (
                    read_field(&lib, device, 164, 2),
                    read_field(&lib, device, 91, 0)
                ),
                ((0, 26_562), (0, 18))
            );
            assert_eq!(
                read_field(&lib, device, 147, 0),
                (0, 17),
                "a link that is down must not report a switch"
            );
            assert_eq!(
                (
                    read_field(&lib, bare, 138, u32::MAX).0,
                    read_field(&lib, bare, 91, 0).0
                ),
                (NOT_SUPPORTED, NOT_SUPPORTED)
            );
            assert_eq!(get!(lib, nvmlDeviceGetNvLinkState(device, 3)), (0, 0));
            assert_eq!(get!(lib, nvmlDeviceGetNvLinkState(device, 4)), (0, 1));
            assert_eq!(
                get!(lib, nvmlDeviceGetNvLinkState(bare, 0)).0,
                NOT_SUPPORTED
            );
            assert_eq!(
                get!(lib, nvmlDeviceGetNvLinkState(device, 18)).0,
                INVALID_ARGUMENT
            );
            assert_eq!(get!(lib, nvmlDeviceGetNvLinkVersion(device, 0)), (0, 6));
            assert_eq!(
                get!(lib, nvmlDeviceGetNvLinkRemoteDeviceType(device, 0)),
                (0, 2)
            );
            let (_, pci) = get!(lib, nvmlDeviceGetNvLinkRemotePciInfo_v2(device, 1));
            assert_eq!((pci.bus, pci.pciDeviceId), (5, 0x22A3_10DE));
            let errors =
                |link, counter| get!(lib, nvmlDeviceGetNvLinkErrorCounter(device, link, counter));
            assert_eq!(
                [errors(3, 0), errors(3, 1), errors(3, 2), errors(3, 3)],
                [(0, 12), (0, 3), (0, 40), (0, 7)]
            );
            assert_eq!(
                [errors(4, 0), errors(3, 4), errors(3, 5)],
                [(0, 0), (NOT_SUPPORTED, 0), (INVALID_ARGUMENT, 0)]
            );
            // SAFETY: all zeros are a valid structure, and it outlives the calls.
            unsafe {
                let mut fabric = zeroed();
                assert_eq!(
                    lib.nvmlDeviceGetGpuFabricInfoV(device, &raw mut fabric),
                    VERSION_MISMATCH
                );
                fabric.version = struct_version(&fabric, 3);
                assert_eq!(
                    lib.nvmlDeviceGetGpuFabricInfoV(bare, &raw mut fabric),
                    NOT_SUPPORTED
                );
                assert_eq!(lib.nvmlDeviceGetGpuFabricInfoV(device, &raw mut fabric), 0);
                assert_eq!((fabric.state, fabric.status), (3, 0));
                assert!(fabric.clusterUuid.iter().any(|byte| *byte != 0));
            }
            let path = |to| get!(lib, nvmlDeviceGetTopologyCommonAncestor(device, to));
            assert_eq!(
                [path(device), path(bare), path(far)],
                [(0, 0), (0, 40), (0, 50)]
            );
            let nowhere = ptr::without_provenance_mut(99);
            assert_eq!(path(nowhere).0, INVALID_ARGUMENT);
        },
    );
}

#[test]
fn board_properties_are_reported() {
    let scenario = "[[gpu]]\nindex = 0\narchitecture = \"turing\"\nretired_pages = { single_bit = \
                    1 }\n[[gpu]]\nindex = 1\ngpm = false\n";
    run_with_library(
        "details::board_properties_are_reported",
        scenario,
        &[],
        |library| {
            let lib = open_library(library);
            let (old, new) = (
                initialize_and_open_gpu(&lib, 0),
                initialize_and_open_gpu(&lib, 1),
            );
            assert_eq!(get!(lib, nvmlDeviceGetArchitecture(old)), (0, 6));
            let (mut major, mut minor) = (0, 0);
            // SAFETY: the handle comes from the library, and the values outlive the call.
            unsafe { lib.nvmlDeviceGetCudaComputeCapability(old, &raw mut major, &raw mut minor) };
            assert_eq!((major, minor), (7, 5));
            for device in [old, new] {
                let (_, support) = get!(lib, nvmlGpmQueryDeviceSupport(device));
                assert_eq!(support.isSupportedDevice, 0);
            }
            let mut row = 0;
            let row = &raw mut row;
            // SAFETY: the handles come from the library, and the value outlives the calls.
            unsafe {
                assert_eq!(
                    lib.nvmlDeviceGetRemappedRows(old, row, row, row, row),
                    NOT_SUPPORTED
                );
                assert_eq!(
                    lib.nvmlDeviceGetRetiredPages(new, 0, row, ptr::null_mut()),
                    NOT_SUPPORTED
                );
                assert_eq!(lib.nvmlDeviceGetMigMode(old, row, row), NOT_SUPPORTED);
            }
            assert_eq!(get!(lib, nvmlDeviceGetNumGpuCores(new)), (0, 16_896));
            assert_eq!(get!(lib, nvmlDeviceGetMemoryBusWidth(new)), (0, 6_144));
            assert_eq!(get!(lib, nvmlDeviceGetNumaNodeId(new)), (0, 0));
            assert_eq!(
                get!(lib, nvmlDeviceGetTemperatureThreshold(new, 3)),
                (0, GpuIdentity::GPU_MAX_CELSIUS)
            );
            assert_eq!(get!(lib, nvmlDeviceGetC2cModeInfoV(new)).0, 0);
            let (code, state) = get!(lib, nvmlSystemGetConfComputeState());
            assert_eq!((code, state.ccFeature, state.devToolsMode), (0, 0, 0));
            let mut text = [0; 64];
            // SAFETY: the buffer has room for 64 bytes.
            assert_eq!(
                unsafe { lib.nvmlDeviceGetBoardPartNumber(new, text.as_mut_ptr(), 64) },
                0
            );
            assert!(text[0] != 0);
        },
    );
}

#[test]
fn throttle_times_and_pcie_bytes_increase() {
    let scenario = "[[gpu]]\nindex = 0\nutilization_percent = 100\nthrottle_reasons = \
                    [\"sw_thermal_slowdown\"]\n";
    run_with_library(
        "details::throttle_times_and_pcie_bytes_increase",
        scenario,
        &[],
        |library| {
            let lib = open_library(library);
            let device = initialize_and_open_gpu(&lib, 0);
            let heat = || get!(lib, nvmlDeviceGetViolationStatus(device, 1)).1;
            wait_until("heat", || heat().violationTime >= 300_000_000);
            assert!(heat().referenceTime > 1_600_000_000_000_000);
            assert_eq!(
                get!(lib, nvmlDeviceGetViolationStatus(device, 0))
                    .1
                    .violationTime,
                0
            );
            assert_eq!(
                get!(lib, nvmlDeviceGetViolationStatus(device, 6)).0,
                INVALID_ARGUMENT
            );
            assert!(
                read_field(&lib, device, 269, 0).1 >= 300_000_000
                    && read_field(&lib, device, 270, 0) == (0, 0)
            );
            // At 2.4 GB/s, the 32-bit counter of bytes wraps around after 1.8 s.
            let bytes = || read_field(&lib, device, 198, 0).1;
            let last = std::cell::Cell::new(bytes());
            wait_until("the wrap of the counter", || {
                bytes() < last.replace(bytes())
            });
            let begun = std::time::Instant::now();
            assert_eq!(
                get!(lib, nvmlDeviceGetPcieThroughput(device, 1)),
                (0, 2_400_000)
            );
            assert!(begun.elapsed().as_millis() >= 20);
            assert_eq!(
                get!(lib, nvmlDeviceGetPcieThroughput(device, 0)),
                (0, 150_000)
            );
        },
    );
}

#[test]
fn ended_processes_keep_their_accounting() {
    let scenario = "[[gpu]]\nindex = 0\naccounting = true\n[[process]]\ngpu = 0\npid = \
                    100\n[[accounted]]\ngpu = 0\npid = 41\ngpu_percent = 80\nmemory_percent = \
                    30\nmax_memory = \"3 GiB\"\nran_s = 12.5\n[[accounted]]\ngpu = 0\npid = \
                    40\nran_s = 1\n";
    run_with_library(
        "details::ended_processes_keep_their_accounting",
        scenario,
        &[],
        |library| {
            let lib = open_library(library);
            let device = initialize_and_open_gpu(&lib, 0);
            let (mut count, mut pids) = (4, [0; 4]);
            // SAFETY: the list has room for the count that is passed.
            let code = unsafe {
                lib.nvmlDeviceGetAccountingPids(device, &raw mut count, pids.as_mut_ptr())
            };
            assert_eq!((code, count, pids), (0, 3, [41, 40, 100, 0]));
            let (code, known) = get!(lib, nvmlDeviceGetAccountingStats(device, 41));
            assert_eq!(
                (
                    code,
                    known.isRunning,
                    known.gpuUtilization,
                    known.memoryUtilization
                ),
                (0, 0, 80, 30)
            );
            assert_eq!((known.maxMemoryUsage, known.time), (3 << 30, 12_500));
            let (code, unknown) = get!(lib, nvmlDeviceGetAccountingStats(device, 40));
            assert_eq!(
                (code, unknown.gpuUtilization, unknown.maxMemoryUsage),
                (0, u32::MAX, u64::MAX)
            );
        },
    );
}

#[test]
fn process_accounting_counts_scenario_processes() {
    let scenario = "gpus = 2\n[[gpu]]\nindex = 0\naccounting = true\n[[process]]\ngpu = 0\npid = \
                    100\ncount = 3\nmemory = \"2 GiB\"\nsm_percent = 20\nmps = \
                    true\n[[process]]\ngpu = 0\npid = 90\nto_s = 0.01\n[[process]]\ngpu = 0\npid = \
                    95\nfrom_s = 900\n";
    run_with_library(
        "details::process_accounting_counts_scenario_processes",
        scenario,
        &[],
        |library| {
            let lib = open_library(library);
            let (device, other) = (
                initialize_and_open_gpu(&lib, 0),
                initialize_and_open_gpu(&lib, 1),
            );
            std::thread::sleep(std::time::Duration::from_millis(20));
            let (mut count, mut pids) = (8, [0; 8]);
            // SAFETY: the list has room for the count that is passed.
            unsafe {
                assert_eq!(
                    lib.nvmlDeviceGetAccountingPids(device, &raw mut count, pids.as_mut_ptr()),
                    0
                );
                assert_eq!(
                    lib.nvmlDeviceGetAccountingPids(other, &raw mut count, pids.as_mut_ptr()),
                    0
                );
                assert_eq!(
                    count, 0,
                    "processes are not counted while accounting is off"
                );
            }
            assert_eq!(pids, [100, 101, 102, 90, 0, 0, 0, 0]);
            let stats = |pid| get!(lib, nvmlDeviceGetAccountingStats(device, pid));
            let (code, running) = stats(102);
            assert_eq!(
                (
                    code,
                    running.isRunning,
                    running.gpuUtilization,
                    running.maxMemoryUsage
                ),
                (0, 1, 20, 2 << 30)
            );
            let (code, ended) = stats(90);
            assert_eq!((code, ended.isRunning, ended.time), (0, 0, 600_010));
            assert_eq!(stats(95).0, 6);
            assert_eq!(get!(lib, nvmlDeviceGetAccountingMode(device)), (0, 1));
            assert_eq!(get!(lib, nvmlDeviceGetAccountingMode(other)), (0, 0));
            assert_eq!(
                get!(lib, nvmlDeviceGetAccountingBufferSize(device)),
                (0, 4_000)
            );

            let mut room = 0;
            // SAFETY: without room, only the count is written, not the list.
            unsafe {
                assert_eq!(
                    lib.nvmlDeviceGetMPSComputeRunningProcesses_v3(
                        device,
                        &raw mut room,
                        ptr::null_mut()
                    ),
                    7
                );
                assert_eq!(room, 3);
                // These two functions are looked up by name, because the bindings only have them
                // with a separate feature.
                let second =
                    |name: &str| lib.__library.get::<ListProcesses>(name.as_bytes()).unwrap();
                let compute = second("nvmlDeviceGetComputeRunningProcesses_v2");
                let graphics = second("nvmlDeviceGetGraphicsRunningProcesses_v2");
                assert_eq!(compute(device, &raw mut room, ptr::null_mut()), 2);
                assert_eq!(graphics(device, &raw mut room, ptr::null_mut()), 0);
            }
        },
    );
}
