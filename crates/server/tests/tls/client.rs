//! A server with TLS, and a TLS client.

use super::certificates::{Authority, Dir, Identity};
use brisk_testkit::port::Port;
use brisk_testkit::reply::Reply;
use brisk_testkit::server::{Program, subject_is_redis};
use brisk_testkit::{Launch, Server, words};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// How long a test waits for bytes.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// Certificates in files, a port, and the settings for starting servers that use them.
pub(crate) struct Site {
    pub(crate) dir: Dir,
    pub(crate) authority: Authority,
    pub(crate) port: Port,
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) authority_file: String,
}

impl Site {
    pub(crate) fn new() -> Site {
        let dir = Dir::new();
        let authority = Authority::new("test authority");
        let Identity { certificate, key } = authority.issue();
        Site {
            certificate: dir.write("server.crt", &certificate),
            key: dir.write("server.key", &key),
            authority_file: dir.write("ca.crt", &authority.pem),
            dir,
            authority,
            port: Port::claim(),
        }
    }

    /// A server with TLS in addition to its plain port. Clients need no certificate.
    pub(crate) fn launch(&self) -> Launch {
        let program = if subject_is_redis() {
            Program::Redis
        } else {
            Program::At(env!("CARGO_BIN_EXE_brisk-server").into())
        };
        Launch::new(program)
            .set("tls-port", &self.port.number().to_string())
            .set("tls-cert-file", &self.certificate)
            .set("tls-key-file", &self.key)
            .set("tls-ca-cert-file", &self.authority_file)
            .set("tls-auth-clients", "no")
            .set("loglevel", "verbose")
    }

    pub(crate) fn start(&self) -> Server {
        self.launch().start()
    }

    /// A client that trusts this site's certificate authority.
    pub(crate) fn client(&self) -> Client {
        self.try_client(None, rustls::ALL_VERSIONS).unwrap()
    }

    /// Like [`Site::client`], with a client certificate and the protocol versions to offer.
    /// Completes the handshake.
    pub(crate) fn try_client(
        &self,
        identity: Option<&Identity>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> io::Result<Client> {
        Client::connect(self.port.number(), config(&self.authority, identity, versions))
    }
}

/// Builds a client configuration from trusted roots, a certificate, and protocol versions.
pub(crate) fn config(
    trusted: &Authority,
    identity: Option<&Identity>,
    versions: &[&'static SupportedProtocolVersion],
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.der.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots);
    Arc::new(match identity {
        None => builder.with_no_client_auth(),
        Some(Identity { certificate, key }) => {
            let chain = CertificateDer::pem_slice_iter(certificate.as_bytes());
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain.map(Result::unwrap).collect(), key).unwrap()
        }
    })
}

/// One connection.
pub(crate) struct Client {
    pub(crate) stream: StreamOwned<ClientConnection, TcpStream>,
    input: Vec<u8>,
}

impl Client {
    /// Connects, completes the handshake, and checks that the server has accepted it.
    pub(crate) fn connect(port: u16, config: Arc<ClientConfig>) -> io::Result<Client> {
        let socket = TcpStream::connect(("127.0.0.1", port))?;
        socket.set_read_timeout(Some(DEADLINE))?;
        socket.set_write_timeout(Some(DEADLINE))?;
        socket.set_nodelay(true)?;
        let name = "localhost".try_into().unwrap();
        let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let mut client = Client { stream: StreamOwned::new(connection, socket), input: Vec::new() };
        // With TLS 1.3, the client completes the handshake before the server has verified its
        // certificate.
        client.try_request(&["PING"])?;
        Ok(client)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
        self.stream.flush().unwrap();
    }

    pub(crate) fn reply(&mut self) -> Reply {
        self.try_reply().unwrap()
    }

    pub(crate) fn try_reply(&mut self) -> io::Result<Reply> {
        let mut chunk = vec![0; 256 * 1024];
        loop {
            if brisk_testkit::reply::frame_len(&self.input).unwrap().is_some() {
                let (reply, len) = Reply::parse(&self.input).unwrap().unwrap();
                self.input.drain(..len);
                return Ok(reply);
            }
            match self.stream.read(&mut chunk)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                len => self.input.extend_from_slice(&chunk[..len]),
            }
        }
    }

    /// Reads until the server closes the connection. Returns an error if the server closes it without a close
    /// notification.
    pub(crate) fn read_to_end(&mut self) -> io::Result<Vec<u8>> {
        let mut all = std::mem::take(&mut self.input);
        self.stream.read_to_end(&mut all)?;
        Ok(all)
    }

    pub(crate) fn request(&mut self, request: &[&str]) -> Reply {
        self.try_request(request).unwrap()
    }

    pub(crate) fn try_request(&mut self, request: &[&str]) -> io::Result<Reply> {
        self.stream.write_all(&words::encode(request))?;
        self.stream.flush()?;
        self.try_reply()
    }
}
