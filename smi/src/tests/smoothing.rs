//! Tests that the log and the queries show power smoothing in the same units.

use gpumon_probe::vendor::nvml::query::{Query, Subject, Value};

use super::views::show;
use crate::tests::scripted::ScriptedBackend;

/// Returns the values of all lines of the log with this title.
fn logged(driver: &ScriptedBackend, title: &str) -> Vec<String> {
    let log = show("-q -d POWER_SMOOTHING", driver);
    let lines = log.lines().filter_map(|line| line.split_once(": "));
    lines
        .filter(|(name, _)| name.trim() == title)
        .map(|(_, value)| value.to_owned())
        .collect()
}

#[test]
fn one_answer_is_the_same_quantity_in_the_log_and_in_a_query() {
    for (id, title, name) in [
        (254, "Current TMP", "tmp_ceil"),
        (255, "Current TMP Floor", "tmp_floor"),
        (256, "Max % TMP Floor", "max_percent_tmp_floor"),
        (257, "Min % TMP Floor", "min_percent_tmp_floor"),
        (
            258,
            "HW Circuitry % Lifetime Remaining",
            "hw_lifetime_remaining_percent",
        ),
        (260, "% TMP Floor", "curr_profile.percent_tmp_floor"),
        (265, "% TMP Floor", "admin_override.percent_tmp_floor"),
        (275, "Current Primary Power Floor", "primary_power_floor"),
        (
            276,
            "Current Secondary Power Floor",
            "secondary_power_floor",
        ),
        (
            277,
            "Min Primary Floor Activation Offset",
            "min_primary_floor_activation_offset",
        ),
        (
            278,
            "Min Primary Floor Activation Point",
            "min_primary_floor_activation_point",
        ),
        (
            281,
            "Secondary Power Floor",
            "curr_profile.secondary_power_floor",
        ),
        (
            284,
            "Primary Floor Activation Offset",
            "curr_profile.primary_floor_act_offset",
        ),
        (
            288,
            "Primary Floor Activation Offset",
            "admin_override.primary_floor_act_offset",
        ),
    ] {
        for (value, number) in [
            (Value::number(52), "52.00 "),
            (Value::Reals(vec![52.25]), "52.25 "),
        ] {
            let driver = [0, 5].into_iter().fold(
                ScriptedBackend::default().numbers(0, Query::Field(251, 5), &[1]),
                |driver, scope| {
                    driver.answer(Subject::gpu(0), Query::Field(id, scope), Ok(value.clone()))
                },
            );
            let cells = show(
                &format!("--query-gpu=power_smoothing.{name} --format=csv,noheader"),
                &driver,
            );
            let cell = cells.lines().next().unwrap().to_owned();
            assert!(cell.starts_with(number), "{name}: {cell}");
            assert!(
                logged(&driver, title).contains(&cell),
                "{title} is not {cell}"
            );
        }
    }
}

#[test]
fn what_no_administrator_has_set_is_absent() {
    let driver = [251, 265, 268, 286]
        .into_iter()
        .fold(ScriptedBackend::default(), |driver, id| {
            driver.numbers(
                0,
                Query::Field(id, 5),
                &[if id == 251 { 1 } else { u32::MAX.into() }],
            )
        });
    for title in [
        "% TMP Floor",
        "Ramp Down Hysteresis",
        "Primary Floor Activation Window Multiplier",
    ] {
        assert_eq!(logged(&driver, title), ["N/A", "N/A"], "{title}");
    }
}
