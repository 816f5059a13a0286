//! `swarm whoami`: whose token this is.

use crate::arguments::Globals;
use crate::failure::Failure;
use crate::output::fields::Fields;
use crate::session::Session;

/// Asks and shows.
pub fn run(globals: &Globals) -> Result<(), Failure> {
    let mut session = Session::open(globals)?;
    let operator = session.api.whoami()?;
    if session.out.is_json() {
        return session.out.json(&operator.json);
    }
    let mut fields = Fields::new();
    fields.add("name", &operator.value.name);
    fields.add("scopes", &operator.value.scopes.join(", "));
    fields.add("gateway", session.api.url());
    session.out.text(&fields.render())
}
