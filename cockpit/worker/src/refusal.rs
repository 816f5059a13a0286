//! Why a request is not carried out, and the one place that gives each reason its status and code.

use serde_json::json;
use swarm_cloudflare::Misconfigured;
use swarm_cloudflare::body::BodyError;
use swarm_domain::incident::OperationError;
use swarm_domain::ports::SqlError;

use crate::LOG;
use crate::auth::Scope;

/// A request that is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No token is configured.
    Locked,
    /// No token, or one that nobody has.
    Unauthorized,
    /// The token does not allow it.
    Forbidden(Scope),
    /// There is nothing at this address.
    NoRoute,
    /// Nothing has this id.
    NotFound(String),
    /// The address takes these methods.
    MethodNotAllowed(&'static str),
    /// The request makes no sense.
    Invalid(String),
    /// The body is larger than this many bytes.
    TooLarge(usize),
    /// The state of what it is about forbids it.
    Conflict(String),
    /// The ledger or the deployment cannot do it now.
    Unavailable,
}

impl Refusal {
    /// Status, code and message.
    pub fn describe(&self) -> (u16, &'static str, String) {
        match self {
            Self::Locked => {
                (403, "locked", "no operator has a token; set the secret OPERATOR_TOKENS".to_owned())
            }
            Self::Unauthorized => (401, "unauthorized", "a valid bearer token is required".to_owned()),
            Self::Forbidden(scope) => {
                (403, "forbidden", format!("this token does not have the scope `{}`", scope.name()))
            }
            Self::NoRoute => (404, "not_found", "there is nothing at this address".to_owned()),
            Self::NotFound(message) => (404, "not_found", message.clone()),
            Self::MethodNotAllowed(allowed) => {
                (405, "method_not_allowed", format!("this address takes {allowed}"))
            }
            Self::Invalid(message) => (400, "invalid", message.clone()),
            Self::TooLarge(max) => (413, "payload_too_large", format!("the limit is {max} bytes")),
            Self::Conflict(message) => (409, "conflict", message.clone()),
            Self::Unavailable => {
                (503, "unavailable", "the ledger does not answer; look before you try again".to_owned())
            }
        }
    }
}

impl From<OperationError> for Refusal {
    fn from(error: OperationError) -> Self {
        let message = error.to_string();
        match error {
            OperationError::NotFound(_) => Self::NotFound(message),
            OperationError::Illegal { .. } | OperationError::NotReplayable(_) | OperationError::Ended(_) => {
                Self::Conflict(message)
            }
            OperationError::Invalid { .. } => Self::Invalid(message),
            OperationError::Unavailable(_) | OperationError::Bucket(_) => {
                LOG.error("a store did not answer", json!({ "error": message }));
                Self::Unavailable
            }
        }
    }
}

impl From<SqlError> for Refusal {
    fn from(error: SqlError) -> Self {
        OperationError::from(error).into()
    }
}

impl From<Misconfigured> for Refusal {
    fn from(error: Misconfigured) -> Self {
        LOG.error("cannot serve operators", json!({ "error": error.to_string() }));
        Self::Unavailable
    }
}

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge(max) => Self::TooLarge(max),
            BodyError::Unreadable => Self::Invalid("the body did not arrive whole".to_owned()),
        }
    }
}
