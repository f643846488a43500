//! The replay of a recording instead of a collector's readings. [`routes`] contains the endpoints.

pub(crate) mod routes;

use std::{
    io,
    ops::RangeInclusive,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use gpumon_probe::model::{Playback, Record};
use gpumon_recording::{PlayedItem, Player, RecordKind, parse_kind_and_time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::hub::Hub;

/// The maximum time that the thread waits for a command if no record is due.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// The range of speeds, as multiples of real time.
const SPEED_LIMITS: RangeInclusive<f64> = 0.1..=1000.0;

/// A handle for the thread that plays a recording.
#[derive(Debug, Clone)]
pub(crate) struct Replay {
    orders: Sender<(ReplayOrder, oneshot::Sender<ReplayPosition>)>,
}

/// Changes to a replay. Omitted keys leave the setting unchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ReplayOrder")]
pub(crate) struct ReplayOrder {
    /// The speed as a multiple of real time.
    #[schemars(range(min = *SPEED_LIMITS.start(), max = *SPEED_LIMITS.end()))]
    speed: Option<f64>,
    /// Whether the replay is paused.
    paused: Option<bool>,
    /// The time in the recording at which to continue, in milliseconds since 1970.
    at_ms: Option<u64>,
}

/// The position of a replay, and how the recording is played.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReplayPosition")]
pub(crate) struct ReplayPosition {
    /// The time of the newest sample in milliseconds since 1970.
    at_ms: u64,
    #[serde(flatten)]
    playback: Playback,
}

impl Replay {
    /// Plays a recording in a new thread. The thread ends when all clones of the handle are
    /// dropped.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be created.
    pub(crate) fn start(player: Player, hub: Arc<Hub>) -> io::Result<Self> {
        let (orders, ordered) = channel();
        let stage = ReplayThread {
            player,
            hub,
            inventory: None,
            told: None,
        };
        thread::Builder::new()
            .name("replay".to_owned())
            .spawn(move || stage.play(&ordered))?;
        Ok(Self { orders })
    }

    async fn send_command(&self, order: ReplayOrder) -> Option<ReplayPosition> {
        let (answer, answered) = oneshot::channel();
        self.orders.send((order, answer)).ok()?;
        answered.await.ok()
    }
}

struct ReplayThread {
    player: Player,
    hub: Arc<Hub>,
    /// The inventory line of the recording.
    inventory: Option<String>,
    /// The playback state that clients last received.
    told: Option<Playback>,
}

impl ReplayThread {
    fn play(mut self, ordered: &Receiver<(ReplayOrder, oneshot::Sender<ReplayPosition>)>) {
        loop {
            let now = Instant::now();
            if self.player.next_due_time().is_some_and(|due| due <= now) {
                let played = self.player.advance(now);
                self.show_items(played);
            }
            self.send_playback();
            let due = self.player.next_due_time();
            match ordered
                .recv_timeout(due.map_or(IDLE_TIMEOUT, |due| due.saturating_duration_since(now)))
            {
                Ok((order, answer)) => {
                    self.apply_command(order);
                    self.send_playback();
                    let position = ReplayPosition {
                        at_ms: self.player.current_first_and_last_ms().0,
                        playback: self.playback(),
                    };
                    // Sending fails if the client has disconnected, which is not an error.
                    let _ = answer.send(position);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn apply_command(&mut self, order: ReplayOrder) {
        if let Some(speed) = order.speed {
            self.player.set_speed(speed);
        }
        if let Some(at_ms) = order.at_ms {
            let played = self.player.seek_to_time(at_ms);
            self.show_items(played);
        }
        match order.paused {
            // At the end of the recording, resuming starts from the beginning.
            Some(false) if self.player.is_over() && order.at_ms.is_none() => {
                let played = self.player.toggle_pause();
                self.show_items(played);
            }
            Some(paused) => self.player.set_paused(paused),
            None => {}
        }
    }

    fn playback(&self) -> Playback {
        let (_, from_ms, to_ms) = self.player.current_first_and_last_ms();
        let (speed, paused, ended) = (
            self.player.playback_speed(),
            self.player.is_paused(),
            self.player.is_over(),
        );
        Playback {
            from_ms,
            to_ms,
            speed,
            paused,
            ended,
        }
    }

    /// Sends the inventory if the playback state has changed. The inventory shows clients that this
    /// is a recording, and how it is played.
    fn send_playback(&mut self) {
        let playback = self.playback();
        if self.told == Some(playback) {
            return;
        }
        if let Some(line) = self
            .inventory
            .as_deref()
            .and_then(|line| add_playback(line, playback))
        {
            self.told = Some(playback);
            self.ingest(&line);
        }
    }

    fn show_items(&mut self, played: io::Result<Vec<PlayedItem>>) {
        let played = match played {
            Ok(played) => played,
            Err(error) => {
                return tracing::warn!(
                    "a part of the recording cannot be read: {error}; continuing after this part"
                );
            }
        };
        let (mut past, mut is_rewound) = (Vec::new(), false);
        let playback = self.playback();
        for one in played {
            match one {
                PlayedItem::Rewound => is_rewound = true,
                PlayedItem::Record(line) => {
                    let is_inventory = parse_kind_and_time(&line)
                        .is_ok_and(|(kind, _)| kind == RecordKind::Inventory);
                    let shown = if is_inventory {
                        let shown = add_playback(&line, playback);
                        (self.inventory, self.told) = (Some(line), Some(playback));
                        let Some(shown) = shown else { continue };
                        shown
                    } else {
                        line
                    };
                    if is_rewound {
                        past.push(shown);
                    } else {
                        self.ingest(&shown);
                    }
                }
            }
        }
        if is_rewound {
            self.hub.replace_data(&past);
        }
    }

    fn ingest(&self, line: &str) {
        if let Err(error) = self.hub.ingest(line) {
            tracing::warn!("the recording contains an invalid record: {error}");
        }
    }
}

/// Returns the inventory line with the playback state added.
fn add_playback(line: &str, playback: Playback) -> Option<String> {
    let Ok(Record::Inventory(mut inventory)) = Record::decode(line) else {
        return None;
    };
    inventory.playback = Some(playback);
    serde_json::to_string(&Record::Inventory(inventory)).ok()
}
