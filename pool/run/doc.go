// Package run does one run: Prepare -> Work -> Verify -> Decide -> Publish -> Report -> Label -> Release.
//
// A run is an immutable [journal.Run] and a stored [journal.State]. A stage is a function from one state to the next.
// The state is stored before each stage begins, so that [Runner.Do] continues a run that a crash or a fault left at any
// stage. Stages collect facts; package decide derives the outcome from them. Issues, single prompts and single commands
// take the same stages with parts left out.
//
// Package pool takes the claims and decides which runs there are. A [Runner] is safe for concurrent use.
package run
