use super::{
    super::test_timeline::{START_MS, TestTimeline, expected_event},
    *,
};
use crate::{
    derive::examples::{self, GIB},
    model::{Absence, Ancestor, BatchJob, Container, ContainerRuntime, Owner, Reading, Severity},
    vendor::sim::{Scenario, World},
};

/// Sets the readings of an NCCL collective that waits forever, as measured on an H200.
fn set_hang(sample: &mut GpuSample) {
    set_waiting_at(123.2)(sample);
}

fn set_waiting_at(watts: f64) -> impl Fn(&mut GpuSample) {
    move |sample| {
        examples::set_gpu_use(sample, 100.0, 18.18);
        sample.processes = Reading::Now(vec![examples::make_process(1, 40 * GIB)]);
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

/// Sets the readings of a hang, without those that only boards with GPM report.
fn set_hang_without_gpm(sample: &mut GpuSample) {
    set_hang(sample);
    sample.activity = Reading::Absent(Absence::NotSupported);
    sample.nvlink.tx_bytes_per_second = Reading::Absent(Absence::NotSupported);
    sample.nvlink.rx_bytes_per_second = Reading::Absent(Absence::NotSupported);
    // PCIe traffic is older than the sample, because reading it takes long and is done rarely.
    let at_ms = sample.at_ms - 4_000;
    sample.pcie.tx_bytes_per_second = Reading::Earlier { value: 1e5, at_ms };
    sample.pcie.rx_bytes_per_second = Reading::Earlier { value: 1e5, at_ms };
}

fn make_process_of_job(pid: u32, job_id: &str) -> Process {
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
        ..examples::make_process(pid, 40 * GIB)
    }
}

fn make_gpu(index: u32, process: Process, change: impl Fn(&mut GpuSample)) -> GpuSample {
    let mut sample = GpuSample {
        index,
        ..examples::make_sample(START_MS)
    };
    change(&mut sample);
    sample.processes = Reading::Now(vec![process]);
    sample
}

fn set_busy(sample: &mut GpuSample) {
    examples::set_gpu_use(sample, 83.0, 60.0);
    sample.utilization.memory_percent = Reading::Now(30.0);
    sample.power.draw_watts = Reading::Now(255.0);
}

fn set_idle(sample: &mut GpuSample) {
    examples::set_gpu_use(sample, 0.0, 0.0);
    sample.utilization.memory_percent = Reading::Now(0.0);
    sample.power.draw_watts = Reading::Now(122.5);
}

#[test]
fn hang_is_suspected_after_two_minutes() {
    for (step_ms, hangs) in [
        (1_000, set_hang as fn(&mut GpuSample)),
        (1_000, set_hang_without_gpm),
        (100, set_hang),
        (10_000, set_hang_without_gpm),
    ] {
        let mut timeline = TestTimeline::with_step_ms(step_ms);
        timeline
            .advance_with_sample(60, set_busy)
            .advance_with_sample(180, hangs);
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
fn suspected_hang_replaces_hardly_used() {
    let mut timeline = TestTimeline::new();
    timeline.advance_with_sample(180, set_hang);
    let expected = [
        expected_event(61, "+hardly_used"),
        expected_event(121, "+suspected_hang"),
        expected_event(121, "-hardly_used"),
    ];
    assert_eq!(timeline.take_events(), expected);
    let condition = timeline.only_condition();
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
    let text = "Suspected hang: the kernels of train.py (ana) run all the time at 123 W, but make \
                no progress.";
    assert_eq!(condition.text, text);
    timeline.advance_with_sample(60, set_busy);
    assert_eq!(
        timeline.take_events(),
        [expected_event(191, "-suspected_hang")]
    );
}

#[test]
fn spinning_kernel_is_suspected_at_any_power_draw() {
    for watts in [125.0, 137.0, 152.0] {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(180, set_waiting_at(watts));
        assert!(
            timeline
                .take_events()
                .contains(&expected_event(121, "+suspected_hang")),
            "{watts}"
        );
    }
}

#[test]
fn learned_idle_power_replaces_power_limit() {
    // This board's idle draw is a large part of its power limit.
    let small = |watts| {
        move |sample: &mut GpuSample| {
            set_waiting_at(watts)(sample);
            sample.power.limit_watts = Reading::Now(72.0);
            sample.clocks.sm_mhz = Reading::Now(2_040);
        }
    };
    let idle = |sample: &mut GpuSample| {
        small(45.0)(sample);
        examples::set_gpu_use(sample, 0.0, 0.0);
    };
    let mut timeline = TestTimeline::new();
    timeline.advance_with_sample(300, small(47.0));
    assert!(
        !timeline
            .take_events()
            .contains(&expected_event(121, "+suspected_hang"))
    );
    timeline
        .advance_with_sample(10, idle)
        .advance_with_sample(180, small(47.0));
    assert!(
        timeline
            .take_events()
            .contains(&expected_event(431, "+suspected_hang"))
    );
}

#[test]
fn suspected_hang_names_gpu_that_is_not_waiting() {
    let mut timeline = TestTimeline::new();
    let stranger = make_gpu(3, make_process_of_job(9, "78"), set_idle);
    timeline.others = vec![
        make_gpu(1, make_process_of_job(8, "77"), set_hang),
        make_gpu(2, make_process_of_job(99, "77"), set_idle),
        stranger,
    ];
    let rank = |sample: &mut GpuSample| {
        set_hang(sample);
        sample.processes = Reading::Now(vec![make_process_of_job(7, "77")]);
    };
    timeline.advance_with_sample(180, rank);
    let condition = timeline.only_condition();
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
    let said = "but make no progress. GPU 1 of the same job is also waiting. GPU 2 (PID 99) of the \
                same job is not waiting: check it first.";
    assert!(condition.text.ends_with(said), "{}", condition.text);
    // Most GPUs of the job differ from this GPU, so this GPU is the exception.
    timeline.others = (1..8)
        .map(|index| make_gpu(index, make_process_of_job(index, "77"), set_busy))
        .collect();
    timeline.advance_with_sample(10, rank);
    let condition = timeline.only_condition();
    assert!(
        condition.text.ends_with("but make no progress."),
        "{}",
        condition.text
    );
}

#[test]
fn job_is_recognized_by_launcher_or_process() {
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
            ..examples::make_process(pid, GIB)
        }
    };
    for (own, same, other) in [
        (launched(7, 50), launched(8, 50), launched(9, 60)),
        (
            examples::make_process(7, GIB),
            examples::make_process(7, GIB),
            examples::make_process(9, GIB),
        ),
    ] {
        let mut timeline = TestTimeline::new();
        timeline.others = vec![
            make_gpu(1, same.clone(), set_hang),
            make_gpu(2, other, set_idle),
        ];
        timeline.advance_with_sample(180, |sample| {
            set_hang(sample);
            sample.processes = Reading::Now(vec![own.clone()]);
        });
        let kind = &timeline.only_condition().kind;
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
fn working_sibling_delays_suspicion() {
    let rank = |sample: &mut GpuSample| {
        set_hang_without_gpm(sample);
        sample.processes = Reading::Now(vec![make_process_of_job(7, "77")]);
    };
    let mut timeline = TestTimeline::new();
    timeline.others = vec![make_gpu(1, make_process_of_job(8, "77"), set_busy)];
    timeline.advance_with_sample(599, rank);
    assert_eq!(timeline.take_events(), []);
    timeline.advance_with_sample(10, rank);
    assert_eq!(
        timeline.take_events(),
        [expected_event(601, "+suspected_hang")]
    );
}

#[test]
fn unrelated_program_is_ignored() {
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
            ..examples::make_process(pid, GIB)
        }
    };
    for container in [None, Some("c0ffee")] {
        let mut timeline = TestTimeline::new();
        timeline.others = vec![make_gpu(1, program(8, "other.py", container), set_busy)];
        timeline.advance_with_sample(150, |sample| {
            set_hang_without_gpm(sample);
            sample.processes = Reading::Now(vec![program(7, "train.py", container)]);
        });
        assert_eq!(
            timeline.take_events(),
            [expected_event(121, "+suspected_hang")],
            "{container:?}"
        );
        assert!(
            timeline
                .only_condition()
                .text
                .ends_with("but make no progress."),
            "{}",
            timeline.only_condition().text
        );
    }
}

#[test]
fn occasional_activity_is_not_suspected_hang() {
    let bursts: [fn(&mut GpuSample); 7] = [
        |sample| sample.utilization.gpu_percent = Reading::Now(97.0),
        |sample| sample.utilization.memory_percent = Reading::Now(3.0),
        |sample| sample.power.draw_watts = Reading::Now(131.0),
        |sample| sample.activity = Reading::Now(examples::make_activity(19.0, 0.0)),
        |sample| sample.pcie.rx_bytes_per_second = Reading::Now(5e6),
        |sample| sample.memory.used_bytes = Reading::Now(4 << 20),
        |sample| sample.utilization.encoder_percent = Reading::Now(1.0),
    ];
    for (number, burst) in bursts.into_iter().enumerate() {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(1_200, |sample| {
            set_hang(sample);
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
fn computing_kernel_is_not_suspected_hang() {
    for watts in [200.0, 357.0, 382.0, 489.0] {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(600, set_waiting_at(watts));
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
fn attached_debugger_prevents_new_but_keeps_existing_suspicion() {
    let traced = |sample: &mut GpuSample| {
        set_hang_without_gpm(sample);
        sample.processes = Reading::Now(vec![Process {
            traced: Reading::Now(true),
            ..examples::make_process(1, GIB)
        }]);
    };
    let mut timeline = TestTimeline::new();
    timeline.advance_with_sample(600, traced);
    assert_eq!(timeline.take_events(), []);
    timeline
        .advance_with_sample(119, set_hang_without_gpm)
        .advance_with_sample(30, traced)
        .advance_with_sample(119, set_hang_without_gpm);
    assert_eq!(timeline.take_events(), [], "the time before does not count");
    timeline
        .advance_with_sample(10, set_hang_without_gpm)
        .advance_with_sample(600, traced);
    assert_eq!(
        timeline.take_events(),
        [expected_event(870, "+suspected_hang")]
    );
}

#[test]
fn only_long_gap_restarts_hang_detection() {
    let mut timeline = TestTimeline::new();
    let moved = |sample: &mut GpuSample| {
        set_hang_without_gpm(sample);
        sample.memory.used_bytes = Reading::Now(41 * GIB);
    };
    timeline
        .advance_with_sample(130, set_hang_without_gpm)
        .advance_with_sample(3, moved)
        .advance_with_sample(60, set_hang_without_gpm);
    assert_eq!(
        timeline.take_events(),
        [expected_event(121, "+suspected_hang")]
    );
    assert_eq!(timeline.only_condition().since_ms, START_MS + 1_000);
    let mut timeline = TestTimeline::new();
    let unknown = |sample: &mut GpuSample| {
        set_hang_without_gpm(sample);
        sample.utilization.gpu_percent = Reading::Absent(Absence::NoAnswer);
    };
    timeline
        .advance_with_sample(100, set_hang_without_gpm)
        .advance_with_sample(61, unknown)
        .advance_with_sample(100, set_hang_without_gpm);
    assert_eq!(timeline.take_events(), []);
}

#[test]
fn gpu_without_required_readings_is_not_suspected() {
    let unknown: [fn(&mut GpuSample); 3] = [
        |sample| sample.utilization.gpu_percent = Reading::Absent(Absence::NotSupported),
        |sample| sample.utilization.memory_percent = Reading::Absent(Absence::NotSupported),
        |sample| sample.power.draw_watts = Reading::Absent(Absence::NotSupported),
    ];
    for (number, hide) in unknown.into_iter().enumerate() {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(600, |sample| {
            set_hang_without_gpm(sample);
            hide(sample);
        });
        assert_eq!(timeline.take_events(), [], "{number}");
    }
}

/// Simulates an hour of every profile, and checks that only the profile `hang` is reported.
#[test]
fn only_simulated_hang_profile_triggers_suspected_hang() {
    let text = ["training", "inference", "leak", "held", "idle", "hang"]
        .iter()
        .enumerate()
        .map(|(index, profile)| format!("[[gpu]]\nindex = {index}\nprofile = \"{profile}\"\n"));
    let world = World::new(Scenario::from_toml(&text.collect::<String>(), "profiles").unwrap());
    for index in 0..world.gpu_count() {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(3_600, |sample| {
            let state = world.state(index, sample.at_ms - START_MS);
            examples::set_gpu_use(sample, state.gpu_percent.into(), state.counters.sm_percent);
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
            vec![expected_event(121, "+suspected_hang")]
        } else {
            Vec::new()
        };
        assert_eq!(hangs, expected, "GPU {index}");
    }
}
