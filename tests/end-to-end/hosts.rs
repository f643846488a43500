//! Hosts over ssh: a real sshd on loopback. Some hosts have gpumon, some only nvidia-smi, and
//! others hang, exit, refuse the connection or send garbage.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{PATIENCE, Server, Stream, Tty, ask_with, gpumon, signal, stderr, stdout};

const MOMENT: Duration = Duration::from_millis(50);

/// The number of ports, one for each kind of host. The last one refuses connections.
const PORTS: u16 = 9;

/// The maximum number of attempts to find free ports.
const ATTEMPTS: u32 = 5;

/// A running sshd, and the configuration with which ssh finds it.
struct Sshd {
    folder: TempDir,
    sshd: Child,
}

impl Sshd {
    fn start() -> Self {
        let started = (0..ATTEMPTS).find_map(|_| Self::try_start());
        started.expect("sshd has the ports that were free")
    }

    /// Returns `None` if another program has taken a port.
    fn try_start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts/sshd.sh");
        let first = free_ports();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new("sh");
        command
            .arg(script)
            .arg(folder.path())
            .arg(env!("CARGO_BIN_EXE_gpumon"))
            .arg(first.to_string());
        let sshd = command
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("tools/need.py sshd installs it");
        let this = Self { folder, sshd };
        let read_log = || fs::read_to_string(this.folder.path().join("log")).unwrap();
        let is_refused = || read_log().contains("Address already in use");
        // sshd logs this for each port before it accepts connections there.
        until("sshd listens", || {
            read_log().matches("Server listening").count() == usize::from(PORTS - 1) || is_refused()
        });
        (!is_refused()).then_some(this)
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    fn gpumon(&self, hosts: &str, arguments: &[&str]) -> Command {
        let config = self.config();
        gpumon(
            &[
                &[
                    "fleet",
                    "--ssh-config",
                    config.to_str().unwrap(),
                    "--hosts",
                    hosts,
                ],
                arguments,
            ]
            .concat(),
        )
    }

    fn serve(&self, hosts: &str) -> Server {
        Server::start(self.gpumon(hosts, &["--listen", "127.0.0.1:0"]))
    }

    /// Returns the local ssh processes for these hosts.
    fn near(&self) -> Vec<u32> {
        let config = self.config();
        let config = config.to_str().unwrap();
        pids(|pid| {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let arguments = String::from_utf8_lossy(&arguments).into_owned();
            arguments.contains(config) && !arguments.contains("--ssh-config")
        })
    }

    /// Returns the processes on the hosts, which also run on this machine.
    fn far(&self) -> Vec<u32> {
        let mark = format!("GPUMON_TEST_FOLDER={}", self.folder.path().display());
        pids(|pid| {
            let variables = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            variables
                .split(|byte| *byte == 0)
                .any(|variable| variable == mark.as_bytes())
        })
    }

    fn assert_nothing_is_left(&self) {
        until(
            &format!("all end: near {:?}, far {:?}", self.near(), self.far()),
            || self.near().is_empty() && self.far().is_empty(),
        );
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}

/// Returns the first of several consecutive free ports, one for each kind of host.
fn free_ports() -> u16 {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    loop {
        let first = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        if first < u16::MAX - PORTS && (first..first + PORTS).all(|port| is_free(&port)) {
            return first;
        }
    }
}

fn pids(is_it: impl Fn(u32) -> bool) -> Vec<u32> {
    let entries = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    entries.filter(|pid| is_it(*pid)).collect()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        sleep(MOMENT);
    }
}

fn fleet(server: &Server) -> Value {
    server.get("/api/v1/fleet").json()
}

fn up(fleet: &Value) -> Vec<String> {
    let (names, health) = (
        fleet["nodes"]["name"].as_array().unwrap(),
        fleet["nodes"]["health"].as_array().unwrap(),
    );
    let up = names
        .iter()
        .zip(health)
        .filter(|(_, health)| *health == "up");
    up.map(|(name, _)| name.as_str().unwrap().to_owned())
        .collect()
}

/// Returns the index of a node, its health, and the reason if it is not up.
fn node(fleet: &Value, name: &str) -> (usize, String, String) {
    let names = fleet["nodes"]["name"].as_array().unwrap();
    let place = names.iter().position(|known| known == name).unwrap();
    let reason = fleet["nodes"]["reasons"][place.to_string()]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    (
        place,
        fleet["nodes"]["health"][place].as_str().unwrap().to_owned(),
        reason,
    )
}

/// Waits until these nodes, and no others, are up.
fn until_up(server: &Server, names: &[&str]) -> Value {
    let mut last = Value::Null;
    until(&format!("{names:?} are up"), || {
        last = fleet(server);
        let up = up(&last);
        assert!(
            up.iter().all(|name| names.contains(&name.as_str())),
            "{up:?}"
        );
        up.len() == names.len()
    });
    last
}

#[test]
fn hosts_that_hang_die_refuse_or_babble_keep_nobody_from_the_others() {
    let ssh = Sshd::start();
    let mut server = ssh.serve(
        "gpumon[1-3],smi1,sim1,missing1,hang1,stuck1,babble1,die1,refuse1,stranger1,locked1",
    );
    let good = ["gpumon1", "gpumon2", "gpumon3", "sim1", "smi1"];
    let told = until_up(&server, &good);
    assert_eq!(
        (&told["state"], &told["source"]["kind"]),
        (&"partial".into(), &"hosts".into())
    );
    assert_eq!(told["gpus"]["node"].as_array().unwrap().len(), 9);
    // The command did not wait for these hosts.
    for name in ["hang1", "stuck1"] {
        assert_ne!(node(&told, name).1, "up");
    }
    for (name, reason) in [
        ("missing1", "neither gpumon nor nvidia-smi; install gpumon"),
        ("babble1", "writes what is not gpumon's; have its shell"),
        ("die1", "and then the power failed"),
        ("refuse1", "refuses connections; start the ssh server"),
        ("stranger1", "host key is not known; connect once"),
        ("locked1", "lets nobody in with the keys at hand; add a key"),
    ] {
        until(&format!("{name} says why"), || {
            node(&fleet(&server), name).2.contains(reason)
        });
    }
    assert_eq!(node(&fleet(&server), "missing1").1, "no_readings");
    assert_eq!(node(&fleet(&server), "locked1").1, "unreachable");
    let (status, took) = server.terminate();
    assert!(status.success(), "{status}");
    assert!(took < PATIENCE, "{took:?}");
    ssh.assert_nothing_is_left();
}

#[tokio::test]
async fn all_there_is_of_a_host_is_below_its_name_and_only_read() {
    let ssh = Sshd::start();
    let server = ssh.serve("gpumon1,smi1");
    let told = until_up(&server, &["gpumon1", "smi1"]);
    assert_eq!(told["state"], "current");
    let snapshot = server.get("/nodes/smi1/api/v1/snapshot").json();
    let gpu = &snapshot["sample"]["gpus"][0];
    assert_eq!(snapshot["inventory"]["gpus"][0]["name"], "NVIDIA H200");
    assert_eq!(
        (&gpu["power"]["draw_watts"], &gpu["health"]["state"]),
        (&77.71.into(), &"ok".into())
    );
    assert_eq!(gpu["activity"]["absent"], "needs_gpumon");
    let processes = |server: &Server| {
        let snapshot = server.get("/nodes/smi1/api/v1/snapshot").json();
        snapshot["sample"]["gpus"][0]["processes"]["value"]
            .as_array()
            .map_or(0, Vec::len)
    };
    until("its process is listed", || processes(&server) == 1);
    let mut stream = Stream::connect_with(format!(
        "ws://localhost:{}/nodes/gpumon1/api/v1/stream",
        server.port
    ))
    .await;
    let hello = stream.next().await.unwrap();
    assert_eq!(
        (
            &hello["type"],
            hello["inventory"]["gpus"].as_array().unwrap().len()
        ),
        (&"hello".into(), 2)
    );
    assert_eq!(
        hello["inventory"]["platform"]["source"], "simulated",
        "it is said there, too"
    );
    loop {
        let frame = stream.next().await.unwrap();
        if frame["type"] == "sample" {
            break;
        }
    }
    for path in ["history", "jobs", "usage", "alerts", "session"] {
        assert_eq!(
            server.get(&format!("/nodes/gpumon1/api/v1/{path}")).status,
            200,
            "{path}"
        );
    }
    for request in [
        "POST /nodes/gpumon1/api/v1/pause",
        "POST /nodes/gpumon1/api/v1/runs",
    ] {
        let refused = ask_with(server.port, request);
        assert!(
            (400..500).contains(&refused.status),
            "{request}: {}",
            refused.body
        );
    }
    assert_eq!(server.get("/nodes/nosuch/api/v1/snapshot").status, 404);
    for path in [
        "usage?range_s=900",
        "events",
        "history?range_s=900",
        "history?node=smi1",
        "node?node=gpumon1",
    ] {
        assert_eq!(
            server.get(&format!("/api/v1/fleet/{path}")).status,
            200,
            "{path}"
        );
    }
    let owners = fleet(&server)["owners"].to_string();
    assert!(owners.contains("\"user\":\"bob\""), "{owners}");
    let targets = server.get("/api/v1/fleet/targets?port=9400");
    assert!(
        targets.head.contains("application/json"),
        "{}",
        targets.head
    );
    assert_eq!(
        targets.json()[0]["targets"],
        serde_json::json!(["gpumon1:9400", "smi1:9400"])
    );
}

#[test]
fn a_host_opens_live_in_the_terminal_and_nothing_is_left() {
    let ssh = Sshd::start();
    let config = ssh.config();
    let hosts = [
        "--ssh-config",
        config.to_str().unwrap(),
        "--hosts",
        "gpumon1,refuse1",
    ];
    let mut command = gpumon(&[&["top", "--fleet"], &hosts[..]].concat());
    command
        .env("TERM", "xterm-256color")
        .env("LC_ALL", "C.UTF-8")
        .env_remove("NO_COLOR");
    let mut terminal = Tty::start(&command, 110, 30);
    terminal.wait_for("refuses connections");
    terminal.wait_for("GiB");
    terminal.press("sg\r");
    terminal.wait_for("live from node");
    terminal.press("q");
    terminal.wait_for("sorted by name");
    terminal.press("q");
    assert!(terminal.ended().success());
    ssh.assert_nothing_is_left();
}

#[test]
fn nothing_is_left_where_the_server_or_ssh_is_killed() {
    let ssh = Sshd::start();
    let hosts = "gpumon1,smi1,hang1,stuck1";
    let server = ssh.serve(hosts);
    until_up(&server, &["gpumon1", "smi1"]);
    until("all have begun", || {
        ssh.near().len() == 4 && ssh.far().len() > 8
    });
    signal("-KILL", server.child.id());
    ssh.assert_nothing_is_left();

    let server = ssh.serve("smi1");
    until_up(&server, &["smi1"]);
    let far = ssh.far();
    let [near] = ssh.near()[..] else {
        panic!("{:?}", ssh.near())
    };
    signal("-KILL", near);
    until("what ran there ends", || {
        ssh.far().iter().all(|pid| !far.contains(pid))
    });
    until("it is connected anew", || {
        ssh.near().iter().any(|pid| *pid != near)
    });
    until_up(&server, &["smi1"]);
}

#[test]
fn a_gpu_that_is_lost_is_told_and_keeps_its_place() {
    let ssh = Sshd::start();
    let server = ssh.serve("smi1");
    until_up(&server, &["smi1"]);
    fs::write(ssh.folder.path().join("bin/smi/lost"), "").unwrap();
    until("it is lost", || {
        fleet(&server)["gpus"]["health"][0] == "not_responding"
    });
    let lost = fleet(&server);
    assert_eq!(
        (&lost["gpus"]["index"][0], &lost["nodes"]["health"][0]),
        (&0.into(), &"up".into())
    );
    assert!(
        lost["gpus"]["readings"]["power.draw_watts"][0].is_null(),
        "{}",
        lost["gpus"]
    );
    let events = server.get("/api/v1/fleet/events").json();
    assert!(
        events["events"].to_string().contains("gpu_not_responding"),
        "{events}"
    );
    fs::remove_file(ssh.folder.path().join("bin/smi/lost")).unwrap();
    until("it is back", || fleet(&server)["gpus"]["health"][0] == "ok");
}

#[test]
fn a_table_of_what_has_answered_is_printed_and_all_ends() {
    let ssh = Sshd::start();
    let output = ssh
        .gpumon("gpumon1,smi1,refuse1", &["--table"])
        .output()
        .unwrap();
    let (told, said) = (stdout(&output), stderr(&output));
    assert!(output.status.success(), "{said}");
    assert!(told.contains("gpumon1") && told.contains("H200"), "{told}");
    assert!(said.contains("refuse1: it refuses connections"), "{said}");
    ssh.assert_nothing_is_left();
    let none = ssh.gpumon("refuse1", &["--table"]).output().unwrap();
    assert_eq!(none.status.code(), Some(1));
    assert!(
        stderr(&none).contains("refuse1: it refuses connections; start"),
        "{}",
        stderr(&none)
    );
}

#[test]
fn table_of_failing_hosts_says_why_for_each() {
    let ssh = Sshd::start();
    let names: Vec<_> = (1..=7)
        .map(|number| format!("refuse{number}"))
        .chain(["locked1".to_owned()])
        .collect();
    let output = ssh.gpumon(&names.join(","), &["--table"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    for name in &names {
        let reasons = said
            .lines()
            .filter(|line| line.contains(&format!("{name}: ")))
            .count();
        assert_eq!(reasons, 1, "{name}: {said}");
    }
    assert!(
        said.contains("refuse7: it refuses connections; start"),
        "{said}"
    );
}
