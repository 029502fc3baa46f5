//! The parts of verification that no handshake shows.

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls_pki_types::CertificateDer;

use super::certificate::{Summary, validity};

#[test]
fn the_period_of_validity_is_read() {
    // Seconds by `date -u -d DATE +%s`. Dates from 2050 on are written in the long form.
    for (from, until, want) in [
        ((1999, 12, 31), (2000, 2, 29), (946_598_400, 951_782_400)),
        ((2026, 1, 1), (2049, 12, 31), (1_767_225_600, 2_524_521_600)),
        ((2050, 1, 1), (2100, 3, 1), (2_524_608_000, 4_107_542_400)),
    ] {
        let mut params = CertificateParams::new(vec!["a".to_owned()]).unwrap();
        params.not_before = date_time_ymd(from.0, from.1, from.2);
        params.not_after = date_time_ymd(until.0, until.1, until.2);
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        assert_eq!(validity(certificate.der()), Some(want));
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let params = CertificateParams::new(vec!["a".to_owned()]).unwrap();
    let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
    let bytes = certificate.der();
    for length in 0..bytes.len() {
        let cut = CertificateDer::from(bytes[..length].to_vec());
        assert_eq!(validity(&cut), None, "{length}");
    }
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut bytes = bytes.to_vec();
            bytes[at] ^= flip;
            Summary::of(&CertificateDer::from(bytes));
        }
    }
}

#[test]
fn names_are_read_without_what_could_steer_a_terminal() {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CountryName, "DE");
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "acme\u{1b}[2J");
    params.distinguished_name.push(rcgen::DnType::CommonName, "x".repeat(100));
    let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
    let summary = Summary::of(certificate.der());
    assert_eq!(summary.subject, format!("O=acme[2J, CN={}", "x".repeat(64)));
    assert_eq!(summary.issuer, summary.subject);
    assert_eq!(summary.validity, validity(certificate.der()));
}
