//! Simulated GPUs for tests of the live screen.

use std::{sync::OnceLock, time::Duration};

use gpumon_probe::{
    model::{Health, Process, Reading, Record, Sample},
    owner::CommandLines,
    sampler::{self, OneShotReadings, Options},
    vendor::SourceChoice,
};

use super::model::{Model, Update};

pub(super) fn sample_simulated_gpus(gpus: u32) -> OneShotReadings {
    let source = SourceChoice::Sim(gpus)
        .open(&gpumon_probe::vendor::Roots::default())
        .unwrap();
    let options = Options {
        details: true,
        ..Options::new(Duration::from_secs(1), CommandLines::All)
    };
    // If other tests keep the machine busy, the first sample may not include every GPU. Samples are
    // therefore taken until one includes every GPU.
    let mut moments = (0..20).map(|_| sampler::sample_once(&source, &options).unwrap());
    moments
        .find(|moment| {
            moment
                .sample
                .gpus
                .iter()
                .all(|gpu| gpu.health == Health::Ok)
        })
        .expect("GPUs are opened")
}

pub(super) fn simulated_sample(gpus: u32) -> Sample {
    static ONE_GPU_SAMPLE: OnceLock<Sample> = OnceLock::new();
    if gpus == 1 {
        ONE_GPU_SAMPLE
            .get_or_init(|| sample_simulated_gpus(1).sample)
            .clone()
    } else {
        sample_simulated_gpus(gpus).sample
    }
}

/// Returns a model with one minute of samples from simulated GPUs. Each GPU is used by two
/// processes that use no other GPU.
pub(super) fn simulated_model(gpus: u32) -> Model {
    let OneShotReadings {
        inventory,
        mut sample,
        details,
        ..
    } = sample_simulated_gpus(gpus);
    let template = example_processes(8);
    for gpu in &mut sample.gpus {
        let own = template
            .iter()
            .skip(gpu.index as usize % 4 * 2)
            .take(2)
            .cloned();
        let own = own.map(|process| Process {
            pid: process.pid + 10 * gpu.index,
            ..process
        });
        gpu.processes = Reading::Now(own.collect());
    }
    let mut model = Model::default();
    model.ingest(Update::Record(Box::new(Record::Inventory(inventory))));
    for details in details {
        model.ingest(Update::Record(Box::new(Record::Details(details))));
    }
    let now = sample.at_ms;
    for second in (0..60).rev() {
        let mut earlier = sample.clone();
        earlier.at_ms = now - second * 1000;
        for gpu in &mut earlier.gpus {
            gpu.at_ms = earlier.at_ms;
            gpu.utilization.gpu_percent = Reading::Now(f64::from(
                (second * 13 + u64::from(gpu.index) * 29) as u32 % 101,
            ));
        }
        model.ingest(Update::Record(Box::new(Record::Sample(earlier))));
    }
    model
}

/// Returns processes whose values differ in every column by which the list can be sorted.
pub(super) fn example_processes(count: u32) -> Vec<Process> {
    let users = ["ana", "bob", "chen"];
    let commands = [
        "python train.py --bf16",
        "vllm serve llama",
        "python eval.py",
        "./simulate --steps 1000000",
    ];
    (0..count)
        .map(|number| {
            let command = commands[number as usize % commands.len()];
            Process {
                pid: 4000 + number * 7,
                kind: gpumon_probe::model::ProcessKind::Compute,
                memory_bytes: Reading::Now(u64::from(number * 37 % 11 + 1) << 30),
                sm_percent: Reading::Now(f64::from(number * 29 % 100)),
                memory_percent: Reading::Now(f64::from(number * 17 % 100)),
                encoder_percent: Reading::Now(0.0),
                decoder_percent: Reading::Now(0.0),
                name: Reading::Now(command.split(' ').next_back().unwrap_or(command).to_owned()),
                program: None,
                command: Reading::Now(command.to_owned()),
                user: Reading::Now(users[number as usize % users.len()].to_owned()),
                host_memory_bytes: Reading::Now((5 << 30) - (u64::from(number) << 29)),
                traced: Reading::Now(false),
                started_ms: Reading::Now(1_700_000_000_000 + u64::from(number) * 60_000),
                mig: None,
                mps: false,
                owner: Reading::Now(gpumon_probe::model::Owner::default()),
            }
        })
        .collect()
}
