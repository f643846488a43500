//! Tests that mostly wait. They run in parallel, so that all of them take no longer than the
//! longest.

use std::thread;

use crate::{calls, events, hot_plug, libraries, replaced, traces};

#[test]
fn long_waiting_tests_pass_in_parallel() {
    let checks: [(&str, fn()); 9] = [
        (
            "hardly used",
            events::underused_gpu_is_reported_with_both_percentages,
        ),
        (
            "suspected hang",
            events::suspected_hang_is_reported_without_false_alarms,
        ),
        (
            "traces",
            traces::driver_buffers_are_read_without_gaps_or_duplicates,
        ),
        ("calls", calls::expensive_calls_are_rare),
        (
            "calls at 10 Hz",
            calls::faster_sampling_adds_few_expensive_calls,
        ),
        ("unwatched", || {
            run_async_check(calls::unwatched_server_makes_expensive_calls_only_for_history());
        }),
        ("added GPU", || {
            run_async_check(hot_plug::added_gpu_is_read_without_renumbering());
        }),
        ("mismatch", || {
            run_async_check(replaced::upgraded_driver_is_read_by_new_collector());
        }),
        ("missing", || {
            run_async_check(libraries::server_uses_library_installed_after_start());
        }),
    ];
    let running = checks.map(|(name, check)| {
        (
            name,
            thread::Builder::new()
                .name(name.to_owned())
                .spawn(check)
                .unwrap(),
        )
    });
    let failed: Vec<_> = running
        .into_iter()
        .filter_map(|(name, check)| check.join().is_err().then_some(name))
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
}

fn run_async_check(check: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(check);
}
