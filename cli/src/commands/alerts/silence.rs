//! `gpumon alerts silence`: a rule of the running server is silenced for a while.

use std::time::Duration;

use gpumon_probe::units::Accepted;
use gpumon_server::alerts::AlertStatus;
use serde_json::json;

use crate::{
    exit::{Failure, say},
    local::ServerArgs,
};

const TIME: Accepted<Duration> = Accepted::accept_durations(
    Duration::from_secs(1),
    Duration::from_hours(30 * 24),
    "a time from 1 second to 30 days, such as 30m, 2h or 7d, or off",
);

/// For how long; none to end a silence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time(Option<Duration>);

pub(super) fn parse_time(text: &str) -> Result<Time, String> {
    if text == "off" {
        return Ok(Time(None));
    }
    TIME.parse(text).map(|time| Time(Some(time)))
}

pub(super) fn run(server: &ServerArgs, rule: &str, Time(time): Time) -> Result<(), Failure> {
    let for_ms = time.map_or(0, |time| time.as_millis() as u64);
    let silence = json!({ "rule": rule, "for_ms": for_ms }).to_string();
    let reply = server.request("POST", "/api/v1/alerts/silence", &silence, "has no alerts")?;
    let status: AlertStatus = reply.parse()?;
    // The file may silence it nevertheless.
    if time.is_none()
        && status
            .rules
            .iter()
            .any(|known| known.name == rule && known.silenced)
    {
        say(&format!("{rule} is still silenced by the alert file"));
    }
    Ok(())
}
