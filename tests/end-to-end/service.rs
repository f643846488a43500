//! Sockets that a service manager passes to a server, and notifications from the server.

use std::{
    fs,
    os::{
        fd::OwnedFd,
        unix::{
            fs::PermissionsExt,
            net::{UnixDatagram, UnixListener},
        },
    },
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::support::{Fake, PATIENCE, Server, ask_socket, eventually, refused, signal};

/// The socket of a service manager.
struct Manager(UnixDatagram);

impl Manager {
    fn new(fake: &Fake) -> Self {
        let socket = UnixDatagram::bind(fake.path("notify")).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        Self(socket)
    }

    fn next(&self) -> Option<String> {
        let mut message = [0; 4096];
        let length = self.0.recv(&mut message).ok()?;
        Some(String::from_utf8(message[..length].to_vec()).unwrap())
    }

    #[track_caller]
    fn until(&self, words: &str) -> String {
        let (begun, mut told) = (Instant::now(), String::new());
        while begun.elapsed() < PATIENCE {
            let Some(message) = self.next() else { continue };
            if message.contains(words) {
                return message;
            }
            told += &message;
        }
        panic!("{words:?} was not told, but {told:?}");
    }
}

fn managed(fake: &Fake, arguments: &[&str], watchdog_usec: u64) -> Server {
    let mut command = fake.gpumon(&[&["serve", "--listen", "127.0.0.1:0"], arguments].concat());
    command
        .env("NOTIFY_SOCKET", fake.path("notify"))
        .env("WATCHDOG_USEC", watchdog_usec.to_string());
    Server::start(command)
}

#[test]
fn a_service_manager_is_told_from_the_start_to_the_end() {
    let fake = Fake::new("gpus = 2");
    let manager = Manager::new(&fake);
    fs::write(fake.path("alerts.toml"), "").unwrap();
    let alerts = fake.path("alerts.toml");
    let mut server = managed(&fake, &["--alerts", alerts.to_str().unwrap()], 3_000_000);
    manager.until("READY=1");
    let status = manager.until("STATUS=Monitoring 2 GPUs");
    assert!(status.contains("connection"), "{status}");
    manager.until("WATCHDOG=1");
    signal("-HUP", server.child.id());
    let reloading = manager.until("RELOADING=1");
    assert!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
    manager.until("READY=1");
    let (ended, _) = server.terminate();
    assert!(ended.success());
    manager.until("STOPPING=1");
}

#[test]
fn a_driver_that_hangs_or_is_missing_is_told_and_is_no_reason_to_restart_the_server() {
    let fake = Fake::new("gpus = 1\n[[fault]]\ngpu = 0\nkind = \"hang\"\nfrom_s = 1.0\n");
    let manager = Manager::new(&fake);
    let _server = managed(&fake, &[], 3_000_000);
    manager.until("READY=1");
    manager.until("WATCHDOG=1");
    // The test waits longer than the watchdog's limit. Each notification must arrive in time.
    let (begun, mut last, mut latest) = (Instant::now(), Instant::now(), Duration::ZERO);
    while begun.elapsed() < Duration::from_secs(9) {
        if manager
            .next()
            .is_some_and(|message| message.contains("WATCHDOG=1"))
        {
            latest = latest.max(last.elapsed());
            last = Instant::now();
        }
    }
    assert!(
        latest < Duration::from_secs(3) && last.elapsed() < Duration::from_secs(3),
        "{latest:?}"
    );

    let without = Fake::new("gpus = 1");
    let manager = Manager::new(&without);
    let mut command = without.gpumon(&["serve", "--listen", "127.0.0.1:0"]);
    command
        .env("NOTIFY_SOCKET", without.path("notify"))
        .env("WATCHDOG_USEC", "3000000");
    command.env("GPUMON_NVML_LIB", "/nowhere/libnvidia-ml.so.1");
    let _server = Server::start(command);
    let status = manager.until("STATUS=cannot load");
    assert!(status.contains("/nowhere"), "{status}");
    manager.until("WATCHDOG=1");
}

/// Returns a server that receives a socket in the same way as from systemd: as descriptor 3, for
/// this very process.
fn activated(fake: &Fake, listener: UnixListener) -> Command {
    let gpumon = fake.gpumon(&["serve", "--listen", "127.0.0.1:0"]);
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" \"$@\"",
    ]);
    command.arg(gpumon.get_program()).args(gpumon.get_args());
    for (name, value) in gpumon
        .get_envs()
        .filter(|(name, _)| *name != "GPUMON_CONTROL")
    {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .env_remove("GPUMON_CONTROL")
        .stdin(Stdio::from(OwnedFd::from(listener)));
    command
}

fn bound(path: &Path, mode: u32) -> UnixListener {
    let listener = UnixListener::bind(path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    listener
}

#[test]
fn sockets_of_a_service_manager_outlive_the_server_and_who_may_open_them_decides_what_they_are_for()
{
    let fake = Fake::new("gpus = 1");
    for (name, mode, status) in [("public.sock", 0o666, 403), ("gpumon.sock", 0o600, 200)] {
        let socket = fake.path(name);
        let listener = bound(&socket, mode);
        let kept = listener.try_clone().unwrap();
        let mut server = Server::start(activated(&fake, listener));
        eventually("it answers there", || {
            ask_socket(&socket, "GET /readyz").status == 200
        });
        assert_eq!(
            ask_socket(&socket, "POST /api/v1/pause").status,
            status,
            "{name}"
        );
        let (ended, _) = server.terminate();
        assert!(
            ended.success() && socket.exists(),
            "it is the service manager's"
        );
        // A client that connects in the meantime is served by the next server.
        let waiting = std::thread::spawn({
            let socket = socket.clone();
            move || ask_socket(&socket, "GET /healthz").status
        });
        let _server = Server::start(activated(&fake, kept));
        assert_eq!(waiting.join().unwrap(), 200);
    }
}

#[test]
fn a_socket_that_cannot_be_served_is_refused() {
    let fake = Fake::new("gpus = 1");
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = activated(&fake, bound(&fake.path("unused.sock"), 0o600));
    command.stdin(Stdio::from(OwnedFd::from(tcp)));
    refused(command, 2, "--listen");
}
