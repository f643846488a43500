//! Aggregation of samples into buckets of ten seconds.

use std::collections::BTreeMap;

use gpumon_probe::{
    model::{
        Inventory, Sample,
        fields::{Field, GPU_FIELDS, HOST_FIELDS, Kind},
    },
    stat::{Stat, Window},
    usage::Period,
};

use crate::{
    grid::field_stat,
    jobs::{JobSpan, Jobs},
    span::{ConditionSpan, DeviceKind, Metric},
};

/// The length of a bucket in milliseconds.
pub const BUCKET_MS: u64 = 10_000;

/// The aggregated readings of a period of ten seconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bucket {
    /// The start of the bucket, a multiple of [`BUCKET_MS`].
    pub at_ms: u64,
    /// The GPUs and MIG devices that were read.
    pub devices: Vec<DeviceBucket>,
    /// The number of host samples.
    pub samples: u32,
    /// The host's values, in the order of `HOST_FIELDS`.
    pub host: Vec<Option<Stat>>,
    /// The conditions that began, ended or changed during the bucket's ten seconds.
    pub conditions: Vec<ConditionSpan>,
    /// The jobs on each device, with the times at which they were seen.
    pub jobs: Vec<JobSpan>,
    /// The usage that was recorded for each owner since the previous bucket. No usage is counted in
    /// two buckets.
    pub usage: Vec<Period>,
}

/// The part of a bucket that belongs to one device.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceBucket {
    pub device: Device,
    /// The number of samples of the device.
    pub samples: u32,
    /// The device's values, in the order of `GPU_FIELDS`.
    pub stats: Vec<Option<Stat>>,
}

impl Bucket {
    /// Returns a row for each device and for the host: the device's kind and UUID, the number of
    /// samples, and the values.
    pub(crate) fn stat_rows(
        &self,
    ) -> impl Iterator<Item = ((DeviceKind, &str), u32, &[Option<Stat>])> {
        let of_devices = self.devices.iter().map(|of| {
            let owner = (of.device.kind(), &*of.device.uuid);
            (owner, of.samples, &*of.stats)
        });
        of_devices.chain([((DeviceKind::Host, ""), self.samples, &*self.host)])
    }

    /// Merges `later`, a bucket with newer readings for the same ten seconds, into this bucket.
    pub(crate) fn merge_later(&mut self, later: Self) {
        for device in later.devices {
            match self
                .devices
                .iter_mut()
                .find(|known| known.device.uuid == device.device.uuid)
            {
                Some(known) => {
                    let before = (known.samples, std::mem::take(&mut known.stats));
                    (known.samples, known.stats) =
                        join_stats(DeviceKind::Gpu, before, device.samples, &device.stats);
                }
                None => self.devices.push(device),
            }
        }
        let before = (self.samples, std::mem::take(&mut self.host));
        (self.samples, self.host) =
            join_stats(DeviceKind::Host, before, later.samples, &later.host);
        self.conditions.extend(later.conditions);
        self.jobs.extend(later.jobs);
        self.usage.extend(later.usage);
    }
}

/// Merges earlier and later statistics, weighted by their numbers of samples.
pub(crate) fn join_stats(
    of: DeviceKind,
    (before, known): (u32, Vec<Option<Stat>>),
    samples: u32,
    stats: &[Option<Stat>],
) -> (u32, Vec<Option<Stat>>) {
    let parts = of.metrics().iter().zip(known).zip(stats);
    let joined = parts.map(|((metric, known), stat)| {
        let mut window = Window::default();
        if let Some(known) = known {
            window.merge(known, f64::from(before.max(1)));
        }
        if let Some(stat) = stat {
            window.merge(*stat, f64::from(samples.max(1)));
        }
        field_stat(&window, metric.kind)
    });
    (before + samples, joined.collect())
}

/// A GPU or MIG device that has a history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Device {
    pub uuid: String,
    /// The index that the driver uses. MIG devices are numbered within their GPU.
    pub index: u32,
    /// The name of a GPU or the profile of a MIG device, if the driver has reported it.
    pub name: Option<String>,
    /// The UUID of the GPU that contains the MIG device.
    pub parent: Option<String>,
}

impl Device {
    pub(crate) fn kind(&self) -> DeviceKind {
        match self.parent {
            Some(_) => DeviceKind::Mig,
            None => DeviceKind::Gpu,
        }
    }
}

/// Aggregates samples into buckets.
#[derive(Debug, Default)]
pub struct Buckets {
    at_ms: u64,
    /// The time of the previous sample.
    sampled_ms: Option<u64>,
    gpus: BTreeMap<String, Totals>,
    mig_devices: BTreeMap<String, Totals>,
    host: Totals,
    devices: BTreeMap<String, Device>,
    conditions: ConditionLog,
    jobs: Jobs,
}

#[derive(Debug, Default)]
struct Totals {
    samples: u32,
    fields: Vec<FieldTotal>,
}

/// The running total of one field. If a value is read less often than samples are taken, the value
/// counts for all samples since the previous reading.
#[derive(Debug, Clone, Copy, Default)]
struct FieldTotal {
    total: Window,
    /// The number of samples since the last new value.
    waiting: u32,
    known: Option<f64>,
}

impl Buckets {
    /// Replaces the devices' names and indexes with those in the inventory.
    pub fn set_inventory(&mut self, inventory: &Inventory) {
        self.devices.clear();
        for gpu in &inventory.gpus {
            let Some(uuid) = &gpu.uuid else { continue };
            let mut add = |uuid: &String, index, name: Option<&String>, parent: Option<&String>| {
                let device = Device {
                    uuid: uuid.clone(),
                    index,
                    name: name.cloned(),
                    parent: parent.cloned(),
                };
                self.devices.insert(uuid.clone(), device);
            };
            add(uuid, gpu.index, gpu.name.value(), None);
            for mig in &gpu.mig_devices {
                add(&mig.uuid, mig.index, mig.profile.value(), Some(uuid));
            }
        }
    }

    pub fn find_device(&self, uuid: &str) -> Option<&Device> {
        self.devices.get(uuid)
    }

    /// Adds a sample. Returns the previous bucket if the sample begins a new one.
    pub fn push(&mut self, sample: &Sample) -> Option<Bucket> {
        let at_ms = sample.at_ms / BUCKET_MS * BUCKET_MS;
        let ended = if at_ms == self.at_ms {
            None
        } else {
            self.end_bucket()
        };
        self.at_ms = at_ms;
        // A value that was read before the first sample does not count as new, because no bucket
        // covers that time.
        let since_ms = self
            .sampled_ms
            .replace(sample.at_ms)
            .unwrap_or(sample.at_ms);
        self.host.add(HOST_FIELDS, |field| {
            let (value, is_new) = field.access.value_and_freshness(&sample.host, since_ms)?;
            Some((value, is_new && sample.host.at_ms > since_ms))
        });
        // A hung GPU's samples repeat its last readings, which have already been added.
        let is_new = |at_ms: u64| at_ms + 2 * u64::from(sample.interval_ms) >= sample.at_ms;
        for gpu in sample.gpus.iter().filter(|gpu| is_new(gpu.at_ms)) {
            let Some(uuid) = &gpu.uuid else { continue };
            get_or_insert(&mut self.devices, uuid, || Device {
                uuid: uuid.clone(),
                index: gpu.index,
                ..Device::default()
            });
            get_or_insert(&mut self.gpus, uuid, Totals::default).add(GPU_FIELDS, |field| {
                field.access.value_and_freshness(gpu, since_ms)
            });
            for mig in gpu.mig_devices.items() {
                get_or_insert(&mut self.devices, &mig.uuid, || Device {
                    uuid: mig.uuid.clone(),
                    parent: Some(uuid.clone()),
                    ..Device::default()
                });
                let totals = get_or_insert(&mut self.mig_devices, &mig.uuid, Totals::default);
                totals.add(GPU_FIELDS, |field| {
                    field.mig?.value_and_freshness(mig, since_ms)
                });
            }
        }
        self.conditions.record_conditions(sample);
        self.jobs.push(sample);
        ended
    }

    /// Ends and returns the current bucket if its ten seconds are over at `now_ms`. If a sample of
    /// these ten seconds arrives later, it starts another bucket with the same start time.
    pub fn end_bucket_if_over(&mut self, now_ms: u64) -> Option<Bucket> {
        if now_ms < self.at_ms + BUCKET_MS {
            None
        } else {
            self.end_bucket()
        }
    }

    /// Ends the current bucket and returns it, or `None` if it has no samples.
    pub fn end_bucket(&mut self) -> Option<Bucket> {
        let host = std::mem::take(&mut self.host);
        let taken = |map: &mut BTreeMap<String, Totals>| std::mem::take(map).into_iter();
        let all = taken(&mut self.gpus).chain(taken(&mut self.mig_devices));
        let devices = all.filter_map(|(uuid, totals)| {
            let device = self.devices.get(&uuid)?.clone();
            Some(DeviceBucket {
                device,
                samples: totals.samples,
                stats: totals.field_stats(DeviceKind::Gpu.metrics()),
            })
        });
        let devices = devices.collect();
        (host.samples > 0).then(|| Bucket {
            at_ms: self.at_ms,
            devices,
            samples: host.samples,
            host: host.field_stats(DeviceKind::Host.metrics()),
            conditions: std::mem::take(&mut self.conditions.changed),
            jobs: self.jobs.take_changed_jobs(),
            usage: Vec::new(),
        })
    }

    /// Returns the jobs in memory, with their devices and times.
    pub fn jobs(&self) -> impl Iterator<Item = &JobSpan> {
        self.jobs.all()
    }

    /// Returns the conditions in memory that overlap the given span.
    pub fn conditions(&self, from_ms: u64, to_ms: u64) -> impl Iterator<Item = &ConditionSpan> {
        let all = self.conditions.past.iter().chain(&self.conditions.open);
        all.filter(move |span| span.from_ms <= to_ms && span.to_ms.is_none_or(|end| end >= from_ms))
    }
}

/// Returns the entry of a map, which is created if it is missing. An existing entry is found
/// without a copy of the key.
pub(crate) fn get_or_insert<'a, T>(
    map: &'a mut BTreeMap<String, T>,
    key: &str,
    new: impl FnOnce() -> T,
) -> &'a mut T {
    if !map.contains_key(key) {
        map.insert(key.to_owned(), new());
    }
    map.get_mut(key).expect("the entry was just inserted")
}

impl Totals {
    /// Adds each field's value. `read` returns a field's value, and whether it is new.
    fn add<S>(&mut self, fields: &[Field<S>], read: impl Fn(&Field<S>) -> Option<(f64, bool)>) {
        self.samples += 1;
        self.fields.resize(fields.len(), FieldTotal::default());
        for (total, field) in self.fields.iter_mut().zip(fields) {
            if let Some((value, is_new)) = read(field).filter(|(value, _)| value.is_finite()) {
                total.add(value, is_new);
            }
        }
    }

    fn field_stats(&self, metrics: &[Metric]) -> Vec<Option<Stat>> {
        let totals = self.fields.iter().zip(metrics);
        totals
            .map(|(total, metric)| total.bucket_stat(metric.kind))
            .collect()
    }
}

impl FieldTotal {
    fn add(&mut self, value: f64, is_new: bool) {
        self.waiting += 1;
        self.known = Some(value);
        if is_new {
            self.total.add(value, f64::from(self.waiting));
            self.waiting = 0;
        }
    }

    /// Returns the statistics of the bucket. If no value was read during the bucket, returns those
    /// of the last known value.
    fn bucket_stat(&self, kind: Kind) -> Option<Stat> {
        field_stat(&self.total, kind).or(self.known.map(Stat::from_value))
    }
}

/// The maximum number of ended conditions that are kept in memory.
const MAX_PAST_CONDITIONS: usize = 256;

/// The conditions in the samples so far, with their start and end times.
#[derive(Debug, Default)]
struct ConditionLog {
    open: Vec<ConditionSpan>,
    past: std::collections::VecDeque<ConditionSpan>,
    /// The conditions that have begun, ended or changed since this list was last moved to a bucket.
    changed: Vec<ConditionSpan>,
}

impl ConditionLog {
    /// Sets the current conditions of each GPU, and records which conditions began, ended or
    /// changed.
    fn record_conditions(&mut self, sample: &Sample) {
        let mut before = std::mem::take(&mut self.open);
        for gpu in &sample.gpus {
            let Some(uuid) = &gpu.uuid else { continue };
            for condition in &gpu.conditions {
                let span = ConditionSpan {
                    uuid: uuid.clone(),
                    from_ms: condition.since_ms,
                    to_ms: None,
                    condition: condition.clone(),
                };
                let known = before
                    .iter()
                    .position(|known| known.is_same_condition(&span))
                    .map(|place| before.swap_remove(place));
                if known.is_none_or(|known| known.condition.severity != condition.severity) {
                    self.changed.push(span.clone());
                }
                self.open.push(span);
            }
        }
        for mut over in before {
            over.to_ms = Some(sample.at_ms);
            self.changed.push(over.clone());
            self.past.push_back(over);
        }
        self.past
            .drain(..self.past.len().saturating_sub(MAX_PAST_CONDITIONS));
        // The list must not grow without limit if the changed conditions are never taken for a
        // bucket. Dropped conditions that are still open are listed again when they end.
        let many = self.changed.len().saturating_sub(MAX_PAST_CONDITIONS);
        self.changed.drain(..many);
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::{
        host::HostReader,
        model::{Absence, Condition, ConditionKind, GpuSample, Health, Reading, Severity},
    };

    use super::*;

    fn make_sample(at_ms: u64, watts: f64, conditions: &[u64]) -> Sample {
        let mut gpu = GpuSample::new_absent(
            3,
            Some("GPU-a".to_owned()),
            at_ms,
            Health::Ok,
            &Absence::NotSupported,
        );
        gpu.power.draw_watts = Reading::Now(watts);
        gpu.power.energy_joules_total = Reading::Now(watts * 1000.0 + 0.125);
        let condition = |since_ms: &u64| Condition {
            since_ms: *since_ms,
            severity: Severity::Warning,
            text: "Page retirement pending".to_owned(),
            kind: ConditionKind::PageRetirementPending,
        };
        gpu.conditions = conditions.iter().map(condition).collect();
        Sample {
            seq: 0,
            at_ms,
            interval_ms: 1000,
            gpus: vec![gpu],
            host: HostReader::new().read(),
        }
    }

    fn find_stat(bucket: &Bucket, id: &str) -> Option<Stat> {
        bucket.devices[0].stats[GPU_FIELDS.iter().position(|field| field.id == id).unwrap()]
    }

    #[test]
    fn samples_of_ten_seconds_form_bucket() {
        let mut buckets = Buckets::default();
        assert!((0..10).all(|second| {
            buckets
                .push(&make_sample(20_000 + second * 1000, second as f64, &[]))
                .is_none()
        }));
        let bucket = buckets.push(&make_sample(30_000, 70.0, &[])).unwrap();
        assert_eq!(
            (bucket.at_ms, bucket.samples, bucket.devices[0].samples),
            (20_000, 10, 10)
        );
        assert_eq!(
            find_stat(&bucket, "power.draw_watts"),
            Some(Stat {
                mean: 4.5,
                min: 0.0,
                max: 9.0
            })
        );
        assert_eq!(
            find_stat(&bucket, "power.energy_joules_total"),
            Some(Stat::from_value(9000.125)),
            "the last of a counter"
        );
        assert_eq!(find_stat(&bucket, "memory.used_bytes"), None);
        assert_eq!(
            buckets
                .end_bucket()
                .map(|begun| (begun.at_ms, begun.samples)),
            Some((30_000, 1))
        );
        assert!(buckets.end_bucket().is_none());
    }

    #[test]
    fn infrequent_reading_covers_samples_since_previous_one() {
        let mut buckets = Buckets::default();
        let mut push = |second: u64, read: Reading<f64>| {
            let mut sample = make_sample(20_000 + second * 1000, 100.0, &[]);
            sample.gpus[0].pcie.tx_bytes_per_second = read;
            buckets.push(&sample)
        };
        let earlier = |value, second: u64| Reading::Earlier {
            value,
            at_ms: 20_000 + second * 1000,
        };
        // The value was read before the bucket started.
        (0..9).for_each(|second| {
            assert_eq!(
                push(
                    second,
                    Reading::Earlier {
                        value: 700.0,
                        at_ms: 19_000
                    }
                ),
                None
            );
        });
        push(9, Reading::Now(40.0));
        let bucket = push(10, earlier(40.0, 9)).unwrap();
        assert_eq!(
            find_stat(&bucket, "pcie.tx_bytes_per_second"),
            Some(Stat::from_value(40.0))
        );
        // While somebody watches, the field is read every second. Afterward, it is read less often:
        // the reading at second 19 covers the eight seconds since the previous one.
        push(11, Reading::Now(10.0));
        (12..19).for_each(|second| drop(push(second, earlier(10.0, 11))));
        push(19, Reading::Now(50.0));
        let bucket = push(20, earlier(50.0, 19)).unwrap();
        assert_eq!(
            find_stat(&bucket, "pcie.tx_bytes_per_second"),
            Some(Stat {
                mean: 42.0,
                min: 10.0,
                max: 50.0
            })
        );
        (21..30).for_each(|second| drop(push(second, earlier(50.0, 19))));
        let bucket = push(30, earlier(50.0, 19)).unwrap();
        assert_eq!(
            find_stat(&bucket, "pcie.tx_bytes_per_second"),
            Some(Stat::from_value(50.0)),
            "as it was known"
        );
    }

    #[test]
    fn late_sample_is_merged_into_ended_bucket() {
        let mut buckets = Buckets::default();
        (0..9).for_each(|second| {
            drop(buckets.push(&make_sample(20_000 + second * 1000, 100.0, &[])));
        });
        assert!(buckets.end_bucket_if_over(29_999).is_none());
        let mut bucket = buckets.end_bucket_if_over(30_000).unwrap();
        assert!(buckets.end_bucket_if_over(40_000).is_none(), "once");
        assert!(buckets.push(&make_sample(29_000, 200.0, &[])).is_none());
        let late = buckets.push(&make_sample(30_000, 100.0, &[])).unwrap();
        assert_eq!((bucket.samples, late.at_ms, late.samples), (9, 20_000, 1));
        bucket.merge_later(late);
        assert_eq!((bucket.samples, bucket.devices[0].samples), (10, 10));
        assert_eq!(
            find_stat(&bucket, "power.draw_watts"),
            Some(Stat {
                mean: 110.0,
                min: 100.0,
                max: 200.0
            })
        );
        assert_eq!(
            find_stat(&bucket, "power.energy_joules_total"),
            Some(Stat::from_value(200_000.125))
        );
    }

    #[test]
    fn repeated_readings_of_hung_gpu_are_ignored() {
        let mut buckets = Buckets::default();
        let mut hung = make_sample(20_000, 500.0, &[]);
        hung.gpus[0].at_ms = 1_000;
        buckets.push(&hung);
        let bucket = buckets.end_bucket().unwrap();
        assert_eq!((bucket.samples, bucket.devices.len()), (1, 0));
    }

    #[test]
    fn condition_start_and_end_are_recorded() {
        let mut buckets = Buckets::default();
        buckets.push(&make_sample(1000, 1.0, &[900]));
        buckets.push(&make_sample(2000, 1.0, &[900, 1500]));
        let spans = |buckets: &Buckets, from_ms, to_ms| {
            buckets
                .conditions(from_ms, to_ms)
                .map(|span| (span.from_ms, span.to_ms))
                .collect::<Vec<_>>()
        };
        assert_eq!(spans(&buckets, 0, 5000), [(900, None), (1500, None)]);
        assert_eq!(
            buckets.end_bucket().unwrap().conditions.len(),
            2,
            "each is told when it begins"
        );
        buckets.push(&make_sample(3000, 1.0, &[1500]));
        assert_eq!(spans(&buckets, 0, 5000), [(900, Some(3000)), (1500, None)]);
        assert_eq!(spans(&buckets, 3500, 5000), [(1500, None)]);
        let reported = buckets.end_bucket().unwrap().conditions;
        assert_eq!(
            reported
                .iter()
                .map(|span| (span.from_ms, span.to_ms))
                .collect::<Vec<_>>(),
            [(900, Some(3000))]
        );
    }
}
