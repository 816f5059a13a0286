//! X.509 certificates (RFC 5280) as providers publish them: the key, how long it is good for, whom it names, and who
//! vouches for that.
//!
//! Only what these providers use is understood: RSA keys and certificates that are signed with SHA-256. Anything that a
//! certificate marks as critical and that is not looked at here makes it useless, as the RFC demands.

use x509_cert::{
    TbsCertificate,
    der::{Decode, Encode as _, Reader as _, SliceReader, asn1::BitString, oid::AssociatedOid},
    ext::pkix::{BasicConstraints, KeyUsage, SubjectAltName, name::GeneralName},
    spki::{AlgorithmIdentifierOwned, ObjectIdentifier},
};

use crate::{
    Rejection,
    public_key::{RsaKey, Scheme, Verifier},
    signature::decode_base64_bytes,
};

/// How a certificate has to be signed: `sha256WithRSAEncryption`.
const SHA256_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11");
/// The extensions that are looked at, and so the only ones that may be critical.
const UNDERSTOOD: [ObjectIdentifier; 3] = [BasicConstraints::OID, KeyUsage::OID, SubjectAltName::OID];

const PEM_BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const PEM_END: &str = "-----END CERTIFICATE-----";
/// More certificates than this make no chain that a provider would send.
const PEM_COUNT_MAX: usize = 10;

const UNREADABLE: Rejection = Rejection::KeyUntrusted("the certificate cannot be read");

/// A certificate. That it can be read says nothing about whether it can be trusted.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// What is signed, to the byte.
    signed: Vec<u8>,
    content: TbsCertificate,
    signature: BitString,
}

impl Certificate {
    /// Reads the certificates of a PEM text (RFC 7468), in order. Text around them is passed over.
    ///
    /// # Errors
    /// [`Rejection::KeyUntrusted`] when there is none, or one that cannot be read.
    pub fn read_pem(text: &str) -> Result<Vec<Self>, Rejection> {
        let pieces = text.split(PEM_BEGIN).skip(1).take(PEM_COUNT_MAX);
        let certificates = pieces.map(|piece| {
            let (base64, _) = piece.split_once(PEM_END)?;
            let base64: String = base64.split_ascii_whitespace().collect();
            Self::read_der(&decode_base64_bytes(&base64)?)
        });
        let certificates: Option<Vec<Self>> = certificates.collect();
        certificates.filter(|list| !list.is_empty()).ok_or(UNREADABLE)
    }

    fn read_der(der: &[u8]) -> Option<Self> {
        let mut reader = SliceReader::new(der).ok()?;
        let parts = reader.sequence(|inner| {
            Ok::<_, x509_cert::der::Error>((
                inner.tlv_bytes()?,
                AlgorithmIdentifierOwned::decode(inner)?,
                BitString::decode(inner)?,
            ))
        });
        let (signed, algorithm, signature) = parts.ok()?;
        reader.finish().ok()?;
        let content = TbsCertificate::from_der(signed).ok()?;
        // The algorithm stands in a certificate twice, once unsigned (RFC 5280, section 4.1.1.2).
        let is_consistent = *content.signature() == algorithm;
        is_consistent.then(|| Self { signed: signed.to_vec(), content, signature })
    }

    /// The key that the certificate is about.
    ///
    /// # Errors
    /// [`Rejection::KeyUntrusted`] when it is not an RSA key of 2,048 bits or more.
    pub fn rsa_key(&self) -> Result<RsaKey, Rejection> {
        let der = self.content.subject_public_key_info().to_der().ok();
        der.and_then(|der| RsaKey::from_der(&der))
            .ok_or(Rejection::KeyUntrusted("the key is not an RSA key, or a short one"))
    }

    /// Refuses a certificate that is not valid at this time, in seconds since 1970; both ends of its time are inside.
    ///
    /// # Errors
    /// [`Rejection::KeyUntrusted`].
    pub fn require_valid_at(&self, now_unix: i64) -> Result<(), Rejection> {
        let validity = self.content.validity();
        let now = u64::try_from(now_unix).unwrap_or_default();
        let span = validity.not_before.to_unix_duration().as_secs()
            ..=validity.not_after.to_unix_duration().as_secs();
        if span.contains(&now) {
            Ok(())
        } else {
            Err(Rejection::KeyUntrusted("the certificate is not valid at this time"))
        }
    }

    /// Refuses a certificate none of whose names is one of the provider's. Names are its DNS names, lower-case; the
    /// common name of the subject counts only where there are none (RFC 6125, section 6.4.4).
    ///
    /// # Errors
    /// [`Rejection::KeyUntrusted`].
    pub fn require_name(&self, is_expected: impl Fn(&str) -> bool) -> Result<(), Rejection> {
        let mut names: Vec<String> = Vec::new();
        if let Some(SubjectAltName(alternatives)) = self.extension::<SubjectAltName>()? {
            names.extend(alternatives.iter().filter_map(|name| match name {
                GeneralName::DnsName(name) => Some(name.as_str().to_ascii_lowercase()),
                _ => None,
            }));
        }
        if names.is_empty() {
            let common_name = self.content.subject().common_name().map_err(|_| UNREADABLE)?;
            names.extend(common_name.map(|name| name.value().to_ascii_lowercase()));
        }
        if names.iter().any(|name| is_expected(name)) {
            Ok(())
        } else {
            Err(Rejection::KeyUntrusted("the certificate is for another name"))
        }
    }

    /// An extension; `None` when it is absent.
    fn extension<'a, T: Decode<'a, Error = x509_cert::der::Error> + AssociatedOid>(
        &'a self,
    ) -> Result<Option<T>, Rejection> {
        let found = self.content.get_extension::<T>().map_err(|_| UNREADABLE)?;
        Ok(found.map(|(_, extension)| extension))
    }

    fn is_issued_by(&self, issuer: &Self, verifier: &dyn Verifier) -> bool {
        let is_signed = || {
            let signature = self.signature.as_bytes()?;
            let key = issuer.rsa_key().ok()?;
            Some(key.has_signed(verifier, Scheme::RsaSha256, &self.signed, signature))
        };
        self.content.issuer() == issuer.content.subject()
            && self.content.signature().oid == SHA256_WITH_RSA
            && is_signed().unwrap_or(false)
    }

    fn require_understood(&self) -> Result<(), Rejection> {
        let mut extensions = self.content.extensions().into_iter().flatten();
        if extensions.any(|extension| extension.critical && !UNDERSTOOD.contains(&extension.extn_id)) {
            return Err(Rejection::KeyUntrusted("the certificate has an unknown critical extension"));
        }
        Ok(())
    }

    /// Whether it may issue certificates below which stand `depth` further ones, the last not counted.
    fn may_issue(&self, depth: usize) -> Result<bool, Rejection> {
        let constraints = self.extension::<BasicConstraints>()?;
        let usage = self.extension::<KeyUsage>()?;
        Ok(constraints.is_some_and(|constraints| {
            constraints.ca && constraints.path_len_constraint.is_none_or(|limit| usize::from(limit) >= depth)
        }) && usage.is_none_or(|usage| usage.key_cert_sign()))
    }
}

/// Refuses a chain whose first certificate is not vouched for by one of `roots`, directly or through the others. All of
/// them must be valid at this time. Revocation is not looked at: that takes a network.
///
/// # Errors
/// [`Rejection::KeyUntrusted`].
pub fn require_chain<'a>(
    chain: &'a [Certificate],
    roots: &[Certificate],
    now_unix: i64,
    verifier: &dyn Verifier,
) -> Result<&'a Certificate, Rejection> {
    let (leaf, others) = chain.split_first().ok_or(UNREADABLE)?;
    if !leaf.extension::<KeyUsage>()?.is_none_or(|usage| usage.digital_signature()) {
        return Err(Rejection::KeyUntrusted("the certificate is not for signatures"));
    }
    let mut current = leaf;
    // Each step goes to one further up, so there are at most as many steps as there are certificates.
    for depth in 0..chain.len() {
        current.require_valid_at(now_unix)?;
        current.require_understood()?;
        let is_issuer = |issuer: &Certificate| {
            Ok::<_, Rejection>(current.is_issued_by(issuer, verifier) && issuer.may_issue(depth)?)
        };
        for root in roots {
            if is_issuer(root)? {
                root.require_valid_at(now_unix)?;
                return Ok(leaf);
            }
        }
        let mut next = None;
        for other in others {
            if next.is_none() && is_issuer(other)? {
                next = Some(other);
            }
        }
        current = next.ok_or(Rejection::KeyUntrusted("no trusted root vouches for the certificate"))?;
    }
    Err(Rejection::KeyUntrusted("no trusted root vouches for the certificate"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RustCrypto;

    const CERTIFICATES: &str = include_str!("../tests/certificates.pem");
    const NOW: i64 = 1_767_246_601;

    fn pem(name: &str) -> &'static str {
        let heading = ["# ", name, "\n"].concat();
        let (_, rest) = CERTIFICATES.split_once(&heading).unwrap();
        rest.split("\n# ").next().unwrap()
    }

    fn certificates(names: &[&str]) -> Vec<Certificate> {
        names.iter().flat_map(|name| Certificate::read_pem(pem(name)).unwrap()).collect()
    }

    fn chain(names: &[&str], roots: &[&str], now_unix: i64) -> Result<(), Rejection> {
        require_chain(&certificates(names), &certificates(roots), now_unix, &RustCrypto).map(|_| ())
    }

    #[test]
    fn a_chain_leads_to_a_root() {
        for names in [
            &["leaf", "intermediate"][..],
            &["leaf", "deeper_intermediate", "intermediate", "root"],
            &["leaf_of_root"],
            &["leaf_of_root", "intermediate"],
        ] {
            assert_eq!(chain(names, &["other_root", "root"], NOW), Ok(()), "{names:?}");
            assert!(chain(names, &["other_root"], NOW).is_err(), "{names:?}");
            assert!(chain(names, &[], NOW).is_err(), "{names:?}");
        }
        assert_eq!(
            chain(&["leaf", "intermediate"], &["intermediate"], NOW),
            Ok(()),
            "a root is what is configured"
        );
        let digicert = include_str!("../roots/digicert_high_assurance_ev_root_ca.pem");
        let roots = Certificate::read_pem(digicert).unwrap();
        assert!(require_chain(&certificates(&["digicert_intermediate"]), &roots, NOW, &RustCrypto).is_ok());
    }

    #[test]
    fn a_chain_with_a_fault_leads_nowhere() {
        for names in [
            &[][..],
            &["leaf"],
            &["leaf", "leaf"],
            &["leaf_of_ended", "ended_intermediate"],
            // `intermediate` may have no other below it.
            &["leaf_of_deeper", "deeper_intermediate", "intermediate"],
            &["leaf_of_leaf", "leaf", "intermediate"],
            &["leaf_of_no_issuer", "no_issuer"],
            &["leaf_for_encryption"],
            &["leaf_with_unknown"],
            &["leaf_by_sha1"],
            &["leaf_of_impostor"],
            &["other_root"],
        ] {
            let refused = chain(names, &["root"], NOW).map_err(|rejection| rejection.reason());
            assert_eq!(refused, Err("key_untrusted"), "{names:?}");
        }
    }

    #[test]
    fn both_ends_of_a_certificates_time_are_inside() {
        let (start, end) = (1_735_689_600, 2_524_521_600);
        let [leaf] = <[_; 1]>::try_from(certificates(&["leaf_of_root"])).unwrap();
        for (now_unix, is_valid) in
            [(start - 1, false), (start, true), (end, true), (end + 1, false), (-1, false), (i64::MAX, false)]
        {
            assert_eq!(leaf.require_valid_at(now_unix).is_ok(), is_valid, "{now_unix}");
            assert_eq!(chain(&["leaf", "intermediate"], &["root"], now_unix).is_ok(), is_valid, "{now_unix}");
        }
    }

    #[test]
    fn the_common_name_counts_only_without_dns_names() {
        let has = |certificate: &str, name: &str| {
            certificates(&[certificate])[0].require_name(|found| found == name).is_ok()
        };
        assert!(has("leaf", "signer.example.com") && !has("leaf", "unused.example.com"));
        assert!(has("leaf_of_root", "signer.example.com") && !has("leaf_of_root", "Corpus test"));
    }

    #[test]
    fn every_changed_byte_of_a_certificate_breaks_it() {
        let base64: String = pem("leaf_of_root").lines().filter(|line| !line.starts_with('-')).collect();
        let der = decode_base64_bytes(&base64).unwrap();
        let roots = certificates(&["root"]);
        for place in 0..der.len() {
            let mut changed = der.clone();
            changed[place] ^= 1;
            let Some(certificate) = Certificate::read_der(&changed) else { continue };
            assert!(require_chain(&[certificate], &roots, NOW, &RustCrypto).is_err(), "{place}");
        }
        for length in 0..der.len() {
            assert!(Certificate::read_der(&der[..length]).is_none(), "{length}");
        }
        assert!(Certificate::read_der(&[der.as_slice(), b"\0"].concat()).is_none());
    }

    #[test]
    fn only_rsa_keys_are_read() {
        let key =
            |name| certificates(&[name])[0].rsa_key().map(|_| ()).map_err(|rejection| rejection.reason());
        assert_eq!((key("leaf"), key("leaf_with_ec_key")), (Ok(()), Err("key_untrusted")));
    }

    #[test]
    fn what_is_not_pem_is_refused() {
        let good = pem("leaf");
        for text in [
            "",
            "x",
            PEM_BEGIN,
            "-----BEGIN CERTIFICATE----------END CERTIFICATE-----",
            &good.replace("CERTIFICATE", "PRIVATE KEY"),
            &good.replacen('M', "*", 1),
            &[good, PEM_BEGIN].concat(),
        ] {
            let read = Certificate::read_pem(text).map(|list| list.len());
            assert_eq!(read.map_err(|rejection| rejection.reason()), Err("key_untrusted"), "{text}");
        }
        assert_eq!(Certificate::read_pem(&good.replace('\n', "\r\n")).map(|list| list.len()), Ok(1));
    }
}
