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
    auth::{AccessPolicy, RatePerClient},
    connections::{self, Arrival, ConnectionTable},
    guard::Access,
    hub::Hub,
    live_settings::LiveSettings,
    peer::Peer,
    routes,
    runs::{RunSettings, Runs},
    sampling::SamplingInterval,
    supervisor::PauseControl,
    view::ShowProcesses,
};

/// The time limit for receiving the remaining responses and closing the connection, after the
/// client has stopped sending.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A client that belongs to a user other than the server's own, so that its requests cannot pause
/// or start anything.
const STRANGER: Peer = Peer::Socket { uid: Some(65_533) };

/// Decodes a collector's line in the same way as the server.
pub fn decode_record(line: &str) {
    let _ = Record::decode(line);
}

/// Parses a web configuration.
pub fn parse_web_config(text: &str) {
    crate::web_config::fuzz_config(text);
}

/// Parses a kubelet's response, without the HTTP/2 framing.
pub fn parse_kubelet_response(answer: &[u8]) {
    crate::kubernetes::fuzz_response(answer);
}

/// Parses the response of a fleet's node. The first byte selects the route.
///
/// # Panics
/// Panics if parsing the serialized response does not return the same value.
pub fn parse_node_response(answer: &[u8]) {
    crate::fleet::nodes::response::fuzz_response(answer);
}

/// A server without a listener. Fuzz targets pass requests to it directly.
pub struct Server {
    runtime: Runtime,
    table: Arc<ConnectionTable>,
    /// The routers for a port and for a Unix socket.
    routers: [Router; 2],
    stopped: watch::Receiver<bool>,
    _stop: watch::Sender<bool>,
}

impl Server {
    /// Creates a server that has received these collector lines.
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
                crate::sampling::ViewerCounter::new(),
            )),
            runs: Arc::new(Runs::new(settings, Arc::clone(&hub), stopped.clone())),
            hub,
            replay: None,
            fleet: None,
            reads_gpus: true,
            event_limit: Arc::new(RatePerClient::new()),
            sampling_interval: SamplingInterval::new(Duration::from_secs(1)),
            watching: crate::sampling::ViewerCounter::new(),
            control: Arc::new(PauseControl::new()),
            encoders: Arc::new(Encoders::new()),
            live: LiveSettings {
                process_metrics: true,
                ..LiveSettings::default()
            }
            .into_constant_receiver(),
            policy: Arc::new(AccessPolicy::allow_all()),
            show_processes: ShowProcesses::Names,
            stopped: stopped.clone(),
        };
        let routers = [Access::Port, Access::Socket]
            .map(|access| routes::add_protection(routes::all_routes(&app), app.clone(), access));
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
    pub fn respond(&self, on_port: bool, request: &[u8]) -> Vec<u8> {
        let router = self.routers[usize::from(!on_port)].clone();
        self.runtime.block_on(async {
            let (client, server) = UnixStream::pair().expect("two sockets");
            let slot = self.table.admit(STRANGER.key()).expect("a slot");
            let server = Either::Right(server);
            let arrival = Arrival::new(STRANGER, None);
            tokio::spawn(connections::serve_connection(
                server,
                arrival,
                slot,
                router,
                self.stopped.clone(),
            ));
            let (mut output, mut input) = client.into_split();
            let (mut answer, mut sent) = (Vec::new(), Ok(()));
            let talk = async {
                // Requests are written while responses are read, because the server stops reading
                // requests as long as nobody reads its output.
                let write = async {
                    sent = input.write_all(request).await;
                    drop(input);
                };
                tokio::join!(write, output.read_to_end(&mut answer)).1
            };
            let ended = timeout(RESPONSE_TIMEOUT, talk).await;
            assert!(
                ended.is_ok(),
                "the connection did not end; sent {sent:?}, received {answer:?}"
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
    fn fuzzing_seeds_are_collector_records() {
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
