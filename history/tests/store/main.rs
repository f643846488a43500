//! Tests of the history in memory and on disk, with files that are damaged or from an older
//! version, and with full disks.

mod damage;
mod database;
mod disks;
mod faults;
mod killed;
mod memory;
mod reference;
mod support;
mod versions;
mod writing;
