//! Readings of the host machine, taken with the sysinfo crate.
//!
//! Disk counters are read from sysfs instead. sysinfo counts by mounted file system, which omits
//! swap and unmounted disks, and also reads each file system's free space, which hangs on a dead
//! network mount.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};
use sysinfo::{Networks, System};

use crate::{
    bounded,
    model::{
        Absence, CpuSample, DiskSample, HostSample, NetworkSample, RamSample, Reading, now_ms,
    },
};

/// The kernel's unit in `/sys/block/*/stat`, regardless of the disk's sector size.
const SECTOR_BYTES: u64 = 512;

/// The interval between searches for new disks and network cards.
const LIST_INTERVAL: Duration = Duration::from_mins(1);

/// Limits the CPU time for network readings: the interval between two readings is at least this
/// many times the CPU time of one reading. sysinfo reads eleven files per network card, which takes
/// 0.2 ms, and a container host has hundreds of cards.
const NETWORK_CPU_RATIO: u32 = 5000;

/// A reader for processors, memory, disks and network cards. Readings that the system does not
/// provide are absent.
#[derive(Debug)]
pub struct HostReader {
    /// The sysinfo handle; `None` on systems that sysinfo does not support.
    system: Option<System>,
    /// The time of the first CPU reading.
    cpu_since: Option<Instant>,
    disks: PhysicalDevices,
    networks: NetworkReader,
}

impl HostReader {
    /// Returns a reader for the devices of this machine.
    pub fn new() -> Self {
        Self {
            system: System::new().ok(),
            cpu_since: None,
            disks: PhysicalDevices::new("/sys/block"),
            networks: NetworkReader::new(),
        }
    }

    /// Reads the host. Rates are not included; `derive` computes them.
    pub fn read(&mut self) -> HostSample {
        let at_ms = now_ms();
        // CPU usage is available only after two readings, because sysinfo's first reading is the
        // average since boot. sysinfo ignores a second reading until its minimum interval has
        // passed.
        let compared = self
            .cpu_since
            .is_some_and(|since| since.elapsed() >= sysinfo::MINIMUM_CPU_UPDATE_INTERVAL);
        if let Some(system) = &mut self.system {
            system.refresh_cpu_usage();
            system.refresh_memory();
            self.cpu_since.get_or_insert_with(Instant::now);
        }
        let disks = self.read_disk_bytes();
        let [received, sent] = self.networks.read_totals(at_ms);
        // The total is 0 if `/proc/meminfo` could not be read.
        let memory = self
            .system
            .as_ref()
            .filter(|system| system.total_memory() > 0);
        let ram = |amount: fn(&System) -> u64| to_reading(memory.map(amount));
        // Used memory is computed here and not by sysinfo. In some containers, the amounts are
        // inconsistent, and sysinfo's subtraction would overflow.
        HostSample {
            at_ms,
            memory: RamSample {
                total_bytes: ram(System::total_memory),
                used_bytes: ram(|system| {
                    system
                        .total_memory()
                        .saturating_sub(system.available_memory())
                }),
            },
            swap: RamSample {
                total_bytes: ram(System::total_swap),
                used_bytes: ram(|system| system.total_swap().saturating_sub(system.free_swap())),
            },
            cpu: self.read_cpu(compared),
            disk: DiskSample {
                read_bytes_total: to_reading(disks.map(|totals| totals.0)),
                written_bytes_total: to_reading(disks.map(|totals| totals.1)),
                read_bytes_per_second: Reading::Absent(Absence::WarmingUp),
                written_bytes_per_second: Reading::Absent(Absence::WarmingUp),
            },
            network: NetworkSample {
                received_bytes_total: received,
                sent_bytes_total: sent,
                received_bytes_per_second: Reading::Absent(Absence::WarmingUp),
                sent_bytes_per_second: Reading::Absent(Absence::WarmingUp),
            },
        }
    }

    fn read_cpu(&self, compared: bool) -> CpuSample {
        let system = self
            .system
            .as_ref()
            .filter(|system| !system.cpus().is_empty());
        let count = to_reading(system.map(|system| system.cpus().len() as u32));
        let busy_percent = match system {
            None => Reading::Absent(Absence::NotSupported),
            Some(_) if !compared => Reading::Absent(Absence::WarmingUp),
            Some(system) => {
                Reading::Now((f64::from(system.global_cpu_usage()) * 10.0).round() / 10.0)
            }
        };
        let load_1m = to_reading(System::load_average().ok().map(|load| load.one));
        CpuSample {
            count,
            busy_percent,
            load_1m,
        }
    }

    /// Returns the bytes read and written by all physical disks. Partitions, RAID, LVM and loop
    /// devices are skipped, because they would count the same bytes twice.
    fn read_disk_bytes(&mut self) -> Option<(u64, u64)> {
        let stats = self.disks.names().iter().filter_map(|disk| {
            let stat =
                bounded::read_text(format!("/sys/block/{disk}/stat"), bounded::VALUE_LIMIT).ok()?;
            parse_disk_bytes(&stat)
        });
        stats.reduce(|(read, written), disk| {
            (read.saturating_add(disk.0), written.saturating_add(disk.1))
        })
    }
}

impl Default for HostReader {
    fn default() -> Self {
        Self::new()
    }
}

/// A reader for network cards that limits its own CPU time.
#[derive(Debug)]
struct NetworkReader {
    networks: Option<Networks>,
    cards: PhysicalDevices,
    /// The bytes received and sent, as of the latest reading.
    latest: [Reading<u64>; 2],
    read_at_ms: u64,
    due: Instant,
}

impl NetworkReader {
    fn new() -> Self {
        Self {
            networks: Networks::new().ok(),
            cards: PhysicalDevices::new("/sys/class/net"),
            latest: [const { Reading::Absent(Absence::NotSupported) }; 2],
            read_at_ms: 0,
            due: Instant::now(),
        }
    }

    /// Returns the bytes received and sent since boot by all physical cards. Bridges and virtual
    /// cards of containers are skipped, because they would count the same bytes twice. If there are
    /// no physical cards, as inside a container, all cards except loopback count.
    fn read_totals(&mut self, at_ms: u64) -> [Reading<u64>; 2] {
        let Some(networks) = &mut self.networks else {
            return self.latest.clone();
        };
        if Instant::now() < self.due {
            return self
                .latest
                .clone()
                .map(|total| total.with_time(self.read_at_ms));
        }
        let used_before = thread_cpu_time();
        networks.refresh(true);
        self.due =
            Instant::now() + thread_cpu_time().saturating_sub(used_before) * NETWORK_CPU_RATIO;
        self.read_at_ms = at_ms;
        let physical = self.cards.names();
        let cards = || {
            networks
                .iter()
                .filter_map(|(name, card)| Some((name.to_str()?, card)))
        };
        let any_physical = cards().any(|(name, _)| physical.contains(name));
        let counted = cards().filter(|(name, _)| {
            if any_physical {
                physical.contains(*name)
            } else {
                *name != "lo"
            }
        });
        let totals = counted
            .map(|(_, card)| (card.total_received(), card.total_transmitted()))
            .reduce(|(received, sent), card| {
                (received.saturating_add(card.0), sent.saturating_add(card.1))
            });
        self.latest = [
            to_reading(totals.map(|totals| totals.0)),
            to_reading(totals.map(|totals| totals.1)),
        ];
        self.latest.clone()
    }
}

/// The physical devices of a class, which have a `device` entry in sysfs.
#[derive(Debug)]
struct PhysicalDevices {
    folder: &'static str,
    names: BTreeSet<String>,
    listed: Option<Instant>,
}

impl PhysicalDevices {
    fn new(folder: &'static str) -> Self {
        Self {
            folder,
            names: BTreeSet::new(),
            listed: None,
        }
    }

    fn names(&mut self) -> &BTreeSet<String> {
        if self
            .listed
            .is_none_or(|listed| listed.elapsed() >= LIST_INTERVAL)
        {
            let found = fs::read_dir(Path::new(self.folder))
                .into_iter()
                .flatten()
                .flatten();
            let hardware = found.filter(|entry| entry.path().join("device").exists());
            self.names = hardware
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect();
            self.listed = Some(Instant::now());
        }
        &self.names
    }
}

/// Returns the CPU time of this thread.
fn thread_cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime)
        .try_into()
        .unwrap_or_default()
}

fn to_reading<T>(value: Option<T>) -> Reading<T> {
    value.ok_or(Absence::NotSupported).into()
}

/// Parses the bytes read and written from a disk's `stat` file, in which they are the third and
/// seventh fields, in sectors.
fn parse_disk_bytes(stat: &str) -> Option<(u64, u64)> {
    let sectors = |place| {
        stat.split_ascii_whitespace()
            .nth(place)?
            .parse::<u64>()
            .ok()
    };
    Some((
        sectors(2)?.checked_mul(SECTOR_BYTES)?,
        sectors(6)?.checked_mul(SECTOR_BYTES)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_processors_and_memory() {
        let mut reader = HostReader::new();
        let first = reader.read();
        assert_eq!(first.cpu.busy_percent, Reading::Absent(Absence::WarmingUp));
        assert!(first.cpu.count.value().is_some_and(|count| *count >= 1));
        assert!(first.cpu.load_1m.value().is_some_and(|load| *load >= 0.0));
        assert!(
            first
                .memory
                .total_bytes
                .value()
                .is_some_and(|total| *total > 0)
        );
        assert!(first.memory.used_bytes.value() <= first.memory.total_bytes.value());
        std::thread::sleep(sysinfo::MINIMUM_CPU_UPDATE_INTERVAL);
        let second = reader.read();
        assert!(
            second
                .cpu
                .busy_percent
                .value()
                .is_some_and(|busy| (0.0..=100.0).contains(busy))
        );
        assert!(
            second.network.received_bytes_total.value()
                >= first.network.received_bytes_total.value()
        );
        assert!(second.disk.read_bytes_total.value() >= first.disk.read_bytes_total.value());
    }

    #[test]
    fn cached_network_totals_keep_their_reading_time() {
        let mut reader = NetworkReader::new();
        let first = reader.read_totals(1_000);
        reader.due = Instant::now() + Duration::from_mins(1);
        let [received, _] = reader.read_totals(2_000);
        assert_eq!(received, first[0].clone().with_time(1_000));
        reader.due = Instant::now();
        assert!(matches!(
            reader.read_totals(3_000),
            [Reading::Now(_) | Reading::Absent(_), _]
        ));
    }

    #[test]
    fn disk_bytes_are_computed_from_sectors() {
        assert_eq!(
            parse_disk_bytes("  10 0 16 5 20 1 32 7 0 9 12\n"),
            Some((16 * 512, 32 * 512))
        );
        assert_eq!(parse_disk_bytes("10 0 16"), None);
    }
}
