package work

import (
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/hint"
)

// onFullDisk adds to an error which disk is full, where it is about that and has no path.
func onFullDisk(p *compose.Parts, err error) error {
	if err == nil || hint.For(err) != "" {
		return err
	}
	if said := hint.DiskFull(err.Error(), p.State); said != "" {
		return &exit.Error{Status: exit.Failed, Err: err, Hint: said}
	}
	return err
}

// warnFull says once that a disk is full, where a text is about that.
func (v *View) warnFull(text string) {
	if v.full || strings.TrimSpace(text) == "" {
		return
	}
	if said := hint.DiskFull(text, v.State); said != "" {
		v.full = true
		v.UI.Warn(said)
	}
}
