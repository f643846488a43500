//! Kernels for half of the time.

use std::{thread, time::Duration};

use super::{
    super::{
        LoadContext, Made,
        expectation::{Accepted, Expectation},
    },
    repeat,
    spin::{NS, Spinning},
};
use crate::{error::RunError, protocol::Unit};

pub(super) fn run_pulses(context: &LoadContext<'_>) -> Result<Option<Made>, RunError> {
    let spinning = Spinning::new(context.gpu, 1)?;
    let mut busy = 0.0;
    let repeated = repeat(context, |counts| {
        let seconds = spinning.run()?.seconds;
        busy += if counts { seconds } else { 0.0 };
        thread::sleep(Duration::from_nanos(NS));
        Ok(())
    })?;
    let share = busy / repeated.seconds * 100.0;
    let how = format!(
        "{} kernels said that they took {busy:.2} of {:.2} s",
        repeated.times, repeated.seconds
    );
    let percent = |reading, within| {
        Expectation::new(
            reading,
            Unit::Percent,
            share,
            Accepted::Within(within),
            how.clone(),
        )
    };
    let expectations = vec![
        // The driver looks now and then: an H200 was up to 8 points off.
        percent("utilization.gpu_percent", 15.0)
            .reported(|during| during.mean(|sample| sample.utilization.gpu_percent.clone())),
        percent("activity.graphics_percent", 3.0)
            .reported(|during| during.activity(|activity| &activity.graphics_percent)),
    ];
    Ok(Some(Made {
        from_ms: repeated.from_ms,
        to_ms: repeated.to_ms,
        expectations,
    }))
}
