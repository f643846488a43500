use super::*;
use crate::{
    derive::examples,
    model::{Absence, BatchJob, GpuSample, Health, JobKind, Owner, Process, Reading},
};

const START_MS: u64 = 1_700_000_000_000;

/// The idle power of the GPU in these tests.
const IDLE_WATTS: f64 = 100.0;

/// A simulated GPU, whose energy counter is read every five seconds.
struct Timeline {
    meter: UsageMeter,
    at_ms: u64,
    joules: f64,
    read: Reading<f64>,
    watts: f64,
}

impl Timeline {
    fn new() -> Self {
        let read = Reading::Absent(Absence::NotReadYet);
        Self {
            meter: UsageMeter::default(),
            at_ms: START_MS,
            joules: 5e6,
            read,
            watts: IDLE_WATTS,
        }
    }

    /// Advances by `seconds` with the given power draw and processes.
    fn advance(&mut self, seconds: u64, watts: f64, processes: &[Process]) -> &mut Self {
        self.advance_with_change(seconds, watts, processes, |_| {})
    }

    fn advance_with_change(
        &mut self,
        seconds: u64,
        watts: f64,
        processes: &[Process],
        change: impl Fn(&mut GpuSample),
    ) -> &mut Self {
        for _ in 0..seconds {
            // The power is interpolated linearly between two samples.
            self.joules += f64::midpoint(self.watts, watts);
            (self.at_ms, self.watts) = (self.at_ms + 1_000, watts);
            if self.at_ms.is_multiple_of(5_000) {
                self.read = Reading::Earlier {
                    value: self.joules,
                    at_ms: self.at_ms,
                };
            }
            let mut gpu = examples::make_sample(self.at_ms);
            gpu.power.draw_watts = Reading::Now(watts);
            gpu.power.limit_watts = Reading::Now(700.0);
            gpu.power.energy_joules_total = self.read.clone();
            gpu.utilization.gpu_percent =
                Reading::Now(if watts > IDLE_WATTS { 100.0 } else { 0.0 });
            gpu.processes = Reading::Now(processes.to_vec());
            change(&mut gpu);
            self.meter.push_gpus(self.at_ms, 1_000, &[gpu]);
        }
        self
    }

    fn usage(&self) -> Usage {
        self.meter.usage()
    }

    fn usage_of(&self, user: &str) -> OwnerUsage {
        self.usage()
            .owners
            .into_iter()
            .find(|owner| owner.user.as_deref() == Some(user))
            .unwrap()
    }
}

fn make_process(user: &str, pid: u32, sm_percent: f64) -> Process {
    Process {
        user: Reading::Now(user.to_owned()),
        sm_percent: Reading::Now(sm_percent),
        ..examples::make_process(pid, 1 << 30)
    }
}

fn make_job_process(user: &str, pid: u32, job_id: &str) -> Process {
    let slurm = Some(BatchJob {
        job_id: job_id.to_owned(),
        step: None,
        private: false,
    });
    Process {
        owner: Reading::Now(Owner {
            slurm,
            ..Owner::default()
        }),
        ..make_process(user, pid, 90.0)
    }
}

#[track_caller]
fn assert_near(is: f64, expected: f64) {
    assert!(
        (is - expected).abs() <= expected.abs() * 1e-6 + 1e-6,
        "{is} instead of {expected}"
    );
}

/// Asserts the lower bound, the estimate and the upper bound.
#[track_caller]
fn assert_joules(owner: &OwnerUsage, least: f64, estimate: f64, most: f64) {
    let joules = owner.joules.unwrap();
    assert_near(joules.least, least);
    assert_near(joules.estimate, estimate);
    assert_near(joules.most, most);
}

#[test]
fn energy_counter_growth_is_assigned_to_sole_owner() {
    let mut timeline = Timeline::new();
    let ana = [make_process("ana", 7, 80.0), make_process("ana", 8, 30.0)];
    timeline
        .advance(10, IDLE_WATTS, &ana)
        .advance(100, 500.0, &ana)
        .advance(10, IDLE_WATTS, &ana);
    let owner = timeline.usage_of("ana");
    // The counter is read every five seconds, so the measurement covers the time from its first to
    // its last reading.
    assert_joules(&owner, 51_900.0, 51_900.0, 51_900.0);
    assert_near(owner.gpu_seconds, 119.0);
    assert_near(owner.exclusive_seconds, 119.0);
    assert_near(owner.active_seconds, 119.0);
    assert_eq!(timeline.usage().owners.len(), 1);
    assert_eq!(timeline.usage().unheld, UnheldUsage::default());
}

#[test]
fn energy_counter_corrects_power_integral() {
    let ana = [make_process("ana", 7, 100.0)];
    let mut timeline = Timeline::new();
    // The reported power is a fifth below the actual power.
    timeline.advance_with_change(60, 500.0, &ana, |gpu| {
        gpu.power.draw_watts = Reading::Now(400.0);
    });
    let joules = timeline.usage_of("ana").joules.unwrap();
    // In the first four seconds, before the first reading of the counter, only the power is known.
    assert_near(joules.estimate, 4.0 * 400.0 + 55.0 * 500.0);
    assert_near(joules.least, joules.most);
}

#[test]
fn power_integral_replaces_missing_energy_counter() {
    let ana = [make_process("ana", 7, 100.0)];
    let mut timeline = Timeline::new();
    timeline.advance_with_change(60, 500.0, &ana, |gpu| {
        gpu.power.energy_joules_total = Reading::Absent(Absence::NotSupported);
    });
    let reported_s = timeline.usage_of("ana").gpu_seconds;
    assert!((54.0..=59.0).contains(&reported_s), "{reported_s}");
    assert_joules(
        &timeline.usage_of("ana"),
        500.0 * reported_s,
        500.0 * reported_s,
        500.0 * reported_s,
    );
    let mut timeline = Timeline::new();
    timeline.advance_with_change(60, 500.0, &ana, |gpu| {
        gpu.power = examples::make_sample(0).power;
    });
    assert!(
        timeline.usage_of("ana").gpu_seconds > 50.0 && timeline.usage_of("ana").joules.is_none()
    );
}

#[test]
fn energy_of_shared_use_has_bounds_and_estimates() {
    let mut timeline = Timeline::new();
    let (idle, ana_computes) = (
        [make_process("ana", 7, 0.0), make_process("bob", 8, 0.0)],
        [make_process("ana", 7, 90.0), make_process("bob", 8, 0.0)],
    );
    let both_compute = [make_process("ana", 7, 60.0), make_process("bob", 8, 20.0)];
    timeline.advance(11, IDLE_WATTS, &idle);
    let before = timeline.usage_of("ana").joules.unwrap();
    assert_near(
        before.estimate,
        timeline.usage_of("bob").joules.unwrap().estimate,
    );
    timeline
        .advance(100, 400.0, &ana_computes)
        .advance(100, 500.0, &both_compute)
        .advance(9, 500.0, &both_compute);
    let (ana, bob) = (timeline.usage_of("ana"), timeline.usage_of("bob"));
    let all = timeline.usage();
    let whole: f64 = all
        .owners
        .iter()
        .map(|owner| owner.joules.unwrap().estimate)
        .sum();
    // All energy up to the last reading of the counter is assigned to an owner.
    assert_near(whole, ana.joules.unwrap().most);
    assert_near(ana.joules.unwrap().most, bob.joules.unwrap().most);
    // The lower bound counts only the power above the idle power of 100 W: 300 W for 99 s, and 150
    // W for one second of transition.
    assert_near(ana.joules.unwrap().least, 99.0 * 300.0 + 150.0);
    assert_near(bob.joules.unwrap().least, 0.0);
    for owner in &all.owners {
        let Joules {
            least,
            most,
            estimate,
        } = owner.joules.unwrap();
        assert!(least <= estimate && estimate <= most, "{owner:?}");
        assert_near(owner.exclusive_seconds, 0.0);
    }
    let ratio = (ana.joules.unwrap().estimate) / bob.joules.unwrap().estimate;
    assert!((2.5..5.0).contains(&ratio), "{ratio}");
    assert_eq!(
        all.owners[0].user.as_deref(),
        Some("ana"),
        "who used most comes first"
    );
}

#[test]
fn energy_is_split_equally_if_shares_are_unknown() {
    let unknown = |user, pid| Process {
        sm_percent: Reading::Absent(Absence::NotSupported),
        ..make_process(user, pid, 0.0)
    };
    let mut timeline = Timeline::new();
    timeline.advance(60, 500.0, &[unknown("ana", 7), unknown("bob", 8)]);
    let (ana, bob) = (
        timeline.usage_of("ana").joules.unwrap(),
        timeline.usage_of("bob").joules.unwrap(),
    );
    assert_near(ana.estimate, bob.estimate);
    assert_near(ana.estimate * 2.0, ana.most);
    assert_near(ana.least, 0.0);
    let mut timeline = Timeline::new();
    timeline.advance_with_change(60, 500.0, &[make_process("ana", 7, 100.0)], |gpu| {
        gpu.processes_omitted = 5;
    });
    let joules = timeline.usage_of("ana").joules.unwrap();
    assert!(joules.least == 0.0 && joules.most > 20_000.0, "{joules:?}");
}

#[test]
fn energy_of_temporary_owner_has_bounds() {
    let mut timeline = Timeline::new();
    let ana = [make_process("ana", 7, 50.0)];
    timeline
        .advance(20, IDLE_WATTS, &[])
        .advance(40, 300.0, &ana)
        .advance(20, IDLE_WATTS, &[]);
    let (owner, all) = (timeline.usage_of("ana"), timeline.usage());
    assert_near(owner.gpu_seconds, 40.0);
    let reported = owner.joules.unwrap();
    assert!(
        reported.least < 40.0 * 300.0
            && reported.most > 40.0 * 300.0
            && reported.most - reported.least < 500.0,
        "{reported:?}"
    );
    assert_near(
        reported.estimate + all.unheld.joules,
        79.0 * IDLE_WATTS + 40.0 * 200.0,
    );
    assert_near(owner.gpu_seconds + all.unheld.gpu_seconds, 79.0);
}

#[test]
fn earlier_use_is_assigned_to_owner_identified_later() {
    let unread = |pid| Process {
        user: Reading::Absent(Absence::NotReadYet),
        owner: Reading::Absent(Absence::NotReadYet),
        ..make_process("", pid, 50.0)
    };
    let mut timeline = Timeline::new();
    timeline.advance(3, 500.0, &[unread(7)]).advance(
        60,
        500.0,
        &[make_job_process("ana", 7, "42")],
    );
    timeline
        .advance(60, 500.0, &[make_job_process("ana", 9, "43")])
        .advance(60, 500.0, &[make_process("ana", 10, 10.0)]);
    let owners = timeline.usage().owners;
    let names: Vec<_> = owners
        .iter()
        .map(|owner| {
            (
                owner.user.as_deref(),
                owner.job.as_ref().map(|job| job.id.as_str()),
            )
        })
        .collect();
    assert_eq!(owners.len(), 3, "{names:?}");
    assert!(
        names.contains(&(Some("ana"), Some("42"))) && names.contains(&(Some("ana"), None)),
        "{names:?}"
    );
    let first = owners
        .iter()
        .find(|owner| owner.job.as_ref().is_some_and(|of| of.id == "42"))
        .unwrap();
    assert!(first.gpu_seconds > 62.0, "{first:?}");
}

#[test]
fn mps_server_is_not_an_owner() {
    let server = Process {
        name: Reading::Now("nvidia-cuda-mps-server".into()),
        ..make_process("root", 5, 0.0)
    };
    let mut timeline = Timeline::new();
    timeline.advance(60, 500.0, &[server, make_process("ana", 7, 90.0)]);
    assert_eq!(timeline.usage().owners.len(), 1);
    assert_near(
        timeline.usage_of("ana").exclusive_seconds,
        timeline.usage_of("ana").gpu_seconds,
    );
}

#[test]
fn use_during_gaps_and_resets_is_unassigned() {
    let ana = [make_process("ana", 7, 100.0)];
    let mut timeline = Timeline::new();
    timeline.advance(61, 500.0, &ana);
    timeline.at_ms += 3_600_000;
    timeline.joules += 1e7;
    timeline.advance(60, 500.0, &ana);
    let (seconds, used) = (
        timeline.usage_of("ana").gpu_seconds,
        timeline.usage_of("ana").joules.unwrap(),
    );
    assert!(
        (110.0..=119.0).contains(&seconds) && used.most <= 119.0 * 500.0,
        "{seconds} s {used:?}"
    );
    timeline.advance_with_change(60, 500.0, &[], |gpu| {
        *gpu = GpuSample::new_absent(
            0,
            None,
            gpu.at_ms,
            Health::Lost { since_ms: 0 },
            &Absence::GpuLost,
        );
    });
    timeline.joules = 12.0;
    timeline.advance(60, 500.0, &ana);
    timeline.joules += 1e9;
    timeline.advance(60, 500.0, &ana);
    timeline.joules = 3.0;
    timeline.advance(60, 500.0, &ana);
    let (seconds, used) = (
        timeline.usage_of("ana").gpu_seconds,
        timeline.usage_of("ana").joules.unwrap(),
    );
    assert!((290.0..=300.0).contains(&seconds), "{seconds}");
    assert!(
        (seconds * 490.0..=seconds * 510.0).contains(&used.estimate),
        "{seconds} s {used:?}"
    );
}

#[test]
fn energy_before_driver_stall_is_counted_once() {
    let ana = [make_process("ana", 7, 100.0)];
    for hangs in [true, false] {
        let mut timeline = Timeline::new();
        // The driver stalls at second 44. Before that, the counter is last read at second 40.
        timeline.advance(44, 300.0, &ana);
        let read = timeline.read.clone();
        if hangs {
            let hung = |gpu: &mut GpuSample| gpu.health = Health::Hung { since_ms: START_MS };
            timeline.advance_with_change(6, 300.0, &ana, hung);
        } else {
            (timeline.at_ms, timeline.joules) =
                (timeline.at_ms + 6_000, timeline.joules + 6.0 * 300.0);
        }
        timeline.read = read;
        timeline.advance(16, 300.0, &ana);
        let owner = timeline.usage_of("ana");
        assert!(owner.gpu_seconds > 55.0, "{owner:?}");
        assert_joules(
            &owner,
            owner.gpu_seconds * 300.0,
            owner.gpu_seconds * 300.0,
            owner.gpu_seconds * 300.0,
        );
    }
}

#[test]
fn many_owners_are_merged_by_user() {
    let mut timeline = Timeline::new();
    for job in 0..5_000_u32 {
        timeline.advance(
            1,
            500.0,
            &[make_job_process("ana", job + 1, &job.to_string())],
        );
    }
    let usage = timeline.usage();
    assert!(
        (MAX_OWNERS - SPARE_OWNERS..=MAX_OWNERS).contains(&usage.owners.len()),
        "{}",
        usage.owners.len()
    );
    let seconds: f64 = usage.owners.iter().map(|owner| owner.gpu_seconds).sum();
    assert!((4_990.0..=5_000.0).contains(&seconds), "{seconds}");
    assert!(usage.owners.iter().any(|owner| owner.job.is_none()));
}

#[test]
fn number_of_users_is_limited() {
    let mut timeline = Timeline::new();
    for user in 0..5_000_u32 {
        timeline.advance(1, 500.0, &[make_process(&user.to_string(), user + 1, 50.0)]);
    }
    let usage = timeline.usage();
    assert!(usage.owners.len() <= MAX_OWNERS, "{}", usage.owners.len());
    let seconds: f64 = usage.owners.iter().map(|owner| owner.gpu_seconds).sum();
    assert!((4_990.0..=5_000.0).contains(&seconds), "{seconds}");
    let others = usage.owners.iter().find(|owner| owner.user.is_none());
    assert!(
        others.is_some_and(|others| others.gpu_seconds > 500.0),
        "{others:?}"
    );
}

#[test]
fn number_of_owners_in_joined_periods_is_limited() {
    let period = |part: u32| {
        let owner = |job: u32| OwnerUsage {
            user: Some("ana".to_owned()),
            job: Some(Job {
                kind: JobKind::Slurm,
                id: format!("{part}-{job}"),
                path: None,
                name: None,
                private: false,
            }),
            gpu_seconds: 1.0,
            exclusive_seconds: 0.0,
            active_seconds: 0.0,
            joules: None,
        };
        Period {
            at_ms: 0,
            owners: (0..1_000).map(owner).collect(),
            ..Period::default()
        }
    };
    let joined = Period::join_all((0..30).map(period));
    assert!(
        joined[0].owners.len() <= MAX_OWNERS,
        "{}",
        joined[0].owners.len()
    );
    let seconds: f64 = joined[0].owners.iter().map(|owner| owner.gpu_seconds).sum();
    assert_near(seconds, 30_000.0);
}

#[test]
fn usage_periods_add_up_to_total() {
    let mut timeline = Timeline::new();
    let first_ms = (START_MS + 1_000) / PERIOD_MS * PERIOD_MS;
    timeline
        .advance(1_000, 500.0, &[make_process("ana", 7, 90.0)])
        .advance(1_100, 300.0, &[make_process("bob", 8, 90.0)])
        .advance(30, 300.0, &[]);
    let fresh = timeline.meter.take_new_usage();
    timeline.advance(30, 300.0, &[make_process("ana", 7, 90.0)]);
    let all: Vec<_> = timeline.meter.periods().collect();
    let again = timeline.meter.take_new_usage();
    assert_eq!(
        Usage::sum(all.clone()),
        Usage::sum([fresh, again.clone()].concat()),
        "each part is taken once"
    );
    assert!(timeline.meter.take_new_usage().is_empty());
    let sum = Usage::sum(all);
    let whole = timeline.usage();
    for (part, of_all) in sum.owners.iter().zip(&whole.owners) {
        assert_eq!(part.user, of_all.user);
        assert_near(part.gpu_seconds, of_all.gpu_seconds);
        assert_near(
            part.joules.unwrap().estimate,
            of_all.joules.unwrap().estimate,
        );
    }
    assert_near(sum.unheld.gpu_seconds, whole.unheld.gpu_seconds);

    let joined = Period::join_all(timeline.meter.periods());
    let begins: Vec<_> = joined
        .iter()
        .map(|period| (period.at_ms - first_ms) / PERIOD_MS)
        .collect();
    assert_eq!(begins, [0, 1, 2, 3]);
    let seconds = |period: &Period| {
        period
            .owners
            .iter()
            .map(|owner| owner.gpu_seconds)
            .sum::<f64>()
    };
    // Usage that becomes known late is counted in the period in which it occurred.
    assert_near(seconds(&joined[1]) + joined[1].unheld.gpu_seconds, 900.0);
}

#[test]
fn number_of_periods_is_limited() {
    let mut timeline = Timeline::new();
    for job in 0..5_000_u32 {
        timeline.advance(
            1,
            500.0,
            &[make_job_process("ana", job + 1, &job.to_string())],
        );
        timeline.meter.take_new_usage();
    }
    let periods: Vec<_> = timeline.meter.periods().collect();
    let owners: usize = periods.iter().map(|period| period.owners.len()).sum();
    assert!(
        owners <= MAX_OWNERS && periods[0].at_ms > START_MS,
        "{owners}"
    );
}
