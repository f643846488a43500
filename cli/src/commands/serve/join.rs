//! One probe per machine: whom this server joins, and who may join it.

use std::path::PathBuf;

use clap::builder::{FalseyValueParser, OsStringValueParser, TypedValueParser};
use gpumon_server::{
    join::JoinSettings,
    listen::{ListenError, Listener},
    local,
};

use crate::options::{SamplingArgs, SourceArgs};

/// Which readings are shared.
#[derive(Debug, clap::Args)]
pub(super) struct JoinArgs {
    /// Also listen on a unix socket that every user of this machine may read from; their own servers join it
    #[arg(long, env = "GPUMON_SHARED_SOCKET", value_name = "PATH", value_parser = path())]
    shared_socket: Option<PathBuf>,

    /// Shared socket of another server to join: its readings and history are shown while it is there, and the GPUs are read
    /// here while it is not
    #[arg(long, env = "GPUMON_JOIN", value_name = "PATH", default_value = local::SHARED, value_parser = path())]
    join: PathBuf,

    /// Always read the GPUs with a collector of this server's own
    #[arg(long, env = "GPUMON_NO_JOIN", value_parser = FalseyValueParser::new())]
    no_join: bool,
}

impl JoinArgs {
    /// The socket for other users. A variable that is set to nothing names none.
    pub(super) async fn shared(&self) -> Result<Option<Listener>, ListenError> {
        match self
            .shared_socket
            .as_ref()
            .filter(|path| !path.as_os_str().is_empty())
        {
            Some(path) => Listener::shared(path).await.map(Some),
            None => Ok(None),
        }
    }

    /// The server to join. One that others join is none that joins, and a command that says what to read means that.
    pub(super) fn settings(
        &self,
        source: &SourceArgs,
        sampling: &SamplingArgs,
        is_shared: bool,
    ) -> Option<JoinSettings> {
        let is_named = !self.join.as_os_str().is_empty();
        let joins = is_named && !self.no_join && !is_shared && !source.is_read_here();
        joins.then(|| JoinSettings {
            socket: self.join.clone(),
            proc_root: sampling.procfs().to_owned(),
        })
    }
}

/// A variable may be set to nothing.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}
