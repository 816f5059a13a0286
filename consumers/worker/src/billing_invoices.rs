//! Keeps paid invoices: the reference for a consumer whose effect happens exactly once.
//!
//! The effect is returned as a statement and commits together with `delivered`. The table counts how often an invoice was
//! entered, so that a doubled effect would be seen instead of being hidden by `DO NOTHING`.

use serde_json::Value;
use swarm_consumer_kit::{Delivery, Failure, Handled, Handler};
use swarm_domain::ports::{SQL_INTEGER_MAX, Statement};

/// The only type that this consumer acts on. Its payload is Stripe's event, as it came.
const INVOICE_PAID: &str = "stripe.invoice.paid";

/// Enters an invoice, or counts that it was entered once more.
const ENTER_INVOICE: &str = "
    INSERT INTO billing_invoices_paid (tenant_id, invoice_id, amount_paid, currency, event_id, paid_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (tenant_id, invoice_id) DO UPDATE SET payments = payments + 1";

/// Enters paid invoices into `billing_invoices_paid`.
pub struct BillingInvoices;

impl Handler for BillingInvoices {
    async fn handle(&self, delivery: &Delivery) -> Result<Handled, Failure> {
        if delivery.envelope.event_type != INVOICE_PAID {
            return Ok(Handled::done());
        }
        let invoice = Invoice::read(&delivery.payload)?;
        let values = vec![
            delivery.envelope.tenant_id.as_str().into(),
            invoice.id.into(),
            invoice.amount_paid.into(),
            invoice.currency.into(),
            delivery.envelope.id.as_str().into(),
            delivery.envelope.timestamp.into(),
        ];
        Ok(Handled::with_effects(vec![Statement::new(ENTER_INVOICE, values)]))
    }
}

/// What is kept of an invoice.
struct Invoice {
    id: String,
    /// In the currency's smallest unit.
    amount_paid: i64,
    currency: String,
}

impl Invoice {
    fn read(payload: &str) -> Result<Self, Failure> {
        let event: Value =
            serde_json::from_str(payload).map_err(|_| Failure::permanent("the payload is not JSON"))?;
        Ok(Self {
            id: text(&event, "id")?,
            amount_paid: amount(&event, "amount_paid")?,
            currency: text(&event, "currency")?,
        })
    }
}

fn text(event: &Value, name: &str) -> Result<String, Failure> {
    let text = field(event, name)?.as_str().filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| unreadable(name, "must be text"))
}

/// Beyond 2^53 D1 would round, so such an amount is refused instead.
fn amount(event: &Value, name: &str) -> Result<i64, Failure> {
    let number = field(event, name)?.as_i64().filter(|n| (-SQL_INTEGER_MAX..=SQL_INTEGER_MAX).contains(n));
    number.ok_or_else(|| unreadable(name, "must be a whole number within 2^53"))
}

fn field<'a>(event: &'a Value, name: &str) -> Result<&'a Value, Failure> {
    event.pointer(&format!("/data/object/{name}")).ok_or_else(|| unreadable(name, "is missing"))
}

/// Names the field and not its value, which is payload.
fn unreadable(name: &str, rule: &str) -> Failure {
    Failure::permanent(format!("invoice: `data.object.{name}` {rule}"))
}

#[cfg(test)]
mod tests {
    use swarm_domain::event::{Context, Envelope};
    use swarm_domain::ports::Sql;
    use swarm_domain::time::Timestamp;
    use swarm_domain::topic::Topic;
    use swarm_native::{SqliteShard, block_on};

    use super::*;

    const PAID: &str =
        r#"{"id":"evt_1","data":{"object":{"id":"in_1","amount_paid":4900,"currency":"eur"}}}"#;

    fn handle(event_type: &str, payload: &str) -> Result<Handled, Failure> {
        let envelope = Envelope {
            id: "evt_1".to_owned(),
            tenant_id: "acme".to_owned(),
            event_type: event_type.to_owned(),
            timestamp: Timestamp::from_unix_ms(1_767_225_600_000),
            source: None,
            subject: None,
            context: Context::default(),
        };
        let topic = Topic::try_from("billing.events".to_owned()).unwrap();
        let payload = payload.to_owned();
        block_on(BillingInvoices.handle(&Delivery { envelope, payload, topic, replay_of: None, attempts: 1 }))
    }

    #[test]
    fn an_invoice_is_entered_and_a_second_entry_would_be_seen() {
        let shard = SqliteShard::migrated().unwrap();
        let mut statements = handle(INVOICE_PAID, PAID).unwrap().effects;
        statements.extend(handle(INVOICE_PAID, PAID).unwrap().effects);
        statements.push(Statement::new("SELECT * FROM billing_invoices_paid", Vec::new()));
        let rows = block_on(shard.batch(statements)).unwrap().pop().unwrap().rows;
        let expected = r#"[{"tenant_id":"acme","invoice_id":"in_1","amount_paid":4900,"currency":"eur","payments":2,"event_id":"evt_1","paid_at":"2026-01-01 00:00:00.000"}]"#;
        assert_eq!(rows, expected);
    }

    #[test]
    fn other_types_are_done_without_a_look_at_their_payload() {
        assert_eq!(handle("stripe.customer.created", "1"), Ok(Handled::done()));
    }

    #[test]
    fn an_unreadable_invoice_is_given_up_by_the_name_of_its_field() {
        for (from, to, field) in [
            (r#""in_1""#, "null", "id"),
            (r#""in_1""#, r#""""#, "id"),
            ("4900", "49.5", "amount_paid"),
            ("4900", "9007199254740992", "amount_paid"),
            ("4900", "-12345678901234567890", "amount_paid"),
            (r#""eur""#, "[]", "currency"),
            ("data", "date", "id"),
        ] {
            let Err(failure) = handle(INVOICE_PAID, &PAID.replacen(from, to, 1)) else {
                panic!("{to} was taken");
            };
            assert!(failure.is_permanent(), "{failure}");
            assert!(failure.error().contains(&format!("`data.object.{field}`")), "{failure}");
        }
        assert!(handle(INVOICE_PAID, &PAID.replacen("4900", "-9007199254740991", 1)).is_ok());
    }
}
