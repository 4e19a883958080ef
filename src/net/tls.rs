//! TLS on a TCP connection, by rustls.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use redlatch_core::node::Config;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{
    DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, ServerConnection, SignatureScheme,
    SupportedProtocolVersion,
};
use tokio::net::TcpStream;

/// Why the settings about TLS do not make a server.
#[derive(Debug)]
pub enum TlsError {
    NoCertificate,
    NoKey,
    /// Clients have to show a certificate, and no authority is there to verify it.
    NoAuthority,
    /// `tls-key-file-pass`: keys that need a password are not supported.
    EncryptedKey,
    UnknownProtocol(String),
    /// The file exists and cannot be used, or does not exist.
    File {
        path: PathBuf,
        why: String,
    },
    Settings(String),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::NoCertificate => write!(f, "No tls-cert-file configured!"),
            TlsError::NoKey => write!(f, "No tls-key-file configured!"),
            TlsError::NoAuthority => write!(
                f,
                "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-cluster, tls-replication or \
                 tls-auth-clients are enabled!"
            ),
            TlsError::EncryptedKey => write!(f, "tls-key-file-pass: encrypted keys are not supported"),
            TlsError::UnknownProtocol(name) => {
                write!(f, "tls-protocols: {name} is not supported, only TLSv1.2 and TLSv1.3")
            }
            TlsError::File { path, why } => write!(f, "Failed to load {}: {why}", path.display()),
            TlsError::Settings(why) => write!(f, "{why}"),
        }
    }
}

impl std::error::Error for TlsError {}

/// What a node says of itself to clients that speak TLS, and what it asks of them.
#[derive(Clone)]
pub struct Acceptor(Arc<ServerConfig>);

impl Acceptor {
    /// Reads the files that the settings `tls-…` of a node name.
    ///
    /// # Errors
    /// Fails as Redis does if a certificate, its key or the authority is missing, and if a file cannot be used.
    pub fn new(config: &Config) -> Result<Acceptor, TlsError> {
        let file = |name: &str| config.get(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let certificate = file("tls-cert-file").ok_or(TlsError::NoCertificate)?;
        let key = file("tls-key-file").ok_or(TlsError::NoKey)?;
        if file("tls-key-file-pass").is_some() {
            return Err(TlsError::EncryptedKey);
        }
        let builder = ServerConfig::builder_with_protocol_versions(&protocols(config)?);
        let builder = match config.get("tls-auth-clients") {
            Some("no") => builder.with_no_client_auth(),
            asked => {
                let trusted = trusted(file("tls-ca-cert-file"), file("tls-ca-cert-dir"))?;
                let mut authorities = RootCertStore::empty();
                authorities.add_parsable_certificates(trusted.iter().cloned());
                if authorities.is_empty() {
                    return Err(TlsError::NoAuthority);
                }
                let verifier = WebPkiClientVerifier::builder(Arc::new(authorities));
                let verifier = match asked {
                    Some("optional") => verifier.allow_unauthenticated(),
                    _ => verifier,
                };
                let by_authority = verifier.build().map_err(|error| TlsError::Settings(error.to_string()))?;
                builder.with_client_cert_verifier(Arc::new(Verifier { by_authority, trusted }))
            }
        };
        let chain = certificates(&certificate)?;
        let key = PrivateKeyDer::from_pem_file(&key).map_err(|error| unusable(&key, error))?;
        let config =
            builder.with_single_cert(chain, key).map_err(|error| TlsError::Settings(error.to_string()))?;
        Ok(Acceptor(Arc::new(config)))
    }

    /// Speaks TLS on a connection: returns it when the client has shown what it has to show.
    ///
    /// # Errors
    /// Fails if the client goes away, does not speak TLS, or shows no acceptable certificate.
    pub async fn accept(&self, tcp: TcpStream) -> io::Result<TlsStream> {
        let session = ServerConnection::new(Arc::clone(&self.0)).map_err(io::Error::other)?;
        let mut stream = TlsStream { tcp, session };
        while stream.session.is_handshaking() {
            if stream.session.wants_write() {
                stream.tcp.writable().await?;
                stream.send()?;
                continue;
            }
            stream.tcp.readable().await?;
            match stream.receive() {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    // The alert tells the client what was wrong.
                    let _ = stream.send();
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(stream)
    }
}

fn unusable(path: &Path, why: impl fmt::Display) -> TlsError {
    TlsError::File { path: path.to_owned(), why: why.to_string() }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = CertificateDer::pem_file_iter(path).map_err(|error| unusable(path, error))?;
    found.collect::<Result<Vec<_>, _>>().map_err(|error| unusable(path, error))
}

/// Returns the certificates that are trusted: authorities, or certificates that signed themselves.
fn trusted(file: Option<PathBuf>, dir: Option<PathBuf>) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let mut paths: Vec<PathBuf> = file.into_iter().collect();
    if let Some(dir) = dir {
        let entries = std::fs::read_dir(&dir).map_err(|error| unusable(&dir, error))?;
        paths.extend(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()));
    }
    paths.iter().try_fold(Vec::new(), |mut all, path| {
        all.extend(certificates(path)?);
        Ok(all)
    })
}

/// Accepts the clients that OpenSSL accepts: those that an authority vouches for, and those whose own certificate is trusted. The
/// certificates of tests are often of the second kind, which rustls alone refuses.
#[derive(Debug)]
struct Verifier {
    by_authority: Arc<dyn ClientCertVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.by_authority.root_hint_subjects()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.by_authority.client_auth_mandatory()
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer,
        chain: &[CertificateDer],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        if self.trusted.iter().any(|trusted| trusted == shown) {
            return Ok(ClientCertVerified::assertion());
        }
        self.by_authority.verify_client_cert(shown, chain, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_authority.verify_tls12_signature(message, shown, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_authority.verify_tls13_signature(message, shown, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authority.supported_verify_schemes()
    }
}

/// Returns the releases of TLS that `tls-protocols` allows.
fn protocols(config: &Config) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
    let names = config.get("tls-protocols").unwrap_or_default();
    let named = names.split_ascii_whitespace().map(|name| match name.to_ascii_lowercase().as_str() {
        "tlsv1.2" => Ok(&TLS12),
        "tlsv1.3" => Ok(&TLS13),
        _ => Err(TlsError::UnknownProtocol(name.to_owned())),
    });
    let named = named.collect::<Result<Vec<_>, _>>()?;
    Ok(if named.is_empty() { vec![&TLS12, &TLS13] } else { named })
}

/// A connection that speaks TLS.
pub struct TlsStream {
    pub tcp: TcpStream,
    session: ServerConnection,
}

/// A socket that never waits.
struct Socket<'a>(&'a TcpStream);

impl Read for Socket<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buf)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.try_write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TlsStream {
    /// Reads what the socket has. Returns how many bytes, 0 at its end.
    fn receive(&mut self) -> io::Result<usize> {
        let len = self.session.read_tls(&mut Socket(&self.tcp))?;
        self.session.process_new_packets().map_err(io::Error::other)?;
        Ok(len)
    }

    /// Writes what the socket takes.
    fn send(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut Socket(&self.tcp)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns whether the socket still has to take something.
    pub fn wants_write(&self) -> bool {
        self.session.wants_write()
    }

    pub fn poll_read(&mut self, cx: &mut Context, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            match self.session.reader().read(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Many clients end a connection without saying so in TLS.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Poll::Ready(Ok(0)),
                read => return Poll::Ready(read),
            }
            ready!(self.tcp.poll_read_ready(cx))?;
            match self.receive() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(_) => self.send()?,
            }
        }
    }

    /// Encrypts as much as the session keeps unsent, and sends what the socket takes.
    pub fn try_write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if self.session.wants_write() {
            self.send()?;
            if self.session.wants_write() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        let len = self.session.writer().write(buf)?;
        self.send()?;
        if len == 0 && !buf.is_empty() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(len) }
    }

    /// Waits until it takes more bytes.
    pub fn poll_writable(&mut self, cx: &mut Context) -> Poll<io::Result<()>> {
        loop {
            ready!(self.tcp.poll_write_ready(cx))?;
            self.send()?;
            if !self.session.wants_write() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
