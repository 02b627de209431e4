package pool

import "github.com/ralph-pool/ralph/sandboxes"

// terms are what the end of the run goes by.
func (w *worker) terms() Terms {
	if t := w.rec.Verdict.Terms; t != nil {
		return *t
	}
	c := w.p.cfg
	return Terms{Publish: c.Publish, Require: c.Require, Wall: wallOf(c.Sandboxes.Capabilities())}
}

// wallOf says where a sandbox holds less than others; empty where there is nothing to say.
func wallOf(c sandboxes.Capabilities) string {
	switch {
	case !c.Isolated():
		return "the agent ran on the host, without isolation"
	case c.Weaker != "":
		return "weaker than others: " + c.Weaker
	}
	return ""
}
