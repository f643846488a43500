//! Tests of the history in memory and on disk, including damaged files, files from older versions,
//! and full disks.

mod damage;
mod database;
mod disks;
mod faults;
mod killed;
mod memory;
mod support;
mod versions;
mod writing;
