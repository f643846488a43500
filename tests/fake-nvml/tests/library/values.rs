//! The library reports the values of the scenario.

use std::fmt::Write as _;

use crate::common::{fails_with, initialize_nvml, load_world, run_with_library};
use nvml_wrapper::{
    bitmasks::device::ThrottleReasons,
    enum_wrappers::device::{Clock, PerformanceState, TemperatureSensor},
    enums::device::{SampleValue, UsedGpuMemory},
    error::NvmlError,
    structs::device::FieldId,
};

/// Returns a scenario with eight GPUs whose values are different and constant, so the time of a
/// reading does not matter.
fn eight_gpus_scenario() -> String {
    let mut scenario = String::from("seed = 5\n");
    for index in 0..8 {
        write!(
            scenario,
            "[[gpu]]\nindex = {index}\nutilization_percent = {}\nmemory_used = \"{} \
             GiB\"\npower_watts = {}\ntemperature_celsius = {}\n",
            10 * index,
            10 + index,
            100 + 50 * index,
            40 + index
        )
        .unwrap();
    }
    scenario
}

#[test]
fn eight_gpus_report_scenario_values() {
    run_with_library(
        "values::eight_gpus_report_scenario_values",
        &eight_gpus_scenario(),
        &[],
        |library| {
            let (nvml, world) = (initialize_nvml(library), load_world(&eight_gpus_scenario()));
            assert_eq!(nvml.sys_driver_version().unwrap(), "580.159.04");
            assert_eq!(nvml.sys_nvml_version().unwrap(), "13.580.159.04");
            assert_eq!(nvml.sys_cuda_driver_version().unwrap(), 13_000);
            assert_eq!(nvml.device_count().unwrap(), 8);
            for index in 0..8 {
                let (device, identity) = (
                    nvml.device_by_index(index).unwrap(),
                    world.gpu_identity(index),
                );
                assert_eq!(device.index().unwrap(), index);
                assert_eq!(device.minor_number().unwrap(), index);
                assert_eq!(device.name().unwrap(), "NVIDIA H200");
                assert_eq!(device.uuid().unwrap(), identity.uuid);
                assert_eq!(device.serial().unwrap(), identity.serial);
                let pci = device.pci_info().unwrap();
                assert_eq!(
                    (pci.bus_id, pci.bus),
                    (identity.pci_bus_id.clone(), identity.pci_bus)
                );
                assert_eq!(
                    nvml.device_by_uuid(identity.uuid.as_str())
                        .unwrap()
                        .index()
                        .unwrap(),
                    index
                );
                assert_eq!(
                    nvml.device_by_pci_bus_id(identity.pci_bus_id.as_str())
                        .unwrap()
                        .index()
                        .unwrap(),
                    index
                );

                let state = world.state(index, 1_000);
                let utilization = device.utilization_rates().unwrap();
                assert_eq!(
                    (utilization.gpu, utilization.memory),
                    (10 * index, state.memory_percent)
                );
                assert_eq!(device.encoder_utilization().unwrap().utilization, 0);
                let memory = device.memory_info().unwrap();
                assert_eq!(memory.used, u64::from(10 + index) << 30);
                assert_eq!(
                    (memory.total, memory.reserved),
                    (state.memory_total_bytes, state.memory_reserved_bytes)
                );
                assert_eq!(memory.free, state.memory_free_bytes);
                assert_eq!(device.power_usage().unwrap(), (100 + 50 * index) * 1000);
                assert_eq!(device.enforced_power_limit().unwrap(), 700_000);
                assert_eq!(
                    device
                        .power_management_limit_constraints()
                        .unwrap()
                        .min_limit,
                    200_000
                );
                assert_eq!(
                    device.temperature(TemperatureSensor::Gpu).unwrap(),
                    40 + index
                );
                assert_eq!(device.clock_info(Clock::SM).unwrap(), state.sm_mhz);
                assert_eq!(device.clock_info(Clock::Memory).unwrap(), 3_201);
                assert_eq!(device.max_clock_info(Clock::SM).unwrap(), 1_980);
                assert_eq!(device.performance_state().unwrap(), PerformanceState::Zero);
                assert_eq!(
                    (
                        device.current_pcie_link_gen().unwrap(),
                        device.current_pcie_link_width().unwrap()
                    ),
                    (5, 16)
                );
            }
            let reasons = |index| {
                nvml.device_by_index(index)
                    .unwrap()
                    .current_throttle_reasons()
                    .unwrap()
            };
            assert_eq!(reasons(0), ThrottleReasons::GPU_IDLE);
            assert_eq!(reasons(1), ThrottleReasons::empty());
        },
    );
}

#[test]
fn missing_gpu_is_not_found() {
    run_with_library(
        "values::missing_gpu_is_not_found",
        "gpus = 0",
        &[],
        |library| {
            let nvml = initialize_nvml(library);
            assert_eq!(nvml.device_count().unwrap(), 0);
            fails_with!(nvml.device_by_index(0), NvmlError::InvalidArg);
            fails_with!(
                nvml.device_by_uuid("GPU-00000000-0000-0000-0000-000000000000"),
                NvmlError::NotFound
            );
        },
    );
}

#[test]
fn processes_report_memory_and_utilization() {
    let scenario = "[[process]]\ngpu = 0\npid = 70\nmemory = \"3 GiB\"\nsm_percent = \
                    60\n[[process]]\ngpu = 0\npid = 80\nkind = \
                    \"compute_and_graphics\"\n[[process]]\ngpu = 0\npid = 90\nkind = \
                    \"graphics\"\nmemory = \"1 GiB\"\nsm_percent = 5\n";
    run_with_library(
        "values::processes_report_memory_and_utilization",
        scenario,
        &[],
        |library| {
            let nvml = initialize_nvml(library);
            let device = nvml.device_by_index(0).unwrap();
            let list = |processes: Vec<nvml_wrapper::struct_wrappers::device::ProcessInfo>| {
                processes
                    .into_iter()
                    .map(|process| (process.pid, process.used_gpu_memory))
                    .collect::<Vec<_>>()
            };
            let (three, one) = (UsedGpuMemory::Used(3 << 30), UsedGpuMemory::Used(1 << 30));
            let unknown = UsedGpuMemory::Unavailable;
            assert_eq!(
                list(device.running_compute_processes().unwrap()),
                [(70, three), (80, unknown.clone())]
            );
            assert_eq!(
                list(device.running_graphics_processes().unwrap()),
                [(80, unknown), (90, one)]
            );
            assert_eq!(list(device.mps_running_compute_processes().unwrap()), []);

            let use_of = device.process_utilization_stats(None).unwrap();
            assert_eq!(
                use_of
                    .iter()
                    .map(|sample| (sample.pid, sample.sm_util))
                    .collect::<Vec<_>>(),
                [(70, 60), (90, 5)]
            );
            let to_come = use_of[0].timestamp + 60_000_000;
            fails_with!(
                device.process_utilization_stats(to_come),
                NvmlError::NotFound
            );
        },
    );
}

#[test]
fn processes_are_listed_in_the_scenarios_order() {
    let scenario = "[[process]]\ngpu = 0\npid = 90\nsm_percent = 5\n[[process]]\ngpu = 0\npid = \
                    70\nsm_percent = 5\n[[process]]\ngpu = 0\npid = 80\nsm_percent = 5\n";
    run_with_library(
        "values::processes_are_listed_in_the_scenarios_order",
        scenario,
        &[],
        |library| {
            let nvml = initialize_nvml(library);
            let device = nvml.device_by_index(0).unwrap();
            let pids: Vec<_> = device
                .running_compute_processes()
                .unwrap()
                .iter()
                .map(|own| own.pid)
                .collect();
            assert_eq!(pids, [90, 70, 80]);
            let pids: Vec<_> = device
                .process_utilization_stats(None)
                .unwrap()
                .iter()
                .map(|own| own.pid)
                .collect();
            assert_eq!(pids, [90, 70, 80]);
        },
    );
}

#[test]
fn encoder_use_and_sessions_belong_to_processes() {
    let scenario = "[[process]]\ngpu = 0\npid = 70\nencoder_percent = 30\ndecoder_percent = 4\n\
                    encoder_sessions = [\
                    { fps = 60, latency = \"4 ms\" },\
                    { fps = 30, latency = \"2 ms\" }]\n\
                    [[process]]\ngpu = 0\npid = 80\nencoder_percent = 10\n\
                    encoder_sessions = [{ fps = 24, latency = \"3 ms\" }]\n";
    run_with_library(
        "values::encoder_use_and_sessions_belong_to_processes",
        scenario,
        &[],
        |library| {
            let nvml = initialize_nvml(library);
            let device = nvml.device_by_index(0).unwrap();
            assert_eq!(device.encoder_utilization().unwrap().utilization, 40);
            assert_eq!(device.decoder_utilization().unwrap().utilization, 4);
            let used = device.process_utilization_stats(None).unwrap();
            let used: Vec<_> = used
                .iter()
                .map(|own| (own.pid, own.enc_util, own.dec_util))
                .collect();
            assert_eq!(used, [(70, 30, 4), (80, 10, 0)]);
            let stats = device.encoder_stats().unwrap();
            assert_eq!(
                (
                    stats.session_count,
                    stats.average_fps,
                    stats.average_latency
                ),
                (3, 38, 3_000)
            );
        },
    );
}

#[test]
fn field_values_fail_separately_and_energy_increases() {
    let scenario = "[[gpu]]\nindex = 0\npower_watts = 500";
    run_with_library(
        "values::field_values_fail_separately_and_energy_increases",
        scenario,
        &[],
        |library| {
            let nvml = initialize_nvml(library);
            let device = nvml.device_by_index(0).unwrap();
            let begun = std::time::Instant::now();
            let before = device.total_energy_consumption().unwrap();
            let values = device
                .field_values_for(&[FieldId(82), FieldId(185), FieldId(186), FieldId(91)])
                .unwrap();
            let value = |at: usize| values[at].as_ref().unwrap().value.as_ref().unwrap().clone();
            assert!(
                matches!(value(0), SampleValue::U32(celsius) if (30..60).contains(&celsius)),
                "{:?}",
                value(0)
            );
            assert!(
                matches!(value(1), SampleValue::U32(500_000)),
                "{:?}",
                value(1)
            );
            assert!(
                matches!(value(2), SampleValue::U32(500_000)),
                "{:?}",
                value(2)
            );
            fails_with!(&values[3].as_ref().unwrap().value, NvmlError::NotSupported);

            std::thread::sleep(std::time::Duration::from_millis(600));
            let joules = (device.total_energy_consumption().unwrap() - before) as f64 / 1000.0;
            // The counter grows by 50 J every 100 ms.
            let most = 500.0 * begun.elapsed().as_secs_f64() + 50.5;
            assert!(
                (250.0 - 0.5..=most).contains(&joules),
                "the energy is {joules} J instead of at most {most} J"
            );
        },
    );
}

#[test]
fn missing_features_of_board_are_unsupported() {
    run_with_library(
        "values::missing_features_of_board_are_unsupported",
        "",
        &[],
        |library| {
            let nvml = initialize_nvml(library);
            let device = nvml.device_by_index(0).unwrap();
            fails_with!(device.fan_speed(0), NvmlError::NotSupported);
            fails_with!(
                device.applications_clock(Clock::Video),
                NvmlError::NotSupported
            );
            assert_eq!(device.mig_mode().unwrap().current, 0);
            assert!(device.is_in_persistent_mode().unwrap());
            assert!(device.is_ecc_enabled().unwrap().currently_enabled);
            assert!(!device.is_display_active().unwrap());
        },
    );
}
