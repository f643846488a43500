//! The driver's answers as recorded by a running server, read over the server's local socket.

use std::time::Duration;

use gpumon_probe::model::now_ms;
use gpumon_server::driver_answers::Answers;
use gpumon_smi::{RecordedAnswers, Server};

use crate::local::ServerArgs;

/// The maximum time to wait for the server's response. A slower server is not used.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// The server named in the environment, or any server of this machine.
pub(super) struct LocalServer;

impl Server for LocalServer {
    fn read_answers(&self) -> Option<RecordedAnswers> {
        let server = ServerArgs::from_environment().connect().ok()?;
        let answer = server
            .send_request_within(ANSWER_TIMEOUT, "GET", "/api/v1/answers")
            .ok()?;
        let answers: Answers = serde_json::from_str(&answer.body).ok()?;
        // Simulated GPUs are shown only if the user named their server.
        let (platform, gpus) = answers.into_recent_answers(now_ms())?;
        Some(RecordedAnswers::new(platform, gpus))
            .filter(|recorded| ServerArgs::is_named_in_settings() || !recorded.is_simulated())
    }
}
