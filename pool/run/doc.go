// Package run does one run: Prepare -> Work -> Verify -> Decide -> Publish -> Report -> Label -> Release.
//
// A run is an immutable [journal.Run] and a stored [journal.State]. A stage is a function from one state to the next.
// The state is stored before each stage begins, so that [Runner.Do] continues a run that a crash or a fault left at any
// stage. Stages collect facts; package decide derives the outcome from them. Issues, single prompts and single commands
// take the same stages with parts left out.
//
// To read it, begin at [Runner.Do] and the pipeline in pipeline.go. Each stage has a file: baseline.go, prepare.go, work.go,
// verify.go and publish.go; finish.go has the last three. watch.go runs beside them. stopping.go says how a run is stopped, and
// deferral.go how it is left to the next sweep. Packages tree, hold, events and spending below this one are parts of a run with
// state of their own.
//
// Package pool takes the claims and decides which runs there are. A [Runner] is safe for concurrent use.
package run
