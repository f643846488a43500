//! An event or a state on its way to the clients.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use gpumon_probe::model::{Event, FiringAlert, GpuDetails};

use super::{Hub, encode};
use crate::{frame::ServerFrame, lock, stream::TextFrame, view::View};

/// Views for which a notice is kept once it is written. A hello can have megabytes.
const KEPT: usize = 64;
const KEPT_HELLOS: usize = 2;

/// The whole, and its subject, for those who may not see all of it.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    pub(super) text: TextFrame,
    pub(super) about: About,
    /// Written once for all clients of the same view.
    by_view: Arc<Mutex<HashMap<View, Option<TextFrame>>>>,
}

#[derive(Debug, Clone)]
pub(super) enum About {
    Event(Arc<Event>),
    Details(Arc<GpuDetails>),
    /// What fires now.
    Alerts(Arc<Vec<FiringAlert>>),
    /// All that is known: a hello.
    Everything,
    /// Nothing that is anybody's.
    Other,
}

/// The frame that says what fires now.
pub(super) fn alerts(firing: Vec<FiringAlert>) -> TextFrame {
    encode(&ServerFrame::Alerts { firing })
}

impl From<TextFrame> for Notice {
    fn from(text: TextFrame) -> Self {
        Self::new(text, About::Other)
    }
}

impl Notice {
    pub(super) fn of_alerts(firing: Vec<FiringAlert>) -> Self {
        Self::new(alerts(firing.clone()), About::Alerts(Arc::new(firing)))
    }

    pub(super) fn new(text: TextFrame, about: About) -> Self {
        Self {
            text,
            about,
            by_view: Arc::default(),
        }
    }

    /// As a client of this view gets it, if at all.
    pub(crate) fn text(self, view: &View, hub: &Hub) -> Option<TextFrame> {
        let is_whole = match &self.about {
            About::Other => true,
            About::Details(_) => view.has_others(),
            About::Event(_) | About::Alerts(_) | About::Everything => view.is_whole(),
        };
        if is_whole {
            return Some(self.text);
        }
        let mut by_view = lock::lock(&self.by_view);
        if let Some(known) = by_view.get(view) {
            return known.clone();
        }
        let text = match &self.about {
            About::Event(event) => view
                .event(event)
                .map(|event| encode(&ServerFrame::Event(event))),
            About::Details(details) => Some(encode(&ServerFrame::Details(
                view.details((**details).clone()),
            ))),
            About::Alerts(firing) => Some(alerts(view.alerts((**firing).clone()))),
            About::Everything => Some(TextFrame::new(&hub.hello(view))),
            About::Other => None,
        };
        let most = if matches!(self.about, About::Everything) {
            KEPT_HELLOS
        } else {
            KEPT
        };
        if by_view.len() < most {
            by_view.insert(view.clone(), text.clone());
        }
        text
    }
}
