//! Draws a trace as SVG: one lane for each client and each node, with time going down.

use std::collections::BTreeMap;

use super::line::Conn;
use super::show::{EntryKind, Timeline};

const LANE: usize = 190;
const ROW: usize = 18;
const TOP: usize = 48;
const LEFT: usize = 90;

/// Draws a timeline as SVG.
pub fn draw(timeline: &Timeline) -> String {
    let mut conns: Vec<Conn> = timeline.entries.iter().filter_map(|entry| entry.conn).collect();
    conns.sort();
    conns.dedup();
    let mut nodes: Vec<usize> = conns.iter().map(|conn| conn.node).collect();
    nodes.dedup();
    let clients: BTreeMap<Conn, usize> = conns.iter().enumerate().map(|(lane, &conn)| (conn, lane)).collect();
    let node_lane = |node: usize| clients.len() + nodes.iter().position(|&known| known == node).unwrap_or(0);
    let lanes = clients.len() + nodes.len();
    let (width, height) = (LEFT + lanes * LANE, TOP + (timeline.entries.len() + 1) * ROW);
    let x = |lane: usize| LEFT + lane * LANE + LANE / 2;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"monospace\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let mut lane = |lane: usize, name: &str| {
        let x = x(lane);
        svg += &format!(
            "<text x=\"{x}\" y=\"20\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>\n\
             <line x1=\"{x}\" y1=\"28\" x2=\"{x}\" y2=\"{height}\" stroke=\"#ccc\"/>\n",
            escape(name)
        );
    };
    clients.iter().for_each(|(&conn, &at)| lane(at, &timeline.name(conn)));
    nodes.iter().for_each(|&node| lane(node_lane(node), &format!("node {node}")));
    for (row, entry) in timeline.entries.iter().enumerate() {
        let y = TOP + row * ROW;
        svg += &format!("<text x=\"4\" y=\"{}\" fill=\"#888\">{} ms</text>\n", y + 4, entry.at_ms);
        let Some(conn) = entry.conn else {
            svg +=
                &format!("<text x=\"{LEFT}\" y=\"{}\" fill=\"#a60\">{}</text>\n", y + 4, escape(&entry.text));
            continue;
        };
        let (from, to) = (x(clients[&conn]), x(node_lane(conn.node)));
        let color = match entry.kind {
            EntryKind::Request => "#06c",
            EntryKind::Reply => "#080",
            EntryKind::Control => "#a0a",
            EntryKind::Connection | EntryKind::Comment => "#888",
        };
        let (start, end) = if entry.kind == EntryKind::Reply { (to, from) } else { (from, to) };
        if entry.kind == EntryKind::Connection {
            svg += &format!("<circle cx=\"{from}\" cy=\"{y}\" r=\"4\" fill=\"{color}\"/>\n");
        } else {
            let tip = if end > start { end - 6 } else { end + 6 };
            svg += &format!(
                "<line x1=\"{start}\" y1=\"{y}\" x2=\"{end}\" y2=\"{y}\" stroke=\"{color}\"/>\n\
                 <path d=\"M{end},{y} L{tip},{} L{tip},{} Z\" fill=\"{color}\"/>\n",
                y - 3,
                y + 3
            );
        }
        svg += &format!(
            "<text x=\"{}\" y=\"{}\" fill=\"{color}\">{}</text>\n",
            start.min(end) + 8,
            y - 3,
            escape(&entry.text)
        );
    }
    svg + "</svg>\n"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
