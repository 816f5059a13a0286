//! Objects of the archive as bytes: gzip over lines.

use std::io::{self, BufRead, BufReader, Read, Write};

use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};

use crate::limits::ARCHIVE_LINE_BYTES_MAX;

/// Compresses lines. No time is written into the header: the same lines make the same bytes.
pub(super) fn compress(lines: &[String]) -> io::Result<Vec<u8>> {
    let mut encoder: GzEncoder<Vec<u8>> = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    for line in lines {
        encoder.write_all(line.as_bytes())?;
        encoder.write_all(b"\n")?;
    }
    encoder.finish()
}

/// The lines of a compressed object, one at a time, so that it is never in memory as a whole.
pub(super) struct Lines<'a>(BufReader<MultiGzDecoder<&'a [u8]>>);

impl<'a> Lines<'a> {
    pub(super) fn of(object: &'a [u8]) -> Self {
        Self(BufReader::new(MultiGzDecoder::new(object)))
    }
}

impl Iterator for Lines<'_> {
    type Item = io::Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = String::new();
        match self.0.by_ref().take(ARCHIVE_LINE_BYTES_MAX).read_line(&mut line) {
            Ok(0) => None,
            Ok(_) if line.pop() == Some('\n') => Some(Ok(line)),
            Ok(_) => Some(Err(io::Error::other("a line is too long or has no end"))),
            Err(error) => Some(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_and_the_same_lines_make_the_same_bytes() {
        let lines = ["{\"a\":1}".to_owned(), "é\u{2028}".to_owned(), String::new()];
        let object = compress(&lines).unwrap();
        assert_eq!(object, compress(&lines).unwrap());
        assert_eq!(Lines::of(&object).collect::<io::Result<Vec<_>>>().unwrap(), lines);
    }

    #[test]
    fn a_damaged_object_ends_with_an_error() {
        let object = compress(&["x".repeat(100)]).unwrap();
        for damaged in [&object[..object.len() - 9], b"hello", &object[..12]] {
            assert!(Lines::of(damaged).any(|line| line.is_err()));
        }
        let endless = compress(&["y".repeat(ARCHIVE_LINE_BYTES_MAX as usize + 1)]).unwrap();
        assert!(Lines::of(&endless).next().unwrap().is_err());
    }
}
