package local

import (
	"testing"

	"github.com/ralph-pool/ralph/tracker"
)

// The result of an earlier listing is reused only for the same file and labels.
func TestListTriesLabelsAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tr := open(t, dir)
	const good, bad = "---\nlabels: [ready]\n---\nText.\n", "---\nlabels: &a [ready]\nother: *a\n---\nText.\n"
	for i, text := range []string{good, good, bad, bad, good} {
		write(t, dir, "a.md", text)
		l, err := tr.List(t.Context(), tracker.Query{Labels: []string{"ready"}})
		if err != nil || len(l.Issues)+len(l.Problems) != 1 || (len(l.Problems) == 1) != (text == bad) {
			t.Errorf("listing %d: %+v, %v", i, l, err)
		}
	}
}
