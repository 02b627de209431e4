// Package run does one run in stages: Baseline -> Prepare -> Work -> Verify -> Publish -> Report -> Label -> Release.
//
// A run is an immutable [journal.Run] and a stored [journal.State]. A stage is a function from one state to the next. The state
// is stored before each stage begins, so that [Runner.Do] can continue a run that a crash or a fault has left at any stage.
// Stages collect facts; from Verify on, package pool/internal/decide derives the outcome from them. Issues, single prompts and
// single commands take the same stages, with parts left out.
//
// To read the code, begin at [Runner.Do] and at the pipeline in pipeline.go. Each stage has a file: baseline.go, prepare.go,
// work.go, verify.go and publish.go; finish.go has the last three. The watcher in watch.go runs beside the stages, and
// deferral.go leaves a run to the next sweep. Packages tree, hold, events, spending and stopping below this one are parts of a
// run with state of their own.
//
// Package pool takes the claims and decides which runs to start. A [Runner] is safe for concurrent use.
package run
