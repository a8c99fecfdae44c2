//! The subscribers on one worker: topics and their members, and for each session its topics.
//!
//! ```text
//! topic  members [ s7  s3  s9 ]       an edge per subscription has its index in both lists:
//! session topics [ t2  t5 ]           removal moves the last element of each list into the gap
//! ```
//!
//! Subscribing and unsubscribing are O(1). Ending a session is O(its subscriptions), independent of
//! other sessions.

use super::Space;
use super::publication::pattern_head;
use brisk_reactor::Token;
use std::collections::HashMap;
use std::sync::Arc;

/// A subscriber of a topic.
#[derive(Debug, Clone, Copy)]
pub struct TopicSubscriber {
    pub token: Token,
    /// The number of the first message for this subscriber.
    pub since: u64,
}

/// A channel or pattern to which sessions of this worker subscribe.
#[derive(Debug)]
pub struct Topic {
    pub name: Arc<[u8]>,
    /// The header of messages, if the topic is a pattern.
    pub head: Box<[u8]>,
    pub members: Vec<TopicSubscriber>,
}

/// The indexes of a subscription.
#[derive(Debug, Clone, Copy)]
struct Edge {
    among_members: u32,
    among_topics: u32,
}

/// The subscriptions of a session, by [`Space`]. Maintained by [`Topics`].
#[derive(Debug, Default)]
pub struct Subscriptions {
    topics: [Vec<u32>; 3],
}

impl Subscriptions {
    pub fn count(&self, space: Space) -> usize {
        self.topics[space.index()].len()
    }

    pub fn is_empty(&self) -> bool {
        self.topics.iter().all(Vec::is_empty)
    }
}

/// One worker's topics.
#[derive(Debug, Default)]
pub struct Topics {
    by_name: [HashMap<Arc<[u8]>, u32>; 3],
    topics: Vec<Option<Topic>>,
    free: Vec<u32>,
    /// The subscriptions, by the index in the session's token and the topic.
    edges: HashMap<(u32, u32), Edge>,
}

impl Topics {
    /// The topic with this name, if it has subscribers.
    pub fn find(&self, space: Space, name: &[u8]) -> Option<&Topic> {
        let id = *self.by_name[space.index()].get(name)?;
        self.topics[id as usize].as_ref()
    }

    /// The names of all topics of a space.
    pub fn names(&self, space: Space) -> impl Iterator<Item = &Arc<[u8]>> {
        self.by_name[space.index()].keys()
    }

    /// Reports whether the session with this token subscribes to `name`.
    pub fn listens(&self, token: Token, space: Space, name: &[u8]) -> bool {
        let id = self.by_name[space.index()].get(name);
        id.is_some_and(|id| self.edges.contains_key(&(index_of(token), *id)))
    }

    /// This worker's shared copy of the name.
    pub fn name(&self, space: Space, name: &[u8]) -> Arc<[u8]> {
        self.find(space, name).map_or_else(|| name.into(), |topic| Arc::clone(&topic.name))
    }

    /// Adds a subscription. Returns false, and does nothing, if it already exists.
    pub fn add(
        &mut self,
        member: TopicSubscriber,
        own: &mut Subscriptions,
        space: Space,
        name: &Arc<[u8]>,
    ) -> bool {
        if self.listens(member.token, space, name) {
            return false;
        }
        let id = match self.by_name[space.index()].get(name) {
            Some(id) => *id,
            None => self.create(space, name),
        };
        let own = &mut own.topics[space.index()];
        let topic = self.topics[id as usize].as_mut().expect("named topics exist");
        let edge =
            Edge { among_members: topic.members.len() as u32, among_topics: own.len() as u32 };
        topic.members.push(member);
        own.push(id);
        self.edges.insert((index_of(member.token), id), edge);
        true
    }

    fn create(&mut self, space: Space, name: &Arc<[u8]>) -> u32 {
        let head = if space == Space::Pattern { pattern_head(name) } else { Box::default() };
        let topic = Some(Topic { name: Arc::clone(name), head, members: Vec::new() });
        let id = if let Some(id) = self.free.pop() {
            self.topics[id as usize] = topic;
            id
        } else {
            self.topics.push(topic);
            (self.topics.len() - 1) as u32
        };
        self.by_name[space.index()].insert(Arc::clone(name), id);
        id
    }

    /// Removes a subscription. If it existed, returns its name and its number among the session's subscriptions. The
    /// session's last subscription then has that number.
    pub fn remove(
        &mut self,
        token: Token,
        own: &mut Subscriptions,
        space: Space,
        name: &[u8],
    ) -> Option<(Arc<[u8]>, usize)> {
        let id = *self.by_name[space.index()].get(name)?;
        self.cut(token, own, space, id)
    }

    /// Removes the session's last subscription of this kind. Returns its name and number, if there was one.
    pub fn pop(
        &mut self,
        token: Token,
        own: &mut Subscriptions,
        space: Space,
    ) -> Option<(Arc<[u8]>, usize)> {
        let id = *own.topics[space.index()].last()?;
        self.cut(token, own, space, id)
    }

    fn cut(
        &mut self,
        token: Token,
        own: &mut Subscriptions,
        space: Space,
        id: u32,
    ) -> Option<(Arc<[u8]>, usize)> {
        let own = &mut own.topics[space.index()];
        let index = index_of(token);
        // The edge belongs to another list if an earlier session with this token ended without
        // unsubscribing.
        let edge = *self.edges.get(&(index, id))?;
        if own.get(edge.among_topics as usize) != Some(&id) {
            return None;
        }
        self.edges.remove(&(index, id));
        let topic = self.topics[id as usize].as_mut()?;
        topic.members.swap_remove(edge.among_members as usize);
        if let Some(moved) = topic.members.get(edge.among_members as usize) {
            let moved = self.edges.get_mut(&(index_of(moved.token), id));
            moved.expect("members have edges").among_members = edge.among_members;
        }
        own.swap_remove(edge.among_topics as usize);
        if let Some(moved) = own.get(edge.among_topics as usize) {
            let moved = self.edges.get_mut(&(index, *moved));
            moved.expect("subscriptions have edges").among_topics = edge.among_topics;
        }
        let name = Arc::clone(&topic.name);
        if topic.members.is_empty() {
            self.topics[id as usize] = None;
            self.free.push(id);
            self.by_name[space.index()].remove(&name);
        }
        Some((name, edge.among_topics as usize))
    }
}

fn index_of(token: Token) -> u32 {
    token.index() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_engine::random::Random;
    use std::collections::BTreeSet;

    fn check(topics: &Topics, sessions: &[(Token, Subscriptions)]) {
        let mut edges = 0;
        for (token, own) in sessions {
            for list in &own.topics {
                for (at, id) in list.iter().enumerate() {
                    let edge = topics.edges[&(index_of(*token), *id)];
                    assert_eq!(edge.among_topics as usize, at);
                    let topic = topics.topics[*id as usize].as_ref().unwrap();
                    assert_eq!(topic.members[edge.among_members as usize].token, *token);
                    edges += 1;
                }
            }
        }
        assert_eq!(edges, topics.edges.len());
        let members: usize = topics.topics.iter().flatten().map(|topic| topic.members.len()).sum();
        assert_eq!(edges, members);
    }

    #[test]
    fn subscribing_and_unsubscribing_in_any_order_keeps_the_lists_consistent() {
        let mut random = Random::seeded(1);
        let mut topics = Topics::default();
        let mut sessions: Vec<(Token, Subscriptions)> =
            (0..6).map(|index| (Token::from_u64(index), Subscriptions::default())).collect();
        let mut model = BTreeSet::new();
        for _ in 0..5000 {
            let who = random.below(6) as usize;
            let space = Space::ALL[random.below(3) as usize];
            let name: Arc<[u8]> = vec![b'a' + random.below(5) as u8].into();
            let (token, own) = &mut sessions[who];
            let key = (who, space.index(), name.to_vec());
            assert_eq!(topics.listens(*token, space, &name), model.contains(&key));
            if random.below(40) == 0 {
                while let Some((name, _)) = topics.pop(*token, own, space) {
                    assert!(model.remove(&(who, space.index(), name.to_vec())));
                }
            } else if model.remove(&key) {
                assert!(topics.remove(*token, own, space, &name).is_some());
            } else {
                assert!(topics.remove(*token, own, space, &name).is_none());
                topics.add(TopicSubscriber { token: *token, since: 0 }, own, space, &name);
                model.insert(key);
            }
            check(&topics, &sessions);
            assert_eq!(model.len(), topics.edges.len());
        }
    }

    /// A session that ends without unsubscribing leaks its own topic and affects no other session.
    #[test]
    fn a_leaked_subscription_does_not_affect_others() {
        let mut topics = Topics::default();
        let (token, mut lost, mut own) =
            (Token::from_u64(3), Subscriptions::default(), Subscriptions::default());
        let name: Arc<[u8]> = b"c".as_slice().into();
        let other: Arc<[u8]> = b"d".as_slice().into();
        let member = TopicSubscriber { token, since: 0 };
        assert!(topics.add(member, &mut lost, Space::Channel, &name));
        assert!(!topics.add(member, &mut own, Space::Channel, &name));
        assert!(topics.remove(token, &mut own, Space::Channel, &name).is_none());
        assert!(topics.add(member, &mut own, Space::Channel, &other));
        assert!(topics.remove(token, &mut own, Space::Channel, &name).is_none());
        assert!(topics.remove(token, &mut own, Space::Channel, &other).is_some());
        assert!(own.is_empty() && topics.pop(token, &mut own, Space::Channel).is_none());
    }

    #[test]
    fn topics_without_subscribers_are_removed() {
        let mut topics = Topics::default();
        let (token, mut own) = (Token::from_u64(3), Subscriptions::default());
        for round in 0..3 {
            for name in ["a", "b", "c"] {
                let member = TopicSubscriber { token, since: round };
                topics.add(member, &mut own, Space::Channel, &name.as_bytes().into());
            }
            while topics.pop(token, &mut own, Space::Channel).is_some() {}
            assert!(own.is_empty() && topics.edges.is_empty());
            assert!(topics.by_name.iter().all(HashMap::is_empty));
            assert_eq!(topics.topics.len(), 3);
        }
    }
}
