use super::{
    super::test_timeline::{START_MS, TestTimeline, event},
    *,
};
use crate::{
    derive::examples::{self, GIB},
    model::{Absence, Ancestor, BatchJob, Container, ContainerRuntime, Owner, Reading, Severity},
    vendor::sim::{Scenario, World},
};

/// Sets the readings of a collective of NCCL that waits forever, as measured on an H200.
fn hangs(sample: &mut GpuSample) {
    waits_at(123.2)(sample);
}

fn waits_at(watts: f64) -> impl Fn(&mut GpuSample) {
    move |sample| {
        examples::use_gpu(sample, 100.0, 18.18);
        sample.processes = Reading::Now(vec![examples::process(1, 40 * GIB)]);
        sample.utilization.memory_percent = Reading::Now(0.0);
        sample.power.draw_watts = Reading::Now(watts);
        sample.power.limit_watts = Reading::Now(700.0);
        for rate in [
            &mut sample.pcie.tx_bytes_per_second,
            &mut sample.pcie.rx_bytes_per_second,
        ] {
            *rate = Reading::Now(0.9e6);
        }
        for rate in [
            &mut sample.nvlink.tx_bytes_per_second,
            &mut sample.nvlink.rx_bytes_per_second,
        ] {
            *rate = Reading::Now(0.0);
        }
    }
}

/// Sets the same readings without those that only some boards report.
fn hangs_without_gpm(sample: &mut GpuSample) {
    hangs(sample);
    sample.activity = Reading::Absent(Absence::NotSupported);
    sample.nvlink.tx_bytes_per_second = Reading::Absent(Absence::NotSupported);
    sample.nvlink.rx_bytes_per_second = Reading::Absent(Absence::NotSupported);
    // The activity is older than the sample, because reading it takes long and is done rarely.
    let at_ms = sample.at_ms - 4_000;
    sample.pcie.tx_bytes_per_second = Reading::Earlier { value: 1e5, at_ms };
    sample.pcie.rx_bytes_per_second = Reading::Earlier { value: 1e5, at_ms };
}

fn of_job(pid: u32, job_id: &str) -> Process {
    let slurm = Some(BatchJob {
        job_id: job_id.to_owned(),
        step: Some(pid.to_string()),
        private: false,
    });
    Process {
        owner: Reading::Now(Owner {
            slurm,
            ..Owner::default()
        }),
        ..examples::process(pid, 40 * GIB)
    }
}

fn gpu(index: u32, process: Process, change: impl Fn(&mut GpuSample)) -> GpuSample {
    let mut sample = GpuSample {
        index,
        ..examples::sample(START_MS)
    };
    change(&mut sample);
    sample.processes = Reading::Now(vec![process]);
    sample
}

fn works(sample: &mut GpuSample) {
    examples::use_gpu(sample, 83.0, 60.0);
    sample.utilization.memory_percent = Reading::Now(30.0);
    sample.power.draw_watts = Reading::Now(255.0);
}

fn rests(sample: &mut GpuSample) {
    examples::use_gpu(sample, 0.0, 0.0);
    sample.utilization.memory_percent = Reading::Now(0.0);
    sample.power.draw_watts = Reading::Now(122.5);
}

#[test]
fn it_is_named_after_two_minutes_with_and_without_gpm_and_at_any_interval() {
    for (step_ms, hangs) in [
        (1_000, hangs as fn(&mut GpuSample)),
        (1_000, hangs_without_gpm),
        (100, hangs),
        (10_000, hangs_without_gpm),
    ] {
        let mut timeline = TestTimeline::every(step_ms);
        timeline.show(60, works).show(180, hangs);
        let events = timeline.take_events();
        let began: Vec<_> = events
            .iter()
            .filter(|(_, word)| word == "+suspected_hang")
            .collect();
        assert!(
            began.len() == 1 && (180..=192).contains(&began[0].0),
            "{step_ms}: {events:?}"
        );
        assert!(
            !timeline
                .last
                .conditions
                .iter()
                .any(|condition| matches!(condition.kind, ConditionKind::HardlyUsed { .. }))
        );
    }
}

#[test]
fn it_tells_what_hangs_since_when_and_says_more_than_that_the_gpu_is_hardly_used() {
    let mut timeline = TestTimeline::new();
    timeline.show(180, hangs);
    let expected = [
        event(61, "+hardly_used"),
        event(121, "+suspected_hang"),
        event(121, "-hardly_used"),
    ];
    assert_eq!(timeline.take_events(), expected);
    let condition = timeline.only();
    assert_eq!(
        (condition.severity, condition.since_ms),
        (Severity::Warning, START_MS + 1_000)
    );
    let (waiting, differing) = (Vec::new(), Vec::new());
    assert_eq!(
        condition.kind,
        ConditionKind::SuspectedHang {
            power_watts: 123.2,
            pids: vec![1],
            waiting,
            differing
        }
    );
    let text = "Suspected hang: the kernels of train.py (ana) run all the time at 123 W, and nothing moves.";
    assert_eq!(condition.text, text);
    timeline.show(60, works);
    assert_eq!(timeline.take_events(), [event(191, "-suspected_hang")]);
}

#[test]
fn spinning_kernels_count_whatever_they_take_of_the_gpu() {
    for watts in [125.0, 137.0, 152.0] {
        let mut timeline = TestTimeline::new();
        timeline.show(180, waits_at(watts));
        assert!(
            timeline
                .take_events()
                .contains(&event(121, "+suspected_hang")),
            "{watts}"
        );
    }
}

#[test]
fn where_the_idle_draw_of_the_board_is_known_it_counts_and_not_the_limit() {
    // The idle draw of this board is a large part of its limit.
    let small = |watts| {
        move |sample: &mut GpuSample| {
            waits_at(watts)(sample);
            sample.power.limit_watts = Reading::Now(72.0);
            sample.clocks.sm_mhz = Reading::Now(2_040);
        }
    };
    let idle = |sample: &mut GpuSample| {
        small(45.0)(sample);
        examples::use_gpu(sample, 0.0, 0.0);
    };
    let mut timeline = TestTimeline::new();
    timeline.show(300, small(47.0));
    assert!(
        !timeline
            .take_events()
            .contains(&event(121, "+suspected_hang"))
    );
    timeline.show(10, idle).show(180, small(47.0));
    assert!(
        timeline
            .take_events()
            .contains(&event(431, "+suspected_hang"))
    );
}

#[test]
fn the_gpu_of_the_same_job_that_does_not_wait_is_named() {
    let mut timeline = TestTimeline::new();
    let stranger = gpu(3, of_job(9, "78"), rests);
    timeline.others = vec![
        gpu(1, of_job(8, "77"), hangs),
        gpu(2, of_job(99, "77"), rests),
        stranger,
    ];
    let rank = |sample: &mut GpuSample| {
        hangs(sample);
        sample.processes = Reading::Now(vec![of_job(7, "77")]);
    };
    timeline.show(180, rank);
    let condition = timeline.only();
    let ConditionKind::SuspectedHang {
        waiting, differing, ..
    } = &condition.kind
    else {
        panic!("{condition:?}")
    };
    assert_eq!(
        (&waiting[..], &differing[..]),
        (&[1][..], &[GpuProcess { gpu: 2, pid: 99 }][..])
    );
    let said = "nothing moves. GPU 1 of the same job waits, too. GPU 2 (PID 99) of the same job does not wait: look there \
                first.";
    assert!(condition.text.ends_with(said), "{}", condition.text);
    // Most GPUs of the job differ, so that this GPU is the exception.
    timeline.others = (1..8)
        .map(|index| gpu(index, of_job(index, "77"), works))
        .collect();
    timeline.show(10, rank);
    let condition = timeline.only();
    assert!(
        condition.text.ends_with("nothing moves."),
        "{}",
        condition.text
    );
}

#[test]
fn a_job_is_known_by_its_launcher_or_its_process_where_nothing_else_tells() {
    let launched = |pid, parent| {
        let parents = vec![
            Ancestor {
                pid: parent,
                name: "torchrun".into(),
            },
            Ancestor {
                pid: 1000,
                name: "bash".into(),
            },
        ];
        Process {
            owner: Reading::Now(Owner {
                parents,
                ..Owner::default()
            }),
            ..examples::process(pid, GIB)
        }
    };
    for (own, same, other) in [
        (launched(7, 50), launched(8, 50), launched(9, 60)),
        (
            examples::process(7, GIB),
            examples::process(7, GIB),
            examples::process(9, GIB),
        ),
    ] {
        let mut timeline = TestTimeline::new();
        timeline.others = vec![gpu(1, same.clone(), hangs), gpu(2, other, rests)];
        timeline.show(180, |sample| {
            hangs(sample);
            sample.processes = Reading::Now(vec![own.clone()]);
        });
        let kind = &timeline.only().kind;
        let ConditionKind::SuspectedHang {
            waiting, differing, ..
        } = kind
        else {
            panic!("{kind:?}")
        };
        assert_eq!((&waiting[..], differing.len()), (&[1][..], 0));
    }
}

#[test]
fn a_gpu_that_waits_for_one_of_its_job_that_works_is_given_ten_minutes() {
    let rank = |sample: &mut GpuSample| {
        hangs_without_gpm(sample);
        sample.processes = Reading::Now(vec![of_job(7, "77")]);
    };
    let mut timeline = TestTimeline::new();
    timeline.others = vec![gpu(1, of_job(8, "77"), works)];
    timeline.show(599, rank);
    assert_eq!(timeline.take_events(), []);
    timeline.show(10, rank);
    assert_eq!(timeline.take_events(), [event(601, "+suspected_hang")]);
}

#[test]
fn a_program_that_is_no_part_of_the_job_neither_delays_it_nor_is_named() {
    let program = |pid, name: &str, container: Option<&str>| {
        let container = container.map(|id| Container {
            runtime: ContainerRuntime::Docker,
            id: id.to_owned(),
            name: None,
        });
        let parents = vec![Ancestor {
            pid: 1000,
            name: "bash".into(),
        }];
        let owner = Reading::Now(Owner {
            container,
            parents,
            ..Owner::default()
        });
        Process {
            name: Reading::Now(name.to_owned()),
            owner,
            ..examples::process(pid, GIB)
        }
    };
    for container in [None, Some("c0ffee")] {
        let mut timeline = TestTimeline::new();
        timeline.others = vec![gpu(1, program(8, "other.py", container), works)];
        timeline.show(150, |sample| {
            hangs_without_gpm(sample);
            sample.processes = Reading::Now(vec![program(7, "train.py", container)]);
        });
        assert_eq!(
            timeline.take_events(),
            [event(121, "+suspected_hang")],
            "{container:?}"
        );
        assert!(
            timeline.only().text.ends_with("nothing moves."),
            "{}",
            timeline.only().text
        );
    }
}

#[test]
fn what_moves_now_and_then_does_not_hang() {
    let bursts: [fn(&mut GpuSample); 7] = [
        |sample| sample.utilization.gpu_percent = Reading::Now(97.0),
        |sample| sample.utilization.memory_percent = Reading::Now(3.0),
        |sample| sample.power.draw_watts = Reading::Now(131.0),
        |sample| sample.activity = Reading::Now(examples::activity(19.0, 0.0)),
        |sample| sample.pcie.rx_bytes_per_second = Reading::Now(5e6),
        |sample| sample.memory.used_bytes = Reading::Now(4 << 20),
        |sample| sample.utilization.encoder_percent = Reading::Now(1.0),
    ];
    for (number, burst) in bursts.into_iter().enumerate() {
        let mut timeline = TestTimeline::new();
        timeline.show(1_200, |sample| {
            hangs(sample);
            if sample.at_ms / 1000 % 60 == 0 {
                burst(sample);
            }
        });
        assert!(
            !timeline
                .take_events()
                .iter()
                .any(|(_, word)| word.ends_with("suspected_hang")),
            "{number}"
        );
    }
}

#[test]
fn what_computes_without_memory_draws_more() {
    for watts in [200.0, 357.0, 382.0, 489.0] {
        let mut timeline = TestTimeline::new();
        timeline.show(600, waits_at(watts));
        assert!(
            !timeline
                .take_events()
                .iter()
                .any(|(_, word)| word.ends_with("suspected_hang")),
            "{watts}"
        );
    }
}

#[test]
fn a_program_under_a_debugger_does_not_hang_and_a_debugger_that_comes_later_ends_nothing() {
    let traced = |sample: &mut GpuSample| {
        hangs_without_gpm(sample);
        sample.processes = Reading::Now(vec![Process {
            traced: Reading::Now(true),
            ..examples::process(1, GIB)
        }]);
    };
    let mut timeline = TestTimeline::new();
    timeline.show(600, traced);
    assert_eq!(timeline.take_events(), []);
    timeline
        .show(119, hangs_without_gpm)
        .show(30, traced)
        .show(119, hangs_without_gpm);
    assert_eq!(timeline.take_events(), [], "the time before does not count");
    timeline.show(10, hangs_without_gpm).show(600, traced);
    assert_eq!(timeline.take_events(), [event(870, "+suspected_hang")]);
}

#[test]
fn a_moment_in_which_something_moves_does_not_end_it_and_a_gap_begins_it_anew() {
    let mut timeline = TestTimeline::new();
    let moved = |sample: &mut GpuSample| {
        hangs_without_gpm(sample);
        sample.memory.used_bytes = Reading::Now(41 * GIB);
    };
    timeline
        .show(130, hangs_without_gpm)
        .show(3, moved)
        .show(60, hangs_without_gpm);
    assert_eq!(timeline.take_events(), [event(121, "+suspected_hang")]);
    assert_eq!(timeline.only().since_ms, START_MS + 1_000);
    let mut timeline = TestTimeline::new();
    let unknown = |sample: &mut GpuSample| {
        hangs_without_gpm(sample);
        sample.utilization.gpu_percent = Reading::Absent(Absence::NoAnswer);
    };
    timeline
        .show(100, hangs_without_gpm)
        .show(61, unknown)
        .show(100, hangs_without_gpm);
    assert_eq!(timeline.take_events(), []);
}

#[test]
fn a_divided_gpu_and_one_of_which_nothing_is_known_are_not_judged() {
    let unknown: [fn(&mut GpuSample); 3] = [
        |sample| sample.utilization.gpu_percent = Reading::Absent(Absence::NotSupported),
        |sample| sample.utilization.memory_percent = Reading::Absent(Absence::NotSupported),
        |sample| sample.power.draw_watts = Reading::Absent(Absence::NotSupported),
    ];
    for (number, hide) in unknown.into_iter().enumerate() {
        let mut timeline = TestTimeline::new();
        timeline.show(600, |sample| {
            hangs_without_gpm(sample);
            hide(sample);
        });
        assert_eq!(timeline.take_events(), [], "{number}");
    }
}

/// Checks an hour of every profile of the simulation, read like by the sampler.
#[test]
fn of_all_simulated_work_only_what_hangs_is_said_to() {
    let text = ["training", "inference", "leak", "held", "idle", "hang"]
        .iter()
        .enumerate()
        .map(|(index, profile)| format!("[[gpu]]\nindex = {index}\nprofile = \"{profile}\"\n"));
    let world = World::new(Scenario::from_toml(&text.collect::<String>(), "profiles").unwrap());
    for index in 0..world.gpu_count() {
        let mut timeline = TestTimeline::new();
        timeline.show(3_600, |sample| {
            let state = world.state(index, sample.at_ms - START_MS);
            examples::use_gpu(sample, state.gpu_percent.into(), state.counters.sm_percent);
            sample.utilization.memory_percent = Reading::Now(state.memory_percent.into());
            sample.power.draw_watts = Reading::Now(state.power_watts);
            sample.power.limit_watts = Reading::Now(state.power_limit_watts);
            sample.clocks.sm_mhz = Reading::Now(state.sm_mhz);
            sample.memory.used_bytes = Reading::Now(state.memory_used_bytes);
            sample.pcie.rx_bytes_per_second = Reading::Now(state.counters.pcie_rx_bytes_per_second);
        });
        let hangs: Vec<_> = timeline
            .take_events()
            .into_iter()
            .filter(|(_, word)| word.ends_with("suspected_hang"))
            .collect();
        let expected = if index == 5 {
            vec![event(121, "+suspected_hang")]
        } else {
            Vec::new()
        };
        assert_eq!(hangs, expected, "GPU {index}");
    }
}
