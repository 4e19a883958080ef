//! A trace as a picture: one lane for each client and each node, time going down.

use std::collections::BTreeMap;

use super::line::Conn;
use super::show::{Happening, Story};

const LANE: usize = 190;
const ROW: usize = 18;
const TOP: usize = 48;
const LEFT: usize = 90;

/// Draws a story as SVG.
pub fn draw(story: &Story) -> String {
    let mut conns: Vec<Conn> = story.moments.iter().filter_map(|moment| moment.conn).collect();
    conns.sort();
    conns.dedup();
    let mut nodes: Vec<usize> = conns.iter().map(|conn| conn.node).collect();
    nodes.dedup();
    let clients: BTreeMap<Conn, usize> = conns.iter().enumerate().map(|(lane, &conn)| (conn, lane)).collect();
    let node_lane = |node: usize| clients.len() + nodes.iter().position(|&known| known == node).unwrap_or(0);
    let lanes = clients.len() + nodes.len();
    let (width, height) = (LEFT + lanes * LANE, TOP + (story.moments.len() + 1) * ROW);
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
    clients.iter().for_each(|(&conn, &at)| lane(at, &story.name(conn)));
    nodes.iter().for_each(|&node| lane(node_lane(node), &format!("node {node}")));
    for (row, moment) in story.moments.iter().enumerate() {
        let y = TOP + row * ROW;
        svg += &format!("<text x=\"4\" y=\"{}\" fill=\"#888\">{} ms</text>\n", y + 4, moment.at_ms);
        let Some(conn) = moment.conn else {
            svg += &format!(
                "<text x=\"{LEFT}\" y=\"{}\" fill=\"#a60\">{}</text>\n",
                y + 4,
                escape(&moment.text)
            );
            continue;
        };
        let (from, to) = (x(clients[&conn]), x(node_lane(conn.node)));
        let color = match moment.what {
            Happening::Request => "#06c",
            Happening::Reply => "#080",
            Happening::Control => "#a0a",
            Happening::Connection | Happening::Remark => "#888",
        };
        let (start, end) = if moment.what == Happening::Reply { (to, from) } else { (from, to) };
        if moment.what == Happening::Connection {
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
            escape(&moment.text)
        );
    }
    svg + "</svg>\n"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
