//! Public-key arithmetic by the runtime. It answers asynchronously and verifying does not wait, so questions are collected while a
//! request is verified, each answered "no" for the time being, then put to the runtime, and the request is verified again. A
//! verdict counts only when every question that it took had its answer.

use std::cell::RefCell;
use std::rc::Rc;

use swarm_verify::public_key::{Check, Scheme, Verifier};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen(module = "/src/web_crypto.mjs")]
extern "C" {
    #[wasm_bindgen(js_name = hasSigned)]
    async fn has_signed(scheme: &str, key: &[u8], message: &[u8], signature: &[u8]) -> JsValue;
}

/// A chain of ten certificates and the message itself take one question after the other; a request that takes more is none.
const ROUNDS_MAX: usize = 12;

/// A question and its answer, if it is there.
struct Asked {
    scheme: Scheme,
    key: Vec<u8>,
    /// Shared among questions: a large body may come with many signatures, and is kept once.
    message: Rc<[u8]>,
    signature: Vec<u8>,
    answer: Option<bool>,
}

/// The questions of one request.
#[derive(Default)]
pub struct WebCrypto(RefCell<Vec<Asked>>);

impl Verifier for WebCrypto {
    fn has_signed(&self, check: &Check<'_>) -> bool {
        let mut asked = self.0.borrow_mut();
        if let Some(known) = asked.iter().find(|asked| asked.check() == *check) {
            return known.answer.unwrap_or(false);
        }
        let same = asked.iter().find(|asked| *asked.message == *check.message);
        let message = same.map_or_else(|| check.message.into(), |asked| Rc::clone(&asked.message));
        asked.push(Asked {
            scheme: check.scheme,
            key: check.key.to_vec(),
            message,
            signature: check.signature.to_vec(),
            answer: None,
        });
        false
    }
}

impl WebCrypto {
    /// What `verify` says once all that it asks is answered.
    pub async fn settle<T>(&self, verify: impl Fn() -> T) -> T {
        let mut verdict = verify();
        for _ in 0..ROUNDS_MAX {
            if !self.answer().await {
                break;
            }
            verdict = verify();
        }
        verdict
    }

    /// Answers what is open; `false` if nothing is.
    async fn answer(&self) -> bool {
        let open: Vec<Asked> = {
            let mut asked = self.0.borrow_mut();
            let (known, open) =
                std::mem::take(&mut *asked).into_iter().partition(|asked| asked.answer.is_some());
            *asked = known;
            open
        };
        let is_open = !open.is_empty();
        for mut question in open {
            let Asked { scheme, key, message, signature, .. } = &question;
            question.answer = Some(has_signed(name(*scheme), key, message, signature).await.is_truthy());
            self.0.borrow_mut().push(question);
        }
        is_open
    }
}

impl Asked {
    fn check(&self) -> Check<'_> {
        Check { scheme: self.scheme, key: &self.key, message: &self.message, signature: &self.signature }
    }
}

fn name(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::RsaSha1 => "RsaSha1",
        Scheme::RsaSha256 => "RsaSha256",
        Scheme::P256Sha256 => "P256Sha256",
        Scheme::Ed25519 => "Ed25519",
    }
}
