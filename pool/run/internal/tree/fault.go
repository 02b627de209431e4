package tree

import (
	"errors"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/worktree/importer"
)

// FaultOf classifies an error of opening: does it affect only this run, or every run?
func FaultOf(err error, fresh bool) *journal.Fault {
	f := &journal.Fault{Kind: journal.FaultOther, Text: err.Error()}
	if _, ok := errors.AsType[*gateway.AgentError](err); ok {
		f.Kind = journal.FaultAgent
	} else if _, ok := errors.AsType[*DirtyError](err); ok {
		f.Kind = journal.FaultDirty
	} else if publish.Unreachable(err) {
		f.Kind = journal.FaultUnavailable
	} else if _, short := errors.AsType[*disk.ShortError](err); short || fresh || importer.IsOutOfResources(err) { // what the machine lacks, every run lacks
		f.Kind = journal.FaultSandbox
	}
	return f
}
