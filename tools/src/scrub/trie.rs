//! Texts as a tree of their bytes, in which all cases of a character lead to the same node.

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
    /// Bytes of the shortest text that continues from here; 0 if that is not ASCII.
    shortest: usize,
}

/// The end of a text in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub text: usize,
    pub offset: usize,
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
        let mut shortest = 0;
        let mut longest = 0;
        for variants in characters {
            shortest += variants.iter().map(Vec::len).min().unwrap_or(0);
            longest += variants.iter().map(Vec::len).max().unwrap_or(0);
        }
        if !ascii {
            shortest = 0;
        }
        self.max_len = self.max_len.max(longest);
        if self.nodes.is_empty() {
            self.nodes.push(Node::NEW);
        }
        let mut node = ROOT;
        for variants in characters {
            node = self.add_character(node, variants, shortest);
        }
        if let Some(node) = self.node_mut(node) {
            node.text.get_or_insert(text);
        }
    }

    /// Adds a character after a node, and returns the node that its variants lead to.
    fn add_character(&mut self, from: u32, variants: &[Vec<u8>], shortest: usize) -> u32 {
        let existing = variants.iter().find_map(|bytes| self.follow(from, bytes));
        let to = existing.unwrap_or_else(|| self.new_node());
        for bytes in variants {
            let mut number = from;
            for (index, byte) in bytes.iter().enumerate() {
                if let Some(node) = self.node_mut(number) {
                    node.shortest = node.shortest.min(shortest);
                }
                number = match self.next(number, *byte) {
                    Some(next) => next,
                    None => {
                        let next = if index + 1 == bytes.len() {
                            to
                        } else {
                            self.new_node()
                        };
                        self.link(number, *byte, next);
                        next
                    }
                };
            }
        }
        to
    }

    /// The end of the longest text at an offset, among the ends that `accepts` accepts.
    pub fn longest(
        &self,
        bytes: &[u8],
        start: usize,
        accepts: impl Fn(usize) -> bool,
    ) -> Option<End> {
        let mut number = ROOT;
        let mut longest = None;
        for (offset, byte) in (start + 1..).zip(bytes.get(start..)?) {
            let Some(next) = self.next(number, *byte) else {
                break;
            };
            number = next;
            if let Some(node) = self.node(number)
                && let Some(text) = node.text
                && accepts(offset)
            {
                longest = Some(End { text, offset });
            }
        }
        longest
    }

    /// Whether the bytes are the beginning of a text that is not longer by more than `beyond`
    /// bytes, if it is ASCII.
    pub fn begins(&self, bytes: &[u8], beyond: usize) -> bool {
        let Some(number) = self.follow(ROOT, bytes) else {
            return false;
        };
        let Some(node) = self.node(number) else {
            return false;
        };
        !node.next.is_empty() && bytes.len().saturating_add(beyond) >= node.shortest
    }

    /// Bytes of the longest text.
    pub fn max_len(&self) -> usize {
        self.max_len
    }

    fn node(&self, number: u32) -> Option<&Node> {
        self.nodes.get(number as usize)
    }

    fn node_mut(&mut self, number: u32) -> Option<&mut Node> {
        self.nodes.get_mut(number as usize)
    }

    /// The node to which a byte leads.
    fn next(&self, from: u32, byte: u8) -> Option<u32> {
        let next = &self.node(from)?.next;
        let index = next.binary_search_by_key(&byte, |(byte, _)| *byte).ok()?;
        next.get(index).map(|(_, to)| *to)
    }

    /// The node to which bytes lead.
    fn follow(&self, from: u32, bytes: &[u8]) -> Option<u32> {
        let mut number = from;
        for byte in bytes {
            number = self.next(number, *byte)?;
        }
        Some(number)
    }

    fn link(&mut self, from: u32, byte: u8, to: u32) {
        let Some(node) = self.node_mut(from) else {
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
