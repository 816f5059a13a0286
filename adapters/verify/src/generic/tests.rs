use super::*;
use crate::{Headers, Secrets, signature::encode_base64};

const NOW: i64 = 1_767_237_945;
const SECRET: &str = "a secret of the provider";
const BODY: &str = r#"{"data":{"id":"e1","n":7},"kind":"order.paid","at":1767237942123}"#;

fn generic(scheme: &str) -> Generic {
    Generic::parse("acme", scheme).unwrap()
}

/// The event of a request, or the reason for refusing it.
fn verify(
    scheme: &str,
    fields: &[(&str, &str)],
    body: &str,
) -> Result<(VerifiedEvent<'static>, i64), &'static str> {
    let provider = generic(scheme);
    let headers: Headers = fields.iter().copied().collect();
    let request =
        Request { method: "POST", url: "https://a.example/hook", headers: &headers, body: body.as_bytes() };
    let settings = Settings::new(&provider, Secrets::from_list(["another secret", SECRET]));
    let verified = provider.verify(&request, &settings, &Context::at(NOW)).map_err(|r| r.reason())?;
    let [event] = <[_; 1]>::try_from(verified.events).unwrap();
    let event = VerifiedEvent { payload: event.payload.into_owned().into(), ..event };
    let at = event.occurred_at_unix_ms.unwrap_or_default();
    Ok((event, at))
}

#[test]
fn an_hmac_over_a_template_is_verified_and_the_event_is_found() {
    let scheme = r#"{"verify":"hmac","header":"x-signature","prefix":"v1=","encoding":"base64",
        "signed":"{timestamp}.{header:x-id}.{body}","timestamp":"x-time",
        "id":"header:x-id","type":"/kind","time":"/at"}"#;
    let time = NOW.to_string();
    let sign = |time: &str, id: &str| {
        let parts = [time.as_bytes(), b".", id.as_bytes(), b".", BODY.as_bytes()];
        format!("v1={}", encode_base64(&hmac_sha256(SECRET.as_bytes(), &parts)))
    };
    let signature = sign(&time, "e7");
    let send = |id, time: &str, signature: &str| {
        verify(scheme, &[("X-Id", id), ("X-Time", time), ("X-Signature", signature)], BODY)
    };
    let (event, at) = send("e7", &time, &signature).unwrap();
    assert_eq!(
        (event.id.as_deref(), event.event_type.as_str(), at),
        (Some("e7"), "acme.order.paid", 1_767_237_942_123)
    );
    assert_eq!((event.payload.as_ref(), event.is_id_unsigned, event.fact.len()), (BODY, false, 0));
    let late = (NOW - 301).to_string();
    for (id, time, signature, reason) in [
        ("e8", time.as_str(), signature.as_str(), "signature_mismatch"),
        ("e7", late.as_str(), signature.as_str(), "signature_mismatch"),
        ("e7", late.as_str(), sign(&late, "e7").as_str(), "signature_stale"),
        ("e7", "soon", sign("soon", "e7").as_str(), "signature_malformed"),
        ("e7", time.as_str(), signature.trim_start_matches("v1="), "signature_malformed"),
        ("e7", time.as_str(), "v1=AA==", "signature_malformed"),
    ] {
        assert_eq!(send(id, time, signature).unwrap_err(), reason, "{id} {time} {signature}");
    }
    assert_eq!(verify(scheme, &[("x-id", "e7")], BODY).unwrap_err(), "signature_missing");
}

#[test]
fn an_id_outside_of_what_is_signed_does_not_count() {
    let scheme = r#"{"verify":"hmac","algorithm":"sha1","header":"s","id":"header:x-id","type":"/kind"}"#;
    let signature = hex::encode(hmac_sha1(SECRET.as_bytes(), &[BODY.as_bytes()]));
    let (event, _) = verify(scheme, &[("s", &signature), ("x-id", "any")], BODY).unwrap();
    assert!(event.is_id_unsigned && event.fact == [sha256_hex(BODY.as_bytes())]);
    let (event, _) = verify(&scheme.replace("header:x-id", "/data/id"), &[("s", &signature)], BODY).unwrap();
    assert_eq!((event.id.as_deref(), event.is_id_unsigned), (Some("e1"), false));
}

#[test]
fn tokens_and_logins_are_verified() {
    let login = format!("Basic {}", encode_base64(b"user:a password"));
    let provider = generic(r#"{"verify":"basic"}"#);
    let headers = Headers::from_iter([("authorization", login.as_str())]);
    let request = Request { method: "POST", url: "", headers: &headers, body: BODY.as_bytes() };
    let outcome = |secret| {
        let settings = Settings::new(&provider, Secrets::from_list([secret]));
        provider.verify(&request, &settings, &Context::at(NOW)).map_or_else(|r| r.reason(), |_| "accept")
    };
    assert_eq!(outcome("user:a password"), "accept");
    assert_eq!((outcome("user:other"), outcome("")), ("signature_mismatch", "no_secret"));

    let bearer = format!("bearer  {SECRET}");
    for (scheme, fields, expected) in [
        (r#"{"verify":"api-key","header":"x-key"}"#, vec![("X-Key", SECRET)], Ok(())),
        (r#"{"verify":"api-key","header":"x-key"}"#, vec![("X-Key", "x")], Err("signature_mismatch")),
        (r#"{"verify":"api-key","header":"x-key"}"#, vec![], Err("signature_missing")),
        (r#"{"verify":"bearer"}"#, vec![("Authorization", bearer.as_str())], Ok(())),
        (r#"{"verify":"bearer"}"#, vec![("Authorization", SECRET)], Err("signature_malformed")),
        (r#"{"verify":"basic"}"#, vec![("Authorization", "Basic ?")], Err("signature_malformed")),
    ] {
        let verdict =
            verify(scheme, &fields, BODY).map(|(event, _)| assert_eq!(event.event_type, "acme.unknown"));
        assert_eq!(verdict, expected, "{scheme} {fields:?}");
    }
}

#[test]
fn forms_become_json() {
    let scheme = r#"{"verify":"api-key","header":"k","body":"form","id":"/id","type":"/t"}"#;
    let (event, _) = verify(scheme, &[("k", SECRET)], "id=1&t=A.B&x=+").unwrap();
    assert_eq!((event.id.as_deref(), event.event_type.as_str()), (Some("1"), "acme.a.b"));
    assert_eq!(event.payload, r#"{"id":"1","t":"A.B","x":" "}"#);
}

#[test]
fn fields_of_another_form() {
    let scheme = r#"{"verify":"api-key","header":"k","id":"/data","type":"/kind","time":"/at"}"#;
    let read = |body: &str| verify(scheme, &[("k", SECRET)], body).map(|(event, at)| (event.id, at));
    assert_eq!(
        read(r#"{"data":7,"at":"2026-01-01T00:00:00Z"}"#),
        Ok((Some("7".to_owned()), 1_767_225_600_000))
    );
    assert_eq!(read(r#"{"data":null,"at":[]}"#), Ok((None, 0)), "a time is a convenience");
    for body in [r#"{"data":{}}"#, r#"{"data":"a b"}"#, r#"{"data":1,"kind":true}"#, "", "[", "\u{feff}{}"] {
        assert_eq!(read(body), Err("unreadable_body"), "{body}");
    }
}

#[test]
fn schemes_that_make_no_sense_are_refused_with_the_field() {
    for (scheme, field) in [
        ("", "`scheme`"),
        ("{}", "`scheme`"),
        (r#"{"verify":"none"}"#, "`scheme`"),
        (r#"{"verify":"bearer","tolerance":3}"#, "`scheme`"),
        (r#"{"verify":"bearer","prefix":"x"}"#, "`prefix`"),
        (r#"{"verify":"basic","header":"x"}"#, "`header`"),
        (r#"{"verify":"api-key"}"#, "`header`"),
        (r#"{"verify":"api-key","header":"a b"}"#, "`header`"),
        (r#"{"verify":"hmac"}"#, "`header`"),
        (r#"{"verify":"hmac","header":"s","signed":"{url}"}"#, "`signed`"),
        (r#"{"verify":"hmac","header":"s","signed":"{body"}"#, "`signed`"),
        (r#"{"verify":"hmac","header":"s","signed":"{body}{nonce}"}"#, "`signed`"),
        (r#"{"verify":"hmac","header":"s","signed":"{timestamp}{body}"}"#, "`signed`"),
        (r#"{"verify":"hmac","header":"s","timestamp":"t"}"#, "`signed`"),
        (r#"{"verify":"hmac","header":"s","id":"data.id"}"#, "`id`"),
        (r#"{"verify":"hmac","header":"s","type":"header:"}"#, "`type`"),
    ] {
        let error = Generic::parse("acme", scheme).unwrap_err().to_string();
        assert!(error.starts_with(field), "{scheme}: {error}");
    }
    for name in ["", "Acme", "ac me", "a.b"] {
        assert!(Generic::parse(name, r#"{"verify":"bearer"}"#).is_err(), "{name:?}");
    }
}
