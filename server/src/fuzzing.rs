//! Entry points for fuzzing with external input.

use std::{path::PathBuf, sync::Arc, time::Duration};

use axum::Router;
use gpumon_probe::model::Record;
use gpumon_workload::parent::WorkerCommand;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    runtime::Runtime,
    sync::watch,
    time::timeout,
};
use tokio_util::either::Either;

use crate::{
    alerts::{AlertSettings, Alerts},
    app::{AppState, Encoders},
    auth::{Doors, RatePerClient},
    connections::{self, Arrival, ConnectionTable},
    control::Control,
    guard::Access,
    hub::Hub,
    live::Live,
    peer::Peer,
    routes,
    runs::{RunSettings, Runs},
    sampling_interval::SamplingInterval,
    view::ShowProcesses,
};

/// The time limit for the rest of the responses and the end of the connection after a client has
/// stopped sending.
const LONGEST: Duration = Duration::from_secs(5);

/// The process of another user, so that nothing is paused or started.
const STRANGER: Peer = Peer::Socket { uid: Some(65_533) };

/// Decodes a line of a collector in the same way as the server.
pub fn record(line: &str) {
    let _ = Record::decode(line);
}

/// Parses a web configuration.
pub fn web_config(text: &str) {
    crate::web_config::fuzz(text);
}

/// Parses the response of a kubelet, without the HTTP/2 around it.
pub fn kubelet_answer(answer: &[u8]) {
    crate::kubernetes::fuzz(answer);
}

/// Parses the response of a fleet's node. The first byte chooses the route.
///
/// # Panics
/// Panics if the serialized response is not parsed to the same value.
pub fn node_answer(answer: &[u8]) {
    crate::fleet::nodes::answer::fuzz(answer);
}

/// A server without a listener, which receives its clients directly.
pub struct Server {
    runtime: Runtime,
    table: Arc<ConnectionTable>,
    /// The routes of a port and those of a unix socket.
    routers: [Router; 2],
    stopped: watch::Receiver<bool>,
    _stop: watch::Sender<bool>,
}

impl Server {
    /// Creates a server that has received these lines of a collector.
    ///
    /// # Panics
    /// Panics if the system refuses a resource.
    pub fn new(lines: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let (stop, stopped) = watch::channel(false);
        let hub = Arc::new(Hub::new());
        for line in lines.lines() {
            hub.ingest(line).expect("a record");
        }
        let settings = RunSettings {
            worker: WorkerCommand {
                program: PathBuf::new(),
                arguments: Vec::new(),
            },
        };
        let app = AppState {
            alerts: Arc::new(Alerts::new(
                Arc::clone(&hub),
                &AlertSettings::default(),
                crate::watching::Watching::new(),
            )),
            runs: Arc::new(Runs::new(settings, Arc::clone(&hub), stopped.clone())),
            hub,
            replay: None,
            fleet: None,
            reads_gpus: true,
            event_limit: Arc::new(RatePerClient::new()),
            sampling_interval: SamplingInterval::new(Duration::from_secs(1)),
            watching: crate::watching::Watching::new(),
            control: Arc::new(Control::new()),
            encoders: Arc::new(Encoders::new()),
            live: Live {
                process_metrics: true,
                ..Live::default()
            }
            .fixed(),
            doors: Arc::new(Doors::none()),
            show_processes: ShowProcesses::Names,
            stopped: stopped.clone(),
        };
        let routers = [Access::Port, Access::Socket]
            .map(|access| routes::protected(routes::everything(&app), app.clone(), access));
        Self {
            runtime,
            table: ConnectionTable::new(),
            routers,
            stopped,
            _stop: stop,
        }
    }

    /// Returns the bytes that a client receives after sending `request` and closing its output.
    ///
    /// # Panics
    /// Panics if the connection does not end.
    pub fn answer(&self, on_port: bool, request: &[u8]) -> Vec<u8> {
        let router = self.routers[usize::from(!on_port)].clone();
        self.runtime.block_on(async {
            let (client, server) = UnixStream::pair().expect("two sockets");
            let slot = self.table.admit(STRANGER.who()).expect("a slot");
            let server = Either::Right(server);
            let arrival = Arrival::new(STRANGER, None);
            tokio::spawn(connections::connection(
                server,
                arrival,
                slot,
                router,
                self.stopped.clone(),
            ));
            let (mut output, mut input) = client.into_split();
            let (mut answer, mut sent) = (Vec::new(), Ok(()));
            let talk = async {
                // Requests are written and responses read at the same time, because the server does
                // not continue while its output is not read.
                let write = async {
                    sent = input.write_all(request).await;
                    drop(input);
                };
                tokio::join!(write, output.read_to_end(&mut answer)).1
            };
            let ended = timeout(LONGEST, talk).await;
            assert!(
                ended.is_ok(),
                "the connection does not end; it was sent {sent:?}, and said {answer:?}"
            );
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    /// Seeds that are not valid records would not reach the code to be fuzzed.
    #[test]
    fn seeds_are_what_a_collector_tells() {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/seeds");
        let files = ["record", "replay"]
            .iter()
            .flat_map(|folder| fs::read_dir(seeds.join(folder)).unwrap());
        let mut lines = 0;
        let is_whole =
            |file: &PathBuf| !file.ends_with("blocks.gz") && !file.ends_with("cut.ndjson");
        for file in files.map(|file| file.unwrap().path()).filter(is_whole) {
            for line in fs::read_to_string(&file).unwrap().lines() {
                Record::decode(line).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
                lines += 1;
            }
        }
        assert!(lines > 30, "{lines}");
    }
}
