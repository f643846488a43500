//! Notices: events and states that are sent to the clients.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use gpumon_probe::model::{Event, FiringAlert, GpuDetails};

use super::{Hub, encode};
use crate::{frame::ServerFrame, lock, stream::TextFrame, view::View};

/// The maximum number of views for which a notice's text is cached. For hello frames, which can be
/// megabytes long, it is `MAX_CACHED_HELLOS`.
const MAX_CACHED_TEXTS: usize = 64;
const MAX_CACHED_HELLOS: usize = 2;

/// The text for clients that may see everything, and the subject, from which the texts for all
/// other clients are made.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    pub(super) text: TextFrame,
    pub(super) about: NoticeSubject,
    /// The text for each other view, encoded once for all clients with that view.
    by_view: Arc<Mutex<HashMap<View, Option<TextFrame>>>>,
}

#[derive(Debug, Clone)]
pub(super) enum NoticeSubject {
    Event(Arc<Event>),
    Details(Arc<GpuDetails>),
    /// The firing alerts.
    Alerts(Arc<Vec<FiringAlert>>),
    /// All data, sent as a new hello frame.
    Everything,
    /// Data that belongs to no user, which every client may see.
    Other,
}

/// Returns the frame of firing alerts.
pub(super) fn alerts_frame(firing: Vec<FiringAlert>) -> TextFrame {
    encode(&ServerFrame::Alerts { firing })
}

impl From<TextFrame> for Notice {
    fn from(text: TextFrame) -> Self {
        Self::new(text, NoticeSubject::Other)
    }
}

impl Notice {
    pub(super) fn from_alerts(firing: Vec<FiringAlert>) -> Self {
        Self::new(
            alerts_frame(firing.clone()),
            NoticeSubject::Alerts(Arc::new(firing)),
        )
    }

    pub(super) fn new(text: TextFrame, about: NoticeSubject) -> Self {
        Self {
            text,
            about,
            by_view: Arc::default(),
        }
    }

    /// Returns the text for clients with this view, or `None` if they may not see it.
    pub(crate) fn text(self, view: &View, hub: &Hub) -> Option<TextFrame> {
        let is_whole = match &self.about {
            NoticeSubject::Other => true,
            NoticeSubject::Details(_) => view.shows_other_users(),
            NoticeSubject::Event(_) | NoticeSubject::Alerts(_) | NoticeSubject::Everything => {
                view.hides_nothing()
            }
        };
        if is_whole {
            return Some(self.text);
        }
        let mut by_view = lock::lock(&self.by_view);
        if let Some(known) = by_view.get(view) {
            return known.clone();
        }
        let text = match &self.about {
            NoticeSubject::Event(event) => view
                .filter_event(event)
                .map(|event| encode(&ServerFrame::Event(event))),
            NoticeSubject::Details(details) => Some(encode(&ServerFrame::Details(
                view.filter_details((**details).clone()),
            ))),
            NoticeSubject::Alerts(firing) => {
                Some(alerts_frame(view.filter_alerts((**firing).clone())))
            }
            NoticeSubject::Everything => Some(TextFrame::new(&hub.encode_hello(view))),
            NoticeSubject::Other => None,
        };
        let most = if matches!(self.about, NoticeSubject::Everything) {
            MAX_CACHED_HELLOS
        } else {
            MAX_CACHED_TEXTS
        };
        if by_view.len() < most {
            by_view.insert(view.clone(), text.clone());
        }
        text
    }
}
