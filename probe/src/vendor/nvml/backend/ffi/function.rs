//! NVML's functions, with their names and types from `nvml.h`.
#![allow(
    non_upper_case_globals,
    non_camel_case_types,
    reason = "functions and structures have the names that `nvml.h` gives them"
)]

use std::ffi::{c_int, c_uint, c_ulong, c_ulonglong};

use nvml_wrapper_sys::bindings as sys;

use super::{
    library::Function,
    shapes::{
        Check, List, ListOf, Of, Of2, Of3, Out, Out2, Out3, Out4, Processes, Raw, RetiredPages,
        ShortProcesses, System, SystemOf, SystemText, SystemTextOf, Text, TextOf,
    },
    structures::{RemappedRowsInfo, ShortText, UnrepairableMemory, UntimedPage},
};

/// Expands to the type of an NVML function with the given parameters.
macro_rules! call {
    ($($parameter:ty),*) => { unsafe extern "C" fn($($parameter),*) -> sys::nvmlReturn_t };
}

/// The type of an NVML function that fills in the words of a CPU set.
pub(crate) type CpuSet = call!(sys::nvmlDevice_t, c_uint, *mut c_ulong);
/// The type of an NVML function that waits for an event of an event set.
pub(crate) type WaitCall = call!(sys::nvmlEventSet_t, *mut sys::nvmlEventData_t, c_uint);

macro_rules! functions {
    ($($shape:ty = $symbol:ident;)*) => {
        /// The index of each function's address in [`Library`](super::Library).
        enum Place { $($symbol,)* }

        $(
            #[doc = concat!("`", stringify!($symbol), "`.")]
            // SAFETY: the type is the same as in `nvml.h`, and no other function has this index.
            pub(crate) const $symbol: Function<$shape> = unsafe {
                Function::new(concat!(stringify!($symbol), "\0"), Place::$symbol as usize)
            };
        )*

        /// The number of functions that gpumon can look up.
        pub(super) const PLACES: usize = [$(stringify!($symbol)),*].len();

        /// All NVML functions that gpumon or other programs call. gpumon's fake library exports
        /// these functions. Its scenarios can delay or hide functions, or make them fail.
        pub const FUNCTIONS: &[&str] = &[
            "nvmlInitWithFlags",
            "nvmlShutdown",
            "nvmlErrorString",
            "nvmlSystemGetCudaDriverVersion",
            "nvmlDeviceGetHandleByPciBusId_v2",
            "nvmlDeviceGetHandleBySerial",
            "nvmlDeviceGetHandleByUUID",
            "nvmlDeviceIsMigDeviceHandle",
            "nvmlDeviceGetDeviceHandleFromMigDeviceHandle",
            "nvmlDeviceGetNvLinkErrorCounter",
            $(stringify!($symbol)),*
        ];
    };
}

/// Defines all functions: those in the rows of a query table, and those that appear in no table.
macro_rules! all_functions {
    ($(
        $(#[$doc:meta])*
        $query:ident $(($($argument:ident: $kind:ty),+))?
        $(: $($shape:ident $(<$of:ty>)? = $symbol:ident)|+)? $(=> $method:ident)?
        $(, $attribute:ident $($cost:literal)? $(for $each:expr)?)*;
    )*) => {
        functions! {
            $($($($shape $(<$of>)? = $symbol;)+)?)*

            Raw<call!()> = nvmlInit_v2;
            SystemOf<sys::nvmlDevice_t> = nvmlDeviceGetHandleByIndex_v2;
            Out<c_uint> = nvmlDeviceGetIndex;
            Of<sys::nvmlDevice_t> = nvmlDeviceGetMigDeviceHandleByIndex;
            Raw<call!(c_uint, *mut c_uint, *mut sys::nvmlDevice_t)> = nvmlSystemGetTopologyGpuSet;

            Out<sys::nvmlMemory_v2_t> = nvmlDeviceGetMemoryInfo_v2;
            Out<sys::nvmlFanSpeedInfo_t> = nvmlDeviceGetFanSpeedRPM;
            Of<sys::nvmlViolationTime_t> = nvmlDeviceGetViolationStatus;
            Of2<c_uint> = nvmlDeviceGetClock;
            Raw<call!(sys::nvmlDevice_t, c_int, *mut sys::nvmlFieldValue_t)>
                = nvmlDeviceGetFieldValues;
            Raw<call!(
                sys::nvmlDevice_t, c_uint, c_ulonglong, *mut c_uint, *mut c_uint,
                *mut sys::nvmlSample_t
            )> = nvmlDeviceGetSamples;
            Of<sys::nvmlPciInfo_t> = nvmlDeviceGetNvLinkRemotePciInfo_v2;
            Raw<CpuSet> = nvmlDeviceGetCpuAffinity;
            Raw<call!(sys::nvmlDevice_t, c_uint, *mut c_ulong, c_uint)>
                = nvmlDeviceGetMemoryAffinity;
            Raw<call!(sys::nvmlDevice_t, c_uint, *mut c_uint, *mut sys::nvmlDevice_t)>
                = nvmlDeviceGetTopologyNearestGpus;
            Raw<call!(sys::nvmlDevice_t, sys::nvmlDevice_t, *mut c_uint)>
                = nvmlDeviceGetTopologyCommonAncestor;
            Raw<call!(sys::nvmlDevice_t, sys::nvmlDevice_t, c_uint, *mut c_uint)>
                = nvmlDeviceGetP2PStatus;
            Raw<call!(sys::nvmlDevice_t, *mut sys::nvmlProcessesUtilizationInfo_v1_t)>
                = nvmlDeviceGetProcessesUtilizationInfo;
            Raw<call!(
                sys::nvmlDevice_t, *mut sys::nvmlProcessUtilizationSample_t, *mut c_uint,
                c_ulonglong
            )> = nvmlDeviceGetProcessUtilization;

            Out<c_uint> = nvmlDeviceGetGpuInstanceId;
            Out<c_uint> = nvmlDeviceGetComputeInstanceId;

            Out<sys::nvmlGpmSupport_t> = nvmlGpmQueryDeviceSupport;
            System<sys::nvmlGpmSample_t> = nvmlGpmSampleAlloc;
            Raw<call!(sys::nvmlGpmSample_t)> = nvmlGpmSampleFree;
            Raw<call!(sys::nvmlDevice_t, sys::nvmlGpmSample_t)> = nvmlGpmSampleGet;
            Raw<call!(sys::nvmlDevice_t, c_uint, sys::nvmlGpmSample_t)> = nvmlGpmMigSampleGet;
            Raw<call!(*mut sys::nvmlGpmMetricsGet_t)> = nvmlGpmMetricsGet;

            System<sys::nvmlEventSet_t> = nvmlEventSetCreate;
            Raw<call!(sys::nvmlEventSet_t)> = nvmlEventSetFree;
            Raw<WaitCall> = nvmlEventSetWait_v2;
            Out<c_ulonglong> = nvmlDeviceGetSupportedEventTypes;
            Raw<call!(sys::nvmlDevice_t, c_ulonglong, sys::nvmlEventSet_t)>
                = nvmlDeviceRegisterEvents;
        }
    };
}

macro_rules! after_system_queries {
    ($($rows:tt)*) => { crate::nvml_queries! { all_functions $($rows)* } };
}

crate::nvml_system_queries! { after_system_queries }
