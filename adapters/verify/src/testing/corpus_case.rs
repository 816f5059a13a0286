//! Cases of the corpus for the tests of providers whose private key only they have.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::Value;

/// A request of the corpus.
pub struct CorpusCase {
    /// Its body.
    pub body: Vec<u8>,
    /// When it arrived, in seconds since 1970.
    pub now_unix: i64,
    json: Value,
}

impl CorpusCase {
    /// The case of this id in a file of the corpus.
    pub fn find(corpus: &str, id: &str) -> Self {
        let mut cases = corpus.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let json = cases.find(|case| case["id"] == id).unwrap();
        let body = BASE64.decode(json["body_base64"].as_str().unwrap()).unwrap();
        Self { body, now_unix: json["now_unix"].as_i64().unwrap(), json }
    }

    /// The value of a header, by the name that the case spells.
    pub fn header(&self, name: &str) -> &str {
        self.json["headers"][name].as_str().unwrap()
    }

    /// Another setting.
    pub fn config(&self, name: &str) -> &str {
        self.json["config"][name].as_str().unwrap()
    }

    /// What a download from an address would bring.
    pub fn download(&self, url: &str) -> String {
        let document = &self.json["remote"][url];
        document.as_str().map_or_else(|| document.to_string(), str::to_owned)
    }
}
