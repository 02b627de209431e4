package progress

import (
	"github.com/ralph-pool/ralph/internal/pattern"
	"github.com/ralph-pool/ralph/pool/journal"
)

// aKey matches what may be a key in a text of ralph's.
var aKey = pattern.Lazy(`[a-z0-9][a-z0-9._-]*`)

// InNames is an event whose text calls issues as people do.
func InNames(name func(key string) string, e journal.Event) journal.Event {
	if e.Kind == journal.EventSweep || e.Kind == journal.EventNote {
		e.Text = aKey().ReplaceAllStringFunc(e.Text, name)
	}
	return e
}
