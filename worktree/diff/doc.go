// Package diff reads the changes that commits make, for people and for the policy: changed paths and lines, links, nested
// repositories and statistics. It also makes commits from single edits. Its caller is package worktree.
//
// Commits are data: git runs without filters, text conversions and external diffs. The package changes no ref and no work
// tree, and is safe for concurrent use.
package diff
