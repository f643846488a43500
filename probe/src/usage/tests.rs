use super::{
    accounts::{MOST_OWNERS, SPARE_OWNERS},
    *,
};
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

    /// Shows these processes and this power draw for some seconds.
    fn show(&mut self, seconds: u64, watts: f64, processes: &[Process]) -> &mut Self {
        self.show_changed(seconds, watts, processes, |_| {})
    }

    fn show_changed(
        &mut self,
        seconds: u64,
        watts: f64,
        processes: &[Process],
        change: impl Fn(&mut GpuSample),
    ) -> &mut Self {
        for _ in 0..seconds {
            // The power between two samples is interpolated linearly.
            self.joules += f64::midpoint(self.watts, watts);
            (self.at_ms, self.watts) = (self.at_ms + 1_000, watts);
            if self.at_ms.is_multiple_of(5_000) {
                self.read = Reading::Earlier {
                    value: self.joules,
                    at_ms: self.at_ms,
                };
            }
            let mut gpu = examples::sample(self.at_ms);
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

    fn of(&self, user: &str) -> OwnerUsage {
        self.usage()
            .owners
            .into_iter()
            .find(|owner| owner.user.as_deref() == Some(user))
            .unwrap()
    }
}

fn of(user: &str, pid: u32, sm_percent: f64) -> Process {
    Process {
        user: Reading::Now(user.to_owned()),
        sm_percent: Reading::Now(sm_percent),
        ..examples::process(pid, 1 << 30)
    }
}

fn of_job(user: &str, pid: u32, job_id: &str) -> Process {
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
        ..of(user, pid, 90.0)
    }
}

#[track_caller]
fn near(is: f64, expected: f64) {
    assert!(
        (is - expected).abs() <= expected.abs() * 1e-6 + 1e-6,
        "{is} instead of {expected}"
    );
}

/// Asserts the lower bound, the estimate and the upper bound.
#[track_caller]
fn joules(owner: &OwnerUsage, least: f64, estimate: f64, most: f64) {
    let joules = owner.joules.unwrap();
    near(joules.least, least);
    near(joules.estimate, estimate);
    near(joules.most, most);
}

#[test]
fn who_has_a_gpu_alone_used_what_its_counter_grew_by() {
    let mut timeline = Timeline::new();
    let ana = [of("ana", 7, 80.0), of("ana", 8, 30.0)];
    timeline
        .show(10, IDLE_WATTS, &ana)
        .show(100, 500.0, &ana)
        .show(10, IDLE_WATTS, &ana);
    let owner = timeline.of("ana");
    // The measurement covers the time from the first reading of the counter, after five seconds, to
    // the last.
    joules(&owner, 51_900.0, 51_900.0, 51_900.0);
    near(owner.gpu_seconds, 119.0);
    near(owner.exclusive_seconds, 119.0);
    near(owner.active_seconds, 119.0);
    assert_eq!(timeline.usage().owners.len(), 1);
    assert_eq!(timeline.usage().unheld, UnheldUsage::default());
}

#[test]
fn a_counter_corrects_the_power_between_its_readings() {
    let ana = [of("ana", 7, 100.0)];
    let mut timeline = Timeline::new();
    // The reported power is a fifth too low.
    timeline.show_changed(60, 500.0, &ana, |gpu| {
        gpu.power.draw_watts = Reading::Now(400.0);
    });
    let joules = timeline.of("ana").joules.unwrap();
    // In the first four seconds, only the power is known.
    near(joules.estimate, 4.0 * 400.0 + 55.0 * 500.0);
    near(joules.least, joules.most);
}

#[test]
fn without_a_counter_power_is_added_up_and_without_power_energy_is_unknown() {
    let ana = [of("ana", 7, 100.0)];
    let mut timeline = Timeline::new();
    timeline.show_changed(60, 500.0, &ana, |gpu| {
        gpu.power.energy_joules_total = Reading::Absent(Absence::NotSupported);
    });
    let told_s = timeline.of("ana").gpu_seconds;
    assert!((54.0..=59.0).contains(&told_s), "{told_s}");
    joules(
        &timeline.of("ana"),
        500.0 * told_s,
        500.0 * told_s,
        500.0 * told_s,
    );
    let mut timeline = Timeline::new();
    timeline.show_changed(60, 500.0, &ana, |gpu| gpu.power = examples::sample(0).power);
    assert!(timeline.of("ana").gpu_seconds > 50.0 && timeline.of("ana").joules.is_none());
}

#[test]
fn shared_use_lies_within_bounds_and_estimates_add_up() {
    let mut timeline = Timeline::new();
    let (idle, ana_computes) = (
        [of("ana", 7, 0.0), of("bob", 8, 0.0)],
        [of("ana", 7, 90.0), of("bob", 8, 0.0)],
    );
    let both_compute = [of("ana", 7, 60.0), of("bob", 8, 20.0)];
    timeline.show(11, IDLE_WATTS, &idle);
    let before = timeline.of("ana").joules.unwrap();
    near(before.estimate, timeline.of("bob").joules.unwrap().estimate);
    timeline
        .show(100, 400.0, &ana_computes)
        .show(100, 500.0, &both_compute)
        .show(9, 500.0, &both_compute);
    let (ana, bob) = (timeline.of("ana"), timeline.of("bob"));
    let all = timeline.usage();
    let whole: f64 = all
        .owners
        .iter()
        .map(|owner| owner.joules.unwrap().estimate)
        .sum();
    // All energy until the last reading of the counter is assigned to an owner.
    near(whole, ana.joules.unwrap().most);
    near(ana.joules.unwrap().most, bob.joules.unwrap().most);
    // The bound consists of 99 s at 400 W, less 100 W of idle power, and a second at 250 W between.
    near(ana.joules.unwrap().least, 99.0 * 300.0 + 150.0);
    near(bob.joules.unwrap().least, 0.0);
    for owner in &all.owners {
        let Joules {
            least,
            most,
            estimate,
        } = owner.joules.unwrap();
        assert!(least <= estimate && estimate <= most, "{owner:?}");
        near(owner.exclusive_seconds, 0.0);
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
fn where_shares_are_not_told_the_estimate_is_even_and_a_list_that_is_cut_is_never_exclusive() {
    let unknown = |user, pid| Process {
        sm_percent: Reading::Absent(Absence::NotSupported),
        ..of(user, pid, 0.0)
    };
    let mut timeline = Timeline::new();
    timeline.show(60, 500.0, &[unknown("ana", 7), unknown("bob", 8)]);
    let (ana, bob) = (
        timeline.of("ana").joules.unwrap(),
        timeline.of("bob").joules.unwrap(),
    );
    near(ana.estimate, bob.estimate);
    near(ana.estimate * 2.0, ana.most);
    near(ana.least, 0.0);
    let mut timeline = Timeline::new();
    timeline.show_changed(60, 500.0, &[of("ana", 7, 100.0)], |gpu| {
        gpu.processes_omitted = 5;
    });
    let joules = timeline.of("ana").joules.unwrap();
    assert!(joules.least == 0.0 && joules.most > 20_000.0, "{joules:?}");
}

#[test]
fn who_comes_and_goes_is_told_for_the_time_in_between() {
    let mut timeline = Timeline::new();
    let ana = [of("ana", 7, 50.0)];
    timeline
        .show(20, IDLE_WATTS, &[])
        .show(40, 300.0, &ana)
        .show(20, IDLE_WATTS, &[]);
    let (owner, all) = (timeline.of("ana"), timeline.usage());
    near(owner.gpu_seconds, 40.0);
    let told = owner.joules.unwrap();
    assert!(
        told.least < 40.0 * 300.0 && told.most > 40.0 * 300.0 && told.most - told.least < 500.0,
        "{told:?}"
    );
    near(
        told.estimate + all.unheld.joules,
        79.0 * IDLE_WATTS + 40.0 * 200.0,
    );
    near(owner.gpu_seconds + all.unheld.gpu_seconds, 79.0);
}

#[test]
fn owners_are_users_with_what_their_processes_are_of_also_where_that_is_found_late() {
    let unread = |pid| Process {
        user: Reading::Absent(Absence::NotReadYet),
        owner: Reading::Absent(Absence::NotReadYet),
        ..of("", pid, 50.0)
    };
    let mut timeline = Timeline::new();
    timeline
        .show(3, 500.0, &[unread(7)])
        .show(60, 500.0, &[of_job("ana", 7, "42")]);
    timeline
        .show(60, 500.0, &[of_job("ana", 9, "43")])
        .show(60, 500.0, &[of("ana", 10, 10.0)]);
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
fn the_server_of_mps_is_nobody_beside_its_clients() {
    let server = Process {
        name: Reading::Now("nvidia-cuda-mps-server".into()),
        ..of("root", 5, 0.0)
    };
    let mut timeline = Timeline::new();
    timeline.show(60, 500.0, &[server, of("ana", 7, 90.0)]);
    assert_eq!(timeline.usage().owners.len(), 1);
    near(
        timeline.of("ana").exclusive_seconds,
        timeline.of("ana").gpu_seconds,
    );
}

#[test]
fn gaps_lost_gpus_and_counters_that_are_set_anew_are_nobodys_use() {
    let ana = [of("ana", 7, 100.0)];
    let mut timeline = Timeline::new();
    timeline.show(61, 500.0, &ana);
    timeline.at_ms += 3_600_000;
    timeline.joules += 1e7;
    timeline.show(60, 500.0, &ana);
    let (seconds, used) = (
        timeline.of("ana").gpu_seconds,
        timeline.of("ana").joules.unwrap(),
    );
    assert!(
        (110.0..=119.0).contains(&seconds) && used.most <= 119.0 * 500.0,
        "{seconds} s {used:?}"
    );
    timeline.show_changed(60, 500.0, &[], |gpu| {
        *gpu = GpuSample::absent(
            0,
            None,
            gpu.at_ms,
            Health::Lost { since_ms: 0 },
            &Absence::GpuLost,
        );
    });
    timeline.joules = 12.0;
    timeline.show(60, 500.0, &ana);
    timeline.joules += 1e9;
    timeline.show(60, 500.0, &ana);
    timeline.joules = 3.0;
    timeline.show(60, 500.0, &ana);
    let (seconds, used) = (
        timeline.of("ana").gpu_seconds,
        timeline.of("ana").joules.unwrap(),
    );
    assert!((290.0..=300.0).contains(&seconds), "{seconds}");
    assert!(
        (seconds * 490.0..=seconds * 510.0).contains(&used.estimate),
        "{seconds} s {used:?}"
    );
}

#[test]
fn energy_that_power_told_before_a_stall_is_not_told_again_by_the_counter() {
    let ana = [of("ana", 7, 100.0)];
    for hangs in [true, false] {
        let mut timeline = Timeline::new();
        // The counter is read in second 40, and not again before the driver stalls in second 44.
        timeline.show(44, 300.0, &ana);
        let read = timeline.read.clone();
        if hangs {
            let hung = |gpu: &mut GpuSample| gpu.health = Health::Hung { since_ms: START_MS };
            timeline.show_changed(6, 300.0, &ana, hung);
        } else {
            (timeline.at_ms, timeline.joules) =
                (timeline.at_ms + 6_000, timeline.joules + 6.0 * 300.0);
        }
        timeline.read = read;
        timeline.show(16, 300.0, &ana);
        let owner = timeline.of("ana");
        assert!(owner.gpu_seconds > 55.0, "{owner:?}");
        joules(
            &owner,
            owner.gpu_seconds * 300.0,
            owner.gpu_seconds * 300.0,
            owner.gpu_seconds * 300.0,
        );
    }
}

#[test]
fn many_owners_are_told_by_their_user() {
    let mut timeline = Timeline::new();
    for job in 0..5_000_u32 {
        timeline.show(1, 500.0, &[of_job("ana", job + 1, &job.to_string())]);
    }
    let usage = timeline.usage();
    assert!(
        (MOST_OWNERS - SPARE_OWNERS..=MOST_OWNERS).contains(&usage.owners.len()),
        "{}",
        usage.owners.len()
    );
    let seconds: f64 = usage.owners.iter().map(|owner| owner.gpu_seconds).sum();
    assert!((4_990.0..=5_000.0).contains(&seconds), "{seconds}");
    assert!(usage.owners.iter().any(|owner| owner.job.is_none()));
}

#[test]
fn users_without_jobs_are_bounded() {
    let mut timeline = Timeline::new();
    for user in 0..5_000_u32 {
        timeline.show(1, 500.0, &[of(&user.to_string(), user + 1, 50.0)]);
    }
    let usage = timeline.usage();
    assert!(usage.owners.len() <= MOST_OWNERS, "{}", usage.owners.len());
    let seconds: f64 = usage.owners.iter().map(|owner| owner.gpu_seconds).sum();
    assert!((4_990.0..=5_000.0).contains(&seconds), "{seconds}");
    let others = usage.owners.iter().find(|owner| owner.user.is_none());
    assert!(
        others.is_some_and(|others| others.gpu_seconds > 500.0),
        "{others:?}"
    );
}

#[test]
fn joined_periods_of_many_jobs_are_bounded() {
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
    let joined = Period::joined((0..30).map(period));
    assert!(
        joined[0].owners.len() <= MOST_OWNERS,
        "{}",
        joined[0].owners.len()
    );
    let seconds: f64 = joined[0].owners.iter().map(|owner| owner.gpu_seconds).sum();
    near(seconds, 30_000.0);
}

#[test]
fn quarters_of_an_hour_have_what_was_used_in_them_and_together_all_of_it() {
    let mut timeline = Timeline::new();
    let first_ms = (START_MS + 1_000) / PERIOD_MS * PERIOD_MS;
    timeline
        .show(1_000, 500.0, &[of("ana", 7, 90.0)])
        .show(1_100, 300.0, &[of("bob", 8, 90.0)])
        .show(30, 300.0, &[]);
    let fresh = timeline.meter.take_fresh();
    timeline.show(30, 300.0, &[of("ana", 7, 90.0)]);
    let all: Vec<_> = timeline.meter.periods().collect();
    let again = timeline.meter.take_fresh();
    assert_eq!(
        Usage::sum(all.clone()),
        Usage::sum([fresh, again.clone()].concat()),
        "each part is taken once"
    );
    assert!(timeline.meter.take_fresh().is_empty());
    let sum = Usage::sum(all);
    let whole = timeline.usage();
    for (part, of_all) in sum.owners.iter().zip(&whole.owners) {
        assert_eq!(part.user, of_all.user);
        near(part.gpu_seconds, of_all.gpu_seconds);
        near(
            part.joules.unwrap().estimate,
            of_all.joules.unwrap().estimate,
        );
    }
    near(sum.unheld.gpu_seconds, whole.unheld.gpu_seconds);

    let joined = Period::joined(timeline.meter.periods());
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
    near(seconds(&joined[1]) + joined[1].unheld.gpu_seconds, 900.0);
}

#[test]
fn so_many_quarters_of_an_hour_are_remembered_as_there_is_room_for() {
    let mut timeline = Timeline::new();
    for job in 0..5_000_u32 {
        timeline.show(1, 500.0, &[of_job("ana", job + 1, &job.to_string())]);
        timeline.meter.take_fresh();
    }
    let periods: Vec<_> = timeline.meter.periods().collect();
    let owners: usize = periods.iter().map(|period| period.owners.len()).sum();
    assert!(
        owners <= MOST_OWNERS && periods[0].at_ms > START_MS,
        "{owners}"
    );
}
