// Package pool empties a backlog: it selects issues, claims each, works it with a coding agent in its own worktree and
// sandbox, publishes the commits and reports back.
//
// A [Pool] is made from a [Config] by [New]. [Pool.Sweep] is one pass over the backlog: it returns when nothing
// selectable is left. Several pools, in one process or in many, on one machine or on several, may work one backlog at
// the same time: a claim (a git ref, see package worktree) makes each issue one pool's at a time.
//
// Ending the context given to Sweep stops it gracefully: nothing new is claimed, agents get [Config.StopGrace] to end,
// their commits are taken back, claims are released. [Pool.Kill] stops at once. A process that dies instead leaves a
// [Journal] behind, from which the next sweep ends orphaned agents, takes their commits back and finishes what was
// begun.
//
// An issue that fails is a [Result], never an error: Sweep returns an error only when the backlog cannot be worked at
// all. The package has no global state; everything is safe for concurrent use unless said otherwise.
package pool
