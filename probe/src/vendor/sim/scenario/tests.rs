use std::time::Duration;

use super::*;

fn read(text: &str) -> Scenario {
    Scenario::from_toml(text, "test.toml").unwrap()
}

#[track_caller]
fn assert_rejected(text: &str, at: &str, what: &str) {
    let error = Scenario::from_toml(text, "test.toml")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with(&format!("test.toml:{at}: ")) && error.contains(what),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn empty_scenario_has_one_gpu() {
    let scenario = read("");
    assert_eq!(scenario.gpu_count(), 1);
    assert_eq!(scenario.find_latency("nvmlInit_v2"), Duration::ZERO);
    assert_eq!(scenario.init_error_code(0.0), None);
}

#[test]
fn gpu_count_is_derived_from_highest_table_index() {
    assert_eq!(read("[[gpu]]\nindex = 4").gpu_count(), 5);
    assert_eq!(read("gpus = 0").gpu_count(), 0);
    assert_eq!(Scenario::with_gpus(8, 1).gpu_count(), 8);
    assert_eq!(Scenario::with_gpus(900, 1).gpu_count(), Scenario::MAX_GPUS);
}

#[test]
fn faults_start_and_end_at_their_times() {
    let scenario = read(
        "gpus = 3\ninit_error = { code = 18, to_s = 2 }\n\
         [[fault]]\ngpu = 1\nkind = \"lost\"\nfrom_s = 5\nto_s = 9\n\
         [[fault]]\ngpu = 2\nkind = \"hang\"\ncall = \"nvmlDeviceGetPowerUsage\"\n\
         [[fault]]\nkind = \"hang\"\ncall = \"nvmlShutdown\"",
    );
    assert_eq!(
        [4.9, 5.0, 8.9, 9.0].map(|seconds| scenario.is_lost(1, seconds)),
        [false, true, true, false]
    );
    assert!(!scenario.is_lost(0, 6.0));
    assert_eq!(
        [0.0, 2.0].map(|seconds| scenario.init_error_code(seconds)),
        [Some(18), None]
    );
    assert!(
        scenario
            .remaining_hang(Some(2), Some("nvmlDeviceGetPowerUsage"), 0.0)
            .is_some()
    );
    assert!(
        scenario
            .remaining_hang(Some(2), Some("nvmlDeviceGetName"), 0.0)
            .is_none()
    );
    assert!(
        scenario
            .remaining_hang(Some(0), Some("nvmlDeviceGetPowerUsage"), 0.0)
            .is_none()
    );
    assert!(
        scenario
            .remaining_hang(None, Some("nvmlShutdown"), 0.0)
            .is_some()
    );
}

#[test]
fn latency_has_default_and_per_function_values() {
    let scenario = read(
        "[latency]\ndefault = \"20 us\"\nnvmlInit_v2 = \"7.1 \
         ms\"\n[returns]\nnvmlDeviceGetFanSpeed = 3",
    );
    assert_eq!(
        scenario.find_latency("nvmlInit_v2"),
        Duration::from_micros(7_100)
    );
    assert_eq!(
        scenario.find_latency("nvmlShutdown"),
        Duration::from_micros(20)
    );
    assert_eq!(
        scenario.find_forced_return(Some(0), "nvmlDeviceGetFanSpeed", 0.0),
        Some(3)
    );
    assert_eq!(scenario.find_forced_return(None, "nvmlShutdown", 0.0), None);
}

#[test]
fn typo_is_rejected_with_position_and_suggestion() {
    assert_rejected(
        "seeed = 1",
        "1:1",
        "unknown key `seeed`; did you mean `seed`?",
    );
    assert_rejected(
        "[[gpu]]\nindex = 0\n  utilisation_percent = 5",
        "3:3",
        "unknown key `utilisation_percent`; did you mean `utilization_percent`?",
    );
    assert_rejected(
        "[[gpu]]\nindex = 0\nprofile = \"trainning\"",
        "3:11",
        "did you mean `training`?",
    );
    assert_rejected(
        "[[fault]]\ngpu = 0\nkind = \"explode\"",
        "3:8",
        "use one of lost, hang",
    );
    assert_rejected(
        "hidden = [\"nvmlDeviceGetPowerUsge\"]",
        "1:11",
        "did you mean `nvmlDeviceGetPowerUsage`?",
    );
    assert_rejected(
        "[latency]\nnvmlDeviceGetPowerUsge = \"1 ms\"",
        "2:1",
        "did you mean `nvmlDeviceGetPowerUsage`?",
    );
    assert_rejected("[returns]\nfan = 3", "2:1", "unknown NVML function `fan`");
}

#[test]
fn out_of_range_value_is_rejected_with_position() {
    assert_rejected("gpus = 65", "1:8", "use 0 to 64");
    assert_rejected("gpus = \"two\"", "1:8", "u32");
    assert_rejected("seed = 1\ngpus = ", "2:8", "");
    assert_rejected(
        "[[gpu]]\nindex = 0\nutilization_percent = 101",
        "3:23",
        "a number from 0 to 100",
    );
    assert_rejected(
        "[[gpu]]\nindex = 0\nutilization_percent = [[0, 5], [3, 101]]",
        "3:36",
        "a number from 0 to 100",
    );
    assert_rejected(
        "[[gpu]]\nindex = 0\nutilization_percent = [[5, 5], [3, 10]]",
        "3:23",
        "sort the key frames by time",
    );
    assert_rejected(
        "[[gpu]]\nindex = 0\nutilization_percent = []",
        "3:23",
        "at least one",
    );
    assert_rejected(
        "[[gpu]]\nindex = 0\nmemory = \"12 apples\"",
        "3:10",
        "\"12 GiB\"",
    );
    assert_rejected("[latency]\ndefault = \"5\"", "2:11", "\"2.8 ms\"");
    assert_rejected("[returns]\nnvmlShutdown = 0", "2:16", "999");
    assert_rejected("init_error = { code = 31 }", "1:23", "999");
}

#[test]
fn inconsistent_scenario_tables_are_rejected_with_position() {
    assert_rejected("[[gpu]]\nname = \"H200\"", "1:1", "`index` is missing");
    assert_rejected("gpus = 1\n[[gpu]]\nindex = 1", "3:9", "there is no GPU 1");
    assert_rejected("[[gpu]]\nindex = 64", "2:9", "0 to 63");
    assert_rejected(
        "[[gpu]]\nindex = 0\n[[gpu]]\nindex = 0",
        "4:9",
        "GPU 0 has two tables",
    );
    assert_rejected("[[process]]\ngpu = 1\npid = 4", "2:7", "there is no GPU 1");
    assert_rejected("[[fault]]\nkind = \"lost\"", "2:8", "`gpu = 0`");
    assert_rejected(
        "[[fault]]\nkind = \"hang\"",
        "2:8",
        "neither a GPU nor a call is specified; add `gpu = 0`, or `call = \"nvmlInit_v2\"`",
    );
    assert_rejected(
        "[[fault]]\ngpu = 0\nkind = \"hang\"\nfrom_s = 9\nto_s = 4",
        "5:8",
        "use a later end",
    );
}

#[test]
fn impossible_gpu_settings_are_rejected_with_position() {
    assert_rejected(
        "[[gpu]]\nindex = 0\nnvlinks = 19",
        "3:11",
        "a number from 0 to 18",
    );
    assert_rejected(
        "[[gpu]]\nindex = 0\nnvlinks = 2\nnvlinks_down = [1, 2]",
        "4:20",
        "raise `nvlinks` to at least 3",
    );
    assert_rejected(
        "[[gpu]]\nindex = 0\narchitecture = \"hoper\"",
        "3:16",
        "did you mean `hopper`?",
    );
    assert_rejected(
        "[[gpu]]\nindex = 0\nremapped_rows = { pendng = true }",
        "3:19",
        "did you mean `pending`?",
    );
    assert_rejected(
        "[[gpu]]\nindex = 0\nthrottle_reasons = [\"sw_power\"]",
        "3:20",
        "[[seconds, value], ...]",
    );
    assert_rejected(
        "[[gpu]]\nindex = 0\nrecovery_action = [[9, \"none\"], [3, \"none\"]]",
        "3:19",
        "sort the key frames by time",
    );
    assert_rejected(
        "[[process]]\ngpu = 0\npid = 4\ncount = 0",
        "4:9",
        "use 1 to 10000",
    );
    assert_rejected(
        "[[process]]\ngpu = 0\npid = 4\nlifetime_s = 0",
        "4:14",
        "use more than 0",
    );
    assert_rejected(
        "[[accounted]]\ngpu = 0\npid = 4\nran_s = 1",
        "2:7",
        "add `accounting = true`",
    );
    assert_rejected(
        "[[gpu]]\nindex = 0\nfrom_s = 9\nto_s = 4",
        "4:8",
        "use a later end",
    );
    assert_rejected(
        "[[process]]\ngpu = 0\npid = 4\nencoder_sessions = [{ fps = 2000 }]",
        "4:29",
        "1000",
    );
}

#[test]
fn missing_and_extra_fault_keys_are_rejected() {
    assert_rejected(
        "[[fault]]\nkind = \"crash\"\ngpu = 0",
        "2:8",
        "no call is specified; add the one that crashes",
    );
    assert_rejected(
        "[[fault]]\nkind = \"returns\"\ncode = 3",
        "2:8",
        "neither a GPU nor a call is specified; add `gpu = 0`, or `call = \"nvmlDeviceGetName\"`",
    );
    assert_rejected(
        "[[fault]]\nkind = \"returns\"\ngpu = 0",
        "2:8",
        "`code = 999`",
    );
    assert_rejected(
        "[[fault]]\nkind = \"returns\"\ncall = \"nvmlShutdown\"",
        "2:8",
        "`code = 999`",
    );
    assert_rejected("[[fault]]\nkind = \"clock_skew\"", "2:8", "`by_s = -5`");
    assert_rejected(
        "[[fault]]\nkind = \"clock_skew\"\nby_s = 90000",
        "3:8",
        "-86400 to 86400",
    );
    assert_rejected(
        "[[fault]]\nkind = \"garbage\"\ncall = \"nvmlShutdown\"",
        "3:8",
        "remove `call`",
    );
    assert_rejected(
        "[[fault]]\nkind = \"mismatch\"\ngpu = 0",
        "3:7",
        "remove `gpu`",
    );
    assert_rejected(
        "[[fault]]\nkind = \"backwards\"\ncode = 3",
        "3:8",
        "remove `code`",
    );
    assert_rejected(
        "[[fault]]\nkind = \"backwards\"\nby_s = 3",
        "3:8",
        "remove `by_s`",
    );
}

#[test]
fn faults_affect_only_their_gpu_and_time() {
    let scenario = read(
        "gpus = 2\n[[fault]]\nkind = \"mismatch\"\nfrom_s = 5\n[[fault]]\nkind = \"garbage\"\ngpu \
         = 1\n[[fault]]\nkind = \"backwards\"\ngpu = 0\nfrom_s = 10\nto_s = 20\n[[fault]]\nkind = \
         \"clock_skew\"\ngpu = 1\nby_s = -2.5",
    );
    assert_eq!(
        [4.0, 5.0].map(|seconds| scenario.has_version_mismatch(seconds)),
        [false, true]
    );
    assert_eq!(
        [0, 1].map(|gpu| scenario.returns_garbage(gpu, 0.0)),
        [false, true]
    );
    let percent_left = [9.0, 10.0, 11.0, 20.0]
        .map(|seconds| (scenario.counter_factor(0, seconds) * 100.0).round() as u32);
    assert_eq!(percent_left, [100, 90, 45, 100]);
    assert_eq!(
        [0, 1].map(|gpu| (scenario.driver_clock_skew_s(gpu, 0.0) * 10.0) as i32),
        [0, -25]
    );
}

#[test]
fn invalid_events_and_mig_devices_are_rejected() {
    assert_rejected(
        "[[event]]\ngpu = 0\nat_s = 1\nkind = \"xid\"",
        "4:8",
        "the Xid has no code",
    );
    assert_rejected(
        "[[event]]\ngpu = 0\nat_s = 1\nkind = \"mig\"\npid = 4",
        "5:7",
        "only valid with kind = \"xid\"",
    );
    assert_rejected(
        "[[event]]\ngpu = 3\nat_s = 1\nkind = \"mig\"",
        "2:7",
        "there is no GPU 3",
    );
    let mig = |devices: &str, what| {
        assert_rejected(&format!("[[gpu]]\nindex = 0\nmig = {devices}"), "3:7", what);
    };
    mig(
        "[{ profile = \"1g\", gpu_instance = 0 }]",
        "[[seconds, value], ...]",
    );
    mig(
        "[{ profile = \"4g.71gb\", gpu_instance = 1 }, { profile = \"4g.71gb\", gpu_instance = 2 \
         }]",
        "8 slices in total",
    );
    mig(
        "[{ profile = \"1g.18gb\", gpu_instance = 1 }, { profile = \"1g.18gb\", gpu_instance = 1 \
         }]",
        "instance 1/0 is used twice",
    );
    mig("[{ profile = \"1g.18gb\", gpu_instance = 15 }]", "0 to 14");
    mig(
        "[{ profile = \"3g.71gb\", gpu_instance = 1 }, { profile = \"3g.71gb\", gpu_instance = 1, \
         compute_instance = 1 }]",
        "have 6 slices in total, but the GPU instance has only 3; give compute instances that \
         share a GPU instance a profile such as 1c.3g.71gb",
    );
    mig(
        "[{ profile = \"1c.3g.71gb\", gpu_instance = 1 }, \
         { profile = \"1c.2g.35gb\", gpu_instance = 1, compute_instance = 1 }]",
        "cannot be both 3g.71gb and 2g.35gb",
    );
    mig(
        "[{ profile = \"3c.3g.71gb\", gpu_instance = 1 }]",
        "[[seconds, value], ...]",
    );
    let ada = "[[gpu]]\nindex = 0\narchitecture = \"ada\"\nmig = [{ profile = \"1g.18gb\", \
               gpu_instance = 1 }]";
    assert_rejected(ada, "4:7", "does not support MIG");
    assert_rejected(
        "[[process]]\ngpu = 0\npid = 4\ngpu_instance = 3",
        "4:16",
        "no GPU instance 3",
    );
}
