//! Readings of the machine around the GPUs, through sysinfo.
//!
//! Disk counters are read from sysfs instead. sysinfo counts by mounted file system, which omits
//! swap and unmounted disks, and it reads the free space of each file system, which hangs on a dead
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
const LIST_AGAIN: Duration = Duration::from_mins(1);

/// The minimum ratio between the interval of network readings and their CPU time. sysinfo reads
/// eleven files per network card, which takes 0.2 ms, and a host of containers has hundreds of
/// cards.
const NETWORK_SHARE: u32 = 5000;

/// A reader for processors, memory, disks and network cards. Readings that the system does not
/// provide are absent.
#[derive(Debug)]
pub struct HostReader {
    /// `None` on systems that sysinfo does not support.
    system: Option<System>,
    /// The time of the first reading of the processors.
    cpu_since: Option<Instant>,
    disks: Physical,
    networks: NetworkReader,
}

impl HostReader {
    /// Returns a reader for the devices of this machine.
    pub fn new() -> Self {
        Self {
            system: System::new().ok(),
            cpu_since: None,
            disks: Physical::new("/sys/block"),
            networks: NetworkReader::new(),
        }
    }

    /// Reads the machine. Rates are computed by `derive`.
    pub fn read(&mut self) -> HostSample {
        let at_ms = now_ms();
        // The first reading of sysinfo is the average since boot, and sysinfo does not read the
        // processors again before this interval.
        let compared = self
            .cpu_since
            .is_some_and(|since| since.elapsed() >= sysinfo::MINIMUM_CPU_UPDATE_INTERVAL);
        if let Some(system) = &mut self.system {
            system.refresh_cpu_usage();
            system.refresh_memory();
            self.cpu_since.get_or_insert_with(Instant::now);
        }
        let disks = self.disks();
        let [received, sent] = self.networks.totals(at_ms);
        // The total is 0 if `/proc/meminfo` could not be read.
        let memory = self
            .system
            .as_ref()
            .filter(|system| system.total_memory() > 0);
        let ram = |amount: fn(&System) -> u64| reading(memory.map(amount));
        // The differences are computed here, because the numbers are inconsistent in some
        // containers, and sysinfo's own differences would overflow.
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
            cpu: self.cpu(compared),
            disk: DiskSample {
                read_bytes_total: reading(disks.map(|totals| totals.0)),
                written_bytes_total: reading(disks.map(|totals| totals.1)),
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

    fn cpu(&self, compared: bool) -> CpuSample {
        let system = self
            .system
            .as_ref()
            .filter(|system| !system.cpus().is_empty());
        let count = reading(system.map(|system| system.cpus().len() as u32));
        let busy_percent = match system {
            None => Reading::Absent(Absence::NotSupported),
            Some(_) if !compared => Reading::Absent(Absence::WarmingUp),
            Some(system) => {
                Reading::Now((f64::from(system.global_cpu_usage()) * 10.0).round() / 10.0)
            }
        };
        let load_1m = reading(System::load_average().ok().map(|load| load.one));
        CpuSample {
            count,
            busy_percent,
            load_1m,
        }
    }

    /// Returns the bytes read and written by all physical disks. Partitions, RAID, LVM and loop
    /// devices are left out, because they would count the same bytes twice.
    fn disks(&mut self) -> Option<(u64, u64)> {
        let stats = self.disks.names().iter().filter_map(|disk| {
            let stat = bounded::text(format!("/sys/block/{disk}/stat"), bounded::VALUE).ok()?;
            disk_bytes(&stat)
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
    cards: Physical,
    /// The bytes received and sent at the latest reading.
    latest: [Reading<u64>; 2],
    read_at_ms: u64,
    due: Instant,
}

impl NetworkReader {
    fn new() -> Self {
        Self {
            networks: Networks::new().ok(),
            cards: Physical::new("/sys/class/net"),
            latest: [const { Reading::Absent(Absence::NotSupported) }; 2],
            read_at_ms: 0,
            due: Instant::now(),
        }
    }

    /// Returns the bytes received and sent since boot by all physical cards. Bridges and the cards
    /// of containers are left out, because they would count the same bytes twice. If there are no
    /// physical cards, as inside a container, all cards except loopback count.
    fn totals(&mut self, at_ms: u64) -> [Reading<u64>; 2] {
        let Some(networks) = &mut self.networks else {
            return self.latest.clone();
        };
        if Instant::now() < self.due {
            return self
                .latest
                .clone()
                .map(|total| total.dated(self.read_at_ms));
        }
        let used_before = cpu_time();
        networks.refresh(true);
        self.due = Instant::now() + cpu_time().saturating_sub(used_before) * NETWORK_SHARE;
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
            reading(totals.map(|totals| totals.0)),
            reading(totals.map(|totals| totals.1)),
        ];
        self.latest.clone()
    }
}

/// The physical devices of a class: those with a `device` in sysfs.
#[derive(Debug)]
struct Physical {
    folder: &'static str,
    names: BTreeSet<String>,
    listed: Option<Instant>,
}

impl Physical {
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
            .is_none_or(|listed| listed.elapsed() >= LIST_AGAIN)
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
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime)
        .try_into()
        .unwrap_or_default()
}

fn reading<T>(value: Option<T>) -> Reading<T> {
    value.ok_or(Absence::NotSupported).into()
}

/// Returns the bytes read and written, from the third and the seventh number of a disk's `stat`.
fn disk_bytes(stat: &str) -> Option<(u64, u64)> {
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
    fn network_cards_that_are_not_read_again_yet_have_the_time_of_their_reading() {
        let mut reader = NetworkReader::new();
        let first = reader.totals(1_000);
        reader.due = Instant::now() + Duration::from_mins(1);
        let [received, _] = reader.totals(2_000);
        assert_eq!(received, first[0].clone().dated(1_000));
        reader.due = Instant::now();
        assert!(matches!(
            reader.totals(3_000),
            [Reading::Now(_) | Reading::Absent(_), _]
        ));
    }

    #[test]
    fn a_disks_bytes_are_its_sectors() {
        assert_eq!(
            disk_bytes("  10 0 16 5 20 1 32 7 0 9 12\n"),
            Some((16 * 512, 32 * 512))
        );
        assert_eq!(disk_bytes("10 0 16"), None);
    }
}
