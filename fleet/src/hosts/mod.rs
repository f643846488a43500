//! Hosts that are read over ssh.
//!
//! [`HostList`] is which, as they were typed, [`Ssh`] how the system's `ssh` is started,
//! [`far_side`] what it runs there, and [`Reader`] makes records of what comes back: those of
//! gpumon as they are, and [`smi`] those of nvidia-smi's CSV. [`complaint`] makes sentences of what
//! ssh says.

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
