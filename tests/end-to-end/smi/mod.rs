//! The output of gpumon's nvidia-smi commands for many kinds of boards.

mod captures;
mod ecc;
mod hand_over;
mod releases;
mod snapshots;

use std::{
    io::{BufRead as _, BufReader},
    os::unix::fs::symlink,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::support::{FakeNvml, Server, send_signal, stderr_text, stdout_text};

/// The command lines for every machine.
const ALL_COMMANDS: &[&str] = &[
    "",
    "-L",
    "--version",
    "-q",
    "-q -x",
    "-q -d MEMORY,ECC,TEMPERATURE,PIDS,ACCOUNTING,PAGE_RETIREMENT,ROW_REMAPPER",
    "--query-gpu=EVERY --format=csv",
    "--query-compute-apps=EVERY --format=csv",
    "--query-accounted-apps=EVERY --format=csv",
    "--query-retired-pages=EVERY --format=csv",
    "--query-remapped-rows=EVERY --format=csv",
    "dmon -c 1 -s pucvmet",
    "pmon -c 1 -s um",
    "topo -p2p n",
    "nvlink -s",
    "nvlink -e",
];

/// The command lines for machines whose complete output would be too long.
const SHORT_COMMANDS: &[&str] = &[
    "",
    "-L",
    "-q -i 7",
    "--query-gpu=EVERY --format=csv",
    "--query-gpu=index,name,memory.used,power.draw --format=csv,noheader,nounits",
    "--query-compute-apps=EVERY --format=csv",
    "dmon -c 1 -s pucvmet",
    "pmon -c 1 -s um",
    "topo -m",
    "topo -mp",
    "topo -p2p n",
    "topo -n 4 -i 7",
    "nvlink -s -i 7",
];

/// The sections of `-q` and the counters of links. Sections about clocks, power and utilization
/// include statistics of the last seconds.
const SECTION_COMMANDS: &[&str] = &[
    "-q -d MEMORY",
    "-q -d UTILIZATION",
    "-q -d ECC",
    "-q -d TEMPERATURE",
    "-q -d POWER",
    "-q -d CLOCK",
    "-q -d COMPUTE",
    "-q -d PIDS",
    "-q -d PERFORMANCE",
    "-q -d PAGE_RETIREMENT",
    "-q -d ACCOUNTING",
    "-q -d ENCODER_STATS",
    "-q -d SUPPORTED_GPU_TARGET_TEMP",
    "-q -d VOLTAGE",
    "-q -d FBC_STATS",
    "-q -d ROW_REMAPPER",
    "-q -d GSP_FIRMWARE_VERSION",
    "-q -d POWER_SMOOTHING",
    "-q -d POWER_PROFILES",
    "-q -d CLOCK,POWER",
    "nvlink -gt d",
    "nvlink -gt r -l 2",
];

/// Connections of GPUs, counters of GPM, and command lines that other programs use.
const MORE_COMMANDS: &[&str] = &[
    "topo -m",
    "topo -mp",
    "topo -c 0",
    "topo -p -i 0,1",
    "topo -n 4 -i 0",
    "topo -p2p r",
    "dmon -c 2 --gpm-metrics 1,2,3,5,10,13",
    "dmon -c 1 -s p --gpm-metrics 20,21,60,61,62,166",
    "dmon -c 1 -s m --gpm-metrics 1 --gpm-options dm",
    "dmon -c 1 -s pu --format csv,nounit",
    "nvlink -c -l 0",
    "nvlink -p",
    "nvlink -R",
    "--query-gpu=EVERY --format=csv,noheader,nounits",
    "--query-gpu=index,name,memory.used,power.draw --format=csv,noheader",
];

/// The values of a GPU that do not change over time.
const CONSTANT_GPU: &str = "utilization_percent = 96\nsm_percent = 93\ntensor_percent = \
                            40\nmemory_used = \"61 GiB\"\npower_watts = 612\ntemperature_celsius = \
                            64\nencoder_percent = 5\ndecoder_percent = 6\njpeg_percent = \
                            7\nofa_percent = 8\nthrottle_reasons = [\"sw_power_cap\"]\npcie_width \
                            = 16\n";

fn machine_scenario(gpus: &[&str], rest: &str) -> String {
    let table =
        |(index, keys): (usize, &&str)| format!("[[gpu]]\nindex = {index}\n{CONSTANT_GPU}{keys}\n");
    let tables: Vec<String> = gpus.iter().enumerate().map(table).collect();
    format!("gpus = {}\nseed = 7\n{}{rest}", gpus.len(), tables.concat())
}

/// Returns a process whose PID does not exist, so that its name is the same on every machine.
fn process_scenario(gpu: u32, keys: &str) -> String {
    format!(
        "[[process]]\ngpu = {gpu}\npid = 4194303\nmemory = \"4.5 GiB\"\nsm_percent = 90\n{keys}\n"
    )
}

fn one_gpu_scenario() -> String {
    machine_scenario(&["name = \"NVIDIA H200\""], &process_scenario(0, ""))
}

/// Returns a scenario with two GPUs. One of the second GPU's links is down.
fn two_gpu_scenario() -> String {
    machine_scenario(
        &["nvlinks = 18", "nvlinks = 18\nnvlinks_down = [3]"],
        &process_scenario(1, "mps = true"),
    )
}

fn mig_scenario() -> String {
    let mig = "mig = [{ profile = \"3g.71gb\", gpu_instance = 2 }, { profile = \"1g.18gb\", \
               gpu_instance = 7 }]";
    machine_scenario(&[mig, ""], &process_scenario(0, "gpu_instance = 2"))
}

fn lost_gpu_scenario() -> String {
    machine_scenario(&["", ""], "[[fault]]\ngpu = 1\nkind = \"lost\"\n")
}

/// Returns a scenario with a board that has fans, but no ECC and no NVLink.
fn geforce_scenario() -> String {
    let geforce = "name = \"NVIDIA GeForce RTX 4090\"\narchitecture = \"ada\"\nfans = 2\nmemory = \
                   \"24564 MiB\"\nmemory_used = \"3 GiB\"\npower_limit_watts = 450\npower_watts = \
                   220\npersistence = false\n";
    let machine = machine_scenario(&[], "");
    let still = CONSTANT_GPU
        .replace("memory_used = \"61 GiB\"\n", "")
        .replace("power_watts = 612\n", "");
    format!(
        "{}[[gpu]]\nindex = 0\n{still}{geforce}{}",
        machine.replace("gpus = 0", "gpus = 1"),
        process_scenario(0, "kind = \"graphics\"")
    )
}

#[test]
fn one_gpu_matches_snapshot() {
    let forms = [
        ALL_COMMANDS,
        &[
            "--query-supported-clocks=memory,graphics --format=csv",
            "topo -n 5 -i 0",
        ],
    ]
    .concat();
    snapshots::check_snapshot("one", &one_gpu_scenario(), &forms);
}

#[test]
fn two_gpus_match_snapshot() {
    snapshots::check_snapshot("two", &two_gpu_scenario(), ALL_COMMANDS);
}

#[test]
fn eight_gpus_match_snapshot() {
    snapshots::check_snapshot(
        "eight",
        &machine_scenario(&["nvlinks = 18"; 8], ""),
        SHORT_COMMANDS,
    );
}

#[test]
fn mig_gpu_matches_snapshot() {
    snapshots::check_snapshot("mig", &mig_scenario(), ALL_COMMANDS);
}

#[test]
fn lost_gpu_matches_snapshot() {
    snapshots::check_snapshot("lost", &lost_gpu_scenario(), ALL_COMMANDS);
}

#[test]
fn geforce_board_matches_snapshot() {
    snapshots::check_snapshot("geforce", &geforce_scenario(), ALL_COMMANDS);
}

#[test]
fn old_board_matches_snapshot() {
    let pascal = "name = \"Tesla P100-PCIE-16GB\"\narchitecture = \"pascal\"\naccounting = \
                  true\nretired_pages = { single_bit = 2, double_bit = 1, pending = true \
                  }\necc_corrected = 5\necc_uncorrected = 1\n";
    snapshots::check_snapshot(
        "pascal",
        &machine_scenario(&[pascal], &process_scenario(0, "")),
        ALL_COMMANDS,
    );
}

#[test]
fn nvlink_info_matches_snapshot() {
    let scenario = "seed = 7\n[[gpu]]\nindex = 0\nnvlinks = 18\n[[gpu]]\nindex = 1\nmig = [\
        { profile = \"1c.3g.71gb\", gpu_instance = 1 }, \
        { profile = \"1c.3g.71gb\", gpu_instance = 1, compute_instance = 1 }, \
        { profile = \"1g.18gb\", gpu_instance = 7 }]\n\
        [[gpu]]\nindex = 2\nname = \"NVIDIA GeForce RTX 4090\"\narchitecture = \"ada\"\n";
    snapshots::check_snapshot("nvlink-info", scenario, &["nvlink -info"]);
}

#[test]
fn each_section_matches_snapshot() {
    snapshots::check_snapshot_after_two_minutes(
        "one-sections",
        &one_gpu_scenario(),
        &[SECTION_COMMANDS, &["-q -d SUPPORTED_CLOCKS"]].concat(),
    );
    snapshots::check_snapshot_after_two_minutes(
        "two-sections",
        &two_gpu_scenario(),
        SECTION_COMMANDS,
    );
    let some = [
        "-q -d MEMORY,UTILIZATION,CLOCK -i 3,7",
        "-q -d POWER -i 5",
        "nvlink -gt d -i 6 -l 17",
    ];
    snapshots::check_snapshot_after_two_minutes(
        "eight-sections",
        &machine_scenario(&["nvlinks = 18"; 8], ""),
        &some,
    );
}

#[test]
fn sections_of_limited_boards_match_snapshot() {
    snapshots::check_snapshot_after_two_minutes("mig-sections", &mig_scenario(), SECTION_COMMANDS);
    snapshots::check_snapshot_after_two_minutes(
        "geforce-sections",
        &geforce_scenario(),
        SECTION_COMMANDS,
    );
    snapshots::check_snapshot_after_two_minutes(
        "lost-sections",
        &lost_gpu_scenario(),
        &["-q -d UTILIZATION,PIDS", "-q -d POWER -i 1"],
    );
}

#[test]
fn topology_and_program_queries_match_snapshot() {
    snapshots::check_snapshot("one-more", &one_gpu_scenario(), MORE_COMMANDS);
    let clocks = "--query-supported-clocks=gpu_bus_id,memory,graphics --format=csv,nounits";
    snapshots::check_snapshot(
        "two-more",
        &two_gpu_scenario(),
        &[MORE_COMMANDS, &[clocks]].concat(),
    );
    snapshots::check_snapshot("mig-more", &mig_scenario(), MORE_COMMANDS);
    snapshots::check_snapshot("geforce-more", &geforce_scenario(), MORE_COMMANDS);
    snapshots::check_snapshot("lost-more", &lost_gpu_scenario(), MORE_COMMANDS);
}

#[test]
fn smi_output_through_server_matches_driver_output() {
    // These processes exist on this machine: the server's records only contain PIDs, so gpumon
    // looks up the names itself.
    let really = |gpu, pid: u32| process_scenario(gpu, "").replace("4194303", &pid.to_string());
    let (own, parent) = (std::process::id(), std::os::unix::process::parent_id());
    // The driver lists this process last, although its PID is the lowest.
    let last = really(0, own.min(parent)) + "from_s = 0\n";
    let processes = [last, really(0, own.max(parent)), really(1, own)].concat();
    let scenario = machine_scenario(&["nvlinks = 18", "fans = 1\naccounting = true"], &processes);
    // Throttling times grow as long as there is a throttle reason. The reason in the scenario is
    // removed, so that the times stay the same in both outputs.
    let scenario = scenario.replace("[\"sw_power_cap\"]", "[]");
    let fake = FakeNvml::new(&scenario);
    let forms = [
        "",
        "-L",
        "-q",
        "-q -x",
        "--query-gpu=EVERY --format=csv",
        "--query-compute-apps=EVERY --format=csv",
    ];
    let alone = snapshots::collect_output(&fake, &forms);
    let (_, compute_apps) = alone.split_once("--query-compute-apps").unwrap();
    let listed = |pid: u32| compute_apps.find(&format!(", {pid}, ")).unwrap();
    assert!(
        listed(own.max(parent)) < listed(own.min(parent)),
        "processes must be in the order of the driver: {compute_apps}"
    );
    let row = |pid: u32| {
        alone
            .find(&format!("|    0   N/A  N/A {pid:>15} "))
            .unwrap()
    };
    assert!(
        row(own.min(parent)) < row(own.max(parent)),
        "processes must be in the order of their PIDs: {alone}"
    );
    let _server = Server::start_with_fake(&fake, &[]);
    // Some values are not part of the model. The server only reads them with its second sample.
    crate::support::wait_for_condition("the server has all records", || {
        snapshots::server_has_all_records(&fake)
    });
    snapshots::assert_same_lines(&alone, &snapshots::collect_output(&fake, &forms));
}

#[test]
fn hanging_gpu_with_server_shows_no_old_values() {
    let hang = "[[fault]]\nkind = \"hang\"\ngpu = 1\nfrom_s = 5\n";
    let fake = FakeNvml::new(&machine_scenario(
        &["name = \"NVIDIA H200\"", "name = \"NVIDIA H100\""],
        hang,
    ));
    let _server = Server::start_with_fake(&fake, &[]);
    let query = ["--query-gpu=name,utilization.gpu", "--format=csv,noheader"];
    crate::support::wait_for_condition("the second GPU hangs", || {
        stdout_text(&fake.gpumon_command(&query).output().unwrap())
            == "NVIDIA H200, 96 %\nNVIDIA H100, [Unknown Error]\n"
    });
    let all = stdout_text(&fake.gpumon_command(&["-q"]).output().unwrap());
    assert!(
        all.contains("NVIDIA H100") && all.contains("Unknown Error"),
        "{all}"
    );
    assert!(stdout_text(&fake.gpumon_command(&["smi"]).output().unwrap()).contains("NVIDIA H100"));
    // Commands that read the driver themselves leave out the GPU that does not answer.
    for words in [
        &["dmon", "-c", "1"][..],
        &["pmon", "-c", "1"],
        &["topo", "-m"],
    ] {
        let output = fake.gpumon_command(words).output().unwrap();
        assert!(
            output.status.success() && stdout_text(&output).lines().count() > 3,
            "{words:?}: {}",
            stdout_text(&output)
        );
    }
}

#[test]
fn hanging_gpu_without_server_does_not_delay_commands() {
    let hang = |call: &str| {
        let hang = "[[fault]]\nkind = \"hang\"\ngpu = 1\n".to_owned() + call;
        FakeNvml::new(&machine_scenario(
            &["name = \"NVIDIA H200\"", "name = \"NVIDIA H100\""],
            &hang,
        ))
    };
    let in_time = |fake: &FakeNvml, words: &[&str]| {
        let begun = Instant::now();
        let output = fake.gpumon_command(words).output().unwrap();
        // The command takes two seconds on an idle machine.
        assert!(
            begun.elapsed() < Duration::from_secs(8),
            "{words:?} took {:?}",
            begun.elapsed()
        );
        assert!(
            output.status.success(),
            "{words:?}: {}",
            stderr_text(&output)
        );
        (stdout_text(&output), stderr_text(&output))
    };
    let from_the_start = hang("");
    for words in ["smi", "-L", "-q", "--query-gpu=name --format=csv"] {
        let (shown, said) = in_time(&from_the_start, &words.split(' ').collect::<Vec<_>>());
        assert!(
            shown.contains("NVIDIA H200") && !shown.contains("NVIDIA H100"),
            "{shown}"
        );
        assert!(
            said.contains("device handle for GPU1: Unknown Error"),
            "{said}"
        );
    }
    for words in ["dmon -c 2", "pmon -c 1", "topo -m"] {
        let (shown, _) = in_time(&from_the_start, &words.split(' ').collect::<Vec<_>>());
        assert!(shown.lines().count() > 3, "{words:?}: {shown}");
    }
    let in_one_call = hang("call = \"nvmlDeviceGetPowerUsage\"\n");
    let (shown, _) = in_time(
        &in_one_call,
        &[
            "--query-gpu=name,power.draw.instant",
            "--format=csv,noheader",
        ],
    );
    assert!(shown.contains("NVIDIA H100, "), "{shown}");
}

#[test]
fn process_name_cannot_control_terminal() {
    let fake = FakeNvml::new("[[gpu]]\nindex = 0\nname = \"NV\\u001b]0;x\\u0007\\nIDIA\\u202e\"\n");
    for words in [
        &["smi"][..],
        &["-L"],
        &["-q"],
        &["-q", "-x"],
        &["--query-gpu=name", "--format=csv"],
    ] {
        let shown = stdout_text(&fake.gpumon_command(words).output().unwrap());
        assert!(shown.contains("NV ]0;x  IDIA?"), "{words:?}: {shown}");
        assert!(
            !shown.contains(|letter: char| letter.is_control() && !"\n\t".contains(letter)),
            "{words:?}: {shown:?}"
        );
    }
}

#[test]
fn gpumon_options_are_accepted_before_smi_options() {
    let fake = FakeNvml::new("gpus = 1");
    let shown = |words: &[&str]| stdout_text(&fake.gpumon_command(words).output().unwrap());
    assert_eq!(shown(&["--source", "sim:2", "-L"]).lines().count(), 2);
    let simulated = fake
        .gpumon_command(&["--source", "sim:1", "-q"])
        .output()
        .unwrap();
    assert_eq!(
        stderr_text(&simulated),
        "gpumon: these GPUs are simulated\n"
    );
    assert_eq!(
        shown(&[
            "--source=sim:2",
            "--query-gpu=index",
            "--format=csv,noheader"
        ]),
        "0\n1\n"
    );
    let refused = fake
        .gpumon_command(&["--source", "sim:0", "-L"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr_text(&refused).contains("64"),
        "{}",
        stderr_text(&refused)
    );
}

#[test]
fn link_named_nvidia_smi_behaves_like_smi_command() {
    let fake = FakeNvml::new("gpus = 2");
    let link = fake.path("nvidia-smi");
    symlink(env!("CARGO_BIN_EXE_gpumon"), &link).unwrap();
    let by_name = |words: &[&str]| {
        let like = fake.gpumon_command(words);
        let mut command = Command::new(&link);
        command.args(words).envs(
            like.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        stdout_text(&command.output().unwrap())
    };
    let passed_through =
        |words: &[&str]| stdout_text(&fake.gpumon_command(words).output().unwrap());
    for words in [
        &["-L"][..],
        &["--query-gpu=name,uuid", "--format=csv"],
        &["-q", "-d", "COMPUTE"],
        &["topo", "-m"],
        &["--help-query-gpu"],
    ] {
        let behind: Vec<&str> = ["smi"].iter().chain(words).copied().collect();
        let expected = stdout_text(&fake.gpumon_command(&behind).output().unwrap());
        assert!(!expected.is_empty(), "{words:?}");
        for other in [by_name(words), passed_through(words)] {
            assert_eq!(
                snapshots::mask_times(&other),
                snapshots::mask_times(&expected),
                "{words:?}"
            );
        }
    }
    assert!(
        by_name(&[]).contains("| NVIDIA-SMI "),
        "without arguments, the link must print the summary"
    );
}

#[test]
fn options_that_change_gpus_are_refused() {
    let fake = FakeNvml::new("gpus = 1");
    for words in [
        &["-pm", "1"][..],
        &["-pl", "300"],
        &["-i", "0", "-lgc", "1500,1500"],
        &["-r"],
        &["--gpu-reset", "-i", "0"],
        &["-mig", "1"],
        &["mig", "-cgi", "9"],
        &["nvlink", "-re"],
        &["drain", "-p", "0000:01:00.0", "-m", "1"],
    ] {
        let output = fake
            .gpumon_command(&[&["smi"], words].concat())
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(3),
            "{words:?}: {}",
            stdout_text(&output)
        );
        assert_eq!(
            stdout_text(&output).trim_end().lines().count(),
            1,
            "{}",
            stdout_text(&output)
        );
        assert!(
            stdout_text(&output).contains("nvidia-smi"),
            "{}",
            stdout_text(&output)
        );
    }
}

#[test]
fn unsupported_options_are_refused_with_reason() {
    let fake = FakeNvml::new("gpus = 2");
    for (words, option) in [
        (&["smi", "-col", "2"][..], "-col"),
        (&["smi", "--columns=2"], "--columns"),
        (&["-col", "2"], "-col"),
        (&["smi", "--debug=/tmp/log"], "--debug"),
        (&["-q", "-u"], "-u"),
        (&["smi", "mig", "-lgi"], "mig"),
        (&["mig", "-lgi"], "mig"),
    ] {
        let output = fake.gpumon_command(words).output().unwrap();
        let text = format!(
            "gpumon: '{option}' is not part of gpumon; use NVIDIA's own nvidia-smi for it\n"
        );
        assert_eq!(
            (output.status.code(), stdout_text(&output)),
            (Some(3), text),
            "{words:?}"
        );
    }
}

#[test]
fn error_on_warning_option_changes_exit_code() {
    let fake = FakeNvml::new("gpus = 2\n[[fault]]\ngpu = 1\nkind = \"lost\"\n");
    let code = |words: &[&str]| fake.gpumon_command(words).output().unwrap().status.code();
    let query = ["smi", "--query-gpu=index", "--format=csv,noheader"];
    assert_eq!(
        (code(&["smi"]), code(&["smi", "-eow"])),
        (Some(0), Some(15))
    );
    assert_eq!(
        (
            code(&query),
            code(&[&query[..], &["--error-on-warning"]].concat())
        ),
        (Some(0), Some(15))
    );
    let output = fake
        .gpumon_command(&["smi", "-i", "0", "-q", "-eow"])
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "this GPU has no warnings: {}",
        stderr_text(&output)
    );
    assert_eq!(code(&["smi", "-pm", "1", "-eow"]), Some(3));
}

#[test]
fn loop_runs_until_interrupted_and_writes_file() {
    let fake = FakeNvml::new("gpus = 1");
    let file = fake.path("log.csv");
    let words = [
        "smi",
        "--query-gpu=index,name",
        "--format=csv",
        "-lms",
        "50",
        "-f",
        file.to_str().unwrap(),
    ];
    let mut looping = fake
        .gpumon_command(&words)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = || {
        std::fs::read_to_string(&file)
            .unwrap_or_default()
            .lines()
            .count()
    };
    crate::support::wait_for_condition("several rounds were written", || lines() > 4);
    send_signal("-INT", looping.id());
    assert_eq!(looping.wait().unwrap().code(), Some(0));
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(
        text.matches("index, name").count(),
        1,
        "the header is only written once: {text}"
    );
}

#[test]
fn refused_command_leaves_log_file_unchanged() {
    let fake = FakeNvml::new("gpus = 1");
    let file = fake.path("log.csv");
    std::fs::write(&file, "yesterday\n").unwrap();
    for words in [
        &["--query-gpu=nonsense"][..],
        &["--query-gpu=index", "-i", "9"],
    ] {
        let words = [
            &["smi", "--format=csv", "-f", file.to_str().unwrap()],
            words,
        ]
        .concat();
        let output = fake.gpumon_command(&words).output().unwrap();
        assert!(!output.status.success(), "{}", stdout_text(&output));
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            "yesterday\n",
            "{words:?}"
        );
    }
}

#[test]
fn closed_pipe_is_not_a_failure() {
    let fake = FakeNvml::new("gpus = 1");
    let mut looping = fake
        .gpumon_command(&["smi", "-lms", "20"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(looping.stdout.take());
    thread::sleep(Duration::from_millis(50));
    assert_eq!(looping.wait().unwrap().code(), Some(0));
}

#[test]
fn missing_driver_messages_match_nvidia_smi() {
    let none = crate::support::gpumon_command(&["smi"])
        .env("GPUMON_NVML_LIB", "/nonexistent/lib.so")
        .output()
        .unwrap();
    assert_eq!(
        none.status.code(),
        Some(12),
        "{}{}",
        stdout_text(&none),
        stderr_text(&none)
    );
    assert!(
        stdout_text(&none).starts_with("NVIDIA-SMI couldn't find libnvidia-ml.so library"),
        "{}",
        stdout_text(&none)
    );
    for (code, text) in [
        (
            9,
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        ),
        (
            18,
            "Failed to initialize NVML: Driver/library version mismatch\n",
        ),
        (4, "Failed to initialize NVML: Insufficient Permissions\n"),
    ] {
        let fake = FakeNvml::new(&format!("gpus = 1\ninit_error = {{ code = {code} }}"));
        let output = fake.gpumon_command(&["smi", "-L"]).output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        assert!(
            stdout_text(&output).starts_with(text),
            "{}",
            stdout_text(&output)
        );
    }
    let fake = FakeNvml::new("gpus = 0");
    let output = fake.gpumon_command(&["smi"]).output().unwrap();
    assert_eq!(
        (output.status.code(), stdout_text(&output).as_str()),
        (Some(6), "No devices were found\n")
    );
}

#[test]
fn repeated_gpu_lists_are_refused() {
    let fake = FakeNvml::new("gpus = 2");
    for (ids, code) in [(["0", "1"], 255), (["0", "9"], 6)] {
        let output = fake
            .gpumon_command(&["smi", "-i", ids[0], "-i", ids[1]])
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{ids:?}: {}",
            stdout_text(&output)
        );
    }
}

#[test]
fn negative_count_of_rounds_runs_until_sigint() {
    let fake = FakeNvml::new("gpus = 1");
    for monitor in ["dmon", "pmon"] {
        for count in ["-1", "-5"] {
            let mut command = fake.gpumon_command(&["smi", monitor, "-c", count]);
            let mut child = command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            // The output has two lines of headings and three rounds.
            let first: Vec<_> = lines.take(5).map(Result::unwrap).collect();
            assert_eq!(
                first.iter().filter(|line| !line.starts_with('#')).count(),
                3,
                "{monitor} {count}: {first:?}"
            );
            send_signal("-INT", child.id());
            child.wait().unwrap();
        }
        for count in ["0", "abc", "2x", ""] {
            let output = fake
                .gpumon_command(&["smi", monitor, "-c", count])
                .output()
                .unwrap();
            let text = stdout_text(&output);
            assert!(
                text.starts_with("Invalid value for number of samples to be displayed\n"),
                "{monitor} {count:?}: {text}"
            );
        }
    }
}

#[test]
fn log_file_that_cannot_be_created_is_named() {
    let fake = FakeNvml::new("gpus = 1");
    // These are the exact messages of nvidia-smi 580.
    for (form, expected) in [
        (
            "-f /nonexistent/x",
            "Failed to create the log file /nonexistent/x\n\n",
        ),
        (
            "-q -f /nonexistent/x",
            "Failed to create the log file /nonexistent/x\n\n",
        ),
        (
            "--query-gpu=name --format=csv -f /nonexistent/x",
            "Failed to create log file /nonexistent/x\n\n",
        ),
        (
            "dmon -c 1 -f /nonexistent/x",
            "Failed to process command line \n\n",
        ),
        (
            "pmon -c 1 -f /nonexistent/x",
            "Failed to process command line \n\n",
        ),
    ] {
        let words: Vec<&str> = ["smi"].into_iter().chain(form.split(' ')).collect();
        let output = fake.gpumon_command(&words).output().unwrap();
        assert_eq!(
            (output.status.code(), &*stdout_text(&output)),
            (Some(255), expected),
            "{form}"
        );
    }
}
