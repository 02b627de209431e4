// Package diff reads commits for people and for the policy: changed paths and lines, links, repositories inside the
// repository, and statistics. Its caller is package worktree.
//
// Commits are data: git runs without filters, text conversions and external diffs. Everything here only reads, and is safe
// for concurrent use.
package diff
