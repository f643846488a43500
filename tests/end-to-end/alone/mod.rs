//! Tests that measure what this machine does in a second. `tools/test.py` runs them alone.

mod activity;
mod many;
mod selftest;
