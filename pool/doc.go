// Package pool works the issues of one backlog of one repository.
//
// A [Worker] works one issue from end to end: it claims the issue, takes a snapshot of it, and does the stages of package
// pool/run. A [Pool] is a Worker with a backlog: it selects issues and schedules their runs under one limit, which all its sweeps
// share. Both are safe for concurrent use. Any number of pools, in any number of processes, may share a repository: claims keep
// two of them from working the same issue.
//
// Nothing here writes to standard output, reads flags or handles signals. The caller passes in values (agent, sandbox provider,
// tracker, journal) and receives [journal.Event] values and a [Summary].
//
// Three things end a pool, each more quickly than the one before: [Pool.Drain], the end of a sweep's context, and [Worker.Kill].
// [Worker.Stop] ends one run. The next sweep recovers the runs that a crash has cut off.
//
// Several backlogs of one repository need separate names, in the Run.Pool of their Config and in the Namespace of their
// worktree.Options.
//
// Stability: packages below internal/, wherever it is, may change with any release. The other packages follow semantic versions
// from v1 on; before v1 a minor version may change them, and its notes say so. Some exported names serve only other packages of this
// module. Below this package they are the packages checks, workspace and workspace/homes; in package run the methods Admit, Full,
// Spaces, Baselines and Lot of Runner; in run/config the methods KeptHomes and EarlierProvider of Config; and Finder of
// redact.Secrets.
package pool
