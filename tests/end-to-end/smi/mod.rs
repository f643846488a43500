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

use crate::support::{Fake, Server, signal, stderr, stdout};

/// The command lines for every machine.
const FORMS: &[&str] = &[
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
const SHORT_FORMS: &[&str] = &[
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
const SECTIONS: &[&str] = &[
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
const MORE: &[&str] = &[
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
const STILL: &str = "utilization_percent = 96\nsm_percent = 93\ntensor_percent = 40\nmemory_used = \"61 GiB\"\n\
    power_watts = 612\ntemperature_celsius = 64\nencoder_percent = 5\ndecoder_percent = 6\njpeg_percent = 7\n\
    ofa_percent = 8\nthrottle_reasons = [\"sw_power_cap\"]\npcie_width = 16\n";

fn machine(gpus: &[&str], rest: &str) -> String {
    let table =
        |(index, keys): (usize, &&str)| format!("[[gpu]]\nindex = {index}\n{STILL}{keys}\n");
    let tables: Vec<String> = gpus.iter().enumerate().map(table).collect();
    format!("gpus = {}\nseed = 7\n{}{rest}", gpus.len(), tables.concat())
}

/// Returns a process whose PID does not exist, so that its name is the same on every machine.
fn process(gpu: u32, keys: &str) -> String {
    format!(
        "[[process]]\ngpu = {gpu}\npid = 4194303\nmemory = \"4.5 GiB\"\nsm_percent = 90\n{keys}\n"
    )
}

fn one() -> String {
    machine(&["name = \"NVIDIA H200\""], &process(0, ""))
}

/// One of the second GPU's links is down.
fn two() -> String {
    machine(
        &["nvlinks = 18", "nvlinks = 18\nnvlinks_down = [3]"],
        &process(1, "mps = true"),
    )
}

fn divided() -> String {
    let mig = "mig = [{ profile = \"3g.71gb\", gpu_instance = 2 }, { profile = \"1g.18gb\", gpu_instance = 7 }]";
    machine(&[mig, ""], &process(0, "gpu_instance = 2"))
}

fn lost() -> String {
    machine(&["", ""], "[[fault]]\ngpu = 1\nkind = \"lost\"\n")
}

/// A board without ECC and NVLink, but with fans.
fn geforce() -> String {
    let geforce = "name = \"NVIDIA GeForce RTX 4090\"\narchitecture = \"ada\"\nfans = 2\nmemory = \"24564 MiB\"\n\
        memory_used = \"3 GiB\"\npower_limit_watts = 450\npower_watts = 220\npersistence = false\n";
    let machine = machine(&[], "");
    let still = STILL
        .replace("memory_used = \"61 GiB\"\n", "")
        .replace("power_watts = 612\n", "");
    format!(
        "{}[[gpu]]\nindex = 0\n{still}{geforce}{}",
        machine.replace("gpus = 0", "gpus = 1"),
        process(0, "kind = \"graphics\"")
    )
}

#[test]
fn one_gpu() {
    let forms = [
        FORMS,
        &[
            "--query-supported-clocks=memory,graphics --format=csv",
            "topo -n 5 -i 0",
        ],
    ]
    .concat();
    snapshots::check("one", &one(), &forms);
}

#[test]
fn two_gpus() {
    snapshots::check("two", &two(), FORMS);
}

#[test]
fn eight_gpus() {
    snapshots::check("eight", &machine(&["nvlinks = 18"; 8], ""), SHORT_FORMS);
}

#[test]
fn a_divided_gpu() {
    snapshots::check("mig", &divided(), FORMS);
}

#[test]
fn a_lost_gpu_beside_another() {
    snapshots::check("lost", &lost(), FORMS);
}

#[test]
fn a_board_without_ecc_and_nvlink_but_with_fans() {
    snapshots::check("geforce", &geforce(), FORMS);
}

#[test]
fn an_old_board_with_retired_pages_and_accounting() {
    let pascal = "name = \"Tesla P100-PCIE-16GB\"\narchitecture = \"pascal\"\naccounting = true\n\
        retired_pages = { single_bit = 2, double_bit = 1, pending = true }\necc_corrected = 5\necc_uncorrected = 1\n";
    snapshots::check("pascal", &machine(&[pascal], &process(0, "")), FORMS);
}

#[test]
fn nvlink_info_of_three_boards() {
    let scenario = "seed = 7\n[[gpu]]\nindex = 0\nnvlinks = 18\n[[gpu]]\nindex = 1\nmig = [\
        { profile = \"1c.3g.71gb\", gpu_instance = 1 }, \
        { profile = \"1c.3g.71gb\", gpu_instance = 1, compute_instance = 1 }, \
        { profile = \"1g.18gb\", gpu_instance = 7 }]\n\
        [[gpu]]\nindex = 2\nname = \"NVIDIA GeForce RTX 4090\"\narchitecture = \"ada\"\n";
    snapshots::check("nvlink-info", scenario, &["nvlink -info"]);
}

#[test]
fn each_section_by_itself() {
    snapshots::check_running(
        "one-sections",
        &one(),
        &[SECTIONS, &["-q -d SUPPORTED_CLOCKS"]].concat(),
    );
    snapshots::check_running("two-sections", &two(), SECTIONS);
    let some = [
        "-q -d MEMORY,UTILIZATION,CLOCK -i 3,7",
        "-q -d POWER -i 5",
        "nvlink -gt d -i 6 -l 17",
    ];
    snapshots::check_running("eight-sections", &machine(&["nvlinks = 18"; 8], ""), &some);
}

#[test]
fn each_section_of_a_machine_that_has_less_to_tell() {
    snapshots::check_running("mig-sections", &divided(), SECTIONS);
    snapshots::check_running("geforce-sections", &geforce(), SECTIONS);
    snapshots::check_running(
        "lost-sections",
        &lost(),
        &["-q -d UTILIZATION,PIDS", "-q -d POWER -i 1"],
    );
}

#[test]
fn how_gpus_are_connected_and_what_programs_ask_for() {
    snapshots::check("one-more", &one(), MORE);
    let clocks = "--query-supported-clocks=gpu_bus_id,memory,graphics --format=csv,nounits";
    snapshots::check("two-more", &two(), &[MORE, &[clocks]].concat());
    snapshots::check("mig-more", &divided(), MORE);
    snapshots::check("geforce-more", &geforce(), MORE);
    snapshots::check("lost-more", &lost(), MORE);
}

#[test]
fn a_server_answers_the_same() {
    // These processes exist, because a server's records contain their PIDs and it looks up their
    // names.
    let really = |gpu, pid: u32| process(gpu, "").replace("4194303", &pid.to_string());
    let (own, parent) = (std::process::id(), std::os::unix::process::parent_id());
    // The driver lists the processes in a different order than by PID.
    let last = really(0, own.min(parent)) + "from_s = 0\n";
    let processes = [last, really(0, own.max(parent)), really(1, own)].concat();
    let scenario = machine(&["nvlinks = 18", "fans = 1\naccounting = true"], &processes);
    // Without a reason for reduced clocks, the throttling times do not change.
    let scenario = scenario.replace("[\"sw_power_cap\"]", "[]");
    let fake = Fake::new(&scenario);
    let forms = [
        "",
        "-L",
        "-q",
        "-q -x",
        "--query-gpu=EVERY --format=csv",
        "--query-compute-apps=EVERY --format=csv",
    ];
    let alone = snapshots::take(&fake, &forms);
    let (_, compute_apps) = alone.split_once("--query-compute-apps").unwrap();
    let listed = |pid: u32| compute_apps.find(&format!(", {pid}, ")).unwrap();
    assert!(
        listed(own.max(parent)) < listed(own.min(parent)),
        "in the driver's order: {compute_apps}"
    );
    let row = |pid: u32| {
        alone
            .find(&format!("|    0   N/A  N/A {pid:>15} "))
            .unwrap()
    };
    assert!(
        row(own.min(parent)) < row(own.max(parent)),
        "by PID: {alone}"
    );
    let _server = Server::over(&fake, &[]);
    // The server reads values that are not part of the model with its second sample.
    crate::support::eventually("the server knows all", || {
        snapshots::answers_without_the_driver(&fake)
    });
    snapshots::assert_same(&alone, &snapshots::take(&fake, &forms));
}

#[test]
fn a_gpu_that_hangs_holds_up_nobody_who_has_a_server_and_shows_nothing_old() {
    let hang = "[[fault]]\nkind = \"hang\"\ngpu = 1\nfrom_s = 5\n";
    let fake = Fake::new(&machine(
        &["name = \"NVIDIA H200\"", "name = \"NVIDIA H100\""],
        hang,
    ));
    let _server = Server::over(&fake, &[]);
    let query = ["--query-gpu=name,utilization.gpu", "--format=csv,noheader"];
    crate::support::eventually("the second hangs", || {
        stdout(&fake.gpumon(&query).output().unwrap())
            == "NVIDIA H200, 96 %\nNVIDIA H100, [Unknown Error]\n"
    });
    let all = stdout(&fake.gpumon(&["-q"]).output().unwrap());
    assert!(
        all.contains("NVIDIA H100") && all.contains("Unknown Error"),
        "{all}"
    );
    assert!(stdout(&fake.gpumon(&["smi"]).output().unwrap()).contains("NVIDIA H100"));
    // Commands that read the driver themselves leave out the GPU that does not answer.
    for words in [
        &["dmon", "-c", "1"][..],
        &["pmon", "-c", "1"],
        &["topo", "-m"],
    ] {
        let output = fake.gpumon(words).output().unwrap();
        assert!(
            output.status.success() && stdout(&output).lines().count() > 3,
            "{words:?}: {}",
            stdout(&output)
        );
    }
}

#[test]
fn a_gpu_that_hangs_holds_up_nobody_who_has_no_server() {
    let hang = |call: &str| {
        let hang = "[[fault]]\nkind = \"hang\"\ngpu = 1\n".to_owned() + call;
        Fake::new(&machine(
            &["name = \"NVIDIA H200\"", "name = \"NVIDIA H100\""],
            &hang,
        ))
    };
    let in_time = |fake: &Fake, words: &[&str]| {
        let begun = Instant::now();
        let output = fake.gpumon(words).output().unwrap();
        // The command takes two seconds on an idle machine.
        assert!(
            begun.elapsed() < Duration::from_secs(8),
            "{words:?} took {:?}",
            begun.elapsed()
        );
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        (stdout(&output), stderr(&output))
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
fn a_name_cannot_steer_the_terminal() {
    let fake = Fake::new("[[gpu]]\nindex = 0\nname = \"NV\\u001b]0;x\\u0007\\nIDIA\\u202e\"\n");
    for words in [
        &["smi"][..],
        &["-L"],
        &["-q"],
        &["-q", "-x"],
        &["--query-gpu=name", "--format=csv"],
    ] {
        let shown = stdout(&fake.gpumon(words).output().unwrap());
        assert!(shown.contains("NV ]0;x  IDIA?"), "{words:?}: {shown}");
        assert!(
            !shown.contains(|letter: char| letter.is_control() && !"\n\t".contains(letter)),
            "{words:?}: {shown:?}"
        );
    }
}

#[test]
fn gpumons_own_options_may_stand_before_nvidia_smis() {
    let fake = Fake::new("gpus = 1");
    let shown = |words: &[&str]| stdout(&fake.gpumon(words).output().unwrap());
    assert_eq!(shown(&["--source", "sim:2", "-L"]).lines().count(), 2);
    let simulated = fake.gpumon(&["--source", "sim:1", "-q"]).output().unwrap();
    assert_eq!(stderr(&simulated), "gpumon: these GPUs are simulated\n");
    assert_eq!(
        shown(&[
            "--source=sim:2",
            "--query-gpu=index",
            "--format=csv,noheader"
        ]),
        "0\n1\n"
    );
    let refused = fake.gpumon(&["--source", "sim:0", "-L"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("64"), "{}", stderr(&refused));
}

#[test]
fn under_the_name_of_nvidia_smi_and_passed_through() {
    let fake = Fake::new("gpus = 2");
    let link = fake.path("nvidia-smi");
    symlink(env!("CARGO_BIN_EXE_gpumon"), &link).unwrap();
    let by_name = |words: &[&str]| {
        let like = fake.gpumon(words);
        let mut command = Command::new(&link);
        command.args(words).envs(
            like.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        stdout(&command.output().unwrap())
    };
    let passed_through = |words: &[&str]| stdout(&fake.gpumon(words).output().unwrap());
    for words in [
        &["-L"][..],
        &["--query-gpu=name,uuid", "--format=csv"],
        &["-q", "-d", "COMPUTE"],
        &["topo", "-m"],
        &["--help-query-gpu"],
    ] {
        let behind: Vec<&str> = ["smi"].iter().chain(words).copied().collect();
        let expected = stdout(&fake.gpumon(&behind).output().unwrap());
        assert!(!expected.is_empty(), "{words:?}");
        for other in [by_name(words), passed_through(words)] {
            assert_eq!(
                snapshots::without_time(&other),
                snapshots::without_time(&expected),
                "{words:?}"
            );
        }
    }
    assert!(
        by_name(&[]).contains("| NVIDIA-SMI "),
        "no words make the summary under that name"
    );
}

#[test]
fn what_would_change_a_gpu_is_refused() {
    let fake = Fake::new("gpus = 1");
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
        let output = fake.gpumon(&[&["smi"], words].concat()).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(3),
            "{words:?}: {}",
            stdout(&output)
        );
        assert_eq!(
            stdout(&output).trim_end().lines().count(),
            1,
            "{}",
            stdout(&output)
        );
        assert!(
            stdout(&output).contains("nvidia-smi"),
            "{}",
            stdout(&output)
        );
    }
}

#[test]
fn what_gpumon_cannot_do_is_refused_for_what_it_is() {
    let fake = Fake::new("gpus = 2");
    for (words, option) in [
        (&["smi", "-col", "2"][..], "-col"),
        (&["smi", "--columns=2"], "--columns"),
        (&["-col", "2"], "-col"),
        (&["smi", "--debug=/tmp/log"], "--debug"),
        (&["-q", "-u"], "-u"),
        (&["smi", "mig", "-lgi"], "mig"),
        (&["mig", "-lgi"], "mig"),
    ] {
        let output = fake.gpumon(words).output().unwrap();
        let text = format!(
            "gpumon: '{option}' is not part of gpumon; use NVIDIA's own nvidia-smi for it\n"
        );
        assert_eq!(
            (output.status.code(), stdout(&output)),
            (Some(3), text),
            "{words:?}"
        );
    }
}

#[test]
fn warnings_are_errors_where_that_is_asked_for() {
    let fake = Fake::new("gpus = 2\n[[fault]]\ngpu = 1\nkind = \"lost\"\n");
    let code = |words: &[&str]| fake.gpumon(words).output().unwrap().status.code();
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
        .gpumon(&["smi", "-i", "0", "-q", "-eow"])
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "nothing is the matter with this one: {}",
        stderr(&output)
    );
    assert_eq!(code(&["smi", "-pm", "1", "-eow"]), Some(3));
}

#[test]
fn a_loop_goes_on_until_interrupted_and_a_file_gets_it_all() {
    let fake = Fake::new("gpus = 1");
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
    let mut looping = fake.gpumon(&words).stdout(Stdio::piped()).spawn().unwrap();
    let lines = || {
        std::fs::read_to_string(&file)
            .unwrap_or_default()
            .lines()
            .count()
    };
    crate::support::eventually("some rounds are written", || lines() > 4);
    signal("-INT", looping.id());
    assert_eq!(looping.wait().unwrap().code(), Some(0));
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(
        text.matches("index, name").count(),
        1,
        "the names are written once: {text}"
    );
}

#[test]
fn what_is_refused_leaves_the_file_as_it_was() {
    let fake = Fake::new("gpus = 1");
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
        let output = fake.gpumon(&words).output().unwrap();
        assert!(!output.status.success(), "{}", stdout(&output));
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            "yesterday\n",
            "{words:?}"
        );
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let fake = Fake::new("gpus = 1");
    let mut looping = fake
        .gpumon(&["smi", "-lms", "20"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(looping.stdout.take());
    thread::sleep(Duration::from_millis(50));
    assert_eq!(looping.wait().unwrap().code(), Some(0));
}

#[test]
fn what_is_missing_is_told_as_nvidia_smi_tells_it() {
    let none = crate::support::gpumon(&["smi"])
        .env("GPUMON_NVML_LIB", "/nonexistent/lib.so")
        .output()
        .unwrap();
    assert_eq!(
        none.status.code(),
        Some(12),
        "{}{}",
        stdout(&none),
        stderr(&none)
    );
    assert!(
        stdout(&none).starts_with("NVIDIA-SMI couldn't find libnvidia-ml.so library"),
        "{}",
        stdout(&none)
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
        let fake = Fake::new(&format!("gpus = 1\ninit_error = {{ code = {code} }}"));
        let output = fake.gpumon(&["smi", "-L"]).output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        assert!(stdout(&output).starts_with(text), "{}", stdout(&output));
    }
    let fake = Fake::new("gpus = 0");
    let output = fake.gpumon(&["smi"]).output().unwrap();
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(6), "No devices were found\n")
    );
}

#[test]
fn two_lists_of_gpus_are_refused_once_the_gpus_are_known() {
    let fake = Fake::new("gpus = 2");
    for (ids, code) in [(["0", "1"], 255), (["0", "9"], 6)] {
        let output = fake
            .gpumon(&["smi", "-i", ids[0], "-i", ids[1]])
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{ids:?}: {}",
            stdout(&output)
        );
    }
}

#[test]
fn negative_count_of_rounds_runs_until_sigint() {
    let fake = Fake::new("gpus = 1");
    for monitor in ["dmon", "pmon"] {
        for count in ["-1", "-5"] {
            let mut command = fake.gpumon(&["smi", monitor, "-c", count]);
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
            signal("-INT", child.id());
            child.wait().unwrap();
        }
        for count in ["0", "abc", "2x", ""] {
            let output = fake
                .gpumon(&["smi", monitor, "-c", count])
                .output()
                .unwrap();
            let text = stdout(&output);
            assert!(
                text.starts_with("Invalid value for number of samples to be displayed\n"),
                "{monitor} {count:?}: {text}"
            );
        }
    }
}

#[test]
fn log_file_that_cannot_be_created_is_named() {
    let fake = Fake::new("gpus = 1");
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
        let output = fake.gpumon(&words).output().unwrap();
        assert_eq!(
            (output.status.code(), &*stdout(&output)),
            (Some(255), expected),
            "{form}"
        );
    }
}
