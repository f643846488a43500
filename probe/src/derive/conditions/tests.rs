use super::{
    test_timeline::{self, START_MS, TestTimeline, expected_event},
    *,
};
use crate::{
    derive::examples,
    model::{Absence, ConditionKind, Reading, RecoveryAction, Severity, ThrottleReason},
};

fn set_power_capped(sample: &mut GpuSample) {
    sample.throttle_reasons = Reading::Now(vec![ThrottleReason::SwPowerCap]);
}

#[test]
fn healthy_busy_gpu_has_no_condition() {
    let mut timeline = TestTimeline::new();
    timeline
        .advance_with_sample(3_600, |_| {})
        .advance_with_details(60, |_| {});
    assert_eq!(timeline.take_events(), []);
    assert_eq!(timeline.last.conditions, []);
}

#[test]
fn absent_readings_do_not_start_condition() {
    let mut timeline = TestTimeline::new();
    timeline.advance_with_sample(3_600, |sample| {
        *sample = GpuSample::new_absent(0, None, sample.at_ms, Health::Ok, &Absence::NotSupported);
    });
    assert_eq!(timeline.take_events(), []);
}

#[test]
fn old_readings_do_not_start_condition() {
    let mut timeline = TestTimeline::new();
    let old = |sample: &mut GpuSample, age_ms| {
        let at_ms = sample.at_ms - age_ms;
        sample.throttle_reasons = Reading::Earlier {
            value: vec![ThrottleReason::SwPowerCap],
            at_ms,
        };
    };
    timeline.advance_with_sample(100, |sample| old(sample, 61_000));
    assert_eq!(timeline.take_events(), []);
    timeline.advance_with_sample(10, |sample| old(sample, 50_000));
    assert_eq!(timeline.take_events(), [expected_event(104, "+throttled")]);
    let mut timeline = TestTimeline::new();
    let mut details = examples::make_details(START_MS);
    details.ecc.volatile.uncorrected_total = Reading::Now(1);
    timeline.details = Some(details);
    timeline.advance_with_sample(200, |_| {});
    assert_eq!(
        timeline.take_events(),
        [
            expected_event(1, "+ecc_uncorrected"),
            expected_event(121, "-ecc_uncorrected")
        ],
        "details are read no more"
    );
}

#[test]
fn conditions_are_sorted_by_severity_and_age() {
    let full = |sample: &mut GpuSample| sample.memory.free_bytes = Reading::Now(0);
    let mut timeline = TestTimeline::new();
    timeline.advance_with_sample(10, full);
    timeline.report_xid(45, None);
    timeline.report_xid(13, None);
    timeline.advance_with_sample(1, full);
    timeline.report_xid(79, None);
    timeline.advance_with_sample(1, full);
    let names: Vec<_> = timeline
        .last
        .conditions
        .iter()
        .map(test_timeline::condition_name)
        .collect();
    assert_eq!(names, ["xid 79", "memory_nearly_full", "xid 13", "xid 45"]);
}

#[test]
fn hung_gpu_keeps_conditions_until_it_responds() {
    let mut timeline = TestTimeline::new();
    timeline.advance_with_sample(10, set_power_capped);
    timeline.report_xid(13, None);
    timeline.advance_with_sample(1, set_power_capped);
    let before = timeline.last.conditions.clone();
    timeline.take_events();
    timeline.advance_with_sample(3_600, test_timeline::set_hung);
    assert_eq!(timeline.take_events(), []);
    assert_eq!(timeline.last.conditions, before);
    timeline.advance_with_sample(1, set_power_capped);
    assert_eq!(timeline.last.conditions.len(), 2);
    assert_eq!(
        timeline.last.conditions[0], before[0],
        "time in which it hung counts for nothing"
    );
}

#[test]
fn repeated_sample_is_not_evaluated_again() {
    let mut timeline = TestTimeline::new();
    let mut sample = examples::make_sample(START_MS);
    set_power_capped(&mut sample);
    for _ in 0..20 {
        timeline.now_ms += 1_000;
        timeline.tick(sample.clone());
    }
    assert_eq!(timeline.take_events(), []);
}

#[test]
fn lost_gpu_keeps_only_xid_conditions() {
    let mut timeline = TestTimeline::new();
    timeline.advance_with_sample(10, set_power_capped);
    timeline.report_xid(79, None);
    timeline.report_xid(13, None);
    timeline.take_events();
    timeline.advance_with_sample(7_200, test_timeline::set_lost);
    assert_eq!(timeline.take_events(), [expected_event(11, "-throttled")]);
    assert_eq!(timeline.last.conditions.len(), 2);
    timeline.advance_with_sample(1, |_| {});
    assert_eq!(
        timeline.take_events(),
        [
            expected_event(7_211, "-xid 79"),
            expected_event(7_211, "-xid 13")
        ]
    );
    assert_eq!(timeline.last.conditions, []);
}

#[test]
fn conditions_end_when_gpu_sleeps_or_fails() {
    let (meaning, advice) = ("refused".to_owned(), "ask".to_owned());
    let failed = Health::Failed {
        since_ms: 1,
        reason: Absence::Unknown,
        meaning,
        advice,
    };
    for health in [Health::Asleep { since_ms: 1 }, failed] {
        let mut timeline = TestTimeline::new();
        timeline
            .advance_with_sample(10, set_power_capped)
            .advance_with_sample(1, |sample| {
                test_timeline::set_unreadable(sample, health.clone());
            });
        assert_eq!(
            timeline.take_events(),
            [
                expected_event(4, "+throttled"),
                expected_event(11, "-throttled")
            ]
        );
    }
}

#[test]
fn xid_caused_by_program_ends_before_other_xids() {
    let mut timeline = TestTimeline::new();
    timeline.advance_with_sample(1, |_| {});
    timeline.report_xid(31, Some(7));
    timeline.report_xid(94, None);
    timeline.advance_with_sample(1_000, |_| {});
    let events = timeline.take_events();
    assert_eq!(
        events[..2],
        [expected_event(1, "+xid 31"), expected_event(1, "+xid 94")]
    );
    assert_eq!(
        events[2..],
        [
            expected_event(61, "-xid 31"),
            expected_event(601, "-xid 94")
        ]
    );
}

#[test]
fn repeated_xid_is_renewed_and_counted() {
    let mut timeline = TestTimeline::new();
    for pid in 0..5 {
        timeline.report_xid(31, Some(pid));
        timeline.advance_with_sample(50, |_| {});
    }
    assert_eq!(timeline.take_events(), [expected_event(0, "+xid 31")]);
    let condition = timeline.only_condition();
    assert_eq!(
        condition.kind,
        ConditionKind::Xid {
            pid: Some(4),
            code: 31,
            count: 5,
            last_ms: START_MS + 200_000
        }
    );
    assert_eq!(
        (condition.since_ms, condition.severity),
        (START_MS, Severity::Warning)
    );
    assert!(
        condition
            .text
            .starts_with("Xid 31 (process 4): A program used an address"),
        "{}",
        condition.text
    );
    timeline.advance_with_sample(10, |_| {});
    assert_eq!(timeline.take_events(), [expected_event(260, "-xid 31")]);
}

#[test]
fn xid_lasts_while_recovery_is_requested() {
    let mut timeline = TestTimeline::new();
    timeline.report_xid(119, None);
    timeline.report_xid(45, None);
    timeline.advance_with_details(3_000, |details| {
        details.recovery_action = Reading::Now(RecoveryAction::GpuReset);
    });
    assert_eq!(
        timeline.last.conditions.len(),
        2,
        "{:?}",
        timeline.last.conditions
    );
    timeline.take_events();
    timeline.advance_with_details(1, |details| {
        details.recovery_action = Reading::Now(RecoveryAction::None);
    });
    assert_eq!(
        timeline.take_events(),
        [
            expected_event(3_001, "-recovery_needed"),
            expected_event(3_001, "-xid 119")
        ]
    );
}

#[test]
fn number_of_xid_conditions_is_limited() {
    let mut timeline = TestTimeline::new();
    for code in 0..1_000 {
        timeline.report_xid(code, None);
    }
    timeline.advance_with_sample(1, |_| {});
    assert_eq!(timeline.last.conditions.len(), 32);
    let ended = timeline
        .take_events()
        .iter()
        .filter(|(_, word)| word.starts_with('-'))
        .count();
    assert_eq!(ended, 968);
}

#[test]
fn clock_jump_does_not_change_conditions() {
    let mut timeline = TestTimeline::new();
    timeline.advance_with_sample(2, set_power_capped);
    timeline.now_ms -= 1_000_000;
    timeline.advance_with_sample(1, set_power_capped);
    assert_eq!(timeline.last.conditions, []);
    timeline
        .advance_with_sample(1, set_power_capped)
        .advance_with_sample(1, set_power_capped);
    assert_eq!(timeline.only_condition().since_ms, START_MS + 1_000);
}

#[test]
fn every_condition_kind_has_detection_time() {
    let settings = ConditionSettings {
        held_idle_after_ms: 7_000_000,
    };
    let rules = all_rules(&settings);
    for tag in ConditionKind::TAGS {
        let is_known = rules.iter().any(|state| state.tag == *tag);
        assert!(is_known || *tag == "xid", "{tag}");
    }
    assert_eq!(detection_time_ms(Some("held_idle"), &settings), 7_015_000);
    assert_eq!(detection_time_ms(None, &settings), 7_015_000);
    assert_eq!(detection_time_ms(Some("row_remap"), &settings), 15_000);
}
