//! Making a sample new: another id of the same shape, and times that are those of now.

/// Numbers that are no further than this from the time of a sample are times.
const NEAR_SECONDS: i64 = 7 * 24 * 60 * 60;

/// An id of the same shape: its last letters and digits are others, and how it begins, which tells its kind, stays.
pub fn fresh_id(id: &str, token: &str) -> String {
    let changed = (id.len() - id.len() / 4).min(12);
    let mut random = token.bytes();
    let mut bytes = id.as_bytes().to_vec();
    for byte in bytes.iter_mut().rev().filter(|byte| byte.is_ascii_alphanumeric()).take(changed) {
        let digit = random.next().map_or(0, |byte| byte.wrapping_mul(7));
        *byte = match *byte {
            b'0'..=b'9' => b'1' + digit % 9,
            b'a'..=b'z' => b'a' + digit % 6,
            _ => b'A' + digit % 6,
        };
    }
    // Only ASCII letters and digits were changed, and to others of their kind.
    String::from_utf8(bytes).unwrap_or_default()
}

/// The text with every time near `then_unix`, in seconds or milliseconds, moved as far as it is to `now_unix`.
pub fn with_times(text: &str, then_unix: i64, now_unix: i64) -> String {
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
        let id = fresh_id("evt_1Abc-9f", "5f3a9c0e7b1d2846");
        assert_eq!((id.len(), id.find('_'), id.find('-')), (11, Some(3), Some(8)));
        assert_ne!(fresh_id("a1b2c3d4e5f6", "5f3a9c0e7b1d"), fresh_id("a1b2c3d4e5f6", "0e7b1d5f3a9c"));
        assert_eq!(fresh_id("", "5f3a9c0e7b1d"), "");
    }
}
