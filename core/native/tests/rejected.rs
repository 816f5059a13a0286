//! Rejected requests on SQLite and a bucket in memory: counted once, listed newest first, verified again as of their arrival,
//! and gone when their events are recorded or their days are over.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::cell::RefCell;

use common::{MINUTE_MS, World};
use swarm_domain::incident::{Operation, OperationError};
use swarm_domain::limits::REJECTION_COUNTS_DAYS;
use swarm_domain::ports::{BlobKeeping, Blobs, Clock};
use swarm_domain::rejected::{
    AdapterError, Adapters, Counted, RejectedFilter, RejectedFilterInput, RejectedPage, RejectedRequest,
    Reverified, Reverifier, Tally, Verdict, counts, expire, list, view,
};
use swarm_domain::time::Timestamp;
use swarm_native::{Fault, block_on};

const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// Keeps a request that arrives now, and answers its id.
fn keep(world: &World, provider: &str, reason: &str, tenant: Option<&str>) -> String {
    let mut request = RejectedRequest::new(provider, world.clock.now());
    request.reason = reason.to_owned();
    request.tenant_id = tenant.map(str::to_owned);
    request.method = "POST".to_owned();
    request.url = format!("https://hooks.example.com/webhook/{provider}?token=hidden");
    let headers = [
        ("x-hub-signature-256", "sha256=00"),
        ("authorization", "Bearer hidden"),
        ("X-Gitlab-Token", "hidden"),
    ];
    request.headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let key = request.key(&world.token());
    block_on(world.blobs.put(&key.object_key(), request.object(b"{\"a\":1}"))).unwrap();
    world.clock.advance_ms(1);
    key.id
}

fn page(world: &World, filter: RejectedFilterInput, limit: usize, cursor: Option<&str>) -> RejectedPage {
    block_on(list(&world.blobs, &RejectedFilter::parse(filter).unwrap(), limit, cursor)).unwrap()
}

fn ids(page: &RejectedPage) -> Vec<&str> {
    page.rejected.iter().map(|rejected| rejected.rejected_id.as_str()).collect()
}

/// An adapter whose verdicts the test gives.
struct Answering {
    answer: Result<Verdict, AdapterError>,
    asked: RefCell<Vec<(String, Timestamp, Vec<u8>)>>,
}

impl Answering {
    fn with(answer: Result<Verdict, AdapterError>) -> Self {
        Self { answer, asked: RefCell::default() }
    }

    fn recorded() -> Self {
        let event_ids = vec!["e1".to_owned()];
        Self::with(Ok(Verdict { recorded: true, event_ids, reason: None, detail: None }))
    }
}

impl Adapters for Answering {
    async fn reverify(&self, provider: &str, request: String, body: &[u8]) -> Result<Verdict, AdapterError> {
        let at = RejectedRequest::from_json(request.as_bytes()).unwrap().received_at();
        self.asked.borrow_mut().push((provider.to_owned(), at, body.to_vec()));
        self.answer.clone()
    }
}

fn reverify(world: &World, adapters: &Answering, id: &str) -> Result<Reverified, OperationError> {
    let reverifier = Reverifier { ledger: &world.ledger, blobs: &world.blobs, adapters };
    let op = Operation { id: "op", actor: "ada", note: None, now: world.clock.now() };
    block_on(reverifier.reverify(id, &op))
}

#[test]
fn a_list_shows_the_newest_first_page_by_page() {
    let world = World::new(1);
    let kept: Vec<_> = (0..5).map(|_| keep(&world, "github", "signature_mismatch", None)).collect();
    let newest_first: Vec<_> = kept.iter().rev().map(String::as_str).collect();
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let page = page(&world, RejectedFilterInput::default(), 2, cursor.as_deref());
        seen.extend(page.rejected.iter().map(|rejected| rejected.rejected_id.clone()));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, newest_first);
}

#[test]
fn a_filter_narrows_the_list_down() {
    let world = World::new(1);
    let a = keep(&world, "github", "signature_mismatch", Some("acme"));
    world.clock.advance_ms(DAY_MS);
    let middle = world.clock.now().rfc3339();
    let b = keep(&world, "github", "signature_stale", None);
    let c = keep(&world, "stripe", "signature_mismatch", None);
    let some = |text: &str| Some(text.to_owned());
    for (filter, expected) in [
        (RejectedFilterInput { provider: some("github"), ..Default::default() }, vec![&b, &a]),
        (RejectedFilterInput { reason: some("signature_mismatch"), ..Default::default() }, vec![&c, &a]),
        (RejectedFilterInput { tenant: some("acme"), ..Default::default() }, vec![&a]),
        (RejectedFilterInput { since: some(&middle), ..Default::default() }, vec![&c, &b]),
        (RejectedFilterInput { until: some(&middle), ..Default::default() }, vec![&a]),
    ] {
        assert_eq!(ids(&page(&world, filter.clone(), 10, None)), expected, "{filter:?}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let world = World::new(1);
    let parse = |input| RejectedFilter::parse(input).unwrap_err().to_string();
    let some = |text: &str| Some(text.to_owned());
    assert!(
        parse(RejectedFilterInput { provider: some("Git Hub"), ..Default::default() }).contains("`provider`")
    );
    assert!(
        parse(RejectedFilterInput { since: some("yesterday"), ..Default::default() }).contains("`since`")
    );
    let filter = RejectedFilter::default();
    let error = |limit, cursor| block_on(list(&world.blobs, &filter, limit, cursor)).unwrap_err().to_string();
    assert!(error(0, None).contains("`limit`"));
    assert!(error(1, Some("inc_1")).contains("`cursor`"));
}

#[test]
fn a_view_shows_all_but_credentials() {
    let world = World::new(1);
    let id = keep(&world, "gitlab", "signature_mismatch", None);
    let details = block_on(view(&world.blobs, &id)).unwrap();
    let shown = serde_json::to_string(&details).unwrap();
    assert!(shown.contains("sha256=00") && shown.contains(r#"{\"a\":1}"#), "{shown}");
    assert!(!shown.contains("hidden\"") && !shown.contains("token=hidden"), "{shown}");
    assert_eq!(details.headers.iter().filter(|(_, value)| value == "(hidden)").count(), 2);
    for unknown in ["", "inc_1", "8232774399876-nobody", "../../etc"] {
        let error = block_on(view(&world.blobs, unknown)).unwrap_err();
        assert_eq!(error, OperationError::NotFound("rejected request"), "{unknown}");
    }
}

#[test]
fn what_passes_after_all_is_verified_as_of_its_arrival_written_down_and_removed() {
    let world = World::new(1);
    let arrived = world.clock.now();
    let id = keep(&world, "github", "signature_mismatch", None);
    world.clock.advance_ms(DAY_MS);
    let adapter = Answering::recorded();
    let reverified = reverify(&world, &adapter, &id).unwrap();
    assert_eq!((reverified.rejected_id.as_str(), reverified.verdict.recorded), (id.as_str(), true));
    assert_eq!(*adapter.asked.borrow(), [("github".to_owned(), arrived, b"{\"a\":1}".to_vec())]);
    assert_eq!(world.rows("SELECT actor, action FROM ops_log").len(), 1);
    let again = reverify(&world, &adapter, &id).unwrap_err();
    assert_eq!(again, OperationError::NotFound("rejected request"));
}

#[test]
fn what_does_not_pass_stays() {
    let world = World::new(1);
    let id = keep(&world, "github", "signature_mismatch", None);
    let refused = Verdict {
        recorded: false,
        event_ids: Vec::new(),
        reason: Some("signature_mismatch".to_owned()),
        detail: None,
    };
    for answer in [Ok(refused), Err(AdapterError("no adapter is bound for github".to_owned()))] {
        let reverified = reverify(&world, &Answering::with(answer), &id).unwrap();
        assert!(!reverified.verdict.recorded && reverified.verdict.reason.is_some());
    }
    assert!(world.rows("SELECT 1 FROM ops_log").is_empty());
    assert!(block_on(view(&world.blobs, &id)).is_ok());
}

#[test]
fn a_run_that_dies_anywhere_can_be_repeated() {
    for fault in [Fault::Refused, Fault::AnswerLost] {
        let world = World::new(1);
        let id = keep(&world, "github", "signature_mismatch", None);
        let adapter = Answering::recorded();
        world.shard().fail_always(fault);
        assert!(reverify(&world, &adapter, &id).is_err());
        world.shard().heal();
        assert!(reverify(&world, &adapter, &id).unwrap().verdict.recorded);
        assert_eq!(world.rows("SELECT 1 FROM ops_log").len(), 1, "{fault:?}");
        assert!(page(&world, RejectedFilterInput::default(), 1, None).rejected.is_empty());
    }
}

#[test]
fn counts_of_all_instances_add_up_and_writing_twice_changes_nothing() {
    let world = World::new(2);
    let now = world.clock.now();
    let (mut one, mut two) = (Tally::default(), Tally::default());
    let record = |tally: &mut Tally, counter: &str, now| {
        let rows = tally.take(now).unwrap()?;
        block_on(Tally::record(&world.ledger, counter, rows.clone())).unwrap();
        block_on(Tally::record(&world.ledger, counter, rows)).unwrap();
        Some(())
    };
    assert_eq!(record(&mut one, "one", now), None, "nothing was counted");
    (0..3).for_each(|_| one.add("github", "signature_mismatch", now));
    record(&mut one, "one", now).unwrap();
    one.add("github", "signature_mismatch", now);
    record(&mut one, "one", now.plus_ms(MINUTE_MS)).unwrap();
    one.add("github", "signature_mismatch", now.plus_ms(MINUTE_MS));
    one.add("stripe", "signature_stale", now);
    record(&mut one, "one", now.plus_ms(MINUTE_MS)).unwrap();
    two.add("github", "signature_mismatch", now);
    record(&mut two, "two", now).unwrap();

    let counted = |since, until| block_on(counts(&world.ledger, since, until)).unwrap();
    let github =
        |count| Counted { provider: "github".to_owned(), reason: "signature_mismatch".to_owned(), count };
    let stripe = Counted { provider: "stripe".to_owned(), reason: "signature_stale".to_owned(), count: 1 };
    assert_eq!(counted(now, now.plus_ms(2 * MINUTE_MS)), [github(6), stripe.clone()]);
    assert_eq!(counted(now, now.plus_ms(MINUTE_MS)), [github(5), stripe]);
    assert_eq!(counted(now.plus_ms(MINUTE_MS), now.plus_ms(2 * MINUTE_MS)), [github(1)]);
}

#[test]
fn what_is_old_goes_and_what_is_not_stays() {
    let world = World::new(1);
    (0..3).for_each(|_| drop(keep(&world, "github", "signature_mismatch", None)));
    let mut tally = Tally::default();
    tally.add("github", "signature_mismatch", world.clock.now());
    let rows = tally.take(world.clock.now()).unwrap().unwrap();
    block_on(Tally::record(&world.ledger, "one", rows)).unwrap();
    world.clock.advance_ms(3 * DAY_MS);
    let young = keep(&world, "github", "signature_mismatch", None);
    let expired = |days| block_on(expire(&world.ledger, &world.blobs, world.clock.now(), days)).unwrap();
    assert_eq!((expired(4).requests, expired(3).requests, expired(3).requests), (0, 3, 0));
    assert_eq!(ids(&page(&world, RejectedFilterInput::default(), 10, None)), [young]);
    world.clock.advance_ms(REJECTION_COUNTS_DAYS * DAY_MS);
    assert_eq!(expired(7).counts, 1);
    assert!(block_on(world.blobs.list("", "", 10)).unwrap().objects.is_empty());
}
