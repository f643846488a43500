//! A measurement of the memory used by a six-hour history of eight GPUs.

use crate::support;

use gpumon_history::{
    bucket::{BUCKET_MS, Bucket, Device},
    grid::Grid,
    memory::{MemoryTier, REACH_MS},
    span::MetricSelection,
};

/// Returns a bucket like those of a real GPU: a third of the fields always vary, and the others,
/// such as those of unused engines, are constant for minutes.
fn make_realistic_bucket(at_ms: u64) -> Bucket {
    let (mut bucket, constant) = (
        support::make_bucket(at_ms, 8),
        support::make_bucket(at_ms / 3_600_000 * 3_600_000, 8),
    );
    for (device, constant) in bucket.devices.iter_mut().zip(constant.devices) {
        let parts = device.stats.iter_mut().zip(constant.stats).zip(0..);
        for ((stat, constant), _) in parts.filter(|(_, place)| place % 3 != 0) {
            *stat = constant.map(|stat| gpumon_probe::stat::Stat::from_value(stat.mean));
        }
    }
    bucket
}

#[test]
fn six_hours_use_less_than_3_mb() {
    let mut tier = MemoryTier::default();
    let buckets = REACH_MS / BUCKET_MS;
    (1..=buckets)
        .for_each(|at| tier.push(make_realistic_bucket(1_800_000_000_000 + at * BUCKET_MS)));
    let bytes = tier.packed_bytes();
    let (wanted, _) = MetricSelection::parse_names(["power.draw_watts"].into_iter());
    let mut grid = Grid::new(0, u64::MAX, 4 * BUCKET_MS, wanted);
    tier.add_to_grid(&mut grid, 0);
    let span = grid.into_span(4 * BUCKET_MS, |_| Device::default());
    assert!(bytes < 3_000_000, "{bytes}");
    assert!(span.times_ms.len() >= 540 && span.gpus.len() == 8);
}
