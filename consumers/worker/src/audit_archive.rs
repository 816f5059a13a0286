//! Keeps every event in R2 as gzip NDJSON, one object per batch.
//!
//! A line is `{"tenantId", "eventId", "type", "timestamp", …, "payloadJson"}`. The payload is carried as a string and not
//! embedded: JSON text may hold line breaks between its tokens, so an embedded payload could break the line, and taking them
//! out would change its bytes. Parsing the line and then `payloadJson` gives the payload; `payloadJson` itself is its text.
//!
//! Lines are sorted and the key follows from the events in the object, so a batch that comes again makes the same object and
//! changes nothing. If the queue has grouped the messages differently by then, an event can stand in two objects; readers
//! take one line per (`tenantId`, `eventId`), and the lines are equal.

use std::io::{self, Write};

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use serde::Serialize;
use swarm_consumer_kit::{Delivery, Failure, Handled, Handler};
use swarm_domain::event::{Context, Envelope};
use swarm_domain::ids::stable_hash;
use swarm_domain::ports::Blobs;

/// Writes batches to an archive bucket.
pub struct AuditArchive<B> {
    bucket: B,
}

impl<B: Blobs> AuditArchive<B> {
    /// An archive in this bucket.
    pub fn new(bucket: B) -> Self {
        Self { bucket }
    }

    async fn store(&self, batch: &[Delivery]) -> Result<(), Failure> {
        let mut events: Vec<&Delivery> = batch.iter().collect();
        events.sort_unstable_by_key(|delivery| order(delivery));
        let object = compress(&events)
            .map_err(|error| Failure::transient(format!("archive: {error}")).caused_by(&error))?;
        let stored = self.bucket.put(&object_key(&events), object).await;
        stored.map_err(|error| Failure::transient(format!("archive: {error}")).caused_by(&error))
    }
}

impl<B: Blobs> Handler for AuditArchive<B> {
    async fn handle(&self, delivery: &Delivery) -> Result<Handled, Failure> {
        self.store(std::slice::from_ref(delivery)).await.map(|()| Handled::done())
    }

    /// All or none: the events of a batch share an object.
    async fn handle_batch(&self, batch: &[Delivery]) -> Vec<Result<Handled, Failure>> {
        let stored = self.store(batch).await;
        batch.iter().map(|_| stored.clone().map(|()| Handled::done())).collect()
    }
}

/// By time, and within a millisecond by identity.
fn order(delivery: &Delivery) -> (i64, &str, &str) {
    let envelope = &delivery.envelope;
    (envelope.timestamp.unix_ms(), &envelope.tenant_id, &envelope.id)
}

/// `audit/<day>/part-<firstMs>-<hash>.ndjson.gz`: day and millisecond of the earliest event, and a hash over all identities.
fn object_key(events: &[&Delivery]) -> String {
    let identities: Vec<&str> =
        events.iter().flat_map(|delivery| [&*delivery.envelope.tenant_id, &*delivery.envelope.id]).collect();
    let first = events.first().map(|delivery| delivery.envelope.timestamp);
    let moment = first.map(|first| first.rfc3339()).unwrap_or_default();
    let day = moment.get(..10).unwrap_or_default();
    let first_ms = first.map_or(0, |first| first.unix_ms());
    format!("audit/{day}/part-{first_ms}-{}.ndjson.gz", stable_hash(&identities))
}

/// Lines go straight into the encoder, so the uncompressed object is never in memory. No time is written into the header: the
/// same events make the same bytes.
fn compress(events: &[&Delivery]) -> io::Result<Vec<u8>> {
    let mut encoder: GzEncoder<Vec<u8>> = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    for delivery in events {
        serde_json::to_writer(&mut encoder, &Line::of(delivery))?;
        encoder.write_all(b"\n")?;
    }
    encoder.finish()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    tenant_id: &'a str,
    event_id: &'a str,
    r#type: &'a str,
    timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    #[serde(flatten)]
    context: &'a Context,
    payload_json: &'a str,
}

impl<'a> Line<'a> {
    fn of(delivery: &'a Delivery) -> Self {
        let Envelope { id, tenant_id, event_type, timestamp, source, subject, context } = &delivery.envelope;
        Self {
            tenant_id,
            event_id: id,
            r#type: event_type,
            timestamp: timestamp.rfc3339(),
            source: source.as_deref(),
            subject: subject.as_deref(),
            context,
            payload_json: &delivery.payload,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use serde_json::Value;
    use swarm_domain::time::Timestamp;
    use swarm_domain::topic::Topic;
    use swarm_native::{Fault, Flaky, MemoryBlobs, block_on};

    use super::*;

    const MIDNIGHT_MS: i64 = 1_767_225_600_000;
    const KEY: &str = "audit/2025-12-31/part-1767225599999-88fcf19a2301760ac47dd6e108fae464.ndjson.gz";

    fn delivery(id: &str, unix_ms: i64, payload: &str) -> Delivery {
        let envelope = Envelope {
            id: id.to_owned(),
            tenant_id: "acme".to_owned(),
            event_type: "cms.page.published".to_owned(),
            timestamp: Timestamp::from_unix_ms(unix_ms),
            source: Some("cms".to_owned()),
            subject: None,
            context: Context { actor: Some("ada".to_owned()), ..Context::default() },
        };
        let topic = Topic::try_from("audit.events".to_owned()).unwrap();
        Delivery { envelope, payload: payload.to_owned(), topic, replay_of: None, attempts: 1 }
    }

    fn archive() -> AuditArchive<Flaky<MemoryBlobs>> {
        AuditArchive::new(Flaky::new(MemoryBlobs::new()))
    }

    fn objects(archive: &AuditArchive<Flaky<MemoryBlobs>>) -> Vec<(String, Vec<u8>)> {
        let blobs = archive.bucket.port();
        let bytes = |key: &String| block_on(blobs.get(key)).unwrap().unwrap();
        blobs.keys().into_iter().map(|key| (key.clone(), bytes(&key))).collect()
    }

    fn lines(object: &[u8]) -> Vec<Value> {
        let mut text = String::new();
        GzDecoder::new(object).read_to_string(&mut text).unwrap();
        assert!(text.ends_with('\n'));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_batch_becomes_one_object_and_every_payload_keeps_its_bytes() {
        let pretty =
            "{\r\n  \"n\": 12345678901234567890,\n  \"n\": 1.0, \"s\": \"\\u00e9\u{2028}\u{1F600}\"\n}";
        let batch = [delivery("e2", MIDNIGHT_MS, pretty), delivery("e1", MIDNIGHT_MS - 1, "null")];
        let archive = archive();
        assert_eq!(block_on(archive.handle_batch(&batch)), vec![Ok(Handled::done()); 2]);
        let objects = objects(&archive);
        assert_eq!(objects.len(), 1);
        assert_eq!(objects[0].0, KEY);
        let lines = lines(&objects[0].1);
        let ids: Vec<_> = lines.iter().map(|line| line["eventId"].as_str().unwrap()).collect();
        assert_eq!(ids, ["e1", "e2"]);
        assert_eq!(lines[1]["payloadJson"].as_str().unwrap(), pretty);
        let first = r#"{"actor":"ada","eventId":"e1","payloadJson":"null","source":"cms","tenantId":"acme","timestamp":"2025-12-31T23:59:59.999Z","type":"cms.page.published"}"#;
        assert_eq!(lines[0], serde_json::from_str::<Value>(first).unwrap());
    }

    #[test]
    fn the_same_events_make_the_same_object_in_whatever_order_they_come() {
        let batch = [delivery("e1", 5, "1"), delivery("e2", 5, "2"), delivery("e3", 4, "3")];
        let (one, two) = (archive(), archive());
        block_on(one.handle_batch(&batch));
        block_on(two.handle_batch(&[batch[2].clone(), batch[1].clone(), batch[0].clone()]));
        assert_eq!(objects(&one), objects(&two));
        block_on(one.handle_batch(&batch));
        assert_eq!(objects(&one).len(), 1);
        block_on(one.handle(&batch[0])).unwrap();
        assert_eq!(objects(&one).len(), 2);
    }

    #[test]
    fn a_batch_that_is_not_stored_comes_again_as_a_whole() {
        let archive = archive();
        archive.bucket.fail_at(0, Fault::Refused);
        let results = block_on(archive.handle_batch(&[delivery("e1", 1, "1"), delivery("e2", 2, "2")]));
        assert_eq!(results.len(), 2);
        assert!(results.iter().all(|result| matches!(result, Err(failure) if !failure.is_permanent())));
    }
}
