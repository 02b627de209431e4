package parking

import "math"

// Open files that a process needs for itself, and for each run including its agent's connections.
const ownFiles, runFiles = 64, 32

// FilesNeeded returns how many open files a process needs to work this many issues at a time. Without them it cannot start
// processes or open connections.
func FilesNeeded(parallel int) int { return ownFiles + runFiles*parallel }

// MaxIssues returns how many issues can be worked at a time with this many open files.
func MaxIssues(files uint64) int {
	return max(0, (int(min(files, math.MaxInt32))-ownFiles)/runFiles)
}

// Minimum number of processes and threads that ralph itself starts after its own start: for itself, and for each run.
const ownProcesses, runProcesses = 4, 3

// Processes returns how many more processes and threads ralph needs to work this many issues at a time. If a thread cannot
// be created, Go ends the process. Agents need more.
func Processes(parallel int) int { return ownProcesses + runProcesses*parallel }
