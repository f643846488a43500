//! The replay of a recording in place of a collector. [`routes`] has its endpoints.

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
use gpumon_recording::{Kind, Played, Player, stamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::hub::Hub;

/// The time to wait for orders if no record is due.
const IDLE: Duration = Duration::from_mins(1);

/// The range of speeds, as multiples of the real one.
const SPEEDS: RangeInclusive<f64> = 0.1..=1000.0;

/// The handle of the thread that plays a recording.
#[derive(Debug, Clone)]
pub(crate) struct Replay {
    orders: Sender<(Order, oneshot::Sender<Position>)>,
}

/// Changes of a replay. Omitted keys change nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ReplayOrder")]
pub(crate) struct Order {
    /// The speed as a multiple of real time.
    #[schemars(range(min = *SPEEDS.start(), max = *SPEEDS.end()))]
    speed: Option<f64>,
    /// Whether the replay is paused.
    paused: Option<bool>,
    /// The time at which to continue, in milliseconds since 1970.
    at_ms: Option<u64>,
}

/// The position of a replay, and how it is played.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReplayPosition")]
pub(crate) struct Position {
    /// The time of the newest sample.
    at_ms: u64,
    #[serde(flatten)]
    playback: Playback,
}

impl Replay {
    /// Plays a recording on a new thread, which ends when all clones of the handle are dropped.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be created.
    pub(crate) fn start(player: Player, hub: Arc<Hub>) -> io::Result<Self> {
        let (orders, ordered) = channel();
        let stage = Stage {
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

    async fn order(&self, order: Order) -> Option<Position> {
        let (answer, answered) = oneshot::channel();
        self.orders.send((order, answer)).ok()?;
        answered.await.ok()
    }
}

struct Stage {
    player: Player,
    hub: Arc<Hub>,
    /// The recorded line of the inventory.
    inventory: Option<String>,
    /// The last playback that clients have received.
    told: Option<Playback>,
}

impl Stage {
    fn play(mut self, ordered: &Receiver<(Order, oneshot::Sender<Position>)>) {
        loop {
            let now = Instant::now();
            if self.player.due().is_some_and(|due| due <= now) {
                let played = self.player.advance(now);
                self.show(played);
            }
            self.tell_playback();
            let due = self.player.due();
            match ordered.recv_timeout(due.map_or(IDLE, |due| due.saturating_duration_since(now))) {
                Ok((order, answer)) => {
                    self.obey(order);
                    self.tell_playback();
                    let position = Position {
                        at_ms: self.player.times_ms().0,
                        playback: self.playback(),
                    };
                    // The client may have disconnected.
                    let _ = answer.send(position);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn obey(&mut self, order: Order) {
        if let Some(speed) = order.speed {
            self.player.set_speed(speed);
        }
        if let Some(at_ms) = order.at_ms {
            let played = self.player.seek_to(at_ms);
            self.show(played);
        }
        match order.paused {
            // At the end of the recording, this starts from the beginning.
            Some(false) if self.player.is_over() && order.at_ms.is_none() => {
                let played = self.player.pause_or_go_on();
                self.show(played);
            }
            Some(paused) => self.player.set_paused(paused),
            None => {}
        }
    }

    fn playback(&self) -> Playback {
        let (_, from_ms, to_ms) = self.player.times_ms();
        let (speed, paused, ended) = (
            self.player.speed(),
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

    /// Sends the inventory if the playback has changed. Clients recognize a recording, and how it
    /// is played, by the inventory.
    fn tell_playback(&mut self) {
        let playback = self.playback();
        if self.told == Some(playback) {
            return;
        }
        if let Some(line) = self
            .inventory
            .as_deref()
            .and_then(|line| with_playback(line, playback))
        {
            self.told = Some(playback);
            self.ingest(&line);
        }
    }

    fn show(&mut self, played: io::Result<Vec<Played>>) {
        let played = match played {
            Ok(played) => played,
            Err(error) => {
                return tracing::warn!(
                    "the recording cannot be read: {error}; going on behind that"
                );
            }
        };
        let (mut past, mut is_rewound) = (Vec::new(), false);
        let playback = self.playback();
        for one in played {
            match one {
                Played::Rewound => is_rewound = true,
                Played::Record(line) => {
                    let is_inventory = stamp(&line).is_ok_and(|(kind, _)| kind == Kind::Inventory);
                    let shown = if is_inventory {
                        let shown = with_playback(&line, playback);
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
            self.hub.rewind(&past);
        }
    }

    fn ingest(&self, line: &str) {
        if let Err(error) = self.hub.ingest(line) {
            tracing::warn!("the recording has what is not a record: {error}");
        }
    }
}

/// Returns the line of the inventory with the playback added.
fn with_playback(line: &str, playback: Playback) -> Option<String> {
    let Ok(Record::Inventory(mut inventory)) = Record::decode(line) else {
        return None;
    };
    inventory.playback = Some(playback);
    serde_json::to_string(&Record::Inventory(inventory)).ok()
}
