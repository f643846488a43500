//! Tests that mostly wait. They run in parallel, so that all of them take no longer than the
//! longest.

use std::thread;

use crate::{calls, events, hot_plug, libraries, replaced, traces};

#[test]
fn what_takes_long_by_waiting() {
    let checks: [(&str, fn()); 9] = [
        (
            "hardly used",
            events::a_gpu_that_is_hardly_used_is_told_with_both_numbers,
        ),
        (
            "suspected hang",
            events::a_gpu_on_which_nothing_moves_is_told_of_and_what_looks_alike_is_not,
        ),
        (
            "traces",
            traces::the_drivers_buffers_are_drained_without_a_gap_or_a_duplicate,
        ),
        ("calls", calls::what_is_dear_is_asked_rarely),
        (
            "calls at 10 Hz",
            calls::ten_times_as_many_samples_are_not_ten_times_as_many_dear_calls,
        ),
        ("unwatched", || {
            wait_for(calls::while_nobody_watches_what_is_dear_is_asked_for_history_alone());
        }),
        ("added GPU", || {
            wait_for(hot_plug::added_gpu_is_read_without_renumbering());
        }),
        ("mismatch", || {
            wait_for(replaced::a_driver_that_is_upgraded_underneath_is_read_by_another_collector());
        }),
        ("missing", || {
            wait_for(
                libraries::a_server_over_a_library_that_is_missing_takes_the_one_that_is_installed(
                ),
            );
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

fn wait_for(check: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(check);
}
