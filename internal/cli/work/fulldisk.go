package work

import (
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/hint"
)

// onFullDisk adds a hint to an error of a full disk that names no path.
func onFullDisk(p *compose.Parts, err error) error {
	if err == nil || hint.For(err) != "" {
		return err
	}
	if said := hint.FullDisk(err.Error(), p.State); said != "" {
		return &exit.Error{Status: exit.Failed, Err: err, Hint: said}
	}
	return err
}
