//! Events of the shape that a provider sends: requests of the corpus, made new. Ids are drawn anew and times are brought up to
//! date, wherever they stand.

use std::fs;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use swarm_verify::Outgoing;

use crate::random;
use crate::workspace::Workspace;

/// Numbers that are no further than this from the time of a sample are times.
const NEAR_SECONDS: i64 = 7 * 24 * 60 * 60;

/// A request of the corpus.
pub struct Sample(Value);

impl Sample {
    /// The first good request of a provider with an event of this type, or of any.
    pub fn find(workspace: &Workspace, provider: &str, wanted: Option<&str>) -> Result<Self> {
        let path = workspace.root.join(format!("adapters/verify/tests/corpus/{provider}.jsonl"));
        let text = fs::read_to_string(&path).with_context(|| format!("no {}", path.display()))?;
        let mut types = Vec::new();
        for line in text.lines() {
            let case = Self(serde_json::from_str(line)?);
            let Some(found) = case.event_type().filter(|_| case.is_good()) else { continue };
            if wanted.is_none_or(|wanted| wanted == found) {
                return Ok(case);
            }
            types.push(found.to_owned());
        }
        types.sort_unstable();
        types.dedup();
        bail!("there is no sample of that type; there are {}", types.join(", "))
    }

    /// The request with another id, as if it was made now, and that id.
    pub fn request(&self, url: &str, now_unix: i64) -> Result<(String, Outgoing)> {
        let old = self.text("/expect_events/0/id");
        let new = fresh(old)?;
        let then_unix = self.0.pointer("/now_unix").and_then(Value::as_i64).unwrap_or(now_unix);
        let renew = |text: &str| {
            let text = if old.is_empty() { text.to_owned() } else { text.replace(old, &new) };
            with_times(&text, then_unix, now_unix)
        };
        let body = BASE64.decode(self.text("/body_base64"))?;
        let body = renew(std::str::from_utf8(&body).context("the sample is not UTF-8")?);
        // Where the id is not signed, the body is the identity, so it has to be new as well.
        let body = match body.strip_prefix('{') {
            Some(rest) if !rest.trim_start().starts_with('}') => {
                format!(r#"{{"trigger":"{}",{rest}"#, random::hex(8)?)
            }
            _ => body,
        };
        let mut request = Outgoing::post(url, "application/json", body);
        for (name, value) in self.0.pointer("/headers").and_then(Value::as_object).into_iter().flatten() {
            // Names of headers are as many as the corpus has, so they may stay until the program ends.
            let name: &'static str = name.to_ascii_lowercase().leak();
            if !matches!(name, "host" | "content-length" | "accept-encoding") {
                request = request.with_header(name, renew(value.as_str().unwrap_or_default()));
            }
        }
        Ok((if new.is_empty() { "without an id".to_owned() } else { new }, request))
    }

    fn event_type(&self) -> Option<&str> {
        self.0.pointer("/expect_events/0/type")?.as_str()
    }

    fn is_good(&self) -> bool {
        [("/expect", "accept"), ("/class", "core"), ("/method", "POST")]
            .iter()
            .all(|(pointer, value)| self.text(pointer) == *value)
    }

    fn text(&self, pointer: &str) -> &str {
        self.0.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }
}

/// An id of the same shape: its last letters and digits are others.
fn fresh(id: &str) -> Result<String> {
    const CHANGED: usize = 12;
    let random = random::hex(CHANGED)?;
    let mut random = random.bytes();
    let mut bytes = id.as_bytes().to_vec();
    for byte in bytes.iter_mut().rev().filter(|byte| byte.is_ascii_alphanumeric()).take(CHANGED) {
        let digit = random.next().map_or(0, |byte| byte.wrapping_mul(7));
        *byte = match *byte {
            b'0'..=b'9' => b'1' + digit % 9,
            b'a'..=b'z' => b'a' + digit % 6,
            _ => b'A' + digit % 6,
        };
    }
    String::from_utf8(bytes).context("an id is not ASCII")
}

/// The text with every time near `then_unix`, in seconds or milliseconds, moved as far as it is to `now_unix`.
fn with_times(text: &str, then_unix: i64, now_unix: i64) -> String {
    let mut renewed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from_digits) = rest.split_at(start);
        let end = from_digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(from_digits.len());
        let (digits, after) = from_digits.split_at(end);
        renewed.push_str(before);
        renewed.push_str(&moved(digits, then_unix, now_unix).unwrap_or_else(|| digits.to_owned()));
        rest = after;
    }
    renewed.push_str(rest);
    renewed
}

fn moved(digits: &str, then_unix: i64, now_unix: i64) -> Option<String> {
    let unit = match digits.len() {
        10 => 1,
        13 => 1000,
        _ => return None,
    };
    let number: i64 = digits.parse().ok()?;
    let is_time = (number / unit).abs_diff(then_unix) <= NEAR_SECONDS.unsigned_abs();
    is_time.then(|| (number + (now_unix - then_unix) * unit).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_brought_up_to_date_and_other_numbers_stay() {
        let text =
            r#"{"at":1767237945,"ms":1767237945123,"old":1500000000,"n":12345678901,"t":"x1767237900y"}"#;
        assert_eq!(
            with_times(text, 1_767_237_945, 1_800_000_000),
            r#"{"at":1800000000,"ms":1800000000123,"old":1500000000,"n":12345678901,"t":"x1799999955y"}"#
        );
    }

    #[test]
    fn a_fresh_id_has_the_shape_of_the_old_one() {
        let id = fresh("evt_1Abc-9f").unwrap();
        assert_eq!((id.len(), id.find('_'), id.find('-')), (11, Some(3), Some(8)));
        assert_ne!(fresh("a1b2c3d4e5f6").unwrap(), fresh("a1b2c3d4e5f6").unwrap());
        assert_eq!(fresh("").unwrap(), "");
    }
}
