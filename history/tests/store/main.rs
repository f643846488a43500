//! The history in memory and on disk, and files of it that are damaged, full or of an older
//! program.

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
