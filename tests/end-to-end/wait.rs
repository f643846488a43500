//! `gpumon wait`: its conditions, the GPUs that it takes, and its reservations.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::process::ExitStatusExt,
    process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio},
};

use gpumon_probe::model::now_ms;

use crate::support::{
    FakeNvml, Server, is_refusal, send_signal, stderr_text, stdout_text, wait_for_condition,
};

/// A shell that prints its GPUs, and ends when its standard input is closed.
const HOLDING_COMMAND: [&str; 4] = ["--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; read _"];

/// Returns `gpumon wait` for the GPUs of `fake`, with its own locks.
fn wait_command(fake: &FakeNvml, arguments: &[&str]) -> Command {
    let mut command = fake.gpumon_command(&[&["wait", "--interval", "100ms"], arguments].concat());
    command
        .env("GPUMON_LOCKS", fake.path(""))
        .env_remove("CUDA_VISIBLE_DEVICES")
        .env_remove("CUDA_DEVICE_ORDER");
    command
}

#[track_caller]
fn run_and_check_code(mut command: Command, code: i32) -> (String, String) {
    let output: Output = command.output().unwrap();
    let said = stderr_text(&output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    (stdout_text(&output), said)
}

/// A running `gpumon wait`, which ends with the test.
struct Waiter {
    child: Child,
    out: BufReader<ChildStdout>,
    messages: BufReader<ChildStderr>,
}

impl Waiter {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let messages = BufReader::new(child.stderr.take().unwrap());
        Self {
            child,
            out,
            messages,
        }
    }

    fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn next_message(&mut self) -> String {
        let mut line = String::new();
        self.messages.read_line(&mut line).unwrap();
        line
    }

    /// Lets the command end, and returns its exit code.
    fn end_held_command(&mut self) -> Option<i32> {
        drop(self.child.stdin.take());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn wait_ends_when_memory_is_freed() {
    let fake = FakeNvml::new(
        "[[gpu]]\nindex = 0\nmemory_used = [[0, \"130 GiB\"], [3, \"130 GiB\"], [3, \"10 GiB\"]]\n",
    );
    let (out, said) = run_and_check_code(wait_command(&fake, &["--free", "100GiB"]), 0);
    assert_eq!(out, "0\n");
    let lines: Vec<_> = said.lines().collect();
    assert!(
        lines[0].contains("waiting for a GPU with 100.0 GiB free: GPU 0 9.8 GiB free"),
        "{said}"
    );
    assert!(lines[1].contains("took GPU 0 after"), "{said}");
    assert_eq!(
        lines.len(),
        2,
        "a log must not get repeated messages: {said}"
    );
    let (out, said) = run_and_check_code(
        wait_command(
            &fake,
            &[
                "--free", "5%", "--format", "uuid", "--quiet", "--locks", "/tmp",
            ],
        ),
        0,
    );
    assert!(out.starts_with("GPU-"), "{out}");
    assert_eq!(said, "");
    fs::remove_file(format!("/tmp/gpumon-{}.lock", out.trim())).unwrap();
}

#[test]
fn wait_ends_when_gpu_is_empty_or_idle() {
    let fake = FakeNvml::new(
        "[[gpu]]\nindex = 0\nutilization_percent = [[0, 90], [2, 90], [2, 0]]\nmemory_used = \"4 \
         MiB\"\n[[gpu]]\nindex = 1\nprofile = \"training\"\n[[process]]\ngpu = 0\npid = \
         4000000\nmemory = \"1 GiB\"\nto_s = 3\n",
    );
    let (out, said) = run_and_check_code(wait_command(&fake, &["--hold", "1s"]), 0);
    assert!(
        out == "0\n" && said.contains("an empty GPU: GPU 0 1 process, GPU 1 "),
        "{out}{said}"
    );
    let (out, said) = run_and_check_code(wait_command(&fake, &["--idle", "1s"]), 0);
    assert!(
        out == "0\n" && said.contains("a GPU idle for 1s: GPU 0 90 % busy"),
        "{out}{said}"
    );
}

#[test]
fn two_waiters_get_different_gpus() {
    let fake = FakeNvml::new(
        "gpus = 2\n[[gpu]]\nindex = 0\nprofile = \"idle\"\n[[gpu]]\nindex = 1\nprofile = \
         \"idle\"\n",
    );
    let mut waiters = [(); 2].map(|()| Waiter::start(wait_command(&fake, &HOLDING_COMMAND)));
    let [first, second] = &mut waiters;
    let (first, second) = (first.next_line(), second.next_line());
    assert!(
        first.starts_with("GPU-") && second.starts_with("GPU-") && first != second,
        "{first} {second}"
    );
    assert!(
        waiters
            .iter_mut()
            .all(|waiter| waiter.end_held_command() == Some(1)),
        "read(1) must return the end of the input"
    );
}

#[test]
fn second_waiter_gets_gpu_after_first() {
    let fake = FakeNvml::new("[[gpu]]\nindex = 0\nprofile = \"idle\"\n");
    let mut first = Waiter::start(wait_command(&fake, &HOLDING_COMMAND));
    let uuid = first.next_line();
    let mut second = Waiter::start(wait_command(&fake, &HOLDING_COMMAND));
    assert!(
        second
            .next_message()
            .ends_with("an empty GPU: GPU 0 taken\n")
    );
    first.end_held_command();
    assert_eq!(second.next_line(), uuid);
}

#[test]
fn killed_wait_command_releases_gpu_and_collector() {
    let fake = FakeNvml::new("[[gpu]]\nindex = 0\nprofile = \"idle\"\n");
    let mut first = Waiter::start(wait_command(&fake, &HOLDING_COMMAND));
    let uuid = first.next_line();
    let mut second = Waiter::start(wait_command(&fake, &HOLDING_COMMAND));
    second.next_message();
    send_signal("-KILL", first.child.id());
    assert_eq!(second.next_line(), uuid);
    // If a waiting process is killed, its collector ends, too.
    let mut third = Waiter::start(wait_command(&fake, &HOLDING_COMMAND));
    third.next_message();
    let pid = third.child.id();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let collector = children
        .split_ascii_whitespace()
        .next()
        .expect("the waiter must have a collector")
        .to_owned();
    send_signal("-KILL", pid);
    wait_for_condition("the collector has ended", || {
        let stat = fs::read_to_string(format!("/proc/{collector}/stat")).unwrap_or_default();
        // The collector may be a zombie until its adoptive parent waits for it.
        stat.is_empty() || stat.contains(") Z ")
    });
    drop(second);
    assert_eq!(
        run_and_check_code(wait_command(&fake, &["--hold", "1s"]), 0).0,
        "0\n"
    );
}

#[test]
fn gpu_stays_reserved_after_wait_without_command() {
    let fake = FakeNvml::new("[[gpu]]\nindex = 0\nprofile = \"idle\"\n");
    assert_eq!(
        run_and_check_code(wait_command(&fake, &["--hold", "1h"]), 0).0,
        "0\n"
    );
    let (out, said) = run_and_check_code(wait_command(&fake, &["--timeout", "3s"]), 124);
    assert!(
        out.is_empty() && said.contains("gave up after 3s") && said.contains("GPU 0 reserved 59m"),
        "{said}"
    );
    let lock = fs::read_dir(fake.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let lock = lock
        .into_iter()
        .find(|path| path.to_string_lossy().ends_with(".lock"))
        .unwrap();
    fs::write(
        lock,
        format!("reserved until {} by process 1\n", now_ms() + 3_000),
    )
    .unwrap();
    let (out, said) = run_and_check_code(wait_command(&fake, &[]), 0);
    assert!(out == "0\n" && said.contains("GPU 0 reserved"), "{said}");
}

#[test]
fn wait_takes_several_gpus_all_at_once() {
    let idle = |index| format!("[[gpu]]\nindex = {index}\nprofile = \"idle\"\n");
    let fake = FakeNvml::new(&(0..3).map(idle).collect::<String>());
    let mut one = Waiter::start(wait_command(
        &fake,
        &[&["-i", "1"], HOLDING_COMMAND.as_slice()].concat(),
    ));
    one.next_line();
    let mut three = Waiter::start(wait_command(
        &fake,
        &[&["--gpus", "3"], HOLDING_COMMAND.as_slice()].concat(),
    ));
    assert!(
        three
            .next_message()
            .contains("3 empty GPUs: GPU 0 ready, GPU 1 taken, GPU 2 ready")
    );
    let (out, _) = run_and_check_code(wait_command(&fake, &["--gpus", "2", "--hold", "1s"]), 0);
    assert_eq!(
        out, "0,2\n",
        "a waiter for three GPUs must not hold some of them"
    );
    one.end_held_command();
    let uuids = three.next_line();
    assert_eq!(uuids.split(',').count(), 3, "{uuids}");
}

#[test]
fn command_gets_gpu_and_sets_exit_code() {
    let fake = FakeNvml::new("[[gpu]]\nindex = 0\nprofile = \"idle\"\n");
    let script = "echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER; exit 7";
    let (out, _) = run_and_check_code(wait_command(&fake, &["--", "sh", "-c", script]), 7);
    let (uuid, order) = out.trim().split_once(' ').unwrap();
    assert!(uuid.starts_with("GPU-") && order == "PCI_BUS_ID", "{out}");
    let (children, _) = run_and_check_code(
        wait_command(&fake, &["--", "cat", "/proc/thread-self/children"]),
        0,
    );
    assert_eq!(
        children, "",
        "the process that read the driver must have ended"
    );
    let (_, said) = run_and_check_code(wait_command(&fake, &["--", "/nowhere/at/all"]), 127);
    assert!(said.contains("cannot run /nowhere/at/all"), "{said}");
    run_and_check_code(wait_command(&fake, &["--", "/etc/passwd"]), 126);
}

#[test]
fn command_receives_signals() {
    let fake = FakeNvml::new("[[gpu]]\nindex = 0\nprofile = \"idle\"\n");
    let script = "trap 'echo heard; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    let mut waiter = Waiter::start(wait_command(&fake, &["--", "sh", "-c", script]));
    assert_eq!(waiter.next_line(), "ready");
    send_signal("-TERM", waiter.child.id());
    assert_eq!(
        (waiter.next_line(), waiter.child.wait().unwrap().code()),
        ("heard".to_owned(), Some(3))
    );
    let killed = wait_command(&fake, &["--quiet", "--", "sh", "-c", "kill -TERM $$"])
        .status()
        .unwrap();
    assert_eq!(
        killed.signal(),
        Some(15),
        "shells show this signal as exit code 143"
    );
}

#[test]
fn lost_or_hanging_gpu_is_never_taken() {
    let fake = FakeNvml::new(
        "gpus = 3\n[[gpu]]\nindex = 0\nprofile = \"idle\"\n[[gpu]]\nindex = 1\nprofile = \"idle\"\n\
         [[gpu]]\nindex = 2\nmemory_used = \"100 GiB\"\n\
         [[fault]]\ngpu = 0\nkind = \"hang\"\n[[fault]]\ngpu = 1\nkind = \"lost\"\n",
    );
    assert_eq!(
        run_and_check_code(wait_command(&fake, &["--free", "10GiB"]), 0).0,
        "2\n"
    );
    let (_, said) = run_and_check_code(wait_command(&fake, &["-i", "0,1", "--timeout", "6s"]), 124);
    assert!(
        said.contains("GPU 1 lost") && !said.contains("ready"),
        "{said}"
    );
}

#[test]
fn now_option_never_waits() {
    let fake = FakeNvml::new(
        "gpus = 3\n[[gpu]]\nindex = 0\nmemory_used = \"100 GiB\"\n[[gpu]]\nindex = 1\nprofile = \
         \"idle\"\n[[fault]]\ngpu = 2\nkind = \"hang\"\n",
    );
    let now = |arguments: &[&str]| wait_command(&fake, &[&["--now"], arguments].concat());
    assert_eq!(
        run_and_check_code(now(&["--quiet", "--hold", "1m"]), 0),
        ("1\n".to_owned(), String::new())
    );
    // The first command has reserved the GPU.
    let (out, said) = run_and_check_code(now(&[]), 1);
    assert_eq!(out, "");
    assert!(
        said.contains("did not find an empty GPU: GPU 0") && said.contains("omit --now"),
        "{said}"
    );
    assert_eq!(
        run_and_check_code(
            now(&["--free", "20GiB", "-i", "0", "--", "sh", "-c", "exit 7"]),
            7
        )
        .0,
        ""
    );
    for contradiction in [["--idle", "1m"], ["--timeout", "1m"]] {
        assert!(
            run_and_check_code(now(&contradiction), 2)
                .1
                .contains("cannot be used with")
        );
    }
}

#[test]
fn timeout_works_with_hanging_driver() {
    let fake = FakeNvml::new("gpus = 1\n[latency]\nnvmlInit_v2 = \"600 s\"\n");
    let (_, said) = run_and_check_code(wait_command(&fake, &["--timeout", "3s"]), 124);
    assert!(said.contains("does not respond"), "{said}");
}

#[test]
fn wait_survives_driver_crash() {
    let fake = FakeNvml::new(&format!(
        "start_ms = {}\n[[gpu]]\nindex = 0\nmemory_used = [[0, \"130 GiB\"], [5, \"130 GiB\"], \
         [5, \"1 GiB\"]]\n[[fault]]\nkind = \"crash\"\ngpu = 0\ncall = \
         \"nvmlDeviceGetMemoryInfo_v2\"\nfrom_s = 1\nto_s = 2\n",
        now_ms()
    ));
    assert_eq!(
        run_and_check_code(wait_command(&fake, &["--free", "100GiB", "--quiet"]), 0).0,
        "0\n"
    );
}

#[test]
fn impossible_condition_is_refused() {
    let fake = FakeNvml::new(
        "gpus = 2\n[[gpu]]\nindex = 1\nname = \"NVIDIA L4\"\nmemory = \"23034 MiB\"\n",
    );
    let refused = |arguments: &[&str], words: &[&str]| {
        let (out, said) = run_and_check_code(wait_command(&fake, arguments), 2);
        assert!(out.is_empty() && is_refusal(&said), "{said}");
        for word in words {
            assert!(said.contains(word), "{word:?} is missing in {said:?}");
        }
    };
    refused(
        &["--free", "200GiB"],
        &["200.0 GiB", "the largest, GPU 0, has 139.8 GiB"],
    );
    refused(
        &["--free", "30GiB", "--gpus", "2"],
        &["only 1 of the 2", "GPU 0"],
    );
    refused(&["--free", "30GiB", "-i", "1"], &["GPU 1, has 2"]);
    refused(
        &["--gpus", "3"],
        &["--gpus 3", "number of candidate GPUs (2)"],
    );
    refused(&["--free", "20G"], &["--free", "20GiB"]);
    refused(
        &["--free", "20GiB", "--locks", "/nowhere"],
        &["/nowhere", "--locks"],
    );
    refused(&["--format", "uid"], &["a similar value exists: 'uuid'"]);
    refused(&["--format", "uuid", "--", "sh"], &["--format"]);
    refused(&["python"], &["'python'", "--"]);
    refused(&["--"], &["no command after --"]);
    refused(&["--gpus", "-1"], &["--gpus", "'-1'"]);
    refused(&["--free", "0"], &["more than 0"]);
    let (_, said) = run_and_check_code(wait_command(&fake, &["--id", "5"]), 6);
    assert!(
        said.contains("no GPU '5'") && said.contains("0 to 1"),
        "{said}"
    );
    let (_, said) = run_and_check_code(
        wait_command(
            &fake,
            &["--free", "30GiB", "--gpus", "1", "--", "pyhton", "x"],
        ),
        127,
    );
    assert!(
        said.contains("cannot run pyhton") && !said.contains("took"),
        "{said}"
    );
    let (_, said) = run_and_check_code(
        wait_command(&fake, &["--", fake.path("scenario.toml").to_str().unwrap()]),
        126,
    );
    assert!(
        said.contains("chmod +x") && !said.contains("took"),
        "{said}"
    );
    let silent = FakeNvml::without_functions("gpus = 1", &["nvmlDeviceGetUtilizationRates"]);
    let (_, said) = run_and_check_code(wait_command(&silent, &["--idle", "1s"]), 2);
    assert!(said.contains("utilization not reported"), "{said}");
    let (_, said) = run_and_check_code(wait_command(&FakeNvml::new("gpus = 0"), &[]), 6);
    assert!(said.contains("no GPU"), "{said}");
}

#[test]
fn unusable_lock_is_refused() {
    let fake = FakeNvml::new("gpus = 1\n[[gpu]]\nindex = 0\nprofile = \"idle\"\n");
    let uuid = fake.read_json()["inventory"]["gpus"][0]["uuid"]
        .as_str()
        .unwrap()
        .to_owned();
    let lock = fake.path(&format!("gpumon-{uuid}.lock"));
    fs::create_dir(&lock).unwrap();
    for conditions in [&[][..], &["--free", "1GiB"]] {
        let (_, said) =
            run_and_check_code(wait_command(&fake, &[conditions, &["--quiet"]].concat()), 2);
        assert!(
            said.contains(lock.to_str().unwrap()) && said.contains("--locks"),
            "{said}"
        );
    }
}

#[test]
fn gpu_is_released_if_writing_its_index_fails() {
    let fake = FakeNvml::new("gpus = 1\n[[gpu]]\nindex = 0\nprofile = \"idle\"\n");
    let mut command = wait_command(&fake, &["--quiet"]);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = command
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr_text(&output));
    assert_eq!(
        run_and_check_code(
            wait_command(&fake, &["--quiet", "--hold", "1s", "--timeout", "3s"]),
            0
        )
        .0,
        "0\n"
    );
}

#[test]
fn silent_server_is_skipped_before_timeout() {
    let fake = FakeNvml::new("gpus = 1\n[[gpu]]\nindex = 0\nprofile = \"idle\"\n");
    // The server accepts connections but never answers.
    let _server = std::os::unix::net::UnixListener::bind(fake.control_path()).unwrap();
    assert_eq!(
        run_and_check_code(
            wait_command(&fake, &["--quiet", "--hold", "1s", "--timeout", "8s"]),
            0
        )
        .0,
        "0\n"
    );
}

#[test]
fn wait_considers_only_gpus_in_options_and_environment() {
    let idle = |index| format!("[[gpu]]\nindex = {index}\nprofile = \"idle\"\n");
    let fake = FakeNvml::new(&(0..4).map(idle).collect::<String>());
    let json = fake.read_json();
    let gpu = |index: usize| &json["inventory"]["gpus"][index];
    let uuid = |index: usize| gpu(index)["uuid"].as_str().unwrap().to_owned();
    let among = |visible: Option<&str>, ids: &[&str]| {
        let mut command = wait_command(
            &fake,
            &[
                &["--free", "1GiB"],
                ids,
                &["--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"],
            ]
            .concat(),
        );
        command.envs(visible.map(|visible| ("CUDA_VISIBLE_DEVICES", visible)));
        run_and_check_code(command, 0).0.trim().to_owned()
    };
    assert_eq!(among(None, &["-i", &uuid(2)[..12]]), uuid(2));
    assert_eq!(
        among(None, &["--id", gpu(1)["pci_bus_id"].as_str().unwrap()]),
        uuid(1)
    );
    assert_eq!(among(Some("3"), &[]), uuid(3));
    assert_eq!(among(Some(&uuid(1)), &[]), uuid(1));
    assert_eq!(among(Some("2,1"), &["-i", "0,1"]), uuid(1));
    let mut command = wait_command(&fake, &[]);
    let (_, said) = run_and_check_code(
        std::mem::replace(
            command.env("CUDA_VISIBLE_DEVICES", ""),
            Command::new("true"),
        ),
        2,
    );
    assert!(
        said.contains("CUDA_VISIBLE_DEVICES") && said.contains("unset the variable"),
        "{said}"
    );
}

#[test]
fn mig_devices_are_taken_separately() {
    let fake = FakeNvml::new(
        "[[gpu]]\nindex = 0\nmig = [{ profile = \"3g.71gb\", gpu_instance = 2 }, { profile = \
         \"1g.18gb\", gpu_instance = 7 }]\n",
    );
    let mut first = Waiter::start(wait_command(&fake, &HOLDING_COMMAND));
    let large = first.next_line();
    assert!(large.starts_with("MIG-"), "{large}");
    assert_eq!(
        run_and_check_code(wait_command(&fake, &["--hold", "1s"]), 0).0,
        "0:1\n",
        "the next command must get the whole GPU"
    );
    let (_, said) = run_and_check_code(
        wait_command(&fake, &["--free", "30GiB", "--timeout", "3s"]),
        124,
    );
    assert!(
        said.contains("GPU 0:0 taken, GPU 0:1 can never be ready: "),
        "{said}"
    );
    let (_, said) = run_and_check_code(wait_command(&fake, &["--gpus", "2"]), 2);
    assert!(said.contains("--gpus 2"), "{said}");
    first.end_held_command();
    let mut command = wait_command(&fake, &["--format", "uuid"]);
    command.env("CUDA_VISIBLE_DEVICES", &large);
    assert_eq!(run_and_check_code(command, 0).0.trim(), large);
}

#[test]
fn wait_reads_running_server_instead_of_driver() {
    let fake = FakeNvml::new("[[gpu]]\nindex = 0\nprofile = \"idle\"\n");
    let control = fake.control_path();
    let server = Server::start_with_fake(
        &fake,
        &[
            "--interval-ms",
            "100",
            "--control",
            control.to_str().unwrap(),
        ],
    );
    wait_for_condition("the server has a sample", || {
        server.get("/readyz").status == 200
    });
    let without_library = |arguments: &[&str]| {
        let mut command = wait_command(&fake, arguments);
        command.env("GPUMON_NVML_LIB", "/nowhere/libnvidia-ml.so.1");
        command
    };
    assert_eq!(
        run_and_check_code(without_library(&["--hold", "1s"]), 0).0,
        "0\n"
    );
    assert!(
        fake.gpumon_command(&["pause"])
            .output()
            .unwrap()
            .status
            .success()
    );
    let mut waiter = Waiter::start(without_library(&HOLDING_COMMAND));
    assert!(
        waiter.next_message().contains("gpumon resume"),
        "the driver must not be opened while the server is paused"
    );
    assert!(
        fake.gpumon_command(&["resume"])
            .output()
            .unwrap()
            .status
            .success()
    );
    assert!(waiter.next_line().starts_with("GPU-"));
    let mut rest = String::new();
    drop(server);
    waiter.end_held_command();
    waiter.messages.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("took GPU 0"), "{rest}");
}
