//! Tasks that read driver files and may hang.

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// A task that delivers its results to a callback, one by one.
pub(super) type Task<T> = Box<dyn FnOnce(&dyn Fn(T)) + Send>;

/// Runs each task on its own thread, and returns the results that arrive within `patience`, in the
/// order of the tasks. If a task hangs in a driver, it is abandoned.
pub(super) fn run_tasks<T: Send + 'static>(tasks: Vec<Task<T>>, patience: Duration) -> Vec<T> {
    let (sender, results) = mpsc::channel();
    for (place, task) in tasks.into_iter().enumerate() {
        let sender = sender.clone();
        let run = move || {
            task(&|result| {
                // If the result is too late, there is no receiver, so sending fails.
                let _ = sender.send((place, result));
            });
        };
        // If the thread cannot be started, the task delivers no results.
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
    fn hanging_task_does_not_delay_other_tasks() {
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
