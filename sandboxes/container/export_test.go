package container

import "github.com/ralph-pool/ralph/sandboxes/mirror"

// SetCopyLimits bounds what comes out of copies.
func (p *Provider) SetCopyLimits(l mirror.Limits) { p.copyLimits = l }
