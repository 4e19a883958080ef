//! One connection: bytes in, requests to the world, bytes out.

use std::future::poll_fn;
use std::io;
use std::mem;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::sync::Notify;

use super::Server;
use super::stream::Stream;
use redlatch_core::wire::RequestParser;
use redlatch_core::world::ConnId;
use redlatch_lab::control::Lab;

/// A client that does not read its replies is not served beyond this many unread bytes.
const UNREAD_LIMIT: usize = 1 << 20;
/// Buffers that grew beyond this are given back when they are empty.
const KEPT_BUFFER: usize = 64 * 1024;

/// A connection's task.
pub struct Connection {
    server: Rc<Server>,
    id: ConnId,
    stream: Stream,
    wake: Rc<Notify>,
    parser: RequestParser,
    /// Bytes of a request that is not complete, or that has to wait.
    pending: BytesMut,
    output: Vec<u8>,
    /// How much of `output` is written already.
    written: usize,
    /// Requests were left in `pending` because there is too much output.
    throttled: bool,
}

/// Whether a connection goes on.
#[derive(PartialEq, Eq)]
enum Fate {
    Open,
    Closed,
}

impl Connection {
    /// Serves a client until one of both ends it.
    pub async fn serve(server: Rc<Server>, node: usize, control: bool, stream: Stream) {
        let (addr, laddr) = stream.addresses();
        let id = server.turn(None, |lab| match control {
            true => lab.open_control(addr, laddr),
            false => lab.open(node, addr, laddr),
        });
        let wake = Rc::new(Notify::new());
        server.connections.borrow_mut().insert(id, wake.clone());
        tracing::debug!(client = id.session.number, node, "connected");
        let mut connection = Connection {
            server: server.clone(),
            id,
            stream,
            wake,
            parser: RequestParser::default(),
            pending: BytesMut::new(),
            output: Vec::new(),
            written: 0,
            throttled: false,
        };
        if let Err(error) = connection.serve_requests().await {
            tracing::debug!(client = id.session.number, %error, "connection lost");
        }
        server.connections.borrow_mut().remove(&id);
        server.turn(None, |lab| lab.close(id));
        tracing::debug!(client = id.session.number, "closed");
    }

    async fn serve_requests(&mut self) -> io::Result<()> {
        // A client beyond maxclients has its answer already.
        if self.flush()? == Fate::Closed {
            return Ok(());
        }
        let wake = self.wake.clone();
        let mut woken = pin!(wake.notified());
        loop {
            let unread = self.unread(&self.server.lab.borrow());
            let may_read = unread < UNREAD_LIMIT;
            let mut was_read = false;
            if !(self.throttled && may_read) {
                let fate = poll_fn(|cx| {
                    if woken.as_mut().poll(cx).is_ready() {
                        woken.set(wake.notified());
                        return Poll::Ready(Ok(Fate::Open));
                    }
                    let is_holding = self.stream.is_holding();
                    if (unread > 0 || is_holding) && self.stream.poll_writable(cx)?.is_ready() {
                        return Poll::Ready(Ok(Fate::Open));
                    }
                    was_read = may_read;
                    if may_read { self.poll_read(cx) } else { Poll::Pending }
                });
                if fate.await? == Fate::Closed {
                    return Ok(());
                }
            }
            self.run_pending();
            if was_read {
                after_the_others().await;
            }
            if self.flush()? == Fate::Closed {
                return Ok(());
            }
        }
    }

    /// Bytes of output that the socket has not taken yet.
    fn unread(&self, lab: &Lab) -> usize {
        self.output.len() - self.written + lab.world().output_len(self.id)
    }

    /// Reads once and runs what is complete. What remains in the socket keeps it readable.
    fn poll_read(&mut self, cx: &mut Context) -> Poll<io::Result<Fate>> {
        let server = self.server.clone();
        let mut scratch = server.scratch.borrow_mut();
        let len = ready!(self.stream.poll_read(cx, &mut scratch))?;
        if len == 0 {
            return Poll::Ready(Ok(Fate::Closed));
        }
        if self.pending.is_empty() {
            let used = self.run(&scratch[..len]);
            self.pending.extend_from_slice(&scratch[used..len]);
        } else {
            self.pending.extend_from_slice(&scratch[..len]);
        }
        let limit = server.lab.borrow().world().nodes()[self.id.node].config.query_buffer_limit;
        if self.pending.len() as u64 > limit {
            tracing::warn!(client = self.id.session.number, "query buffer limit exceeded");
            return Poll::Ready(Ok(Fate::Closed));
        }
        Poll::Ready(Ok(Fate::Open))
    }

    /// Runs requests that had to wait.
    fn run_pending(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let mut pending = mem::take(&mut self.pending);
        let used = self.run(&pending);
        pending.advance(used);
        if !pending.is_empty() {
            self.pending = pending;
        }
    }

    /// Runs the complete requests at the start of `bytes` in one turn, or in several with a script that goes on between them.
    /// Returns how many bytes they were.
    fn run(&mut self, bytes: &[u8]) -> usize {
        let (server, id) = (self.server.clone(), self.id);
        let mut used = 0;
        loop {
            let (len, waits) = server.turn(Some(id), |lab| self.run_requests(lab, &bytes[used..]));
            used += len;
            if !waits {
                return used;
            }
        }
    }

    /// Runs requests. Returns how many bytes they were, and whether the others wait for a script or a file.
    fn run_requests(&mut self, lab: &mut Lab, bytes: &[u8]) -> (usize, bool) {
        let server = self.server.clone();
        let mut used = 0;
        self.throttled = false;
        while lab.world().is_ready(self.id) && used < bytes.len() {
            if self.unread(lab) >= UNREAD_LIMIT {
                self.throttled = true;
                break;
            }
            let rest = &bytes[used..];
            match self.parser.parse(rest, lab.world().request_limits(self.id)) {
                Ok(Some(len)) => {
                    lab.request(self.id, &self.parser.args(rest));
                    used += len;
                    if lab.is_traced() {
                        server.keep_trace(lab);
                    }
                    if lab.urgent_script().is_some() || lab.next_task().is_some() {
                        return (used, true);
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    lab.protocol_error(self.id, &error);
                    return (bytes.len(), false);
                }
            }
        }
        (used, false)
    }

    /// Writes as much as the socket takes.
    fn flush(&mut self) -> io::Result<Fate> {
        let server = self.server.clone();
        let mut lab = server.lab.borrow_mut();
        if lab.world().is_killed(self.id) {
            return Ok(Fate::Closed);
        }
        loop {
            if self.written == self.output.len() {
                self.output.clear();
                self.written = 0;
                if self.output.capacity() > KEPT_BUFFER {
                    self.output = Vec::new();
                }
                lab.take_output(self.id, &mut self.output);
                if self.output.is_empty() {
                    let is_over = lab.world().is_closing(self.id) && !self.stream.is_holding();
                    return Ok(if is_over { Fate::Closed } else { Fate::Open });
                }
            }
            match self.stream.try_write(&self.output[self.written..]) {
                Ok(len) => self.written += len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Fate::Open),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Lets the tasks that are ready run first. So replies go out together, after the requests of all clients that were there, as in
/// Redis: clients that sleep in one process are woken by the first and have work until the last.
async fn after_the_others() {
    let mut is_last = false;
    poll_fn(|cx| {
        if mem::replace(&mut is_last, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}
