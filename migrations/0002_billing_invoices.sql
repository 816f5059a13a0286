-- What the reference consumer of billing.events keeps. It lives in the ledger's database because its rows are written in the
-- same transaction as `delivered`, which is what makes the effect happen exactly once.

CREATE TABLE billing_invoices_paid (
  tenant_id    TEXT NOT NULL,
  invoice_id   TEXT NOT NULL,
  amount_paid  INTEGER NOT NULL,            -- in the currency's smallest unit
  currency     TEXT NOT NULL,
  payments     INTEGER NOT NULL DEFAULT 1,  -- how often this invoice was entered: 1, or something is wrong
  event_id     TEXT NOT NULL,               -- the event that entered it first
  paid_at      TEXT NOT NULL,
  PRIMARY KEY (tenant_id, invoice_id)
) STRICT, WITHOUT ROWID;
