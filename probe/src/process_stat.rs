//! The contents of `/proc/PID/stat`: start time, state and parent of a process.

use std::{io, path::Path};

use crate::bounded;

/// The maximum difference between two readings of the same start time. The boot time has a
/// resolution of a second, and changes when the clock is set.
const TOLERANCE_MS: u64 = 2_000;

/// The parts of `/proc/PID/stat` that gpumon uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// The process state, such as `S` for sleeping.
    pub state: char,
    /// The PID of the parent, or 0 for PID 1 of a PID namespace.
    pub parent: u32,
    /// The ID of the process group, which is the PID of its leader; 0 if unknown.
    pub group: u32,
    /// The ID of the session, which is the PID of its leader; 0 if unknown.
    pub session: u32,
    pub threads: u32,
    /// The CPU time in user and kernel mode, in milliseconds.
    pub cpu_ms: u64,
    pub birth: Birth,
}

/// A process's start time. PID and start time together identify a process, because PIDs are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Birth {
    /// The start time in clock ticks since boot.
    pub ticks: u64,
    /// The start time in milliseconds since the Unix epoch, or `None` if the boot time is unknown.
    pub started_ms: Option<u64>,
}

impl ProcessStat {
    /// Reads the `stat` file of a process below `root`, which is `/proc` except in tests.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is not in the kernel's format.
    pub fn read(root: &Path, pid: u32) -> io::Result<Self> {
        Self::read_with_boot_time(root, pid, read_boot_time_ms(root))
    }

    /// Reads the `stat` file of a process. The caller passes the boot time, because reading it is
    /// slow.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is not in the kernel's format.
    pub fn read_with_boot_time(root: &Path, pid: u32, booted_ms: Option<u64>) -> io::Result<Self> {
        let text =
            bounded::read_text(root.join(pid.to_string()).join("stat"), bounded::STAT_LIMIT)?;
        Self::parse(&text, booted_ms).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn parse(text: &str, booted_ms: Option<u64>) -> Option<Self> {
        // The second field is the name in parentheses. The name can also contain parentheses, so
        // the last one ends the field.
        let (_, after_name) = text.rsplit_once(')')?;
        // The first element is field 3 of `proc_pid_stat(5)`.
        let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let ms = |ticks: u64| ticks.saturating_mul(1000) / rustix::param::clock_ticks_per_second();
        let ticks = field(22)?;
        Some(Self {
            state: fields.first()?.chars().next()?,
            parent: field(4)? as u32,
            group: field(5).unwrap_or(0) as u32,
            session: field(6).unwrap_or(0) as u32,
            threads: field(20)? as u32,
            cpu_ms: ms(field(14)?.saturating_add(field(15)?)),
            birth: Birth {
                ticks,
                started_ms: booted_ms.map(|booted| booted.saturating_add(ms(ticks))),
            },
        })
    }

    /// Returns `true` if the process may have started at `known_ms`. An unknown start time matches
    /// any time.
    pub fn may_have_started_at(&self, known_ms: Option<u64>) -> bool {
        match (self.birth.started_ms, known_ms) {
            (Some(started), Some(known)) => started.abs_diff(known) <= TOLERANCE_MS,
            _ => true,
        }
    }
}

/// The link target of the machine's initial PID namespace. The number is a constant in the kernel
/// (`PROC_PID_INIT_INO`).
pub(crate) const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Returns `true` if PIDs in `root` are those of the machine's initial PID namespace, and not a
/// container's. Returns `None` if the namespace is unknown.
pub(crate) fn is_first_pid_namespace(root: &Path) -> Option<bool> {
    let link = std::fs::read_link(root.join("self/ns/pid")).ok()?;
    Some(link == Path::new(FIRST_PID_NAMESPACE))
}

/// Returns the boot time in milliseconds since the Unix epoch. Reading is slow, because
/// `/proc/stat` has a line for each CPU and for all interrupts.
pub fn read_boot_time_ms(root: &Path) -> Option<u64> {
    let stat = bounded::read_text(root.join("stat"), bounded::TABLE_LIMIT).ok()?;
    let seconds = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    Some(seconds.trim().parse::<u64>().ok()?.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_with_parentheses_does_not_shift_fields() {
        let fields: Vec<String> = (4..=52).map(|field| field.to_string()).collect();
        let stat = ProcessStat::parse(
            &format!("42 (a) b) S {}", fields.join(" ")),
            Some(1_000_000),
        )
        .unwrap();
        let tick_ms = 1000 / rustix::param::clock_ticks_per_second();
        assert_eq!((stat.state, stat.parent, stat.threads), ('S', 4, 20));
        assert_eq!((stat.group, stat.session), (5, 6));
        assert_eq!(
            (stat.cpu_ms, stat.birth.started_ms),
            (29 * tick_ms, Some(1_000_000 + 22 * tick_ms))
        );
        assert!(ProcessStat::parse("nonsense", None).is_none());
    }

    #[test]
    fn process_start_times_are_compared_with_tolerance() {
        let stat = ProcessStat {
            state: 'R',
            parent: 1,
            group: 1,
            session: 1,
            threads: 1,
            cpu_ms: 0,
            birth: Birth {
                ticks: 0,
                started_ms: Some(50_000),
            },
        };
        assert!(stat.may_have_started_at(Some(51_000)) && stat.may_have_started_at(None));
        assert!(!stat.may_have_started_at(Some(60_000)));
    }
}
