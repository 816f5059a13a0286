//! JSON Web Tokens in their compact form (RFC 7515, RFC 7519): three pieces of base64, the last of them a signature
//! over the text of the others.
//!
//! How a token is signed is the caller's to say and never the token's: one that names another algorithm is refused
//! before any key is looked for, so neither `none` nor a public key used as a password can get through.

use crate::{
    Rejection,
    body::Fields,
    event::is_short_text,
    public_key::{P256Key, RsaKey, Scheme, Verifier},
    signature::decode_base64_url,
};

/// `alg` of ECDSA on P-256 with SHA-256 (RFC 7518, section 3.4).
pub const ES256: &str = "ES256";
/// `alg` of RSA by PKCS#1 v1.5 with SHA-256 (RFC 7518, section 3.3).
pub const RS256: &str = "RS256";

/// A token that has the form of one; its signature is not verified yet. No `Debug`, since whoever has it can use it.
#[derive(Clone)]
pub struct Token<'a> {
    signed: &'a str,
    key_id: String,
    claims: String,
    signature: Vec<u8>,
}

impl<'a> Token<'a> {
    /// Reads a token that must name `algorithm` and a key.
    ///
    /// # Errors
    /// [`Rejection::SignatureMalformed`] when it is not a token, is signed in another way, or has a `crit` header,
    /// which asks for what nobody here understands (RFC 7515, section 4.1.11).
    pub fn parse(text: &'a str, algorithm: &str) -> Result<Self, Rejection> {
        let (signed, signature) = text.rsplit_once('.').ok_or(NOT_A_TOKEN)?;
        let (header, claims) = signed.split_once('.').ok_or(NOT_A_TOKEN)?;
        let header = decode_text(header)?;
        let header = Fields::read(&header, &["alg", "kid", "crit"]).map_err(|_| NOT_A_TOKEN)?;
        if header.lenient::<String>("alg").as_deref() != Some(algorithm) {
            return Err(Rejection::SignatureMalformed("the token is signed in another way"));
        }
        if header.raw("crit").is_some() {
            return Err(Rejection::SignatureMalformed("the token asks for an extension"));
        }
        let key_id = header.lenient::<String>("kid").filter(|id| is_short_text(id));
        Ok(Self {
            signed,
            key_id: key_id.ok_or(Rejection::SignatureMalformed("the token names no key"))?,
            claims: decode_text(claims)?,
            signature: decode_base64_url(signature).ok_or(NOT_A_TOKEN)?,
        })
    }

    /// The name of the key, 1–200 visible ASCII characters. Anybody may have written it.
    #[must_use]
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// Picks claims out of a token that this key signed by `ES256`.
    ///
    /// # Errors
    /// [`Rejection::SignatureMismatch`] when it did not; [`Rejection::SignatureMalformed`] when the claims are no
    /// object.
    pub fn claims_es256(
        &self,
        key: &P256Key,
        verifier: &dyn Verifier,
        names: &'static [&'static str],
    ) -> Result<Fields<'_>, Rejection> {
        self.claims(key.has_signed(verifier, self.signed.as_bytes(), &self.signature), names)
    }

    /// Picks claims out of a token that this key signed by `RS256`.
    ///
    /// # Errors
    /// The same.
    pub fn claims_rs256(
        &self,
        key: &RsaKey,
        verifier: &dyn Verifier,
        names: &'static [&'static str],
    ) -> Result<Fields<'_>, Rejection> {
        self.claims(
            key.has_signed(verifier, Scheme::RsaSha256, self.signed.as_bytes(), &self.signature),
            names,
        )
    }

    fn claims(&self, is_signed: bool, names: &'static [&'static str]) -> Result<Fields<'_>, Rejection> {
        if !is_signed {
            return Err(Rejection::SignatureMismatch);
        }
        Fields::read(&self.claims, names).map_err(|_| NOT_A_TOKEN)
    }
}

/// A claim without which a token cannot be judged.
///
/// # Errors
/// [`Rejection::SignatureMalformed`] when it is absent or of another type.
pub fn required_claim<'a, T: serde::Deserialize<'a>>(
    claims: &Fields<'a>,
    name: &str,
) -> Result<T, Rejection> {
    claims.lenient(name).ok_or(Rejection::SignatureMalformed("a claim is missing or not of its type"))
}

const NOT_A_TOKEN: Rejection = Rejection::SignatureMalformed("not a token");

fn decode_text(piece: &str) -> Result<String, Rejection> {
    let bytes = decode_base64_url(piece).ok_or(NOT_A_TOKEN)?;
    String::from_utf8(bytes).map_err(|_| NOT_A_TOKEN)
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

    use super::*;
    use crate::RustCrypto;

    /// The key, the claims and the signature of RFC 7515, appendix A.3. Its header names no key, so the signature fits
    /// the header without one.
    const RFC_SIGNED: &str = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFt\
        cGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    const RFC_SIGNATURE: &str =
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    const RFC_X: &str = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
    const RFC_Y: &str = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";

    fn rfc_token() -> Token<'static> {
        let (_, claims) = RFC_SIGNED.split_once('.').unwrap();
        Token {
            signed: RFC_SIGNED,
            key_id: String::new(),
            claims: decode_text(claims).unwrap(),
            signature: decode_base64_url(RFC_SIGNATURE).unwrap(),
        }
    }

    fn rfc_key() -> P256Key {
        let coordinate = |text| <[u8; 32]>::try_from(decode_base64_url(text).unwrap()).unwrap();
        P256Key::from_coordinates(&coordinate(RFC_X), &coordinate(RFC_Y))
    }

    #[test]
    fn es256_agrees_with_rfc_7515() {
        let token = rfc_token();
        let claims = token.claims_es256(&rfc_key(), &RustCrypto, &["iss", "exp"]).unwrap();
        assert_eq!(required_claim::<i64>(&claims, "exp"), Ok(1_300_819_380));
        assert_eq!(required_claim::<i64>(&claims, "iss").map_err(|e| e.reason()), Err("signature_malformed"));
        assert_eq!(required_claim::<i64>(&claims, "iat").map_err(|e| e.reason()), Err("signature_malformed"));
    }

    #[test]
    fn every_flipped_bit_of_a_signature_is_refused() {
        let good = rfc_token();
        for bit in 0..good.signature.len() * 8 {
            let mut token = good.clone();
            token.signature[bit / 8] ^= 1 << (bit % 8);
            let refused = token.claims_es256(&rfc_key(), &RustCrypto, &["iss"]);
            assert_eq!(refused.map(|_| ()), Err(Rejection::SignatureMismatch), "{bit}");
        }
        for length in [0, 63] {
            let mut token = good.clone();
            token.signature.truncate(length);
            assert!(token.claims_es256(&rfc_key(), &RustCrypto, &["iss"]).is_err());
        }
    }

    #[test]
    fn the_token_does_not_choose_how_it_is_verified() {
        let parse = |header: &str| {
            let text = format!("{}.e30.AA", URL_SAFE_NO_PAD.encode(header));
            Token::parse(&text, ES256).map(|token| token.key_id().to_owned()).map_err(|error| error.reason())
        };
        assert_eq!(parse(r#"{"alg":"ES256","kid":"k","typ":"JWT"}"#), Ok("k".to_owned()));
        for header in [
            r#"{"alg":"none","kid":"k"}"#,
            r#"{"alg":"RS256","kid":"k"}"#,
            r#"{"alg":"HS256","kid":"k"}"#,
            r#"{"alg":"es256","kid":"k"}"#,
            r#"{"alg":["ES256"],"kid":"k"}"#,
            r#"{"alg":"ES256","alg":"ES256","kid":"k"}"#,
            r#"{"kid":"k"}"#,
            r#"{"alg":"ES256"}"#,
            r#"{"alg":"ES256","kid":""}"#,
            r#"{"alg":"ES256","kid":"a b"}"#,
            r#"{"alg":"ES256","kid":7}"#,
            r#"{"alg":"ES256","kid":"k","crit":["b64"]}"#,
            r#"["ES256"]"#,
            "",
        ] {
            assert_eq!(parse(header), Err("signature_malformed"), "{header}");
        }
    }

    #[test]
    fn what_is_not_a_token_is_refused() {
        let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256","kid":"k"}"#);
        for text in ["", ".", "..", "a.b", "a.b.c", "é.e30.AA"] {
            assert!(Token::parse(text, ES256).is_err(), "{text}");
        }
        assert!(Token::parse(&format!("{header}.e30.AA"), ES256).is_ok());
        for rest in [".e30", ".e30.AA.AA", ".e30.A", ".e30=.AA", ".e30.AA==", ".e30.AA ", "..AA\n", "./w.AA"]
        {
            assert!(Token::parse(&format!("{header}{rest}"), ES256).is_err(), "{rest}");
        }
    }
}
