//! The GPUs now.

use gpumon_probe::{
    model::{Absence, Activity, Gpu, GpuSample, MigSample, Reading},
    vendor::ReadDepth,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    names::ConditionAnswer,
    sources::{Origin, Sources},
    tool::Tool,
};
use crate::{
    describe::{self, Context},
    exit::Failure,
    snapshot::Need,
};

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Status {
    /// Only these GPUs, by index; all of them if omitted.
    gpus: Option<Vec<u32>>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StatusAnswer {
    #[serde(flatten)]
    origin: Origin,
    gpus: Vec<GpuStatus>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct GpuStatus {
    /// The driver's index.
    index: u32,
    name: Reading<String>,
    uuid: Option<String>,
    /// In one line: utilization, memory, power and temperature.
    summary: String,
    /// What is to be said of it, what matters most first; empty where all is as it should be.
    state: Vec<String>,
    /// `ok`, `asleep` (to save power), `hung` (the driver does not answer), `lost` (off the bus) or `failed`.
    health: &'static str,
    /// Time in which any kernel ran. It does not tell how much of the GPU that kernel used: see `sm_active_percent`.
    utilization_percent: Reading<f64>,
    /// Multiprocessors that had work.
    sm_active_percent: Reading<f64>,
    memory_used_bytes: Reading<u64>,
    memory_free_bytes: Reading<u64>,
    memory_total_bytes: Reading<u64>,
    power_draw_watts: Reading<f64>,
    power_limit_watts: Reading<f64>,
    temperature_celsius: Reading<f64>,
    conditions: Vec<ConditionAnswer>,
    /// Its MIG devices, where it is divided.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mig_devices: Vec<MigStatus>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct MigStatus {
    uuid: String,
    memory_used_bytes: Reading<u64>,
    memory_total_bytes: Reading<u64>,
    sm_active_percent: Reading<f64>,
}

impl Tool for Status {
    const NAME: &'static str = "gpu_status";
    const TITLE: &'static str = "GPUs now";
    type Answer = StatusAnswer;

    fn description() -> String {
        "What each GPU of this machine does now: utilization, memory, power, temperature, health, and what is the \
         matter with it. Use it to find out whether a GPU is busy, free, throttled or broken, or which one to use."
            .to_owned()
    }

    fn answer(self, sources: &Sources) -> Result<StatusAnswer, Failure> {
        let snapshot = sources.snapshot(Need::Nothing, ReadDepth::Full, self.gpus.as_deref())?;
        let context = Context {
            now_ms: snapshot.sample.at_ms,
            is_one_shot: snapshot.is_single,
        };
        let known = |index| {
            snapshot
                .inventory
                .gpus
                .iter()
                .find(|gpu| gpu.index == index)
        };
        let gpus = snapshot
            .sample
            .gpus
            .iter()
            .map(|gpu| status(gpu, known(gpu.index), context))
            .collect();
        Ok(StatusAnswer {
            origin: Origin::of(&snapshot),
            gpus,
        })
    }
}

fn status(gpu: &GpuSample, known: Option<&Gpu>, context: Context) -> GpuStatus {
    GpuStatus {
        index: gpu.index,
        name: known.map_or(Reading::Absent(Absence::Unknown), |known| {
            known.name.clone()
        }),
        uuid: gpu.uuid.clone(),
        summary: summary(gpu, known),
        state: describe::of_gpu(gpu, context)
            .into_iter()
            .map(|phrase| phrase.long)
            .collect(),
        health: gpu.health.word(),
        utilization_percent: gpu.utilization.gpu_percent.clone(),
        sm_active_percent: sm_active(&gpu.activity),
        memory_used_bytes: gpu.memory.used_bytes.clone(),
        memory_free_bytes: gpu.memory.free_bytes.clone(),
        memory_total_bytes: gpu.memory.total_bytes.clone(),
        power_draw_watts: gpu.power.draw_watts.clone(),
        power_limit_watts: gpu.power.limit_watts.clone(),
        temperature_celsius: gpu.temperature.gpu_celsius.clone(),
        conditions: gpu.conditions.iter().map(ConditionAnswer::from).collect(),
        mig_devices: gpu
            .mig_devices
            .value()
            .into_iter()
            .flatten()
            .map(mig_status)
            .collect(),
    }
}

fn mig_status(mig: &MigSample) -> MigStatus {
    MigStatus {
        uuid: mig.uuid.clone(),
        memory_used_bytes: mig.memory.used_bytes.clone(),
        memory_total_bytes: mig.memory.total_bytes.clone(),
        sm_active_percent: sm_active(&mig.activity),
    }
}

fn sm_active(activity: &Reading<Activity>) -> Reading<f64> {
    match activity {
        Reading::Now(activity) => activity.sm_percent.clone(),
        Reading::Earlier { value, at_ms } => value.sm_percent.clone().dated(*at_ms),
        Reading::Absent(why) => Reading::Absent(why.clone()),
    }
}

/// `GPU 0, NVIDIA H200: 93 % busy, 78.2/140 GiB, 692/700 W, 64 °C`.
fn summary(gpu: &GpuSample, known: Option<&Gpu>) -> String {
    let name = known
        .and_then(|known| known.name.value())
        .map_or("unknown GPU", String::as_str);
    let (memory, power) = (&gpu.memory, &gpu.power);
    let used = memory
        .used_bytes
        .value()
        .map(|used| describe::used_of(*used, memory.total_bytes.value().copied()));
    let draw = power
        .draw_watts
        .value()
        .map(|draw| describe::draw_of(*draw, power.limit_watts.value().copied()));
    let celsius = gpu
        .temperature
        .gpu_celsius
        .value()
        .map(|celsius| format!("{celsius:.0} °C"));
    let busy = Some(format!("{} busy", describe::busy(gpu)));
    let parts: Vec<_> = [busy, used, draw, celsius].into_iter().flatten().collect();
    format!("GPU {}, {name}: {}", gpu.index, parts.join(", "))
}
