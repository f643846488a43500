//! `/proc/PID/stat`: when a process began, and what it does.

use std::{io, path::Path};

use gpumon_probe::bounded;

/// The time of boot, from which starts are counted, is known to a second, and moves when the clock is set.
const TOLERANCE_MS: u64 = 2_000;

/// What `/proc/PID/stat` tells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessStat {
    pub(crate) state: char,
    pub(crate) parent: u32,
    /// The ID of its process group, which is the PID of the leader.
    pub(crate) group: u32,
    /// The ID of its session, which is the PID of the leader.
    pub(crate) session: u32,
    pub(crate) threads: u32,
    pub(crate) cpu_ms: u64,
    /// Since the Unix epoch; `None` where the time of boot is not known.
    pub(crate) started_ms: Option<u64>,
}

impl ProcessStat {
    /// Reads below `root`, which is `/proc` but in tests.
    pub(crate) fn read(root: &Path, pid: u32) -> io::Result<Self> {
        Self::read_since_boot(root, pid, booted_ms(root))
    }

    /// The same where the time of boot is known, for which a long file is read.
    pub(crate) fn read_since_boot(
        root: &Path,
        pid: u32,
        booted_ms: Option<u64>,
    ) -> io::Result<Self> {
        let text = bounded::text(root.join(pid.to_string()).join("stat"), bounded::STAT)?;
        Self::parse(&text, booted_ms).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn parse(text: &str, booted_ms: Option<u64>) -> Option<Self> {
        // The second field is the name in parentheses and may hold anything, parentheses too.
        let (_, after_name) = text.rsplit_once(')')?;
        // The first of these is field 3 of `proc_pid_stat(5)`.
        let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let ms = |ticks: u64| ticks.saturating_mul(1000) / rustix::param::clock_ticks_per_second();
        Some(Self {
            state: fields.first()?.chars().next()?,
            parent: field(4)? as u32,
            group: field(5)? as u32,
            session: field(6)? as u32,
            threads: field(20)? as u32,
            cpu_ms: ms(field(14)?.saturating_add(field(15)?)),
            started_ms: booted_ms
                .zip(field(22))
                .map(|(booted, ticks)| booted.saturating_add(ms(ticks))),
        })
    }

    /// Whether it is the process that began then. Where that is not known, there is nothing to compare.
    pub(crate) fn began_at(&self, known_ms: Option<u64>) -> bool {
        match (self.started_ms, known_ms) {
            (Some(started), Some(known)) => started.abs_diff(known) <= TOLERANCE_MS,
            _ => true,
        }
    }
}

/// When the machine was booted, since the Unix epoch; a file with a line for each CPU and all interrupts.
pub(crate) fn booted_ms(root: &Path) -> Option<u64> {
    let stat = bounded::text(root.join("stat"), bounded::TABLE).ok()?;
    let seconds = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    Some(seconds.trim().parse::<u64>().ok()?.saturating_mul(1000))
}

/// What there is to say of a process that `/proc` does not have. One that this program itself has found there has ended;
/// the driver and a server also list those of other PID namespaces.
pub(crate) fn missing(was_found_here: bool, started_ms: Option<u64>) -> &'static str {
    match (was_found_here, started_ms) {
        (true, Some(_)) => "has ended",
        (false, Some(_)) => "has ended, or runs in another PID namespace (a container or the host)",
        (_, None) => "runs in another PID namespace (a container or the host), or has ended",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
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
            (stat.cpu_ms, stat.started_ms),
            (29 * tick_ms, Some(1_000_000 + 22 * tick_ms))
        );
        assert!(ProcessStat::parse("nonsense", None).is_none());
    }

    #[test]
    fn a_start_is_compared_with_some_tolerance() {
        let stat = ProcessStat {
            state: 'R',
            parent: 1,
            group: 1,
            session: 1,
            threads: 1,
            cpu_ms: 0,
            started_ms: Some(50_000),
        };
        assert!(stat.began_at(Some(51_000)) && stat.began_at(None));
        assert!(!stat.began_at(Some(60_000)));
    }
}
