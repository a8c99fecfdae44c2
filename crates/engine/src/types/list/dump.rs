//! Lists in dumps: nodes, each a listpack or one large element.

use super::{End, List, options};
use crate::types::EncodingLimits;
use brisk_persist::rdb::value::ListNode;
use brisk_persist::rdb::{Encoder, Sink};
use brisk_structures::quicklist::{NodeRef, QuickList};

impl List {
    /// Writes the nodes unchanged, including compressed ones.
    pub(in crate::types) fn dump<S: Sink>(&self, encoder: &mut Encoder<S>) {
        const PLAIN: u64 = 1;
        const PACKED: u64 = 2;
        match self {
            List::ListPack(list) => {
                encoder.length(1);
                encoder.packed_node(list.as_bytes());
            }
            List::QuickList(list) => {
                encoder.length(list.node_count() as u64);
                for node in list.nodes() {
                    match node {
                        NodeRef::Packed(list) => encoder.packed_node(list.as_bytes()),
                        NodeRef::Plain(element) => encoder.plain_node(element),
                        NodeRef::Compressed { block, bytes, plain } => {
                            encoder.length(if plain { PLAIN } else { PACKED });
                            encoder.lzf_string(block, bytes);
                        }
                    }
                }
            }
        }
    }

    /// Whole nodes are kept. Individual elements are packed according to the current limits.
    pub(in crate::types) fn of_dumped(nodes: Vec<ListNode>, limits: &EncodingLimits) -> List {
        let mut list = QuickList::new(options(limits));
        for node in nodes {
            match node {
                ListNode::Packed(node) => list.append_listpack(node),
                ListNode::Plain(element) => list.append_plain(element),
                ListNode::Elements(elements) => {
                    elements.iter().for_each(|element| list.push(End::Back, element));
                }
            }
        }
        let mut list = List::QuickList(Box::new(list));
        list.become_listpack_within(1, limits);
        list
    }
}
