//! Many short lists of short texts in one piece of memory.
//!
//! A large program has hundreds of thousands of functions with a name or two each;
//! a vector of strings for each would need more memory than the program's file.

/// Lists of texts, in the order in which they were added.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextLists {
    text: String,
    /// End of each text in `text`.
    ends: Vec<usize>,
    /// End of each list in `ends`.
    lists: Vec<usize>,
}

impl TextLists {
    /// Adds a list at the end.
    pub(crate) fn push_list<'t>(&mut self, texts: impl IntoIterator<Item = &'t str>) {
        for text in texts {
            self.text.push_str(text);
            self.ends.push(self.text.len());
        }
        self.lists.push(self.ends.len());
    }

    /// Adds the lists of `other` at the end.
    pub(crate) fn append(&mut self, other: &Self) {
        let (text, ends) = (self.text.len(), self.ends.len());
        self.text.push_str(&other.text);
        self.ends.extend(other.ends.iter().map(|end| text + end));
        self.lists.extend(other.lists.iter().map(|end| ends + end));
    }

    /// How many lists there are.
    pub(crate) fn len(&self) -> usize {
        self.lists.len()
    }

    /// The texts of list `index`, in their order; none when there is no such list.
    pub(crate) fn list(&self, index: usize) -> impl Iterator<Item = &str> {
        let end = self.lists.get(index).copied().unwrap_or(0);
        let start = index.checked_sub(1).map_or(0, |before| self.end_of(before));
        (start..end).map(|at| {
            let from = at.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.text[from..self.ends[at]]
        })
    }

    fn end_of(&self, list: usize) -> usize {
        self.lists.get(list).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::TextLists;

    #[test]
    fn lists_come_back_as_they_were_added() {
        let mut lists = TextLists::default();
        lists.push_list(["a", "", "bc"]);
        lists.push_list([]);
        let mut more = TextLists::default();
        more.push_list(["d"]);
        lists.append(&more);
        let read = |index| lists.list(index).collect::<Vec<_>>();
        assert_eq!(lists.len(), 3);
        assert_eq!(read(0), ["a", "", "bc"]);
        assert_eq!(read(1), [""; 0]);
        assert_eq!(read(2), ["d"]);
        assert_eq!(read(3), [""; 0]);
    }
}
