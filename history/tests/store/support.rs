//! Buckets of GPUs whose readings vary like real ones.

use gpumon_history::{
    bucket::{Bucket, Device, DeviceBucket},
    wanted::rounded,
};
use gpumon_probe::{
    model::fields::{Field, GPU_FIELDS, HOST_FIELDS, Kind, Unit},
    stat::Stat,
};

/// Returns a pseudorandom number from 0 to 1 that depends only on the seeds.
pub(crate) fn noise(seeds: [u64; 3]) -> f64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for seed in seeds {
        state = (state ^ seed).wrapping_mul(0xff51_afd7_ed55_8ccd);
        state ^= state >> 33;
    }
    (state >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns the value of a field in one bucket. It varies by a tenth around a level that changes
/// every ten minutes.
fn stat<S>(field: &Field<S>, place: u64, device: u64, at_ms: u64) -> Option<Stat> {
    // One field in eight is not supported.
    if place % 8 == 7 {
        return None;
    }
    let step = at_ms / 10_000;
    let level = noise([place, device, step / 60]);
    let scale = match field.unit {
        Unit::Percent => 100.0,
        Unit::Bytes => 141e9,
        Unit::Watts => 700.0,
        Unit::Joules | Unit::Seconds | Unit::Count => 8.0,
        Unit::Celsius | Unit::CelsiusDifference => 90.0,
        Unit::Megahertz => 1980.0,
        Unit::BytesPerSecond => 50e9,
    };
    let value = scale * (level * 0.9 + noise([place, device, step]) * 0.1);
    Some(match field.kind {
        Kind::Counter => Stat::of((step as f64 * scale * 1000.0).floor() / 1000.0),
        Kind::State => Stat::of(value.floor()),
        Kind::Gauge => Stat {
            mean: rounded(value),
            min: rounded(value * 0.95),
            max: rounded(value * 1.04),
        },
    })
}

/// Returns a bucket of this number of GPUs.
pub(crate) fn bucket(at_ms: u64, gpus: u64) -> Bucket {
    let devices = (0..gpus).map(|gpu| DeviceBucket {
        device: Device {
            uuid: format!("GPU-{gpu:08}-0000-0000-0000-000000000000"),
            index: gpu as u32,
            name: Some("NVIDIA H200".to_owned()),
            parent: None,
        },
        samples: 10,
        stats: GPU_FIELDS
            .iter()
            .zip(0..)
            .map(|(field, place)| stat(field, place, gpu, at_ms))
            .collect(),
    });
    let host = HOST_FIELDS
        .iter()
        .zip(100..)
        .map(|(field, place)| stat(field, place, 99, at_ms));
    Bucket {
        at_ms,
        devices: devices.collect(),
        samples: 10,
        host: host.collect(),
        ..Bucket::default()
    }
}
