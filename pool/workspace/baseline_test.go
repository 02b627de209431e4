package workspace

import (
	"context"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
)

// imaged is a provider whose programs come with an image.
type imaged struct {
	sandboxes.Provider
	image string
}

func (i imaged) HomeKey(context.Context) (string, error) { return i.image, nil }

// What the gate said with the programs of one image is not taken for what it says with another's.
func TestResultsOfAnotherImage(t *testing.T) {
	t.Parallel()
	none := sandboxes.NewNone(sandboxes.NoneConfig{})
	name := func(p sandboxes.Provider) string {
		return NewBaselines(&Config{Sandboxes: p}, t.TempDir()).name(t.Context(), Baseline{})
	}
	first := name(imaged{none, "one"})
	if again := name(imaged{none, "one"}); again != first {
		t.Errorf("%s and then %s", first, again)
	}
	if other := name(imaged{none, "two"}); other == first {
		t.Error("another image has the same name")
	}
}
