//! Tests that the log and the queries show power smoothing values in the same units.

use gpumon_probe::vendor::nvml::query::{Query, Subject, Value};

use super::views::render_command_line;
use crate::tests::scripted::ScriptedBackend;

/// Returns the values in all lines of the log that have the given title.
fn list_log_values(driver: &ScriptedBackend, title: &str) -> Vec<String> {
    let log = render_command_line("-q -d POWER_SMOOTHING", driver);
    let lines = log.lines().filter_map(|line| line.split_once(": "));
    lines
        .filter(|(name, _)| name.trim() == title)
        .map(|(_, value)| value.to_owned())
        .collect()
}

#[test]
fn log_and_query_show_same_power_smoothing_value() {
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
            (Value::from_number(52), "52.00 "),
            (Value::Reals(vec![52.25]), "52.25 "),
        ] {
            let driver = [0, 5].into_iter().fold(
                ScriptedBackend::default().with_numbers(0, Query::Field(251, 5), &[1]),
                |driver, scope| {
                    driver.with_answer(
                        Subject::from_gpu(0),
                        Query::Field(id, scope),
                        Ok(value.clone()),
                    )
                },
            );
            let cells = render_command_line(
                &format!("--query-gpu=power_smoothing.{name} --format=csv,noheader"),
                &driver,
            );
            let cell = cells.lines().next().unwrap().to_owned();
            assert!(cell.starts_with(number), "{name}: {cell}");
            assert!(
                list_log_values(&driver, title).contains(&cell),
                "{title} is not {cell}"
            );
        }
    }
}

#[test]
fn unset_power_smoothing_override_is_absent() {
    let driver = [251, 265, 268, 286]
        .into_iter()
        .fold(ScriptedBackend::default(), |driver, id| {
            driver.with_numbers(
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
        assert_eq!(list_log_values(&driver, title), ["N/A", "N/A"], "{title}");
    }
}
