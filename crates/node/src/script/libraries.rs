//! The function libraries.
//!
//! All workers see one set of libraries, which is replaced as a whole. Therefore a library is visible with all its
//! functions or not at all. A worker runs a library's code in its own interpreter when it first needs one of its
//! functions. The functions of a library are determined when it is loaded.

use arc_swap::ArcSwap;
use brisk_script::header::ScriptFlags;
use brisk_structures::poison::EvenPoisoned;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A library.
#[derive(Debug)]
pub struct Library {
    /// The id of the library. It is never reused for another library.
    pub id: u64,
    pub name: Vec<u8>,
    pub code: Box<[u8]>,
    /// Length of the first line if it is a `#!` line. The code begins after it.
    pub header_len: usize,
    /// The functions, in the order in which they were registered.
    pub functions: Vec<Arc<Function>>,
}

/// A function of a library.
#[derive(Debug)]
pub struct Function {
    pub name: Vec<u8>,
    pub description: Option<Vec<u8>>,
    pub flags: ScriptFlags,
    /// True if the function has used keys that it did not declare. It then starts while all other workers are quiesced.
    pub uses_undeclared_keys: AtomicBool,
    /// True if the function has had an effect that other clients can see.
    pub acts: AtomicBool,
}

/// All libraries. A shared set is never changed: a change replaces the whole set.
#[derive(Debug, Default)]
pub struct Set {
    pub libraries: BTreeMap<Vec<u8>, Arc<Library>>,
    /// The functions, by name in lower case.
    functions: HashMap<Vec<u8>, (Arc<Library>, Arc<Function>)>,
}

/// How FUNCTION RESTORE handles libraries that already exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    Append,
    Replace,
    Flush,
}

impl Set {
    /// The function with this name, ignoring case.
    pub fn function(&self, name: &[u8]) -> Option<&(Arc<Library>, Arc<Function>)> {
        self.functions.get(name).or_else(|| self.functions.get(&name.to_ascii_lowercase()))
    }

    /// Number of functions.
    pub fn function_count(&self) -> usize {
        self.functions.len()
    }

    /// Approximate memory of the libraries in bytes.
    pub fn bytes(&self) -> u64 {
        let of_function = |function: &Arc<Function>| {
            let description = function.description.as_ref().map_or(0, Vec::len);
            size_of::<Function>() + 2 * function.name.len() + description
        };
        let of_library = |library: &Arc<Library>| {
            let functions: usize = library.functions.iter().map(of_function).sum();
            size_of::<Library>() + library.name.len() + library.code.len() + functions
        };
        self.libraries.values().map(|library| of_library(library) as u64).sum()
    }

    fn remove(&mut self, name: &[u8]) -> Option<Arc<Library>> {
        let library = self.libraries.remove(name)?;
        for function in &library.functions {
            self.functions.remove(&function.name.to_ascii_lowercase());
        }
        Some(library)
    }

    /// Adds libraries, or returns the reason why this is not possible.
    fn add(&mut self, new: &[Arc<Library>]) -> Result<(), Vec<u8>> {
        for library in new {
            for function in &library.functions {
                let entry = (Arc::clone(library), Arc::clone(function));
                if self.functions.insert(function.name.to_ascii_lowercase(), entry).is_some() {
                    return Err([b"Function ", &function.name[..], b" already exists"].concat());
                }
            }
            self.libraries.insert(library.name.clone(), Arc::clone(library));
        }
        Ok(())
    }

    fn copy(&self) -> Set {
        Set { libraries: self.libraries.clone(), functions: self.functions.clone() }
    }
}

/// The libraries in force.
#[derive(Debug, Default)]
pub struct Libraries {
    set: ArcSwap<Set>,
    /// Locked while the set is being replaced.
    changing: Mutex<()>,
    generation: AtomicU64,
    next_id: AtomicU64,
}

impl Libraries {
    /// The current set of libraries.
    pub fn now(&self) -> Arc<Set> {
        self.set.load_full()
    }

    /// The generation of the current set of libraries.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// A number for a new library.
    pub fn new_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds a loaded library. With `replace`, it replaces a library with the same name.
    ///
    /// # Errors
    /// A text without an error code.
    pub fn load(&self, library: Library, replace: bool) -> Result<(), Vec<u8>> {
        let library = Arc::new(library);
        self.change(|set| {
            if set.remove(&library.name).is_some() && !replace {
                return Err([b"Library '", &library.name[..], b"' already exists"].concat());
            }
            set.add(&[library])
        })
    }

    /// Adds the libraries of a payload.
    ///
    /// # Errors
    /// A text without an error code.
    pub fn restore(&self, new: &[Arc<Library>], policy: Policy) -> Result<(), Vec<u8>> {
        self.change(|set| {
            if policy == Policy::Flush {
                *set = Set::default();
            }
            for library in new {
                if set.remove(&library.name).is_some() && policy == Policy::Append {
                    return Err([b"Library ", &library.name[..], b" already exists"].concat());
                }
            }
            set.add(new)
        })
    }

    /// Removes a library. Returns false if it does not exist.
    pub fn delete(&self, name: &[u8]) -> bool {
        self.change(|set| set.remove(name).map(|_| ()).ok_or(Vec::new())).is_ok()
    }

    /// Removes all libraries.
    pub fn flush(&self) -> Arc<Set> {
        let before = self.now();
        let _ = self.change(|set| {
            *set = Set::default();
            Ok(())
        });
        before
    }

    fn change(&self, change: impl FnOnce(&mut Set) -> Result<(), Vec<u8>>) -> Result<(), Vec<u8>> {
        let _guard: MutexGuard<'_, ()> = self.changing.lock().even_poisoned();
        let mut set = self.set.load().copy();
        change(&mut set)?;
        self.set.store(Arc::new(set));
        self.generation.fetch_add(1, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(libraries: &Libraries, name: &str, functions: &[&str]) -> Library {
        let function = |name: &&str| {
            Arc::new(Function {
                name: name.as_bytes().to_vec(),
                description: None,
                flags: ScriptFlags::empty(),
                uses_undeclared_keys: AtomicBool::new(false),
                acts: AtomicBool::new(false),
            })
        };
        Library {
            id: libraries.new_id(),
            name: name.as_bytes().to_vec(),
            code: Box::default(),
            header_len: 0,
            functions: functions.iter().map(function).collect(),
        }
    }

    #[test]
    fn a_failed_change_leaves_everything_unchanged() {
        let all = Libraries::default();
        all.load(library(&all, "a", &["f", "g"]), false).unwrap();
        all.load(library(&all, "b", &["h"]), false).unwrap();
        let text = |result: Result<(), Vec<u8>>| String::from_utf8(result.unwrap_err()).unwrap();
        assert_eq!(text(all.load(library(&all, "a", &["x"]), false)), "Library 'a' already exists");
        assert_eq!(
            text(all.load(library(&all, "a", &["x", "H"]), true)),
            "Function H already exists"
        );
        let new = [Arc::new(library(&all, "c", &["y"])), Arc::new(library(&all, "b", &["z"]))];
        assert_eq!(text(all.restore(&new, Policy::Append)), "Library b already exists");
        assert_eq!(all.now().function_count(), 3);
        assert!(all.now().function(b"F").is_some() && all.now().function(b"y").is_none());
        all.restore(&new, Policy::Replace).unwrap();
        assert_eq!(all.now().function_count(), 4);
        assert!(all.delete(b"a") && !all.delete(b"a"));
        assert!(all.now().function(b"f").is_none());
        all.restore(&new[..1], Policy::Flush).unwrap();
        assert_eq!(all.now().libraries.len(), 1);
    }
}
