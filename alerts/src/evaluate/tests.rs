use gpumon_probe::model::{
    Absence, Condition, ConditionKind, Confidence, GpuSample, Health, LimitClass, LimitEvidence,
    Limits, Reading, Severity, ThrottleReason,
};

use super::{
    test_timeline::{START_MS, TestTimeline, set_celsius},
    *,
};

const HOT: &str = "field = \"temperature.gpu_celsius\"\nabove = 85\nfor = \"20s\"\nclear_below = \
                   80\nclear_for = \"10s\"";
const COMMAND: &str = "[[command]]\nname = \"log\"\ncommand = [\"true\"]\n";

fn make_hot_timeline() -> TestTimeline {
    TestTimeline::new(HOT)
}

/// Returns an alert file with one receiver and `rule`.
fn make_file_with_receiver(rule: &str) -> String {
    format!("{COMMAND}[[rule]]\nname = \"a\"\n{rule}")
}

#[test]
fn alert_fires_after_delay_and_resolves_after_hysteresis() {
    let mut timeline = make_hot_timeline();
    timeline
        .advance_with_gpu(100, set_celsius(85.0))
        .advance_with_gpu(19, set_celsius(90.0))
        .advance_with_gpu(1, set_celsius(84.0));
    assert_eq!(
        timeline.take_events(),
        [""; 0],
        "for less than 20 s in a row"
    );
    timeline.advance_with_gpu(21, set_celsius(90.0));
    assert_eq!(timeline.take_events(), ["141 +a 0"]);
    timeline.advance_with_gpu(1000, set_celsius(81.0));
    assert_eq!(timeline.take_events(), [""; 0], "between its thresholds");
    timeline
        .advance_with_gpu(5, set_celsius(79.0))
        .advance_with_gpu(1, set_celsius(81.0))
        .advance_with_gpu(10, set_celsius(79.0));
    assert_eq!(
        timeline.take_events(),
        [""; 0],
        "for less than 10 s in a row"
    );
    timeline.advance_with_gpu(1, set_celsius(79.0));
    assert_eq!(timeline.take_events(), ["1158 -a 0"]);
    timeline.advance_with_gpu(100, set_celsius(84.0));
    assert_eq!(
        timeline.take_events(),
        [""; 0],
        "it begins at the upper threshold"
    );
}

#[test]
fn alert_text_describes_match_and_start() {
    let mut timeline = make_hot_timeline();
    timeline.advance_with_gpu(100, set_celsius(90.4));
    let firing = timeline.evaluator.firing_alerts();
    let [alert] = firing.as_slice() else {
        panic!("{firing:?}")
    };
    assert_eq!(
        alert
            .gpu
            .as_ref()
            .map(|gpu| (gpu.index, gpu.uuid.as_deref())),
        Some((0, Some("GPU-0")))
    );
    assert_eq!(
        alert.alert.text,
        "Temperature 90.4 °C, above 85 °C for 20 s"
    );
    assert_eq!(
        (alert.alert.since_ms, alert.alert.severity),
        (START_MS + 1000, Severity::Warning)
    );
    timeline.advance_with_gpu(1, set_celsius(99.0));
    assert!(
        timeline.evaluator.firing_alerts()[0]
            .alert
            .text
            .starts_with("Temperature 99 °C")
    );
}

#[test]
fn status_shows_pending_firing_and_inactive() {
    let mut timeline = make_hot_timeline();
    let state = |timeline: &TestTimeline| {
        let status = timeline.evaluator.status(timeline.now_ms).remove(0);
        status
            .active
            .first()
            .map(|place| (place.state, place.gpu.as_ref().unwrap().index))
    };
    assert_eq!(state(&timeline), None);
    timeline.advance_with_gpu(5, set_celsius(90.0));
    assert_eq!(state(&timeline), Some((RuleState::Pending, 0)));
    timeline.advance_with_gpu(30, set_celsius(90.0));
    assert_eq!(state(&timeline), Some((RuleState::Firing, 0)));
    timeline.advance_with_gpu(30, set_celsius(40.0));
    assert_eq!(state(&timeline), None);
}

#[test]
fn each_named_gpu_fires_separately() {
    let both = |sample: &mut Sample| sample.gpus.iter_mut().for_each(set_celsius(90.0));
    let mut timeline = make_hot_timeline();
    timeline
        .advance_with_sample(30, both)
        .advance_with_gpu(30, set_celsius(90.0));
    assert_eq!(timeline.take_events(), ["21 +a 0", "21 +a 1", "41 -a 1"]);
    for gpus in ["[1]", "[\"GPU-1\"]", "[\"gpu-1\", 1]", "[\"nvidia:1\"]"] {
        let mut timeline = TestTimeline::new(&format!("{HOT}\ngpus = {gpus}"));
        timeline.advance_with_sample(30, both);
        assert_eq!(timeline.take_events(), ["21 +a 1"], "{gpus}");
    }
}

#[test]
fn short_gap_in_readings_keeps_alert_state() {
    let missing = |sample: &mut GpuSample| {
        sample.temperature.gpu_celsius = Reading::Absent(Absence::NoAnswer);
    };
    let mut timeline = make_hot_timeline();
    timeline
        .advance_with_gpu(10, set_celsius(90.0))
        .advance_with_gpu(3, missing)
        .advance_with_gpu(8, set_celsius(90.0));
    assert_eq!(timeline.take_events(), ["21 +a 0"]);
    timeline
        .advance_with_gpu(50, missing)
        .advance_with_gpu(1, set_celsius(90.0));
    assert_eq!(timeline.take_events(), [""; 0]);
    timeline.advance_with_gpu(70, missing);
    assert_eq!(
        timeline.take_events(),
        ["133 -a 0"],
        "after a minute without readings"
    );
    // A hung GPU repeats its readings from before the hang. These readings must not fire an alert.
    let mut timeline = make_hot_timeline();
    let hung = |sample: &mut GpuSample| {
        set_celsius(90.0)(sample);
        sample.health = Health::Hung { since_ms: 1 };
    };
    timeline.advance_with_gpu(60, hung);
    assert_eq!(timeline.take_events(), [""; 0]);
}

#[test]
fn percent_threshold_uses_limit_of_each_gpu() {
    let mut timeline = TestTimeline::new("field = \"memory.used_bytes\"\nabove = \"90 %\"");
    timeline.advance_with_gpu(5, |sample| {
        sample.memory.used_bytes = Reading::Now(71 << 30);
    });
    assert_eq!(timeline.take_events(), [""; 0]);
    timeline.advance_with_gpu(5, |sample| {
        sample.memory.used_bytes = Reading::Now(76 << 30);
    });
    assert_eq!(timeline.take_events(), ["6 +a 0"]);
    assert_eq!(
        timeline.evaluator.firing_alerts()[0].alert.text,
        "Memory 95 %, above 90 % of its limit"
    );
    let mut timeline = TestTimeline::new("field = \"host.memory.used_bytes\"\nbelow = \"51 %\"");
    timeline.advance_with_gpu(2, |_| {});
    assert_eq!(timeline.take_events(), ["1 +a"]);
}

#[test]
fn rate_is_change_over_window() {
    let rule = "field = \"memory.used_bytes\"\nabove = \"1 GiB\"\nper = \"minute\"\nover = \
                \"60s\"\nfor = \"10s\"";
    let mut timeline = TestTimeline::new(rule);
    let growing = |mib_per_second: u64| {
        move |sample: &mut GpuSample| {
            let seconds = (sample.at_ms - START_MS) / 1000;
            sample.memory.used_bytes = Reading::Now((10 << 30) + seconds * (mib_per_second << 20));
        }
    };
    timeline.advance_with_gpu(200, growing(17));
    assert_eq!(timeline.take_events(), [""; 0], "1020 MiB per minute");
    let mut timeline = TestTimeline::new(rule);
    timeline.advance_with_gpu(200, growing(20));
    assert_eq!(
        timeline.take_events(),
        ["41 +a 0"],
        "half of the window, and ten seconds"
    );
    let text = &timeline.evaluator.firing_alerts()[0].alert.text;
    assert_eq!(
        text,
        "Memory +1.17 GiB per minute, above 1.00 GiB per minute for 10 s"
    );
}

#[test]
fn silent_gpu_or_missing_reading_fires_absence_rule() {
    let lost = |sample: &mut GpuSample| {
        let health = Health::Lost {
            since_ms: sample.at_ms,
        };
        *sample = GpuSample::new_absent(0, None, sample.at_ms, health, &Absence::GpuLost);
    };
    let mut timeline = TestTimeline::new("absent = true\nfor = \"5s\"\nclear_for = \"0s\"");
    timeline
        .advance_with_gpu(10, |_| {})
        .advance_with_gpu(10, lost);
    assert_eq!(timeline.take_events(), ["16 +a 0"]);
    assert_eq!(
        timeline.evaluator.firing_alerts()[0].alert.text,
        "No response for 5 s (the GPU's state is lost)"
    );
    timeline
        .advance_with_gpu(1, |_| {})
        .advance_with_gpu(100, |sample| sample.health = Health::Asleep { since_ms: 1 });
    assert_eq!(timeline.take_events(), ["21 -a 0"]);
    timeline.advance_without_samples(100, false);
    assert_eq!(timeline.take_events(), [""; 0], "a pause is no absence");
    timeline.advance_without_samples(7, true);
    assert_eq!(timeline.take_events(), ["227 +a 0", "227 +a 1"]);

    let mut timeline = TestTimeline::new(
        "absent = true\nfield = \"power.draw_watts\"\ngpus = [1, 7, \"GPU-ffff\", \"amd:0\"]",
    );
    timeline.advance_with_gpu(1, |_| {});
    assert_eq!(timeline.take_events(), ["1 +a 1", "1 +a 7", "1 +a", "1 +a"]);
    let texts: Vec<_> = timeline
        .evaluator
        .firing_alerts()
        .into_iter()
        .map(|firing| firing.alert.text)
        .collect();
    assert!(
        texts.contains(&"No reading of Power (not supported)".to_owned()),
        "{texts:?}"
    );
    assert!(
        texts.contains(&"gpu-ffff: No reading of Power (the GPU was not found)".to_owned()),
        "{texts:?}"
    );
    assert!(
        texts.contains(&"amd:0: No reading of Power (the GPU was not found)".to_owned()),
        "{texts:?}"
    );
}

#[test]
fn alert_ignores_condition_below_minimum_severity() {
    let throttled = |severity| {
        move |sample: &mut GpuSample| {
            sample.conditions.push(Condition {
                since_ms: 1,
                severity,
                text: "Clocks reduced: power-capped.".into(),
                kind: ConditionKind::Throttled {
                    reasons: vec![ThrottleReason::SwPowerCap],
                    limit_watts: None,
                    gpu_celsius: None,
                },
            });
        }
    };
    let rule = |kind: &str| {
        format!("condition = \"{kind}\"\nmin_severity = \"warning\"\nclear_for = \"0s\"")
    };
    for (kind, expected) in [
        ("throttled", &["1003 +a 0", "1005 -a 0"][..]),
        ("any", &["1003 +a 0", "1005 -a 0"]),
        ("xid", &[]),
    ] {
        let mut timeline = TestTimeline::new(&rule(kind));
        timeline.advance_with_gpu(1000, |_| {});
        timeline
            .advance_with_gpu(2, throttled(Severity::Notice))
            .advance_with_gpu(2, throttled(Severity::Critical))
            .advance_with_gpu(2, |_| {});
        assert_eq!(timeline.take_events(), expected, "{kind}");
    }
}

/// Returns the limits in a window in which the cause had a share of 80 %.
fn make_limits(window_ms: u64, main: LimitClass) -> Limits {
    let shares = LimitClass::ALL.map(|class| {
        Reading::Now(match class {
            _ if class == main => 80.0,
            LimitClass::Idle => 20.0,
            _ => 0.0,
        })
    });
    let evidence = LimitEvidence {
        cpu_percent: Some(100.0),
        ..LimitEvidence::default()
    };
    Limits::new(window_ms, shares, main, Confidence::Medium, evidence)
}

/// Sets the limits of a window of one second, which ends with the sample.
fn set_cause(main: LimitClass) -> impl Fn(&mut GpuSample) {
    move |sample| sample.limits = Reading::Now(make_limits(1000, main))
}

const HOST_BOUND: &str = "limited_by = \"host\"\nfor = \"2m\"\nclear_for = \"30s\"\nmessage = \
                          \"Ask Ana\"";

#[test]
fn alternating_cause_with_largest_share_fires() {
    let alternating = |sample: &mut GpuSample| {
        let is_third = ((sample.at_ms - START_MS) / 1000).is_multiple_of(3);
        set_cause(if is_third {
            LimitClass::Tensor
        } else {
            LimitClass::Host
        })(sample);
    };
    let mut timeline = TestTimeline::new(HOST_BOUND);
    timeline.advance_with_gpu(119, alternating);
    assert_eq!(timeline.take_events(), [""; 0]);
    timeline.advance_with_gpu(1, alternating);
    assert_eq!(timeline.take_events(), ["120 +a 0"]);
    assert_eq!(
        timeline.evaluator.firing_alerts()[0].alert.text,
        "Host-bound 53 %: A process uses 100 % of a core while the GPU waits. Prepare data in \
         worker processes or on the GPU, and start the next step before its result is needed. Ask \
         Ana"
    );
    // After 30 seconds, both causes have the same share of the last two minutes.
    timeline.advance_with_gpu(60, set_cause(LimitClass::Tensor));
    assert_eq!(timeline.take_events(), [""; 0]);
    timeline.advance_with_gpu(1, set_cause(LimitClass::Tensor));
    assert_eq!(timeline.take_events(), ["181 -a 0"]);
}

#[test]
fn repeated_window_of_limits_is_counted_once() {
    // Windows of 20 s and 10 s alternate. Samples repeat the shorter ones more often.
    let uneven = |sample: &mut GpuSample| {
        let second = (sample.at_ms - START_MS) / 1000 % 30;
        let (age_ms, limits) = match second {
            0..20 => (second * 1000, make_limits(10_000, LimitClass::Host)),
            _ => (
                (second - 20) * 1000,
                make_limits(20_000, LimitClass::Tensor),
            ),
        };
        sample.limits = match age_ms {
            0 => Reading::Now(limits),
            _ => Reading::Earlier {
                value: limits,
                at_ms: sample.at_ms - age_ms,
            },
        };
    };
    let mut timeline = TestTimeline::new(&HOST_BOUND.replace("host", "tensor"));
    timeline.advance_with_gpu(300, uneven);
    assert_eq!(timeline.take_events(), ["110 +a 0"]);
}

#[test]
fn long_gap_in_limits_restarts_time() {
    let host = set_cause(LimitClass::Host);
    let hung = |sample: &mut GpuSample| {
        set_cause(LimitClass::Tensor)(sample);
        sample.health = Health::Hung { since_ms: 1 };
    };
    let mut timeline = TestTimeline::new(HOST_BOUND);
    timeline
        .advance_with_gpu(100, &host)
        .advance_with_gpu(25, |_| {})
        .advance_with_gpu(5, &host);
    assert_eq!(timeline.take_events(), ["126 +a 0"]);
    timeline
        .advance_with_gpu(40, hung)
        .advance_with_gpu(149, set_cause(LimitClass::Tensor));
    assert_eq!(timeline.take_events(), [""; 0]);
    timeline.advance_with_gpu(1, set_cause(LimitClass::Tensor));
    assert_eq!(timeline.take_events(), ["320 -a 0"]);

    let mut timeline = TestTimeline::new(HOST_BOUND);
    timeline
        .advance_with_gpu(100, &host)
        .advance_with_gpu(40, hung)
        .advance_with_gpu(130, &host);
    assert_eq!(timeline.take_events(), ["260 +a 0"]);
}

#[test]
fn newest_window_decides_without_for() {
    let mut timeline = TestTimeline::new("limited_by = \"host\"\nclear_for = \"0s\"");
    timeline
        .advance_with_gpu(3, set_cause(LimitClass::Host))
        .advance_with_gpu(2, set_cause(LimitClass::Tensor))
        .advance_with_gpu(2, set_cause(LimitClass::Host));
    assert_eq!(timeline.take_events(), ["1 +a 0", "4 -a 0", "6 +a 0"]);
}

#[test]
fn collector_restart_keeps_alert_until_condition_is_redetected() {
    let hangs = |sample: &mut GpuSample| {
        let kind = ConditionKind::SuspectedHang {
            power_watts: 120.0,
            pids: vec![1],
            waiting: Vec::new(),
            differing: Vec::new(),
        };
        let text = "Suspected hang.".into();
        sample.conditions.push(Condition {
            since_ms: 1,
            severity: Severity::Warning,
            text,
            kind,
        });
    };
    let silent = |sample: &mut GpuSample| sample.health = Health::Hung { since_ms: 1 };
    let rule = "condition = \"suspected_hang\"\nclear_for = \"60s\"";
    let mut timeline = TestTimeline::new(rule);
    timeline.advance_with_gpu(5, hangs).restart_collector();
    timeline
        .advance_with_gpu(590, |_| {})
        .advance_with_gpu(5, hangs);
    assert_eq!(
        timeline.take_events(),
        ["1 +a 0"],
        "it is found again after ten minutes"
    );
    timeline.restart_collector();
    timeline
        .advance_with_gpu(300, silent)
        .advance_with_gpu(614, |_| {});
    assert_eq!(
        timeline.take_events(),
        [""; 0],
        "a GPU that does not answer shows nothing"
    );
    timeline.advance_with_gpu(62, |_| {});
    assert_eq!(
        timeline.take_events(),
        ["1575 -a 0"],
        "it is not found again"
    );
    timeline
        .advance_with_gpu(5, hangs)
        .advance_with_gpu(58, |_| {})
        .advance_with_gpu(1, hangs)
        .advance_with_gpu(62, |_| {});
    assert_eq!(
        timeline.take_events(),
        ["1577 +a 0", "1701 -a 0"],
        "a collector that runs for long knows"
    );

    // A pending alert survives the collector's restart, but does not fire until the condition is
    // detected again.
    let mut timeline = TestTimeline::new(&format!("{rule}\nfor = \"20s\""));
    timeline.advance_with_gpu(5, hangs).restart_collector();
    timeline.advance_with_gpu(300, |_| {});
    assert_eq!(timeline.take_events(), [""; 0]);
    timeline.advance_with_gpu(1, hangs);
    assert_eq!(timeline.take_events(), ["306 +a 0"]);
}

#[test]
fn notification_repeats_and_resolution_is_sent() {
    let mut timeline = TestTimeline::new(&make_file_with_receiver(&format!(
        "{HOT}\nrepeat = \"100s\""
    )));
    timeline
        .advance_with_gpu(250, set_celsius(90.0))
        .advance_with_gpu(20, set_celsius(40.0));
    assert_eq!(
        timeline.take_notifications(),
        ["21 +a log", "121 +a log", "221 +a log", "261 -a log"]
    );
    assert_eq!(timeline.take_events(), ["21 +a 0", "261 -a 0"]);
}

#[test]
fn silence_delays_notifications_until_it_ends() {
    let mut timeline = TestTimeline::new(&make_file_with_receiver(HOT));
    assert!(
        timeline
            .evaluator
            .silence_rule("a", Some(START_MS + 100_000))
            && !timeline.evaluator.silence_rule("b", None)
    );
    timeline.advance_with_gpu(30, set_celsius(90.0));
    assert!(
        timeline.evaluator.firing_alerts()[0].alert.silenced
            && timeline.evaluator.status(timeline.now_ms)[0].silenced
    );
    timeline.advance_with_gpu(40, set_celsius(40.0));
    assert_eq!(
        (timeline.take_events(), timeline.take_notifications()),
        (vec!["21 +a 0".into(), "41 -a 0".into()], vec![])
    );
    timeline.advance_with_gpu(40, set_celsius(90.0));
    assert_eq!(timeline.take_notifications(), ["100 +a log"]);
    assert!(!timeline.evaluator.firing_alerts()[0].alert.silenced);
    timeline
        .evaluator
        .silence_rule("a", Some(START_MS + 900_000));
    timeline.advance_with_gpu(40, set_celsius(40.0));
    assert_eq!(timeline.take_notifications(), [""; 0]);
    timeline.evaluator.silence_rule("a", None);
    timeline.advance_with_gpu(1, set_celsius(40.0));
    assert_eq!(
        timeline.take_notifications(),
        ["151 -a log"],
        "what receivers were told is taken back"
    );

    let mut timeline = TestTimeline::new(&make_file_with_receiver(&format!(
        "{HOT}\nsilence = [\"23:00-00:01\"]"
    )));
    timeline.advance_with_gpu(70, set_celsius(90.0));
    assert_eq!(timeline.take_notifications(), ["60 +a log"]);
}

#[test]
fn reload_resolves_only_alerts_of_changed_rules() {
    let cold = "[[rule]]\nname = \"cold\"\nfield = \"temperature.gpu_celsius\"\nbelow = 41\n";
    let mut timeline = TestTimeline::new(&format!("{}\n{cold}", make_file_with_receiver(HOT)));
    timeline.advance_with_gpu(30, set_celsius(90.0));
    assert_eq!(timeline.take_events(), ["1 +cold 1", "21 +a 0"]);
    timeline.take_notifications();
    timeline.reload(&make_file_with_receiver(&format!(
        "{HOT}\nseverity = \"critical\""
    )));
    timeline.advance_with_gpu(10, set_celsius(90.0));
    assert_eq!(timeline.take_events(), ["31 -cold 1"]);
    assert_eq!(timeline.take_notifications(), ["31 -cold log"]);
    assert_eq!(
        timeline.evaluator.firing_alerts()[0].alert.severity,
        Severity::Critical
    );
    timeline.reload(&make_file_with_receiver(&HOT.replace("85", "86")));
    timeline.advance_with_gpu(30, set_celsius(90.0));
    assert_eq!(
        timeline.take_events(),
        ["41 -a 0", "61 +a 0"],
        "it watches for something else"
    );
}

#[test]
fn reload_repeats_alert_to_new_or_repaired_receiver() {
    let receiver = |name: &str| format!("[[command]]\nname = \"{name}\"\ncommand = [\"true\"]\n");
    let rules = |names: &[&str]| {
        let receivers: String = names.iter().map(|name| receiver(name)).collect();
        format!("{receivers}[[rule]]\nname = \"a\"\n{HOT}")
    };
    let mut timeline = TestTimeline::new(&rules(&["log", "slack"]));
    timeline.advance_with_gpu(30, set_celsius(90.0));
    assert_eq!(timeline.take_notifications(), ["21 +a log,slack"]);
    timeline.reload_with(&rules(&["log", "slack"]), &["slack"]);
    timeline.advance_with_gpu(5, set_celsius(90.0));
    assert_eq!(timeline.take_notifications(), ["31 +a slack"]);
    timeline.reload_with(&rules(&["log", "slack", "mail"]), &["mail"]);
    timeline.advance_with_gpu(5, set_celsius(90.0));
    assert_eq!(
        (timeline.take_notifications(), timeline.take_events()),
        (vec!["36 +a mail".into()], vec!["21 +a 0".into()])
    );
    timeline.reload(&rules(&["log", "mail"]));
    timeline.advance_with_gpu(20, set_celsius(40.0));
    assert_eq!(
        timeline.take_notifications(),
        ["51 -a log,mail,slack"],
        "whoever was told, if there still is such a one"
    );
    timeline.advance_with_gpu(30, set_celsius(90.0));
    timeline.reload(&receiver("mail"));
    timeline.reload_with(&rules(&["log"]), &["log"]);
    timeline.advance_with_gpu(1, set_celsius(40.0));
    assert_eq!(
        timeline.take_notifications(),
        ["81 +a log,mail", "91 -a mail"],
        "not the end of what it does not know"
    );
}

#[test]
fn restart_neither_repeats_nor_forgets_notifications() {
    let rules = make_file_with_receiver(HOT);
    let all: std::collections::BTreeMap<String, bool> = [("log".to_owned(), true)].into();
    let mut before = TestTimeline::new(&rules);
    before.advance_with_gpu(30, set_celsius(90.0));
    let saved = SavedAlert::merge_saved_alerts(&[], before.evaluator.saved_alerts(), &all);
    let text = serde_json::to_string(&saved).unwrap();
    let saved: Vec<SavedAlert> = serde_json::from_str(&text).unwrap();
    let restarted = |rules: &str| {
        let mut timeline = TestTimeline::new(rules);
        timeline.now_ms += 60_000;
        timeline.evaluator.restore(saved.clone());
        timeline
    };
    let reported =
        |timeline: &mut TestTimeline| (timeline.take_events(), timeline.take_notifications());

    let mut timeline = restarted(&rules);
    timeline
        .advance_without_samples(5, false)
        .advance_with_gpu(30, set_celsius(82.0))
        .advance_with_gpu(20, set_celsius(95.0));
    assert_eq!(
        reported(&mut timeline),
        (vec![], vec![]),
        "it fires as before, also between its thresholds"
    );
    let firing = timeline.evaluator.firing_alerts();
    assert_eq!(
        (firing[0].alert.since_ms, firing[0].alert.text.as_str()),
        (START_MS + 1000, "Temperature 95 °C, above 85 °C for 20 s")
    );
    let mut timeline = restarted(&rules);
    timeline
        .advance_without_samples(5, false)
        .advance_with_gpu(20, set_celsius(40.0));
    assert_eq!(
        reported(&mut timeline),
        (vec!["76 -a 0".into()], vec!["76 -a log".into()]),
        "it ended meanwhile"
    );
    let mut timeline = restarted(&make_file_with_receiver(&HOT.replace("85", "86")));
    timeline.advance_with_gpu(30, set_celsius(95.0));
    let expected = ["61 -a 0", "81 +a 0"].map(str::to_owned).to_vec();
    assert_eq!(
        timeline.take_events(),
        expected,
        "it watches for something else"
    );
    // After the restart, the alert's GPU index belongs to another GPU.
    let mut moved = saved.clone();
    moved = serde_json::from_str(
        &serde_json::to_string(&moved)
            .unwrap()
            .replace("GPU-0", "GPU-9"),
    )
    .unwrap();
    let mut timeline = TestTimeline::new(&rules);
    timeline.evaluator.restore(moved);
    timeline.advance_with_gpu(5, set_celsius(95.0));
    assert_eq!(timeline.take_notifications(), ["1 -a log"]);

    // A receiver could not be reached before the restart. It is notified after the restart, whether
    // the alert is still firing or has ended in the meantime.
    let waits: std::collections::BTreeMap<String, bool> = [("log".to_owned(), false)].into();
    let unsent = SavedAlert::merge_saved_alerts(&[], before.evaluator.saved_alerts(), &waits);
    let mut timeline = TestTimeline::new(&rules);
    timeline.evaluator.restore(unsent);
    timeline.advance_with_gpu(5, set_celsius(95.0));
    assert_eq!(reported(&mut timeline), (vec![], vec!["1 +a log".into()]));
    before.advance_with_gpu(20, set_celsius(40.0));
    let unsent = SavedAlert::merge_saved_alerts(&saved, before.evaluator.saved_alerts(), &waits);
    assert_eq!(
        SavedAlert::merge_saved_alerts(&saved, before.evaluator.saved_alerts(), &all),
        []
    );
    let mut timeline = TestTimeline::new(&rules);
    timeline.evaluator.restore(unsent);
    timeline.advance_with_gpu(5, set_celsius(40.0));
    assert_eq!(reported(&mut timeline), (vec![], vec!["1 -a log".into()]));
}

#[test]
fn firing_rate_alert_continues_after_restart() {
    let rule = "field = \"memory.used_bytes\"\nabove = \"1 GiB\"\nper = \"minute\"\nover = \"10m\"";
    let growing = |sample: &mut GpuSample| {
        sample.memory.used_bytes =
            Reading::Now((10 << 30) + ((sample.at_ms - START_MS) / 1000) * (20 << 20));
    };
    let mut before = TestTimeline::new(rule);
    before.advance_with_gpu(400, growing);
    assert_eq!(before.take_events(), ["301 +a 0"]);
    let mut timeline = TestTimeline::new(rule);
    timeline.evaluator.restore(before.evaluator.saved_alerts());
    timeline
        .advance_with_gpu(500, growing)
        .advance_with_gpu(61, |_| {});
    assert_eq!(timeline.take_events(), [""; 0]);
}

#[test]
fn clock_jump_counts_as_one_minute_at_most() {
    let mut timeline = TestTimeline::new(&HOT.replace("20s", "2m"));
    timeline.advance_with_gpu(3, set_celsius(90.0));
    timeline.now_ms += 3_600_000;
    timeline.advance_with_gpu(58, set_celsius(90.0));
    timeline.now_ms -= 1_800_000;
    timeline.advance_with_gpu(1, set_celsius(90.0));
    assert_eq!(timeline.take_events(), [""; 0]);
    timeline.advance_with_gpu(2, set_celsius(90.0));
    assert_eq!(timeline.take_events(), ["1863 +a 0"]);
}
