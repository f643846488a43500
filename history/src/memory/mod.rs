//! Buckets of the last hours, compressed in memory.

mod column;

use std::{
    collections::{BTreeMap, VecDeque},
    io::{Read, Write},
    mem,
};

use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};

use gpumon_probe::{
    model::fields::{GPU_FIELDS, HOST_FIELDS},
    stat::Stat,
    usage::Period,
};

use crate::{
    bucket::{BUCKET_MS, Bucket, Device, DeviceBucket},
    grid::Grid,
    jobs::JobSpan,
    span::{ConditionSpan, DeviceKind, MetricSelection},
};

/// The time for which buckets are kept, in milliseconds.
pub const REACH_MS: u64 = 6 * 60 * 60 * 1000;

/// The number of buckets in a compressed block: five minutes.
const BUCKETS_PER_BLOCK: usize = 30;

/// The maximum number of buckets. Their number is limited instead of their age, because a limit on
/// age would drop all buckets if the clock was set ahead.
const MAX_BUCKETS: usize = (REACH_MS / BUCKET_MS) as usize;
/// The maximum number of conditions in all compressed blocks. Beyond this limit, the oldest are
/// dropped. The number of values depends only on the number of GPUs, but conditions and jobs grow
/// with every process that starts or ends.
const MAX_CONDITIONS: usize = 4096;
const MAX_JOBS: usize = 8192;

/// The newest buckets, and earlier buckets in compressed blocks.
#[derive(Debug, Default)]
pub struct MemoryTier {
    blocks: VecDeque<Block>,
    newest: Vec<Bucket>,
}

/// A compressed block of buckets.
#[derive(Debug)]
struct Block {
    /// The start and the number of host samples of each bucket.
    times: Vec<(u64, u32)>,
    /// The devices, in the order of their columns.
    devices: Vec<Device>,
    /// The conditions, each with its bucket's position.
    conditions: Vec<(usize, ConditionSpan)>,
    /// The latest state of each job, with its bucket's position.
    jobs: Vec<(usize, JobSpan)>,
    /// The combined usage of all buckets, which is returned with the last bucket.
    usage: Vec<Period>,
    bytes: Box<[u8]>,
}

impl MemoryTier {
    /// Adds a bucket, or merges it with the newest bucket if both have the same start. If there are
    /// then too many buckets, the oldest are dropped. After the clock was set back, the buckets are
    /// not in chronological order.
    pub fn push(&mut self, bucket: Bucket) {
        if let Some(known) = self
            .newest
            .last_mut()
            .filter(|known| known.at_ms == bucket.at_ms)
        {
            return known.merge_later(bucket);
        }
        // Only buckets that follow each other closely share a block, so that blocks can be sorted
        // by time.
        let is_next = |known: &Bucket| {
            (known.at_ms..known.at_ms + BUCKETS_PER_BLOCK as u64 * BUCKET_MS)
                .contains(&bucket.at_ms)
        };
        if self.newest.len() >= BUCKETS_PER_BLOCK || !self.newest.last().is_none_or(is_next) {
            let mut block = Block::pack(&self.newest);
            if let Some(last) = self.blocks.back_mut() {
                block.take_shared_usage(last);
            }
            self.blocks.push_back(block);
            self.newest.clear();
            drop_oldest(
                self.blocks
                    .iter_mut()
                    .rev()
                    .map(|block| &mut block.conditions),
                MAX_CONDITIONS,
            );
            drop_oldest(
                self.blocks.iter_mut().rev().map(|block| &mut block.jobs),
                MAX_JOBS,
            );
        }
        self.newest.push(bucket);
        let mut count = self.newest.len()
            + self
                .blocks
                .iter()
                .map(|block| block.times.len())
                .sum::<usize>();
        while let Some(oldest) = self.blocks.front()
            && count - oldest.times.len() > MAX_BUCKETS
        {
            count -= oldest.times.len();
            self.blocks.pop_front();
        }
    }

    /// Drops buckets that start before `oldest_ms`. A compressed block is dropped once all of its
    /// buckets are older.
    pub fn drop_before(&mut self, oldest_ms: u64) {
        self.blocks.retain(|block| block.last_ms() >= oldest_ms);
        self.newest.retain(|bucket| bucket.at_ms >= oldest_ms);
    }

    /// Removes and returns the buckets of the oldest few minutes. Returns an empty list if there
    /// are no buckets.
    pub fn take_oldest_buckets(&mut self) -> Vec<Bucket> {
        match self.blocks.pop_front() {
            Some(block) => block.unpack(),
            None => std::mem::take(&mut self.newest),
        }
    }

    /// Returns the start of the oldest bucket and the start of the newest bucket.
    pub fn time_range_ms(&self) -> Option<(u64, u64)> {
        let edges = self
            .blocks
            .iter()
            .map(|block| (block.times[0].0, block.last_ms()));
        let of_newest = self
            .newest
            .first()
            .zip(self.newest.last())
            .map(|(first, last)| (first.at_ms, last.at_ms));
        edges
            .chain(of_newest)
            .reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }

    /// Adds the buckets that start at or after `from_ms` to a grid.
    pub fn add_to_grid(&self, grid: &mut Grid, from_ms: u64) {
        let from_ms = from_ms.max(grid.from_ms());
        let wanted = grid.selection().clone();
        // The blocks are sorted because values must be added to a grid in chronological order.
        let mut blocks: Vec<_> = self
            .blocks
            .iter()
            .filter(|block| block.last_ms() >= from_ms)
            .collect();
        blocks.sort_by_key(|block| block.times[0].0);
        let first_ms = self.newest.first().map_or(u64::MAX, |bucket| bucket.at_ms);
        let (before, behind) =
            blocks.split_at(blocks.partition_point(|block| block.times[0].0 <= first_ms));
        for block in before {
            block.add_to_grid(grid, from_ms, &wanted);
        }
        for bucket in self.newest.iter().filter(|bucket| bucket.at_ms >= from_ms) {
            for (owner, samples, stats) in bucket.stat_rows() {
                let metrics = wanted.metrics_for(owner.0).iter();
                let stats = metrics.map(|metric| *stats.get(metric.place)?);
                grid.add_values(owner, bucket.at_ms, samples, stats);
            }
        }
        for block in behind {
            block.add_to_grid(grid, from_ms, &wanted);
        }
    }

    /// Returns the size of the compressed blocks in bytes.
    pub fn packed_bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.bytes.len()).sum()
    }
}

/// Removes the oldest items until the lists have at most `most` items in total. The lists are
/// ordered from newest to oldest; within a list, the oldest item is first.
fn drop_oldest<'a, T: 'a>(lists: impl Iterator<Item = &'a mut Vec<T>>, most: usize) {
    let mut room = most;
    for list in lists {
        if list.len() > room {
            list.drain(..list.len() - room);
            list.shrink_to_fit();
        }
        room -= list.len();
    }
}

impl Block {
    /// Moves usage from the previous block to this block if both have usage in the same period of
    /// 15 minutes, so that the period's owners are stored only once.
    fn take_shared_usage(&mut self, before: &mut Self) {
        let is_shared =
            |period: &mut Period| self.usage.iter().any(|own| own.at_ms == period.at_ms);
        let shared: Vec<_> = before.usage.extract_if(.., is_shared).collect();
        if !shared.is_empty() {
            self.usage = Period::join_all(shared.into_iter().chain(mem::take(&mut self.usage)));
        }
    }

    fn last_ms(&self) -> u64 {
        self.times.last().map_or(0, |(at_ms, _)| *at_ms)
    }

    fn pack(buckets: &[Bucket]) -> Self {
        let mut devices: Vec<Device> = Vec::new();
        for DeviceBucket { device, .. } in buckets.iter().flat_map(|bucket| &bucket.devices) {
            match devices.iter_mut().find(|known| known.uuid == device.uuid) {
                // The latest description of a device is used.
                Some(known) => known.clone_from(device),
                None => devices.push(device.clone()),
            }
        }
        let mut bytes = Vec::new();
        for owner in list_devices_and_host(&devices) {
            let row = |bucket: &'_ Bucket| {
                let mut rows = bucket.stat_rows();
                rows.find_map(|(of, samples, stats)| {
                    (of == owner).then(|| (samples, stats.to_vec()))
                })
            };
            let rows: Vec<_> = buckets.iter().map(row).collect();
            write_columns(&rows, &mut bytes);
        }
        let mut encoder =
            DeflateEncoder::new(Vec::with_capacity(bytes.len() / 2), Compression::default());
        // Writing to a vector cannot fail.
        let packed = encoder
            .write_all(&bytes)
            .and_then(|()| encoder.finish())
            .unwrap_or_default();
        let times = buckets
            .iter()
            .map(|bucket| (bucket.at_ms, bucket.samples))
            .collect();
        // Only the latest state of each condition is kept.
        let mut conditions: Vec<(usize, ConditionSpan)> = Vec::new();
        for (place, bucket) in buckets.iter().enumerate() {
            for condition in &bucket.conditions {
                conditions.retain(|(_, known)| !known.is_same_condition(condition));
                conditions.push((place, condition.clone()));
            }
        }
        // A running job is in every bucket. Only its latest state is kept.
        let jobs: BTreeMap<_, _> = buckets
            .iter()
            .enumerate()
            .flat_map(|(place, bucket)| {
                bucket.jobs.iter().map(move |job| (job.key(), (place, job)))
            })
            .collect();
        let mut jobs: Vec<_> = jobs
            .into_values()
            .map(|(place, job)| (place, job.clone()))
            .collect();
        jobs.sort_by_key(|(place, _)| *place);
        let usage = Period::join_all(
            buckets
                .iter()
                .flat_map(|bucket| bucket.usage.iter().cloned()),
        );
        Self {
            times,
            devices,
            conditions,
            jobs,
            usage,
            bytes: packed.into_boxed_slice(),
        }
    }

    fn unpack(self) -> Vec<Bucket> {
        let all = |device| match device {
            DeviceKind::Gpu | DeviceKind::Mig => (0..GPU_FIELDS.len()).collect(),
            DeviceKind::Host => (0..HOST_FIELDS.len()).collect(),
        };
        // Decoding cannot fail, because this process wrote the bytes.
        let columns = self.unpack_columns(all).unwrap_or_default();
        let Some(((_, of_host), of_devices)) = columns.split_last() else {
            return Vec::new();
        };
        let length = self.times.len();
        let row = |columns: &[Vec<Option<Stat>>], place: usize| {
            columns.iter().map(|column| column[place]).collect()
        };
        let bucket = |(place, (at_ms, samples)): (usize, &(u64, u32))| Bucket {
            at_ms: *at_ms,
            devices: self
                .devices
                .iter()
                .zip(of_devices)
                .filter(|(_, (samples, _))| samples[place] > 0)
                .map(|(device, (samples, columns))| DeviceBucket {
                    device: device.clone(),
                    samples: samples[place],
                    stats: row(columns, place),
                })
                .collect(),
            samples: *samples,
            host: row(of_host, place),
            conditions: items_of_bucket(&self.conditions, place),
            jobs: items_of_bucket(&self.jobs, place),
            usage: if place + 1 == length {
                self.usage.clone()
            } else {
                Vec::new()
            },
        };
        self.times.iter().enumerate().map(bucket).collect()
    }

    /// Decompresses the selected fields of each device. `fields` returns field positions for each
    /// kind of device.
    fn unpack_columns(&self, fields: impl Fn(DeviceKind) -> Vec<usize>) -> Option<Vec<Columns>> {
        let mut bytes = Vec::new();
        let mut decoder = DeflateDecoder::new(&*self.bytes);
        decoder.read_to_end(&mut bytes).ok()?;
        let mut rest = &*bytes;
        list_devices_and_host(&self.devices)
            .map(|(device, _)| read_columns(&mut rest, self.times.len(), &fields(device)))
            .collect()
    }

    fn add_to_grid(&self, grid: &mut Grid, from_ms: u64, wanted: &MetricSelection) {
        let fields = |device| {
            let metrics = wanted.metrics_for(device).iter();
            metrics.map(|metric| metric.place).collect()
        };
        let Some(columns) = self.unpack_columns(fields) else {
            return;
        };
        // Values must be added to a grid in chronological order. The outer loop is therefore over
        // times.
        for (place, (at_ms, _)) in self
            .times
            .iter()
            .enumerate()
            .filter(|(_, (at_ms, _))| *at_ms >= from_ms)
        {
            for (owner, (samples, columns)) in list_devices_and_host(&self.devices)
                .zip(&columns)
                .filter(|(_, (all, _))| all[place] > 0)
            {
                grid.add_values(
                    owner,
                    *at_ms,
                    samples[place],
                    columns.iter().map(|column| column[place]),
                );
            }
        }
    }
}

/// Returns the devices, followed by the host, in the order of their columns.
fn list_devices_and_host(devices: &[Device]) -> impl Iterator<Item = (DeviceKind, &str)> {
    let devices = devices.iter();
    devices
        .map(|device| (device.kind(), &*device.uuid))
        .chain([(DeviceKind::Host, "")])
}

/// Returns the items of the bucket at position `place`.
fn items_of_bucket<T: Clone>(all: &[(usize, T)], place: usize) -> Vec<T> {
    all.iter()
        .filter(|(of, _)| *of == place)
        .map(|(_, span)| span.clone())
        .collect()
}

/// Writes the numbers of samples, and then each column, preceded by its length in bytes.
fn write_columns(rows: &[Option<Row>], bytes: &mut Vec<u8>) {
    let samples = rows.iter().map(|row| row.as_ref().map_or(0, |row| row.0));
    samples.for_each(|samples| column::write_signed(samples.into(), bytes));
    let known = || rows.iter().flatten().map(|(_, stats)| stats.len());
    let count = known().max().unwrap_or_default();
    column::write_signed((count as u64).cast_signed(), bytes);
    let mut own = Vec::new();
    for field in 0..count {
        own.clear();
        let stat = |row: &Option<Row>| *row.as_ref()?.1.get(field)?;
        column::write_column(&rows.iter().map(stat).collect::<Vec<_>>(), &mut own);
        column::write_signed((own.len() as u64).cast_signed(), bytes);
        bytes.extend(&own);
    }
}

/// The number of samples and the values of a device in one bucket.
type Row = (u32, Vec<Option<Stat>>);

type Columns = (Vec<u32>, Vec<Vec<Option<Stat>>>);

/// Reads the columns at the positions in `fields`, and skips all others.
fn read_columns(bytes: &mut &[u8], length: usize, fields: &[usize]) -> Option<Columns> {
    let samples = (0..length)
        .map(|_| Some(column::read_signed(bytes)? as u32))
        .collect::<Option<Vec<_>>>()?;
    let count = column::read_signed(bytes)? as usize;
    let mut columns = vec![vec![None; length]; fields.len()];
    for field in 0..count {
        let own = column::read_signed(bytes)? as usize;
        let (own, rest) = bytes.split_at_checked(own)?;
        *bytes = rest;
        for (column, _) in columns
            .iter_mut()
            .zip(fields)
            .filter(|(_, wanted)| **wanted == field)
        {
            *column = column::read_column(own, length)?;
        }
    }
    Some((samples, columns))
}

#[cfg(test)]
mod tests {
    use gpumon_probe::{
        model::{Condition, ConditionKind, Job, JobKind, Severity},
        usage::{OwnerUsage, UnheldUsage},
    };

    use super::*;

    /// Returns a bucket of a GPU and a MIG device with constant and varying gauges.
    fn make_bucket(at_ms: u64) -> Bucket {
        let wave = (at_ms / 10_000 % 17) as f64;
        let stats = |scale: f64| {
            let stat = |place: usize| match place % 4 {
                0 => None,
                1 => Some(Stat::from_value(80.0)),
                _ => Some(Stat {
                    mean: 500.0 + wave * scale,
                    min: 480.0,
                    max: 600.5,
                }),
            };
            (0..GPU_FIELDS.len()).map(stat).collect()
        };
        let device = |uuid: &str, parent: Option<&str>, scale| DeviceBucket {
            device: Device {
                uuid: uuid.to_owned(),
                parent: parent.map(ToOwned::to_owned),
                ..Device::default()
            },
            samples: 10,
            stats: stats(scale),
        };
        let mut devices = vec![device("GPU-a", None, 1.5)];
        // The MIG device exists during half of the test's time.
        if (at_ms / 100_000).is_multiple_of(2) {
            devices.push(device("MIG-b", Some("GPU-a"), 0.5));
        }
        Bucket {
            at_ms,
            devices,
            samples: 10,
            host: vec![Some(Stat::from_value(3.0)); HOST_FIELDS.len()],
            conditions: if at_ms == 70_000 {
                vec![make_condition()]
            } else {
                Vec::new()
            },
            jobs: if at_ms == 80_000 {
                vec![make_job(at_ms)]
            } else {
                Vec::new()
            },
            usage: Vec::new(),
        }
    }

    fn make_job(to_ms: u64) -> JobSpan {
        let [id, uuid] = ["88123", "GPU-a"].map(str::to_owned);
        JobSpan {
            kind: JobKind::Slurm,
            id,
            name: None,
            user: None,
            uuid,
            from_ms: 75_000,
            to_ms,
            private: false,
        }
    }

    fn make_condition() -> ConditionSpan {
        let kind = ConditionKind::PageRetirementPending;
        let condition = Condition {
            since_ms: 65_000,
            severity: Severity::Warning,
            text: "Pending".to_owned(),
            kind,
        };
        ConditionSpan {
            uuid: "GPU-a".to_owned(),
            from_ms: 65_000,
            to_ms: None,
            condition,
        }
    }

    fn read_span(tier: &MemoryTier, from_ms: u64) -> crate::span::HistorySpan {
        let mut grid = Grid::new(0, u64::MAX, 10_000, MetricSelection::select_all());
        tier.add_to_grid(&mut grid, from_ms);
        grid.into_span(10_000, |_| Device::default())
    }

    #[test]
    fn packed_buckets_equal_original_buckets() {
        let mut tier = MemoryTier::default();
        let mut grid = Grid::new(0, u64::MAX, 10_000, MetricSelection::select_all());
        for at in 1..=100 {
            tier.push(make_bucket(at * 10_000));
            let mut one = MemoryTier::default();
            one.push(make_bucket(at * 10_000));
            one.add_to_grid(&mut grid, 0);
        }
        assert_eq!(
            (tier.blocks.len(), tier.newest.len(), tier.time_range_ms()),
            (3, 10, Some((10_000, 1_000_000)))
        );
        assert_eq!(
            read_span(&tier, 0),
            grid.into_span(10_000, |_| Device::default())
        );
        assert_eq!(read_span(&tier, 455_000).times_ms[0], 460_000);
        let mut at = 0;
        while let part @ [_, ..] = &*tier.take_oldest_buckets() {
            for taken in part {
                at += 1;
                assert_eq!(*taken, make_bucket(at * 10_000));
            }
        }
        assert_eq!(at, 100);
    }

    #[test]
    fn running_job_is_packed_once_with_last_state() {
        let mut tier = MemoryTier::default();
        (10..=40).for_each(|at| {
            tier.push(Bucket {
                jobs: vec![make_job(at * 10_000)],
                ..make_bucket(at * 10_000)
            });
        });
        assert_eq!(tier.blocks.len(), 1);
        let jobs: Vec<_> = tier
            .take_oldest_buckets()
            .into_iter()
            .flat_map(|bucket| bucket.jobs)
            .collect();
        assert_eq!(jobs, [make_job(390_000)]);
    }

    #[test]
    fn usage_is_packed_as_one_sum() {
        let used = |gpu_seconds| Period {
            unheld: UnheldUsage {
                gpu_seconds,
                joules: 0.0,
            },
            ..Period::default()
        };
        let mut tier = MemoryTier::default();
        (1..=40).for_each(|at| {
            tier.push(Bucket {
                usage: vec![used(at as f64)],
                ..make_bucket(at * 10_000)
            });
        });
        let block = tier.take_oldest_buckets();
        assert!(block[..29].iter().all(|bucket| bucket.usage.is_empty()));
        assert_eq!(block[29].usage, [used(465.0)]);
        assert_eq!(tier.take_oldest_buckets()[0].usage, [used(31.0)]);
    }

    #[test]
    fn stored_conditions_and_jobs_are_limited_in_number() {
        let mut tier = MemoryTier::default();
        for at in 1..=1000_u64 {
            let jobs = (0..40).map(|number| JobSpan {
                id: format!("{at}-{number}"),
                ..make_job(at * 10_000)
            });
            let conditions = (0..20).map(|number| ConditionSpan {
                from_ms: at * 100 + number,
                ..make_condition()
            });
            tier.push(Bucket {
                jobs: jobs.collect(),
                conditions: conditions.collect(),
                ..make_bucket(at * 10_000)
            });
        }
        let (conditions, jobs) = tier
            .blocks
            .iter()
            .fold((0, 0), |(conditions, jobs), block| {
                (conditions + block.conditions.len(), jobs + block.jobs.len())
            });
        assert_eq!((conditions, jobs), (MAX_CONDITIONS, MAX_JOBS));
        let newest = tier.blocks.back().unwrap();
        assert_eq!(
            (newest.conditions.len(), newest.jobs.len()),
            (20 * BUCKETS_PER_BLOCK, 40 * BUCKETS_PER_BLOCK),
            "the oldest are dropped"
        );
        assert_eq!(
            tier.blocks
                .iter()
                .map(|block| block.times.len())
                .sum::<usize>(),
            990,
            "values are kept"
        );
    }

    #[test]
    fn condition_that_ends_in_block_is_packed_once() {
        let mut tier = MemoryTier::default();
        (10..=40).for_each(|at| {
            let to_ms = (at == 20).then_some(200_000);
            let conditions = if at % 10 == 0 {
                vec![ConditionSpan {
                    to_ms,
                    ..make_condition()
                }]
            } else {
                Vec::new()
            };
            tier.push(Bucket {
                conditions: if at <= 20 { conditions } else { Vec::new() },
                ..make_bucket(at * 10_000)
            });
        });
        let conditions: Vec<_> = tier
            .take_oldest_buckets()
            .into_iter()
            .flat_map(|bucket| bucket.conditions)
            .collect();
        assert_eq!(
            conditions,
            [ConditionSpan {
                to_ms: Some(200_000),
                ..make_condition()
            }]
        );
    }

    #[test]
    fn usage_of_quarter_hour_is_kept_once() {
        let owner = |job: u64| OwnerUsage {
            user: Some("ana".to_owned()),
            job: Some(Job {
                kind: JobKind::Slurm,
                id: job.to_string(),
                path: None,
                name: None,
                private: false,
            }),
            gpu_seconds: 1.0,
            exclusive_seconds: 0.0,
            active_seconds: 0.0,
            joules: None,
        };
        let mut tier = MemoryTier::default();
        for at in 1..=91 {
            let used = Period {
                owners: (0..100).map(|job| owner(at * 100 + job)).collect(),
                ..Period::default()
            };
            tier.push(Bucket {
                usage: vec![used],
                ..make_bucket(at * 10_000)
            });
        }
        let counts: Vec<_> = tier
            .blocks
            .iter()
            .map(|block| block.usage.iter().map(|own| own.owners.len()).sum())
            .collect();
        assert!(matches!(counts[..], [0, 0, 1..=4096]), "{counts:?}");
        let seconds: f64 = tier.blocks[2].usage[0]
            .owners
            .iter()
            .map(|owner| owner.gpu_seconds)
            .sum();
        assert!((seconds - 9_000.0).abs() < 1e-6, "{seconds}");
    }

    #[test]
    fn late_bucket_is_merged_into_full_block() {
        for count in 1..=40 {
            let mut tier = MemoryTier::default();
            (1..=count).for_each(|at| tier.push(make_bucket(at * 10_000)));
            tier.push(make_bucket(count * 10_000));
            let mut all = Vec::new();
            while let part @ [_, ..] = &*tier.take_oldest_buckets() {
                all.extend_from_slice(part);
            }
            assert_eq!((all.len() as u64, all.last().unwrap().samples), (count, 20));
        }
    }

    #[test]
    fn memory_keeps_six_hours() {
        let mut tier = MemoryTier::default();
        (1..=3000).for_each(|at| tier.push(make_bucket(at * 10_000)));
        let (oldest_ms, newest_ms) = tier.time_range_ms().unwrap();
        let reach_ms = newest_ms - oldest_ms;
        assert!(
            newest_ms == 30_000_000 && (REACH_MS..REACH_MS + 300_000).contains(&reach_ms),
            "{reach_ms}"
        );
        tier.drop_before(29_999_000);
        assert_eq!(
            tier.time_range_ms().map(|(oldest_ms, _)| oldest_ms),
            Some(30_000_000)
        );
    }

    #[test]
    fn clock_change_does_not_lose_buckets() {
        for set_ms in [400 * 24 * 3_600_000, 5_000_000] {
            let mut tier = MemoryTier::default();
            (1001..=1500).for_each(|at| tier.push(make_bucket(at * 10_000)));
            (0..40).for_each(|at| tier.push(make_bucket(set_ms + at * 10_000)));
            // The clock is set back to the correct time.
            (1505..=1600).for_each(|at| tier.push(make_bucket(at * 10_000)));
            let mut grid = Grid::new(0, u64::MAX, 0, MetricSelection::select_all());
            tier.add_to_grid(&mut grid, 0);
            let times = grid.into_span(10_000, |_| Device::default()).times_ms;
            for at in (1001..=1500).chain(1505..=1600) {
                assert!(times.contains(&(at * 10_000)), "{at} after {set_ms}");
            }
            let mut count = 0;
            while let part @ [_, ..] = &*tier.take_oldest_buckets() {
                count += part.len();
            }
            assert_eq!(count, 500 + 40 + 96);
        }
    }
}
