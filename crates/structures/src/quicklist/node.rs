//! One node of a quicklist: a listpack, one large element, or either of them compressed.

use crate::listpack::{Item, ListPack};
use crate::lzf;
use crate::sequence::Part;
use std::borrow::Cow;
use std::sync::Arc;

/// Nodes with fewer bytes are not compressed, since nothing could be saved. Redis uses the same
/// limit.
const COMPRESS_MIN: usize = 48;
/// Minimum number of bytes that compression must save, as in Redis.
const SAVED_MIN: usize = 8;

/// A node of a list. Clones of large elements and of compressed nodes share their bytes.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Packed(ListPack),
    Plain(Arc<Vec<u8>>),
    Compressed { block: Arc<[u8]>, bytes: usize, elements: usize, plain: bool },
}

/// A node for reading, decompressed if necessary.
pub(super) enum View<'a> {
    Packed(Cow<'a, ListPack>),
    Plain(Cow<'a, [u8]>),
}

/// A node as dumps write it.
#[derive(Debug, Clone, Copy)]
pub enum NodeRef<'a> {
    Packed(&'a ListPack),
    Plain(&'a [u8]),
    /// An LZF block with `bytes` bytes of content: a plain element, or a listpack's bytes.
    Compressed {
        block: &'a [u8],
        bytes: usize,
        plain: bool,
    },
}

impl NodeRef<'_> {
    /// Returns the size of the node's uncompressed content.
    #[must_use]
    pub fn uncompressed_bytes(&self) -> usize {
        match self {
            NodeRef::Packed(list) => list.bytes(),
            NodeRef::Plain(element) => element.len(),
            NodeRef::Compressed { bytes, .. } => *bytes,
        }
    }
}

impl Part for Node {
    #[inline]
    fn len(&self) -> usize {
        match self {
            Node::Packed(list) => list.len(),
            Node::Plain(_) => 1,
            Node::Compressed { elements, .. } => *elements,
        }
    }
}

impl Node {
    pub(super) fn plain(element: &[u8]) -> Node {
        Node::Plain(Arc::new(element.to_vec()))
    }

    pub(super) fn packed(element: &[u8]) -> Node {
        let mut list = ListPack::new();
        list.push_back(element);
        Node::Packed(list)
    }

    /// Returns the size of the uncompressed content.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        match self {
            Node::Packed(list) => list.bytes(),
            Node::Plain(element) => element.len(),
            Node::Compressed { bytes, .. } => *bytes,
        }
    }

    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Node::Plain(_) | Node::Compressed { plain: true, .. })
    }

    pub(super) fn is_compressed(&self) -> bool {
        matches!(self, Node::Compressed { .. })
    }

    pub(super) fn view(&self) -> View<'_> {
        match self {
            Node::Packed(list) => View::Packed(Cow::Borrowed(list)),
            Node::Plain(element) => View::Plain(Cow::Borrowed(element)),
            Node::Compressed { .. } => match self.decompressed() {
                Node::Packed(list) => View::Packed(Cow::Owned(list)),
                Node::Plain(element) => View::Plain(Cow::Owned(Arc::unwrap_or_clone(element))),
                Node::Compressed { .. } => unreachable!("nodes are compressed once"),
            },
        }
    }

    pub(super) fn as_dumped(&self) -> NodeRef<'_> {
        match self {
            Node::Packed(list) => NodeRef::Packed(list),
            Node::Plain(element) => NodeRef::Plain(element),
            Node::Compressed { block, bytes, plain, .. } => {
                NodeRef::Compressed { block, bytes: *bytes, plain: *plain }
            }
        }
    }

    /// Returns the decompressed node.
    fn decompressed(&self) -> Node {
        let Node::Compressed { block, bytes, plain, .. } = self else { return self.clone() };
        let mut content = Vec::new();
        lzf::decompress(block, *bytes, &mut content).expect("we compressed it ourselves");
        if *plain {
            Node::Plain(Arc::new(content))
        } else {
            Node::Packed(ListPack::from_checked(content))
        }
    }

    pub(super) fn decompress(&mut self) {
        if self.is_compressed() {
            *self = self.decompressed();
        }
    }

    /// Returns the compressed node if compression saves enough. O(bytes).
    pub(super) fn compressed(&self) -> Option<Node> {
        let (content, plain) = match self {
            Node::Packed(list) => (list.as_bytes(), false),
            Node::Plain(element) => (&element[..], true),
            Node::Compressed { .. } => return None,
        };
        if content.len() < COMPRESS_MIN {
            return None;
        }
        let mut block = Vec::new();
        lzf::compress(content, content.len() - SAVED_MIN, &mut block)?;
        let (bytes, elements) = (content.len(), self.len());
        Some(Node::Compressed { block: block.into(), bytes, elements, plain })
    }

    /// Returns a mutable reference to the listpack; `None` if the node is one large element.
    pub(super) fn packed_mut(&mut self) -> Option<&mut ListPack> {
        self.decompress();
        match self {
            Node::Packed(list) => Some(list),
            Node::Plain(_) | Node::Compressed { .. } => None,
        }
    }

    /// Returns the memory usage of the node in bytes, including its counters.
    pub(super) fn allocated_bytes(&self) -> usize {
        let own = 2 * size_of::<usize>() + size_of::<Node>();
        own + match self {
            Node::Packed(list) => list.allocated_bytes(),
            Node::Plain(element) => 5 * size_of::<usize>() + element.capacity(),
            Node::Compressed { block, .. } => 2 * size_of::<usize>() + block.len(),
        }
    }
}

impl View<'_> {
    /// Calls `visit` with element `index`, which must exist.
    pub(super) fn with<R>(&self, index: usize, visit: impl FnOnce(Item<'_>) -> R) -> R {
        match self {
            View::Packed(list) => {
                visit(list.get(index as i64).expect("callers name elements that exist"))
            }
            View::Plain(element) => visit(Item::Str(element)),
        }
    }

    /// Returns true if any element's text is `text`.
    pub(super) fn contains(&self, text: &[u8]) -> bool {
        match self {
            View::Packed(list) => {
                list.first().is_some_and(|first| list.find(first, text, 0).is_some())
            }
            View::Plain(element) => **element == *text,
        }
    }
}
