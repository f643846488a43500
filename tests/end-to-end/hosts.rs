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

use crate::support::{
    Server, Stream, TEST_TIMEOUT, Tty, gpumon_command, send_request_line, send_signal, stderr_text,
    stdout_text,
};

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The number of ports, one for each kind of host. The last one refuses connections.
const PORT_COUNT: u16 = 9;

/// The maximum number of attempts to find free ports.
const MAX_ATTEMPTS: u32 = 5;

/// A running sshd, and the configuration with which ssh finds it.
struct Sshd {
    folder: TempDir,
    sshd: Child,
}

impl Sshd {
    fn start() -> Self {
        let started = (0..MAX_ATTEMPTS).find_map(|_| Self::try_start());
        started.expect("sshd must be able to listen on free ports")
    }

    /// Starts sshd. Returns `None` if another program has taken a port.
    fn try_start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts/sshd.sh");
        let first = find_free_ports();
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
            .expect("ssh and sshd must be installed: run `tools/need.py sshd`");
        let this = Self { folder, sshd };
        let read_log = || fs::read_to_string(this.folder.path().join("log")).unwrap();
        let is_refused = || read_log().contains("Address already in use");
        // sshd logs this for each port before it accepts connections there.
        wait_until("sshd listens", || {
            read_log().matches("Server listening").count() == usize::from(PORT_COUNT - 1)
                || is_refused()
        });
        (!is_refused()).then_some(this)
    }

    fn config_path(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    fn fleet_command(&self, hosts: &str, arguments: &[&str]) -> Command {
        let config = self.config_path();
        gpumon_command(
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
        Server::start(self.fleet_command(hosts, &["--listen", "127.0.0.1:0"]))
    }

    /// Returns the local ssh processes for these hosts.
    fn ssh_pids(&self) -> Vec<u32> {
        let config = self.config_path();
        let config = config.to_str().unwrap();
        find_pids(|pid| {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let arguments = String::from_utf8_lossy(&arguments).into_owned();
            arguments.contains(config) && !arguments.contains("--ssh-config")
        })
    }

    /// Returns the processes on the hosts, which also run on this machine.
    fn remote_pids(&self) -> Vec<u32> {
        let mark = format!("GPUMON_TEST_FOLDER={}", self.folder.path().display());
        find_pids(|pid| {
            let variables = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            variables
                .split(|byte| *byte == 0)
                .any(|variable| variable == mark.as_bytes())
        })
    }

    fn assert_no_processes_are_left(&self) {
        wait_until(
            &format!(
                "all end: near {:?}, far {:?}",
                self.ssh_pids(),
                self.remote_pids()
            ),
            || self.ssh_pids().is_empty() && self.remote_pids().is_empty(),
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
fn find_free_ports() -> u16 {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    loop {
        let first = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        if first < u16::MAX - PORT_COUNT && (first..first + PORT_COUNT).all(|port| is_free(&port)) {
            return first;
        }
    }
}

fn find_pids(is_it: impl Fn(u32) -> bool) -> Vec<u32> {
    let entries = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    entries.filter(|pid| is_it(*pid)).collect()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < TEST_TIMEOUT, "{what}");
        sleep(POLL_INTERVAL);
    }
}

fn get_fleet(server: &Server) -> Value {
    server.get("/api/v1/fleet").json()
}

fn running_node_names(fleet: &Value) -> Vec<String> {
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
fn node_index_health_and_reason(fleet: &Value, name: &str) -> (usize, String, String) {
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
fn wait_until_up(server: &Server, names: &[&str]) -> Value {
    let mut last = Value::Null;
    wait_until(&format!("{names:?} are up"), || {
        last = get_fleet(server);
        let up = running_node_names(&last);
        assert!(
            up.iter().all(|name| names.contains(&name.as_str())),
            "{up:?}"
        );
        up.len() == names.len()
    });
    last
}

#[test]
fn failing_hosts_do_not_block_other_hosts() {
    let ssh = Sshd::start();
    let mut server = ssh.serve(
        "gpumon[1-3],smi1,sim1,missing1,hang1,stuck1,babble1,die1,refuse1,stranger1,locked1",
    );
    let good = ["gpumon1", "gpumon2", "gpumon3", "sim1", "smi1"];
    let reported = wait_until_up(&server, &good);
    assert_eq!(
        (&reported["state"], &reported["source"]["kind"]),
        (&"partial".into(), &"hosts".into())
    );
    assert_eq!(reported["gpus"]["node"].as_array().unwrap().len(), 9);
    // The command must not wait for these hosts.
    for name in ["hang1", "stuck1"] {
        assert_ne!(node_index_health_and_reason(&reported, name).1, "up");
    }
    for (name, reason) in [
        (
            "missing1",
            "neither gpumon nor nvidia-smi was found; install gpumon",
        ),
        (
            "babble1",
            "the host sent output that is not from gpumon; make sure that the login shell",
        ),
        ("die1", "and then the power failed"),
        (
            "refuse1",
            "the host refuses ssh connections; start the ssh server",
        ),
        ("stranger1", "the host key is unknown; connect once"),
        (
            "locked1",
            "the host accepts none of the available ssh keys; add a key",
        ),
    ] {
        wait_until(&format!("{name} reports the reason"), || {
            node_index_health_and_reason(&get_fleet(&server), name)
                .2
                .contains(reason)
        });
    }
    assert_eq!(
        node_index_health_and_reason(&get_fleet(&server), "missing1").1,
        "no_readings"
    );
    assert_eq!(
        node_index_health_and_reason(&get_fleet(&server), "locked1").1,
        "unreachable"
    );
    let (status, took) = server.terminate();
    assert!(status.success(), "{status}");
    assert!(took < TEST_TIMEOUT, "{took:?}");
    ssh.assert_no_processes_are_left();
}

#[tokio::test]
async fn host_is_served_under_its_name() {
    let ssh = Sshd::start();
    let server = ssh.serve("gpumon1,smi1");
    let reported = wait_until_up(&server, &["gpumon1", "smi1"]);
    assert_eq!(reported["state"], "current");
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
    wait_until("the process of the host is listed", || {
        processes(&server) == 1
    });
    let mut stream = Stream::connect_with(format!(
        "ws://localhost:{}/nodes/gpumon1/api/v1/stream",
        server.port
    ))
    .await;
    let hello = stream.next_frame().await.unwrap();
    assert_eq!(
        (
            &hello["type"],
            hello["inventory"]["gpus"].as_array().unwrap().len()
        ),
        (&"hello".into(), 2)
    );
    assert_eq!(
        hello["inventory"]["platform"]["source"], "simulated",
        "the greeting also reports the source"
    );
    loop {
        let frame = stream.next_frame().await.unwrap();
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
        let refused = send_request_line(server.port, request);
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
    let owners = get_fleet(&server)["owners"].to_string();
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
fn host_view_in_terminal_leaves_no_processes() {
    let ssh = Sshd::start();
    let config = ssh.config_path();
    let hosts = [
        "--ssh-config",
        config.to_str().unwrap(),
        "--hosts",
        "gpumon1,refuse1",
    ];
    let mut command = gpumon_command(&[&["top", "--fleet"], &hosts[..]].concat());
    command
        .env("TERM", "xterm-256color")
        .env("LC_ALL", "C.UTF-8")
        .env_remove("NO_COLOR");
    let mut terminal = Tty::start(&command, 110, 30);
    terminal.wait_for_text("refuses ssh connections");
    terminal.wait_for_text("GiB");
    terminal.press("sg\r");
    terminal.wait_for_text("live from node");
    terminal.press("q");
    terminal.wait_for_text("sorted by name");
    terminal.press("q");
    assert!(terminal.wait_for_end().success());
    ssh.assert_no_processes_are_left();
}

#[test]
fn killed_server_or_ssh_leaves_no_processes() {
    let ssh = Sshd::start();
    let hosts = "gpumon1,smi1,hang1,stuck1";
    let server = ssh.serve(hosts);
    wait_until_up(&server, &["gpumon1", "smi1"]);
    wait_until("the programs have started on all hosts", || {
        ssh.ssh_pids().len() == 4 && ssh.remote_pids().len() > 8
    });
    send_signal("-KILL", server.child.id());
    ssh.assert_no_processes_are_left();

    let server = ssh.serve("smi1");
    wait_until_up(&server, &["smi1"]);
    let far = ssh.remote_pids();
    let [near] = ssh.ssh_pids()[..] else {
        panic!("{:?}", ssh.ssh_pids())
    };
    send_signal("-KILL", near);
    wait_until("the programs on the host have ended", || {
        ssh.remote_pids().iter().all(|pid| !far.contains(pid))
    });
    wait_until("the host is connected again", || {
        ssh.ssh_pids().iter().any(|pid| *pid != near)
    });
    wait_until_up(&server, &["smi1"]);
}

#[test]
fn lost_gpu_of_host_keeps_its_index() {
    let ssh = Sshd::start();
    let server = ssh.serve("smi1");
    wait_until_up(&server, &["smi1"]);
    fs::write(ssh.folder.path().join("bin/smi/lost"), "").unwrap();
    wait_until("the GPU is reported as lost", || {
        get_fleet(&server)["gpus"]["health"][0] == "not_responding"
    });
    let lost = get_fleet(&server);
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
    wait_until("the GPU responds again", || {
        get_fleet(&server)["gpus"]["health"][0] == "ok"
    });
}

#[test]
fn table_lists_responding_hosts_and_leaves_no_processes() {
    let ssh = Sshd::start();
    let output = ssh
        .fleet_command("gpumon1,smi1,refuse1", &["--table"])
        .output()
        .unwrap();
    let (reported, said) = (stdout_text(&output), stderr_text(&output));
    assert!(output.status.success(), "{said}");
    assert!(
        reported.contains("gpumon1") && reported.contains("H200"),
        "{reported}"
    );
    assert!(
        said.contains("refuse1: the host refuses ssh connections"),
        "{said}"
    );
    ssh.assert_no_processes_are_left();
    let none = ssh.fleet_command("refuse1", &["--table"]).output().unwrap();
    assert_eq!(none.status.code(), Some(1));
    assert!(
        stderr_text(&none).contains("refuse1: the host refuses ssh connections; start"),
        "{}",
        stderr_text(&none)
    );
}

#[test]
fn table_of_failing_hosts_has_reasons() {
    let ssh = Sshd::start();
    let names: Vec<_> = (1..=7)
        .map(|number| format!("refuse{number}"))
        .chain(["locked1".to_owned()])
        .collect();
    let output = ssh
        .fleet_command(&names.join(","), &["--table"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = stderr_text(&output);
    for name in &names {
        let reasons = said
            .lines()
            .filter(|line| line.contains(&format!("{name}: ")))
            .count();
        assert_eq!(reasons, 1, "{name}: {said}");
    }
    assert!(
        said.contains("refuse7: the host refuses ssh connections; start"),
        "{said}"
    );
}
