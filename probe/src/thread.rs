//! Threads that are never waited for, because they can hang in the kernel or the driver forever.

use std::{
    io,
    panic::{self, AssertUnwindSafe},
    process, thread,
};

/// Starts a thread, which is abandoned if it hangs.
///
/// A panic in the thread terminates the process, which is then restarted. Otherwise, the thread's
/// readings would stop without notice.
pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let body = || {
        // The panic message has already been printed.
        if panic::catch_unwind(AssertUnwindSafe(body)).is_err() {
            process::abort();
        }
    };
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map(drop)
}

#[cfg(test)]
mod tests {
    use std::{env, os::unix::process::ExitStatusExt, process::Command, time::Duration};

    use super::*;

    const CHILD: &str = "GPUMON_TEST_PANICS";

    #[test]
    fn panic_in_thread_ends_process() {
        if env::var_os(CHILD).is_some() {
            spawn("panics", || panic!("on purpose")).unwrap();
            thread::sleep(Duration::from_secs(30));
            process::exit(0);
        }
        let own = env::current_exe().unwrap();
        let test = [
            "--exact",
            "thread::tests::panic_in_thread_ends_process",
            "--nocapture",
        ];
        let output = Command::new(own)
            .args(test)
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert_eq!(output.status.signal(), Some(6), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("on purpose"));
    }
}
