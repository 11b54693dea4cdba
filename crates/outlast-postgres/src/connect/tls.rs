//! TLS, as `sslmode` asks for it.
//!
//! `disable`: none. `prefer`, the default: where the server offers it, without looking at its certificate, as libpq does;
//! this hides what is said from whoever only listens. `require`, and as its synonyms `verify-ca` and `verify-full`: always,
//! and the certificate must be that of the host, by an authority that the system trusts or that `sslrootcert` names.

use std::sync::Arc;

use outlast_store::StoreError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How a server's certificate is looked at.
pub(crate) fn tls(mode: SslMode, root_file: Option<&str>) -> Result<MakeRustlsConnect, StoreError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::Unusable { message: format!("TLS cannot be set up: {error}") })?;
    let config = if matches!(mode, SslMode::Require) {
        builder.with_root_certificates(roots(root_file)?).with_no_client_auth()
    } else {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Any(provider))).with_no_client_auth()
    };
    Ok(MakeRustlsConnect::new(config))
}

fn roots(file: Option<&str>) -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::debug!(%error, "a system certificate cannot be read");
        }
        roots.add_parsable_certificates(found.certs);
        return Ok(roots);
    };
    let fail =
        |why: &dyn std::fmt::Display| StoreError::Unusable { message: format!("sslrootcert {file}: {why}") };
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| fail(&error))? {
        let certificate = certificate.map_err(|error| fail(&error))?;
        roots.add(certificate).map_err(|error| fail(&error))?;
    }
    if roots.is_empty() {
        return Err(fail(&"no certificate is in it"));
    }
    Ok(roots)
}

/// Takes any certificate; what is signed with it must still be signed right.
#[derive(Debug)]
struct Any(Arc<CryptoProvider>);

impl ServerCertVerifier for Any {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
