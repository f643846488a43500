//! Where readings and the past come from: a running server, and for what is now else the driver.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use gpumon_probe::{
    owner::CommandLines,
    vendor::{ReadDepth, Source},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    commands::show::csv::time,
    device_id,
    exit::Failure,
    options::SourceArgs,
    past::PastArgs,
    snapshot::{Need, Snapshot, SourceSelection},
};

pub(super) struct Sources {
    source: SourceArgs,
    past: PastArgs,
    /// The driver, once it was opened: a second time takes as long again, and a simulation would begin anew.
    opened: Mutex<Option<Arc<dyn Source>>>,
}

/// Of when readings are, and where they come from.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Origin {
    /// When they were taken, in UTC.
    at: String,
    /// Who read them.
    read_by: Reader,
    /// Whether no GPU is behind them.
    simulated: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Reader {
    /// A running gpumon server, which also knows the past.
    Server,
    /// This process, once: conditions that need time to be noticed, as idle memory, are not known.
    ThisProcess,
}

impl Sources {
    pub(super) fn new(source: SourceArgs, past: PastArgs) -> Self {
        Self {
            source,
            past,
            opened: Mutex::new(None),
        }
    }

    /// How things are now, without the command lines of others.
    ///
    /// # Errors
    /// Where there is neither a server nor a driver to read.
    pub(super) fn snapshot(
        &self,
        need: Need,
        depth: ReadDepth,
        gpus: Option<&[u32]>,
    ) -> Result<Snapshot, Failure> {
        let mut snapshot = match self.ask(need)? {
            Some(snapshot) => snapshot,
            None => Snapshot::read(&self.open()?, need, depth, CommandLines::Own)?,
        };
        for index in gpus.unwrap_or_default() {
            device_id::find(&index.to_string(), &snapshot.inventory.gpus)?;
        }
        if let Some(gpus) = gpus {
            snapshot.sample.gpus.retain(|gpu| gpus.contains(&gpu.index));
        }
        Ok(snapshot)
    }

    /// What a server tells; `None` where there is none that could.
    fn ask(&self, need: Need) -> Result<Option<Snapshot>, Failure> {
        let at = SourceSelection {
            source: &self.source,
            server: self.past.server(),
            commands: CommandLines::Own,
        };
        Snapshot::from_server(at, need)
    }

    fn open(&self) -> Result<Arc<dyn Source>, Failure> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = &*opened {
            return Ok(Arc::clone(source));
        }
        Ok(Arc::clone(opened.insert(self.source.open()?)))
    }

    /// Where history and usage are asked for.
    ///
    /// # Errors
    /// Where this command says what to read, which no server's past is of.
    pub(super) fn past(&self) -> Result<&PastArgs, Failure> {
        if self.past.is_read_from_disk()
            || self.past.server().is_typed()
            || !self.source.is_read_here()
        {
            return Ok(&self.past);
        }
        Err(anyhow!(
            "the past is known by a server, and `gpumon mcp` was told to read by itself: start it without --source, \
             --nvml-lib and --no-daemon, or with --control SOCKET of a server"
        )
        .into())
    }

    /// Whether no GPU is behind the past; `None` where nobody can tell.
    pub(super) fn is_past_simulated(&self) -> Option<bool> {
        let is_known = !self.past.is_read_from_disk();
        let snapshot = is_known
            .then(|| self.ask(Need::Nothing))
            .transpose()
            .ok()??;
        snapshot.map(|snapshot| snapshot.inventory.platform.is_simulated)
    }
}

impl Origin {
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let read_by = if snapshot.is_single {
            Reader::ThisProcess
        } else {
            Reader::Server
        };
        let simulated = snapshot.inventory.platform.is_simulated;
        Self {
            at: time(snapshot.sample.at_ms),
            read_by,
            simulated,
        }
    }
}
