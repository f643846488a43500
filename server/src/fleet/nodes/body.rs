//! Bodies of nodes' responses, with memory limits.

use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::NodeProblem;

/// The maximum total size of the bodies that are being read or parsed, in bytes.
const MAX_TOTAL_BYTES: usize = 128 << 20;

/// The unit in which memory is reserved, in bytes.
const BLOCK_BYTES: usize = 64 << 10;

/// The maximum number of responses that are parsed simultaneously.
const MAX_PARSERS: usize = 2;

/// Limits on the memory and CPU time for nodes' responses.
#[derive(Debug)]
pub(super) struct BodyLimits {
    blocks: Arc<Semaphore>,
    parsers: Arc<Semaphore>,
}

/// A body together with the memory reserved for it.
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    reserved: Option<OwnedSemaphorePermit>,
}

impl BodyLimits {
    pub(super) fn new() -> Self {
        let blocks = Arc::new(Semaphore::new(MAX_TOTAL_BYTES / BLOCK_BYTES));
        Self {
            blocks,
            parsers: Arc::new(Semaphore::new(MAX_PARSERS)),
        }
    }

    /// Reads a body of at most `longest` bytes.
    ///
    /// # Errors
    /// Returns an error if the body is longer or incomplete, or if too many bodies are being read.
    pub(super) async fn read_body(
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
                * BLOCK_BYTES
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

    /// Waits for permission to parse a response. The permission lasts until the permit is dropped.
    pub(super) async fn acquire_parser(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.parsers).acquire_owned().await.ok()
    }
}
