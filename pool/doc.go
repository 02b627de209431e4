// Package pool empties one backlog of one repository.
//
// A [Worker] works one issue end to end: claim, freeze, and then the stages of package pool/run. A [Pool] is a Worker
// with a backlog: it selects issues and schedules them under one limit, however many sweeps run. Both are safe for
// concurrent use, and any number of them, in any number of processes, may share a repository: claims keep them off each
// other's issues.
//
// Nothing here writes to standard output, reads flags or handles signals. The caller passes values (agent, sandbox
// provider, tracker, journal) and gets [journal.Event] values and a [Summary].
//
// [Pool.Drain], the end of a sweep's context and [Worker.Kill] end a pool, each more quickly than the one before;
// [Worker.Stop] ends one run. What a crash leaves is recovered when the next sweep begins.
//
// Several backlogs of one repository need names of their own, in the Run.Name of their Config and in the Namespace of their
// worktree.Options.
//
// Stability: the packages of this module below internal/ may change with any release. The others follow semantic
// versions from v1 on; before v1 a minor version may change them, and says so in its notes. Packages batch, checks and workspace
// below this one are parts of a run: their signatures have types of internal/, and other programs have no use for them. Nor have
// they for the KeptHomes of run/config and the Finder of redact. The Canary of run/config has two fields for them.
package pool
