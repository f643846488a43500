//! Tests of the library from the point of view of a program that loads it.

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
