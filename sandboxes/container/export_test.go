package container

import (
	"time"

	"github.com/ralph-pool/ralph/sandboxes/mirror"
)

// SetCopyLimits bounds what comes out of copies.
func (p *Provider) SetCopyLimits(l mirror.Limits) { p.copyLimits = l }

// SetSilence sets how long a command may say nothing.
func (p *Provider) SetSilence(d time.Duration) { p.silence = d }
