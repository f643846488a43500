//! The local time zone, which is used to display and parse times.
//!
//! `TZ` is interpreted as in the C library. jiff's own lookup is not used: for an unknown name, it
//! would open a file in the working directory, and it lists all time zones of the system, which
//! takes a millisecond. This module reads only the file of one time zone, and jiff parses the
//! content.

use std::{
    env,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use jiff::{Timestamp, Zoned, tz::TimeZone};

use crate::{
    bounded::{open_regular, read_from},
    untrusted::escape_untrusted,
};

/// The default folders of the time zone database, used if `TZDIR` is empty or not set.
const ZONEINFO_FOLDERS: [&str; 3] = [
    "/usr/share/zoneinfo",
    "/usr/share/lib/zoneinfo",
    "/etc/zoneinfo",
];

/// The system's time zone file, used if `TZ` is not set.
const LOCALTIME_FILE: &str = "/etc/localtime";

/// The maximum size of a time zone file, in bytes. Files in the time zone database have at most 4
/// KB.
const MAX_FILE_BYTES: usize = 1 << 20;

/// Returns the time zone of this process: the value of `TZ`, otherwise the system's time zone. If
/// `TZ` names no time zone, returns UTC, and the first call writes a warning to standard error.
pub fn time_zone() -> TimeZone {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    let determine = || {
        let Some(name) = env::var_os("TZ") else {
            return read_zone(LOCALTIME_FILE.as_ref()).unwrap_or(TimeZone::UTC);
        };
        let name = name.to_string_lossy();
        find_zone(&name, &zoneinfo_folders()).unwrap_or_else(|| {
            // The error is ignored, because times are shown in UTC whether or not the warning can
            // be written.
            let _ = writeln!(
                io::stderr(),
                "gpumon: TZ={} is not a known time zone, so times are in UTC: set TZ to the \
                 name of a time zone in {}, such as Europe/Berlin, or to an offset, such as \
                 IST-5:30; if that directory is missing, install the package tzdata",
                escape_untrusted(&name),
                escape_untrusted(&zoneinfo_folders()[0].to_string_lossy()),
            );
            TimeZone::UTC
        })
    };
    ZONE.get_or_init(determine).clone()
}

/// Returns the current time in the time zone of this process.
pub fn now() -> Zoned {
    Timestamp::now().to_zoned(time_zone())
}

/// Returns the folders of the time zone database. As in glibc, an empty `TZDIR` is ignored.
fn zoneinfo_folders() -> Vec<PathBuf> {
    let folder = env::var_os("TZDIR").filter(|folder| !folder.is_empty());
    folder.map_or_else(
        || ZONEINFO_FOLDERS.map(PathBuf::from).into(),
        |folder| vec![folder.into()],
    )
}

/// Finds the time zone for a value of `TZ`: an absolute path, a name in one of `folders`, or a
/// POSIX rule.
fn find_zone(name: &str, folders: &[PathBuf]) -> Option<TimeZone> {
    let name = name.strip_prefix(':').unwrap_or(name);
    // Names of UTC are valid even if the system has no time zone database.
    if ["", "UTC", "Etc/UTC", "GMT", "Universal", "Zulu"].contains(&name) {
        return Some(TimeZone::UTC);
    }
    // For an absolute path, `join` ignores the folder.
    let file = folders
        .iter()
        .find_map(|folder| read_zone(&folder.join(name)));
    // A rule without dates, such as EST5EDT, uses the daylight saving dates of the United States.
    let rule = || {
        TimeZone::posix(name)
            .or_else(|_| TimeZone::posix(&format!("{name},M3.2.0,M11.1.0")))
            .ok()
    };
    file.or_else(rule)
}

/// Reads a file of the time zone database.
fn read_zone(path: &Path) -> Option<TimeZone> {
    let data = read_from(open_regular(path).ok()?, MAX_FILE_BYTES).ok()?;
    TimeZone::tzif(&path.to_string_lossy(), &data).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_zone_rules_work_without_zone_files() {
        let summer: Timestamp = "2026-07-01T12:00:00Z".parse().unwrap();
        let hour = |name: &str| {
            find_zone(name, &[]).map(|zone| zone.to_datetime(summer).strftime("%H:%M").to_string())
        };
        for (name, expected) in [
            ("", "12:00"),
            (":UTC", "12:00"),
            ("UTC0", "12:00"),
            ("IST-5:30", "17:30"),
            ("<+0545>-5:45", "17:45"),
            ("CET-1CEST,M3.5.0,M10.5.0/3", "14:00"),
            ("EST5EDT", "08:00"),
        ] {
            assert_eq!(hour(name).as_deref(), Some(expected), "{name}");
        }
        for name in ["Mars/Olympus", "Europe/Berlin", "5", "..", "/dev/zero", "/"] {
            assert_eq!(hour(name), None, "{name}");
        }
    }
}
