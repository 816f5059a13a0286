//! Tries one provider with requests, for the tests in the providers' files.

use super::flipped;
use crate::{
    Context, Headers, Outgoing, Provider, Rejection, Request, Secrets, Settings, Sign, Verified,
    VerifiedEvent, provider, signer,
};

/// When the requests of the tests arrive.
pub(crate) const NOW: i64 = 1_767_237_945;
/// Their secret, unless a test says otherwise.
pub(crate) const SECRET: &str = "a-secret-of-the-tests";
/// Where they go.
pub(crate) const URL: &str = "https://hooks.example.com/in/x?a=1";

/// One endpoint.
pub(crate) struct Trial {
    provider: &'static dyn Provider,
    sign: Sign,
    pub(crate) settings: Settings,
}

impl Trial {
    /// An endpoint of this provider with [`SECRET`].
    pub(crate) fn of(name: &str) -> Self {
        let provider = provider(name).unwrap();
        let settings = Settings::new(provider, Secrets::from_list([SECRET]));
        Self { provider, sign: signer(name).unwrap(), settings }
    }

    /// The same with other secrets.
    pub(crate) fn with_secrets(mut self, secrets: &[&str]) -> Self {
        self.settings.secrets = Secrets::from_list(secrets);
        self
    }

    /// The same with an option.
    pub(crate) fn with_option(mut self, name: &'static str, value: &str) -> Self {
        self.settings = self.settings.with_option(name, value);
        self
    }

    /// A request with JSON, signed with [`SECRET`].
    pub(crate) fn signed(&self, body: &str) -> Outgoing {
        self.signed_at(NOW, Outgoing::post(URL, "application/json", body))
    }

    /// Any request, signed with [`SECRET`] at a time.
    pub(crate) fn signed_at(&self, now_unix: i64, request: Outgoing) -> Outgoing {
        (self.sign)(request, SECRET, now_unix)
    }

    /// The verdict. What it borrows from is leaked, so that tests can keep it.
    pub(crate) fn verify(&self, request: Outgoing) -> Result<Verified<'static>, Rejection> {
        let request: &'static Outgoing = Box::leak(Box::new(request));
        let headers: Headers = request.headers.iter().cloned().collect();
        let headers: &'static Headers = Box::leak(Box::new(headers));
        let request = Request { method: request.method, url: &request.url, headers, body: &request.body };
        self.provider.verify(&request, &self.settings, &Context::at(NOW))
    }

    /// The events in a body that is signed with [`SECRET`].
    pub(crate) fn read(&self, body: &str) -> Result<Vec<VerifiedEvent<'static>>, Rejection> {
        self.verify(self.signed(body)).map(|verified| verified.events)
    }

    /// The one event in a body that is signed with [`SECRET`].
    pub(crate) fn read_one(&self, body: &str) -> VerifiedEvent<'static> {
        let [event] = <[_; 1]>::try_from(self.read(body).unwrap()).unwrap();
        event
    }

    /// Why a request is refused, or `None` if it is not.
    pub(crate) fn reason(&self, request: Outgoing) -> Option<&'static str> {
        self.verify(request).err().map(|rejection| rejection.reason())
    }

    /// Asserts that a request passes, and no more when one bit is flipped in its body or in one of these headers.
    pub(crate) fn assert_flips_are_refused(&self, request: &Outgoing, headers: &[&str]) {
        assert_eq!(self.verify(request.clone()).err(), None);
        for body in flipped(&request.body) {
            self.assert_unauthorized(Outgoing { body, ..request.clone() });
        }
        for name in headers {
            let at = request.headers.iter().position(|(field, _)| field == name).unwrap();
            for value in flipped(request.headers[at].1.as_bytes()) {
                let mut changed = request.clone();
                changed.headers[at].1 = value.into_iter().map(char::from).collect();
                self.assert_unauthorized(changed);
            }
        }
    }

    /// Asserts that a request passes, and no more when one bit is flipped in its URL.
    pub(crate) fn assert_url_flips_are_refused(&self, request: &Outgoing) {
        assert_eq!(self.verify(request.clone()).err(), None);
        for url in flipped(request.url.as_bytes()) {
            let url = url.into_iter().map(char::from).collect();
            self.assert_unauthorized(Outgoing { url, ..request.clone() });
        }
    }

    fn assert_unauthorized(&self, request: Outgoing) {
        let shown = format!("{request:?}");
        let status = self.verify(request).map_err(|rejection| rejection.status());
        assert_eq!(status, Err(401), "{shown}");
    }
}
