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

use crate::support::{
    FakeNvml, Server, TEST_TIMEOUT, assert_refused, send_signal, send_socket_request,
    wait_for_condition,
};

/// The socket of a service manager.
struct ServiceManager(UnixDatagram);

impl ServiceManager {
    fn new(fake: &FakeNvml) -> Self {
        let socket = UnixDatagram::bind(fake.path("notify")).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        Self(socket)
    }

    fn next_message(&self) -> Option<String> {
        let mut message = [0; 4096];
        let length = self.0.recv(&mut message).ok()?;
        Some(String::from_utf8(message[..length].to_vec()).unwrap())
    }

    #[track_caller]
    fn wait_for_message(&self, words: &str) -> String {
        let (begun, mut reported) = (Instant::now(), String::new());
        while begun.elapsed() < TEST_TIMEOUT {
            let Some(message) = self.next_message() else {
                continue;
            };
            if message.contains(words) {
                return message;
            }
            reported += &message;
        }
        panic!("{words:?} was not sent, but {reported:?}");
    }
}

fn serve_managed(fake: &FakeNvml, arguments: &[&str], watchdog_usec: u64) -> Server {
    let mut command =
        fake.gpumon_command(&[&["serve", "--listen", "127.0.0.1:0"], arguments].concat());
    command
        .env("NOTIFY_SOCKET", fake.path("notify"))
        .env("WATCHDOG_USEC", watchdog_usec.to_string());
    Server::start(command)
}

#[test]
fn service_manager_is_notified_from_start_to_end() {
    let fake = FakeNvml::new("gpus = 2");
    let manager = ServiceManager::new(&fake);
    fs::write(fake.path("alerts.toml"), "").unwrap();
    let alerts = fake.path("alerts.toml");
    let mut server = serve_managed(&fake, &["--alerts", alerts.to_str().unwrap()], 3_000_000);
    manager.wait_for_message("READY=1");
    let status = manager.wait_for_message("STATUS=Monitoring 2 GPUs");
    assert!(status.contains("connection"), "{status}");
    manager.wait_for_message("WATCHDOG=1");
    send_signal("-HUP", server.child.id());
    let reloading = manager.wait_for_message("RELOADING=1");
    assert!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
    manager.wait_for_message("READY=1");
    let (ended, _) = server.terminate();
    assert!(ended.success());
    manager.wait_for_message("STOPPING=1");
}

#[test]
fn driver_problems_do_not_trigger_watchdog() {
    let fake = FakeNvml::new("gpus = 1\n[[fault]]\ngpu = 0\nkind = \"hang\"\nfrom_s = 1.0\n");
    let manager = ServiceManager::new(&fake);
    let _server = serve_managed(&fake, &[], 3_000_000);
    manager.wait_for_message("READY=1");
    manager.wait_for_message("WATCHDOG=1");
    // The test runs longer than the watchdog's time limit. It checks that the time between two
    // notifications is always below this limit.
    let (begun, mut last, mut latest) = (Instant::now(), Instant::now(), Duration::ZERO);
    while begun.elapsed() < Duration::from_secs(9) {
        if manager
            .next_message()
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

    let without = FakeNvml::new("gpus = 1");
    let manager = ServiceManager::new(&without);
    let mut command = without.gpumon_command(&["serve", "--listen", "127.0.0.1:0"]);
    command
        .env("NOTIFY_SOCKET", without.path("notify"))
        .env("WATCHDOG_USEC", "3000000");
    command.env("GPUMON_NVML_LIB", "/nowhere/libnvidia-ml.so.1");
    let _server = Server::start(command);
    let status = manager.wait_for_message("STATUS=cannot load");
    assert!(status.contains("/nowhere"), "{status}");
    manager.wait_for_message("WATCHDOG=1");
}

/// Returns the command of a server that receives a socket in the same way as from systemd: as
/// descriptor 3, and with the server's own PID in `LISTEN_PID`.
fn socket_activated_command(fake: &FakeNvml, listener: UnixListener) -> Command {
    let gpumon = fake.gpumon_command(&["serve", "--listen", "127.0.0.1:0"]);
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

fn bind_socket(path: &Path, mode: u32) -> UnixListener {
    let listener = UnixListener::bind(path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    listener
}

#[test]
fn systemd_sockets_limit_access_and_outlive_server() {
    let fake = FakeNvml::new("gpus = 1");
    for (name, mode, status) in [("public.sock", 0o666, 403), ("gpumon.sock", 0o600, 200)] {
        let socket = fake.path(name);
        let listener = bind_socket(&socket, mode);
        let kept = listener.try_clone().unwrap();
        let mut server = Server::start(socket_activated_command(&fake, listener));
        wait_for_condition("the server answers on the socket", || {
            send_socket_request(&socket, "GET /readyz").status == 200
        });
        assert_eq!(
            send_socket_request(&socket, "POST /api/v1/pause").status,
            status,
            "{name}"
        );
        let (ended, _) = server.terminate();
        assert!(
            ended.success() && socket.exists(),
            "the socket belongs to the service manager, so the server must not remove it"
        );
        // A client that connects while no server is running is served by the next server.
        let waiting = std::thread::spawn({
            let socket = socket.clone();
            move || send_socket_request(&socket, "GET /healthz").status
        });
        let _server = Server::start(socket_activated_command(&fake, kept));
        assert_eq!(waiting.join().unwrap(), 200);
    }
}

#[test]
fn unsuitable_systemd_socket_is_refused() {
    let fake = FakeNvml::new("gpus = 1");
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command =
        socket_activated_command(&fake, bind_socket(&fake.path("unused.sock"), 0o600));
    command.stdin(Stdio::from(OwnedFd::from(tcp)));
    assert_refused(command, 2, "--listen");
}
