//! Kernels for half of the time.

use std::{thread, time::Duration};

use super::{
    super::{
        Ground, KnownLoad, Made,
        expectation::{Accepted, Expectation, Unit},
    },
    repeat,
    spin::{NS, spin},
};
use crate::{error::RunError, kernels};

pub(super) static PULSE: Pulse = Pulse;

pub(super) struct Pulse;

impl KnownLoad for Pulse {
    fn id(&self) -> &'static str {
        "pulse"
    }

    fn does(&self) -> &'static str {
        "one multiprocessor is busy for half of the time"
    }

    fn put_on(&self, ground: &Ground<'_>) -> Result<Option<Made>, RunError> {
        let kernel = ground.gpu.kernel(kernels::SPIN, "spin")?;
        let mut busy = 0.0;
        let repeated = repeat(ground, || {
            busy += spin(ground.gpu, &kernel, 1, NS)?.seconds;
            thread::sleep(Duration::from_nanos(NS));
            Ok(())
        })?;
        let share = busy / repeated.seconds * 100.0;
        let how = format!("{} kernels said that they took {busy:.2} of {:.2} s", repeated.times, repeated.seconds);
        let percent =
            |reading, within| Expectation::new(reading, Unit::Percent, share, Accepted::Within(within), how.clone());
        let expectations = vec![
            percent("utilization.gpu_percent", 8.0)
                .reported(|during| during.mean(|sample| sample.utilization.gpu_percent.clone())),
            percent("activity.graphics_percent", 3.0)
                .reported(|during| during.activity(|activity| &activity.graphics_percent)),
        ];
        Ok(Some(Made { from_ms: repeated.from_ms, to_ms: repeated.to_ms, expectations }))
    }
}
