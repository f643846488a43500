//! An event or a state that is sent to the clients.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use gpumon_probe::model::{Event, FiringAlert, GpuDetails};

use super::{Hub, encode};
use crate::{frame::ServerFrame, lock, stream::TextFrame, view::View};

/// The maximum number of views for which a notice is cached. Hellos can have megabytes, so fewer of
/// them are cached.
const KEPT: usize = 64;
const KEPT_HELLOS: usize = 2;

/// The text for clients that may see everything, and its subject for all others.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    pub(super) text: TextFrame,
    pub(super) about: About,
    /// The text for each view, which is encoded once for all clients with this view.
    by_view: Arc<Mutex<HashMap<View, Option<TextFrame>>>>,
}

#[derive(Debug, Clone)]
pub(super) enum About {
    Event(Arc<Event>),
    Details(Arc<GpuDetails>),
    /// The firing alerts.
    Alerts(Arc<Vec<FiringAlert>>),
    /// A hello with all data.
    Everything,
    /// Data without any owner, which everybody may see.
    Other,
}

/// Returns the frame of firing alerts.
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

    /// Returns the text for clients with this view, or `None` if they may not see it.
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
