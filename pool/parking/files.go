package parking

import "math"

// Open files that a process needs: for itself, and for each run with the connections of its agent.
const ownFiles, runFiles = 64, 32

// Files is how many open files a process needs to work this many issues at the same time. Without them it can start no
// process and open no connection.
func Files(parallel int) int { return ownFiles + runFiles*parallel }

// Fits is how many issues can be worked at the same time with this many open files.
func Fits(files uint64) int {
	return max(0, (int(min(files, math.MaxInt32))-ownFiles)/runFiles)
}

// Processes and threads that ralph starts itself at the least, beyond those that it has at its start: for itself, and for each run.
const ownProcesses, runProcesses = 4, 3

// Processes is how many more processes and threads are needed to work this many issues at the same time. With less Go ends this
// process: it needs a thread, and gets none. The programs of agents need more.
func Processes(parallel int) int { return ownProcesses + runProcesses*parallel }
