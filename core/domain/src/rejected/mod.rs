//! Requests that did not pass: counted, and for some days kept with everything that was signed, so that those that are
//! genuine after all can still become events once the cause is mended, a wrong secret above all. Providers such as GitHub
//! never send them again.
//!
//! An adapter reports each one after its answer. [`Tally`] counts them, [`Quota`] bounds how many are kept, so that a flood
//! of forgeries costs little, and an object in a bucket of its own holds [`RejectedRequest`] and body. Operators list and
//! view them; [`Reverifier`] has the provider's adapter verify one again as of the moment at which it arrived, and removes
//! it only when the core has recorded its events.

mod counts;
mod expire;
mod key;
mod list;
mod quota;
mod request;
mod reverify;
mod tally;
mod view;

pub use self::counts::{COUNT, Counted, counts};
pub use self::expire::{ExpireError, Expired, FORGET_COUNTS, expire};
pub use self::key::RejectedKey;
pub use self::list::{Rejected, RejectedFilter, RejectedFilterInput, RejectedPage, list};
pub use self::quota::Quota;
pub use self::request::{RejectedRequest, Unreadable};
pub use self::reverify::{AdapterError, Adapters, LOG_REVERIFY, Reverified, Reverifier, Verdict};
pub use self::tally::{RECORD, Tally};
pub use self::view::{RejectedDetails, view};
