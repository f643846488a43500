//! An example machine on which all readings are available and no problems exist.

use gpumon_probe::model::{
    Absence, BatchJob, Clocks, Confidence, Container, ContainerRuntime, CpuSample, DiskSample,
    Driver, Gpu, GpuSample, Health, HostSample, Inventory, LimitClass, LimitEvidence, Limits,
    MemoryKind, MemorySample, NetworkSample, Notebook, Owner, Platform, Power, Process,
    ProcessKind, RamSample, Reading, Sample, Temperature, Utilization, Vendor,
};

pub(crate) const GIB: u64 = 1 << 30;

/// The time of the examples, 09:13:20 UTC.
pub(crate) const NOW_MS: u64 = 1_763_630_000_000;

pub(crate) fn example_inventory(count: u32, name: &str) -> Inventory {
    let gpu = |index| Gpu {
        uuid: Some(format!("GPU-{index}")),
        name: Reading::Now(name.to_owned()),
        pci_bus_id: Reading::Now(format!("00000000:0{index}:00.0")),
        ..Gpu::new_unidentified(index, &Absence::NotSupported)
    };
    let version = |text: &str| Reading::Now(text.to_owned());
    Inventory {
        at_ms: NOW_MS,
        hostname: "node17".to_owned(),
        platform: Platform {
            is_simulated: false,
            drivers: vec![Driver {
                vendor: Vendor::Nvidia,
                version: version("580.159.04"),
                library_version: version("13.580.159.04"),
                cuda_version: version("13.0"),
            }],
        },
        gpus: (0..count).map(gpu).collect(),
        topology: Vec::new(),
        playback: None,
    }
}

/// Returns a sample of `count` GPUs. The load increases slightly from each GPU to the next.
pub(crate) fn example_sample(count: u32) -> Sample {
    Sample {
        seq: 0,
        at_ms: NOW_MS,
        interval_ms: 1000,
        gpus: (0..count).map(example_gpu).collect(),
        host: example_host(),
    }
}

fn example_gpu(index: u32) -> GpuSample {
    let share = f64::from(index % 8 + 1) / 8.0;
    let total = 141 * GIB;
    let used = (share * 130.0 * GIB as f64) as u64;
    let uuid = Some(format!("GPU-{index}"));
    let absent = GpuSample::new_absent(index, uuid, NOW_MS, Health::Ok, &Absence::NotSupported);
    GpuSample {
        utilization: Utilization {
            gpu_percent: Reading::Now((share * 100.0).round()),
            ..absent.utilization
        },
        memory_kind: MemoryKind::Device,
        memory: MemorySample {
            total_bytes: Reading::Now(total),
            used_bytes: Reading::Now(used),
            reserved_bytes: Reading::Now(GIB / 2),
            free_bytes: Reading::Now(total - used),
            ..absent.memory
        },
        power: Power {
            draw_watts: Reading::Now(100.0 + 590.0 * share),
            limit_watts: Reading::Now(700.0),
            ..absent.power
        },
        temperature: Temperature {
            gpu_celsius: Reading::Now(30.0 + 40.0 * share),
            memory_celsius: Reading::Now(75.0),
            ..absent.temperature
        },
        clocks: Clocks {
            graphics_mhz: Reading::Now(1_980),
            sm_mhz: Reading::Now(1_980),
            memory_mhz: Reading::Now(3_201),
            video_mhz: Reading::Now(1_500),
            ..absent.clocks
        },
        throttle_reasons: Reading::Now(Vec::new()),
        mig_devices: Reading::Now(Vec::new()),
        processes: Reading::Now(Vec::new()),
        ..absent
    }
}

/// Returns a compute process that was started a little over two hours before [`NOW_MS`].
/// Returns limits with these shares of causes, in percent. The first cause is the main cause.
pub(crate) fn example_limits(given: &[(LimitClass, f64)]) -> Limits {
    let shares = LimitClass::ALL.map(|class| {
        let share = given.iter().find(|(cause, _)| *cause == class);
        Reading::Now(share.map_or(0.0, |(_, percent)| *percent))
    });
    let evidence = LimitEvidence {
        cpu_percent: Some(100.0),
        tensor_percent: Some(88.0),
        ..LimitEvidence::default()
    };
    Limits::new(1000, shares, given[0].0, Confidence::High, evidence)
}

pub(crate) fn example_process(pid: u32, user: &str, memory_gib: f64, command: &str) -> Process {
    let none = || Reading::Absent(Absence::NotSupported);
    Process {
        pid,
        kind: ProcessKind::Compute,
        memory_bytes: Reading::Now((memory_gib * GIB as f64) as u64),
        sm_percent: Reading::Now(93.0),
        memory_percent: none(),
        encoder_percent: none(),
        decoder_percent: none(),
        name: Reading::Now("python3".to_owned()),
        program: None,
        command: Reading::Now(command.to_owned()),
        user: Reading::Now(user.to_owned()),
        host_memory_bytes: Reading::Now(3 * GIB),
        traced: Reading::Now(false),
        started_ms: Reading::Now(NOW_MS - 8_040_000),
        mig: None,
        mps: false,
        owner: Reading::Now(Owner::default()),
    }
}

/// Returns a notebook's kernel, a step of a Slurm job, and a program in a container.
pub(crate) fn example_processes() -> Vec<Process> {
    let owned = |process: Process, owner: Owner| Process {
        owner: Reading::Now(owner),
        ..process
    };
    let notebook = Notebook {
        kernel_id: "k".to_owned(),
        kernel_name: Some("python3".to_owned()),
        path: Reading::Now("/home/ana/work/train.ipynb".to_owned()),
        kernel_pid: 4312,
    };
    let container = Container {
        runtime: ContainerRuntime::Docker,
        id: "3f2a".repeat(16),
        name: None,
    };
    vec![
        owned(
            example_process(
                5120,
                "bob",
                4.8,
                "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 32768 --dtype \
                 bfloat16",
            ),
            Owner {
                slurm: Some(BatchJob {
                    job_id: "88123".to_owned(),
                    step: None,
                    private: false,
                }),
                ..Owner::default()
            },
        ),
        owned(
            example_process(4312, "ana", 61.0, "python3 -m ipykernel_launcher"),
            Owner {
                notebook: Some(notebook),
                ..Owner::default()
            },
        ),
        owned(
            example_process(777, "carol", 0.02, "python3 eval.py"),
            Owner {
                container: Some(container),
                ..Owner::default()
            },
        ),
    ]
}

fn example_host() -> HostSample {
    fn absent_reading<T>() -> Reading<T> {
        Reading::Absent(Absence::NotSupported)
    }
    let ram = || RamSample {
        total_bytes: absent_reading(),
        used_bytes: absent_reading(),
    };
    HostSample {
        at_ms: NOW_MS,
        cpu: CpuSample {
            count: absent_reading(),
            busy_percent: absent_reading(),
            load_1m: absent_reading(),
        },
        memory: ram(),
        swap: ram(),
        disk: DiskSample {
            read_bytes_total: absent_reading(),
            written_bytes_total: absent_reading(),
            read_bytes_per_second: absent_reading(),
            written_bytes_per_second: absent_reading(),
        },
        network: NetworkSample {
            received_bytes_total: absent_reading(),
            sent_bytes_total: absent_reading(),
            received_bytes_per_second: absent_reading(),
            sent_bytes_per_second: absent_reading(),
        },
    }
}
