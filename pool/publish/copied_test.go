package publish_test

import (
	"fmt"
	"testing"

	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/redact"
)

// Values that host commands make anew for each run do not fill the memory of a service. Git is not asked about known values: the
// policy here has no repository.
func TestMadeSecretsAreBounded(t *testing.T) {
	t.Parallel()
	p := publish.Policy{Secrets: redact.New("a-lasting-value")}
	for n := range 1000 {
		p.AddMade(t.Context(), []string{fmt.Sprintf("made-for-run-%d", n)}, "")
	}
	p.AddMade(t.Context(), []string{"made-for-run-999", "a-lasting-value"}, "a-commit")
	if p.Secrets.In("made-for-run-0") || !p.Secrets.In("made-for-run-999") || !p.Secrets.In("a-lasting-value") {
		t.Error("the first value is kept, or others are not")
	}
}
