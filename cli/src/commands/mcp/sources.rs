//! The data sources of the MCP tools: a running server for readings and history, or the driver for
//! current readings only.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use gpumon_probe::{
    model::GpuName,
    owner::CommandLines,
    vendor::{ReadDepth, Source},
};

use crate::{
    device_id,
    exit::Result,
    options::SourceArgs,
    past_readings::PastArgs,
    snapshot::{Snapshot, SnapshotContents, SourceSelection},
};

pub(super) struct Sources {
    source: SourceArgs,
    past: PastArgs,
    /// The driver, once it has been opened. It is kept open, because opening it again would be slow
    /// and would restart a simulation.
    opened: Mutex<Option<Arc<dyn Source>>>,
}

impl Sources {
    pub(super) fn new(source: SourceArgs, past: PastArgs) -> Self {
        Self {
            source,
            past,
            opened: Mutex::new(None),
        }
    }

    /// Returns the current state, without command lines of other users.
    ///
    /// # Errors
    /// Returns an error if neither a server nor a driver can be read.
    pub(super) fn take_snapshot(
        &self,
        need: SnapshotContents,
        depth: ReadDepth,
        gpus: Option<&[GpuName]>,
    ) -> Result<Snapshot> {
        let mut snapshot = match self.request_server_snapshot(need)? {
            Some(snapshot) => snapshot,
            None => Snapshot::read_in_process(&self.open()?, need, depth, CommandLines::Own)?,
        };
        if let Some(names) = gpus {
            let mut wanted = Vec::new();
            for name in names {
                wanted.extend(device_id::find_device(
                    &name.to_string(),
                    &snapshot.inventory.gpus,
                )?);
            }
            let is_wanted = |index| wanted.iter().any(|id| id.gpu == index);
            snapshot.sample.gpus.retain(|gpu| is_wanted(gpu.index));
        }
        Ok(snapshot)
    }

    /// Returns the indices of the named GPUs, because history identifies GPUs by index. If all
    /// names are indices, they are returned even if the GPUs no longer exist.
    ///
    /// # Errors
    /// Returns an error if a name matches no GPU, or if the GPUs cannot be read.
    pub(super) fn find_indices(&self, names: &[GpuName]) -> Result<Vec<u32>> {
        let indices = names.iter().map(|name| match name {
            GpuName::Index(index) => Some(*index),
            _ => None,
        });
        if let Some(indices) = indices.collect() {
            return Ok(indices);
        }
        let snapshot =
            self.take_snapshot(SnapshotContents::Nothing, ReadDepth::OneShot, Some(names))?;
        Ok(snapshot.sample.gpus.iter().map(|gpu| gpu.index).collect())
    }

    /// Requests a snapshot from a server. Returns `None` if no server can provide one.
    fn request_server_snapshot(&self, need: SnapshotContents) -> Result<Option<Snapshot>> {
        let at = SourceSelection {
            source: &self.source,
            server: self.past.server(),
            commands: CommandLines::Own,
        };
        Snapshot::from_server(at, need)
    }

    fn open(&self) -> Result<Arc<dyn Source>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = &*opened {
            return Ok(Arc::clone(source));
        }
        Ok(Arc::clone(opened.insert(self.source.open()?)))
    }

    /// Returns the source of history and usage.
    ///
    /// # Errors
    /// Returns an error if the command's arguments select a source of readings. No server records
    /// the history of this source.
    pub(super) fn history_source(&self) -> Result<&PastArgs> {
        if self.past.reads_from_disk()
            || self.past.server().is_typed()
            || !self.source.bypasses_server()
        {
            return Ok(&self.past);
        }
        Err(anyhow!(
            "history is available only from a server, but `gpumon mcp` was started to read the \
             driver directly: start `gpumon mcp` without --source, --nvml-lib and --no-daemon, or \
             use a server with --control SOCKET"
        )
        .into())
    }

    /// Returns `true` if the history belongs to simulated GPUs, or `None` if this is unknown.
    pub(super) fn is_history_simulated(&self) -> Option<bool> {
        let is_known = !self.past.reads_from_disk();
        let snapshot = is_known
            .then(|| self.request_server_snapshot(SnapshotContents::Nothing))
            .transpose()
            .ok()??;
        snapshot.map(|snapshot| snapshot.inventory.platform.is_simulated)
    }
}
