//! The fields of each driver release.

use crate::support::{FakeNvml, Server, gpumon_command, stdout_text, wait_for_condition};

fn machine_with_driver(version: &str, rest: &str) -> String {
    format!("gpus = 2\n[answers]\nnvmlSystemGetDriverVersion = \"{version}\"\n{rest}")
}

#[test]
fn fields_match_running_driver() {
    for (version, has, lacks) in [
        (
            "580.159.04",
            "power_smoothing.primary_power_floor",
            "edpp_multiplier",
        ),
        (
            "590.48.01",
            "edpp_multiplier",
            "fabric.health.partition_assigned",
        ),
        (
            "595.80",
            "kmd_version",
            "power_smoothing.primary_power_floor",
        ),
        ("610.57.04", "bbx.time_run", "power_smoothing.later"),
        ("620.10", "bbx.time_run", "power_smoothing.later"),
    ] {
        let fake = FakeNvml::new(&machine_with_driver(version, ""));
        let help = stdout_text(
            &fake
                .gpumon_command(&["smi", "--help-query-gpu"])
                .output()
                .unwrap(),
        );
        let lists = |field: &str| help.contains(&format!("\n\"{field}\"\n"));
        assert!(lists(has) && !lists(lacks), "{version}: {help}");
        let ask = |field: &str| {
            let query = format!("--query-gpu=index,{field}");
            let output = fake
                .gpumon_command(&["smi", &query, "--format=csv"])
                .output()
                .unwrap();
            (output.status.code().unwrap(), stdout_text(&output))
        };
        let (code, text) = ask(has);
        assert!(
            code == 0 && text.starts_with(&format!("index, {has}")) && text.lines().count() == 3,
            "{text}"
        );
        assert_eq!(
            ask(lacks),
            (
                2,
                format!("Field \"{lacks}\" is not a valid field to query.\n\n")
            ),
            "{version}"
        );
    }
}

#[test]
fn help_without_driver_lists_newest_fields() {
    let help = gpumon_command(&["smi", "--help-query-gpu"])
        .env("GPUMON_NVML_LIB", "/nonexistent/lib.so")
        .output()
        .unwrap();
    assert!(
        help.status.success() && stdout_text(&help).contains("\n\"bbx.time_run\"\n"),
        "{}",
        stdout_text(&help)
    );
}

#[test]
fn server_supports_fields_of_new_driver() {
    let smoothing = "[gpu.answers]\n\"nvmlDeviceGetFieldValues(274, 0)\" = \
                     90\nnvmlDeviceGetBBXTimeData_v1 = 7200\n\"nvmlDeviceGetFieldValues(187, 3)\" \
                     = 400000\n\"nvmlDeviceGetFieldValues(251, 0)\" = \
                     1\n\"nvmlDeviceGetFieldValues(261, 5)\" = \
                     2500\n\"nvmlDeviceGetFieldValues(300, 0)\" = 1\n";
    let fake = FakeNvml::new(&machine_with_driver(
        "610.57.04",
        &format!("[[gpu]]\nindex = 0\nprofile = \"idle\"\n{smoothing}"),
    ));
    let fields = "kmd_version,edpp_multiplier,bbx.time_run,gpu.base.min,power_smoothing.enabled,\
        power_smoothing.curr_profile.ramp_up_rate,power_smoothing.soc_power_smoothing_enabled";
    let query = format!("--query-gpu={fields}");
    let ask = || fake.gpumon_command(&["smi", &query, "--format=csv,noheader", "-i", "0"]);
    let expected = "610.57.04, 90.00 %, 7200 seconds, 400.00 W, Yes, 2.50 W/s, Enabled\n";
    assert_eq!(stdout_text(&ask().output().unwrap()), expected);
    let _server = Server::start_with_fake(&fake, &[]);
    wait_for_condition("the server answers without the driver", || {
        stdout_text(
            &ask()
                .env("GPUMON_NVML_LIB", "/nonexistent/lib.so")
                .output()
                .unwrap(),
        ) == expected
    });
}
