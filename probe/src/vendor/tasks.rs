//! Work with files of drivers, which may hang.

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// A piece of work that hands over its results one by one.
pub(super) type Task<T> = Box<dyn FnOnce(&dyn Fn(T)) + Send>;

/// Runs each task on a thread of its own, and returns the results in the order of the tasks, as far
/// as they arrive in time. A task that hangs in a driver is left behind.
pub(super) fn run_tasks<T: Send + 'static>(tasks: Vec<Task<T>>, patience: Duration) -> Vec<T> {
    let (sender, results) = mpsc::channel();
    for (place, task) in tasks.into_iter().enumerate() {
        let sender = sender.clone();
        let run = move || {
            task(&|result| {
                // Nobody waits for a late result.
                let _ = sender.send((place, result));
            });
        };
        // Without a thread, there is no result.
        let _ = thread::Builder::new()
            .name("driver-files".to_owned())
            .spawn(run);
    }
    drop(sender);
    let begun = Instant::now();
    let mut found = Vec::new();
    while let Ok(result) = results.recv_timeout(patience.saturating_sub(begun.elapsed())) {
        found.push(result);
    }
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_that_hangs_delays_no_other() {
        let tasks: Vec<Task<u32>> = vec![
            Box::new(|send| {
                send(1);
                thread::sleep(Duration::from_mins(1));
                send(2);
            }),
            Box::new(|send| send(3)),
        ];
        assert_eq!(run_tasks(tasks, Duration::from_secs(1)), [1, 3]);
    }
}
