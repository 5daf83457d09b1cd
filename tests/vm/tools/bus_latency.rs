//! How long two services on one bus take to answer, asked in turns: `peermemd` its state, and
//! systemd the cheapest property it has. Prints `KEY MEDIAN_US P99_US` for each.
//!
//!     bus_latency SOCKET SAMPLES
//!
//! Needs the standard library only, so that it is compiled in a second. The requests are built
//! beforehand and the answers are not taken apart: what is measured is the bus and the service.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Key, destination, path, interface, property.
const ASKED: [[&str; 5]; 2] = [
    ["peermemd", "org.peermemd1", "/org/peermemd1", "org.peermemd1.Manager", "State"],
    [
        "systemd",
        "org.freedesktop.systemd1",
        "/org/freedesktop/systemd1",
        "org.freedesktop.systemd1.Manager",
        "Version",
    ],
];

/// An answer takes no longer, or there is none.
const LIMIT: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [socket, samples] = &arguments[..] else {
        eprintln!("usage: bus_latency SOCKET SAMPLES");
        return ExitCode::from(64);
    };
    match samples.parse().map_err(io::Error::other).and_then(|samples| measure(socket, samples)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{socket}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(socket: &str, samples: usize) -> io::Result<()> {
    let mut bus = connect(socket)?;
    let get = |[_, destination, path, interface, property]: &[&str; 5]| {
        call(destination, path, "org.freedesktop.DBus.Properties", "Get", &[interface, property])
    };
    let requests: Vec<_> = ASKED.iter().map(get).collect();
    let mut times = vec![Vec::with_capacity(samples); requests.len()];
    for _ in 0..samples {
        for (request, times) in requests.iter().zip(&mut times) {
            let start = Instant::now();
            bus.write_all(request)?;
            answer(&mut bus)?;
            times.push(start.elapsed());
        }
    }
    for ([key, ..], times) in ASKED.iter().zip(&mut times) {
        times.sort();
        let at = |share: usize| times.get(times.len() * share / 100).map_or(0, Duration::as_micros);
        println!("{key} {} {}", at(50), at(99));
    }
    Ok(())
}

/// Authenticates as whoever runs this, and says hello.
fn connect(socket: &str) -> io::Result<UnixStream> {
    let mut bus = UnixStream::connect(socket)?;
    bus.set_read_timeout(Some(LIMIT))?;
    // Without a name the bus takes who we are from the socket.
    write!(bus, "\0AUTH EXTERNAL\r\nDATA\r\n")?;
    line(&mut bus)?;
    let welcome = line(&mut bus)?;
    if !welcome.starts_with("OK ") {
        return Err(io::Error::other(welcome));
    }
    bus.write_all(b"BEGIN\r\n")?;
    let itself = "org.freedesktop.DBus";
    bus.write_all(&call(itself, "/org/freedesktop/DBus", itself, "Hello", &[]))?;
    answer(&mut bus)?;
    Ok(bus)
}

fn line(bus: &mut UnixStream) -> io::Result<String> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        bus.read_exact(&mut byte)?;
        line.extend(byte);
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// A method call in wire format, little endian; all arguments are strings.
fn call(
    destination: &str,
    path: &str,
    interface: &str,
    member: &str,
    arguments: &[&str],
) -> Vec<u8> {
    let mut body = Vec::new();
    arguments.iter().for_each(|argument| string(&mut body, argument));
    let mut fields = Vec::new();
    for (code, kind, text) in
        [(1, b'o', path), (2, b's', interface), (3, b's', member), (6, b's', destination)]
    {
        pad(&mut fields, 8);
        fields.extend([code, 1, kind, 0]);
        string(&mut fields, text);
    }
    if !arguments.is_empty() {
        pad(&mut fields, 8);
        fields.extend([8, 1, b'g', 0, arguments.len() as u8]);
        fields.extend("s".repeat(arguments.len()).bytes());
        fields.push(0);
    }
    let mut message = vec![b'l', 1, 0, 1];
    for word in [body.len() as u32, 1, fields.len() as u32] {
        message.extend(word.to_le_bytes());
    }
    message.extend(fields);
    pad(&mut message, 8);
    message.extend(body);
    message
}

fn string(into: &mut Vec<u8>, text: &str) {
    pad(into, 4);
    into.extend((text.len() as u32).to_le_bytes());
    into.extend(text.bytes());
    into.push(0);
}

/// Fills up to a multiple of `to`.
fn pad(into: &mut Vec<u8>, to: usize) {
    into.resize(into.len().next_multiple_of(to), 0);
}

/// Reads until an answer has come; signals to us (`NameAcquired`) are none. An error ends it.
fn answer(bus: &mut UnixStream) -> io::Result<()> {
    const METHOD_RETURN: u8 = 2;
    const ERROR: u8 = 3;
    loop {
        let mut head = [0; 16];
        bus.read_exact(&mut head)?;
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let rest = word(12).next_multiple_of(8) + word(4);
        let mut body = vec![0; rest as usize];
        bus.read_exact(&mut body)?;
        match head[1] {
            METHOD_RETURN => return Ok(()),
            ERROR => return Err(io::Error::other(String::from_utf8_lossy(&body).into_owned())),
            _ => {}
        }
    }
}
