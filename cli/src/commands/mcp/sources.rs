//! The sources of the tools: a running server for readings and history, or the driver for current
//! readings only.

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
    past::PastArgs,
    snapshot::{Need, Snapshot, SourceSelection},
};

pub(super) struct Sources {
    source: SourceArgs,
    past: PastArgs,
    /// The driver, once it is open. Opening it again would take as long as the first time, and
    /// would restart a simulation.
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
    pub(super) fn snapshot(
        &self,
        need: Need,
        depth: ReadDepth,
        gpus: Option<&[GpuName]>,
    ) -> Result<Snapshot> {
        let mut snapshot = match self.ask(need)? {
            Some(snapshot) => snapshot,
            None => Snapshot::read(&self.open()?, need, depth, CommandLines::Own)?,
        };
        if let Some(names) = gpus {
            let mut wanted = Vec::new();
            for name in names {
                wanted.extend(device_id::find(
                    &name.to_string(),
                    &snapshot.inventory.gpus,
                )?);
            }
            let is_wanted = |index| wanted.iter().any(|id| id.gpu == index);
            snapshot.sample.gpus.retain(|gpu| is_wanted(gpu.index));
        }
        Ok(snapshot)
    }

    /// Returns the indices of GPUs for use in history. An index is accepted even if the GPU no
    /// longer exists.
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
        let snapshot = self.snapshot(Need::Nothing, ReadDepth::OneShot, Some(names))?;
        Ok(snapshot.sample.gpus.iter().map(|gpu| gpu.index).collect())
    }

    /// Takes a snapshot from a server; `None` if no server can provide one.
    fn ask(&self, need: Need) -> Result<Option<Snapshot>> {
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
    /// Returns an error if the arguments of this command select a source, because no server has its
    /// history.
    pub(super) fn past(&self) -> Result<&PastArgs> {
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

    /// Returns `true` if the history is of simulated GPUs; `None` if that is unknown.
    pub(super) fn is_past_simulated(&self) -> Option<bool> {
        let is_known = !self.past.is_read_from_disk();
        let snapshot = is_known
            .then(|| self.ask(Need::Nothing))
            .transpose()
            .ok()??;
        snapshot.map(|snapshot| snapshot.inventory.platform.is_simulated)
    }
}
