//! Tests that measure what this machine does in a second. `tools/test.py` runs them last.

mod activity;
mod many;
mod selftest;
