//! Test buckets of GPUs with realistically varying readings.

use gpumon_history::{
    bucket::{Bucket, Device, DeviceBucket},
    span::round_to_four_digits,
};
use gpumon_probe::{
    model::fields::{Field, GPU_FIELDS, HOST_FIELDS, Kind, Unit},
    stat::Stat,
};

/// Returns a pseudorandom number from 0 to 1 that depends only on the seeds.
pub(crate) fn pseudorandom_number(seeds: [u64; 3]) -> f64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for seed in seeds {
        state = (state ^ seed).wrapping_mul(0xff51_afd7_ed55_8ccd);
        state ^= state >> 33;
    }
    (state >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns a field's value in one bucket. It varies by a tenth around a level that changes every
/// ten minutes.
fn make_stat<S>(field: &Field<S>, place: u64, device: u64, at_ms: u64) -> Option<Stat> {
    // Every eighth field is not supported.
    if place % 8 == 7 {
        return None;
    }
    let step = at_ms / 10_000;
    let level = pseudorandom_number([place, device, step / 60]);
    let scale = match field.unit {
        Unit::Percent => 100.0,
        Unit::Bytes => 141e9,
        Unit::Watts => 700.0,
        Unit::Joules | Unit::Seconds | Unit::Count => 8.0,
        Unit::Celsius | Unit::CelsiusDifference => 90.0,
        Unit::Megahertz => 1980.0,
        Unit::BytesPerSecond => 50e9,
    };
    let value = scale * (level * 0.9 + pseudorandom_number([place, device, step]) * 0.1);
    Some(match field.kind {
        Kind::Counter => Stat::from_value((step as f64 * scale * 1000.0).floor() / 1000.0),
        Kind::State => Stat::from_value(value.floor()),
        Kind::Gauge => Stat {
            mean: round_to_four_digits(value),
            min: round_to_four_digits(value * 0.95),
            max: round_to_four_digits(value * 1.04),
        },
    })
}

/// Returns a bucket with `gpus` GPUs.
pub(crate) fn make_bucket(at_ms: u64, gpus: u64) -> Bucket {
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
            .map(|(field, place)| make_stat(field, place, gpu, at_ms))
            .collect(),
    });
    let host = HOST_FIELDS
        .iter()
        .zip(100..)
        .map(|(field, place)| make_stat(field, place, 99, at_ms));
    Bucket {
        at_ms,
        devices: devices.collect(),
        samples: 10,
        host: host.collect(),
        ..Bucket::default()
    }
}
