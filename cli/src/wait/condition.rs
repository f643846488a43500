//! The conditions to wait for, and how far a candidate is from meeting them.

use std::{collections::HashMap, fmt, time::Duration};

use gpumon_probe::{
    model::{Absence, Reading},
    units::{Accepted, Amount, short_duration},
};

use super::candidate::{Candidate, State, Users};

const GIB: f64 = (1_u64 << 30) as f64;

const FREE: Accepted<u64> = Accepted::accept_sizes(
    1,
    u64::MAX,
    "a size of more than 0, such as 20GiB, 8000MB or 50%",
);

/// The memory that must be free.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum WantedMemory {
    Bytes(u64),
    /// A percentage of the memory available to programs.
    Percent(f64),
}

impl WantedMemory {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match Amount::parse(text) {
            Some(Amount { number, unit }) if unit == "%" => (1.0..=99.0)
                .contains(&number)
                .then_some(Self::Percent(number))
                .ok_or_else(|| {
                    "not a share from 1% to 99%; for a GPU without processes, use --empty"
                        .to_owned()
                }),
            _ => FREE.parse(text).map(Self::Bytes),
        }
    }

    /// Returns the bytes for a device with this much memory available to programs.
    fn of(self, capacity_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => (capacity_bytes as f64 * percent / 100.0).ceil() as u64,
        }
    }
}

impl fmt::Display for WantedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => f.write_str(&gib(*bytes)),
            Self::Percent(percent) => write!(f, "{percent} %"),
        }
    }
}

/// Formats bytes, such as `12.3 GiB`, in MiB below 0.1 GiB.
pub(super) fn gib(bytes: u64) -> String {
    match bytes as f64 / GIB {
        gib if gib < 0.1 => format!("{:.0} MiB", gib * 1024.0),
        gib => format!("{gib:.1} GiB"),
    }
}

/// Conditions that must all be met at the same time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Conditions {
    pub(crate) free: Option<WantedMemory>,
    pub(crate) idle: Option<Duration>,
    pub(crate) empty: bool,
}

const AND: &str = " + ";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Met,
    /// A condition is not met yet. The text describes the current state.
    NotYet(String),
    /// The device cannot be taken at present, whatever the conditions are. The text is the reason.
    Out(String),
    /// The conditions can never be met. The text is the reason.
    Never(String),
}

impl Conditions {
    /// Describes the devices to wait for, such as `an empty GPU with 20.0 GiB free` or `2 GPUs idle
    /// for 5m`. `noun` is the name of one device.
    pub(super) fn goal(&self, count: usize, noun: &str) -> String {
        let what = match (count, self.empty) {
            (1, true) => format!("an empty {noun}"),
            (1, false) => format!("a {noun}"),
            (_, true) => format!("{count} empty {noun}s"),
            (_, false) => format!("{count} {noun}s"),
        };
        let free = self
            .free
            .map(|amount| format!(" with {amount} free"))
            .unwrap_or_default();
        let idle = self
            .idle
            .map(|idle| format!(" idle for {}", short_duration(idle)))
            .unwrap_or_default();
        let and = if free.is_empty() || idle.is_empty() {
            ""
        } else {
            " and"
        };
        format!("{what}{free}{and}{idle}")
    }

    /// Returns whether a candidate meets the conditions. `idle` is the time for which nothing has
    /// run on it, or `None` if something has just run or the utilization is unknown.
    pub(super) fn judge(&self, candidate: &Candidate, idle: Option<Duration>) -> Verdict {
        if let Some(never) = self.never(candidate) {
            return Verdict::Never(never);
        }
        let state = match &candidate.state {
            Ok(state) if candidate.uuid.is_some() => state,
            Ok(_) => return Verdict::Out("not read yet".to_owned()),
            Err(trouble) => return Verdict::Out(trouble.what.clone()),
        };
        let missing = [
            self.free
                .and_then(|amount| lacks_memory(amount, candidate, state)),
            self.idle.and_then(|wanted| is_busy(wanted, idle, state)),
            self.empty.then(|| is_used(state)).flatten(),
        ];
        let missing: Vec<_> = missing.into_iter().flatten().collect();
        if missing.is_empty() {
            Verdict::Met
        } else {
            Verdict::NotYet(missing.join(AND))
        }
    }

    fn never(&self, candidate: &Candidate) -> Option<String> {
        if let Some(amount) = self.free {
            match (candidate.capacity_bytes.value(), &candidate.state) {
                (Some(&capacity), _) if amount.of(capacity) > capacity => {
                    return Some(format!("{} for programs", gib(capacity)));
                }
                (None, Err(trouble)) if trouble.gone => return Some(trouble.what.clone()),
                _ => {}
            }
        }
        let Ok(state) = &candidate.state else {
            return None;
        };
        let untold = |what: &str, absence: Option<&Absence>| {
            absence
                .filter(|reason| is_final(reason))
                .map(|reason| format!("{what} not told ({reason})"))
        };
        let free = self
            .free
            .and_then(|_| untold("memory", state.free_bytes.absence()));
        let idle = || {
            self.idle
                .and_then(|_| untold("utilization", state.busy_percent.absence()))
        };
        let empty = || {
            self.empty
                .then(|| untold("processes", state.users.absence()))
                .flatten()
        };
        free.or_else(idle).or_else(empty)
    }
}

impl Verdict {
    /// Returns the number of unmet conditions as a measure of the distance.
    pub(super) fn distance(&self) -> usize {
        match self {
            Self::Met => 0,
            Self::NotYet(how) => how.split(AND).count(),
            Self::Out(_) => 8,
            Self::Never(_) => 9,
        }
    }
}

/// Returns `true` if waiting cannot help.
fn is_final(reason: &Absence) -> bool {
    matches!(reason, Absence::NotSupported | Absence::NoPermission)
}

fn lacks_memory(amount: WantedMemory, candidate: &Candidate, state: &State) -> Option<String> {
    // An earlier value does not show the current state.
    let Reading::Now(free) = state.free_bytes else {
        return Some("memory unknown".to_owned());
    };
    let wanted = match (amount, candidate.capacity_bytes.value()) {
        (WantedMemory::Bytes(bytes), _) => bytes,
        (WantedMemory::Percent(_), Some(&capacity)) => amount.of(capacity),
        (WantedMemory::Percent(_), None) => return Some("memory unknown".to_owned()),
    };
    (free < wanted).then(|| format!("{} free", gib(free)))
}

fn is_busy(wanted: Duration, idle: Option<Duration>, state: &State) -> Option<String> {
    match (idle, &state.busy_percent) {
        (Some(idle), _) if idle >= wanted => None,
        (Some(idle), _) => Some(format!("idle {}", short_duration(idle))),
        (None, Reading::Now(busy)) if *busy > IDLE_PERCENT => Some(format!("{busy:.0} % busy")),
        (None, _) => Some("utilization unknown".to_owned()),
    }
}

fn is_used(state: &State) -> Option<String> {
    match state.users {
        Reading::Now(Users {
            computing: 0,
            held_bytes,
            driver_bytes,
        }) => (held_bytes > driver_bytes).then(|| format!("{} held", gib(held_bytes))),
        Reading::Now(Users { computing: 1, .. }) => Some("1 process".to_owned()),
        Reading::Now(Users { computing, .. }) => Some(format!("{computing} processes")),
        Reading::Earlier { .. } | Reading::Absent(_) => Some("processes unknown".to_owned()),
    }
}

/// The maximum utilization of an idle GPU. Drivers report 1 % now and then although nothing runs.
const IDLE_PERCENT: f64 = 1.0;

/// The maximum time between two readings. After a longer gap, it is unknown what has run in
/// between.
const GAP_MS: u64 = 10_000;

/// A clock for each candidate, which starts when the candidate is first seen idle.
#[derive(Debug, Default)]
pub(super) struct IdleClocks(HashMap<String, Clock>);

#[derive(Debug, Clone, Copy)]
struct Clock {
    since_ms: u64,
    last_ms: u64,
}

impl IdleClocks {
    /// Updates the clock with a reading. Returns the time for which nothing has run, or `None` if
    /// something runs or the utilization is unknown.
    pub(super) fn update(&mut self, candidate: &Candidate, interval: Duration) -> Option<Duration> {
        let uuid = candidate.uuid.as_ref()?;
        let busy = candidate
            .state
            .as_ref()
            .ok()
            .map(|state| &state.busy_percent);
        if !matches!(busy, Some(Reading::Now(percent)) if *percent <= IDLE_PERCENT) {
            self.0.remove(uuid);
            return None;
        }
        let at_ms = candidate.at_ms;
        let longest = GAP_MS.max(3 * interval.as_millis() as u64);
        let clock = self.0.entry(uuid.clone()).or_insert(Clock {
            since_ms: at_ms,
            last_ms: at_ms,
        });
        if at_ms < clock.last_ms || at_ms - clock.last_ms > longest {
            clock.since_ms = at_ms;
        }
        clock.last_ms = at_ms;
        Some(Duration::from_millis(at_ms - clock.since_ms))
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, Vendor};

    use super::super::candidate::{State, Trouble};

    use super::*;

    const GIB: u64 = 1 << 30;

    fn candidate(state: Result<State, Trouble>) -> Candidate {
        let capacity_bytes = Reading::Now(80 * GIB);
        Candidate {
            gpu: 0,
            mig: None,
            uuid: Some("GPU-0".into()),
            vendor: Vendor::Nvidia,
            visible_as: None,
            at_ms: 1,
            capacity_bytes,
            state,
        }
    }

    fn state(free_gib: u64, busy: f64, computing: usize, held_gib: u64) -> State {
        let users = Users {
            computing,
            held_bytes: held_gib * GIB,
            driver_bytes: GIB / 8,
        };
        State {
            free_bytes: Reading::Now(free_gib * GIB),
            busy_percent: Reading::Now(busy),
            users: Reading::Now(users),
        }
    }

    fn all() -> Conditions {
        let (free, idle) = (
            Some(WantedMemory::Bytes(20 * GIB)),
            Some(Duration::from_mins(1)),
        );
        Conditions {
            free,
            idle,
            empty: true,
        }
    }

    fn not_yet(what: &str) -> Verdict {
        Verdict::NotYet(what.to_owned())
    }

    fn out(why: &str) -> Verdict {
        Verdict::Out(why.to_owned())
    }

    #[test]
    fn wanted_memory_is_size_or_share() {
        use WantedMemory::{Bytes, Percent};
        assert_eq!(WantedMemory::parse("50%"), Ok(Percent(50.0)));
        assert_eq!(WantedMemory::parse("512MiB"), Ok(Bytes(512 << 20)));
        for (text, said) in [
            ("", "20GiB"),
            ("20", "20GiB or 20MiB"),
            ("0GiB", "more than 0"),
            ("-1GiB", "more than 0"),
            ("0%", "1% to 99%"),
            ("100%", "--empty"),
        ] {
            let error = WantedMemory::parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
        assert_eq!((Percent(50.0).of(81), Bytes(7).of(81)), (41, 7));
        let shown = [Percent(50.0), Bytes(20 << 30)].map(|wanted| wanted.to_string());
        assert_eq!(shown, ["50 %", "20.0 GiB"]);
        assert_eq!([gib(4 << 20), gib(150_754_820_096)], ["4 MiB", "140.4 GiB"]);
    }

    #[test]
    fn all_conditions_have_to_hold_and_what_is_missing_is_said() {
        let minute = Some(Duration::from_mins(1));
        assert_eq!(
            all().judge(&candidate(Ok(state(20, 1.0, 0, 0))), minute),
            Verdict::Met
        );
        for (state, idle, said) in [
            (state(19, 0.0, 0, 0), minute, "19.0 GiB free"),
            (
                state(20, 0.0, 0, 0),
                Some(Duration::from_secs(59)),
                "idle 59s",
            ),
            (state(20, 87.0, 0, 0), None, "87 % busy"),
            (state(20, 0.0, 2, 0), minute, "2 processes"),
            (state(20, 0.0, 0, 1), minute, "1.0 GiB held"),
            (
                state(3, 50.0, 1, 1),
                None,
                "3.0 GiB free + 50 % busy + 1 process",
            ),
        ] {
            assert_eq!(all().judge(&candidate(Ok(state)), idle), not_yet(said));
        }
        assert_eq!(
            all().goal(1, "GPU"),
            "an empty GPU with 20.0 GiB free and idle for 1m"
        );
        assert_eq!(
            Conditions {
                free: None,
                idle: None,
                empty: true
            }
            .goal(2, "GPU"),
            "2 empty GPUs"
        );
        assert_eq!(
            Conditions {
                free: None,
                idle: minute,
                empty: false
            }
            .goal(1, "simulated GPU"),
            "a simulated GPU idle for 1m"
        );
    }

    #[test]
    fn what_is_old_or_unknown_meets_nothing() {
        let unknown = State {
            free_bytes: Reading::Earlier {
                value: 70 * GIB,
                at_ms: 1,
            },
            busy_percent: Reading::Absent(Absence::WarmingUp),
            users: Reading::Absent(Absence::Unknown),
        };
        let said = "memory unknown + utilization unknown + processes unknown";
        assert_eq!(all().judge(&candidate(Ok(unknown)), None), not_yet(said));
        let hung = Trouble {
            what: "hung".to_owned(),
            gone: false,
        };
        assert_eq!(all().judge(&candidate(Err(hung)), None), out("hung"));
        let mut nameless = candidate(Ok(state(80, 0.0, 0, 0)));
        nameless.uuid = None;
        assert_eq!(
            all().judge(&nameless, Some(Duration::MAX)),
            out("not read yet")
        );
    }

    #[test]
    fn what_can_never_be_is_told_from_what_is_not_yet() {
        let huge = Conditions {
            free: Some(WantedMemory::Bytes(81 * GIB)),
            idle: None,
            empty: false,
        };
        let never = |what: &str| Verdict::Never(what.to_owned());
        assert_eq!(
            huge.judge(&candidate(Ok(state(80, 0.0, 0, 0))), None),
            never("80.0 GiB for programs")
        );
        let lost = || {
            candidate(Err(Trouble {
                what: "lost".to_owned(),
                gone: true,
            }))
        };
        let mut never_seen = lost();
        never_seen.capacity_bytes = Reading::Absent(Absence::GpuLost);
        assert_eq!(
            all().judge(&lost(), None),
            out("lost"),
            "it may come back, and is large enough"
        );
        assert_eq!(all().judge(&never_seen, None), never("lost"));
        let mut blind = state(80, 0.0, 0, 0);
        blind.busy_percent = Reading::Absent(Absence::NotSupported);
        let said = never("utilization not told (not on this board or driver)");
        assert_eq!(all().judge(&candidate(Ok(blind)), None), said);
    }

    fn make_candidate(at_ms: u64, busy_percent: Reading<f64>) -> Candidate {
        let absent = || Reading::Absent(Absence::Unknown);
        let state = Ok(State {
            free_bytes: absent(),
            busy_percent,
            users: Reading::Absent(Absence::Unknown),
        });
        Candidate {
            gpu: 0,
            mig: None,
            uuid: Some("GPU-0".into()),
            vendor: Vendor::Nvidia,
            visible_as: None,
            at_ms,
            capacity_bytes: absent(),
            state,
        }
    }

    #[test]
    fn only_what_was_watched_without_a_break_counts() {
        let mut clocks = IdleClocks::default();
        let mut look = |candidate: &Candidate| {
            clocks
                .update(candidate, Duration::from_secs(1))
                .map(|idle| idle.as_millis())
        };
        assert_eq!(look(&make_candidate(1_000, Reading::Now(0.0))), Some(0));
        assert_eq!(look(&make_candidate(3_000, Reading::Now(1.0))), Some(2_000));
        assert_eq!(
            look(&make_candidate(4_000, Reading::Now(2.0))),
            None,
            "something ran"
        );
        assert_eq!(look(&make_candidate(5_000, Reading::Now(0.0))), Some(0));
        assert_eq!(
            look(&make_candidate(15_000, Reading::Now(0.0))),
            Some(10_000)
        );
        assert_eq!(
            look(&make_candidate(25_001, Reading::Now(0.0))),
            Some(0),
            "the machine slept"
        );
        assert_eq!(
            look(&make_candidate(25_000, Reading::Now(0.0))),
            Some(0),
            "the clock was set back"
        );
        assert_eq!(
            look(&make_candidate(26_000, Reading::Absent(Absence::Unknown))),
            None
        );
        let mut hung = make_candidate(27_000, Reading::Now(0.0));
        hung.state = Err(Trouble {
            what: "hung".into(),
            gone: false,
        });
        assert_eq!(look(&hung), None);
        assert_eq!(
            look(&make_candidate(28_000, Reading::Now(0.0))),
            Some(0),
            "nobody knows what ran meanwhile"
        );
    }
}
