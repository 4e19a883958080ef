//! The shape of a world: which of its nodes are masters, replicas, parts of a cluster and sentinels.

use std::fmt;
use std::str::FromStr;

/// Which nodes a world has when it begins. Nodes are numbered in the order in which the variants name them: masters, the replicas
/// of the first master, those of the second, …, then sentinels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Independent masters.
    Masters(usize),
    /// A master with replicas.
    Replicas(usize),
    /// A cluster that serves all slots: masters that share them evenly, each with replicas.
    Cluster { masters: usize, replicas: usize },
    /// A master with replicas, and sentinels that watch them.
    Sentinel { replicas: usize, sentinels: usize },
}

/// The most nodes of a world that is described by a topology.
pub const MAX_NODES: usize = 1_000;

/// What a node is in a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Master,
    /// A replica of the node with this number.
    Replica {
        of: usize,
    },
    Sentinel,
}

impl Topology {
    /// Returns what each node is.
    pub fn parts(self) -> Vec<Part> {
        let masters = |count| std::iter::repeat_n(Part::Master, count);
        let replicas = |of, count| std::iter::repeat_n(Part::Replica { of }, count);
        match self {
            Topology::Masters(count) => masters(count).collect(),
            Topology::Replicas(count) => masters(1).chain(replicas(0, count)).collect(),
            Topology::Cluster { masters: count, replicas: each } => {
                masters(count).chain((0..count).flat_map(|of| replicas(of, each))).collect()
            }
            Topology::Sentinel { replicas: count, sentinels } => {
                let watchers = std::iter::repeat_n(Part::Sentinel, sentinels);
                masters(1).chain(replicas(0, count)).chain(watchers).collect()
            }
        }
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Topology::Masters(count) => write!(f, "masters:{count}"),
            Topology::Replicas(count) => write!(f, "replicas:{count}"),
            Topology::Cluster { masters, replicas } => write!(f, "cluster:{masters}x{replicas}"),
            Topology::Sentinel { replicas, sentinels } => write!(f, "sentinel:1x{replicas}+{sentinels}"),
        }
    }
}

/// Why a text describes no topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTopology(String);

impl fmt::Display for UnknownTopology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not a topology: masters:N, replicas:N, cluster:MASTERSxREPLICAS or sentinel:1xREPLICAS+SENTINELS, \
             with 1 to {MAX_NODES} nodes and at least one master and one sentinel",
            self.0
        )
    }
}

impl std::error::Error for UnknownTopology {}

impl FromStr for Topology {
    type Err = UnknownTopology;

    fn from_str(text: &str) -> Result<Topology, UnknownTopology> {
        let count = |text: &str| text.parse::<usize>().ok().filter(|&count| count <= MAX_NODES);
        let parse = || {
            let (kind, shape) = text.split_once(':')?;
            Some(match kind {
                "masters" => Topology::Masters(count(shape).filter(|&masters| masters > 0)?),
                "replicas" => Topology::Replicas(count(shape)?),
                "cluster" => {
                    let (masters, replicas) = shape.split_once('x').unwrap_or((shape, "0"));
                    let masters = count(masters).filter(|&masters| masters > 0)?;
                    Topology::Cluster { masters, replicas: count(replicas)? }
                }
                "sentinel" => {
                    let (servers, sentinels) = shape.split_once('+')?;
                    let replicas = count(servers.strip_prefix("1x")?)?;
                    Topology::Sentinel {
                        replicas,
                        sentinels: count(sentinels).filter(|&sentinels| sentinels > 0)?,
                    }
                }
                _ => return None,
            })
        };
        let is_small = |topology: &Topology| match *topology {
            Topology::Masters(count) => count <= MAX_NODES,
            Topology::Replicas(count) => count < MAX_NODES,
            Topology::Cluster { masters, replicas } => masters * (1 + replicas) <= MAX_NODES,
            Topology::Sentinel { replicas, sentinels } => 1 + replicas + sentinels <= MAX_NODES,
        };
        parse().filter(is_small).ok_or_else(|| UnknownTopology(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_parsed_and_printed() {
        for text in ["masters:5", "replicas:0", "replicas:2", "cluster:3x1", "cluster:1x0", "sentinel:1x2+3"]
        {
            assert_eq!(text.parse::<Topology>().unwrap().to_string(), text);
        }
        assert_eq!("cluster:3".parse(), Ok(Topology::Cluster { masters: 3, replicas: 0 }));
        let wrong = [
            "",
            "masters",
            "masters:0",
            "masters:x",
            "cluster:0x1",
            "cluster:1000x1000",
            "cluster:3x",
            "sentinel:1x2",
            "sentinel:2x2+3",
            "sentinel:1x2+0",
            "sentinel:1x999+1",
            "ring:3",
            "masters:1001",
            "replicas:1000",
            "masters:99999999999999999999",
        ];
        for text in wrong {
            assert!(text.parse::<Topology>().is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_masters_then_replicas_then_sentinels() {
        use Part::*;
        let parts = Topology::Cluster { masters: 2, replicas: 2 }.parts();
        let replica = |of| Replica { of };
        assert_eq!(parts, [Master, Master, replica(0), replica(0), replica(1), replica(1)]);
        let parts = Topology::Sentinel { replicas: 1, sentinels: 2 }.parts();
        assert_eq!(parts, [Master, replica(0), Sentinel, Sentinel]);
    }
}
