//! Texts as a tree of their bytes, in which all cases of a character lead on to the same node.

/// The root of the tree.
const ROOT: u32 = 0;

/// Many texts in one encoding.
#[derive(Clone, Debug, Default)]
pub(super) struct Trie {
    nodes: Vec<Node>,
    max_len: usize,
}

#[derive(Clone, Debug)]
struct Node {
    /// Bytes and the nodes that they lead to, ascending.
    next: Vec<(u8, u32)>,
    /// The text that ends here.
    text: Option<usize>,
    /// Bytes of the shortest text that leads on from here; 0 if that is not ASCII.
    shortest: usize,
}

impl Node {
    const NEW: Node = Node {
        next: Vec::new(),
        text: None,
        shortest: usize::MAX,
    };
}

impl Trie {
    /// Adds a text: for each character its variants, at least one.
    pub fn add(&mut self, text: usize, characters: &[Vec<Vec<u8>>], ascii: bool) {
        let size = |len: fn(&[Vec<u8>]) -> Option<usize>| {
            characters
                .iter()
                .filter_map(|variants| len(variants))
                .sum::<usize>()
        };
        let shortest = size(|variants| variants.iter().map(Vec::len).min());
        self.max_len = self
            .max_len
            .max(size(|variants| variants.iter().map(Vec::len).max()));
        if self.nodes.is_empty() {
            self.nodes.push(Node::NEW);
        }
        let shortest = if ascii { shortest } else { 0 };
        let mut at = ROOT;
        for variants in characters {
            at = self.add_character(at, variants, shortest);
        }
        if let Some(node) = self.node_mut(at) {
            node.text.get_or_insert(text);
        }
    }

    /// Adds a character after a node, and returns the node that its variants lead to.
    fn add_character(&mut self, from: u32, variants: &[Vec<u8>], shortest: usize) -> u32 {
        let known = variants
            .iter()
            .find_map(|bytes| bytes.iter().try_fold(from, |at, byte| self.next(at, *byte)));
        let to = known.unwrap_or_else(|| self.new_node());
        for bytes in variants {
            let mut at = from;
            for (index, byte) in bytes.iter().enumerate() {
                if let Some(node) = self.node_mut(at) {
                    node.shortest = node.shortest.min(shortest);
                }
                at = match self.next(at, *byte) {
                    Some(next) => next,
                    None => {
                        let next = if index + 1 == bytes.len() {
                            to
                        } else {
                            self.new_node()
                        };
                        self.link(at, *byte, next);
                        next
                    }
                };
            }
        }
        to
    }

    /// The longest text at an offset whose end `whole` accepts, and its end.
    pub fn longest(
        &self,
        bytes: &[u8],
        start: usize,
        whole: impl Fn(usize) -> bool,
    ) -> Option<(usize, usize)> {
        let (mut at, mut found) = (ROOT, None);
        for (end, byte) in (start + 1..).zip(bytes.get(start..)?) {
            let Some(next) = self.next(at, *byte) else {
                break;
            };
            at = next;
            if let Some(text) = self.node(at).and_then(|node| node.text)
                && whole(end)
            {
                found = Some((text, end));
            }
        }
        found
    }

    /// Whether the bytes are the beginning of a text that is not longer by more than `beyond`
    /// bytes, if it is ASCII.
    pub fn begins(&self, bytes: &[u8], beyond: usize) -> bool {
        let end = bytes.iter().try_fold(ROOT, |at, byte| self.next(at, *byte));
        let node = end
            .and_then(|at| self.node(at))
            .filter(|node| !node.next.is_empty());
        node.is_some_and(|node| bytes.len().saturating_add(beyond) >= node.shortest)
    }

    /// Bytes of the longest text.
    pub fn max_len(&self) -> usize {
        self.max_len
    }

    fn node(&self, at: u32) -> Option<&Node> {
        self.nodes.get(at as usize)
    }

    fn node_mut(&mut self, at: u32) -> Option<&mut Node> {
        self.nodes.get_mut(at as usize)
    }

    fn next(&self, at: u32, byte: u8) -> Option<u32> {
        let next = &self.node(at)?.next;
        let index = next.binary_search_by_key(&byte, |(byte, _)| *byte).ok()?;
        next.get(index).map(|(_, to)| *to)
    }

    fn link(&mut self, at: u32, byte: u8, to: u32) {
        let Some(node) = self.node_mut(at) else {
            return;
        };
        let index = node.next.partition_point(|(other, _)| *other < byte);
        node.next.insert(index, (byte, to));
    }

    fn new_node(&mut self) -> u32 {
        self.nodes.push(Node::NEW);
        u32::try_from(self.nodes.len() - 1).unwrap_or(u32::MAX)
    }
}
