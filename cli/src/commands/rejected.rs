//! `swarm rejected`: webhook requests that did not pass. They are counted, and kept for some days if they could be genuine.

mod list;
mod reverify;
mod stats;
mod view;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use swarm_domain::rejected::{RejectedFilter, RejectedFilterInput};
use swarm_domain::time::Timestamp;

use self::list::List;
use self::reverify::Reverify;
use self::stats::Stats;
use self::view::View;
use crate::arguments::{Globals, values};
use crate::failure::Failure;

/// The verbs.
#[derive(Subcommand)]
pub enum Rejected {
    /// List the requests that are kept, newest first.
    List(List),
    /// Show one with its headers and its body.
    View(View),
    /// Verify requests again, as of the moment at which they came, and publish those that pass.
    Reverify(Reverify),
    /// Count all that did not pass, by provider and reason.
    Stats(Stats),
}

/// Runs a verb.
pub fn run(command: Rejected, globals: &Globals) -> Result<(), Failure> {
    match command {
        Rejected::List(list) => list.run(globals),
        Rejected::View(view) => view.run(globals),
        Rejected::Reverify(reverify) => reverify.run(globals),
        Rejected::Stats(stats) => stats.run(globals),
    }
}

/// Which kept requests are meant.
#[derive(Args)]
struct FilterArguments {
    /// Only of this provider, such as github.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    provider: Option<String>,
    /// Only for this reason, such as signature_mismatch.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    reason: Option<String>,
    /// Only of this tenant.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    tenant: Option<String>,
    /// Only from this time on: 30m, 2h or 7d ago, or RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = values::moment)]
    since: Option<Timestamp>,
    /// Only before this time.
    #[arg(long, value_name = "TIME", value_parser = values::moment)]
    until: Option<Timestamp>,
}

impl FilterArguments {
    /// The filter, checked by the rules that the gateway has for it.
    fn checked(self) -> Result<RejectedFilterInput, Failure> {
        let input = RejectedFilterInput {
            provider: self.provider,
            reason: self.reason,
            tenant: self.tenant,
            since: self.since.map(Timestamp::rfc3339),
            until: self.until.map(Timestamp::rfc3339),
        };
        RejectedFilter::parse(input.clone()).map_err(|error| Failure::usage(error.to_string()))?;
        Ok(input)
    }
}
