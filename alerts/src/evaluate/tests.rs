use gpumon_probe::model::{
    Absence, Condition, ConditionKind, GpuSample, Health, Reading, Severity, ThrottleReason,
};

use super::{
    test_timeline::{START_MS, TestTimeline, celsius},
    *,
};

const HOT: &str = "field = \"temperature.gpu_celsius\"\nabove = 85\nfor = \"20s\"\nclear_below = 80\nclear_for = \"10s\"";
const COMMAND: &str = "[[command]]\nname = \"log\"\ncommand = [\"true\"]\n";

fn hot() -> TestTimeline {
    TestTimeline::new(HOT)
}

/// Returns an alert file with a receiver and this rule.
fn notifying(rule: &str) -> String {
    format!("{COMMAND}[[rule]]\nname = \"a\"\n{rule}")
}

#[test]
fn it_fires_after_its_time_and_resolves_behind_its_hysteresis() {
    let mut timeline = hot();
    timeline
        .show(100, celsius(85.0))
        .show(19, celsius(90.0))
        .show(1, celsius(84.0));
    assert_eq!(timeline.events(), [""; 0], "for less than 20 s in a row");
    timeline.show(21, celsius(90.0));
    assert_eq!(timeline.events(), ["141 +a 0"]);
    timeline.show(1000, celsius(81.0));
    assert_eq!(timeline.events(), [""; 0], "between its thresholds");
    timeline
        .show(5, celsius(79.0))
        .show(1, celsius(81.0))
        .show(10, celsius(79.0));
    assert_eq!(timeline.events(), [""; 0], "for less than 10 s in a row");
    timeline.show(1, celsius(79.0));
    assert_eq!(timeline.events(), ["1158 -a 0"]);
    timeline.show(100, celsius(84.0));
    assert_eq!(
        timeline.events(),
        [""; 0],
        "it begins at the upper threshold"
    );
}

#[test]
fn the_alert_tells_what_was_met_and_since_when() {
    let mut timeline = hot();
    timeline.show(100, celsius(90.4));
    let firing = timeline.evaluator.firing();
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
    timeline.show(1, celsius(99.0));
    assert!(
        timeline.evaluator.firing()[0]
            .alert
            .text
            .starts_with("Temperature 99 °C")
    );
}

#[test]
fn pending_firing_and_inactive_are_states() {
    let mut timeline = hot();
    let state = |timeline: &TestTimeline| {
        let status = timeline.evaluator.status(timeline.now_ms).remove(0);
        status
            .active
            .first()
            .map(|place| (place.state, place.gpu.as_ref().unwrap().index))
    };
    assert_eq!(state(&timeline), None);
    timeline.show(5, celsius(90.0));
    assert_eq!(state(&timeline), Some((RuleState::Pending, 0)));
    timeline.show(30, celsius(90.0));
    assert_eq!(state(&timeline), Some((RuleState::Firing, 0)));
    timeline.show(30, celsius(40.0));
    assert_eq!(state(&timeline), None);
}

#[test]
fn each_gpu_is_for_itself_and_others_than_named_are_left_out() {
    let both = |sample: &mut Sample| sample.gpus.iter_mut().for_each(celsius(90.0));
    let mut timeline = hot();
    timeline.show_sample(30, both).show(30, celsius(90.0));
    assert_eq!(timeline.events(), ["21 +a 0", "21 +a 1", "41 -a 1"]);
    for gpus in ["[1]", "[\"GPU-1\"]", "[\"gpu-1\", 1]", "[\"nvidia:1\"]"] {
        let mut timeline = TestTimeline::new(&format!("{HOT}\ngpus = {gpus}"));
        timeline.show_sample(30, both);
        assert_eq!(timeline.events(), ["21 +a 1"], "{gpus}");
    }
}

#[test]
fn a_reading_that_is_missing_for_a_moment_changes_nothing() {
    let missing = |sample: &mut GpuSample| {
        sample.temperature.gpu_celsius = Reading::Absent(Absence::NoAnswer);
    };
    let mut timeline = hot();
    timeline
        .show(10, celsius(90.0))
        .show(3, missing)
        .show(8, celsius(90.0));
    assert_eq!(timeline.events(), ["21 +a 0"]);
    timeline.show(50, missing).show(1, celsius(90.0));
    assert_eq!(timeline.events(), [""; 0]);
    timeline.show(70, missing);
    assert_eq!(
        timeline.events(),
        ["133 -a 0"],
        "after a minute without readings"
    );
    // A hung GPU keeps its last readings, which do not describe the present.
    let mut timeline = hot();
    let hung = |sample: &mut GpuSample| {
        celsius(90.0)(sample);
        sample.health = Health::Hung { since_ms: 1 };
    };
    timeline.show(60, hung);
    assert_eq!(timeline.events(), [""; 0]);
}

#[test]
fn a_share_is_of_the_limit_of_each_gpu() {
    let mut timeline = TestTimeline::new("field = \"memory.used_bytes\"\nabove = \"90 %\"");
    timeline.show(5, |sample| {
        sample.memory.used_bytes = Reading::Now(71 << 30);
    });
    assert_eq!(timeline.events(), [""; 0]);
    timeline.show(5, |sample| {
        sample.memory.used_bytes = Reading::Now(76 << 30);
    });
    assert_eq!(timeline.events(), ["6 +a 0"]);
    assert_eq!(
        timeline.evaluator.firing()[0].alert.text,
        "Memory 95 %, above 90 % of its limit"
    );
    let mut timeline = TestTimeline::new("field = \"host.memory.used_bytes\"\nbelow = \"51 %\"");
    timeline.show(2, |_| {});
    assert_eq!(timeline.events(), ["1 +a"]);
}

#[test]
fn a_rate_is_the_change_over_its_window() {
    let rule = "field = \"memory.used_bytes\"\nabove = \"1 GiB\"\nper = \"minute\"\nover = \"60s\"\nfor = \"10s\"";
    let mut timeline = TestTimeline::new(rule);
    let growing = |mib_per_second: u64| {
        move |sample: &mut GpuSample| {
            let seconds = (sample.at_ms - START_MS) / 1000;
            sample.memory.used_bytes = Reading::Now((10 << 30) + seconds * (mib_per_second << 20));
        }
    };
    timeline.show(200, growing(17));
    assert_eq!(timeline.events(), [""; 0], "1020 MiB per minute");
    let mut timeline = TestTimeline::new(rule);
    timeline.show(200, growing(20));
    assert_eq!(
        timeline.events(),
        ["41 +a 0"],
        "half of the window, and ten seconds"
    );
    let text = &timeline.evaluator.firing()[0].alert.text;
    assert_eq!(
        text,
        "Memory +1.17 GiB per minute, above 1.00 GiB per minute for 10 s"
    );
}

#[test]
fn what_does_not_answer_or_has_no_reading_is_absent() {
    let lost = |sample: &mut GpuSample| {
        let health = Health::Lost {
            since_ms: sample.at_ms,
        };
        *sample = GpuSample::absent(0, None, sample.at_ms, health, &Absence::GpuLost);
    };
    let mut timeline = TestTimeline::new("absent = true\nfor = \"5s\"\nclear_for = \"0s\"");
    timeline.show(10, |_| {}).show(10, lost);
    assert_eq!(timeline.events(), ["16 +a 0"]);
    assert_eq!(
        timeline.evaluator.firing()[0].alert.text,
        "No response for 5 s (the GPU is lost)"
    );
    timeline
        .show(1, |_| {})
        .show(100, |sample| sample.health = Health::Asleep { since_ms: 1 });
    assert_eq!(timeline.events(), ["21 -a 0"]);
    timeline.silent(100, false);
    assert_eq!(timeline.events(), [""; 0], "a pause is no absence");
    timeline.silent(7, true);
    assert_eq!(timeline.events(), ["227 +a 0", "227 +a 1"]);

    let mut timeline = TestTimeline::new(
        "absent = true\nfield = \"power.draw_watts\"\ngpus = [1, 7, \"GPU-ffff\", \"amd:0\"]",
    );
    timeline.show(1, |_| {});
    assert_eq!(timeline.events(), ["1 +a 1", "1 +a 7", "1 +a", "1 +a"]);
    let texts: Vec<_> = timeline
        .evaluator
        .firing()
        .into_iter()
        .map(|firing| firing.alert.text)
        .collect();
    assert!(
        texts.contains(&"No reading of Power (not supported)".to_owned()),
        "{texts:?}"
    );
    assert!(
        texts.contains(&"gpu-ffff: No reading of Power (there is no such GPU)".to_owned()),
        "{texts:?}"
    );
    assert!(
        texts.contains(&"amd:0: No reading of Power (there is no such GPU)".to_owned()),
        "{texts:?}"
    );
}

#[test]
fn a_condition_counts_from_its_severity_on() {
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
        timeline.show(1000, |_| {});
        timeline
            .show(2, throttled(Severity::Notice))
            .show(2, throttled(Severity::Critical))
            .show(2, |_| {});
        assert_eq!(timeline.events(), expected, "{kind}");
    }
}

#[test]
fn a_collector_that_is_replaced_ends_no_condition_that_it_has_not_had_time_to_find() {
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
    timeline.show(5, hangs).replace_collector();
    timeline.show(590, |_| {}).show(5, hangs);
    assert_eq!(
        timeline.events(),
        ["1 +a 0"],
        "it is found again after ten minutes"
    );
    timeline.replace_collector();
    timeline.show(300, silent).show(614, |_| {});
    assert_eq!(
        timeline.events(),
        [""; 0],
        "a GPU that does not answer shows nothing"
    );
    timeline.show(62, |_| {});
    assert_eq!(timeline.events(), ["1575 -a 0"], "it is not found again");
    timeline
        .show(5, hangs)
        .show(58, |_| {})
        .show(1, hangs)
        .show(62, |_| {});
    assert_eq!(
        timeline.events(),
        ["1577 +a 0", "1701 -a 0"],
        "a collector that runs for long knows"
    );

    // A pending alert also continues, but does not fire until the condition is found again.
    let mut timeline = TestTimeline::new(&format!("{rule}\nfor = \"20s\""));
    timeline.show(5, hangs).replace_collector();
    timeline.show(300, |_| {});
    assert_eq!(timeline.events(), [""; 0]);
    timeline.show(1, hangs);
    assert_eq!(timeline.events(), ["306 +a 0"]);
}

#[test]
fn receivers_are_told_again_after_a_while_and_when_it_is_over() {
    let mut timeline = TestTimeline::new(&notifying(&format!("{HOT}\nrepeat = \"100s\"")));
    timeline.show(250, celsius(90.0)).show(20, celsius(40.0));
    assert_eq!(
        timeline.notifications(),
        ["21 +a log", "121 +a log", "221 +a log", "261 -a log"]
    );
    assert_eq!(timeline.events(), ["21 +a 0", "261 -a 0"]);
}

#[test]
fn in_silence_nobody_is_told_and_behind_it_what_is_still_so() {
    let mut timeline = TestTimeline::new(&notifying(HOT));
    assert!(
        timeline.evaluator.silence("a", Some(START_MS + 100_000))
            && !timeline.evaluator.silence("b", None)
    );
    timeline.show(30, celsius(90.0));
    assert!(
        timeline.evaluator.firing()[0].alert.silenced
            && timeline.evaluator.status(timeline.now_ms)[0].silenced
    );
    timeline.show(40, celsius(40.0));
    assert_eq!(
        (timeline.events(), timeline.notifications()),
        (vec!["21 +a 0".into(), "41 -a 0".into()], vec![])
    );
    timeline.show(40, celsius(90.0));
    assert_eq!(timeline.notifications(), ["100 +a log"]);
    assert!(!timeline.evaluator.firing()[0].alert.silenced);
    timeline.evaluator.silence("a", Some(START_MS + 900_000));
    timeline.show(40, celsius(40.0));
    assert_eq!(timeline.notifications(), [""; 0]);
    timeline.evaluator.silence("a", None);
    timeline.show(1, celsius(40.0));
    assert_eq!(
        timeline.notifications(),
        ["151 -a log"],
        "what receivers were told is taken back"
    );

    let mut timeline =
        TestTimeline::new(&notifying(&format!("{HOT}\nsilence = [\"23:00-00:01\"]")));
    timeline.show(70, celsius(90.0));
    assert_eq!(timeline.notifications(), ["60 +a log"]);
}

#[test]
fn rules_that_stay_go_on_and_others_are_resolved() {
    let cold = "[[rule]]\nname = \"cold\"\nfield = \"temperature.gpu_celsius\"\nbelow = 41\n";
    let mut timeline = TestTimeline::new(&format!("{}\n{cold}", notifying(HOT)));
    timeline.show(30, celsius(90.0));
    assert_eq!(timeline.events(), ["1 +cold 1", "21 +a 0"]);
    timeline.notifications();
    timeline.reload(&notifying(&format!("{HOT}\nseverity = \"critical\"")));
    timeline.show(10, celsius(90.0));
    assert_eq!(timeline.events(), ["31 -cold 1"]);
    assert_eq!(timeline.notifications(), ["31 -cold log"]);
    assert_eq!(
        timeline.evaluator.firing()[0].alert.severity,
        Severity::Critical
    );
    timeline.reload(&notifying(&HOT.replace("85", "86")));
    timeline.show(30, celsius(90.0));
    assert_eq!(
        timeline.events(),
        ["41 -a 0", "61 +a 0"],
        "it watches for something else"
    );
}

#[test]
fn a_receiver_that_is_mended_or_new_hears_what_fires_and_the_others_not_again() {
    let receiver = |name: &str| format!("[[command]]\nname = \"{name}\"\ncommand = [\"true\"]\n");
    let rules = |names: &[&str]| {
        let receivers: String = names.iter().map(|name| receiver(name)).collect();
        format!("{receivers}[[rule]]\nname = \"a\"\n{HOT}")
    };
    let mut timeline = TestTimeline::new(&rules(&["log", "slack"]));
    timeline.show(30, celsius(90.0));
    assert_eq!(timeline.notifications(), ["21 +a log,slack"]);
    timeline.reload_with(&rules(&["log", "slack"]), &["slack"]);
    timeline.show(5, celsius(90.0));
    assert_eq!(timeline.notifications(), ["31 +a slack"]);
    timeline.reload_with(&rules(&["log", "slack", "mail"]), &["mail"]);
    timeline.show(5, celsius(90.0));
    assert_eq!(
        (timeline.notifications(), timeline.events()),
        (vec!["36 +a mail".into()], vec!["21 +a 0".into()])
    );
    timeline.reload(&rules(&["log", "mail"]));
    timeline.show(20, celsius(40.0));
    assert_eq!(
        timeline.notifications(),
        ["51 -a log,mail,slack"],
        "whoever was told, if there still is such a one"
    );
    timeline.show(30, celsius(90.0));
    timeline.reload(&receiver("mail"));
    timeline.reload_with(&rules(&["log"]), &["log"]);
    timeline.show(1, celsius(40.0));
    assert_eq!(
        timeline.notifications(),
        ["81 +a log,mail", "91 -a mail"],
        "not the end of what it does not know"
    );
}

#[test]
fn a_restart_neither_sends_again_what_fires_nor_forgets_to_take_back_what_was_sent() {
    let rules = notifying(HOT);
    let all: std::collections::BTreeMap<String, bool> = [("log".to_owned(), true)].into();
    let mut before = TestTimeline::new(&rules);
    before.show(30, celsius(90.0));
    let saved = SavedAlert::merge(&[], before.evaluator.saved(), &all);
    let text = serde_json::to_string(&saved).unwrap();
    let saved: Vec<SavedAlert> = serde_json::from_str(&text).unwrap();
    let restarted = |rules: &str| {
        let mut timeline = TestTimeline::new(rules);
        timeline.now_ms += 60_000;
        timeline.evaluator.restore(saved.clone());
        timeline
    };
    let told = |timeline: &mut TestTimeline| (timeline.events(), timeline.notifications());

    let mut timeline = restarted(&rules);
    timeline
        .silent(5, false)
        .show(30, celsius(82.0))
        .show(20, celsius(95.0));
    assert_eq!(
        told(&mut timeline),
        (vec![], vec![]),
        "it fires as before, also between its thresholds"
    );
    let firing = timeline.evaluator.firing();
    assert_eq!(
        (firing[0].alert.since_ms, firing[0].alert.text.as_str()),
        (START_MS + 1000, "Temperature 95 °C, above 85 °C for 20 s")
    );
    let mut timeline = restarted(&rules);
    timeline.silent(5, false).show(20, celsius(40.0));
    assert_eq!(
        told(&mut timeline),
        (vec!["76 -a 0".into()], vec!["76 -a log".into()]),
        "it ended meanwhile"
    );
    let mut timeline = restarted(&notifying(&HOT.replace("85", "86")));
    timeline.show(30, celsius(95.0));
    let expected = ["61 -a 0", "81 +a 0"].map(str::to_owned).to_vec();
    assert_eq!(timeline.events(), expected, "it watches for something else");
    // The index belongs to another GPU now.
    let mut moved = saved.clone();
    moved = serde_json::from_str(
        &serde_json::to_string(&moved)
            .unwrap()
            .replace("GPU-0", "GPU-9"),
    )
    .unwrap();
    let mut timeline = TestTimeline::new(&rules);
    timeline.evaluator.restore(moved);
    timeline.show(5, celsius(95.0));
    assert_eq!(timeline.notifications(), ["1 -a log"]);

    // A receiver that was not reached is notified after the restart, whether the alert still fires
    // or has ended.
    let waits: std::collections::BTreeMap<String, bool> = [("log".to_owned(), false)].into();
    let unsent = SavedAlert::merge(&[], before.evaluator.saved(), &waits);
    let mut timeline = TestTimeline::new(&rules);
    timeline.evaluator.restore(unsent);
    timeline.show(5, celsius(95.0));
    assert_eq!(told(&mut timeline), (vec![], vec!["1 +a log".into()]));
    before.show(20, celsius(40.0));
    let unsent = SavedAlert::merge(&saved, before.evaluator.saved(), &waits);
    assert_eq!(
        SavedAlert::merge(&saved, before.evaluator.saved(), &all),
        []
    );
    let mut timeline = TestTimeline::new(&rules);
    timeline.evaluator.restore(unsent);
    timeline.show(5, celsius(40.0));
    assert_eq!(told(&mut timeline), (vec![], vec!["1 -a log".into()]));
}

#[test]
fn a_rate_that_fires_waits_behind_a_restart_until_it_is_known() {
    let rule = "field = \"memory.used_bytes\"\nabove = \"1 GiB\"\nper = \"minute\"\nover = \"10m\"";
    let growing = |sample: &mut GpuSample| {
        sample.memory.used_bytes =
            Reading::Now((10 << 30) + ((sample.at_ms - START_MS) / 1000) * (20 << 20));
    };
    let mut before = TestTimeline::new(rule);
    before.show(400, growing);
    assert_eq!(before.events(), ["301 +a 0"]);
    let mut timeline = TestTimeline::new(rule);
    timeline.evaluator.restore(before.evaluator.saved());
    timeline.show(500, growing).show(61, |_| {});
    assert_eq!(timeline.events(), [""; 0]);
}

#[test]
fn a_clock_that_jumps_counts_as_a_minute_at_most() {
    let mut timeline = TestTimeline::new(&HOT.replace("20s", "2m"));
    timeline.show(3, celsius(90.0));
    timeline.now_ms += 3_600_000;
    timeline.show(58, celsius(90.0));
    timeline.now_ms -= 1_800_000;
    timeline.show(1, celsius(90.0));
    assert_eq!(timeline.events(), [""; 0]);
    timeline.show(2, celsius(90.0));
    assert_eq!(timeline.events(), ["1863 +a 0"]);
}
