//! The machine around the GPUs, through the kernel's `/proc`.

pub(crate) mod pcie_port;
pub(crate) mod runtime_pm;

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use procfs::{
    CpuTime, DiskStats, FromBufRead, FromBufReadSI, KernelStats, Meminfo, ProcResult, net::InterfaceDeviceStatus,
};

use crate::{
    bounded,
    model::{Absence, CpuSample, DiskSample, HostSample, NetworkSample, RamSample, Reading, now_ms},
};

/// The kernel's unit in `/proc/diskstats`, whatever the disk's own is.
const SECTOR_BYTES: u64 = 512;

/// Disks and cards can be plugged in, but not often.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// Reads processors, memory, disks and network cards; what the system does not give is absent.
#[derive(Debug)]
pub struct HostReader {
    before: Option<CpuTime>,
    disks: Physical,
    cards: Physical,
}

impl HostReader {
    /// Finds out what there is.
    pub fn new() -> Self {
        Self { before: None, disks: Physical::new("/sys/block"), cards: Physical::new("/sys/class/net") }
    }

    /// The machine now. Rates are left to `derive`.
    pub fn read(&mut self) -> HostSample {
        let memory = table("/proc/meminfo").and_then(|text| Meminfo::from_buf_read(&*text));
        let ram = |amount: fn(&Meminfo) -> u64| reading(&memory, amount);
        let disks = self.disks();
        let networks = self.networks();
        HostSample {
            at_ms: now_ms(),
            cpu: self.cpu(),
            memory: RamSample {
                total_bytes: ram(|memory| memory.mem_total),
                // Before Linux 3.14 the kernel did not estimate what could be given back.
                used_bytes: ram(|memory| memory.mem_total - memory.mem_available.unwrap_or(memory.mem_free)),
            },
            swap: RamSample {
                total_bytes: ram(|memory| memory.swap_total),
                used_bytes: ram(|memory| memory.swap_total - memory.swap_free),
            },
            disk: DiskSample {
                read_bytes_total: reading(&disks, |totals| totals.0),
                written_bytes_total: reading(&disks, |totals| totals.1),
                read_bytes_per_second: Reading::Absent(Absence::WarmingUp),
                written_bytes_per_second: Reading::Absent(Absence::WarmingUp),
            },
            network: NetworkSample {
                received_bytes_total: reading(&networks, |totals| totals.0),
                sent_bytes_total: reading(&networks, |totals| totals.1),
                received_bytes_per_second: Reading::Absent(Absence::WarmingUp),
                sent_bytes_per_second: Reading::Absent(Absence::WarmingUp),
            },
        }
    }

    fn cpu(&mut self) -> CpuSample {
        let stats =
            table("/proc/stat").and_then(|text| KernelStats::from_buf_read(&*text, procfs::current_system_info()));
        let count = reading(&stats, |stats| stats.cpu_time.len() as u32);
        let busy_percent = match stats {
            Ok(stats) => busy(self.before.replace(stats.total.clone()).as_ref(), &stats.total),
            Err(_) => Reading::Absent(Absence::NotSupported),
        };
        CpuSample { count, busy_percent }
    }

    /// Bytes read and written by the disks themselves, since what lies upon them (partitions, RAID, LVM, loops) counts
    /// the same bytes again.
    fn disks(&mut self) -> ProcResult<(u64, u64)> {
        let disks = self.disks.names();
        let DiskStats(stats) = DiskStats::from_buf_read(&*table("/proc/diskstats")?)?;
        Ok(stats.iter().filter(|disk| disks.contains(&disk.name)).fold((0, 0), |(read, written), disk| {
            (read + disk.sectors_read * SECTOR_BYTES, written + disk.sectors_written * SECTOR_BYTES)
        }))
    }

    /// Bytes received and sent by the physical cards, since bridges and containers' cards count the same bytes again.
    /// Inside a container there are no physical cards, so there all but loopback count.
    fn networks(&mut self) -> ProcResult<(u64, u64)> {
        let physical = self.cards.names();
        let InterfaceDeviceStatus(cards) = InterfaceDeviceStatus::from_buf_read(&*table("/proc/net/dev")?)?;
        let any_physical = cards.keys().any(|name| physical.contains(name));
        let counts = |name: &String| if any_physical { physical.contains(name) } else { name != "lo" };
        Ok(cards
            .iter()
            .filter(|(name, _)| counts(name))
            .fold((0, 0), |(received, sent), (_, card)| (received + card.recv_bytes, sent + card.sent_bytes)))
    }
}

impl Default for HostReader {
    fn default() -> Self {
        Self::new()
    }
}

/// Devices that are hardware: those with a `device` in sysfs.
#[derive(Debug)]
struct Physical {
    folder: &'static str,
    names: BTreeSet<String>,
    looked: Option<Instant>,
}

impl Physical {
    fn new(folder: &'static str) -> Self {
        Self { folder, names: BTreeSet::new(), looked: None }
    }

    fn names(&mut self) -> &BTreeSet<String> {
        if self.looked.is_none_or(|looked| looked.elapsed() >= LOOK_AGAIN) {
            let found = fs::read_dir(Path::new(self.folder)).into_iter().flatten().flatten();
            let hardware = found.filter(|entry| entry.path().join("device").exists());
            self.names = hardware.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            self.looked = Some(Instant::now());
        }
        &self.names
    }
}

fn table(path: &str) -> ProcResult<Vec<u8>> {
    Ok(bounded::read(path, bounded::TABLE)?)
}

fn reading<R, T>(read: &ProcResult<R>, pick: impl FnOnce(&R) -> T) -> Reading<T> {
    read.as_ref().map_or(Reading::Absent(Absence::NotSupported), |read| Reading::Now(pick(read)))
}

/// Busy share of the time between two readings, to a tenth of a percent. The first has nothing before it; and a counter
/// that runs backwards, as that of waiting for disks does now and then, counts as standing still.
fn busy(before: Option<&CpuTime>, now: &CpuTime) -> Reading<f64> {
    let Some(before) = before else { return Reading::Absent(Absence::WarmingUp) };
    let since = |part: fn(&CpuTime) -> u64| part(now).saturating_sub(part(before));
    let idle = since(|time| time.idle) + since(|time| time.iowait.unwrap_or(0));
    // A guest's time is part of the user's.
    let busy = since(|time| time.user)
        + since(|time| time.nice)
        + since(|time| time.system)
        + since(|time| time.irq.unwrap_or(0))
        + since(|time| time.softirq.unwrap_or(0))
        + since(|time| time.steal.unwrap_or(0));
    match busy + idle {
        // Two readings within the same tick of the kernel's clock.
        0 => Reading::Absent(Absence::WarmingUp),
        all => Reading::Now((1000.0 * busy as f64 / all as f64).round() / 10.0),
    }
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
        assert!(first.memory.total_bytes.value().is_some_and(|total| *total > 0));
        assert!(first.memory.used_bytes.value() <= first.memory.total_bytes.value());
        // The kernel counts in hundredths of a second.
        std::thread::sleep(Duration::from_millis(50));
        let second = reader.read();
        assert!(second.cpu.busy_percent.value().is_some_and(|busy| (0.0..=100.0).contains(busy)));
        assert!(second.network.received_bytes_total.value() >= first.network.received_bytes_total.value());
        assert!(second.disk.read_bytes_total.value() >= first.disk.read_bytes_total.value());
    }

    #[test]
    fn busy_is_what_was_not_idle() {
        let times = |line: &str| -> CpuTime {
            let stat = format!("cpu  {line}\ncpu0 {line}\nctxt 1\nbtime 1\nprocesses 1\n");
            KernelStats::from_buf_read(stat.as_bytes(), procfs::current_system_info()).unwrap().total
        };
        let before = times("100 0 100 800 0 0 0 0 0 0");
        assert_eq!(busy(Some(&before), &times("120 0 110 850 20 0 0 0 20 0")), Reading::Now(30.0));
        assert_eq!(busy(Some(&before), &before), Reading::Absent(Absence::WarmingUp));
        assert_eq!(busy(None, &before), Reading::Absent(Absence::WarmingUp));
    }
}
