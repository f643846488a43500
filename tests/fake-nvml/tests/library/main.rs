//! The library as a program that loads it sees it.

mod answers;
mod asking;
mod buffers;
mod common;
mod contract;
mod details;
mod events;
mod faults;
mod mig;
mod values;
