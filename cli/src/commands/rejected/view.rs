//! `swarm rejected view`: one kept request with its headers and its body.

use clap::Args;
use console::Style;
use swarm_domain::time::Timestamp;

use crate::api::RejectedDetails;
use crate::arguments::{Globals, values};
use crate::failure::{Failure, Kind};
use crate::output::escape;
use crate::output::fields::Fields;
use crate::output::times;
use crate::session::Session;

/// Which request, and how.
#[derive(Args)]
pub struct View {
    /// Id of the request, as a list shows it.
    #[arg(value_name = "REJECTED_ID", value_parser = values::id)]
    rejected: String,
    /// Write the body alone, byte for byte, for a file or another program.
    #[arg(long, conflicts_with_all = ["json", "table"])]
    raw: bool,
}

impl View {
    /// Shows the request.
    pub fn run(self, globals: &Globals) -> Result<(), Failure> {
        let mut session = Session::open(globals)?;
        let details = session.api.rejected_one(&self.rejected)?;
        if self.raw {
            let body = details.value.body.as_deref().ok_or_else(|| {
                Failure::new(Kind::NotFound, "the body is not text: --json has it as bodyBase64")
            })?;
            return session.out.bytes(body.as_bytes());
        }
        if session.out.is_json() {
            return session.out.json(&details.json);
        }
        let text = render(&details.value, session.now);
        session.out.text(&text)
    }
}

fn render(details: &RejectedDetails, now: Timestamp) -> String {
    let rejected = &details.rejected;
    let mut fields = Fields::new();
    fields.add("rejected", &rejected.rejected_id);
    fields.styled("reason", &rejected.reason, Style::new().red());
    fields.add("because", &details.detail);
    fields.add("provider", &rejected.provider);
    fields.add_some("tenant", rejected.tenant_id.as_deref());
    fields.add("received", &times::with_age(&rejected.received_at, now));
    fields.add("request", &format!("{} {}", details.method, details.url));
    let headers = details
        .headers
        .iter()
        .map(|(name, value)| format!("{}\n", escape::line(&format!("{name}: {value}"))));
    let body = details.body.as_deref().or(details.body_base64.as_deref()).unwrap_or_default();
    let label = if details.body.is_some() { "body" } else { "body, in base64" };
    let heading = |text: &str| Style::new().bold().apply_to(text.to_owned());
    format!(
        "{}\n{}\n{}\n{}\n{}\n",
        fields.render(),
        heading("headers"),
        headers.collect::<String>(),
        heading(label),
        escape::block(body)
    )
}
