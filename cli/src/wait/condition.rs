//! The conditions for which `gpumon wait` waits, and how close a candidate is to meeting them.

use std::{collections::HashMap, fmt, time::Duration};

use gpumon_probe::{
    model::{Absence, Reading},
    units::{AcceptedAmounts, Amount, format_short_duration},
};

use super::candidate::{Candidate, DeviceState, DeviceUsers};
use crate::terminal::units::GIB;

const ACCEPTED_FREE_SIZES: AcceptedAmounts<u64> = AcceptedAmounts::accept_sizes(
    1,
    u64::MAX,
    "a size of more than 0, such as 20GiB, 8000MB or 50%",
);

/// The amount of memory that must be free.
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
                    "expected a share from 1% to 99%; for a GPU without processes, use --empty"
                        .to_owned()
                }),
            _ => ACCEPTED_FREE_SIZES.parse(text).map(Self::Bytes),
        }
    }

    /// Returns the amount in bytes. `capacity_bytes` is the memory that is available to programs.
    fn to_bytes(self, capacity_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => (capacity_bytes as f64 * percent / 100.0).ceil() as u64,
        }
    }
}

impl fmt::Display for WantedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => f.write_str(&format_gib(*bytes)),
            Self::Percent(percent) => write!(f, "{percent} %"),
        }
    }
}

/// Formats bytes in GiB, such as `12.3 GiB`. Amounts below 0.1 GiB are in MiB.
pub(super) fn format_gib(bytes: u64) -> String {
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

const CONDITION_SEPARATOR: &str = " + ";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Met,
    /// At least one condition is not met yet. The text describes the current state.
    NotYet(String),
    /// The device cannot be taken at present, regardless of the conditions. The text is the reason.
    Out(String),
    /// The conditions can never be met. The text is the reason.
    Never(String),
}

impl Conditions {
    /// Describes the devices that are waited for, such as `an empty GPU with 20.0 GiB free` or `2
    /// GPUs idle for 5m`. `noun` is the word for one device.
    pub(super) fn describe_goal(&self, count: usize, noun: &str) -> String {
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
            .map(|idle| format!(" idle for {}", format_short_duration(idle)))
            .unwrap_or_default();
        let and = if free.is_empty() || idle.is_empty() {
            ""
        } else {
            " and"
        };
        format!("{what}{free}{and}{idle}")
    }

    /// Checks whether a candidate meets the conditions. `idle` is the time for which nothing has
    /// run on the candidate, or `None` if something runs or the utilization is unknown.
    pub(super) fn evaluate(&self, candidate: &Candidate, idle: Option<Duration>) -> Verdict {
        if let Some(never) = self.find_permanent_obstacle(candidate) {
            return Verdict::Never(never);
        }
        let state = match &candidate.state {
            Ok(state) if candidate.uuid.is_some() => state,
            Ok(_) => return Verdict::Out("not read yet".to_owned()),
            Err(trouble) => return Verdict::Out(trouble.what.clone()),
        };
        let missing = [
            self.free
                .and_then(|amount| describe_missing_memory(amount, candidate, state)),
            self.idle
                .and_then(|wanted| describe_unmet_idle_time(wanted, idle, state)),
            self.empty
                .then(|| describe_remaining_users(state))
                .flatten(),
        ];
        let missing: Vec<_> = missing.into_iter().flatten().collect();
        if missing.is_empty() {
            Verdict::Met
        } else {
            Verdict::NotYet(missing.join(CONDITION_SEPARATOR))
        }
    }

    fn find_permanent_obstacle(&self, candidate: &Candidate) -> Option<String> {
        if let Some(amount) = self.free {
            match (candidate.capacity_bytes.value(), &candidate.state) {
                (Some(&capacity), _) if amount.to_bytes(capacity) > capacity => {
                    return Some(format!(
                        "only {} available to programs",
                        format_gib(capacity)
                    ));
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
                .filter(|reason| is_permanent(reason))
                .map(|reason| format!("{what} not reported ({reason})"))
        };
        let needed = [
            (self.free.is_some(), "memory", state.free_bytes.absence()),
            (
                self.idle.is_some(),
                "utilization",
                state.busy_percent.absence(),
            ),
            (self.empty, "processes", state.users.absence()),
        ];
        needed
            .into_iter()
            .filter(|(is_needed, ..)| *is_needed)
            .find_map(|(_, what, absence)| untold(what, absence))
    }
}

impl Verdict {
    /// Returns how far a candidate is from meeting the conditions: the number of unmet conditions,
    /// or a larger number if the device cannot be taken.
    pub(super) fn distance_from_meeting_conditions(&self) -> usize {
        match self {
            Self::Met => 0,
            Self::NotYet(how) => how.split(CONDITION_SEPARATOR).count(),
            Self::Out(_) => 8,
            Self::Never(_) => 9,
        }
    }
}

/// Returns `true` if the reading will stay absent, so that waiting is pointless.
fn is_permanent(reason: &Absence) -> bool {
    matches!(reason, Absence::NotSupported | Absence::NoPermission)
}

fn describe_missing_memory(
    amount: WantedMemory,
    candidate: &Candidate,
    state: &DeviceState,
) -> Option<String> {
    // An older reading does not show the current state.
    let Reading::Now(free) = state.free_bytes else {
        return Some("memory unknown".to_owned());
    };
    let wanted = match (amount, candidate.capacity_bytes.value()) {
        (WantedMemory::Bytes(bytes), _) => bytes,
        (WantedMemory::Percent(_), Some(&capacity)) => amount.to_bytes(capacity),
        (WantedMemory::Percent(_), None) => return Some("memory unknown".to_owned()),
    };
    (free < wanted).then(|| format!("{} free", format_gib(free)))
}

fn describe_unmet_idle_time(
    wanted: Duration,
    idle: Option<Duration>,
    state: &DeviceState,
) -> Option<String> {
    match (idle, &state.busy_percent) {
        (Some(idle), _) if idle >= wanted => None,
        (Some(idle), _) => Some(format!("idle {}", format_short_duration(idle))),
        (None, Reading::Now(busy)) if *busy > IDLE_PERCENT => Some(format!("{busy:.0} % busy")),
        (None, _) => Some("utilization unknown".to_owned()),
    }
}

fn describe_remaining_users(state: &DeviceState) -> Option<String> {
    match state.users {
        Reading::Now(DeviceUsers {
            computing: 0,
            held_bytes,
            driver_bytes,
        }) => (held_bytes > driver_bytes).then(|| format!("{} held", format_gib(held_bytes))),
        Reading::Now(DeviceUsers { computing: 1, .. }) => Some("1 process".to_owned()),
        Reading::Now(DeviceUsers { computing, .. }) => Some(format!("{computing} processes")),
        Reading::Earlier { .. } | Reading::Absent(_) => Some("processes unknown".to_owned()),
    }
}

/// The maximum utilization of an idle GPU in percent. Drivers occasionally report 1 % although
/// nothing runs.
const IDLE_PERCENT: f64 = 1.0;

/// If two readings are further apart than this, in milliseconds, the idle clock starts again,
/// because anything may have run in between.
const GAP_MS: u64 = 10_000;

/// The idle clocks of the candidates, by UUID. A clock starts when its candidate is first seen
/// idle.
#[derive(Debug, Default)]
pub(super) struct IdleClocks(HashMap<String, Clock>);

#[derive(Debug, Clone, Copy)]
struct Clock {
    since_ms: u64,
    last_ms: u64,
}

impl IdleClocks {
    /// Updates a candidate's clock with its reading. Returns the time for which the candidate has
    /// been idle, or `None` if something runs or the utilization is unknown.
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

    use super::super::candidate::{DeviceState, Obstacle};

    use super::*;

    const GIB: u64 = 1 << 30;

    fn make_candidate_in_state(state: Result<DeviceState, Obstacle>) -> Candidate {
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

    fn make_state(free_gib: u64, busy: f64, computing: usize, held_gib: u64) -> DeviceState {
        let users = DeviceUsers {
            computing,
            held_bytes: held_gib * GIB,
            driver_bytes: GIB / 8,
        };
        DeviceState {
            free_bytes: Reading::Now(free_gib * GIB),
            busy_percent: Reading::Now(busy),
            users: Reading::Now(users),
        }
    }

    fn make_all_conditions() -> Conditions {
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

    fn make_unmet_verdict(what: &str) -> Verdict {
        Verdict::NotYet(what.to_owned())
    }

    fn make_unusable_verdict(why: &str) -> Verdict {
        Verdict::Out(why.to_owned())
    }

    #[test]
    fn wanted_memory_is_parsed_as_size_or_percentage() {
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
        assert_eq!((Percent(50.0).to_bytes(81), Bytes(7).to_bytes(81)), (41, 7));
        let shown = [Percent(50.0), Bytes(20 << 30)].map(|wanted| wanted.to_string());
        assert_eq!(shown, ["50 %", "20.0 GiB"]);
        assert_eq!(
            [format_gib(4 << 20), format_gib(150_754_820_096)],
            ["4 MiB", "140.4 GiB"]
        );
    }

    #[test]
    fn unmet_conditions_are_described() {
        let minute = Some(Duration::from_mins(1));
        assert_eq!(
            make_all_conditions().evaluate(
                &make_candidate_in_state(Ok(make_state(20, 1.0, 0, 0))),
                minute
            ),
            Verdict::Met
        );
        for (state, idle, said) in [
            (make_state(19, 0.0, 0, 0), minute, "19.0 GiB free"),
            (
                make_state(20, 0.0, 0, 0),
                Some(Duration::from_secs(59)),
                "idle 59s",
            ),
            (make_state(20, 87.0, 0, 0), None, "87 % busy"),
            (make_state(20, 0.0, 2, 0), minute, "2 processes"),
            (make_state(20, 0.0, 0, 1), minute, "1.0 GiB held"),
            (
                make_state(3, 50.0, 1, 1),
                None,
                "3.0 GiB free + 50 % busy + 1 process",
            ),
        ] {
            assert_eq!(
                make_all_conditions().evaluate(&make_candidate_in_state(Ok(state)), idle),
                make_unmet_verdict(said)
            );
        }
        assert_eq!(
            make_all_conditions().describe_goal(1, "GPU"),
            "an empty GPU with 20.0 GiB free and idle for 1m"
        );
        assert_eq!(
            Conditions {
                free: None,
                idle: None,
                empty: true
            }
            .describe_goal(2, "GPU"),
            "2 empty GPUs"
        );
        assert_eq!(
            Conditions {
                free: None,
                idle: minute,
                empty: false
            }
            .describe_goal(1, "simulated GPU"),
            "a simulated GPU idle for 1m"
        );
    }

    #[test]
    fn outdated_or_missing_readings_do_not_meet_conditions() {
        let unknown = DeviceState {
            free_bytes: Reading::Earlier {
                value: 70 * GIB,
                at_ms: 1,
            },
            busy_percent: Reading::Absent(Absence::WarmingUp),
            users: Reading::Absent(Absence::Unknown),
        };
        let said = "memory unknown + utilization unknown + processes unknown";
        assert_eq!(
            make_all_conditions().evaluate(&make_candidate_in_state(Ok(unknown)), None),
            make_unmet_verdict(said)
        );
        let hung = Obstacle {
            what: "hung".to_owned(),
            gone: false,
        };
        assert_eq!(
            make_all_conditions().evaluate(&make_candidate_in_state(Err(hung)), None),
            make_unusable_verdict("hung")
        );
        let mut nameless = make_candidate_in_state(Ok(make_state(80, 0.0, 0, 0)));
        nameless.uuid = None;
        assert_eq!(
            make_all_conditions().evaluate(&nameless, Some(Duration::MAX)),
            make_unusable_verdict("not read yet")
        );
    }

    #[test]
    fn impossible_and_unmet_conditions_are_distinguished() {
        let huge = Conditions {
            free: Some(WantedMemory::Bytes(81 * GIB)),
            idle: None,
            empty: false,
        };
        let never = |what: &str| Verdict::Never(what.to_owned());
        assert_eq!(
            huge.evaluate(
                &make_candidate_in_state(Ok(make_state(80, 0.0, 0, 0))),
                None
            ),
            never("only 80.0 GiB available to programs")
        );
        let lost = || {
            make_candidate_in_state(Err(Obstacle {
                what: "lost".to_owned(),
                gone: true,
            }))
        };
        let mut never_seen = lost();
        never_seen.capacity_bytes = Reading::Absent(Absence::GpuLost);
        assert_eq!(
            make_all_conditions().evaluate(&lost(), None),
            make_unusable_verdict("lost"),
            "it may come back, and is large enough"
        );
        assert_eq!(
            make_all_conditions().evaluate(&never_seen, None),
            never("lost")
        );
        let mut blind = make_state(80, 0.0, 0, 0);
        blind.busy_percent = Reading::Absent(Absence::NotSupported);
        let said = never("utilization not reported (not supported by this board or driver)");
        assert_eq!(
            make_all_conditions().evaluate(&make_candidate_in_state(Ok(blind)), None),
            said
        );
    }

    fn make_candidate(at_ms: u64, busy_percent: Reading<f64>) -> Candidate {
        let absent = || Reading::Absent(Absence::Unknown);
        let state = Ok(DeviceState {
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
    fn gap_in_readings_restarts_idle_time() {
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
        hung.state = Err(Obstacle {
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
