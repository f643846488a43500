//! A running server's recorded answers, over its local socket.

use std::time::Duration;

use gpumon_probe::model::now_ms;
use gpumon_server::driver_answers::Answers;
use gpumon_smi::{Recorded, Server};

use crate::local::ServerArgs;

/// The time limit for the server's answer. A slower server is not used.
const PATIENCE: Duration = Duration::from_millis(500);

/// The server that the environment names, or else any server of this machine.
pub(super) struct LocalServer;

impl Server for LocalServer {
    fn recorded(&self) -> Option<Recorded> {
        let server = ServerArgs::from_environment().connect().ok()?;
        let answer = server.ask_within(PATIENCE, "GET", "/api/v1/answers").ok()?;
        let answers: Answers = serde_json::from_str(&answer.body).ok()?;
        // A server with simulated GPUs is used only if it was named.
        let (platform, gpus) = answers.fresh(now_ms())?;
        Some(Recorded::new(platform, gpus))
            .filter(|recorded| ServerArgs::is_named() || !recorded.is_simulated())
    }
}
