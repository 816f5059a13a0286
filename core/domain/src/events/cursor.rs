//! Where a list of events stands: one place in each shard that it goes through, as text that clients hand back.

use std::fmt;

use crate::incident::OperationError;
use crate::ports::SQL_INTEGER_MAX;
use crate::time::Timestamp;

/// Between two events of a shard. Lists of a tenant go by time and then by number, all others by number alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub at: Timestamp,
    pub seq: i64,
}

impl Place {
    /// Behind everything.
    pub(super) const fn end(at: Timestamp) -> Self {
        Self { at, seq: SQL_INTEGER_MAX }
    }

    fn parse(text: &str) -> Option<Self> {
        let (at, seq) = text.split_once('.')?;
        let seq = seq.parse().ok().filter(|seq| (-SQL_INTEGER_MAX..=SQL_INTEGER_MAX).contains(seq))?;
        Some(Self { at: Timestamp::from_unix_ms(at.parse().ok()?), seq })
    }
}

/// The places of the shards, in order; none where nothing is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor(pub Vec<Option<Place>>);

const SEPARATOR: &str = "~";
const NOTHING_LEFT: &str = "x";

impl Cursor {
    /// Reads a cursor of a list that goes through so many shards.
    pub(super) fn parse(text: &str, shards: usize) -> Result<Self, OperationError> {
        let place = |part| if part == NOTHING_LEFT { Some(None) } else { Place::parse(part).map(Some) };
        let places: Option<Vec<_>> = text.split(SEPARATOR).map(place).collect();
        places
            .filter(|places| places.len() == shards)
            .map(Self)
            .ok_or_else(|| OperationError::invalid("cursor", "is not one that this list has given"))
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, place) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str(SEPARATOR)?;
            }
            match place {
                Some(place) => write!(f, "{}.{}", place.at.unix_ms(), place.seq)?,
                None => f.write_str(NOTHING_LEFT)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_and_nothing_else_is_one() {
        let place = |seq| Place { at: Timestamp::from_unix_ms(1_767_225_600_000), seq };
        let cursor = Cursor(vec![Some(place(17)), None, Some(place(-3))]);
        assert_eq!(cursor.to_string(), "1767225600000.17~x~1767225600000.-3");
        assert_eq!(Cursor::parse(&cursor.to_string(), 3).unwrap(), cursor);
        for text in
            ["", "1", "x", "1.1", "1.1~x~1.1~1.1", "1.1~x~a.1", "1.1~x~1.9007199254740992", "1.0.3~x~x"]
        {
            assert!(Cursor::parse(text, 3).is_err(), "{text:?}");
        }
    }
}
