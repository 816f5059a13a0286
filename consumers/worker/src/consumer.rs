//! The consumers that ship, by the name that a deployment gives in `CONSUMER`.

use swarm_cloudflare::{Bindings, Misconfigured, R2Blobs};
use swarm_consumer_kit::{Delivery, Failure, Handled, Handler};

use crate::audit_archive::AuditArchive;
use crate::billing_invoices::BillingInvoices;

/// The one that this deployment runs.
pub enum ShippedConsumer {
    AuditArchive(AuditArchive<R2Blobs>),
    BillingInvoices(BillingInvoices),
}

impl ShippedConsumer {
    /// Reads `CONSUMER` and what that consumer needs.
    pub fn read(bindings: &Bindings) -> Result<Self, Misconfigured> {
        match bindings.required_var("CONSUMER")?.as_str() {
            "audit-archive" => Ok(Self::AuditArchive(AuditArchive::new(bindings.bucket("ARCHIVE")?))),
            "billing-invoices" => Ok(Self::BillingInvoices(BillingInvoices)),
            other => Err(Misconfigured(format!(
                "variable CONSUMER is '{other}'; there are audit-archive and billing-invoices"
            ))),
        }
    }
}

impl Handler for ShippedConsumer {
    async fn handle(&self, delivery: &Delivery) -> Result<Handled, Failure> {
        match self {
            Self::AuditArchive(consumer) => consumer.handle(delivery).await,
            Self::BillingInvoices(consumer) => consumer.handle(delivery).await,
        }
    }

    async fn handle_batch(&self, batch: &[Delivery]) -> Vec<Result<Handled, Failure>> {
        match self {
            Self::AuditArchive(consumer) => consumer.handle_batch(batch).await,
            Self::BillingInvoices(consumer) => consumer.handle_batch(batch).await,
        }
    }
}
