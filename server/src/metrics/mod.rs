//! The metrics for Prometheus at `/metrics`. They are written from memory, without calling the
//! driver.
//!
//! - [`text`] chooses the format and writes it. [`shared_pages`] writes each page once for all
//!   clients, and in advance.
//! - [`scrape`] selects each GPU's valid data.
//! - [`health`], [`readings`] and [`gpu_users`] use gpumon's own metric names, in base units.
//! - [`dcgm`] uses dcgm-exporter's metric names, for its dashboards.
//!
//! Absent readings have no series. After a GPU hangs or the collector ends, earlier readings are
//! not repeated.

mod dcgm;
mod gpu_users;
mod health;
mod readings;
#[cfg(test)]
mod reference;
mod scrape;
mod shared_pages;
#[cfg(test)]
mod tests;
mod text;

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use gpumon_probe::model::now_ms;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::{
    task::spawn_blocking,
    time::{Duration, Instant, sleep_until},
};

pub(crate) use self::shared_pages::{MetricNames, PageKey, PageReader, SharedPages};
use self::{
    dcgm::DcgmVersion,
    scrape::Scrape,
    text::{Format, Page},
};
use crate::{
    app::AppState,
    auth::{Client, Scope},
    hub::{Hub, HubData},
    query::check_query,
    refusal::Refusal,
    responses::{Resource, accepts_gzip, compress_gzip, respond_encoded},
    view::View,
};

/// The minimum interval at which pages are written in advance.
const MIN_WRITE_INTERVAL: Duration = Duration::from_millis(800);

/// The query of `/metrics`: the naming scheme, and whether links are included.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MetricsQuery {
    /// The naming scheme of the metrics.
    #[serde(default)]
    format: MetricNames,
    /// Whether to include the metrics of links, which have many series.
    #[serde(default)]
    links: bool,
}

/// Returns the content types of all formats.
#[cfg(test)]
pub(crate) fn content_types() -> [&'static str; 2] {
    [Format::Text, Format::OpenMetrics].map(Format::content_type)
}

/// Returns the metrics page in the naming scheme of the query.
pub(crate) async fn get_metrics(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    query: Result<Query<MetricsQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let hint = "format=gpumon, dcgm or dcgm-4.9, and links=true or false";
    let MetricsQuery { format, links } = check_query(query, hint)?;
    Ok(respond_with_page(&app, &headers, &client, format, links).await)
}

/// Returns the page of `/metrics/dcgm`, for clients that cannot set query parameters.
pub(crate) async fn get_dcgm(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
) -> Response {
    respond_with_page(&app, &headers, &client, MetricNames::Dcgm, false).await
}

/// Returns the page of `/metrics/dcgm-4.9`.
pub(crate) async fn get_dcgm_49(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
) -> Response {
    respond_with_page(&app, &headers, &client, MetricNames::Dcgm49, false).await
}

/// Returns a page that many clients share. There are only a few different pages: no page contains
/// notebook paths or command lines, and none is written for a single user.
async fn respond_with_page(
    app: &AppState,
    headers: &HeaderMap,
    client: &Client,
    names: MetricNames,
    links: bool,
) -> Response {
    // Pages with dcgm-exporter's names are always in the text format, because its counters have
    // names that are not valid in OpenMetrics.
    let format = if names == MetricNames::Gpumon {
        text::choose_format(headers)
    } else {
        Format::Text
    };
    let processes = app.live.borrow().process_metrics;
    let is_scraper = client
        .identity
        .as_ref()
        .is_some_and(|identity| identity.scope == Scope::Metrics);
    let reader = if is_scraper {
        PageReader::Trusted
    } else {
        PageReader::from_view(&View::for_client(client, app.show_processes).await)
    };
    let key = PageKey {
        names,
        links,
        processes,
        reader,
        format,
        gzip: accepts_gzip(headers),
    };
    let encoders = Arc::clone(&app.encoders);
    let (resource, content_type) = (Resource::Metrics(key), format.content_type());
    let answer = respond_encoded(
        app,
        key.gzip,
        client.peer_key(),
        View::UNKNOWN_CLIENT,
        resource,
        content_type,
        move |hub| {
            encoders
                .metrics_pages
                .get_or_write(key, hub.state_change_count(), || key.render_bytes(hub))
        },
    );
    let mut answer = answer.await;
    answer.headers_mut().insert(
        header::VARY,
        HeaderValue::from_static("accept, accept-encoding"),
    );
    answer
}

/// After each sample, writes the pages that clients request regularly, so that they do not have to
/// wait. This function never returns.
pub(crate) async fn keep_pages_ready(app: &AppState) {
    let mut samples = app.hub.subscribe_samples();
    while samples.changed().await.is_ok() {
        let begun = Instant::now();
        for key in app.encoders.metrics_pages.requested_keys() {
            let (hub, encoders) = (Arc::clone(&app.hub), Arc::clone(&app.encoders));
            let renew = move || {
                let change = hub.state_change_count();
                encoders
                    .metrics_pages
                    .renew_page(key, change, || key.render_bytes(&hub));
            };
            let _ = spawn_blocking(renew).await;
        }
        // Shorter sampling intervals are used only for viewers. Metrics do not have to be written
        // that often.
        sleep_until(begun + MIN_WRITE_INTERVAL).await;
    }
}

impl PageKey {
    fn render_bytes(self, hub: &Hub) -> Vec<u8> {
        let known = hub.current_data();
        let known = known.filter_for(&self.reader.to_view());
        let text = self.render_text(&known).into_bytes();
        if self.gzip {
            compress_gzip(&text)
        } else {
            text
        }
    }

    fn render_text(self, known: &HubData) -> String {
        let scrape = Scrape::new(known, now_ms());
        let mut page = Page::new(self.format);
        match self.names {
            MetricNames::Gpumon => self.write_gpumon_metrics(&mut page, &scrape),
            MetricNames::Dcgm => dcgm::write_dcgm_metrics(&mut page, &scrape, DcgmVersion::Old),
            MetricNames::Dcgm49 => {
                dcgm::write_dcgm_metrics(&mut page, &scrape, DcgmVersion::Renamed);
            }
        }
        page.into_text()
    }

    fn write_gpumon_metrics(self, page: &mut Page, scrape: &Scrape<'_>) {
        health::write_health_metrics(page, scrape);
        readings::write_gpu_metrics(page, scrape);
        readings::write_rarely_changing_metrics(page, scrape);
        readings::write_detail_metrics(page, scrape);
        if self.links {
            readings::write_link_metrics(page, scrape);
        }
        gpu_users::write_job_metrics(page, scrape);
        gpu_users::write_owner_metrics(page, scrape);
        readings::write_mig_metrics(page, scrape);
        readings::write_host_metrics(page, scrape);
        if self.processes {
            gpu_users::write_process_metrics(page, scrape);
        }
    }
}
