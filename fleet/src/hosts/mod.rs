//! Monitoring of hosts over ssh.
//!
//! [`HostList`] parses the list of hosts, [`Ssh`] starts the system's `ssh`, and [`far_side`] is
//! the remote command. [`Reader`] converts the remote command's output into records: gpumon's
//! records stay unchanged, and [`smi`] converts nvidia-smi's CSV. [`complaint`] converts ssh's
//! error messages into sentences.

pub mod complaint;
pub mod far_side;
mod list;
mod names;
mod reader;
pub mod smi;
mod ssh;

pub use list::{Host, HostList, HostListError, MOST_HOSTS};
pub use names::{NamesError, expand_names};
pub use reader::{MAX_LINE_BYTES, Progress, Reader};
pub use ssh::Ssh;
