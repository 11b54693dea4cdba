//! TLS, as `sslmode` asks for it.
//!
//! `disable`: none. `prefer`, the default: where the server offers it, without looking at its certificate, as libpq does;
//! this hides what is said from whoever only listens. `require`, and as its synonyms `verify-ca` and `verify-full`: always,
//! and the certificate must be that of the host, by an authority that the system trusts or that `sslrootcert` names, or
//! the very one that is in that file.

use std::sync::Arc;

use outlast_store::StoreError;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How a server's certificate is looked at.
pub(crate) fn tls(mode: SslMode, root_file: Option<&str>) -> Result<MakeRustlsConnect, StoreError> {
    let fail = |error: &dyn std::fmt::Display| StoreError::Unusable {
        message: format!("TLS cannot be set up: {error}"),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| fail(&error))?;
    let signatures = provider.signature_verification_algorithms;
    let known = match (mode, root_file) {
        (SslMode::Require, file) => {
            let known = file.map_or_else(|| Ok(system()), of_file)?;
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(known.iter().cloned());
            let by_authority = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(|error| fail(&error))?;
            let itself = if file.is_some() { known } else { Vec::new() };
            Some(Known { by_authority, itself })
        }
        _ => None,
    };
    let verifier = Arc::new(Verifier { known, signatures });
    let config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn system() -> Vec<CertificateDer<'static>> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::debug!(%error, "a system certificate cannot be read");
    }
    found.certs
}

fn of_file(file: &str) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let fail =
        |why: &dyn std::fmt::Display| StoreError::Unusable { message: format!("sslrootcert {file}: {why}") };
    let read = CertificateDer::pem_file_iter(file).map_err(|error| fail(&error))?;
    let certificates = read.collect::<Result<Vec<_>, _>>().map_err(|error| fail(&error))?;
    if certificates.is_empty() {
        return Err(fail(&"no certificate is in it"));
    }
    Ok(certificates)
}

/// Takes certificates that are known, or any; what is signed with one must be signed right either way.
#[derive(Debug)]
struct Verifier {
    /// None: any certificate will do.
    known: Option<Known>,
    signatures: WebPkiSupportedAlgorithms,
}

/// The host's certificates by a known authority, and those that are known themselves. A certificate that signs itself,
/// as PostgreSQL's documents make one, is an authority's by its form, and no host's.
#[derive(Debug)]
struct Known {
    by_authority: Arc<WebPkiServerVerifier>,
    itself: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(known) = &self.known else {
            return Ok(ServerCertVerified::assertion());
        };
        if known.itself.iter().any(|known| known == end) {
            rustls::client::verify_server_name(&ParsedCertificate::try_from(end)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        known.by_authority.verify_server_cert(end, between, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.signatures)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.signatures)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signatures.supported_schemes()
    }
}
