package progress

import (
	"github.com/ralph-pool/ralph/internal/pattern"
	"github.com/ralph-pool/ralph/pool/journal"
)

// aKey matches anything that may be a key in ralph's own text.
var aKey = pattern.Lazy(`[a-z0-9][a-z0-9._-]*`)

// InNames replaces keys in the text of a sweep's event or note by the names that people use.
func InNames(name func(key string) string, e journal.Event) journal.Event {
	if e.Kind == journal.EventSweep || e.Kind == journal.EventNote {
		e.Text = aKey().ReplaceAllStringFunc(e.Text, name)
	}
	return e
}
