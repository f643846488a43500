//! Bodies of nodes' responses, with limits on their memory.

use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::NodeProblem;

/// The maximum size of all bodies that are being read or parsed, in bytes.
const LONGEST_TOGETHER: usize = 128 << 20;

/// The unit in which memory is reserved, in bytes.
const BLOCK: usize = 64 << 10;

/// The maximum number of responses that are parsed at the same time.
const PARSERS: usize = 2;

/// Limits on the memory and CPU time for responses of nodes.
#[derive(Debug)]
pub(super) struct Bodies {
    blocks: Arc<Semaphore>,
    parsers: Arc<Semaphore>,
}

/// A body with the memory that is reserved for it.
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    reserved: Option<OwnedSemaphorePermit>,
}

impl Bodies {
    pub(super) fn new() -> Self {
        let blocks = Arc::new(Semaphore::new(LONGEST_TOGETHER / BLOCK));
        Self {
            blocks,
            parsers: Arc::new(Semaphore::new(PARSERS)),
        }
    }

    /// Reads a body of at most `longest` bytes.
    ///
    /// # Errors
    /// Returns an error if the body is longer or incomplete, or if too many bodies are being read.
    pub(super) async fn read(
        &self,
        node: &str,
        mut body: Incoming,
        longest: usize,
    ) -> Result<Body, NodeProblem> {
        let mut read = Body {
            bytes: Vec::new(),
            reserved: None,
        };
        while let Some(frame) = body.frame().await {
            let frame = frame
                .map_err(|error| NodeProblem::NotGpumon(node.to_owned(), error.to_string()))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let length = read.bytes.len() + data.len();
            if length > longest {
                return Err(NodeProblem::TooLong(node.to_owned(), longest));
            }
            while read
                .reserved
                .as_ref()
                .map_or(0, OwnedSemaphorePermit::num_permits)
                * BLOCK
                < length
            {
                let block = Arc::clone(&self.blocks)
                    .try_acquire_owned()
                    .map_err(|_| NodeProblem::TooMany)?;
                match &mut read.reserved {
                    Some(reserved) => reserved.merge(block),
                    None => read.reserved = Some(block),
                }
            }
            read.bytes.extend_from_slice(&data);
        }
        Ok(read)
    }

    /// Waits for the permission to parse a response, which lasts until the permit is dropped.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.parsers).acquire_owned().await.ok()
    }
}
