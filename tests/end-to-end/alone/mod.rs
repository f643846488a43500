//! Tests that depend on the speed of this machine. `tools/test.py` runs them last.

mod activity;
mod many;
mod selftest;
