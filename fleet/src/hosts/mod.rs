//! Hosts that are read over ssh.
//!
//! [`HostList`] parses the list of hosts, [`Ssh`] starts the system's `ssh`, and [`far_side`] is
//! the remote command. [`Reader`] converts its output into records: gpumon's records stay
//! unchanged, and [`smi`] converts nvidia-smi's CSV. [`complaint`] converts ssh's messages into
//! sentences.

pub mod complaint;
pub mod far_side;
mod list;
mod names;
mod reader;
pub mod smi;
mod ssh;

pub use list::{Host, HostList, HostListError, MOST_HOSTS};
pub use names::{NamesError, expand};
pub use reader::{LONGEST_LINE, Progress, Reader};
pub use ssh::Ssh;
